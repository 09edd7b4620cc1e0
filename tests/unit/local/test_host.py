"""The address that a stack's gateway listens on."""

from __future__ import annotations

from pathlib import Path

import pytest

from phronesis_local.layout import DataDir
from phronesis_local.parts import Parts, addresses
from phronesis_local.settings import LocalSettings


async def _answers(_: str) -> bool:
    return True


@pytest.mark.parametrize(("variable", "host"), [(None, "127.0.0.1"), ("0.0.0.0", "0.0.0.0")])
def test_the_gateway_listens_on_the_address_that_the_settings_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str | None, host: str
) -> None:
    monkeypatch.delenv("PHRONESIS_HOST", raising=False)
    if variable:
        monkeypatch.setenv("PHRONESIS_HOST", variable)
    settings = LocalSettings(data=tmp_path)
    data = DataDir(settings.data)
    data.create()
    assert Parts(data, settings, addresses(settings)).service("gateway", _answers).environment["GATEWAY_HOST"] == host
