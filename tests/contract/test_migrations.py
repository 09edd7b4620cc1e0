"""Migrations keep the version before working: they only add, and none that there was is edited."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.previous import ROOT, previous_tree

_BREAKS = re.compile(
    r"\bDROP\s+(TABLE|COLUMN|SCHEMA)\b|\bRENAME\b|\bSET\s+NOT\s+NULL\b|\bTRUNCATE\b|\bALTER\s+COLUMN\s+\w+\s+(SET\s+DATA\s+)?TYPE\b"
    r"|\bADD\s+COLUMN\s+(?:(?!DEFAULT|;|,).)*\bNOT\s+NULL\b(?:(?!DEFAULT|;|,).)*(?=[;,]|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_COMMENT = re.compile(r"--[^\n]*")


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The migrations of the version before."""
    return _migrations(previous_tree(tmp_path_factory.mktemp("previous") / "tree"))


def _migrations(tree: Path) -> dict[str, str]:
    found = sorted((tree / "services").glob("*/phronesis*/**/migrations/*.sql"))
    files = (path for path in found if not path.name.endswith(".rollback.sql"))
    return {f"{path.relative_to(tree / 'services').parts[0]}/{path.name}": path.read_text() for path in files}


def breaks(sql: str) -> list[str]:
    """The statements' parts with which the version before would not work."""
    return [found.group() for found in _BREAKS.finditer(_COMMENT.sub("", sql))]


def test_no_migration_of_the_version_before_is_edited_or_gone(before: dict[str, str]) -> None:
    now = _migrations(ROOT)
    assert before
    assert [name for name, text in before.items() if now.get(name) != text] == []


def test_new_migrations_only_add(before: dict[str, str]) -> None:
    assert {name: found for name, text in _migrations(ROOT).items() if name not in before and (found := breaks(text))} == {}


@pytest.mark.parametrize(
    ("sql", "broken"),
    [
        ("ALTER TABLE turns ADD COLUMN note text;", False),
        ("ALTER TABLE turns ADD COLUMN note text NOT NULL DEFAULT '';", False),
        ("ALTER TABLE turns ADD COLUMN note text DEFAULT '' NOT NULL;", False),
        ("CREATE TABLE notes (id bigint NOT NULL); -- DROP TABLE is only talked of", False),
        ("ALTER TABLE turns ADD COLUMN note text NOT NULL;", True),
        ("ALTER TABLE turns DROP COLUMN note;", True),
        ("ALTER TABLE turns RENAME COLUMN note TO said;", True),
        ("ALTER TABLE turns ALTER COLUMN note SET NOT NULL;", True),
        ("ALTER TABLE turns ALTER COLUMN note TYPE bigint;", True),
        ("DROP TABLE turns;", True),
    ],
)
def test_what_would_break_the_version_before_is_seen(sql: str, broken: bool) -> None:
    assert bool(breaks(sql)) == broken
