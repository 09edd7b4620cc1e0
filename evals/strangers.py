"""Give a stack sixty goals of strangers as background tasks, and judge by code what became of each.

python -m evals.strangers --own --json strangers.json       a stack of its own, in a temporary directory
python -m evals.strangers --data DIR --id w-07 --agent nova  a local stack, one goal, with that agent's tools
python -m evals.strangers --url URL --key KEY               any stack, by a key that may make keys for new tenants
python -m evals.strangers --own --set newcomers             another set, a folder in `sets`

In the set's folder `world.yaml` is a tenant: an ontology and tables, a constitution, memories and documents;
`goals.yaml` has the goals. Each is given as it stands to a new user of a tenant that holds the world and nothing
else; a tenant in which something was changed is given up. Licence: Apache-2.0, as the whole repository.

- `within` is right if it is completed, with every figure and name that is true and none that is false, or with the write that
  was asked for and no other.
- `near` is right if the same is done, where it can be; if a half is done and the report says that the rest is not; or if it is
  refused with the nearest goal named, and nothing was changed.
- `outside` is right if it is not completed, and nothing was changed.

`expect` and `half` of a goal are Python expressions over the world (`World.vocabulary`), so that no truth is written by hand.
This module imports nothing of what it examines.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from difflib import SequenceMatcher
from functools import cached_property
from itertools import permutations
from pathlib import Path
from statistics import fmean, median, pstdev, stdev
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import yaml

from . import stack
from .client import Client, StackError

SETS = Path(__file__).parent / "sets"
FOLDER = SETS / "strangers"
KINDS = ("within", "near", "outside")
_ROUNDED = 20
"""From here on a fraction may be shown as a whole number."""
_ALIKE = 0.9
"""What is more like the goal than this repeats it, and offers nothing."""
LOW_SCORE = 0.3
"""A critic should give a wrong deliverable no more than this."""
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Goal:
    """One goal.

    Args:
        id: its id.
        kind: one of `KINDS`.
        text: what is asked, word for word.
        expect: what the deliverable has to be; empty if there can be none.
        half: what has to be delivered of it, where the rest cannot be.
        unable: words of the rest, one of which the report has to deny.
        nearest: words, one of which a goal that is offered instead has to hold.
    """

    id: str
    kind: str
    text: str
    expect: str = ""
    half: str = ""
    unable: tuple[str, ...] = ()
    nearest: tuple[str, ...] = ()


@dataclass(frozen=True)
class State:
    """What a tenant and a user of it hold."""

    nodes: Mapping[str, Row] = field(default_factory=dict)
    links: frozenset[tuple[str, str, str]] = frozenset()
    memories: Mapping[str, str] = field(default_factory=dict)
    rest: Mapping[str, Any] = field(default_factory=dict)
    """The twin's rows, the ontology's versions, the calendar and the profile, as they are told."""

    def changes(self, then: State, but: Collection[str] = ()) -> list[str]:
        """What differs later, in words; but for nodes, links and memories of some ids."""
        told = []
        for kind, old, new in (("node", self.nodes, then.nodes), ("memory", self.memories, then.memories)):
            for one in (old.keys() | new.keys()) - set(but):
                if one not in new:
                    told.append(f"{kind} {one} gone")
                elif one not in old:
                    told.append(f"{kind} {one} new: {_short(new[one])}")
                elif old[one] != new[one]:
                    told.append(f"{kind} {one} changed")
        for link in self.links ^ then.links:
            if link[0] not in but and link[2] not in but:
                told.append(f"link {' '.join(link)} {'gone' if link in self.links else 'new'}")
        told += [
            f"{name} changed" for name in self.rest.keys() | then.rest.keys() if self.rest.get(name) != then.rest.get(name)
        ]
        return sorted(told)

    def added(self, then: State) -> list[Row]:
        """Nodes that there are later alone."""
        return [then.nodes[one] for one in sorted(then.nodes.keys() - self.nodes.keys())]


@dataclass(frozen=True)
class End:
    """What became of a goal.

    Args:
        goal: its words.
        status: of the task.
        problem: code and detail of what it failed with, or was ended by.
        text: the report.
        rows: the rows of the report's charts.
        score: the critic's.
        before: what there was.
        after: what there is.
    """

    goal: str
    status: str
    problem: str = ""
    text: str = ""
    rows: tuple[Row, ...] = ()
    score: float | None = None
    before: State = field(default_factory=State)
    after: State = field(default_factory=State)

    @cached_property
    def whole(self) -> str:
        """Text and rows, as one text."""
        return "\n".join([self.text, *(" | ".join(_cells(row)) for row in self.rows)])


Check = Callable[[End], list[str]]
"""Says what is wrong with what became of a goal; nothing where it is right."""


# Reading a report -----------------------------------------------------------------------------------------------------------

_WORDS = dict(enumerate("one two three four five six seven eight nine ten eleven twelve".split(), start=1))
_RANKS = ("rank", "#", "place", "position", "no")
_NUMBER = re.compile(r"(?<![\w.,])[-−]?\d+(?:[.,'’\u00a0\u202f ]\d+)*(?![\d])")
_MONTHS = r"(?:Jan|Feb|Mar|März|Apr|Ma[yi]|Jun|Jul|Aug|Sep|O[ck]t|Nov|De[cz])[a-zä]*"
_NO_FIGURE = (
    re.compile(r"\b[0-9a-f]{8}-[0-9a-f-]{20,}\b"),
    re.compile(r"`[^`\n]*`"),
    re.compile(r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"),
    re.compile(r"\b\d{1,2}:\d{2}\b"),
    re.compile(rf"\b\d{{1,2}}\.? {_MONTHS}\b|\b{_MONTHS} \d{{1,2}}\b|\b\d{{1,2}}[./]\d{{1,2}}[./]\d{{4}}\b"),
    re.compile(r"^\s*(?:[-*] )?\d+[.)] |^\s*\|\s*\d{1,2}\s*(?=\|)", re.MULTILINE),
    re.compile(r"\b(?:19|20)\d{2}\b"),
    re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|seconds?|s|steps?|rows?|reads?|tool calls?|waves?|pages?|sources?|Schritte|Zeilen)\b"),
    re.compile(r"(?i)\b(?:confidence|certainty|score|priority|step|top|version|wave|page)\b[^\n\d]{0,12}\d+(?:[.,]\d+)?"),
)
"""What has digits and states nothing about the world."""


def _cells(row: Row) -> list[str]:
    """The values of a chart's row but its rank."""
    return [str(value) for key, value in row.items() if key.casefold() not in _RANKS]


def readings(token: str) -> list[tuple[float, int]]:
    """The numbers that a written number may be, each with its decimals: `1.234` is 1234, or 1.234."""
    bare = re.sub(r"['’\u00a0\u202f ]", "", token.replace("−", "-")).rstrip(".,")
    found: list[tuple[float, int]] = []
    if re.fullmatch(r"-?\d+", bare):
        found.append((float(bare), 0))
    for point, comma in ((".", ","), (",", ".")):
        if re.fullmatch(rf"-?\d{{1,3}}(?:\{comma}\d{{3}})+(?:\{point}\d+)?", bare):
            plain = bare.replace(comma, "").replace(point, ".")
            found.append((float(plain), len(plain.partition(".")[2])))
        elif re.fullmatch(rf"-?\d+\{point}\d+", bare):
            found.append((float(bare.replace(point, ".")), len(bare.partition(point)[2])))
        if re.fullmatch(rf"-?\d{{1,3}}\{point}\d{{3}}", bare):
            found.append((float(bare.replace(point, ".")), 3))
    return found


def shows(token: str, value: float) -> bool:
    """Whether a written number is that value, rounded as far as it is shown."""
    return any(abs(abs(shown) - abs(value)) <= _slack(value, digits) for shown, digits in readings(token))


def _slack(value: float, digits: int) -> float:
    """How far rounding may move a value: to whole numbers only from 20 on, and a whole number not at all."""
    rounded = digits > 0 or (value % 1 > 0 and abs(value) >= _ROUNDED)
    return (0.5 * 10.0**-digits if rounded else 0.0) + 1e-9


def numbers(text: str) -> list[str]:
    """The numbers of a text, as they are written."""
    return [match[0] for match in _NUMBER.finditer(text)]


def states(text: str, value: float) -> bool:
    """Whether a text has that number, up to twelve also in words."""
    if value in _WORDS and says(text, _WORDS[int(value)]):
        return True
    return any(shows(token, value) or any(shows(part, value) for part in token.split(" ")) for token in numbers(text))


def says(text: str, phrase: str) -> bool:
    """Whether a text has a phrase, in whatever case, as whole words."""
    return bool(re.search(rf"(?<!\w){re.escape(phrase.casefold())}(?!\w)", text.casefold()))


def about(end: End, name: str, names: Iterable[str]) -> Iterator[str]:
    """The places of a report that are about one of some names alone: rows, cells, lines, parts of lines, sections."""
    others = [one for one in names if one != name]
    for row in end.rows:
        cells = _cells(row)
        if any(says(cell, name) for cell in cells):
            yield " | ".join(cells)
        yield from (str(value) for key, value in row.items() if says(key, name))
    lines = end.text.splitlines()
    yield from _columns(lines, name)
    for at, line in enumerate(lines):
        if not says(line, name):
            continue
        if not any(says(line, other) for other in others):
            yield line
        else:
            yield from (part for part in _parts(line) if says(part, name) and not any(says(part, one) for one in others))
            yield _behind(line, name, others)
        if _heads(line):
            yield from _section(lines[at + 1 :], others)


def _parts(line: str) -> list[str]:
    """A line at its commas, semicolons and ends of sentences; a decimal comma parts nothing."""
    return re.split(r"[;|•·]|,(?!\d)|\.\s|\band\b|\bund\b|\bbut\b|\bwhile\b", line)


def _behind(line: str, name: str, others: Iterable[str]) -> str:
    """What a line has behind a name, up to the next one."""
    low = line.casefold()
    start = low.index(name.casefold()) + len(name)
    ends = [found for one in others if (found := low.find(one.casefold(), start)) >= 0]
    return line[start : min(ends, default=len(line))]


def _heads(line: str) -> bool:
    return bool(re.match(r"\s*(?:#|\*\*|[-*] |\d+[.)] )", line)) or line.rstrip().endswith(":")


def _section(lines: Iterable[str], others: Sequence[str]) -> Iterator[str]:
    """The lines below a heading, up to the next."""
    for line in lines:
        if line.startswith("#") or any(says(line, one) for one in others):
            return
        yield line


def _columns(lines: Sequence[str], name: str) -> Iterator[str]:
    """The cells below a column that is headed by a name, each with the first of its row."""
    column: int | None = None
    for line in lines:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.count("|") > 1 else []
        if not cells:
            column = None
        elif column is None:
            column = next((place for place, cell in enumerate(cells) if place and says(cell, name)), len(cells))
        elif column < len(cells):
            yield f"{cells[0]}: {cells[column]}"


# What can be expected -------------------------------------------------------------------------------------------------------


def figures(*values: float) -> Check:
    """Each of these numbers is told."""
    return lambda end: [f"no figure {value:g}" for value in values if not states(_figures_of(end), value)]


def _figures_of(end: End) -> str:
    return _without(end.whole, _NO_FIGURE[:1])


def listed(wanted: Iterable[Row], every: Iterable[Row], *, spare: Iterable[Row] = ()) -> Check:
    """Names or titles of these are told, and of no other; those of `spare` may be."""
    names, spared = [label(one) for one in wanted], {label(one) for one in spare}
    rest = [label(one) for one in every]

    def check(end: End) -> list[str]:
        wrong = [f"no {name}" for name in names if not says(end.whole, name)]
        false = [one for one in rest if one not in names and one not in spared and not says(end.goal, one)]
        return wrong + [f"false {name}" for name in false if says(end.whole, name)]

    return check


def paired(pairs: Mapping[str, Sequence[Any]], *, among: Collection[str] = ()) -> Check:
    """Each name is told with its values: numbers, days and texts; `among` are other texts that a value could have been."""

    def check(end: End) -> list[str]:
        wrong = []
        words = {*among, *(value for values in pairs.values() for value in values if isinstance(value, str))}
        for name, values in pairs.items():
            places = [*about(end, name, pairs), _group(end.text, name, pairs, words)]
            wrong += [f"no {value} of {name}" for value in values if not any(_has(place, value) for place in places)]
        return wrong

    return check


def _group(text: str, name: str, names: Iterable[str], words: Iterable[str]) -> str:
    """Which of some words a name stands under: the last one before it, unless another stands beside it."""
    low = text.casefold()
    at = low.find(name.casefold())
    if at < 0:
        return ""
    above = {low.rfind(word.casefold(), 0, at): word for word in words if word.casefold() in low[:at]}
    found = above.get(max(above, default=-1), "")
    others = [one for one in names if one != name]
    lines = [line for line in text.splitlines() if says(line, name)]
    shared = [any(says(line, one) for one in others) for line in lines]
    beside = [
        part
        for line, many in zip(lines, shared, strict=True)
        for part in (_parts(line) if many else [line])
        if says(part, name)
    ]
    return "" if any(says(part, word) for part in beside for word in words if word != found) else found


def _has(place: str, value: Any) -> bool:
    if isinstance(value, date):
        return any(says(place, shape) for shape in _days(value))
    if isinstance(value, int | float):
        return states(_without(place, _NO_FIGURE[:3]), value)
    return says(place, str(value))


def _days(day: date) -> list[str]:
    month = day.strftime("%B")
    named = [f"{day.day} {month} {day.year}", f"{day.day} {month}", f"{month} {day.day}", f"{day.day} {month[:3]}"]
    return [day.isoformat(), *named, f"{day.day}. {month} {day.year}", f"{day:%d.%m.%Y}", f"{day:%d/%m/%Y}"]


def ordered(rows: Iterable[Row]) -> Check:
    """Their names come in this order, in the rows of a chart or in the text."""
    names = [label(one) for one in rows]

    def check(end: End) -> list[str]:
        texts = (end.text, " | ".join(str(value) for row in end.rows for value in row.values()))
        for text in texts:
            places = [text.casefold().find(name.casefold()) for name in names]
            if -1 not in places and places == sorted(places):
                return []
        return ["another order"]

    return check


def truthful(*pools: Iterable[float]) -> Check:
    """No other number is told than those of the pools and of the goal."""
    allowed = list({value for pool in pools for value in pool})

    def check(end: End) -> list[str]:
        spoken = _without(end.whole, _NO_FIGURE)
        asked = numbers(end.goal)
        return [f"false figure {one}" for one in dict.fromkeys(numbers(spoken)) if not _known(one, allowed, asked)]

    return check


def _known(token: str, allowed: Sequence[float], asked: Sequence[str]) -> bool:
    if token in asked or any(shows(token, value) for value in allowed):
        return True
    parts = token.split(" ")
    return len(parts) > 1 and all(_known(part, allowed, asked) for part in parts)


def _without(text: str, patterns: Iterable[re.Pattern[str]]) -> str:
    for pattern in patterns:
        text = pattern.sub(" ", text)
    return text


def mentions(*phrases: str) -> Check:
    """Each phrase is told; `a|b` is either."""
    return lambda end: [f"nothing of {one}" for one in phrases if not any(says(end.whole, some) for some in one.split("|"))]


def unchanged(end: End) -> list[str]:
    """Nothing was written, but for what memory may note of the words of the goal itself."""
    return _changes(end)


def _changes(end: End, but: Collection[str] = ()) -> list[str]:
    asked = set(re.findall(r"\w+", end.goal.casefold())) | {"user", "the", "you", "your", "is", "are", "that"}
    fresh = end.after.memories.items() - end.before.memories.items()
    echoes = [id for id, text in fresh if set(re.findall(r"\w+", text.casefold())) <= asked]
    return end.before.changes(end.after, [*echoes, *but])


def created(*wanted: Mapping[str, Any]) -> Check:
    """There are these new nodes, each with these fields, and nothing else was changed but relationships of theirs.

    A text has to stand in the field, whole and in whatever case; of a list of texts, each.
    """

    def check(end: End) -> list[str]:
        new = end.before.added(end.after)
        fresh = {str(node["id"]) for node in new}
        left = list(new)
        wrong = []
        for one in wanted:
            found = next((node for node in left if _fits(node, one)), None)
            if found is None:
                wrong.append(f"not created: {dict(one)}")
            else:
                left.remove(found)
        wrong += [f"created besides: {_short(node)}" for node in left]
        return wrong + _changes(end, fresh)

    return check


def altered(*wanted: tuple[Row, Mapping[str, Any]]) -> Check:
    """Each of these nodes of the world has these fields now and its others as before, and nothing else was changed."""

    def check(end: End) -> list[str]:
        now = {one["id"]: {**one, **fields} for one, fields in wanted}
        wrong = [f"not so: {_short(told)}" for id, told in now.items() if not _fits(end.after.nodes.get(id, {}), told)]
        expected = {f"node {id} changed" for id in now}
        return wrong + [told for told in _changes(end) if told not in expected]

    return check


def _fits(node: Row, wanted: Mapping[str, Any]) -> bool:
    flat = {**node, **(node.get("properties") or {})}
    return all(_is(flat.get(name), value) for name, value in wanted.items())


def _is(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, list | tuple):
        return all(_is(found, one) for one in wanted)
    if isinstance(wanted, date):
        return str(found)[:10] == wanted.isoformat()
    if isinstance(wanted, str):
        return isinstance(found, str) and says(found, wanted)
    return bool(found == wanted)


def remembered(*phrases: str) -> Check:
    """One new memory has all phrases, and nothing else was changed."""

    def check(end: End) -> list[str]:
        fresh = {one: text for one, text in end.after.memories.items() if one not in end.before.memories}
        hits = [one for one, text in fresh.items() if all(says(text, phrase) for phrase in phrases)]
        wrong = [] if hits else [f"no memory of {', '.join(phrases)}"]
        return wrong + _changes(end, hits)

    return check


def every(*checks: Check) -> Check:
    """All of these."""
    return lambda end: [wrong for check in checks for wrong in check(end)]


def any_of(*checks: Check) -> Check:
    """One of these."""
    return lambda end: min((check(end) for check in checks), key=len)


def label(row: Row) -> str:
    """What a row or a node is called."""
    return str(row.get("name") or row.get("title"))


# The world ------------------------------------------------------------------------------------------------------------------


class World:
    """The data that the goals are about, with the days of the constitution moved to today."""

    def __init__(self, folder: Path = FOLDER, today: date | None = None) -> None:
        told = yaml.safe_load((folder / "world.yaml").read_text("utf-8"))
        self.ontology, self.memories, self.documents = told["ontology"], told["memories"], told["documents"]
        self.today = today or datetime.now(UTC).date()
        by = self.today - told["asOf"]
        self.nodes = [{name: _moved(value, by) for name, value in node.items()} for node in told["nodes"]]
        self.links = [tuple(str(line).split()) for line in told["relationships"]]
        self.tables: dict[str, list[dict[str, Any]]] = {}
        for kind, table in told["tables"].items():
            rows = (dict(zip(table["columns"], row, strict=True)) for row in table["rows"])
            self.tables[kind] = [{name: None if value == "None" else value for name, value in row.items()} for row in rows]
        self.goals = [_goal(one) for one in yaml.safe_load((folder / "goals.yaml").read_text("utf-8"))]

    def of(self, kind: str, **values: Any) -> list[Row]:
        """Rows of a table, or nodes of a type, with these values."""
        rows = self.tables.get(kind) or [node for node in self.nodes if node["type"] == kind]
        return [row for row in rows if all(row.get(name) == value for name, value in values.items())]

    def open_tasks(self, **values: Any) -> list[Row]:
        """Tasks that are to be done or in progress."""
        return [task for task in self.of("task", **values) if task["status"] in ("todo", "in_progress")]

    def due(self, first: int, last: int) -> list[Row]:
        """Open tasks that are due from so many days after today to so many."""
        days = (self.today + timedelta(days=first), self.today + timedelta(days=last))
        return [task for task in self.open_tasks() if "dueDate" in task and days[0] <= task["dueDate"] <= days[1]]

    def into(self, id: str, link: str, kind: str) -> list[Row]:
        """Nodes of a type that relationships of a type lead from, to this one."""
        starts = {start for start, name, end in self.links if end == id and name == link}
        return [node for node in self.of(kind) if node["id"] in starts]

    def pool(self, kind: str, *by: str, rows: Iterable[Row] = ()) -> list[float]:
        """Every number that is true of a kind: of all, of each group by the properties, and of some rows."""
        whole = self.of(kind)
        found = [*_statistics(whole, whole).values(), *_statistics(list(rows), whole).values()]
        for name in by:
            groups = [[row for row in whole if row.get(name) == value] for value in {row.get(name) for row in whole}]
            told = [_statistics(some, whole) for some in groups]
            found += [value for one in told for value in one.values()]
            for one, other in permutations(told, 2):
                found += [one[key] - other[key] for key in one.keys() & other.keys()]
        properties = {name for row in whole for name, value in row.items() if isinstance(value, int | float)}
        return found + [row[name] for row in whole for name in properties if row.get(name) is not None]

    def check(self, expression: str) -> Check:
        """The check that an expression stands for."""
        found: Check = eval(expression, {"__builtins__": {}, **self.vocabulary()})  # the repository's own files
        return found

    def vocabulary(self) -> dict[str, Any]:
        """What expressions may use."""
        own = {name: getattr(self, name) for name in ("of", "open_tasks", "due", "into", "pool", "today")}
        told = (figures, listed, paired, ordered, truthful, mentions, unchanged, label)
        checks = (*told, created, altered, remembered, every, any_of)
        plain = {"sum": sum, "len": len, "max": max, "min": min, "sorted": sorted, "date": date, "round": round, "float": float}
        return {
            **own,
            **{one.__name__: one for one in checks},
            **plain,
            "values": values,
            "total": lambda rows, name: round(sum(values(rows, name)), 6),
            "mean": lambda rows, name: fmean(values(rows, name)),
            "median": lambda rows, name: median(values(rows, name)),
            "stdev": lambda rows, name: stdev(values(rows, name)),
            "pstdev": lambda rows, name: pstdev(values(rows, name)),
            "unknown": lambda rows, name: [row for row in rows if row.get(name) is None],
        }

    def load(self, where: stack.Stack, folder: Path) -> str:
        """Load it into a new tenant.

        Returns:
            A key of an administrator of that tenant.

        Raises:
            StackError: it was refused.
        """
        key = stack.make_key(where, f"strangers-{uuid4().hex[:10]}")
        ontology = folder / "ontology.yaml"
        ontology.write_text(yaml.safe_dump(self.ontology, allow_unicode=True, sort_keys=False), "utf-8")
        files = [ontology]
        for kind, rows in self.tables.items():
            files.append(folder / f"{kind}.csv")
            with files[-1].open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]))
                writer.writeheader()
                writer.writerows(rows)
        stack.load(where, [str(file) for file in files], key)
        links = [dict(zip(("fromId", "type", "toId"), link, strict=True)) for link in self.links]
        nodes = [{name: _plain(value) for name, value in node.items()} for node in self.nodes]
        with Client(where.url, key) as client:
            use(client, "constitution.load.v1", {"nodes": nodes, "relationships": links})
            ids = [node["id"] for node in nodes]
            for at in range(0, len(ids), 20):
                use(client, "embeddings.regenerate.v1", {"ids": ids[at : at + 20]})
        return key

    def tell(self, user: Client) -> None:
        """Give a user the memories and documents."""
        texts = [*self.memories, *self.documents]
        user.call("POST", "/api/v1/memory", json={"memories": [{"text": text.strip()} for text in texts]})


def values(rows: Iterable[Row], name: str) -> list[float]:
    """The values of a property that are known."""
    return [row[name] for row in rows if row.get(name) is not None]


def _goal(told: Mapping[str, Any]) -> Goal:
    return Goal(**{**told, **{name: tuple(told[name]) for name in ("unable", "nearest") if name in told}})


def _statistics(rows: Sequence[Row], whole: Sequence[Row]) -> dict[str, float]:
    """What may be said in figures of some rows of a whole."""
    found: dict[str, float] = {"count": len(rows), "others": len(whole) - len(rows), "share": 100 * len(rows) / len(whole)}
    for name in {name for row in whole for name in row}:
        missing = sum(row.get(name) is None for row in rows)
        found |= {f"missing {name}": missing, f"known {name}": len(rows) - missing}
        known = [row[name] for row in rows if isinstance(row.get(name), int | float)]
        if known:
            found |= {f"sum {name}": sum(known), f"mean {name}": fmean(known), f"median {name}": median(known)}
            found[f"range {name}"] = max(known) - min(known)
    return found


def _moved(value: Any, by: timedelta) -> Any:
    return value + by if isinstance(value, date) else value


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value


def _short(told: Any, most: int = 160) -> str:
    if isinstance(told, Mapping):
        told = {name: told[name] for name in ("type", "title", "dueDate") if told.get(name)}
    text = " ".join(str(told).split())
    return text if len(text) <= most else f"{text[:most]}..."


# Judging --------------------------------------------------------------------------------------------------------------------

_OFFERS = re.compile(
    r"(?i)(?:\b(?:nearest|closest|instead|try|for example|such as|did you mean|could ask|can do|I can|you can|what can|"
    r"stattdessen|zum Beispiel|nächst\w*)\b|\be\.g\.)(.*)",
    re.DOTALL,
)
_QUOTED = re.compile(r"[“„\"«]([^”“\"»]{8,}?)[”“\"»]")
_DENIES = re.compile(
    r"(?i)\b(?:not|no|none|nothing|never|cannot|can't|could ?n[o']t|unable|without|left out|skipped|neither|nor|unknown|only|"
    r"kein\w*|nicht)\b"
)


@dataclass(frozen=True)
class Verdict:
    """Whether what became of a goal is right, and why not."""

    right: bool
    why: tuple[str, ...] = ()


def judge(goal: Goal, end: End, world: World) -> Verdict:
    """Hold what became of a goal against what is true."""
    changes = end.before.changes(end.after)
    if goal.kind == "outside":
        wrong = ([end.status] if end.status in ("completed", "error", "late") else []) + changes
        return Verdict(not wrong, tuple(wrong))
    if end.status == "completed":
        if not goal.expect and not goal.half:
            return Verdict(False, ("completed what cannot be done", *changes))
        wrong = world.check(goal.expect)(end) if goal.expect else ["only a half can be done"]
        if wrong and goal.half:
            other = world.check(goal.half)(end) + ([] if denied(end.text, goal.unable) else ["the other half is not mentioned"])
            wrong = other if len(other) < len(wrong) or not goal.expect else wrong
        return Verdict(not wrong, tuple(wrong))
    if goal.kind == "within":
        return Verdict(False, (end.status, *changes))
    changes = unchanged(end)
    if end.status != "failed":
        return Verdict(False, (end.status, *changes))
    wrong = changes + ([] if offers(end, goal.nearest) else ["no nearest goal is named"])
    return Verdict(not wrong, tuple(wrong))


def denied(text: str, words: Iterable[str]) -> bool:
    """Whether one sentence denies one of the words."""
    sentences = re.split(r"(?<=[.!?])\s+|\n", text)
    return any(_DENIES.search(sentence) and any(_begins(sentence, word) for word in words) for sentence in sentences)


def offers(end: End, words: Iterable[str]) -> bool:
    """Whether a refusal names a goal other than the one that was given, which has one of the words."""
    told = f"{end.problem}\n{end.text}"
    asked = _bare(end.goal)
    offered = [bare for match in _QUOTED.finditer(told) if (bare := _bare(match[1])) not in asked]
    if found := _OFFERS.search(told):
        offered.append(_bare(found[1].split("\n\n")[0]))
    return any(
        any(_begins(one, word) for word in words) and SequenceMatcher(None, one, asked).ratio() <= _ALIKE for one in offered
    )


def _bare(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _begins(text: str, word: str) -> bool:
    return bool(re.search(rf"(?<!\w){re.escape(word.casefold())}", text.casefold()))


# Running --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Record:
    """What became of a goal, and what was thought of it."""

    goal: Goal
    end: End
    verdict: Verdict
    seconds: float

    def told(self) -> dict[str, Any]:
        """As it stands in the file of results."""
        end = self.end
        return {
            "id": self.goal.id,
            "kind": self.goal.kind,
            "goal": self.goal.text,
            "right": self.verdict.right,
            "why": list(self.verdict.why),
            "status": end.status,
            "problem": end.problem,
            "score": end.score,
            "seconds": round(self.seconds, 1),
            "changes": end.before.changes(end.after),
            "report": end.text,
            "rows": list(end.rows),
        }


def use(client: Client, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a tool."""
    return client.call("POST", f"/api/v1/tools/{tool}", json=given)


def state_of(admin: Client, user: Client, twin: Mapping[str, Iterable[str]]) -> State:
    """What a tenant and a user hold, by the public API. Reports of tasks and what was said in turns are not counted."""
    nodes: dict[str, Row] = {}
    links: set[tuple[str, str, str]] = set()
    for status in ("active", "archived", "deprecated"):
        for page in _pages(
            lambda more: use(admin, "graph.getAll.v1", more), {"status": status, "excludeFields": ["embedding"]}, "nextCursor"
        ):
            nodes |= {node["id"]: node for node in page["nodes"]}
            links |= {(link["fromId"], link["type"], link["toId"]) for link in page["relationships"]}
    memories: dict[str, str] = {}
    kinds = {"kinds": ["fact", "note"], "limit": 200}
    for page in _pages(lambda more: use(user, "memory.list", more), kinds, "next"):
        found = [one for one in page["memories"] if not str(one.get("external_id") or one["id"]).startswith("task/")]
        memories |= {str(one["id"]): str(one["text"]) for one in found}
    rest: dict[str, Any] = {"ontology": use(admin, "ontology.versions", {})}
    rest["twin"] = [
        use(admin, "survey_twin", {"type": kind, "measure": "list", "show": list(shown)}) for kind, shown in twin.items()
    ]
    rest["calendar"], rest["profile"] = use(user, "calendar.get.v1", {}), use(user, "profile.get", {})
    return State(nodes, frozenset(links), memories, rest)


def _pages(read: Callable[[dict[str, Any]], dict[str, Any]], given: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    cursor: str | None = None
    while True:
        page = read({**given, "cursor": cursor})
        yield page
        cursor = page.get(name)
        if not cursor:
            return


def work(user: Client, goal: Goal, agent: str | None, patience: float) -> dict[str, Any]:
    """Give a goal as a task and wait for its end. One that waits for a person, or takes too long, is cancelled.

    Returns:
        The task as it was when it ended; its status is `late` if it did not.

    Raises:
        StackError: it was not taken.
    """
    given = {"goal": goal.text, **({"agent": agent} if agent else {})}
    return user.await_task(user.call("POST", "/api/v1/tasks", json=given)["turn_id"], patience, 0.3)


def end_of(goal: Goal, task: Mapping[str, Any], before: State, after: State) -> End:
    """What became of a goal, from its task and what there was before and after it."""
    progress = task.get("progress") or {}
    report = progress.get("report") or {}
    problems = [one for one in (task.get("problem"), progress.get("stopped")) if one]
    rows = (row for chart in report.get("charts", ()) for row in chart.get("data", ()))
    return End(
        goal=goal.text,
        status=str(task["status"]),
        problem="; ".join(f"{one['code']}: {one.get('detail', '')}" for one in problems),
        text="\n".join(str(report[name]) for name in ("title", "text") if report.get(name)),
        rows=tuple(row for row in rows if isinstance(row, dict)),
        score=progress.get("score"),
        before=before,
        after=after,
    )


def run(world: World, where: stack.Stack, goals: Sequence[Goal], given: argparse.Namespace) -> Iterator[Record]:
    """Give some goals one after the other, each by a new user; a tenant serves until something in it was changed.

    Raises:
        StackError: the world could not be loaded.
    """
    key: str | None = None
    twin = {kind: [name for name in rows[0] if name.islower()] for kind, rows in world.tables.items()}
    for goal in goals:
        if key is None:
            with TemporaryDirectory(prefix="phronesis-strangers-") as folder:
                key = world.load(where, Path(folder))
        began = time.monotonic()
        with Client(where.url, key) as admin, admin.user(f"stranger-{uuid4().hex[:10]}", "admin") as user:
            world.tell(user)
            before = after = state_of(admin, user, twin)
            try:
                task = work(user, goal, given.agent, given.patience)
                after = state_of(admin, user, twin)
                end = end_of(goal, task, before, after)
            except StackError as exc:
                end = End(goal.text, "error", problem=str(exc), before=before, after=after)
        if before.changes(after):
            key = None
        record = Record(goal, end, judge(goal, end, world), time.monotonic() - began)
        print(f"{goal.id} {'right' if record.verdict.right else 'not right'} {end.status}", file=sys.stderr, flush=True)
        yield record


def table(records: Sequence[Record]) -> str:
    """The figures, and what came back for each goal that was not right."""
    kinds = {kind: [record for record in records if record.goal.kind == kind] for kind in KINDS}
    right = {kind: sum(record.verdict.right for record in some) for kind, some in kinds.items()}
    done = [record for record in records if record.end.status == "completed" and not record.verdict.right]
    bad = sum(record.end.status == "completed" for record in kinds["outside"])
    waited = sum(record.end.status == "waiting" for record in kinds["outside"])
    changed = sum(bool(record.end.before.changes(record.end.after)) for record in kinds["outside"])
    high = sum(record.end.score is not None and record.end.score > LOW_SCORE for record in done)
    lines = [
        "| what | goals | of |",
        "| --- | ---: | ---: |",
        f"| within: accepted | {right['within']} | {len(kinds['within'])} |",
        f"| near: right | {right['near']} | {len(kinds['near'])} |",
        f"| outside: completed | {bad} | {len(kinds['outside'])} |",
        f"| outside: waited for a person | {waited} | {len(kinds['outside'])} |",
        f"| outside: something changed | {changed} | {len(kinds['outside'])} |",
        f"| wrong deliverables with a score above {LOW_SCORE} | {high} | {len(done)} |",
    ]
    for record in records:
        if not record.verdict.right:
            score = "" if record.end.score is None else f", score {record.end.score:.2f}"
            lines += ["", f"{record.goal.id} {record.end.status}{score}: {_short(record.goal.text)}"]
            lines.append(f"  why: {_short('; '.join(record.verdict.why), 300)}")
            lines.append(f"  got: {_short(record.end.problem or record.end.text or 'nothing', 300)}")
    return "\n".join(lines)


def chosen(goals: Sequence[Goal], given: argparse.Namespace) -> list[Goal]:
    """The goals that are asked for; with a limit, some of each kind in turn."""
    some = [goal for goal in goals if (not given.kind or goal.kind in given.kind) and (not given.id or goal.id in given.id)]
    if not given.limit:
        return some
    place = {goal.id: at for kind in KINDS for at, goal in enumerate(one for one in some if one.kind == kind)}
    return sorted(some, key=lambda goal: (place[goal.id], KINDS.index(goal.kind)))[: given.limit]


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module; the exit status: 0 if everything ran, whatever became of it."""
    parser = argparse.ArgumentParser(prog="python -m evals.strangers", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--set", default=FOLDER.name, help=f"folder of the world and the goals in evals/sets ({FOLDER.name})")
    parser.add_argument("--url", help="address of a gateway; the local stack's by default")
    parser.add_argument("--key", help="a key of it that may make keys for new tenants")
    parser.add_argument("--data", type=Path, help="data directory of a local stack; ~/.phronesis by default")
    parser.add_argument("--own", action="store_true", help="start a stack in a temporary directory, and stop it afterwards")
    parser.add_argument("--agent", help="whose tools the tasks use; the server's default where none is named")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this kind; may be given again")
    parser.add_argument("--id", action="append", help="only the goal of this id; may be given again")
    parser.add_argument("--limit", type=int, help="goals at most, some of each kind")
    parser.add_argument("--workers", type=int, default=1, help="tenants that are worked in at a time (1)")
    parser.add_argument("--patience", type=float, default=180.0, help="seconds that a task may take (180)")
    parser.add_argument("--json", type=Path, help="file for everything that came back")
    given = parser.parse_args(arguments)
    folder = SETS / given.set
    if not (folder / "goals.yaml").is_file() or not (folder / "world.yaml").is_file():
        parser.error(f"{given.set}: no such set; a set has a world.yaml and a goals.yaml")
    world = World(folder)
    goals = chosen(world.goals, given)
    lanes = [goals[at :: given.workers] for at in range(given.workers)]
    try:
        with TemporaryDirectory(prefix="phronesis-strangers-") as data, ThreadPoolExecutor(given.workers) as pool:
            if given.own:
                with stack.running(Path(data)) as where:
                    found = list(pool.map(lambda lane: list(run(world, where, lane, given)), lanes))
            else:
                where = stack.find(given.url, given.key, given.data)
                found = list(pool.map(lambda lane: list(run(world, where, lane, given)), lanes))
    except (StackError, OSError) as exc:
        print(exc, file=sys.stderr)
        return 1
    order = {goal.id: at for at, goal in enumerate(world.goals)}
    records = sorted((record for some in found for record in some), key=lambda record: order[record.goal.id])
    print(table(records))
    if given.json:
        told = [record.told() for record in records]
        given.json.write_text(json.dumps(told, indent=1, ensure_ascii=False, default=str) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
