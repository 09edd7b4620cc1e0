"""Tables of nodes: a CSV file for each node type, held against an ontology before anything is written."""

from __future__ import annotations

import csv
import io
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from phronesis_contracts.ontology import OntologyView, PropertyView, RelationshipView, TypeView
from phronesis_contracts.twin import Level, NodeRef, Upsert, UpsertNode, UpsertRelationship

MOST_FAULTS = 50
"""Faults that are told; a file with more is better mended before it is read further."""
MOST_ROWS = 500_000
NODES_OF_A_BATCH = 500
RELATIONSHIPS_OF_A_BATCH = 1_000
BYTES_OF_A_BATCH = 400_000
_COMMON = ("id", "name", "year", "quarter", "level", "aliases")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_RELATIONSHIP = re.compile(r"[A-Z][A-Z0-9_]*(:[A-Za-z][A-Za-z0-9]*)?")
_SEPARATOR = ";"
"""Between several targets, or aliases, in one cell."""


@dataclass(frozen=True)
class Fault:
    """What is wrong in a file, and where."""

    file: str
    line: int
    detail: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.detail}"


class Unfit(ValueError):
    """Files that cannot be loaded; nothing was written."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = tuple(faults)


@dataclass(frozen=True)
class _Link:
    relationship: str
    source: NodeRef
    target_type: str
    target: str
    file: str
    line: int


@dataclass
class Tables:
    """Everything that the files hold."""

    nodes: list[UpsertNode] = field(default_factory=list)
    relationships: list[UpsertRelationship] = field(default_factory=list)

    def batches(self) -> list[Upsert]:
        """All nodes, then all relationships, in parts that the graph takes."""
        nodes = (Upsert(nodes=part) for part in _packed(self.nodes, NODES_OF_A_BATCH))
        relationships = (Upsert(relationships=part) for part in _packed(self.relationships, RELATIONSHIPS_OF_A_BATCH))
        return [*nodes, *relationships]


Item = TypeVar("Item", UpsertNode, UpsertRelationship)
Ids = Mapping[tuple[str, str, int], str | None]
"""Ids of nodes, by type, id or name, and year; none for a name that several have."""
Known = Callable[[], Ids]
"""The nodes that are in the graph already; asked for only where a file refers to one."""


def read_tables(ontology: OntologyView, paths: Sequence[Path], year: int, known: Known, type: str | None = None) -> Tables:
    """The nodes and relationships of all files.

    Args:
        ontology: what they are held against.
        year: of rows that state none.
        type: of the nodes of the one file; by default each file's name says it.

    Raises:
        Unfit: with every fault that was found, up to `MOST_FAULTS`.
        OSError: a file cannot be read.
    """
    reading = _Reading(ontology, year)
    for path in paths:
        reading.file(path, type)
    reading.join(known)
    if reading.faults:
        raise Unfit(reading.faults[:MOST_FAULTS])
    return reading.tables


def slug(name: str) -> str:
    """The id of a row that has a name alone: `Queen Mary 2` is `queen-mary-2`."""
    plain = unicodedata.normalize("NFKD", name.casefold())
    plain = unicodedata.normalize("NFKD", plain.casefold())  # a bold 𝐀 is an A only once it is decomposed
    kept = "".join(letter if letter.isalnum() else " " for letter in plain if not unicodedata.combining(letter))
    return "-".join(kept.split())[:200].strip("-")


class _Reading:
    def __init__(self, ontology: OntologyView, year: int) -> None:
        self._types = {each.name: each for each in ontology.types}
        self._relationships = {each.name: each for each in ontology.relationships}
        self._year = year
        self._places: dict[tuple[str, str, int], str] = {}
        self._ids: dict[tuple[str, str, int], str | None] = {}
        self._names: dict[tuple[str, str, int], str | None] = {}
        self._links: list[_Link] = []
        self.tables = Tables()
        self.faults: list[Fault] = []

    def file(self, path: Path, type: str | None) -> None:
        name = path.name
        try:
            text = path.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            self._fault(name, 1, f"the file is not UTF-8 (byte {error.start})")
            return
        kind = self._kind(path, type)
        if kind is None:
            return
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
        try:
            header = next(reader, [])
            columns = self._columns(name, kind, header)
            if columns is None:
                return
            line = reader.line_num + 1
            for number, cells in enumerate(reader, 1):
                if number > MOST_ROWS:
                    self._fault(name, line, f"the file has over {MOST_ROWS} rows; split it in two")
                    return
                if any(cell.strip() for cell in cells):
                    self._row(name, line, kind, columns, cells)
                line = reader.line_num + 1
                if len(self.faults) >= MOST_FAULTS:
                    return
        except csv.Error as error:
            self._fault(name, reader.line_num, f"this is no CSV: {error}")

    def join(self, known: Known) -> None:
        """Find the targets of all relationships, in the files or in the graph."""
        missing = any(self._target(link, {}) is None for link in self._links)
        stored = known() if missing and not self.faults else {}
        seen: set[tuple[str, str, str]] = set()
        for link in self._links:
            target = self._target(link, stored)
            if target is None:
                where = f"in {link.source.year}, in the files or in the twin"
                self._fault(link.file, link.line, f"{link.relationship}: no {link.target_type} {link.target[:80]!r} {where}")
                continue
            joined = UpsertRelationship(type=link.relationship, source=link.source, target=target)
            if (key := (joined.type, joined.source.key, joined.target.key)) not in seen:
                seen.add(key)
                self.tables.relationships.append(joined)

    def _target(self, link: _Link, stored: Ids) -> NodeRef | None:
        for ids in (self._ids, self._names, stored):
            for written in (link.target, slug(link.target)):
                if id := ids.get((link.target_type, written, link.source.year)):
                    return NodeRef(type=link.target_type, id=id, year=link.source.year)
        return None

    def _kind(self, path: Path, type: str | None) -> TypeView | None:
        wanted = type or path.stem
        folded = _fold(wanted)
        for each in self._types.values():
            words = [each.name, *(word for words in each.words.values() for word in words)]
            if folded in map(_fold, words):
                return each
        hint = "" if type else "; name the file after its type, or give --type"
        self._fault(path.name, 1, f"the ontology has no node type {wanted[:80]!r}{hint}; there are {', '.join(self._types)}")
        return None

    def _columns(self, file: str, kind: TypeView, header: Sequence[str]) -> list[_Column] | None:
        columns, seen, before = [], set[str](), len(self.faults)
        properties = {each.name: each for each in kind.properties}
        for title in header:
            try:
                column = self._column(kind, properties, title.strip())
            except ValueError as error:
                self._fault(file, 1, f"column {title.strip()[:80]!r}: {error}")
                continue
            if column.key in seen:
                self._fault(file, 1, f"column {title.strip()[:80]!r} stands here twice")
            seen.add(column.key)
            columns.append(column)
        if not seen & {"name", "id"}:
            self._fault(file, 1, "there is no column `name`")
        return columns if len(self.faults) == before else None

    def _column(self, kind: TypeView, properties: Mapping[str, PropertyView], title: str) -> _Column:
        if _RELATIONSHIP.fullmatch(title) and (name := title.partition(":")[0]) in self._relationships:
            return _Column(title, target=_target_type(self._relationships[name], kind, title), relationship=name)
        plain = "_".join(title.lower().split())
        if plain in _COMMON:
            return _Column(plain)
        if plain in properties:
            return _Column(plain, property=properties[plain])
        known = ", ".join([*_COMMON, *properties, *self._relationships])
        raise ValueError(f"{kind.name} has no such property, and there is no such relationship; there are {known}"[:600])

    def _row(self, file: str, line: int, kind: TypeView, columns: Sequence[_Column], cells: Sequence[str]) -> None:
        if len(cells) > len(columns):
            self._fault(file, line, f"the row has {len(cells)} cells, and the header {len(columns)} columns")
            return
        given = {column.key: cell.strip() for column, cell in zip(columns, cells, strict=False)}
        try:
            node = self._node(kind, columns, given)
        except ValidationError as error:
            fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
            self._fault(file, line, f"column {str(fault['loc'][0])!r}: {fault['msg']}")
            return
        except ValueError as error:
            self._fault(file, line, str(error))
            return
        place = (node.type, node.id, node.year)
        if place in self._places:
            self._fault(
                file, line, f"{node.id!r} of {node.year} stands in {self._places[place]} too; each row needs its own id"
            )
            return
        self._places[place] = f"{file}:{line}"
        self._ids[place] = node.id
        named = (node.type, node.name, node.year)
        self._names[named] = None if named in self._names else node.id  # a name of two is none to go by
        self.tables.nodes.append(node)
        source = NodeRef(type=node.type, id=node.id, year=node.year)
        for column in columns:
            if column.relationship is not None and column.target is not None:
                for target in _split(given.get(column.key, "")):
                    self._links.append(_Link(column.relationship, source, column.target, target, file, line))

    def _node(self, kind: TypeView, columns: Sequence[_Column], given: Mapping[str, str]) -> UpsertNode:
        name = given.get("name") or given.get("id", "")
        id = given.get("id") or slug(name)
        if not name or not id:
            raise ValueError("the row has no name")
        properties = {
            column.key: _value(column.property, given[column.key])
            for column in columns
            if column.property is not None and given.get(column.key)
        }
        year = given.get("year", "")
        if year and not (year.isdecimal() and len(year) == 4):
            raise ValueError(f"column 'year': {year[:20]!r} is no year")
        return UpsertNode(
            type=kind.name,
            id=id,
            year=int(year) if year else self._year,
            name=name,
            aliases=tuple(_split(given.get("aliases", ""))),
            level=_level(kind, given.get("level", "")),
            quarter=given.get("quarter") or None,
            properties=properties,
        )

    def _fault(self, file: str, line: int, detail: str) -> None:
        self.faults.append(Fault(file, line, detail))


@dataclass(frozen=True)
class _Column:
    key: str
    property: PropertyView | None = None
    relationship: str | None = None
    target: str | None = None


def _target_type(relationship: RelationshipView, kind: TypeView, title: str) -> str:
    if kind.name not in relationship.sources:
        raise ValueError(f"{relationship.name} starts at {', '.join(relationship.sources)}; put the column into their files")
    targets = (kind.name,) if relationship.rule == "down" else relationship.targets
    wanted = title.partition(":")[2]
    if wanted and wanted not in targets:
        raise ValueError(f"{relationship.name} leads to {', '.join(targets)}")
    if not wanted and len(targets) > 1:
        raise ValueError(f"say where it leads: {' or '.join(f'{relationship.name}:{target}' for target in targets)}")
    return wanted or targets[0]


def _level(kind: TypeView, given: str) -> Level:
    levels = tuple(kind.levels) or (Level.L3,)
    if not given:
        return max(levels)
    if given.upper() not in [level.value for level in levels]:
        raise ValueError(f"column 'level': {kind.name} stands at {' or '.join(levels)}, not at {given[:20]!r}")
    return Level(given.upper())


def _value(declared: PropertyView, cell: str) -> str | float:
    match declared.kind:
        case "number":
            return _number(declared, cell)
        case "date":
            try:
                return date.fromisoformat(cell).isoformat()
            except ValueError:
                raise ValueError(f"column {declared.name!r}: {cell[:40]!r} is no date as YYYY-MM-DD") from None
        case _:
            return _text(declared, cell)


def _number(declared: PropertyView, cell: str) -> float:
    plain = cell.replace(",", "") if _THOUSANDS.fullmatch(cell) else cell
    try:
        number = float(plain)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"column {declared.name!r}: {cell[:40]!r} is no number; write 1234.5")
    low, high = declared.lowest, declared.highest
    if (low is not None and number < low) or (high is not None and number > high):
        raise ValueError(f"column {declared.name!r}: {cell[:40]} is not between {low:g} and {high:g}")
    return number


def _text(declared: PropertyView, cell: str) -> str:
    longest = 20_000 if declared.kind == "text" else 1_000
    if len(cell) > longest:
        raise ValueError(f"column {declared.name!r}: the text is over {longest} characters")
    if not declared.choices:
        return cell
    folded = {choice.casefold(): choice for choice in declared.choices}
    if cell.casefold() not in folded:
        raise ValueError(f"column {declared.name!r}: {cell[:40]!r} is none of {', '.join(declared.choices)}")
    return folded[cell.casefold()]


def _split(cell: str) -> Iterator[str]:
    return (part.strip() for part in cell.split(_SEPARATOR) if part.strip())


def _fold(word: str) -> str:
    return "".join(letter for letter in word.casefold() if letter.isalnum())


def _delimiter(text: str) -> str:
    header = text.partition("\n")[0]
    return max((",", ";", "\t"), key=header.count)


def _packed(items: Sequence[Item], most: int) -> Iterator[tuple[Item, ...]]:
    part: list[Item] = []
    size = 0
    for item in items:
        weight = len(item.model_dump_json().encode()) + 1
        if part and (len(part) >= most or size + weight > BYTES_OF_A_BATCH):
            yield tuple(part)
            part, size = [], 0
        part.append(item)
        size += weight
    if part:
        yield tuple(part)
