"""`docs/decisions/README.md`: the index of the decision records, from their own headers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .tree import DOCS, GENERATED

FOLDER = DOCS / "decisions"
_TITLE = re.compile(r"^# (\d{4}) (.+)$", re.MULTILINE)
_ROW = re.compile(r"^\| (Date|Status|Area) \| (.+?) \|$", re.MULTILINE)
_SECTIONS = ("## Context", "## Decision", "## Consequences", "## Alternatives", "## Kept by")


class Malformed(Exception):
    """A record without its title, its table or one of its sections."""


@dataclass(frozen=True)
class Record:
    """The head of one record."""

    path: Path
    number: str
    title: str
    date: str
    status: str
    area: str


def records() -> list[Record]:
    """Every record in order.

    Raises:
        Malformed: a record lacks its title, its table or a section, or its number is not its file's or is taken twice.
    """
    found = [_record(path) for path in sorted(FOLDER.glob("[0-9]*.md"))]
    numbers = [record.number for record in found]
    if numbers != [f"{i:04d}" for i in range(1, len(found) + 1)]:
        raise Malformed("the numbers of the records have a gap or a double")
    return found


def _record(path: Path) -> Record:
    text = path.read_text()
    title = _TITLE.search(text)
    head = {key.lower(): value for key, value in _ROW.findall(text)}
    missing = [section for section in _SECTIONS if f"\n{section}\n" not in text]
    if title is None or head.keys() != {"date", "status", "area"} or missing:
        raise Malformed(f"{path.name}: title, table of Date, Status and Area, or a section is missing {missing}")
    if not path.name.startswith(f"{title[1]}-"):
        raise Malformed(f"{path.name}: the number in the title is another one")
    return Record(path, title[1], title[2], **head)


def documents() -> dict[Path, str]:
    """The index."""
    rows = [f"| [{r.number}]({r.path.name}) | {r.title} | {r.area} | {r.status} | {r.date} |" for r in records()]
    head = [
        "# Decisions",
        "",
        f"<!-- {GENERATED} -->",
        "One page each says why something was built as it is. An accepted record is not edited: a later one supersedes it. The "
        "other pages of `docs/` say what is; record 0001 says how a record is written.",
        "",
        "| | decision | area | status | date |",
        "| --- | --- | --- | --- | --- |",
    ]
    return {FOLDER / "README.md": "\n".join([*head, *rows, ""])}
