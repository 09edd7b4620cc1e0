"""How much of the memory the embedded Postgres caches pages in."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from phronesis_local import postgres

GB = 2**30


@pytest.mark.parametrize(
    ("machine", "limit", "cache"),
    [
        (24 * GB, "max\n", 1.5 * GB),
        (24 * GB, f"{16 * GB}\n", 1 * GB),
        (24 * GB, f"{2**63 - 4096}\n", 1.5 * GB),
        (4 * GB, "max\n", 0.5 * GB),
        (256 * GB, "max\n", 4 * GB),
        (24 * GB, None, 1.5 * GB),
    ],
)
def test_it_is_a_share_of_what_the_machine_or_the_container_has(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, machine: int, limit: str | None, cache: float
) -> None:
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(total=machine))
    monkeypatch.setattr(postgres, "_LIMITS", (tmp_path / "none", tmp_path / "limit"))
    if limit is not None:
        (tmp_path / "limit").write_text(limit)
    assert postgres.buffer_bytes() == cache
