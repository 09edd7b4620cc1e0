"""Constitutions in files: reading one, and cutting it in the parts that the graph takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from phronesis_contracts import Message
from phronesis_contracts.constitution.registry import Kind, node_type
from phronesis_contracts.constitution.writes import NODES, RELATIONSHIPS, LoadConstitution, LoadNode, Relate


class Unreadable(ValueError):
    """A file holds no constitution; the text says where."""


@dataclass(frozen=True)
class Constitution:
    name: str
    nodes: tuple[LoadNode, ...]
    relationships: tuple[Relate, ...]


def read(path: Path, today: date | None = None) -> Constitution:
    """A constitution from a YAML or JSON file of the sample's form.

    Args:
        today: the day that `asOf` of the file becomes; a file without `asOf` keeps its days.

    Raises:
        Unreadable: it is no such file.
        OSError: it cannot be read.
    """
    try:
        found = yaml.safe_load(path.read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Unreadable(f"{path} is neither YAML nor JSON: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict) or not isinstance(found.get("nodes"), list):
        raise Unreadable(f"{path} has no list `nodes`")
    return parse(found, today or datetime.now(UTC).date())


def parse(found: Mapping[str, Any], today: date) -> Constitution:
    as_of = found.get("asOf")
    shift = today - as_of if isinstance(as_of, date) else timedelta()
    nodes = tuple(_parse_node(row, number, shift) for number, row in enumerate(found["nodes"], 1))
    joined = tuple(_parse_relationship(row, number) for number, row in enumerate(found.get("relationships") or (), 1))
    return Constitution(str(found.get("name", "")), nodes, joined)


def _parse_node(row: Any, number: int, shift: timedelta) -> LoadNode:
    if not isinstance(row, dict):
        raise Unreadable(f"node {number} is no mapping")
    kind = node_type(str(row.get("type", "")))
    dates = {one.name for one in kind.properties if one.kind is Kind.DATE} if kind else set()
    moved = {name: _shift_day(value, shift) if name in dates else value for name, value in row.items()}
    try:
        return LoadNode.model_validate(moved)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise Unreadable(f"node {number} ({row.get('id', 'without id')}), {where}: {fault['msg']}") from error


def _shift_day(value: Any, shift: timedelta) -> Any:
    if isinstance(value, str):
        value = datetime.fromisoformat(value) if len(value) > len("2026-01-05") else date.fromisoformat(value)
    return (value + shift).isoformat() if isinstance(value, date) else value


def _parse_relationship(row: Any, number: int) -> Relate:
    words = row.split() if isinstance(row, str) else []
    if len(words) != 3:
        raise Unreadable(f"relationship {number} is not of the form `from TYPE to`")
    try:
        return Relate(from_id=words[0], type=words[1], to_id=words[2])
    except ValidationError as error:
        raise Unreadable(f"relationship {number} ({row}): {error.errors()[0]['msg']}") from error


M = TypeVar("M", bound=Message)

_BYTES = 400_000
"""Of one part as JSON; the contract takes 1 MB, and smaller parts show progress."""


def parts(nodes: Iterable[LoadNode], relationships: Iterable[Relate]) -> Iterator[LoadConstitution]:
    """All nodes, then all relationships; each part is small enough for one message."""
    for some in _pack(nodes, NODES):
        yield LoadConstitution(nodes=tuple(some))
    for joined in _pack(relationships, RELATIONSHIPS):
        yield LoadConstitution(relationships=tuple(joined))


def _pack(items: Iterable[M], most: int) -> Iterator[list[M]]:
    found: list[M] = []
    size = 0
    for item in items:
        wide = len(item.model_dump_json(exclude_none=True).encode()) + 1
        if found and (len(found) == most or size + wide > _BYTES):
            yield found
            found, size = [], 0
        found.append(item)
        size += wide
    if found:
        yield found
