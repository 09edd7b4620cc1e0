"""The lines of an import: statements as they stand, or sentences that rules read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import AwareDatetime, ConfigDict, Field, ValidationError

from phronesis_contracts import BadRequest, Message
from phronesis_contracts.facts import MAX_IMPORT_LINES, FactKind, Origin, Statement

from ..values import is_storable
from .decision import has_secret
from .extraction import extract_statements
from .predicates import NOTED


class _LineContent(Message):
    model_config = ConfigDict(extra="forbid")

    text: str = Field(min_length=1, max_length=2_000)
    kind: FactKind = FactKind.FACT
    subject: str = Field(default="user", min_length=1, max_length=200)
    predicate: str | None = Field(default=None, min_length=1, max_length=100)
    object: str | None = Field(default=None, min_length=1, max_length=1_000)
    negated: bool = False
    confidence: float = Field(default=0.8, ge=0.0, le=1.0)
    at: AwareDatetime | None = None


@dataclass(frozen=True)
class ImportLine:
    """One line: its number from 1, what it states, and since when; nothing where it is skipped."""

    number: int
    statements: tuple[Statement, ...]
    at: datetime | None


def read_import(lines: str) -> list[ImportLine]:
    """The lines of an import, without empty ones. Raises `BadRequest`: one does not parse (`field` names it), or too many."""
    found = [(number, line) for number, line in enumerate(lines.splitlines(), 1) if line.strip()]
    if len(found) > MAX_IMPORT_LINES:
        raise BadRequest(f"at most {MAX_IMPORT_LINES} lines at once, not {len(found)}", field="lines")
    if not found:
        raise BadRequest("there is no line", field="lines")
    return [_read_line(number, line) for number, line in found]


def _read_line(number: int, text: str) -> ImportLine:
    try:
        value: Any = json.loads(text)
        if not is_storable(value):
            raise BadRequest(f"line {number}: no NUL characters and no infinite numbers", field=f"lines.{number}")
        line = _LineContent.model_validate(value)
    except (json.JSONDecodeError, RecursionError) as error:
        raise BadRequest(f"line {number} is not JSON", field=f"lines.{number}") from error
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        wrong = f"{where}: {first['msg']}" if where else first["msg"]
        raise BadRequest(f"line {number}: {wrong}"[:300], field=f"lines.{number}") from error
    if (line.predicate is None) != (line.object is None):
        raise BadRequest(f"line {number}: predicate and object come together", field=f"lines.{number}")
    return ImportLine(number, () if has_secret(text) else _statements_of_line(line), line.at)


def _statements_of_line(line: _LineContent) -> tuple[Statement, ...]:
    if line.predicate is not None and line.object is not None:
        fields = line.model_dump(exclude={"at"})
        return (Statement(**fields, origin=Origin.IMPORT),)
    drawn = extract_statements(line.text)
    if drawn:
        return tuple(one.model_copy(update={"origin": Origin.IMPORT, "confidence": line.confidence}) for one in drawn)
    note = {"kind": line.kind, "subject": line.subject, "predicate": NOTED, "object": line.text[:1_000]}
    return (Statement.model_validate({**note, "text": line.text, "confidence": line.confidence, "origin": Origin.IMPORT}),)
