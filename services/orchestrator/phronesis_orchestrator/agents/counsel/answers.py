"""What is answered: plans over what a turn read, and what single tools say, with nodes cited."""

from __future__ import annotations

import operator
import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

from phronesis_contracts import NotFound, Nothing
from phronesis_contracts.constitution.insight import (
    ANALOGIES_TOOL,
    CONTRADICTIONS_TOOL,
    DRIFT_TOOL,
    DUPLICATES_TOOL,
    EVOLUTION_TOOL,
    PATTERNS_TOOL,
    TOPICS_TOOL,
    WHY_TOOL,
    WITHOUT_TOOL,
    AskEvolution,
    AskWhy,
    Contradiction,
    DetectPatterns,
    Drifted,
    FindAnalogies,
    FindContradictions,
    FindDuplicates,
    ListTopics,
    Loss,
    ReportDrift,
    WithoutNode,
)
from phronesis_contracts.constitution.lists import INVENTORY_TOOL
from phronesis_contracts.constitution.paths import (
    BETWEENNESS_TOOL,
    BRIDGE_TOOL,
    CLIMB_LADDER_TOOL,
    COMMUNITIES_TOOL,
    DISCUSS_COMMUNITIES_TOOL,
    DISCUSS_PAGERANK_TOOL,
    DUE_WORK_TOOL,
    PAGERANK_TOOL,
    SHORTEST_PATH_TOOL,
    BridgeConcepts,
    ClimbLadder,
    DueFound,
    DueWork,
    FindBridges,
    FindCommunities,
    FindShortestPath,
    LadderClimbed,
    RankNodes,
    Step,
)
from phronesis_contracts.constitution.registry import CONSTITUTIONAL, TYPES, Layer
from phronesis_contracts.constitution.search import (
    GOAL_SEARCH_TOOL,
    PRECEDENT_SEARCH_TOOL,
    GoalSearch,
    HybridHit,
    PrecedentSearch,
    Supported,
)
from phronesis_contracts.constitution.session import (
    ASSESS_WORKLOAD_TOOL,
    CONTEXT_USAGE_TOOL,
    GET_CALENDAR_TOOL,
    AskUsage,
    AssessWorkload,
    Capacity,
    TaskShown,
    WorkloadAssessed,
)

from .reading import OPEN, Bound, Link, Named, Reading, Record, Thing, number_of, spaced
from .tools import CITED, LEADS, SeenNode, Titled, TurnTools, chain, cite, hours, joined, listed, paragraphs

_ROWS = 60
"""Rows of a list."""
_SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
    "=": operator.eq,
}
_TURNING = ("block", "part", "lead", "link", "threaten")
"""Relationships whose verbs come in both directions: blocks and waits for, is part of and contains."""
_HOPS = 5
_UP = ("SERVES", "ALIGNS_WITH", "PART_OF", "SUPPORTED_BY", "MEASURES", "CONTRIBUTES_TO")
_LAYERS = {layer.value: place for place, layer in enumerate(Layer)}
_FULL = ("statement", "rationale", "trigger", "response", "severity", "description", "narrative", "reasoning", "content")
_SENSES = ("owner", "due", "effort", "budget", "spent")
_NUMBERS = ("effort", "budget", "spent", "priority", "roi", "confidence", "likelihood", "value")
_DATES = ("due", "decided", "observed")
_SHOWN = {
    "task": ("status", "due"),
    "decision": ("decided", "roi"),
    "goal": ("due",),
    "milestone": ("due",),
    "action": ("due",),
    "insight": ("confidence",),
    "pattern": ("confidence",),
    "risk": ("likelihood",),
    "observation": ("value", "observed"),
}
"""What a list tells of nodes of a type beside what was asked."""
_OF_ONE = ("budget", "priority", "likelihood", "confidence", "roi", "date")
"""What the greatest is one node by, and not a person by all that is theirs."""
_USUAL = {"risk": "likelihood", "project": "budget", "insight": "confidence", "pattern": "confidence", "value": "priority"}
"""What the greatest of a type is by, where nothing is said."""
_PLURALS = {
    "ai": "AIs",
    "strategy": "strategies",
    "policy": "policies",
    "business": "businesses",
    "process": "processes",
    "human": "people",
    "evidence": "pieces of evidence",
}


def noun(type: str, n: int = 2) -> str:
    """A type in the words of a sentence."""
    return spaced(type) if n == 1 else _PLURALS.get(type, f"{spaced(type)}s")


def figure(value: float) -> str:
    """A number as people write it."""
    return f"{value:,.2f}".rstrip("0").rstrip(".")


@dataclass
class Query:
    """A set: which nodes, and under which conditions."""

    types: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    scope: tuple[Thing, ...] | None = None
    conditions: list[tuple[str, Callable[[Thing], bool]]] = field(default_factory=list)
    """Each with the words that say it."""
    put_away: bool = False
    """Whether nodes that are archived or deprecated count."""
    shown: tuple[str, ...] = ()
    """Types whose nodes are told of each member that they are joined to."""

    def run(self, record: Record) -> list[Thing]:
        found = list(self.scope) if self.scope is not None else list(record)
        if self.types and not (self.scope is not None and not any(one.type in self.types for one in found)):
            found = [one for one in found if one.type in self.types]
        if self.layers:
            found = [one for one in found if one.layer in self.layers]
        if not self.put_away:
            found = [one for one in found if one.status not in ("archived", "deprecated")]
        return [one for one in found if all(holds(one) for _, holds in self.conditions)]

    def said(self, n: int, record: Record) -> str:
        """The set in words."""
        what = joined([noun(type, n) for type in self.types]) if self.types else "nodes" if n != 1 else "node"
        if self.layers and not self.types:
            what = f"{what} of the {joined(self.layers)} layer"
        return " ".join([what, *(words for words, _ in self.conditions)])


Cell = str | float | None


@dataclass(frozen=True)
class Grid:
    """What was asked of a set, as a table: a column for each thing that was asked."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Demand:
    """One thing that a question asks of a set."""

    words: str
    """As the question has it."""
    measure: str
    """`count`, `sum` or `mean`; `group` for what figures are told by, empty for a property of each member."""
    sense: str = ""
    """The property, or the name of what is grouped by."""
    label: str = ""
    """What a column or a figure is called that holds it."""
    type: str = ""
    """Of what alone it is asked, where a question names several types."""

    @property
    def labels(self) -> tuple[str, ...]:
        """All that may stand for it in an answer: a number of things is told by what is counted, too."""
        if self.measure == "count":
            return self.label, self.label.removeprefix(_NUMBER)
        return self.label, " ".join(filter(None, (_TELLING.get(self.measure, ""), spaced(self.sense))))


_NUMBER = "number of "
_LABELS = {"due": "due date", "effort": "effort (hours)", "roi": "return"}
_TELLING = {"sum": "total", "mean": "average"}
_ADDED = ("effort", "budget", "spent")
"""Properties whose sum says something, though only their name was said."""
_TITLES = 20
"""Members of a group that are named."""


def label_of(sense: str, measure: str = "") -> str:
    """What a column or a figure of a property is called."""
    return " ".join(filter(None, (_TELLING.get(measure, ""), _LABELS.get(sense, spaced(sense)))))


def _has_value(name: str, values: set[str]) -> Callable[[Thing], bool]:
    return lambda one: one.fields.get(name) in values


class Plans:
    """Answers from a record alone."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.told_set: tuple[Thing, ...] | None = None
        """The set that was told last, whole; `None` before."""
        self.grid: Grid | None = None
        """The same with all that was asked of it, where that is more than a list."""
        self.told_of: dict[str, dict[str, Cell]] = {}
        """By the ids of its members what was asked of each, by its label."""
        self.figures: tuple[tuple[str, float], ...] = ()
        """Figures that were told, by their labels."""
        self.demanded: tuple[Demand, ...] = ()
        """What was asked of the set, whether it was told or not."""
        self.lacking: tuple[str, ...] = ()
        """Labels of what was asked and is on record of no member."""

    # What is asked of sets

    def query(self, r: Reading, scope: Sequence[Thing] | None = None) -> Query:
        """The set that a reading speaks of."""
        record = self.record
        scope = scope if scope is not None else r.scope
        q = Query(scope=tuple(scope) if scope is not None else None)
        q.shown = self._shown(r)
        types = [one for one in r.types if one not in q.shown]
        r.cover("type", *q.shown)
        r.cover_all("each_person")
        at_work = r.has("status", *OPEN, "open", "done") or r.has("ask", "overdue")
        if types == ["human"] and at_work and not r.has("ask", "lack"):
            r.cover("type", "human")
            types = ["task"]
        if types == ["human"] and (r.has("ask", "group") or (r.has("superlative") and r.has("ask", "who"))):
            types = ["task"]
        if len(types) > 1 and "human" in types and not r.has("ask", "lack") and not self._leads(r, "human"):
            types.remove("human")
            r.cover("type", "human")
        q.types = tuple(types)
        q.layers = tuple(r.of("layer")) if not q.types else ()
        r.cover("type", *types)
        r.cover("layer", *q.layers)
        status = r.of("status")
        if r.people and not (types == ["human"]):
            self._add_people(q, r)
        if r.spared:
            self._add_spared(q, r)
        if r.has("ask", "overdue"):
            r.cover("ask", "overdue")
            r.cover("status", *OPEN, "open", "done")  # what is late is not done, however it is said
            r.cover_negation()
            q.conditions.append(("overdue", record.is_overdue))
        if status:
            self._add_status(q, r, status)
        for period in r.periods if not r.has("ask", "overdue") else ():
            self._add_period(q, r, period)
        for bound in r.bounds:
            self._add_bound(q, r, bound)
        if r.has("property", "priority") and not r.bounds and (levels := [*r.figures, *map(float, r.of("level"))]):
            self._add_priority(q, r, levels[0])
        before = len(q.conditions)
        self._add_values(q, r)
        self._add_returns(q, r)
        if r.has("ask", "lack"):
            self._add_lack(q, r)
        elif not (r.named or q.shown or r.has("ask", "max", "min", "group")) and len(q.conditions) == before:
            self._add_relation(q, r)
        return q

    def _shown(self, r: Reading) -> tuple[str, ...]:
        """Types that are asked of each member beside its properties: the tasks with their owner and project."""
        showing = set(self.record.words.language.words.get("showing", ()))
        at = self._shows_at(r)
        first = min((r.at("type", one) for one in r.types), default=at)
        if first >= at or r.has("ask", "lack"):
            return ()
        listed = any(span.start > at and span.of("property") for span in r.spans)
        found = []
        for span in r.spans:
            if span.start <= at or not span.of("type") or span.start in r.absorbed:
                continue
            own = r.tokens[span.start - 1].folded in showing
            before = next((n for n in range(span.start - 1, at, -1) if r.tokens[n].folded not in self._articles), at)
            comma = "," in r.text[r.tokens[before].end : r.tokens[before + 1].start]
            joins = (
                comma
                or before == at
                or any(any(sense.kind == "more" for sense in one.senses) for one in r.spans if one.end == before + 1)
            )
            if (own or (listed and joins)) and not self._is_behind(r, span.start, "group"):
                found += [type for type in span.of("type") if type != "human"]
                r.cover("relation", *(one for each in r.spans if each.start > span.start for one in each.of("relation")))
        return tuple(dict.fromkeys(found))

    def _shows_at(self, r: Reading) -> int:
        """Where a word stands behind which it is said what to tell of each member: with, their; the end where none does."""
        showing = set(self.record.words.language.words.get("showing", ()))
        return next((at for at, token in enumerate(r.tokens) if token.folded in showing), len(r.tokens))

    def lists(self, r: Reading) -> bool:
        """Whether a question asks for a list that tells properties of each member."""
        at = self._shows_at(r)
        return bool(r.types) and any(span.start > at and span.of("property") for span in r.spans)

    @property
    def _articles(self) -> tuple[str, ...]:
        words = self.record.words.language.words
        return (*words.get("definite", ()), *words.get("articles", ()))

    @staticmethod
    def _is_behind(r: Reading, at: int, ask: str) -> bool:
        return any(ask in span.of("ask") and span.end <= at <= span.end + 1 for span in r.spans)

    def demands(self, r: Reading, q: Query) -> tuple[Demand, ...]:
        """What a question asks of a set, in the order of its words."""
        found: list[Demand] = []
        places: list[int] = []
        pending: tuple[str, str] | None = None
        loose = ""
        counted = noun(q.types[0]) if len(q.types) == 1 else "nodes" if not q.types else joined([noun(one) for one in q.types])
        for span in sorted((one for one in r.spans if one.start not in r.absorbed), key=lambda one: (one.start, -one.end)):
            said = " ".join(token.text for token in r.tokens[span.start : span.end])
            asked = next((one for one in ("count", "sum", "mean") if one in span.of("ask")), "")
            measured = [
                one for one in r.spans if one.start == span.end and one.of("property") and one.of("property")[0] in _ADDED
            ]
            if asked == "count" and measured:
                pending = "sum", said  # how many hours
            elif asked == "count":
                found.append(Demand(said, "count", "", f"{_NUMBER}{counted}"))
                places.append(span.start)
            elif asked:
                pending = asked, said
            for sense in span.of("property"):
                if r.has("ask", "lack") or not self._is_asked(sense, said):
                    continue
                if self._is_number(sense, q):
                    loose = loose or ("" if pending else sense)
                    measure, words = pending or ("", "")
                    found.append(Demand(f"{words} {said}".strip(), measure, sense, label_of(sense, measure)))
                    pending = None
                else:
                    found.append(Demand(said, "", sense, label_of(sense)))
                places.append(span.start)
                break
        if len(q.types) > 1:
            found = [self._of_type(one, at, places, r, q) for one, at in zip(found, places, strict=True)]
        if pending is not None and loose:  # the hours that they add up to
            found.append(Demand(f"{pending[1]} {loose}", pending[0], loose, label_of(loose, pending[0])))
        found += [Demand(noun(one, 1), "", one, noun(one, 1)) for one in q.shown]
        return tuple({(one.measure, one.sense, one.type): one for one in reversed(found)}.values())[::-1]

    @staticmethod
    def _of_type(one: Demand, at: int, places: Sequence[int], r: Reading, q: Query) -> Demand:
        """A figure of several types as that of the one that is named behind it: the budget of the projects."""
        end = min((place for place in places if place > at), default=len(r.tokens))
        behind = [type for span in r.spans if at < span.start < end for type in span.of("type") if type in q.types]
        if not one.measure or len(set(behind)) != 1:
            return one
        label = f"{_NUMBER}{noun(behind[0])}" if one.measure == "count" else f"{one.label} of {noun(behind[0])}"
        return replace(one, type=behind[0], label=label)

    def _is_asked(self, sense: str, said: str) -> bool:
        # Of the status, most words say a condition: what is done; its own name asks for it.
        return sense not in ("status", "title") or said.casefold() in self.record.words.language.words.get("own_state", ())

    def _is_number(self, sense: str, q: Query) -> bool:
        if sense in _DATES or sense in ("owner", "status"):
            return False
        of = [one for one in self.record if not q.types or one.type in q.types]
        values = [value for one in of if (value := self.record.value(one, sense)) is not None]
        return bool(values) and sum(number_of(value) is not None for value in values) * 2 > len(values)

    def told_value(self, one: Thing, sense: str, shown: Sequence[str] = ()) -> Cell:
        """What a table says of a member: a property, or the nodes of a type that it is joined to."""
        if sense in shown:
            return joined([other.title for _, other in self.record.neighbours(one.id) if other.type == sense]) or None
        value = self.record.value(one, sense)
        if value is None or isinstance(value, int | float | str):
            return value
        return self._plain(value, sense)

    def _tell(self, q: Query, r: Reading, found: Sequence[Thing]) -> None:
        """Note of each member of a set what was asked of it."""
        senses = {one.sense: label_of(one.sense) if one.measure else one.label for one in self.demanded if one.sense}
        senses |= {"owner": label_of("owner")} if r.has("ask", "who") and not r.has("ask", "max", "min") else {}
        if r.has("ask", "when") and (day := next((d for one in found if (d := self._date_sense(r, one))), None)):
            senses[day] = label_of(day)
        senses = {
            sense: label
            for sense, label in senses.items()
            if not any(d.measure == "group" and d.sense == sense for d in self.demanded)
        }
        self.told_of = {
            one.id: {label: self.told_value(one, sense, q.shown) for sense, label in senses.items()} for one in found
        }
        self.lacking = tuple(
            label for label in senses.values() if found and all(self.told_of[one.id][label] is None for one in found)
        )

    def _measure(self, members: Sequence[Thing], one: Demand) -> float | None:
        """A figure over members; `None` where none of them has the property."""
        members = [each for each in members if not one.type or each.type == one.type]
        if one.measure == "count":
            return len(members)
        values = [number for each in members if (number := number_of(self.record.value(each, one.sense))) is not None]
        if not values:
            return 0 if not members and one.measure == "sum" else None
        return round(sum(values) / len(values) if one.measure == "mean" else sum(values), 2)

    def _wanted(self, q: Query) -> list[Demand]:
        """The figures that are asked, with the sums of numbers that only their names were said of."""
        found = [one for one in self.demanded if one.measure in ("count", "sum", "mean")]
        known = {one.sense for one in found}
        more = [one for one in self.demanded if not one.measure and one.sense in _ADDED and one.sense not in known]
        return [*found, *(replace(one, measure="sum", label=label_of(one.sense, "sum")) for one in more)]

    def _table(self, names: tuple[str, ...], groups: dict[tuple[str, ...], list[Thing]], q: Query) -> Grid:
        """A row for each group: how many there are, the figures that were asked, and which they are."""
        counted = noun(q.types[0]) if len(q.types) == 1 else "nodes"
        wanted = [one for one in self._wanted(q) if one.measure != "count"]
        titled = all(len(members) <= _TITLES for members in groups.values())
        labels = [f"{_NUMBER}{counted}", *(one.label for one in wanted), *([counted] if titled else [])]

        def titles(members: Sequence[Thing]) -> str:
            own = [one.sense for one in wanted]
            return "; ".join(
                f"{one.title} ({', '.join(said)})"
                if (said := [self.told(s, v) for s in own if (v := self.record.value(one, s)) is not None])
                else one.title
                for one in members
            )

        rows = [
            (
                *values,
                len(members),
                *(self._measure(members, one) for one in wanted),
                *([titles(members)] if titled else []),
            )
            for values, members in groups.items()
        ]
        return Grid((*names, *labels), tuple(rows))

    def compare_sets(self, r: Reading) -> str:
        """Several sets side by side, with every figure that is asked of each; empty where a question compares no sets."""
        sides = self._sides(r)
        if len(sides) < 2 or r.has("ask", "group"):
            return ""
        groups: dict[str, list[Thing]] = {}
        q = Query()
        for name, side in sides:
            q = self.query(side)
            self.demanded = self.demanded or self.demands(side, q)
            groups[name] = q.run(self.record)
            r.covered |= side.covered
            r.met |= side.met
        q.types = tuple(dict.fromkeys(one.type for members in groups.values() for one in members)) or q.types
        r.cover("ask", "compare", "count", "sum", "mean")
        r.cover("property", *(one.sense for one in self.demanded))
        r.cover_all("unit")
        if not self._wanted(q):
            self.demanded += tuple(
                Demand(sense, "sum", sense, label_of(sense, "sum"))
                for sense in _ADDED
                if any(self.record.value(one, sense) is not None for some in groups.values() for one in some)
            )
        self.told_set = tuple({one.id: one for members in groups.values() for one in members}.values())
        self.grid = self._table(("compared",), {(name,): some for name, some in groups.items()}, q)
        self.grid = self._with_own(self.grid, {each.thing.title: each.thing for each in r.named})
        heads = self.grid.columns[1:]
        figures = [
            [(one, cell) for one, cell in zip(heads, row[1:], strict=True) if number_of(cell) is not None]
            for row in self.grid.rows
        ]
        told = [
            "; ".join(f"{one} {figure(number_of(cell) or 0)}" for one, cell in of if not isinstance(cell, str))
            for of in figures
        ]
        said = [f"{row[0]}: {of}" for row, of in zip(self.grid.rows, told, strict=True)]
        return paragraphs("Side by side:", self.listed(said), self.limits())

    def _with_own(self, grid: Grid, named: dict[str, Thing]) -> Grid:
        """A table of sets that are named by a thing each, with what is asked of the things themselves."""
        own = [
            one
            for one in self.demanded
            if not one.measure and any(self.record.value(each, one.sense) for each in named.values())
        ]
        told = [
            tuple(self.told_value(named[name], one.sense) if (name := str(row[0])) in named else None for one in own)
            for row in grid.rows
        ]
        if not own or not named:
            return grid
        rows = tuple((*row, *more) for row, more in zip(grid.rows, told, strict=True))
        return Grid((*grid.columns, *(one.label for one in own)), rows)

    def _sides(self, r: Reading) -> list[tuple[str, Reading]]:
        """The sets that a question compares, each as a question for it alone."""

        def alone(**given: Any) -> Reading:
            return replace(r, **{"covered": set(r.covered), "met": set(r.met), "absorbed": set(r.absorbed), **given})

        def without(kind: str, keep: Any) -> list[Any]:
            return [
                span
                for span in r.spans
                if not any(sense.kind == kind for sense in span.senses)
                or any(sense.kind == kind and sense.value == keep for sense in span.senses)
            ]

        typed = [type for type in r.types if type != "human"]
        if len(r.people) > 1 and typed:
            return [(name, alone(people=[name])) for name in r.people]
        subject = [type for type in typed if type not in {one.thing.type for one in r.named}]
        if len(r.named) > 1 and subject:
            found = []
            for each in r.named:
                near = [other for _, other in self.record.neighbours(each.thing.id)]
                theirs = [one for one in self.record if each.thing.title in self.record.owners(one)]
                scope = [one for one in dict.fromkeys([*near, *theirs]) if one.type in subject]
                q = [span for span in r.spans if not set(span.of("type")) - set(subject) or not span.of("type")]
                found.append((each.thing.title, alone(named=[], spans=q, scope=tuple(scope))))
                r.cover_named(each.thing)
            return found
        status = [one for one in r.of("status") if one != "active"]
        if len(status) > 1 and len(typed) == 1:
            said = {one: next(s for s in r.spans if one in s.of("status")) for one in status}
            apart = {span.start: one for one, span in reversed(list(said.items()))}
            if len(apart) > 1:
                return [
                    (
                        f"{' '.join(t.text for t in r.tokens[start : said[one].end])} {noun(typed[0])}",
                        alone(spans=[s for s in r.spans if not s.of("status") or s.start == start]),
                    )
                    for start, one in sorted(apart.items())
                ]
        if len(typed) > 1 and not r.named:
            return [(noun(type), alone(spans=without("type", type))) for type in typed]
        return []

    def _leads(self, r: Reading, type: str) -> bool:
        """Whether a type is what is sought: the first that is said, behind a word that asks."""
        at = r.at("type", type)
        first = min(r.at("type", one) for one in r.types)
        return at == first and any(span.end == at and span.of("ask") for span in r.spans)

    def _add(self, q: Query, r: Reading, said: str, holds: Callable[[Thing], bool], *kinds: str) -> None:
        """A condition, or its opposite where the words before it deny it."""
        span = next((span for kind in kinds for span in r.spans if span.of(kind) and span.start not in r.absorbed), None)
        denied = r.denied(span.start) if span is not None else -1
        for kind in kinds:
            r.cover_all(kind)
        if denied >= 0:
            r.covered.add(denied)
            q.conditions.append((f"not {said}", lambda one: not holds(one)))
        else:
            q.conditions.append((said, holds))

    def _add_people(self, q: Query, r: Reading) -> None:
        people, record = set(r.people), self.record
        r.cover("property", "owner")
        r.cover("relation", "lead")
        self._add(q, r, f"of {joined(r.people)}", lambda one: bool(people & set(record.owners(one))), "person")

    def _add_spared(self, q: Query, r: Reading) -> None:
        spared = [one for each in r.spared for one in (each.thing, *each.others)]
        said = [" ".join(token.text for token in r.tokens[each.start : each.end]) for each in r.spared]
        for each in r.spared:
            r.covered |= set(range(each.start, each.end))
        q.conditions.append((f"other than “{joined(said)}”", lambda one: one not in spared))

    def _add_priority(self, q: Query, r: Reading, level: float) -> None:
        r.cover("property", "priority")
        r.cover_all("figure")
        holds = lambda one: number_of(self.record.value(one, "priority")) == level  # noqa: E731
        self._add(q, r, f"of priority {figure(level)}", holds, "level")

    def _add_relation(self, q: Query, r: Reading) -> None:
        """Which of a type are joined to any of another, or to anything at all, as the sentence says."""
        strong = [sense for sense in r.of("relation") if sense != "part"]
        if strong == ["lead"] and r.people:
            r.cover("relation", "lead")
            return  # to lead a project is to own it
        links = set(r.of("link"))
        types = sorted(q.types, key=lambda type: r.at("type", type))
        part = r.at("relation", "part")
        between = len(types) == 2 and r.at("type", types[0]) < part < r.at("type", types[1])
        if not types or not (strong or links or between):
            return
        names = links or (self.record.words.relations.get(strong[0], frozenset()) if strong else frozenset())
        verb = r.at("link") if links else r.at("relation", strong[0]) if strong else part
        first = r.at("type", types[0])
        if first == verb and len(types) == 1:
            return
        sense = "link" if links else strong[0] if strong else "part"
        others = set(types[1:])

        def holds(one: Thing) -> bool:
            for link, other in self.record.neighbours(one.id):
                if (others and other.type not in others) or other.status in ("archived", "deprecated"):
                    continue
                if not names or (
                    link.type in names and (others or self._fits(r, names, link, one, (first, first + 1), verb, sense))
                ):
                    return True
            return False

        q.types = (types[0],)
        r.cover("relation", *strong, *([] if strong else ["part"]))
        r.cover_all("link")
        words = f"that {'are joined to a ' + noun(types[1], 1) if others else 'are joined so (' + self._verb(sense) + ')'}"
        self._add(q, r, words, holds, *(["link"] if links else []), *(["relation"] if strong else []))

    def _add_status(self, q: Query, r: Reading, status: Sequence[str]) -> None:
        wanted = set(status)
        known = {one.status for one in self.record} | {str(self.record.value(one, "status")).casefold() for one in self.record}
        if {"archived", "deprecated"} & wanted:
            q.put_away = True
            self._add(q, r, f"that are {joined(sorted(wanted))}", lambda one: one.status in wanted, "status")
        elif wanted == {"active"}:
            r.cover_all("status")
        elif "open" in wanted:
            only = {"todo", "in_progress"} & wanted
            keep = OPEN if not only else OPEN & (only | (OPEN if "todo" not in only and "in_progress" not in only else set()))
            self._add(
                q,
                r,
                "still open",
                lambda one: one.status in (keep or OPEN) or (one.type != "task" and one.status == "active"),
                "status",
            )
        elif wanted <= {"done", *OPEN} and len(wanted) == 2 and all(r.denied(r.at("status", one)) >= 0 for one in wanted):
            r.cover_all("status")  # neither done nor started
            r.cover_negation()
            q.conditions.append((f"not {joined(sorted(map(spaced, wanted)))}", lambda one: one.status not in wanted))
        elif "done" in wanted and wanted & OPEN and r.denied(r.at("status", "done")) >= 0:
            begun = wanted & OPEN  # started but not finished
            r.cover_all("status")
            r.cover_negation()
            q.conditions.append((f"with the status {joined(sorted(map(spaced, begun)))}", lambda one: one.status in begun))
        elif not wanted & ({*OPEN, "done", "active"} | known):
            return
        else:
            named = joined([spaced(one) for one in sorted(wanted - {"active"})])
            self._add(
                q,
                r,
                f"with the status {named}",
                lambda one: one.status in wanted or str(self.record.value(one, "status")).casefold() in wanted,
                "status",
            )

    def _date_sense(self, r: Reading, one: Thing) -> str | None:
        for sense in _DATES:
            if r.has("property", sense) and self.record.value(one, sense) is not None:
                return sense
        return next((sense for sense in _DATES if self.record.value(one, sense) is not None), None)

    def _add_period(self, q: Query, r: Reading, period: Any) -> None:
        record = self.record
        for kind in ("period", "weekday", "month", "edge", "figure", "unit"):
            r.cover_all(kind)
        r.cover("property", *_DATES)
        r.cover("ask", "when")
        due = r.has("property", "due") or (
            not r.has("property") and (not q.types or set(q.types) <= {"task", "action", "milestone"})
        )
        first = period.first
        if first is None and due and not (period.whole or r.has("ask", "overdue")):
            first = record.today

        def holds(one: Thing) -> bool:
            sense = self._date_sense(r, one)
            day = record.day(record.value(one, sense)) if sense else None
            inside = day is not None and (first is None or day >= first) and (period.last is None or day <= period.last)
            return inside and not (due and one.type == "task" and one.status not in OPEN)

        said = [f"from {first}"] if first else []
        said += [f"to {period.last}"] if period.last else []
        q.conditions.append((f"{'due ' if due else ''}{' '.join(said)}", holds))

    def _measured(self, r: Reading) -> str | None:
        """The figure that is asked about."""
        for sense in r.of("property"):
            if sense in _NUMBERS or (
                sense not in _DATES and any(number_of(self.record.value(one, sense)) is not None for one in self.record)
            ):
                return sense
        return next((one for one in r.of("superlative")), None)

    def _add_bound(self, q: Query, r: Reading, bound: Bound) -> None:
        sense = self._measured(r) or ("effort" if r.has("unit", "hour") else None)
        if sense is None or sense == "date":
            return
        r.cover_all("even_odds")
        for kind in ("than", "figure", "unit"):
            r.cover_all(kind)
        r.cover("property", sense)
        r.cover("superlative", sense)
        r.cover_words("more", "less", "most", "least")
        value = bound.value / 100 if bound.percent and sense in ("confidence", "likelihood") else bound.value
        if sense in ("confidence", "likelihood") and value > 1:
            value /= 100
        compare = _SIGNS[bound.sign]

        def holds(one: Thing) -> bool:
            found = number_of(self.record.value(one, sense))
            return found is not None and compare(found, value)

        self._add(q, r, f"with {spaced(sense)} {bound.sign} {figure(value)}", holds, "than")

    def _add_values(self, q: Query, r: Reading) -> None:
        by_name: dict[str, set[str]] = {}
        types = set(q.types)
        for span in r.spans:
            plain = all(sense.kind == "pair" for sense in span.senses)
            for name, value in (sense.value for sense in span.senses if sense.kind == "pair"):
                if not plain and not types:
                    continue
                if not types or any(one.type in types and one.fields.get(name) == value for one in self.record):
                    by_name.setdefault(name, set()).add(value)
        if len(by_name) > 1:
            named = {name for name in by_name if r.has("property", name)}
            by_name = {name: some for name, some in by_name.items() if not named or name in named}
        for name, some in list(by_name.items())[:1]:
            said = f"with {spaced(name)} {joined(sorted(some))}"
            r.cover("property", name, *(sense for sense, names in self.record.words.names.items() if spaced(name) in names))
            self._add(q, r, said, _has_value(name, some), "pair")

    def _add_returns(self, q: Query, r: Reading) -> None:
        record = self.record
        if "decision" not in q.types or r.has("ask", "max", "min"):
            return
        r.cover("property", "roi", *(["budget"] if r.has("loss") or r.has("gain") else []))
        if r.has("loss"):
            self._add(q, r, "with a loss", lambda one: (number_of(record.value(one, "roi")) or 0) < 0, "loss")
        elif r.has("gain"):
            self._add(q, r, "that paid off", lambda one: (number_of(record.value(one, "roi")) or 0) > 0, "gain")

    def _add_lack(self, q: Query, r: Reading) -> None:
        record = self.record
        senses = [sense for sense in r.of("property") if sense not in ("status",)]
        types = [type for type in r.types if type != "human"]
        if len(types) > 1 or senses or "human" in r.types:
            r.cover("ask", "lack")
            r.cover_all("relation")
            r.cover("property", *senses)
        if len(types) > 1:
            order = sorted(types, key=lambda type: r.at("type", type))
            q.types = (order[0],)
            others = set(order[1:])
            q.conditions.append(
                (
                    f"without {joined([noun(type, 1) for type in order[1:]])}",
                    lambda one: not any(other.type in others for _, other in record.neighbours(one.id)),
                )
            )
        elif senses:
            q.conditions.append(
                (
                    f"without {joined([spaced(sense) for sense in senses])}",
                    lambda one: all(record.value(one, sense) is None for sense in senses),
                )
            )
        elif "human" in r.types:
            q.conditions.append(("without owner", lambda one: not record.owners(one)))

    # Saying sets

    def row(self, one: Thing, senses: Sequence[str] = ()) -> str:
        """A node with what of it was asked."""
        said = []
        for sense in dict.fromkeys([*senses, *_SHOWN.get(one.type, ())]):
            value = self.record.value(one, sense)
            if value is not None and sense != "title":
                said.append(self.told(sense, value))
        return f"{cite(one)}" + (f" ({', '.join(said)})" if said else "")

    def told(self, sense: str, value: Any) -> str:
        """A value with its name."""
        if sense == "effort" and (number := number_of(value)) is not None:
            return hours(number)
        if (number := number_of(value)) is not None and not isinstance(value, str):
            return f"{spaced(sense)} {figure(number)}"
        if sense == "status":
            return spaced(str(value))
        return f"{spaced(sense)} {value}"

    def listed(self, rows: Iterable[str]) -> str:
        """Rows; those beyond the most that are told are counted."""
        found = list(rows)
        more = [f"- and {len(found) - _ROWS} more"] if len(found) > _ROWS else []
        return "\n".join([*(f"- {row}" for row in found[:_ROWS]), *more])

    def limits(self) -> str:
        """That the graph was read in part."""
        return "The graph is larger than what I read of it, so there may be more." if self.record.partial else ""

    def say_set(self, q: Query, r: Reading) -> str:
        """The set as a list, a number, or the sums that are asked."""
        found = q.run(self.record)
        self.told_set = tuple(found)
        self.demanded = self.demands(r, q)
        self._tell(q, r, found)
        if self.lists(r):
            r.cover("property", *(one.sense for one in self.demanded if one.label in self.lacking))
        measured = self._measured(r)
        if r.has("ask", "max", "min") and measured == "date":
            measured = None
        each = r.has("each_person") and r.has("ask", "count", "sum", "mean")
        who = r.has("ask", "who") and r.has("ask", "max", "min") and not r.has("superlative", *_OF_ONE)
        in_order = self._date_of_order(r)
        if each or who or (r.has("ask", "group") and not (r.has("ask", "rank") or in_order)):
            if grouped := self._grouped(q, r, found, measured):
                return grouped
        if r.has("ask", "max", "min") and not (r.goes_through or in_order) and (best := self._extreme(q, r, found, measured)):
            return best
        if r.has("share") and q.conditions:
            r.cover_all("share")
            r.cover("ask", "count", "sum")
            whole = Query(types=q.types, layers=q.layers, scope=q.scope).run(self.record)
            part = 100 * len(found) / len(whole) if whole else 0
            nouns = joined([noun(type) for type in q.types]) or "nodes"
            return f"{figure(round(part, 1))} %: {len(found)} of {len(whole)} {nouns}."
        counts = r.has("ask", "count")
        if len(wanted := [one for one in self.demanded if one.measure in ("count", "sum", "mean")]) > 1 and found:
            return self._several_figures(q, r, found, wanted)
        if measured in ("effort", "budget", "spent", "value", "roi") or (measured and measured not in _NUMBERS):
            if (counts or r.has("ask", "sum", "mean")) and (r.has("unit", "hour") or not counts or measured != "effort"):
                return self._figures(q, r, found, measured)
        if counts:
            r.cover("ask", "count", "sum")
            senses = [one.sense for one in self.demanded if one.sense and one.sense not in q.shown] if self.lists(r) else []
            r.cover("property", *senses)
            head = f"{len(found)} {q.said(len(found), self.record)}."
            return paragraphs(head, self.listed(self.row(one, senses) for one in found) if found else "", self.limits())
        return self.say_list(q, r, found)

    def _several_figures(self, q: Query, r: Reading, found: Sequence[Thing], wanted: Sequence[Demand]) -> str:
        """Several figures over one set, each with its name and what it is of."""
        r.cover("ask", "count", "sum", "mean")
        r.cover("property", *(one.sense for one in self.demanded))
        r.cover("superlative", *(one.sense for one in wanted))
        r.cover_all("unit")
        of = q.said(2, self.record)
        told = [(one, self._measure(found, one)) for one in wanted]
        self.figures = tuple(
            (one.label if one.type else f"{_NUMBER}{of}" if one.measure == "count" else f"{one.label} of {of}", value)
            for one, value in told
            if value is not None
        )
        self.lacking += tuple(f"{one.label} of {of}" for one, value in told if value is None)
        return paragraphs(
            f"{len(found)} {q.said(len(found), self.record)}:",
            self.listed(f"{label}: {figure(value)}" for label, value in self.figures),
            self.limits(),
        )

    def say_list(self, q: Query, r: Reading, found: Sequence[Thing]) -> str:
        """The nodes by type, in full where that is asked."""
        r.cover("property", "owner" if r.has("ask", "who") else "status")
        if not found:
            yes = "No. " if r.is_yes_or_no else ""
            nearest = Query(types=q.types, layers=q.layers, scope=q.scope).run(self.record)
            all_of = joined([noun(type, len(nearest)) for type in q.types]) or "nodes"
            is_are = "is" if len(nearest) == 1 else "are"
            there = f" There {is_are} {len(nearest)} {all_of} in all." if q.conditions and nearest else ""
            return f"{yes}There are no {q.said(2, self.record)} on record.{there}"
        full = r.has("ask", "full") or (
            set(q.types) <= {"principle", "guardrail", "value"}
            and q.types
            and (r.has("property", "trigger", "response", "statement", "reasoning") or r.has("ask", "why"))
        )
        senses = [sense for sense in r.of("property") if sense != "status"]
        senses += [sense for sense in ("owner",) if r.has("ask", "who") or r.has("each_person")]
        senses += [sense for sense in ("due", "decided", "observed") if r.has("ask", "when") and sense not in senses]
        senses += ["reasoning"] if r.has("ask", "why") and "reasoning" not in senses else []
        r.cover("property", *(sense for sense in senses if any(self.record.value(one, sense) is not None for one in found)))
        r.cover("ask", "full", "group", *(["who"] if any(self.record.owners(one) for one in found) else []))
        if any(self._date_sense(r, one) for one in found):
            r.cover("ask", "when")
        if any("reasoning" in one.fields or "rationale" in one.fields for one in found) and "reasoning" in senses:
            r.cover("ask", "why")
        found = self._ordered(found, r)
        self.told_set = tuple(found)
        if (r.has("ask", "rank") or r.goes_through) and (measured := self._measured(r) or self._usual(q)) is not None:
            r.cover("ask", "max", "min")
            r.cover("ask", "rank")
            r.cover("superlative", measured)
            found = sorted(found, key=lambda one: number_of(self.record.value(one, measured)) or 0, reverse=self._falls(r))
            self.told_set = tuple(found)
            senses = [measured]
        yes = "Yes. " if r.is_yes_or_no else ""
        head = f"{yes}{len(found)} {q.said(len(found), self.record)}:"
        if full:
            return paragraphs(head, *(self.in_full(one) for one in found), self.limits())
        if set(q.types) <= {"principle", "guardrail", "value", "human"} and q.types and not senses:
            return paragraphs(head, self.listed(f"{cite(one)}{self._gist(one)}" for one in found), self.limits())
        none = f"On record for none of them: {joined(self.lacking)}." if self.lacking and self.lists(r) else ""
        return paragraphs(head, self.listed(self.row(one, senses) for one in found), none, self.limits())

    def _usual(self, q: Query) -> str | None:
        return next((_USUAL[type] for type in q.types if type in _USUAL), None)

    def _falls(self, r: Reading) -> bool:
        """Whether the greatest comes first."""
        first = next((span for span in r.spans if set(span.of("ask")) & {"max", "min"}), None)
        return not r.has("low") if first is None or not r.goes_through else not first.of("low")

    def _gist(self, one: Thing) -> str:
        text = next(
            (str(one.fields[name]) for name in ("statement", "trigger", "summary", "description") if name in one.fields), ""
        )
        return f": {text}" if text else ""

    @staticmethod
    def _date_of_order(r: Reading) -> str | None:
        """The date by which things are listed in order: tasks by due date. Figures by a date are of the groups of each day."""
        behind = r.at("ask", "group")
        if behind < 0 or r.has("ask", "count", "sum", "mean"):
            return None
        named = (sense for span in r.spans if span.start > behind for sense in span.of("property"))
        return sense if (sense := next(named, None)) in _DATES else None

    def _ordered(self, found: Sequence[Thing], r: Reading) -> list[Thing]:
        if (sense := self._date_of_order(r)) is not None:
            r.cover("ask", "group", "max", "min")
            dated = {one.id: str(day) for one in found if (day := self.record.value(one, sense)) is not None}
            ends = (span for span in r.spans if span.start > r.at("ask", "group") and {"max", "min"} & set(span.of("ask")))
            falls = (end := next(ends, None)) is not None and "max" in end.of("ask") and not end.of("low")
            known = sorted((one for one in found if one.id in dated), key=lambda one: dated[one.id], reverse=falls)
            return [*known, *(one for one in found if one.id not in dated)]
        days = {one.id: self.record.due(one) for one in found}
        return sorted(
            found, key=lambda one: (list(TYPES).index(one.type) if one.type in TYPES else 99, days[one.id] or date.max)
        )

    def _figures(self, q: Query, r: Reading, found: Sequence[Thing], sense: str) -> str:
        r.cover("ask", "sum", "mean", "count")
        r.cover("property", sense)
        r.cover("superlative", sense)
        r.cover_all("unit")
        figures = [(one, number) for one in found if (number := number_of(self.record.value(one, sense))) is not None]
        if not figures:
            return f"No {spaced(sense)} is on record for {q.said(2, self.record)}."
        total = sum(number for _, number in figures)
        mean = r.has("ask", "mean")
        value = total / len(figures) if mean else total
        said = hours(round(value, 2)) if sense == "effort" else figure(value)
        of = f"{len(figures)} {q.said(len(figures), self.record)}"
        head = f"{said}: that is the {'average' if mean else 'total'} {spaced(sense)} of {of}."
        having = {one for one, _ in figures}
        missing = [cite(one) for one in found if one not in having]
        lacking = f"Without {spaced(sense)}, and not counted: {joined(missing)}." if missing else ""
        return paragraphs(
            head, self.listed(f"{cite(one)}: {self.told(sense, number)}" for one, number in figures), lacking, self.limits()
        )

    def _grouped(self, q: Query, r: Reading, found: Sequence[Thing], measured: str | None) -> str:
        key, name = self._group_key(r, q)
        if key is None:
            return ""
        found = [one for one in found if not q.types or one.type in q.types]
        self.told_set = tuple(found)
        types = q.types
        self.demanded = (*(one for one in self.demands(r, q) if one.label != name), Demand(f"by {name}", "group", name, name))
        self._tell(q, r, found)
        wanted = self._wanted(q)
        members: dict[str, list[Thing]] = {}
        for value in self._all_groups(q, r, name):
            members.setdefault(value, [])
        for one in found:
            for value in key(one):
                members.setdefault(value, []).append(one)
        sums = measured in ("effort", "budget", "spent") and not (r.has("ask", "count") and not r.has("unit", "hour"))
        groups: dict[str, float] = {}
        for one in found:
            for value in key(one):
                groups[value] = groups.get(value, 0) + ((number_of(self.record.value(one, measured or "")) or 0) if sums else 1)
        if not groups or (sums and not any(groups.values())):
            return ""
        ordered = dict(sorted(members.items(), key=lambda row: (-groups.get(row[0], 0), row[0])))
        plain = {value: CITED.sub("", value).strip() for value in ordered}
        second = self._second_key(r, name)
        split: dict[tuple[str, ...], list[Thing]] = {}
        for value, some in ordered.items():
            if second is None or not some:
                split[(plain[value], *(["-"] if second else []))] = list(some)
            for one in some:
                if second is None:
                    break
                split.setdefault((plain[value], self._said_of(one, second)), []).append(one)
        self.grid = self._table((name, *([second] if second else [])), split, q)
        for value, some in ordered.items():
            for one in some:
                self.told_of[one.id] = {name: plain[value], **self.told_of[one.id]}
        r.cover("ask", "mean", *(["list"] if found else []))
        r.cover("property", *(one.sense for one in self.demanded))
        r.cover_all("unit")
        r.cover("ask", "group", "count", "sum", "max", "min", "who")
        r.cover("property", *({"owner", "status"} & {name}), *([measured] if measured and sums else []))
        r.cover("superlative", *([measured] if measured else []))
        r.cover("type", "human", *types)
        rows = sorted(groups.items(), key=lambda row: (-row[1], row[0]))
        what = f"{spaced(measured or '')} of {q.said(2, self.record)}" if sums else q.said(2, self.record)
        if r.has("ask", "max", "min") and not r.has("ask", "group"):
            low = r.has("low")
            best = rows[-1] if low else rows[0]
            same = [value for value, number in rows if number == best[1]]
            unit = "hours" if measured == "effort" else spaced(measured or "")
            counted = unit if sums else q.said(int(best[1]), self.record)
            return f"{joined(same)}: {figure(best[1])} {counted}, the {'least' if low else 'most'} of all."
        if second is not None:
            names = f"{name} and {second}"
            said = (f"{', '.join(map(str, row[:2]))}: {row[2]}" for row in self.grid.rows)
            return paragraphs(f"{what[:1].upper()}{what[1:]} by {names}:", self.listed(said), self.limits())
        if len(wanted) > 1:
            rest = [one for one in wanted if one.measure != "count"]
            told = {
                value: "; ".join(
                    [f"{len(some)} {q.said(len(some), self.record)}"]
                    + [f"{one.label} {figure(number)}" for one in rest if (number := self._measure(some, one)) is not None]
                )
                for value, some in ordered.items()
            }
            of = q.said(2, self.record)
            said = (f"{value}: {text}" for value, text in told.items())
            return paragraphs(f"{of[:1].upper()}{of[1:]} by {name}:", self.listed(said), self.limits())
        return paragraphs(
            f"{what[:1].upper()}{what[1:]} by {name}:",
            self.listed(f"{value}: {figure(number)}" for value, number in rows),
            self.limits(),
        )

    def _second_key(self, r: Reading, name: str) -> str | None:
        """A property that figures are told by beside the first: by owner and status."""
        start, end = r.at("ask", "group"), self._shows_at(r)
        behind = [sense for span in r.spans if start < span.start < end for sense in span.of("property")]
        found = [sense for sense in behind if spaced(sense) != name and (sense in ("owner", "status", "severity", "priority"))]
        return found[0] if start >= 0 and found else None

    def _said_of(self, one: Thing, sense: str) -> str:
        value = self.record.value(one, sense)
        return "-" if value is None else spaced(str(value)) if sense == "status" else str(value)

    def _all_groups(self, q: Query, r: Reading, name: str) -> list[str]:
        """Groups that are told though they may have no members: for every project."""
        type = next((one for one in r.types if noun(one, 1) == name and one not in q.types), None)
        return [cite(one) for one in Query(types=(type,)).run(self.record)] if type is not None else []

    def _group_key(self, r: Reading, q: Query) -> tuple[Callable[[Thing], Sequence[str]] | None, str]:
        record = self.record
        behind = r.at("ask", "group")
        if r.has("property", "owner") or "human" in r.types or r.has("ask", "who") or r.has("each_person"):
            return (lambda one: record.owners(one) or ("nobody",)), "owner"
        if r.has("property", "status"):
            return (lambda one: (spaced(str(record.value(one, "status"))),)), "status"
        after = [span for span in r.spans if span.start > behind >= 0]
        for span in after:
            for sense in span.of("property"):
                r.cover("property", sense)
                return (
                    lambda one, sense=sense: (str(value),) if (value := record.value(one, sense)) is not None else ()
                ), spaced(sense)
            for type in span.of("type"):
                if len(q.types) > 1:
                    q.types = tuple(one for one in q.types if one != type)
                    return (
                        lambda one, type=type: [cite(other) for _, other in record.neighbours(one.id) if other.type == type]
                    ), noun(type, 1)
        if r.has("by_layer"):
            return (lambda one: (one.layer,)), "layer"
        return None, ""

    def _extreme(self, q: Query, r: Reading, found: Sequence[Thing], measured: str | None) -> str:
        record = self.record
        low = r.has("low")
        if len(q.types) == 2 and not measured:
            first, second = sorted(q.types, key=lambda type: r.at("type", type))
            rest = Query(types=(second,), scope=q.scope, conditions=q.conditions).run(record)
            counted = {
                one: sum(1 for _, other in record.neighbours(one.id) if other in rest)
                for one in Query(types=(first,)).run(record)
            }
            if not counted:
                return ""
            self._cover_extreme(r)
            best = (min if low else max)(counted.values())
            named = joined([cite(one) for one, n in counted.items() if n == best])
            return f"{named}: {best} {noun(second, best)}, the {'fewest' if low else 'most'}."
        usual = next((_USUAL[type] for type in q.types if type in _USUAL), "date")
        sense = measured or (usual if not r.has("superlative") else "date")
        if sense == "date" or sense in _DATES:
            return self._extreme_day(q, r, found, low)
        rated = [(number, one) for one in found if (number := number_of(record.value(one, sense))) is not None]
        if not rated:
            return ""
        self._cover_extreme(r)
        r.cover("property", sense)
        r.cover("superlative", sense)
        r.cover_all("figure")
        r.cover("relation", *(["lead"] if sense == "roi" else []))
        many = int(r.figures[0]) if r.figures and 1 < r.figures[0] <= 20 else 1
        rated.sort(key=lambda row: row[0], reverse=not low)
        edge = rated[min(many, len(rated)) - 1][0]
        ahead = [row for row in rated if (row[0] <= edge if low else row[0] >= edge)]
        self.told_set = tuple(one for _, one in ahead)
        if many == 1 and len(ahead) == 1:
            number, one = ahead[0]
            rank = f"the {'lowest' if low else 'highest'} of {len(rated)} {q.said(len(rated), record)}"
            return f"{cite(one)}: {self.told(sense, number)}, {rank}.{self._whose(r, one)}"
        return paragraphs(
            f"{'Lowest' if low else 'Highest'} {spaced(sense)}:",
            self.listed(f"{cite(one)}: {self.told(sense, number)}" for number, one in ahead),
        )

    @staticmethod
    def _cover_extreme(r: Reading) -> None:
        r.cover("ask", "max", "min")
        r.cover_words("first", "last", "next", "most", "least")

    def _extreme_day(self, q: Query, r: Reading, found: Sequence[Thing], low: bool) -> str:
        days = []
        for one in found:
            sense = self._date_sense(r, one)
            if sense and (day := self.record.day(self.record.value(one, sense))) is not None:
                if sense == "due" and low and ((one.status not in OPEN and one.type == "task") or self._is_past(r, day)):
                    continue
                days.append((day, one))
        if not days:
            return ""
        self._cover_extreme(r)
        r.cover("ask", "when")
        r.cover("superlative", "date")
        r.cover("property", *_DATES)
        day, best = (min if low else max)(days, key=lambda row: row[0])
        self.told_set = (best,)
        plural = tuple(self.record.words.language.words.get("plural", ())) or ("\0",)
        if not any(
            r.tokens[span.end - 1].folded.endswith(plural) for span in r.spans if span.of("type") and span.end <= len(r.tokens)
        ):
            self.demanded = tuple(one for one in self.demanded if one.sense not in _DATES)  # the day itself is told
        rank = f"the {'earliest' if low else 'latest'} of {len(days)} {q.said(len(days), self.record)}"
        return f"{cite(best)}: {day}, {rank}.{self._whose(r, best)}"

    def _whose(self, r: Reading, one: Thing) -> str:
        """Its owner, where a question asks who."""
        if not r.has("ask", "who"):
            return ""
        r.cover("ask", "who")
        r.cover("property", "owner")
        return f" Its owner: {joined(self.record.owners(one)) or 'not on record'}."

    def _is_past(self, r: Reading, day: date) -> bool:
        return r.has("edge", "within") and day < self.record.today

    # Single nodes

    def in_full(self, one: Thing) -> str:
        """All that a node says of itself."""
        names = sorted(one.fields, key=lambda name: _FULL.index(name) if name in _FULL else -1 if name == "summary" else 99)
        lines = [f"{spaced(name).capitalize()}: {self._plain(one.fields[name], name)}" for name in names]
        owners = self.record.owners(one)
        if owners and not any(spaced(name) in self.record.words.names["owner"] for name in one.fields):
            lines.append(f"Owner: {joined(owners)}")
        status = f", {spaced(one.status)}" if one.type == "task" or one.status != "active" else ""
        return "\n".join([f"{cite(one)} ({noun(one.type, 1)}{status})", *(f"- {line}" for line in lines)])

    def _plain(self, value: Any, name: str) -> str:
        if isinstance(value, dict) and (number := number_of(value)) is not None:
            return figure(number)
        if isinstance(value, list | tuple):
            return "; ".join(map(str, value))
        if isinstance(value, int | float) and not isinstance(value, bool):
            return figure(float(value))
        return str(value)

    def describe(self, one: Thing) -> str:
        """A node in full with what it is joined to."""
        rows = [self.say_link(link, one, other) for link, other in self.record.neighbours(one.id)]
        return paragraphs(self.in_full(one), f"Joined to:\n{self.listed(rows)}" if rows else "")

    def say_link(self, link: Link, one: Thing, other: Thing) -> str:
        """A relationship seen from one of its ends."""
        name = spaced(link.type)
        return (
            f"{name} {cite(other)} ({noun(other.type, 1)})"
            if link.start == one.id
            else f"{cite(other)} ({noun(other.type, 1)}) {name} it"
        )

    def compare(self, things: Sequence[Thing]) -> str:
        """Nodes side by side."""
        names = [
            sense
            for sense in ("owner", "due", "budget", "effort", "spent", "priority", "roi", "confidence", "likelihood")
            if any(self.record.value(one, sense) is not None for one in things)
        ]
        rows = []
        for one in things:
            said = [
                self.told(sense, value) if value is not None else f"no {spaced(sense)} on record"
                for sense in names
                for value in (self.record.value(one, sense),)
            ]
            serves = [
                cite(other) for link, other in self.record.neighbours(one.id) if link.start == one.id and link.type in _UP
            ]
            said += [f"serves {joined(serves)}"] if serves else []
            rows.append(f"{cite(one)} ({noun(one.type, 1)}): {'; '.join(said) or 'nothing but its title is on record'}")
        same = [
            self.told(sense, self.record.value(things[0], sense))
            for sense in names
            if len({str(self.record.value(one, sense)) for one in things}) == 1
        ]
        full = [self.in_full(one) for one in things] if not names else []
        return paragraphs(
            f"{joined([cite(one) for one in things])} side by side:",
            self.listed(rows),
            f"Both: {', '.join(same)}." if same else "",
            *full,
        )

    def properties(self, one: Thing, senses: Sequence[str]) -> str:
        """What is on record of a node for each sense that is asked."""
        said, missing = [], []
        for sense in senses:
            value = self.record.value(one, sense)
            if sense == "status" and "current" in one.fields:
                said.append(f"current {one.fields['current']}, target {one.fields.get('target', 'not on record')}")
                continue
            if value is None and sense in one.fields:
                value = one.fields[sense]
            if value is None:
                missing.append(spaced(sense))
            elif sense == "due":
                late = " (overdue)" if self.record.is_overdue(one) else ""
                day = self.record.day(value)
                away = (day - self.record.today).days if day else 0
                ahead = (
                    f" (in {away} day{'s' if away != 1 else ''})"
                    if away > 0
                    else f" ({-away} days ago)"
                    if away < 0 and not late
                    else ""
                )
                ago = f", {-away} days ago" if late else ""
                said.append(f"due {day or value}{ahead}{late[:-1] + ago + ')' if late else ''}")
            elif sense == "effort" and (number := number_of(value)) is not None:
                said.append(f"effort {hours(number)}")
            elif isinstance(value, str) and len(value) > 40:
                said.append(f"{spaced(sense)}: {value}")
            else:
                said.append(f"{spaced(sense)} {self._plain(value, sense)}")
        if not said:
            return f"The {joined(missing)} is not on record for {cite(one)}."
        return f"{cite(one)}: {'; '.join(said).rstrip('.')}."

    # Relationships

    def related(self, r: Reading, one: Thing, at: tuple[int, int]) -> tuple[list[tuple[Link, Thing]], str]:
        """Nodes that a reading asks for by a relationship with a node, and the sense of it."""
        senses = [sense for sense in r.of("relation") if sense != "part"] or (["part"] if r.has("relation", "part") else [])
        types = [type for type in r.types]
        pairs = list(self.record.neighbours(one.id))
        links = set(r.of("link"))
        if links:
            verb = r.at("link")
            chosen = [
                (link, other)
                for link, other in pairs
                if link.type in links and self._fits(r, links, link, one, at, verb, "link")
            ]
            chosen = chosen or [(link, other) for link, other in pairs if link.type in links]
            sense = next(iter(links))
            typed = [pair for pair in chosen if not types or pair[1].type in types]
            if typed or not senses:
                return typed, spaced(sense)
        for sense in senses:
            names = self.record.words.relations.get(sense, frozenset())
            verb = r.at("relation", sense)
            own = [(link, other) for link, other in pairs if link.type in names]
            typed = [pair for pair in own if not types or pair[1].type in types]
            there = [pair for pair in typed if self._fits(r, names, pair[0], one, at, verb, sense)]
            if there:
                return there, sense
            if types and typed:
                return typed, sense
            if sense != "part" and not types:
                return [], sense
        if types:
            direct = [pair for pair in pairs if pair[1].type in types]
            strong = [sense for sense in senses if sense != "part"]
            if direct and (not strong or strong[0] in ("up", "support", "part")):
                return direct, "joined"
            if not strong or strong[0] in ("up", "support", "rest", "align"):
                return [(Link(one.id, "", other.id), other) for other in self.reach(one, types)], "indirect"
            return [], strong[0]
        return ([], senses[0]) if senses and senses[0] != "part" else (pairs, "joined")

    def _fits(
        self, r: Reading, names: Iterable[str], link: Link, one: Thing, at: tuple[int, int], verb: int, sense: str
    ) -> bool:
        """Whether the node stands at the end of the relationship that the sentence puts it at."""
        subject = at[0] < verb
        passive = self._is_passive(r, verb)
        if passive:
            subject = not subject
        turned = self.record.words.language.words.get("inverted", ())
        if (r.has("inverted") or any(token.folded in turned for token in r.tokens)) and sense in _TURNING:
            subject = not subject
        if sense == "evidence":
            return link.start == one.id
        acts = link.end if link.type in self.record.words.against else link.start
        if sense == "rest":
            acts = link.start
        return (acts == one.id) is subject

    def _is_passive(self, r: Reading, verb: int) -> bool:
        after = [token.folded for token in r.tokens[verb : verb + 4]]
        by = set(self.record.words.language.words.get("passive", ()))
        if any(word in by for word in after):
            return True
        before = [token.folded for token in r.tokens[:verb]]
        if r.tokens[verb].folded.endswith("ed") and any(
            word in ("is", "are", "was", "were", "being", "gets") for word in before
        ):
            return True
        return False

    @property
    def being(self) -> frozenset[str]:
        return frozenset(self.record.words.language.words.get("verbs_of_being", ()))

    def reach(self, one: Thing, types: Sequence[str]) -> list[Thing]:
        """Nodes of types that lead up to a node, or that it leads up to, over several relationships."""
        deeper = all(_LAYERS.get(TYPES[type].layer, 0) >= _LAYERS.get(one.layer, 0) for type in types if type in TYPES)
        seen, found = {one.id}, []
        queue = deque([(one, 0)])
        while queue:
            at, depth = queue.popleft()
            if depth >= _HOPS:
                continue
            for link, other in self.record.neighbours(at.id):
                if link.type not in _UP or other.id in seen or (link.end == at.id) is not deeper:
                    continue
                seen.add(other.id)
                if other.type in types:
                    found.append(other)
                queue.append((other, depth + 1))
        return found

    def path_up(self, one: Thing, to: Thing) -> list[tuple[Link, Thing]] | None:
        """The shortest chain of reasons from one node to another."""
        queue: deque[tuple[Thing, list[tuple[Link, Thing]]]] = deque([(one, [])])
        seen = {one.id}
        while queue:
            at, path = queue.popleft()
            if at.id == to.id:
                return path
            for link, other in self.record.neighbours(at.id):
                if link.start == at.id and other.id not in seen and link.type not in ("BLOCKS", "CONTRADICTS", "THREATENS"):
                    seen.add(other.id)
                    queue.append((other, [*path, (link, other)]))
        return None

    def ladders(self, one: Thing) -> list[str]:
        """Every chain upwards, each as a sentence."""
        made: list[list[tuple[Link, Thing]]] = []

        def climb(at: Thing, path: list[tuple[Link, Thing]]) -> None:
            above = [
                (link, other)
                for link, other in self.record.neighbours(at.id)
                if link.start == at.id
                and link.type in _UP
                and other.id not in {one.id, *(o.id for _, o in path)}
                and not (link.type == "SUPPORTED_BY" and other.type in ("initiative", "evidence"))
            ]
            if not above or len(path) >= _HOPS + 2:
                if path:
                    made.append(path)
                return
            for pair in above:
                climb(pair[1], [*path, pair])

        climb(one, [])
        return [self._chained(one, path) for path in made[:_ROWS]]

    def _chained(self, one: Thing, path: Sequence[tuple[Link, Thing]]) -> str:
        said = [f"{LEADS.get(link.type, (spaced(link.type),))[0]} {cite(other)}" for link, other in path]
        return f"{cite(one)} {', which '.join(said)}."

    def say_related(self, r: Reading, named: Named) -> str:
        """The answer to a question for nodes by a relationship."""
        one = named.thing
        pairs, sense = self.related(r, one, (named.start, named.end))
        r.cover_named(one)
        r.cover("relation", sense, "part", *(["up", "support"] if sense in ("indirect", "joined", "up", "support") else []))
        r.cover_all("link")
        r.cover("ask", "linked", "indirect", *(["why"] if sense in ("block", "threaten") else []))
        if sense == "block":
            r.cover("status", "todo", "open", "in_progress", "done")
            r.cover_negation()
        q = self.query(r)
        q.types = r.types
        q.conditions = [row for row in q.conditions if not row[0].startswith("without")]
        if sense == "block":  # “before it is done” says nothing of the status of what is sought
            q.conditions = [row for row in q.conditions if not row[0].startswith("with the status")]
        pairs = [
            pair
            for pair in pairs
            if all(holds(pair[1]) for _, holds in q.conditions)
            and (q.put_away or pair[1].status not in ("archived", "deprecated"))
        ]
        things = list({other.id: other for _, other in pairs}.values())
        if r.types:
            self.told_set = tuple(things)
            self.demanded = self.demands(r, q)
            self._tell(q, r, things)
        what = q.said(len(things), self.record) if r.types else "node" if len(things) == 1 else "nodes"
        if r.has("ask", "count") or (r.has("ask", "sum", "mean", "max", "min", "group") and things):
            q.scope, q.types = tuple(things), r.types
            if things or r.types:
                return self.say_set(q, r)
        if not things:
            none = q.said(1, self.record) if r.types else "node"
            said = f"There is no {none} on record that is joined so ({self._verb(sense)}) to {cite(one)}."
            return f"{said}{self._spoken_of(one, r.types)}"
        r.cover("ask", "who", "group")
        r.cover("property", *r.of("property"))
        if sense in ("joined", "indirect") or (len({link.type for link, _ in pairs}) == 1 and r.types):
            return paragraphs(
                f"{len(things)} {what} for {cite(one)}:",
                self.listed(
                    self.row(other, [*r.of("property"), *(["owner"] if r.has("ask", "who") else [])]) for other in things
                ),
            )
        return paragraphs(
            f"{len(things)} {what} for {cite(one)}:", self.listed(self.say_link(link, one, other) for link, other in pairs)
        )

    def _spoken_of(self, one: Thing, types: Sequence[str]) -> str:
        """Nodes of types whose titles stand, in other words, in what a node says of itself."""
        language, stop = self.record.words.language, self.record.words.stop
        text = str(one.fields.get("description") or one.fields.get("summary") or "")
        said = set(language.key(text)) - stop
        others = [
            other
            for other in self.record
            if other is not one and (not types or other.type in types) and (key := set(language.key(other.title)) - stop)
            if len(key) > 1 and key <= said
        ]
        return f" Its description speaks of {joined([cite(other) for other in others])}: {text}" if others else ""

    def _verb(self, sense: str) -> str:
        return {
            "up": "serves",
            "part": "part of",
            "block": "blocks",
            "lead": "leads to",
            "joined": "joined",
            "indirect": "serves, step by step",
        }.get(sense, sense)


_TYPES = ("goal", "value", "principle", "guardrail", "vision", "strategy")


async def contradictions(desk: TurnTools, text: str, one: Thing | None = None, others: Sequence[str] = ()) -> str:
    """The answer, of the types that the question names; of all that guide, where it names none.

    Args:
        desk: the turn's tools.
        text: the question.
        one: a node that each pair has to hold, if any.
        others: types that the other node of such a pair may have; any where absent.

    Raises:
        NotOffered: the tool for it is not at hand.
        ServiceError: it failed.
    """
    types = types_in(text) if one is None else ()
    asked = FindContradictions(types=types) if types else FindContradictions()
    found = (await desk.ask(CONTRADICTIONS_TOOL, asked)).pairs
    if one is not None:
        wanted = {*others} - {one.type} or {*others}
        found = tuple(
            pair
            for pair in found
            for other in (pair.other if pair.one.id == one.id else pair.one,)
            if one.id in (pair.one.id, pair.other.id) and (not wanted or other.type in wanted)
        )
        if not found:
            return (
                f"No: I found nothing that contradicts {cite(one)}: nothing is marked so, and nothing speaks of the opposite."
            )
        return paragraphs(f"Yes, for {cite(one)}:", listed(map(_describe_contradiction, found)))
    what = f"{types[0]}s" if len(types) == 1 else "nodes"
    if not found:
        return (
            f"I found no {what} that contradict each other: none are marked so, and none that speak of the same want opposites."
        )
    head = (
        f"One pair of {what} contradicts itself" if len(found) == 1 else f"{len(found)} pairs of {what} contradict each other"
    )
    return paragraphs(f"{head}:", listed(map(_describe_contradiction, found)))


def types_in(text: str) -> tuple[str, ...]:
    """The node types that a question names."""
    said = set(re.findall(r"[a-z]+", text.casefold()))
    return tuple(name for name in _TYPES if {name, f"{name}s", f"{name[:-1]}ies"} & said)


def _describe_contradiction(pair: Contradiction) -> str:
    return f"{cite(pair.one)} and {cite(pair.other)}: {pair.because}"


_LOST = 20
"""Nodes that are asked for."""
_NAMED = 3
"""Values and visions that are named with a node that loses its way to them."""


async def losses(desk: TurnTools, node: SeenNode) -> str:
    """The answer. Raises `NotOffered`: the tool for it is not at hand; `ServiceError`: it failed."""
    found = await desk.ask(WITHOUT_TOOL, WithoutNode(id=node.id, limit=_LOST))
    if not found.total:
        return f"Without {cite(node)} nothing would lose its support: all that is joined to it has another way up."
    many = f"{found.total} node{'s' if found.total > 1 else ''} would lose support"
    return paragraphs(
        f"Without {cite(node)}, {many}.",
        f"With no way left to any value or vision:\n{listed(map(_describe_loss, found.orphaned))}" if found.orphaned else "",
        f"With a way left, but not to all that they served:\n{listed(map(_describe_loss, found.weakened))}"
        if found.weakened
        else "",
    )


def _describe_loss(loss: Loss) -> str:
    lost = [cite(one) for one in loss.lost]
    more = [f"{len(lost) - _NAMED} more"] if len(lost) > _NAMED else []
    return f"{cite(loss.node)} ({loss.node.type})" + (f", which loses {joined([*lost[:_NAMED], *more])}" if lost else "")


_DECISIONS = 6
"""Decisions that are looked at."""


async def precedents(desk: TurnTools, described: str) -> str:
    """The answer. Raises `NotOffered`: the tool for it is not at hand; `ServiceError`: it failed."""
    found = await desk.ask(PRECEDENT_SEARCH_TOOL, PrecedentSearch(query=described, limit=_DECISIONS))
    if not found.results:
        return "The graph holds no decision like that one."
    good = [one for one in found.results if (roi(one) or 0) > 0]
    bad = [one for one in found.results if (value := roi(one)) is not None and value <= 0]
    open_ones = [one for one in found.results if roi(one) is None]
    many = len(found.results)
    head = (
        f"Of {many} past decisions like that one, {len(good)} paid off."
        if many > 1
        else (
            "There is one past decision like that one, and it paid off."
            if good
            else "There is one past decision like that one."
        )
    )
    return paragraphs(
        head,
        f"Paid off:\n{listed(map(_describe_precedent, good))}" if good else "",
        f"Did not pay off:\n{listed(map(_describe_precedent, bad))}" if bad else "",
        f"No return is recorded:\n{listed(map(_describe_precedent, open_ones))}" if open_ones else "",
    )


def roi(one: Supported) -> float | None:
    """The total return of a decision; `None` where none is recorded."""
    value = (one.node.model_extra or {}).get("roi")
    total = value.get("total") if isinstance(value, dict) else value
    return float(total) if isinstance(total, int | float) and not isinstance(total, bool) else None


def _describe_precedent(one: Supported) -> str:
    value, decided = roi(one), (one.node.model_extra or {}).get("decidedAt")
    said = [f"return {value:g}"] if value is not None else []
    said += [f"decided {str(decided)[:10]}"] if decided else []
    came = [cite(mention) for mention in one.linked]
    details = f" ({', '.join(said)})" if said else ""
    return f"{cite(one.node)}{details}" + (f"; it led to {joined(came)}" if came else "")


_REASONS = 4
"""Chains that are told."""


async def purpose(desk: TurnTools, node: SeenNode) -> str:
    """The answer. Raises `NotOffered`: the tools for it are not at hand; `ServiceError`: they failed."""
    ladder = await _ladder(desk, node) if node.type == "goal" else ""
    why = await desk.ask(WHY_TOOL, AskWhy(from_id=node.id, limit=_REASONS))
    reasons = listed(dict.fromkeys(chain(reason.path) for reason in why.reasons if len(reason.path) > 1))
    if not ladder and not reasons:
        return f"The graph holds no reason for {cite(node)}: no relationship leads from it to a goal, a vision or a value."
    return paragraphs(
        ladder or f"{cite(node)} is a {node.type}.",
        f"Why, step by step:\n{reasons}" if reasons else "No chain from it comes to a value.",
    )


async def _ladder(desk: TurnTools, node: SeenNode) -> str:
    found: LadderClimbed = await desk.ask(CLIMB_LADDER_TOOL, ClimbLadder(id=node.id))
    above = [cite(rung) for rung in found.ladder if rung.id != node.id]
    return f"{cite(node)} serves {joined(above[:1])}{_further(above[1:])}." if above else ""


def _further(above: list[str]) -> str:
    return f", and above that {joined(above)}" if above else ""


_HOURS = re.compile(r"\b(\d{1,3}(?:\.\d)?)\s*(?:more |further |extra )?(?:h|hours?)\b", re.I)
_BACK = 365
"""Days before the window in which tasks are looked for that are open still."""
_SAID = {"green": "Yes, there is room", "yellow": "There is little room", "red": "No, there is no room"}


async def assess_capacity(
    desk: TurnTools, text: str, today: date, days: tuple[date, date] | None = None, wanted: float | None = None
) -> str:
    """Whether there is room.

    Args:
        text: the question.
        today: the day in the calendar's zone.
        days: the days that it is about, the second outside; those that its words name where absent.
        wanted: hours that are asked for, if any.

    Raises:
        NotOffered: the tool for it is not at hand.
        ServiceError: it failed.
    """
    start, end = days or window(text, today)
    asked = AssessWorkload(start_date=start.isoformat(), end_date=end.isoformat(), include_task_details=True)
    found = await desk.ask(ASSESS_WORKLOAD_TOOL, asked)
    tasks = found.tasks.items or ()
    late = await _late(desk, found.start_date)
    return paragraphs(
        _verdict(found.capacity, _wanted(text) if wanted is None else wanted, f"from {found.start_date} to {found.end_date}"),
        f"Due in that time:\n{listed(map(_describe_task, tasks))}" if tasks else "No open task is due in that time.",
        late,
        _calendar(found),
        listed(found.recommendations),
    )


def window(text: str, today: date) -> tuple[date, date]:
    """The days that a question is about, the second of them outside; the seven from today on where it names none."""
    if re.search(r"\bnext week\b", text, re.I):
        monday = today + timedelta(days=7 - today.weekday())
        return monday, monday + timedelta(days=7)
    days = 30 if re.search(r"\b(?:this|the|next) month\b", text, re.I) else 7
    return today, today + timedelta(days=days)


def _wanted(text: str) -> float | None:
    said = _HOURS.search(text)
    return float(said[1]) if said else None


def _verdict(capacity: Capacity, wanted: float | None, when: str) -> str:
    free = capacity.available_hours - capacity.scheduled_hours
    if capacity.utilization_percent is None:
        return f"There are no working hours {when}, and {hours(capacity.scheduled_hours)} of work."
    figures = (
        f"{hours(capacity.scheduled_hours)} of {hours(capacity.available_hours)} are taken {when}"
        f" ({capacity.utilization_percent:.0f} %, {capacity.zone})"
    )
    if wanted is not None:
        return (
            f"{'Yes' if wanted <= free else 'No'}: {figures}; {hours(max(0.0, free))} are free, and {wanted:g} are asked for."
        )
    return f"{_SAID[capacity.zone]}: {figures}, so {hours(max(0.0, free))} are free."


async def _late(desk: TurnTools, start: date) -> str:
    if not desk.has(DUE_WORK_TOOL):
        return ""
    before = DueWork(
        start_date=(start - timedelta(days=_BACK)).isoformat(), end_date=(start - timedelta(days=1)).isoformat(), limit=5
    )
    found: DueFound = await desk.ask(DUE_WORK_TOOL, before)
    left = "overdue and open still, which the figures above do not hold"
    return f"{found.total} {left}:\n{listed(map(cite, found.items))}" if found.items else ""


def _describe_task(task: TaskShown) -> str:
    said = [hours(task.effort_hours)] if task.effort_hours is not None else ["no estimate"]
    said += [f"due {task.due_date[:10]}"] if task.due_date else []
    return f"{cite(task)} ({', '.join(said)}, {task.status.replace('_', ' ')})"


def _calendar(found: WorkloadAssessed) -> str:
    if "calendar" in found.degraded:
        return "The calendar could not be read, so its events are not in the figures."
    if not found.calendar.total:
        return ""
    return f"The calendar has {found.calendar.total} events in that time, {hours(found.calendar.total_hours)} together."


async def strategies(desk: TurnTools, described: str) -> str:
    """The answer.

    Raises:
        NotOffered: the tool for it is not at hand.
        ServiceError: it failed, other than by finding no goal.
    """
    try:
        found = await desk.ask(GOAL_SEARCH_TOOL, GoalSearch(query=described))
    except NotFound as error:
        return f"{error.detail[:1].upper()}{error.detail[1:]}. Ask with the words of its title."
    if not found.found.results:
        return f"For the goal {cite(found.goal)} the graph holds no strategy."
    begins = Step(node_id=found.goal.id, type=found.goal.type, title=found.goal.title)
    return paragraphs(
        f"For the goal {cite(found.goal)}:", listed(_describe_strategy(hit, begins) for hit in found.found.results)
    )


def _describe_strategy(hit: HybridHit, begins: Step) -> str:
    steps = [step for step in hit.path or () if step.node_id != begins.node_id]
    way = f": {chain([begins, *steps])}" if steps else ", which is like it in meaning and not joined to it"
    return f"{cite(hit.node)}{way}"


_ALIKE = 10
"""Rows of an answer about the shape of the graph."""


async def ask_tool(
    desk: TurnTools, topic: str, id: str | None, type: str, ids: Sequence[str], record: Record, types: Sequence[str] = ()
) -> str:
    """What one tool says of a topic; empty where the topic needs a node that is not named.

    Args:
        topic: a value of `talk_of_tools` in the content files.
        id: the node that is named first, if any.
        type: its type.
        ids: every node that is named.
        record: what the turn read.
        types: types of the nodes that are asked about; all where absent.

    Raises:
        NotOffered: the tool is not at hand.
        ServiceError: it failed.
    """
    match topic:
        case "topics":
            found = await desk.ask(TOPICS_TOOL, ListTopics())
            rows = [
                f"{', '.join(one.keywords)} ({one.size} nodes): {joined([cite(node) for node in one.nodes[:3]])}"
                for one in found.topics
            ]
            return paragraphs(f"{len(rows)} topics:", listed(rows)) if rows else "There are no topics on record yet."
        case "drift" if id is None:
            drifted = (await desk.ask(DRIFT_TOOL, ReportDrift())).findings
            drifted = tuple(one for one in drifted if not types or one.node.type in types)
            kinds = types_in_words(record, drifted)
            if not drifted:
                what = noun(types[0], 1) if len(types) == 1 else "node"
                return f"No: no {what} has drifted; the meaning of none moved by more than the threshold."
            return paragraphs(
                f"{len(drifted)} nodes drifted{kinds}:",
                listed(f"{cite(one.node)} ({one.node.type}): by {one.drift:.2f}, last on {one.at.date()}" for one in drifted),
            )
        case "drift" | "evolution" if id is not None:
            told = await desk.ask(EVOLUTION_TOOL, AskEvolution(id=id))
            drift = "Its meaning drifted." if told.drifted else "Its meaning did not drift."
            return paragraphs(
                f"{cite(_of(record, id))} has {len(told.versions)} version{'s' if len(told.versions) != 1 else ''}. {drift}",
                told.narrative,
            )
        case "duplicates":
            pairs = (await desk.ask(DUPLICATES_TOOL, FindDuplicates())).pairs
            if not pairs:
                return "There are no nodes on record that say nearly the same."
            return paragraphs(
                f"{len(pairs)} pairs say nearly the same:",
                listed(f"{cite(one.one)} and {cite(one.other)} (cosine {one.score:.2f})" for one in pairs),
            )
        case "central":
            tool = PAGERANK_TOOL if desk.has(PAGERANK_TOOL) else DISCUSS_PAGERANK_TOOL
            ranked = (await desk.ask(tool, RankNodes(limit=_ALIKE))).rows
            return paragraphs(
                "Most rests on these, the first most of all:",
                listed(f"{cite(one)} ({one.type}, {one.score:.3f})" for one in ranked),
            )
        case "communities":
            groups = COMMUNITIES_TOOL if desk.has(COMMUNITIES_TOOL) else DISCUSS_COMMUNITIES_TOOL
            clusters = (await desk.ask(groups, FindCommunities(limit=_ALIKE))).rows
            return paragraphs(
                f"{len(clusters)} clusters belong together:",
                listed(f"{one.size} nodes: {joined([cite(node) for node in one.nodes[:5]])}" for one in clusters),
            )
        case "bridges":
            between = [one for one in (await desk.ask(BETWEENNESS_TOOL, FindBridges(limit=_ALIKE))).rows if one.score > 0]
            return paragraphs(
                "These join parts of the graph, the first most of all:", listed(f"{cite(one)} ({one.type})" for one in between)
            )
        case "analogies" if id is not None and type == "goal":
            alike = (await desk.ask(ANALOGIES_TOOL, FindAnalogies(id=id))).analogies
            if not alike:
                return f"There is no past success on record that is like {cite(_of(record, id))}."
            return paragraphs(
                f"Past successes like {cite(_of(record, id))}:",
                listed(
                    f"{cite(one.node)}{': ' + joined([cite(m) for m in one.strategies]) if one.strategies else ''}"
                    for one in alike
                ),
            )
        case "patterns":
            repeated = (await desk.ask(PATTERNS_TOOL, DetectPatterns())).patterns
            if not repeated:
                return "There is nothing on record that repeats."
            return paragraphs(
                f"{len(repeated)} patterns repeat:",
                listed(f"{one.title} ({one.confidence:.2f}): {joined([cite(m) for m in one.nodes[:4]])}" for one in repeated),
            )
        case "path" if len(ids) >= 2:
            return await _path(desk, ids[0], ids[1], record)
        case "usage":
            used = await desk.ask(CONTEXT_USAGE_TOOL, AskUsage())
            return paragraphs(
                f"Of a window of {used.window:,} tokens:",
                listed(f"{row.component}: {row.used:,} of {row.budget:,}" for row in used.rows),
            )
        case "inventory":
            there = await desk.ask(INVENTORY_TOOL, Nothing())
            rows = [f"{one.type}: {one.count}" for one in there.types if one.count]
            return paragraphs(
                f"{there.total_nodes} nodes and {there.total_relationships} relationships:",
                "\n".join(f"- {row}" for row in rows),
            )
        case "calendar" if desk.has(GET_CALENDAR_TOOL):
            kept = await desk.ask(GET_CALENDAR_TOOL, Nothing())
            days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
            worked = joined([f"{day} {hours(value)}" for day, value in zip(days, kept.hours, strict=True) if value])
            return f"Your calendar: source {kept.source}, time zone {kept.time_zone}; working hours: {worked}."
    return ""


def types_in_words(record: Record, found: Sequence[Drifted]) -> str:
    """The types of drifted nodes, as a sentence goes on with them."""
    types = dict.fromkeys(one.node.type for one in found)
    return f" ({', '.join(types)})" if types else ""


def _of(record: Record, id: str) -> Titled:
    return record.things[id]


async def _path(desk: TurnTools, one: str, other: str, record: Record) -> str:
    if desk.has(SHORTEST_PATH_TOOL):
        steps = (
            await desk.ask(
                SHORTEST_PATH_TOOL,
                FindShortestPath(
                    from_id=one,
                    to_id=other,
                    relationship_types=tuple({link.type for link in record.links} or CONSTITUTIONAL)[:20],
                ),
            )
        ).path
    elif desk.has(BRIDGE_TOOL):
        steps = next(iter((await desk.ask(BRIDGE_TOOL, BridgeConcepts(from_id=one, to_id=other))).paths), ())
    else:
        steps = ()
    if not steps:
        return f"There is no chain on record that joins {cite(_of(record, one))} and {cite(_of(record, other))}."
    return f"They are joined: {chain(steps)}"
