"""The graph as one turn reads it through its agent's tools: nodes with all their fields, relationships, people and days."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cache
from importlib.resources import files
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import yaml

from phronesis_contracts import Nothing, ServiceError
from phronesis_contracts.constitution.lists import (
    LIST_FOUNDATION_TOOL,
    LIST_VISION_TOOL,
    LISTS,
    ListFoundation,
    ListLayer,
    ListVision,
)
from phronesis_contracts.constitution.paths import SUBGRAPH_TOOL, Subgraph
from phronesis_contracts.constitution.registry import TYPES, Kind, Layer, TaskStatus
from phronesis_contracts.constitution.session import GET_CALENDAR_TOOL, START_SESSION_TOOL, StartSession
from phronesis_contracts.constitution.values import ConstitutionNode

from ...understanding.language import Language, detect, fold, parse
from .tools import NotOffered, TurnTools

_PAGES = 8
"""Pages of a layer that are read; a larger layer is known in part, and answers over it say so."""
_AROUND = 50
"""Nodes whose relationships one call reads, as many as it takes."""
_CALLS = 20
"""Such calls of one turn."""
_HEAVY = ("metadata", "embedding", "provenance")
_COMMON = {"title", "status", "summary", "description"}
_UNSAID = {"id", "type", "layer", "created_at", "updated_at", "version", "properties", "metadata", "provenance", "parents"}
_PEOPLE = ("human", "ai")
OPEN = frozenset({TaskStatus.TODO.value, TaskStatus.IN_PROGRESS.value})
"""Statuses of work that is still to do."""


@dataclass(frozen=True, eq=False)
class Thing:
    """A node with every field that it has."""

    id: str
    type: str
    layer: str
    title: str
    status: str
    fields: Mapping[str, Any]
    """Typed and free properties and texts, by their own names."""

    @property
    def text(self) -> str:
        """All that it says."""
        return " ".join([self.title, *(str(value) for value in self.fields.values() if isinstance(value, str | list | tuple))])


@dataclass(frozen=True)
class Link:
    """A relationship between two nodes."""

    start: str
    type: str
    end: str


@dataclass(frozen=True)
class Vocabulary:
    """The words of one language, and names that a property or relationship of their sense may have."""

    language: Language
    names: Mapping[str, frozenset[str]]
    """Of properties by sense, in small letters with blanks."""
    relations: Mapping[str, frozenset[str]]
    """Types of relationships by sense."""
    against: frozenset[str]
    """Types of relationships that lead from what is upheld to what upholds it."""
    stop: frozenset[str]
    """Stems that carry no sense of their own."""


@cache
def vocabularies() -> Mapping[str, Vocabulary]:
    """Every language that has a content file, by its code."""
    found = {}
    for file in files("phronesis_orchestrator.agents.counsel").joinpath("content").iterdir():
        if not file.name.endswith(".yaml"):
            continue
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
        told = {name: body for name, body in data.items() if name not in ("names", "relation_names", "against")}
        language = parse(told)
        stop = {token.stem for phrase in language.words["stop"] for token in language.tokens(phrase)}
        found[language.name] = Vocabulary(
            language,
            {sense: frozenset(fold(one.strip()) for one in body.split("|")) for sense, body in data["names"].items()},
            {sense: frozenset(one.strip() for one in body.split("|")) for sense, body in data["relation_names"].items()},
            frozenset(one.strip() for one in data["against"].split("|")),
            frozenset(stop),
        )
    return found


def vocabulary_of(text: str) -> Vocabulary:
    """The vocabulary of a message's language; English where it is of another."""
    known = vocabularies()
    return known.get(detect(text).name) or known["en"]


def spaced(name: str) -> str:
    """A name of code as words: `effortHours` and `EFFORT_HOURS` are `effort hours`."""
    return " ".join(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ").replace("-", " ").split()).casefold()


@dataclass
class Record:
    """What a turn read."""

    things: dict[str, Thing] = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    today: date = field(default_factory=lambda: datetime.now(UTC).date())
    zone: ZoneInfo = field(default_factory=lambda: ZoneInfo("UTC"))
    partial: bool = False
    """Whether there is more than was read."""
    words: Vocabulary = field(default_factory=lambda: vocabularies()["en"])
    _ends: dict[str, list[Link]] = field(default_factory=dict)

    def join(self, links: Iterable[Link]) -> None:
        """Take relationships over."""
        self.links = tuple(dict.fromkeys(links))
        for link in self.links:
            for end in {link.start, link.end}:
                self._ends.setdefault(end, []).append(link)

    def __iter__(self) -> Iterator[Thing]:
        return iter(self.things.values())

    def get(self, id: str) -> Thing | None:
        return self.things.get(id)

    def names_of(self, sense: str) -> frozenset[str]:
        """Names of fields, as the nodes spell them, that have a sense."""
        wanted = self.words.names.get(sense, frozenset()) | {sense}
        return frozenset(name for one in self for name in one.fields if spaced(name) in wanted or name == sense)

    def value(self, one: Thing, sense: str) -> Any:
        """What a node says of a sense: the value of its field, a person by relationship, its day; `None` where nothing."""
        if sense == "owner":
            return ", ".join(self.owners(one)) or None
        if sense == "status":
            return next((one.fields[name] for name in ("state", "stage", "progress") if name in one.fields), one.status)
        if sense == "title":
            return one.title
        wanted = self.words.names.get(sense, frozenset())
        found = [one.fields[name] for name in one.fields if name == sense or spaced(name) in wanted]
        return number_of(found[0]) if found and isinstance(found[0], dict) else found[0] if found else None

    def owners(self, one: Thing) -> tuple[str, ...]:
        """Who a node belongs to, by its fields or by a relationship with a person."""
        wanted = self.words.names["owner"]
        said = [value for name, value in one.fields.items() if spaced(name) in wanted and value]
        named = [str(part) for value in said for part in (value if isinstance(value, list | tuple) else [value])]
        joined = [
            self.things[other].title
            for link in self._ends.get(one.id, ())
            if spaced(link.type) in wanted
            for other in (link.end if link.start == one.id else link.start,)
            if other in self.things and self.things[other].type in _PEOPLE and one.type not in _PEOPLE
        ]
        named = [self.things[name].title if name in self.things else name for name in named]
        return tuple(dict.fromkeys([*named, *joined]))

    def day(self, value: Any) -> date | None:
        """The day of a date or time, in the calendar's zone."""
        if isinstance(value, date) and not isinstance(value, datetime):
            return value
        try:
            when = datetime.fromisoformat(str(value))
        except ValueError:
            return None
        if len(str(value)) <= len("2026-01-01"):
            return when.date()
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(self.zone).date()

    def due(self, one: Thing) -> date | None:
        """When it is due."""
        return self.day(self.value(one, "due")) if self.value(one, "due") else None

    def is_overdue(self, one: Thing) -> bool:
        """Whether it was due before now and is still to do. A day is over at its end in the calendar's zone."""
        when = self.value(one, "due")
        if when is None or (one.status not in OPEN and (one.type == "task" or one.status != "active")):
            return False
        text = str(when)
        if len(text) > len("2026-01-01"):
            moment = datetime.fromisoformat(text)
            return (moment if moment.tzinfo else moment.replace(tzinfo=self.zone)) < datetime.now(UTC)
        found = self.day(when)
        return found is not None and found < self.today

    def neighbours(self, id: str) -> Iterator[tuple[Link, Thing]]:
        """Relationships of a node with the node at the other end."""
        for link in self._ends.get(id, ()):
            other = link.end if link.start == id else link.start
            if other in self.things:
                yield link, self.things[other]


def number_of(value: Any) -> float | None:
    """The number that a value is or holds."""
    if isinstance(value, dict):
        value = value.get("total")
    if isinstance(value, str):
        plain = re.fullmatch(r"\D{0,4}(-?\d+(?:[ ,]\d{3})*(?:\.\d+)?)\D{0,12}", value.strip())
        return float(re.sub(r"[ ,]", "", plain[1])) if plain else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


async def read_record(desk: TurnTools, words: Vocabulary) -> Record:
    """Read all layers by the agent's lists, and the relationships of what they hold; what cannot be had is left out."""
    record = Record(words=words)
    await _read_clock(desk, record)
    pages = await asyncio.gather(*(_read_layer(desk, layer, record) for layer in Layer))
    record.things = {one.id: one for page in pages for one in page}
    record.join(await _read_links(desk, record))
    return record


async def _read_clock(desk: TurnTools, record: Record) -> None:
    if desk.has(GET_CALENDAR_TOOL):
        try:
            record.zone = ZoneInfo((await desk.ask(GET_CALENDAR_TOOL, Nothing())).time_zone)
        except (ServiceError, ZoneInfoNotFoundError):
            pass  # UTC, as for somebody without a calendar
        record.today = datetime.now(record.zone).date()
    if not desk.has(START_SESSION_TOOL):
        return
    try:
        started = await desk.ask(START_SESSION_TOOL, StartSession())
    except ServiceError:
        return
    for node in (*started.foundation, *started.vision):
        record.things[node.id] = _thing(node)
    if started.workload is not None:
        record.today = started.workload.start_date  # the day in the calendar's zone


async def _read_layer(desk: TurnTools, layer: Layer, record: Record) -> list[Thing]:
    known = [one for one in record.things.values() if one.layer == layer]
    found: list[Thing] = []
    cursor = None
    try:
        for _ in range(_PAGES):
            if layer is Layer.FOUNDATION:
                whole = tuple(TYPES)
                page: Any = await desk.ask(
                    LIST_FOUNDATION_TOOL, ListFoundation(exclude_fields=_HEAVY, description_types=whole, cursor=cursor)
                )
            elif layer is Layer.VISION:
                page = await desk.ask(LIST_VISION_TOOL, ListVision(exclude_fields=_HEAVY, cursor=cursor))
            else:
                page = await desk.ask(LISTS[layer], ListLayer(cursor=cursor))
            found += [_thing(node) for node in page.items]
            cursor = page.next_cursor
            if cursor is None:
                return found
        record.partial = True
    except (ServiceError, NotOffered):
        record.partial = record.partial or bool(found)
    return found or known


async def _read_links(desk: TurnTools, record: Record) -> tuple[Link, ...]:
    ids = list(record.things)
    parts = [ids[at : at + _AROUND] for at in range(0, len(ids), _AROUND)]
    if not parts or not desk.has(SUBGRAPH_TOOL):
        return ()
    record.partial = record.partial or len(parts) > _CALLS
    made = await asyncio.gather(*(_read_around(desk, part) for part in parts[:_CALLS]))
    return tuple(dict.fromkeys(link for some in made for link in some))


async def _read_around(desk: TurnTools, ids: Sequence[str]) -> list[Link]:
    try:
        found = await desk.ask(SUBGRAPH_TOOL, Subgraph(ids=tuple(ids), depth=1, limit=500))
    except ServiceError:
        return []
    return [Link(one.from_id, one.type, one.to_id) for one in found.relationships]


def _thing(node: ConstitutionNode) -> Thing:
    told = {name: value for name, value in node.model_dump(mode="json").items() if name not in _UNSAID}
    told |= {name: value for name, value in (node.properties or {}).items()}
    kept = {name: value for name, value in told.items() if value not in (None, "", [], {}) and name not in ("title", "status")}
    return Thing(node.id, node.type, str(node.layer), node.title, node.status or "active", kept)


def kind_of(name: str) -> Kind | None:
    """What the registry's property of a name holds, in any type that has it."""
    return next((one.kind for kind in TYPES.values() for one in kind.properties if one.name == name), None)


def titles(things: Iterable[Thing]) -> list[str]:
    """Their titles."""
    return [one.title for one in things]
