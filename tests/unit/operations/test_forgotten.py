"""The list of what was forgotten, as a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from phronesis_operations.reporting import Refused
from phronesis_operations.restore import read_forgotten, write_forgotten

ONE = {
    "id": "00000000-0000-4000-8000-000000000001",
    "tenant": "acme",
    "owner": "ann",
    "ids": ["f1"],
    "turns": ["t1"],
    "conversation_id": None,
    "requested_at": "2026-11-23 01:02:03+00",
}
ERASED = {
    "id": "00000000-0000-4000-8000-000000000002",
    "tenant": "acme",
    "user_id": "bob",
    "requested_by": "root",
    "requested_at": "2026-11-23 01:02:03+00",
}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_forgotten([ONE, ERASED], tmp_path / "list")
    assert read_forgotten(tmp_path / "list") == [ONE, ERASED]


@pytest.mark.parametrize("text", ["{", "[]", '{"id": "x"}'])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "list").write_text(text)
    with pytest.raises(Refused):
        read_forgotten(tmp_path / "list")
