"""What a stack tells its gateway."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from phronesis_local.layout import DataDir
from phronesis_local.parts import Parts, addresses
from phronesis_local.settings import LocalSettings


async def _answers(_: str) -> bool:
    return True


def told(settings: LocalSettings) -> Mapping[str, str]:
    """The gateway's variables."""
    data = DataDir(settings.data)
    data.create()
    return Parts(data, settings, addresses(settings)).service("gateway", _answers).environment


@pytest.mark.parametrize(("variable", "host"), [(None, "127.0.0.1"), ("0.0.0.0", "0.0.0.0")])
def test_the_gateway_listens_on_the_address_that_the_settings_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str | None, host: str
) -> None:
    monkeypatch.delenv("PHRONESIS_HOST", raising=False)
    if variable:
        monkeypatch.setenv("PHRONESIS_HOST", variable)
    assert told(LocalSettings(data=tmp_path))["GATEWAY_HOST"] == host


@pytest.mark.parametrize(("replicas", "own", "seconds"), [(1, None, "0"), (2, None, None), (1, "5", "5")])
def test_a_gateway_that_is_the_only_one_stops_without_notice_unless_it_is_told_to_give_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replicas: int, own: str | None, seconds: str | None
) -> None:
    monkeypatch.delenv("GATEWAY_STOP_NOTICE", raising=False)
    if own:
        monkeypatch.setenv("GATEWAY_STOP_NOTICE", own)
    assert told(LocalSettings(data=tmp_path, replicas=replicas)).get("GATEWAY_STOP_NOTICE") == seconds
