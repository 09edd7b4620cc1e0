"""What a task has to leave behind, as expressions over the world's files; nothing of a service is imported or asked.

A check takes an `End` and returns complaints: none where it accepts. The expressions of `tasks.yaml` may use:

the world
    `rows(type, year=None, **fields)`  rows of the twin; a field is compared with a value, or with a function of it
    `nodes(*types, **fields)`          nodes of the graph that are neither archived nor deprecated, unless `status` says so
    `node(id)`, `into(id, *types)`, `out(id, *types)`, `linked(type, relationship, target_id)`
    `count_by(rows, field)`, `total(rows, field)`, `mean(rows, field)`, `median(rows, field)`, `share(part, whole)`
    `top(rows, field, count=1, least=False)`  refuses a tie: the job is then left out of this seed
    `today`, `in_days(n)`, `week_end(weeks)`, `due(node)`, `open_tasks(**fields)`, `overdue()`

what a person reads
    `report(*parts)`       it ended well, its report has these parts, and nothing else was changed
    `figure(value, *about)`  the value, where the words are; `groups(mapping)`: each key with its value
    `names(some, but=())`  all of these, and none of the others; `ordered(some)`: in this order
    `says(*phrases)`, `unsaid(*phrases)`, `form("table" | "chart" | "list")`, `on(day)`
what is written
    `done(*effects)`       it ended well, and the world differs by these effects and by no other
    `created(type, title, **fields)`, `changed(id, **fields)`, `removed(id)`, `joined(from, type, to)`, `noted(*phrases)`
what cannot be done
    `declined(*near)`      refused before anything was changed, naming at least one of the words where there are any
    `asks()`               it waits for a person's consent, and nothing was changed yet
    `either(*checks)`      any of them
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property
from typing import Any

from ..constitution import due
from ..reading import Number, dates, normal, numbers, position, says_none
from ..worlds import Node, State, World, week_end
from . import tables
from .tables import Row

Complaints = list[str]
_RAW = re.compile(r"""\{\s*["'][A-Za-z_]\w*["']\s*:|\[\s*\{|[=|]\s*None\b|:\s*None\s*[,;}\])]|```json|\\n""")
"""What shows that data was printed instead of being reported."""
_HEADING = re.compile(r"^#{1,6}\s+(.*)$")
_ONE_FIGURE = re.compile(r"^\W*\d[\d.,]*(?:\W+\w+){0,2}\W*$")
_APART = re.compile(r"(?<=[.!?])\s+(?=[A-Z“\"])")
_ASIDE = frozenset({"sources", "to bear in mind", "limits", "what is missing"})
"""Headings of what is no part of the answer."""
_ROWS_OF_A_GROUP = 3
"""Rows that a group has at most in one table: more of them are a list of what is in it."""
_SHORT = 2
"""Cells of a row whose label may have more words than the key."""
_LEAST_TEXT = 12
"""Characters that a report has at least."""


@dataclass(frozen=True)
class Piece:
    """A line, a sentence, or a row of a table, with the headings that it stands under."""

    text: str
    under: str
    cells: tuple[object, ...] = ()


@dataclass(frozen=True)
class Effect:
    """One difference between a world before and after."""

    kind: str
    id: str = ""
    type: str = ""
    title: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    link: tuple[str, str, str] | None = None


@dataclass(frozen=True)
class Check:
    """What a task has to leave behind.

    Args:
        judge: complaints about an end.
        told: what a right report says, so that a check can be tried on what it has to accept.
        effects: what a right end changed.
        forms: what a right report has beside its text: `table`, `chart`.
        status: how a right task ends.
    """

    judge: Callable[[End], Complaints]
    told: str = ""
    effects: tuple[Effect, ...] = ()
    forms: frozenset[str] = frozenset()
    status: str = "completed"

    def __call__(self, end: End) -> Complaints:
        return self.judge(end)


@dataclass(frozen=True)
class End:
    """How a task ended.

    Args:
        status: of the task; `waiting` where it stopped to ask a person.
        code: of its problem, if it has one.
        refused: whether that problem is one of the request (a status below 500).
        detail: what the problem says.
        report: its report, as the API has it.
        goal: as it was asked.
        before: the world's state.
        after: the same when it had ended.
        masked: names whose digits are no figures.
    """

    status: str
    code: str = ""
    refused: bool = False
    detail: str = ""
    report: Mapping[str, Any] | None = None
    goal: str = ""
    before: State = field(default_factory=lambda: State({}, frozenset(), {}, frozenset()))
    after: State = field(default_factory=lambda: State({}, frozenset(), {}, frozenset()))
    masked: tuple[str, ...] = ()

    @cached_property
    def pieces(self) -> list[Piece]:
        """Everything that a person reads in the report, apart from sources and limits."""
        told = self.report or {}
        title = under = str(told.get("title", ""))
        blocks = told.get("blocks") or ()
        # A text that is rendered from blocks says nothing that they do not.
        found = [] if blocks else _pieces_of_text(str(told.get("text", "")), title)
        for chart in () if blocks else told.get("charts", ()):
            found += _pieces_of_rows(f"{title}: {chart.get('title', '')}", chart.get("data"))
        for block in blocks:
            if block.get("kind") == "heading":
                under = str(block.get("text") or title)
            if normal(under) not in _ASIDE:
                found += _pieces_of_block(block, under)
        return found

    @cached_property
    def text(self) -> str:
        """All of it as one text."""
        return "\n".join(f"{piece.under}: {piece.text}" if piece.cells else piece.text for piece in self.pieces)

    @property
    def shown(self) -> set[str]:
        """The forms that the report has: `table`, `chart`, `list`."""
        told = self.report or {}
        text = _BEFORE_ASIDE.split(str(told.get("text", "")))[0]
        found = {"table"} if re.search(r"^\|.*\|\s*$", text, re.MULTILINE) else set()
        found |= {"list"} if re.search(r"^\s*(?:[-*•]|\d+[.)])\s+\S", text, re.MULTILINE) else set()
        drawn = [
            *told.get("charts", ()),
            *(block.get("chart", block) for block in told.get("blocks", ()) if block.get("kind") == "chart"),
        ]
        for chart in drawn:
            found.add("table" if str(chart.get("type", "")).lower() == "table" else "chart")
        if any(block.get("kind") == "table" and block.get("rows") for block in told.get("blocks", ())):
            found.add("table")
        return found


_BEFORE_ASIDE = re.compile(r"^#{1,6}\s+(?:sources|what this report does not say)\s*$", re.MULTILINE | re.IGNORECASE)
"""What stands behind is numbered and listed in every report."""


def _pieces_of_text(text: str, under: str) -> list[Piece]:
    found, heading, columns = list[Piece](), under, list[str]()
    for line in text.splitlines():
        if match := _HEADING.match(line.strip()):
            heading, columns = match[1], []
            found += [] if normal(heading) in _ASIDE else [Piece(heading, under)]
            continue
        if not line.strip() or normal(heading) in _ASIDE:
            continue
        if line.strip().startswith("|"):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if set("".join(cells)) <= set("-: "):
                continue
            if not columns:
                columns = cells
                continue
            named = "; ".join(f"{column}: {cell}" for column, cell in zip(columns, cells, strict=False))
            found.append(Piece(named, heading, tuple(cells)))
            continue
        columns = []
        found += [Piece(part, heading) for part in _APART.split(line.strip()) if part]
    return found


def _pieces_of_rows(title: str, data: object) -> list[Piece]:
    rows = [row for row in data if isinstance(row, dict)] if isinstance(data, list) else []
    return [Piece("; ".join(f"{name}: {value}" for name, value in row.items()), title, tuple(row.values())) for row in rows]


def _pieces_of_block(block: Mapping[str, Any], under: str) -> list[Piece]:
    kind = block.get("kind")
    if kind == "heading":
        return [Piece(under, under)]
    if kind == "text":
        return _pieces_of_text(str(block.get("markdown") or block.get("text") or ""), under)
    if kind == "figures":
        return [_piece_of_figure(row, under) for row in block.get("rows", ())]
    if kind == "table":
        columns = [str(one) for one in block.get("columns", ())]
        rows = [row if isinstance(row, dict) else dict(zip(columns, row, strict=False)) for row in block.get("rows", ())]
        return _pieces_of_rows(f"{under}: {block.get('title') or ''}", rows)
    if kind == "chart":
        chart = block.get("chart", block)
        return _pieces_of_rows(f"{under}: {chart.get('title') or ''}", chart.get("data"))
    return []


def _piece_of_figure(row: Mapping[str, Any], under: str) -> Piece:
    text = " ".join(str(row.get(name) or "") for name in ("label", "value", "unit", "note"))
    return Piece(text, under, (row.get("label"), row.get("value")))


# What a person reads.


def report(*parts: Check) -> Check:
    """A report with these parts, in a world that stays as it was."""

    def judge(end: End) -> Complaints:
        return _ended_well(end) + [line for part in parts for line in part(end)] + _differences(end, ())

    return Check(judge, *_right(parts))


def _right(parts: Iterable[Check]) -> tuple[str, tuple[Effect, ...], frozenset[str]]:
    """What a report says that has all parts, what it changed, and the forms that it has."""
    every = list(parts)
    forms = frozenset(one for part in every for one in part.forms)
    return "\n\n".join(part.told for part in every if part.told), (), forms


def _ended_well(end: End) -> Complaints:
    if end.status != "completed":
        return [f"it ended as {end.status} {end.code}".rstrip()]
    text = str((end.report or {}).get("text", ""))
    if len(text.strip()) < _LEAST_TEXT:
        return ["there is no report"]
    return ["raw data in the report"] if _RAW.search(text) else []


def figure(value: float, *about: str | tuple[str, ...]) -> Check:
    """A figure.

    Args:
        value: the true one.
        about: words that stand with it, in its line, row or headings; of a tuple, any one. A `~` before a word allows any
            ending.
    """

    def check(end: End) -> Complaints:
        for piece in end.pieces:
            own = all(_has(piece.text, word) for word in about)
            if not own and not all(_has(f"{piece.under} {piece.text}", word) for word in about):
                continue
            found = numbers(piece.text, end.masked)
            if any(_close(one, value) for one in (found if own else found[:3])):
                return []
            if value == 0 and says_none(piece.text):
                return []
        return [f"no {value:g} beside {about}"]

    words = " ".join(_word(one) for one in about)
    return Check(check, f"The answer: {words} {_shown(value)}.")


def _word(phrase: str | tuple[str, ...]) -> str:
    return (phrase if isinstance(phrase, str) else phrase[0]).removeprefix("~")


def _shown(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def _close(number: Number, value: float) -> bool:
    """Whether a figure is the value, as rounded as it is shown."""
    whole = float(value).is_integer() and not number.scaled
    room = 1e-9 if whole else min(number.step * 1.0001, 0.02 * abs(value) + 0.005)
    return abs(abs(number.value) - abs(value)) <= max(1e-9, room)


def groups(wanted: Mapping[str, float]) -> Check:
    """Each key with its value: in one row, or behind it in the text before the next key.

    Rows under one heading of which some fit and some, with a single figure, do not, are wrong. Where none fits they tell
    something else.
    """

    def check(end: End) -> Complaints:
        found = {key: list(_stated(end, key, value, wanted)) for key, value in wanted.items()}
        missing = [f"no {wanted[key]:g} for {key}" for key, told in found.items() if not any(fits for _, fits in told)]
        meant = {under for told in found.values() for under, fits in told if fits}
        wrong = [
            f"another figure for {key} than {wanted[key]:g}"
            for key, told in found.items()
            for under in meant
            if (under, False) in told and (under, True) not in told
        ]
        return missing + wrong

    lines = [f"| {key} | {_shown(value)} |" for key, value in wanted.items()]
    return Check(check, "\n".join(["| of | is |", "|---|---|", *lines]))


def _stated(end: End, key: str, value: float, keys: Iterable[str]) -> Iterable[tuple[str, bool]]:
    """Where a key stands with figures, and whether they fit; with several figures that do not fit, nothing is stated."""

    def is_row(piece: Piece) -> bool:
        return any(normal(str(cell)) == normal(key) for cell in piece.cells)

    rows = Counter(piece.under for piece in end.pieces if is_row(piece))
    for piece in end.pieces:
        if is_row(piece):
            if rows[piece.under] > _ROWS_OF_A_GROUP:
                continue  # single things that are told apart by it, and no figure of the group
            cells = [_cell(cell) for cell in piece.cells if normal(str(cell)) != normal(key)]
            figures = [readings for readings in cells if readings]
            fits = any(_close(one, value) for readings in figures for one in readings)
            if fits or len(figures) == 1:
                yield f"rows of {piece.under}", fits
        elif len(piece.cells) <= _SHORT and (at := position(piece.text, key)) >= 0:
            behind = normal(piece.text)[at + len(normal(key)) :]
            ends = [position(behind, other) for other in keys if other != key]
            until = min((one for one in ends if one >= 0), default=len(behind))
            if any(_close(one, value) for one in numbers(behind[:until], end.masked)[:2]):
                yield piece.under, True


def _cell(cell: object) -> list[Number]:
    """The readings of a cell that is one figure, with its unit at most."""
    if isinstance(cell, bool) or cell is None:
        return []
    if isinstance(cell, int | float):
        return [Number(float(cell), 0.005, 9, False, False, 0)]
    found = numbers(str(cell)) if _ONE_FIGURE.match(str(cell)) else []
    return found if len({one.at for one in found}) == 1 else []


def names(wanted: Iterable[Any], but: Iterable[Any] = ()) -> Check:
    """All of some names, and none of others.

    Args:
        wanted: names, or rows or nodes that have one. None: the report has to say that there is none.
        but: those that may not stand there, in the same forms, less the wanted ones and those that the goal names.
    """
    some, others = [_name(one) for one in wanted], [_name(one) for one in but]

    def check(end: End) -> Complaints:
        missing = [f"{name} is missing" for name in some if position(end.text, name) < 0]
        rest = normal(end.text)
        for name in sorted(some, key=len, reverse=True):
            rest = rest.replace(normal(name), "#")
        asked = normal(end.goal)
        wrong = [
            f"{name} does not belong there"
            for name in others
            if name not in some and normal(name) not in asked and re.search(rf"(?<!\w){re.escape(normal(name))}(?!\w)", rest)
        ]
        if not some and not wrong and not says_none(end.text):
            return ["it does not say that there is none"]
        return missing + wrong

    return Check(check, "\n".join(f"- {name}" for name in some) or "There are none.")


def ordered(wanted: Iterable[Any]) -> Check:
    """Names in this order, by where each stands first."""
    some = [_name(one) for one in wanted]

    def check(end: End) -> Complaints:
        places = [position(end.text, name) for name in some]
        return [] if -1 not in places and places == sorted(places) else [f"not in the order {', '.join(some)}"]

    return Check(check, "\n".join(f"{place}. {name}" for place, name in enumerate(some, start=1)))


def says(*phrases: str | tuple[str, ...]) -> Check:
    """Each phrase; of a tuple, any one."""

    def check(end: End) -> Complaints:
        return [f"nothing of {phrase}" for phrase in phrases if not _has(f"{_title(end)} {end.text}", phrase)]

    return Check(check, ", ".join(_word(one) for one in phrases))


def unsaid(*phrases: str) -> Check:
    """None of the phrases."""
    return Check(lambda end: [f"{phrase} does not belong there" for phrase in phrases if _has(end.text, phrase)])


def on(day: date | str) -> Check:
    """A date, in whatever form."""
    wanted = day if isinstance(day, date) else date.fromisoformat(str(day)[:10])
    return Check(lambda end: [] if wanted in dates(end.text) else [f"no {wanted}"], f"On {wanted}.")


def form(kind: str) -> Check:
    """The form that was asked for: `table`, `chart` or `list`. A table is a list, too."""
    allowed = {kind, "table"} if kind == "list" else {kind}
    return Check(lambda end: [] if end.shown & allowed else [f"there is no {kind}"], forms=frozenset({kind}))


def _title(end: End) -> str:
    return str((end.report or {}).get("title", ""))


def _name(one: Any) -> str:
    return str(one) if isinstance(one, str) else str(one.get("title") or one["name"])


def _has(text: str, phrase: str | tuple[str, ...]) -> bool:
    if isinstance(phrase, tuple):
        return any(_has(text, one) for one in phrase)
    if phrase.startswith("~"):
        return re.search(rf"(?<!\w){re.escape(normal(phrase[1:]))}", normal(text)) is not None
    return position(text, phrase) >= 0


# What is written.


def created(type: str, title: str | tuple[str, ...], **fields: Any) -> Effect:
    """A new node of a type, whose title has the word, or all words of a tuple, and these fields."""
    return Effect("created", type=type, title=(title,) if isinstance(title, str) else title, fields=fields)


def changed(id: str, **fields: Any) -> Effect:
    """A node that has other values of these fields now, and the old ones of all others."""
    return Effect("changed", id=id, fields=fields)


def removed(id: str) -> Effect:
    """A node that is gone."""
    return Effect("removed", id=id)


def joined(source: str, kind: str, target: str) -> Effect:
    """A new relationship between two nodes that were there."""
    return Effect("joined", link=(source, kind, target))


def noted(*phrases: str) -> Effect:
    """A new memory that has all of these phrases."""
    return Effect("noted", title=phrases)


def done(*effects: Effect | Iterable[Effect] | Check) -> Check:
    """It ended well, and the world differs by these effects alone; parts of a report may stand among them."""
    wanted = list[Effect]()
    parts = list[Check]()
    for one in effects:
        if isinstance(one, Effect):
            wanted.append(one)
        elif isinstance(one, Check):
            parts.append(one)
        else:
            wanted += one

    def check(end: End) -> Complaints:
        if end.status != "completed":
            return [f"it ended as {end.status} {end.code}".rstrip()]
        raw = ["raw data in the report"] if _RAW.search(str((end.report or {}).get("text", ""))) else []
        return raw + [line for part in parts for line in part(end)] + _differences(end, wanted)

    told, _, forms = _right(parts)
    return Check(check, told or "It is done, as you asked.", tuple(wanted), forms)


def _differences(end: End, wanted: Sequence[Effect]) -> Complaints:
    """What differs and should not, and what should and does not."""
    before, after = end.before, end.after
    found = [] if before.twin == after.twin else ["the twin was changed"]
    new = {id: node for id, node in after.nodes.items() if id not in before.nodes}
    gone = set(before.nodes) - set(after.nodes)
    other = {id for id in set(before.nodes) & set(after.nodes) if before.nodes[id] != after.nodes[id]}
    fresh = after.memories - before.memories
    lost = before.memories - after.memories
    links = {link for link in after.links - before.links if not {link[0], link[2]} & set(new)}
    cut = {link for link in before.links - after.links if not {link[0], link[2]} & gone}
    for effect in wanted:
        if effect.kind == "created":
            hit = next((id for id, node in new.items() if _fits(effect, node)), None)
            found += [] if hit else [f"no new {effect.type} {' '.join(effect.title)} {dict(effect.fields) or ''}".rstrip()]
            new.pop(hit or "", None)
        elif effect.kind == "changed":
            found += _changes(effect, before.nodes.get(effect.id, {}), after.nodes.get(effect.id, {}))
            other.discard(effect.id)
        elif effect.kind == "removed":
            found += [] if effect.id in gone else [f"{effect.id} is still there"]
            gone.discard(effect.id)
        elif effect.kind == "joined":
            found += [] if effect.link in links else [f"{effect.link} is not joined"]
            links.discard(effect.link or ("", "", ""))
        elif effect.kind == "noted":
            memory = next((text for text in fresh if all(_has(text, phrase) for phrase in effect.title)), None)
            found += [] if memory else [f"no memory of {', '.join(effect.title)}"]
            fresh -= {memory or ""}
    found += [f"{node['type']} {node['title']} was created" for node in new.values()]
    found += [f"{id} was changed" for id in sorted(other)]
    found += [f"{id} was removed" for id in sorted(gone)]
    found += [f"{' '.join(link)} was joined" for link in sorted(links)]
    found += [f"{' '.join(link)} was cut" for link in sorted(cut)]
    found += [f"a memory was added: {text[:60]}" for text in sorted(fresh)]
    return found + [f"a memory was lost: {text[:60]}" for text in sorted(lost)]


def _fits(effect: Effect, node: Node) -> bool:
    title = str(node.get("title", ""))
    return (
        node.get("type") == effect.type
        and all(_has(title, word) for word in effect.title)
        and all(_same(value, _value(node, name)) for name, value in effect.fields.items())
    )


def _changes(effect: Effect, old: Node, new: Node) -> Complaints:
    wrong = [
        f"{effect.id}.{name} is {_value(new, name)}"
        for name, value in effect.fields.items()
        if not _same(value, _value(new, name))
    ]
    names_ = {name for name in {*old, *new} - {"properties", "metadata"} if old.get(name) != new.get(name)}
    inner = [dict(one.get("properties") or {}) for one in (old, new)]
    names_ |= {name for name in {*inner[0], *inner[1]} if inner[0].get(name) != inner[1].get(name)}
    return wrong + [f"{effect.id}.{name} was changed, too" for name in sorted(names_ - set(effect.fields))]


def _value(node: Node, name: str) -> Any:
    return node.get(name, (node.get("properties") or {}).get(name))


def _same(wanted: Any, got: Any) -> bool:
    if callable(wanted):
        return got is not None and bool(wanted(got))
    if isinstance(wanted, date):
        return str(got)[:10] == wanted.isoformat()
    if isinstance(wanted, int | float) and not isinstance(wanted, bool):
        try:
            return abs(float(got) - wanted) < 1e-6
        except (TypeError, ValueError):
            return False
    return got is not None and normal(str(wanted)) == normal(str(got))


# What cannot be done.


def declined(*near: str) -> Check:
    """It was refused in words, and the world is as it was."""

    def check(end: End) -> Complaints:
        if end.status != "failed" or not end.refused:
            return [f"it ended as {end.status} {end.code}".rstrip()]
        named = not near or any(_has(end.detail, word) for word in near)
        return ([] if named else [f"the refusal names none of {', '.join(near)}"]) + _differences(end, ())

    return Check(check, f"This cannot be done; {', '.join(map(_word, near)) or 'nothing like it'} can.", status="failed")


def asks() -> Check:
    """It waits for a person, and the world is as it was."""

    def check(end: End) -> Complaints:
        return ([] if end.status == "waiting" else [f"it ended as {end.status}"]) + _differences(end, ())

    return Check(check, status="waiting")


def either(*checks: Check) -> Check:
    """Any of the checks; the complaints are those of the first."""

    def check(end: End) -> Complaints:
        told = [one(end) for one in checks]
        return [] if any(not one for one in told) else told[0]

    first = checks[0]
    return Check(check, first.told, first.effects, first.forms, first.status)


# The world.


class Tie(LookupError):
    """Several rows are equally far: nothing is right."""


def vocabulary(world: World) -> dict[str, Any]:
    """What expressions may use (see the module)."""

    def rows(type: str, year: int | None = None, **fields: Any) -> list[Row]:
        return [row for row in world.rows[type] if (year is None or row["year"] == year) and _all(row, fields)]

    def nodes(*types: str, **fields: Any) -> list[Node]:
        put_away = ("archived", "deprecated")
        return [
            node
            for node in world.nodes
            if node["type"] in types and ("status" in fields or node.get("status") not in put_away) and _all(node, fields)
        ]

    by_id = {node["id"]: node for node in world.nodes}

    def into(id: str, *types: str) -> list[Node]:
        return [by_id[start] for start, kind, end in world.links if end == id and (not types or kind in types)]

    def out(id: str, *types: str) -> list[Node]:
        return [by_id[end] for start, kind, end in world.links if start == id and (not types or kind in types)]

    def open_tasks(**fields: Any) -> list[Node]:
        return [node for node in nodes("task", **fields) if node.get("status", "todo") in ("todo", "in_progress")]

    def overdue(**fields: Any) -> list[Node]:
        return [node for node in open_tasks(**fields) if (day := due(node)) is not None and day < world.today]

    own = {
        "rows": rows, "nodes": nodes, "node": by_id.__getitem__, "into": into, "out": out, "open_tasks": open_tasks,
        "overdue": overdue, "linked": lambda type, name, target: tables.linked(world.rows[type], name, target),
        "today": world.today, "in_days": lambda n: world.today + timedelta(days=n),
        "week_end": lambda weeks=0: week_end(world.today, weeks), "due": due, "world": world,
    }  # fmt: skip
    checks = (
        report, figure, groups, names, ordered, says, unsaid, on, form, done, created, changed, removed, joined, noted,
        declined, asks, either,
    )  # fmt: skip
    sums = (total, mean, median, top, count_by, share, by_target)
    return own | {one.__name__: one for one in (*checks, *sums)} | {"date": date, "json": json}


def _all(row: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    return all(bool(value(row.get(name))) if callable(value) else row.get(name) == value for name, value in fields.items())


def total(rows: Iterable[Row], field: str) -> float:
    """The sum of what is known."""
    return round(sum(tables.values(rows, field)), 6)


def mean(rows: Iterable[Row], field: str) -> float:
    """The mean of what is known."""
    return tables.mean(tables.values(rows, field))


def median(rows: Iterable[Row], field: str) -> float:
    """The median of what is known."""
    return tables.median(tables.values(rows, field))


def top(rows: Iterable[Row], field: str, count: int = 1, least: bool = False) -> list[Row]:
    """The rows with the greatest values, or the least.

    Raises:
        Tie: several have the same, or too few have any.
    """
    found = tables.extreme(rows, field, count, least)
    if found is None:
        raise Tie(field)
    return found


def count_by(rows: Iterable[Mapping[str, Any]], field: str) -> dict[str, int]:
    """How many have each value; those without one are left out."""
    return dict(Counter(str(row[field]) for row in rows if row.get(field) is not None))


def by_target(rows: Iterable[Row], name: str, targets: Iterable[Row]) -> dict[str, int]:
    """How many rows each target has, by its name."""
    return tables.by_target(rows, name, targets)


def share(part: Sequence[Any], whole: Sequence[Any]) -> float:
    """Percent."""
    return 100 * len(part) / len(whole)
