"""The graph as a turn reads it by its agent's tools, and messages read against it: what their words name."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import cache, cached_property
from importlib.resources import files
from itertools import pairwise
from math import log
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import yaml
from rapidfuzz.distance import OSA

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
from phronesis_embedding.wordnet import WordNet

from ...understanding.language import Language, Sense, Token, detect, fold, parse
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
    forms: Mapping[str, str]
    """Words as the phrases spell them, with their stems."""
    senses: Mapping[str, str]
    """Single words that name a type, a property, a status or a relationship, with their stems."""
    counting: frozenset[str]
    """Stems of numbers, units and times, which name no node by themselves."""


_WIDE = ("type", "property", "status", "relation", "superlative")
_SENSES = 3
"""The commonest senses of two words in which one may stand for the other."""
_COUNTING = frozenset({"number", "multiplier", "unit", "period", "weekday", "month"})


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
        tokens = [token for phrases in language.words.values() for phrase in phrases for token in language.tokens(phrase)]
        counted = [key for key, senses in language.phrases.items() if any(sense.kind in _COUNTING for sense in senses)]
        found[language.name] = Vocabulary(
            language,
            {sense: frozenset(fold(one.strip()) for one in body.split("|")) for sense, body in data["names"].items()},
            {sense: frozenset(one.strip() for one in body.split("|")) for sense, body in data["relation_names"].items()},
            frozenset(one.strip() for one in data["against"].split("|")),
            frozenset(stop | {language.stem(word) for kind in ("except", "negation") for word in language.words.get(kind, ())}),
            {token.folded: token.stem for token in tokens if token.folded.isalpha() and len(token.folded) >= 3},
            {
                phrase: language.stem(phrase)
                for name, phrases in language.words.items()
                for phrase in phrases
                if name.partition(".")[0] in _WIDE and phrase.isalpha() and language.stem(phrase) not in stop
            },
            frozenset(stem for key in counted for stem in key),
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


_LONGEST = 14
"""Tokens of a title or value that stands word for word."""
_LEAST = 0.34
"""The share of a title's weight that words must have to name it, where others have those words too."""
_WHOLE = 0.85
"""The share of a title that is as good as all of it."""
_MOST = 0.5
"""The share that words must have which mean something by themselves."""
_REACH = 4
"""Words between the two ends of a period."""
_GAP = 2
"""Words without a sense between two words of a title."""


@dataclass(frozen=True)
class Span:
    """Tokens with their senses."""

    start: int
    end: int
    senses: tuple[Sense, ...]

    def of(self, kind: str) -> tuple[str, ...]:
        return tuple(str(sense.value) for sense in self.senses if sense.kind == kind)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Property and value of each value on record that the words are."""
        return [sense.value for sense in self.senses if sense.kind == "pair"]


@dataclass(frozen=True)
class Named:
    """A node that words name; `others` have those words as well."""

    thing: Thing
    start: int
    end: int
    whole: bool = False
    others: tuple[Thing, ...] = ()
    share: float = 1.0
    """Of the title's weight, what the words have."""
    typed: bool = False
    """Whether its type stands beside it."""


@dataclass(frozen=True)
class Period:
    """Days, both included; an open end is `None`."""

    first: date | None
    last: date | None
    said: str = ""
    at: int = -1
    """Where the words for it begin."""
    whole: bool = False
    """Whether what lies before today is meant where it has no first day: this week or before."""


@dataclass(frozen=True)
class Bound:
    """A comparison with a figure."""

    sign: str
    """`>`, `<`, `>=`, `<=` or `=`."""
    value: float
    percent: bool = False


@dataclass
class Reading:
    """What a message says."""

    text: str
    record: Record
    tokens: tuple[Token, ...] = ()
    spans: list[Span] = field(default_factory=list)
    named: list[Named] = field(default_factory=list)
    people: list[str] = field(default_factory=list)
    periods: list[Period] = field(default_factory=list)
    bounds: list[Bound] = field(default_factory=list)
    figures: list[float] = field(default_factory=list)
    hours: float | None = None
    unknown: list[str] = field(default_factory=list)
    """Words that nothing explains."""
    faint: tuple[Named, ...] = ()
    """Nodes that one of those words may name."""
    absorbed: set[int] = field(default_factory=set)
    """Tokens of type names that only say what a named node is."""
    spared: list[Named] = field(default_factory=list)
    """Nodes that are left out of what is asked for: all but these."""
    covered: set[int] = field(default_factory=set)
    """Tokens that the plan of the answer accounts for."""
    scope: tuple[Thing, ...] | None = None
    """Nodes among which alone the set is looked for; all where absent."""
    met: set[tuple[int, str]] = field(default_factory=set)
    """Where words that ask begin, with the senses of asking that the plan meets."""
    closed: bool = False
    """Whether the answer is a refusal, or stands for all of the message."""

    def of(self, kind: str) -> tuple[str, ...]:
        """Values of the senses of a kind, in the order of the words."""
        return tuple(dict.fromkeys(value for span in self.spans if span.start not in self.absorbed for value in span.of(kind)))

    def has(self, kind: str, *values: str) -> bool:
        """Whether a sense of a kind is said: one of the values, where any is named."""
        said = self.of(kind)
        return any(value in said for value in values) if values else bool(said)

    def at(self, kind: str, *values: str) -> int:
        """Where such a sense begins; -1 where it is not said."""
        return next((span.start for span in self.spans if any(value in span.of(kind) for value in values or span.of(kind))), -1)

    @property
    def types(self) -> tuple[str, ...]:
        return self.of("type")

    @property
    def values(self) -> list[tuple[str, str]]:
        """Property and value of each value that is said."""
        return [pair for span in self.spans for pair in span.pairs]

    @property
    def things(self) -> list[Thing]:
        return [one.thing for one in self.named]

    def cover_all(self, *kinds: str) -> None:
        """Account for every word that has a sense of these kinds."""
        for kind in kinds:
            self.cover(kind, *self.of(kind))

    def cover(self, kind: str, *values: str) -> None:
        """Account for the words that have one of these senses."""
        for span in self.spans:
            met = [value for value in span.of(kind) if value in values]
            if met:
                self.covered |= set(range(span.start, span.end))
                self.met |= {(span.start, value) for value in met if kind == "ask"}

    def cover_named(self, *things: Thing) -> None:
        """Account for the words that name nodes; for all that do, where none is given."""
        ids = {one.id for one in things}
        for one in self.named:
            if not ids or one.thing.id in ids:
                self.covered |= set(range(one.start, one.end))

    @property
    def is_yes_or_no(self) -> bool:
        """Whether it is to be answered by yes or no."""
        being = self.record.words.language.words.get("verbs_of_being", ())
        return self.opening in being and "?" in self.text and not self.has("ask", "why", "when", "who")

    @property
    def goes_through(self) -> bool:
        """Whether it asks for an order from one end to the other: from the most to the least."""
        ends = [span for span in self.spans if span.start not in self.absorbed and set(span.of("ask")) & {"max", "min"}]
        return any(span.of("low") for span in ends) and any(not span.of("low") for span in ends)

    def cover_words(self, *words: str) -> None:
        """Account for words as they stand."""
        said = {at for at, token in enumerate(self.tokens) if token.folded in words}
        self.covered |= said
        self.met |= {(span.start, value) for span in self.spans if span.start in said for value in span.of("ask")}

    def cover_negation(self) -> None:
        """Account for every word that says no."""
        said = self.record.words.language.words.get("negation", ())
        self.covered |= {at for at, one in enumerate(self.tokens) if one.folded in said or one.folded.endswith("n't")}

    def denied(self, start: int) -> int:
        """Where a word stands that turns what begins at a token into its opposite; -1 where none does."""
        words = self.record.words.language.words
        turning = {*words.get("negation", ()), *words.get("except", ())}
        for at in range(start - 1, max(-1, start - 4), -1):
            token = self.tokens[at]
            if token.folded in turning or token.folded.endswith("n't"):
                return at
            if token.stem not in self.record.words.stop and token.folded not in self.record.words.stop:
                return -1
        return -1

    def left(self) -> list[str]:
        """What the answer does not account for: words and phrases that change what is asked, as they were written."""
        words = self.record.words.language.words
        weighty = {*words.get("weighty", ()), *words.get("negation", ()), *words.get("except", ())}
        told = [one.thing.title for one in self.named if not self.covered.isdisjoint(range(one.start, one.end))]
        titled = {stem for title in told for stem in self.record.words.language.key(title)}
        covered = self.covered | self.absorbed | {at for at, token in enumerate(self.tokens) if token.stem in titled}
        named = [range(one.start, one.end) for one in self.named]
        inside = {at for part in named for at in part}
        missing = {part.start: part for part in named if covered.isdisjoint(part)}
        for span in self.spans:
            part = range(span.start, min(span.end, len(self.tokens)))
            if not part or inside.issuperset(part) or part.start in self.absorbed:
                continue
            figures = _FIGURES.intersection(span.of("ask"))
            unmet = (
                figures
                and part[0] not in covered - self.covered
                and not any((span.start, value) in self.met for value in figures)
            )
            if unmet or (covered.isdisjoint(part) and any(map(_is_demand, span.senses))):
                missing[part.start] = part
        spanned = {at for span in self.spans if span.senses for at in range(span.start, span.end)} | inside
        for at, token in enumerate(self.tokens):
            light = token.folded not in weighty and not token.folded.endswith("n't") and token.text not in self.unknown
            if not light and at not in covered | spanned and token.folded not in _PERCENT:
                missing[at] = range(at, at + 1)
        return [
            self.text[self.tokens[part[0]].start : self.tokens[part[-1]].end]
            for _, part in sorted(missing.items())
            if part[-1] < len(self.tokens)
        ]

    def taken_for_names(self) -> tuple[str, ...]:
        """Words that ask for something by themselves, and are read as what something on record is called: a task “Overdue”; and
        names that several have.

        Whoever may write a title or a value could change by it which things such words select.
        """
        asking = self._asking()
        owners = {fold(owner) for one in self.record for owner in self.record.owners(one)} if self.named else set()
        several = {
            (one.start, one.end)
            for one in self.named
            if one.others or (one.thing.type not in _PEOPLE and fold(one.thing.title) in owners)
        }
        said = [(one.start, one.end) for one in (*self.named, *self.spared, *self.faint)]
        said += [(span.start, span.end) for span in self.spans if span.of("person") or any(map(self._selects, span.pairs))]
        return tuple(
            self.text[self.tokens[start].start : self.tokens[min(end, len(self.tokens)) - 1].end]
            for start, end in dict.fromkeys(said)
            if (start, end) in several or not asking.isdisjoint(range(start, end))
        )

    def _asking(self) -> set[int]:
        """Tokens of the words that ask for something in the language, whatever is on record."""
        phrases, stems = self.record.words.language.phrases, [token.stem for token in self.tokens]
        return {
            at
            for start in range(len(stems))
            for end in range(start + 1, min(len(stems), start + _LONGEST) + 1)
            if any(map(_is_demand, phrases.get(tuple(stems[start:end]), ())))
            for at in range(start, end)
        }

    def _selects(self, pair: tuple[str, str]) -> bool:
        """Whether a value that anybody may write is one of the things that are asked for."""
        name, value = pair
        types = self.types
        return name != "status" and any(one.fields.get(name) == value for one in self.record if not types or one.type in types)

    @cached_property
    def opening(self) -> str:
        return self.tokens[0].folded if self.tokens else ""


_PERCENT = ("%", "percent")
_BARE = frozenset(
    {
        *("stop", "weighty", "negation", "except", "multiplier", "range_to", "articles", "definite", "verb_months", "asking"),
        *("his", "showing", "own_state"),
    }
)
"""Kinds of words that are no senses of their own."""
_ASIDE = frozenset({"list", "describe", "exists", "name_of"})
"""Senses of asking that any answer meets."""
_FIGURES = frozenset({"count", "sum", "mean", "max", "min"})
"""Senses of asking that have to be met themselves, whatever else their words say."""
_DEMANDS = frozenset(
    {
        *("type", "layer", "status", "property", "relation", "link", "person", "pair", "superlative", "loss", "gain", "share"),
        *("remainder", "level", "period", "weekday", "month", "than", "talk_of_tools", "by_layer", "count_up", "precedent"),
        *("allowed", "figure", "each_person", "even_odds"),
    }
)
"""Kinds of senses that an answer has to account for."""


def _is_demand(sense: Sense) -> bool:
    if (sense.kind, sense.value) == ("relation", "part"):
        return False  # in, of, for: what they join is accounted for by itself
    return sense.kind in _DEMANDS or (sense.kind == "ask" and sense.value not in _ASIDE)


class Reader:
    """Reads messages against a record."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._language = record.words.language
        self._stop = record.words.stop
        self._titles: dict[tuple[str, ...], list[Thing]] = {}
        self._by_stem: dict[str, set[str]] = {}
        for one in record:
            key = self._key(one.title)
            self._titles.setdefault(key, []).append(one)
            self._titles.setdefault(tuple(self._language.key(one.id)), []).append(one)
            for stem in {stem for stem in set(key) - self._stop if not stem.isdigit()}:
                self._by_stem.setdefault(stem, set()).add(one.id)
        self._stems = {
            one.id: [stem for stem in dict.fromkeys(self._key(one.title)) if stem not in self._stop] for one in record
        }
        self._people = self._known_people()
        self._values = self._known_values()
        self._own_words = {stem for key in self._language.phrases for stem in key} | set(self._by_stem) | self._stop
        self._own_words |= {stem for key in (*self._people, *self._values) for stem in key}
        self._extra = self._tenant_phrases()
        self._own_words |= {stem for key in self._extra for stem in key}
        self._titled: dict[str, str] = {}
        self._forms = self._known_forms()

    def _known_forms(self) -> dict[str, str]:
        """Words that are known as they are written, with their stems."""
        tokens = [token for one in self._record for token in self._language.tokens(one.title)]
        titled = {token.folded: token.stem for token in tokens if token.folded.isalpha() and len(token.folded) >= 3}
        self._titled = {form: stem for form, stem in titled.items() if stem not in self._stop}
        return {**self._record.words.forms, **titled}

    def _key(self, text: str) -> tuple[str, ...]:
        key = self._language.key(text)
        return key[1:] if len(key) > 1 and key[0] in ("the", "a", "an", "der", "die", "das") else key

    def _known_people(self) -> dict[tuple[str, ...], str]:
        names = {owner for one in self._record for owner in self._record.owners(one)}
        names |= {one.title for one in self._record if one.type in ("human", "ai")}
        found: dict[tuple[str, ...], str] = {}
        parts: dict[tuple[str, ...], set[str]] = {}
        for name in sorted(names):
            key = self._language.key(name)
            found[key] = name
            for stem in key if len(key) <= 4 else ():
                if stem not in self._stop:
                    parts.setdefault((stem,), set()).add(name)
        return {key: next(iter(some)) for key, some in parts.items() if len(some) == 1} | found

    def _known_values(self) -> dict[tuple[str, ...], list[tuple[str, str]]]:
        found: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        texts = {"summary", "description", "statement", "trigger", "response", "content", "narrative", "reasoning", "rationale"}
        owner = self._record.names_of("owner")
        for one in self._record:
            for name, value in one.fields.items():
                for part in value if isinstance(value, list | tuple) else [value]:
                    if isinstance(part, str) and name not in texts | owner and len(part) <= 40 and not re.match(r"[\d-]", part):
                        pairs = found.setdefault(self._language.key(part), [])
                        if (name, part) not in pairs:
                            pairs.append((name, part))
        return {key: pairs for key, pairs in found.items() if key}

    def _tenant_phrases(self) -> dict[tuple[str, ...], tuple[Sense, ...]]:
        """Names of types, properties and relationships as they are, for what no content file says."""
        found: dict[tuple[str, ...], tuple[Sense, ...]] = {}
        for name in TYPES:
            found[self._language.key(spaced(name))] = (Sense("type", name),)
        senses = {own: sense for sense, names in self._record.words.names.items() for own in names}
        for name in sorted({name for one in self._record for name in one.fields}):
            if len(spaced(name)) > 2:
                key = self._language.key(spaced(name))
                found[key] = (*found.get(key, ()), Sense("property", senses.get(spaced(name), name)))
        known = {name for names in self._record.words.relations.values() for name in names}
        for type in sorted({link.type for link in self._record.links} - known):
            key = self._language.key(spaced(type))
            found.setdefault(key, (Sense("link", type),))
            found.setdefault(tuple(stem for stem in key if stem not in self._stop) or key, (Sense("link", type),))
        return found

    def read(self, text: str, words: WordNet | None = None) -> Reading:
        """What the words of a message name.

        Args:
            text: the message.
            words: where words are looked up that nothing explains; those that mean the same are read in their place.
        """
        tokens = tuple(self._mended(token) for token in self._language.tokens(text))
        reading = self._read(text, tokens)
        if words is None or not reading.unknown:
            return reading
        alike = {token: self._alike(token, words) for token in tokens if token.text in reading.unknown}
        if not any(alike.values()):
            return reading
        widened = self._read(text, tuple(alike.get(token) or token for token in tokens))
        return widened if len(widened.unknown) < len(reading.unknown) else reading

    def _alike(self, token: Token, words: WordNet) -> Token | None:
        """The one word of the record or of the phrases that means the same; `None` where there is none, or are several."""
        if len(token.folded) < 3 or not token.folded.isalpha():
            return None
        forms = words.forms(token.folded)
        for known in (self._titled, self._record.words.senses):
            same = {stem: form for form, stem in known.items() if forms & words.forms(form) - {"a", "i"}}
            found = same or {stem: form for form, stem in known.items() if words.are_synonyms(token.folded, form, _SENSES)}
            if len(found) == 1:
                stem, form = next(iter(found.items()))
                return replace(token, stem=stem, folded=form)
        return None

    def _read(self, text: str, tokens: tuple[Token, ...]) -> Reading:
        reading = Reading(text, self._record, tokens)
        taken = self._read_word_for_word(reading)
        self._read_parts(reading, taken)
        self._read_before(reading)
        self._read_comparatives(reading)
        self._read_days(reading, taken)
        self._read_figures(reading, taken)
        self._spare(reading)
        self._absorb(reading)
        self._settle(reading)
        self._read_returns(reading)
        said = [token for at, token in enumerate(reading.tokens) if at not in taken and self._is_content(token)]
        said += [token for span in reading.spans if _only(span, "unable") for token in reading.tokens[span.start : span.end]]
        strong = [one for one in reading.named if not self._is_weak(one, reading)]
        reading.named = strong or reading.named
        if said:
            weak = [one for one in reading.named if self._is_weak(one, reading)]
            reading.named = [one for one in reading.named if one not in weak]
            reading.faint = tuple(weak)
            said += [token for one in weak for token in reading.tokens[one.start : one.end]]
        reading.unknown = [token.text for token in said]
        return reading

    def _spare(self, reading: Reading) -> None:
        """Set nodes aside that a list of their type is to leave out."""
        apart = set(self._language.words.get("except", ()))
        for one in list(reading.named):
            at = reading.denied(one.start)
            if at >= 0 and reading.tokens[at].folded in apart and one.thing.type in reading.types:
                reading.named.remove(one)
                reading.spared.append(one)
                reading.covered |= {at}

    def _read_before(self, reading: Reading) -> None:
        """What comes before a node can be done is what blocks it: before somebody can deliver the plants."""
        able = set(self._language.words.get("ability", ()))
        for index, span in enumerate(reading.spans):
            if "earlier" not in span.of("edge"):
                continue
            ahead = range(span.end, min(len(reading.tokens), span.end + _REACH))
            at = next((at for at in ahead if reading.tokens[at].folded in able), -1)
            if at < 0:
                continue
            reading.spans[index] = Span(span.start, span.end, (Sense("relation", "block"),))
            between = [one for one in reading.spans if span.end <= one.start < at and one.of("person")]
            reading.people = [name for name in reading.people if not any(name in one.of("person") for one in between)]
            reading.spans = [one for one in reading.spans if one not in between]
            return

    def _read_comparatives(self, reading: Reading) -> None:
        """A comparative before “than” compares with what follows: it asks for no greatest."""
        than = set(self._language.words.get("then_than", ()))
        for index, span in enumerate(reading.spans):
            if span.end < len(reading.tokens) and reading.tokens[span.end].folded in than and span.of("superlative"):
                kept = tuple(sense for sense in span.senses if sense.kind not in ("ask", "low"))
                reading.spans[index] = replace(span, senses=(*kept, Sense("property", span.of("superlative")[0])))

    def _read_returns(self, reading: Reading) -> None:
        """What costs more than it brings in is a loss, and what costs less a gain; more likely than not is beyond a half."""
        than = next((span for span in reading.spans if span.of("than")), None)
        earned = next((span for span in reading.spans if span.of("earn")), None)
        cost = next((span for span in reading.spans if "budget" in span.of("property")), None)
        if than is not None and earned is not None and cost is not None and cost.start < than.start < earned.start:
            sense = Sense("loss" if than.of("than")[0] == "more" else "gain", "")
            inside = range(cost.start, earned.end)
            reading.spans = [span for span in reading.spans if span.start not in inside]
            reading.spans.append(Span(cost.start, earned.end, (sense,)))
        for span in reading.spans:
            if span.of("even_odds"):
                reading.bounds.append(Bound("<" if _is_fewer(reading, span.start) else ">", 0.5))

    def _is_weak(self, one: Named, reading: Reading) -> bool:
        """Whether one common word is all that speaks for a node, beside words that nothing explains."""
        return one.end - one.start == 1 and one.share < _MOST and not one.typed

    def _settled(self, span: Span, reading: Reading) -> Span:
        dropped = set[str]()
        before = reading.tokens[span.start - 1] if span.start else None
        behind = [one for one in reading.spans if one.end == span.start]
        if span.of("type") and span.of("property") and not reading.named and set(span.of("type")) & set(span.of("property")):
            dropped.add("property")
        last = reading.tokens[span.end - 1].folded
        if span.of("type") and span.of("property") and last != spaced(span.of("type")[0]) and not span.of("ask"):
            dropped.add("property")  # of many of a type, not of what they are worth
        if span.of("ask") == ("group",) and span.end - span.start == 1 and before is not None:
            passive = set(self._language.words.get("passive", ()))
            acted = any(one.of("relation") or one.of("link") or one.of("status") or _is_done(one) for one in behind)
            if reading.tokens[span.start].folded in passive and (acted or before.folded.endswith("ed")):
                dropped.add("ask")
        return replace(span, senses=tuple(sense for sense in span.senses if sense.kind not in dropped))

    def _settle(self, reading: Reading) -> None:
        """A word that names a type or does what a relationship says is a verb, unless a question or list stands before it."""
        reading.spans = [self._settled(span, reading) for span in reading.spans]
        for at, span in enumerate(reading.spans):
            if not (span.of("type") and span.of("relation")) or not reading.named:
                continue
            before = reading.tokens[span.start - 1] if span.start else None
            phrases = self._language.phrases.get((before.stem,), ()) if before else ()
            leads = (
                before is None
                or any(sense.kind == "ask" for sense in phrases)
                or any(one.end == span.start - 1 for one in reading.spans if one.of("ask"))
            )
            if not leads:
                kept = tuple(sense for sense in span.senses if sense.kind != "type")
                reading.spans[at] = replace(span, senses=kept)

    def _is_content(self, token: Token) -> bool:
        if token.folded.endswith("n't"):
            return False  # what it denies is accounted for by itself
        return token.stem not in self._stop and token.folded not in self._stop and token.folded[0].isalnum()

    def _mended(self, token: Token) -> Token:
        """A token as it was meant: a word that no dictionary has is the known one that is nearest to it."""
        word = token.folded
        if token.stem in self._own_words or len(word) < 3 or not word.isalpha() or self._language.is_word(token.text):
            return token
        letters = sorted(word)
        most = 0 if len(word) < 4 else 1 if len(word) < 8 else 2
        near = []
        for form, stem in self._forms.items():
            if abs(len(form) - len(word)) > max(1, most):
                continue
            swapped = sorted(form) == letters
            if not swapped and (form[0] != word[0] or not most):
                continue
            away = min(OSA.distance(one, form, score_cutoff=max(1, most)) for one in (word, token.stem))
            if away <= max(1, most):
                near.append((away, not swapped, stem not in self._stop, form, stem))
        _, _, _, form, stem = min(near, default=(0, False, False, word, token.stem))
        return replace(token, folded=form, stem=stem)

    def _read_word_for_word(self, reading: Reading) -> set[int]:
        stems = [token.stem for token in reading.tokens]
        taken: set[int] = set()
        at = 0
        while at < len(stems):
            for end in range(min(len(stems), at + _LONGEST), at, -1):
                key = tuple(stems[at:end])
                things = self._titles.get(key, ())
                senses = (*self._language.phrases.get(key, ()), *self._extra.get(key, ()))
                if things and (end - at > 1 or (not senses and key not in self._people)) and self._is_named(key):
                    best = self._fitting(things, reading)
                    reading.named.append(Named(best, at, end, True, tuple(one for one in things if one is not best)))
                elif key in self._people and (end - at > 1 or not senses):
                    reading.people.append(self._people[key])
                    reading.spans.append(Span(at, end, (Sense("person", self._people[key]),)))
                elif end - at > 1 and senses and self._points_at_many(senses, reading.tokens[end - 1]):
                    continue
                elif key in self._values or senses:
                    pairs = self._values.get(key, ())
                    told = self._exact(tuple(sense for sense in senses if sense.kind not in _BARE), reading.tokens[at:end])
                    reading.spans.append(Span(at, end, told + tuple(Sense("pair", pair) for pair in pairs)))
                    if not told and not pairs:
                        at = end
                        break
                else:
                    continue
                taken |= set(range(at, end))
                at = end
                break
            else:
                at += 1
        return taken

    def _points_at_many(self, senses: Sequence[Sense], last: Token) -> bool:
        """Whether words that point at one node, as “the project” does, are those of a type: the projects."""
        plural = tuple(self._language.words.get("plural", ()))
        many = last.folded != last.stem and bool(plural) and last.folded.endswith(plural)
        return many and any(sense.kind == "point" and sense.value == "one" for sense in senses)

    def _exact(self, senses: tuple[Sense, ...], tokens: Sequence[Token]) -> tuple[Sense, ...]:
        """Of senses of one kind those whose phrases have the word as it stands, where any has: a stem is of several words."""
        kinds = [sense.kind for sense in senses]
        if len(tokens) != 1 or len(kinds) == len(set(kinds)):
            return senses
        word, listed = tokens[0].folded, self._language.words
        exact = {sense for sense in senses if word in listed.get(f"{sense.kind}.{sense.value}", ())}
        doubled = {kind for kind in kinds if kinds.count(kind) > 1 and any(sense.kind == kind for sense in exact)}
        return tuple(sense for sense in senses if sense.kind not in doubled or sense in exact)

    def _is_named(self, key: Sequence[str]) -> bool:
        return any(stem not in self._stop for stem in key)

    def _fitting(self, things: Sequence[Thing], reading: Reading) -> Thing:
        types = {
            str(sense.value)
            for token in reading.tokens
            for sense in self._language.phrases.get((token.stem,), ())
            if sense.kind == "type"
        }
        return next((one for one in things if one.type in types), things[0])

    def _read_parts(self, reading: Reading, taken: set[int]) -> None:
        while (found := self._best_part(reading, taken)) is not None:
            reading.named.append(found)
            inside = set(range(found.start, found.end))
            taken |= inside
            reading.spans = [span for span in reading.spans if not (span.start in inside and span.end <= found.end)]

    def _best_part(self, reading: Reading, taken: set[int]) -> Named | None:
        named = {at for one in reading.named for at in range(one.start, one.end)}
        rated: list[tuple[float, int, int, Thing, float, bool]] = []
        held = {at: self._by_stem.get(token.stem, set()) for at, token in enumerate(reading.tokens) if at not in named}
        for id in set().union(*held.values()):
            one = self._record.things[id]
            for start, end, own in self._clusters([at for at, some in held.items() if id in some], reading):
                stems = {reading.tokens[at].stem for at in own}
                if stems <= self._record.words.counting:
                    continue
                weight = sum(map(self._weight, stems))
                share = weight / (sum(map(self._weight, self._stems[id])) or 1.0)
                typed = self._is_beside(one.type, start, end, reading)
                alike = set.intersection(*(self._by_stem[stem] for stem in stems))
                said = one.type in reading.of("type")
                unique = len([id for id in alike if not (typed or said) or self._record.things[id].type == one.type]) == 1
                if all(at in taken for at in own):
                    # Words with a sense of their own name a node only where most of its title or its type stands there.
                    single = typed and unique and self._is_beside(one.type, start, end, reading, single=True)
                    if not single and (len(stems) < 2 or share < _MOST):
                        continue
                if share < _LEAST and not unique and not typed:
                    continue
                rated.append((weight * (1 + share) * (1.6 if typed else 1.15 if said else 1.0), start, end, one, share, typed))
        if not rated:
            return None
        best = max(rated, key=lambda row: (row[0], -row[2] + row[1], row[3].id))
        equal = tuple(row[3] for row in rated if row[3] is not best[3] and row[0] >= 0.97 * best[0] and row[1] == best[1])
        kinds = {one.thing.type for one in reading.named}
        likely = next((row for row in rated if row[3] in equal and row[3].type in kinds and best[3].type not in kinds), None)
        if likely is not None:
            equal, best = (), likely
        return Named(best[3], best[1], best[2], best[4] > _WHOLE, equal, best[4], best[5])

    def _clusters(self, own: Sequence[int], reading: Reading) -> Iterator[tuple[int, int, list[int]]]:
        """Words of a title that stand together."""
        run: list[int] = []
        for at in own:
            between = reading.tokens[run[-1] + 1 : at] if run else ()
            if run and (len(between) > _GAP or any(self._is_content(token) for token in between)):
                yield run[0], run[-1] + 1, run
                run = []
            run.append(at)
        if run:
            yield run[0], run[-1] + 1, run

    def _weight(self, stem: str) -> float:
        return log(1 + len(self._record.things) / max(1, len(self._by_stem.get(stem, ()))))

    def _is_beside(self, type: str, start: int, end: int, reading: Reading, *, single: bool = False) -> bool:
        plural = tuple(self._language.words.get("plural", ()))
        return any(
            type in span.of("type")
            and (span.end <= start or span.start >= end)
            and self._touches(span, start, end, reading)
            and not (single and reading.tokens[span.end - 1].folded.endswith(plural or ("\0",)))
            for span in reading.spans
        )

    def _touches(self, span: Span, start: int, end: int, reading: Reading) -> bool:
        between = reading.tokens[end : span.start] if span.start >= end else reading.tokens[span.end : start]
        return len(between) <= (0 if span.start >= end else _GAP) and not any(self._is_content(token) for token in between)

    def _absorb(self, reading: Reading) -> None:
        for one in reading.named:
            for span in reading.spans:
                if one.thing.type in span.of("type") and self._touches(span, one.start, one.end, reading):
                    reading.absorbed |= set(range(span.start, span.end))

    def _read_days(self, reading: Reading, taken: set[int]) -> None:
        today = self._record.today
        spans = list(reading.spans)
        for index, span in enumerate(spans):
            edge = self._edge_before(spans, index)
            for said in span.of("period"):
                first, last = _named_period(said, today)
                reading.periods.append(_edged(edge, Period(first, last, said, span.start)))
            for said in span.of("weekday"):
                ahead = (int(said) - today.weekday()) % 7
                day = today + timedelta(days=ahead)
                reading.periods.append(_edged(edge, Period(day, day, said, span.start)))
            for said in () if span.of("month") and self._is_verb_month(reading, span) else span.of("month"):
                self._read_month(reading, int(said), span, edge, taken)
        for match in re.finditer(r"\b(\d{4})-(\d{2})-(\d{2})\b", reading.text):
            try:
                day = date.fromisoformat(match[0])
            except ValueError:
                continue
            inside = [at for at, token in enumerate(reading.tokens) if match.start() <= token.start < match.end()]
            taken |= set(inside)
            before = [number for number, span in enumerate(spans) if inside and span.end <= inside[0]]
            edge = self._edge_before(spans, before[-1] + 1) if before else ""
            reading.periods.append(_edged(edge, Period(day, day, match[0], inside[0] if inside else -1)))
        self._join_days(reading)
        for span in spans:
            behind = range(span.end, min(span.end + 2, len(reading.tokens)))
            said = " ".join(reading.tokens[at].folded for at in behind)
            sooner, later = (said in self._language.words.get(kind, ()) for kind in ("or_before", "or_after"))
            for n, one in enumerate(reading.periods):
                if one.at == span.start and (sooner or later):
                    open_end = replace(one, first=None, whole=True) if sooner else replace(one, last=None)
                    reading.periods[n] = open_end
                    reading.absorbed |= set(behind)

    def _is_verb_month(self, reading: Reading, span: Span) -> bool:
        """Whether a word that may be a month is a verb here: no day, year or edge stands beside it."""
        token = reading.tokens[span.start]
        if token.folded not in self._language.words.get("verb_months", ()):
            return False
        beside = [*reading.tokens[max(0, span.start - 1) : span.start], *reading.tokens[span.end : span.end + 1]]
        prepositions = {"of", *self._language.words.get("edge.within", ()), *self._language.words.get("edge.before", ())}
        if any(one.folded[0].isdigit() or one.folded in prepositions for one in beside):
            return False
        reading.absorbed |= {span.start}
        return True

    def _join_days(self, reading: Reading) -> None:
        """From one day to another is one period; the days of a week that is named are no more than the week."""
        reaching = set(self._language.words.get("range_to", ()))
        periods = sorted(reading.periods, key=lambda one: one.at)
        for first, second in pairwise(periods):
            between = [token.folded for token in reading.tokens[first.at + 1 : second.at]]
            if first.at < 0 or not reaching.intersection(between) or len(between) > _REACH:
                continue
            rest = [one for one in periods if one is not first and one is not second]
            start, end = first.first or first.last, second.last or second.first
            if start is None or end is None:
                continue
            if end < start:
                end += timedelta(days=7)
            weekly = {first.said, second.said} <= {str(day) for day in range(7)} and rest
            reading.periods = rest if weekly else [*rest, Period(start, end, first.said, first.at)]
            for one in (first, second):
                reading.absorbed |= {one.at}
            return

    def _edge_before(self, spans: Sequence[Span], index: int) -> str:
        before = spans[index - 1] if index else None
        return before.of("edge")[0] if before is not None and before.of("edge") else ""

    def _read_month(self, reading: Reading, month: int, span: Span, edge: str, taken: set[int]) -> None:
        today = self._record.today
        around = {at: reading.tokens[at] for at in range(max(0, span.start - 2), min(len(reading.tokens), span.end + 3))}
        day = next(
            (int(re.sub(r"\D", "", t.folded)) for at, t in around.items() if re.fullmatch(r"\d{1,2}(st|nd|rd|th)?", t.folded)),
            None,
        )
        year = next((int(t.folded) for t in around.values() if re.fullmatch(r"(19|20)\d\d", t.folded)), None)
        taken |= {at for at, t in around.items() if re.fullmatch(r"\d{1,2}(st|nd|rd|th)?|(19|20)\d\d", t.folded)}
        chosen = year or min((today.year + by for by in (-1, 0, 1)), key=lambda y: abs((date(y, month, 15) - today).days))
        try:
            first = date(chosen, month, day or 1)
        except ValueError:
            return
        last = first if day else (first.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)
        reading.periods.append(_edged(edge, Period(first, last, span.of("month")[0], span.start)))

    def _read_figures(self, reading: Reading, taken: set[int]) -> None:
        named = {at for one in reading.named for at in range(one.start, one.end)}
        spans = list(reading.spans)
        at = 0
        while at < len(reading.tokens):
            end, value = _figure(at, reading)
            start, at = at, max(end, at + 1)
            whole = all(reading.tokens[one].folded.isdigit() for one in range(start, end))
            if value is None or start in named or (start in taken and whole):
                continue
            token = reading.tokens[start]
            if re.fullmatch(r"(19|20)\d\d", token.folded) and not reading.periods and not _has_unit(reading, start):
                taken.add(start)
                year = int(token.folded)
                edge = next((span.of("edge")[0] for span in spans if span.end == start and span.of("edge")), "")
                edge = "" if edge == "within" else edge
                reading.periods.append(_edged(edge, Period(date(year, 1, 1), date(year, 12, 31), token.text, start)))
                continue
            percent = any(t.folded in _PERCENT for t in reading.tokens[end : end + 2])
            shares = range(end, end + 2) if percent else range(end, end)
            taken |= {*range(start, end), *(one for one in shares if reading.tokens[one : one + 1])}
            if percent:
                reading.spans = [span for span in reading.spans if reading.tokens[span.start].folded not in _PERCENT]
            reading.spans.append(Span(start, end, (Sense("figure", str(value)),)))
            self._read_figure(reading, spans, start, end - 1, value, percent)

    def _counted_from(self, reading: Reading, spans: Sequence[Span], last: int) -> date | None:
        """The day from which a length of time is counted that stands before it: two weeks from today, later, after Monday."""
        behind = [token.folded for token in reading.tokens[last + 2 : last + 4]]
        if any(" ".join(behind[:n]) in self._language.words.get("from_now", ()) for n in (1, 2)):
            reading.absorbed |= set(range(last + 2, min(last + 4, len(reading.tokens))))
            return self._record.today
        leads = any(span.start == last + 2 and "after" in span.of("edge") for span in spans)
        base = next((one for one in reading.periods if one.at in (last + 3, last + 4)), None) if leads else None
        if base is None or base.first is None:
            return None
        reading.periods.remove(base)
        return base.first

    def _read_figure(self, reading: Reading, spans: Sequence[Span], start: int, last: int, value: float, percent: bool) -> None:
        units = [unit for span in spans if last < span.start <= last + 2 for unit in span.of("unit")]
        before = [span for span in spans if span.end in (start, start - 1)]
        if units and units[0] in _UNIT_DAYS and (edge := next((e for s in before for e in s.of("edge")), "")):
            span = timedelta(days=value * _UNIT_DAYS[units[0]])
            today = self._record.today
            past = any(e == "past" for s in before for e in s.of("edge")) and edge != "within"
            reading.periods.append(Period(today - span, today, "", start) if past else Period(today, today + span, "", start))
            return
        if units and units[0] in _UNIT_DAYS and (base := self._counted_from(reading, spans, last)) is not None:
            day = base + timedelta(days=value * _UNIT_DAYS[units[0]])
            reading.periods.append(Period(day, day, "", start))
            return
        if units and units[0] == "hour":
            reading.hours = value
        around = [*before, *(s for s in spans if last < s.start <= last + 2)]
        sign = next((one for span in around for one in span.of("than")), "") or _sign_before(reading, start)
        if sign:
            reading.bounds.append(
                Bound({"more": ">", "less": "<", "least": ">=", "most": "<=", "exactly": "="}[sign], value, percent)
            )
        else:
            reading.figures.append(value)


_UNIT_DAYS = {"day": 1.0, "week": 7.0, "month": 30.5, "year": 365.0}
"""Days of a unit of time."""
_NEVER_DONE = frozenset({"effort", "budget", "priority"})
"""Properties whose words are no verbs: “by” behind them says what they are told by, and not who did it."""


def _is_done(span: Span) -> bool:
    return bool(span.of("property")) and not _NEVER_DONE.intersection(span.of("property"))


def _only(span: Span, kind: str) -> bool:
    return bool(span.senses) and all(sense.kind == kind for sense in span.senses)


def _sign_before(reading: Reading, at: int) -> str:
    """The sense of “than” and what stands before it: more likely than, less sure than."""
    phrases = reading.record.words.language.words
    before = [token.folded for token in reading.tokens[max(0, at - 5) : at]]
    if not any(word in phrases.get("then_than", ()) for word in before):
        return ""
    return "less" if any(word in phrases.get("fewer", ()) for word in before) else "more"


def _is_fewer(reading: Reading, at: int) -> bool:
    fewer = reading.record.words.language.words.get("fewer", ())
    return any(token.folded in fewer for token in reading.tokens[max(0, at - 3) : at])


def _has_unit(reading: Reading, at: int) -> bool:
    return any(span.of("unit") for span in reading.spans if at < span.start <= at + 1)


def _figure(at: int, reading: Reading) -> tuple[int, float | None]:
    """Where a number that begins at a token ends, and the number: 3,000, three, twenty-five, three thousand."""
    senses = reading.record.words.language.phrases
    total: float | None = None
    for place in range(at, len(reading.tokens)):
        token = reading.tokens[place]
        plain = re.sub(r"(?<=\d),(?=\d{3}\b)", "", token.folded)
        said = senses.get((token.stem,), ())
        number = next((float(sense.value) for sense in said if sense.kind == "number"), None)
        scale = next((float(sense.value) for sense in said if sense.kind == "multiplier"), None)
        if scale is not None:
            total = (total or 1) * scale
        elif total is None and re.fullmatch(r"\d+(\.\d+)?", plain):
            total = float(plain)
        elif number is not None and (total is None or (total % 10 == 0 and 20 <= total < 100 and 0 < number < 10)):
            if total is None and token.folded in reading.record.words.language.words.get("articles", ()):
                return at, None
            total = (total or 0) + number
        else:
            return place, total
    return len(reading.tokens), total


def _named_period(said: str, today: date) -> tuple[date, date]:
    monday = today - timedelta(days=today.weekday())
    month = today.replace(day=1)
    after = (month + timedelta(days=32)).replace(day=1)
    before = (month - timedelta(days=1)).replace(day=1)
    day = timedelta(days=1)
    quarter = date(today.year, 3 * ((today.month - 1) // 3) + 1, 1)
    third = (quarter + timedelta(days=95)).replace(day=1)
    return {
        "today": (today, today),
        "tomorrow": (today + day, today + day),
        "yesterday": (today - day, today - day),
        "week": (monday, monday + 6 * day),
        "next_week": (monday + 7 * day, monday + 13 * day),
        "last_week": (monday - 7 * day, monday - day),
        "month": (month, after - day),
        "next_month": (after, (after + timedelta(days=32)).replace(day=1) - day),
        "last_month": (before, month - day),
        "quarter": (quarter, third - day),
        "year": (date(today.year, 1, 1), date(today.year, 12, 31)),
        "next_year": (date(today.year + 1, 1, 1), date(today.year + 1, 12, 31)),
        "last_year": (date(today.year - 1, 1, 1), date(today.year - 1, 12, 31)),
        "weekend": (monday + 5 * day, monday + 6 * day),
        "lately": (today - timedelta(days=90), today),
    }[said]


def _edged(edge: str, period: Period) -> Period:
    if edge == "earlier" and period.first is not None:
        return replace(period, first=None, last=period.first - timedelta(days=1))
    if edge == "before":
        return replace(period, first=None)
    if edge == "after":
        return replace(period, last=None)
    return period
