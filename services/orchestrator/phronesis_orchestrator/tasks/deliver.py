"""What a task delivers by rules: what is asked before it is planned, the report on what was found, and how that is judged."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

from pydantic import ValidationError

from phronesis_contracts import Message, Principal, Risk, Rpc, ServiceError, Tool
from phronesis_contracts.agents import AnswerSource
from phronesis_contracts.answers import Visualization, VisualizationType
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.constitution.lists import GET_NODE_TOOL
from phronesis_contracts.memory import RECALL_TOOL, ItemKind, Recall, Recalled
from phronesis_contracts.messages import In, Out_
from phronesis_contracts.tasks import (
    MAX_BLOCKS,
    Cell,
    ChartBlock,
    FigureRow,
    FiguresBlock,
    HeadingBlock,
    LimitsBlock,
    ReportBlock,
    TableBlock,
    TextBlock,
)
from phronesis_contracts.twin import MAX_ROWS, SURVEY_TOOL

from ..agents.binding import Origins
from ..agents.counsel.reading import Record, read_record, spaced, vocabulary_of
from ..agents.counsel.tools import TurnTools
from ..agents.tools import may_read
from ..models.reasoner import TurnContext
from ..turns.execution import TurnRun
from ..turns.ports import Neighbours
from ..understanding.language import detect, fold
from ..understanding.lexicon import Lexicon
from ..understanding.plan import DATA_PLANS, NO_FOCUS, Schema, Understood
from ..understanding.planner import understand
from ..understanding.reader import TwinReader
from .ports import (
    Ask,
    Caller,
    Criticism,
    FoundThing,
    GoalKnowledge,
    Plan,
    QuestionAnswer,
    Step,
    StepResult,
    ToolResult,
    WrittenReport,
    is_number,
)
from .report import column, line
from .runner import ASKED, QuestionDesk, ReadingNeighbours, plain_cell

Row = dict[str, Any]
STORED = (ItemKind.FACT, ItemKind.NOTE, ItemKind.CONCEPT)
"""Kinds of what people keep in memory."""


class KeptReads(ReadingNeighbours):
    """The other services while a goal is planned: what was read once is not read again. What is read decides nothing but
    whether words are known, so that it is not noted as the origin of what is done.
    """

    def __init__(self, neighbours: Neighbours) -> None:
        super().__init__(neighbours, Origins())
        self._kept: dict[tuple[str, str], Message] = {}

    async def ask(self, who: Principal, rpc: Rpc[In, Out_], request: In, *, key: str | None = None) -> Out_:
        place = (rpc.subject, request.model_dump_json())
        if place not in self._kept:
            found = await super().ask(who, rpc, request, key=key)
            self._kept[place] = found
        return cast("Out_", self._kept[place])


class Asker:
    """Asks, before a plan is made, what its steps will ask.

    Args:
        desk: who answers.
        reads: tools that rules read with, by name.
    """

    def __init__(self, running: TurnRun, turn: TurnContext, desk: QuestionDesk, reads: Mapping[str, Tool[Any, Any]]) -> None:
        self._kept = KeptReads(running.neighbours)
        self._running = replace(running, neighbours=self._kept, origins=Origins())
        self._turn, self._desk, self._reads = turn, desk, reads
        self._record: Record | None = None

    @property
    def away(self) -> ServiceError | None:
        """The last error of a service that may be back in a moment; what it has is then missing from the answers."""
        return self._kept.away

    async def ask(self, text: str) -> tuple[QuestionAnswer | None, tuple[str, ...]]:
        """The answer to a question, and the words that nothing explains. Raises `ServiceError`."""
        if not text.strip():
            return None, ()
        try:
            answer, words = await self._desk.look(self._running, text)
        except ValidationError:
            return None, (text,)  # it is no question that the tools behind it take
        return answer, tuple(words)

    async def recall(self, query: str) -> Recalled:
        """What memory holds that is near to a text. Raises `ServiceError`."""
        return await self._running.neighbours.ask(
            self._running.claim.who, RECALL_TOOL.rpc, Recall(query=query, limit=20, kinds=STORED)
        )

    async def lexicon(self, text: str) -> Lexicon | None:
        """The words of the data; `None` where there is none for the caller, or the agent does not answer from it."""
        if self._running.vocabularies is None or not may_read(self._turn.agent, AnswerSource.TWIN):
            return None
        return await self._running.vocabularies.lexicon(self._running.claim.who, detect(text))

    async def understood(self, text: str) -> Understood | None:
        """How a question is understood as one about the data; `None` where a word of it is not."""
        lexicon = await self.lexicon(text)
        if lexicon is None:
            return None
        found = await asyncio.to_thread(understand, text, lexicon, NO_FOCUS, lexicon.language, personal=False)
        return found if isinstance(found.plan, DATA_PLANS) and not found.passed and not found.notes else None

    def twin(self, schema: Schema) -> TwinReader:
        """The data, as the caller may read it."""
        return TwinReader(self._running.neighbours, self._running.claim.who, schema)

    async def record(self) -> Record:
        """The graph of goals and work as the caller may read it; read once. Raises `ServiceError`."""
        if self._record is None:
            assert self._turn.agent is not None, "a task has an agent"
            desk = TurnTools(self._running, self._turn.agent)
            desk.tools = {**desk.tools, **self._reads}
            self._record = await read_record(desk, vocabulary_of(self._turn.user_text))
        return self._record


class Property(Message):
    """A property that a report looks at."""

    name: str
    label: str
    kind: str
    unit: str = ""
    choices: tuple[str, ...] = ()
    """The closed set of its values, in its order."""
    worst: tuple[str, ...] = ()
    """Of those, the last ones, where the ontology has a word for what stands last."""
    share: bool = False
    """Whether it is a mean that says something, and no sum."""


class SetReport(Message):
    """What a report over a set of the data is made from."""

    what: str
    """What its members are called."""
    years: tuple[int, ...]
    properties: tuple[Property, ...]
    filtered: bool
    """Whether it is a part of something, which it is held against."""


class FigureAsked(Message):
    """One of several figures that are asked of the same sets."""

    label: str
    property: str = ""
    """What it is of, as a person says it; empty for a number of things."""


class FiguresAsked(Message):
    """Several figures over sets of the data, told in one table."""

    figures: tuple[FigureAsked, ...]
    sets: tuple[str, ...]
    """What the sets are called that are told side by side; one empty name where there is one set."""
    groups: tuple[str, ...] = ()
    """What they are told by."""
    totals: bool = False
    """Whether a last row has the figures of all groups together: the last steps, one for each figure."""


class ListAsked(Message):
    """A list of things of the data with what they are joined to."""

    properties: tuple[tuple[str, str], ...]
    """Names of the properties that are told of each, with what their columns are called."""
    links: tuple[str, ...]
    """What the columns are called of what they are joined to."""
    grouped: bool = False
    """Whether things of the same kind stand together."""
    order: tuple[str, bool] | None = None
    """The property that they stand in the order of, and whether its greatest value comes first; by name where none is asked."""


class PartPlan(Message):
    """How one part of a goal is done."""

    said: str
    verb: str
    steps: tuple[str, ...]
    """Ids of its steps, the one that gives the result last."""
    formats: tuple[str, ...] = ()
    set: SetReport | None = None
    """Of a report over the data."""
    figures: FiguresAsked | None = None
    """Of several figures over the data: its steps are those of each set, in turn, one for each figure."""
    list: ListAsked | None = None
    """Of a list of things of the data: its steps are the list, and one for each column of what they are joined to."""
    report: bool = False
    writes: str = ""
    """The tool that it writes with; empty where it only reads."""
    recalls: tuple[str, ...] = ()
    """Words that are looked for in memory, where that is asked for."""
    goes_through: str = ""
    """The step that gives the set that it is done for, one by one."""


class GoalPlan(Message):
    """The plan to all parts of a goal."""

    language: str
    plan: Plan
    parts: tuple[PartPlan, ...]


Say = Callable[..., str]
"""A sentence of the goal's language by its name, with its values."""
Results = Mapping[str, ToolResult]
"""What the steps gave that ended well, by their ids."""


def write_goal_report(goal: GoalPlan, known: GoalKnowledge, checks: Mapping[str, bool], say: Say) -> WrittenReport:
    """The report on a goal that rules planned, part by part.

    Args:
        checks: by step, whether what it gave was so when it was read again.
    """
    given = {result.step.id: result.outcome for result in known.worked}
    limits: list[str] = []
    blocks: list[ReportBlock] = []
    for part in goal.parts:
        found, lacking = _part_blocks(part, known, given, checks, say)
        if len(goal.parts) > 1 or part.set is not None:
            blocks.append(HeadingBlock(text=_line(part.said, 300), level=2))
        blocks += found or [TextBlock(text=say("nothing_found", words=part.said))]
        limits += lacking
    lacks = LimitsBlock(items=tuple(dict.fromkeys([*limits, say("by_rules")]))[:100])
    used = tuple(result.step.id for result in known.worked if not result.step.optional or _adds(result))
    return WrittenReport(title=goal.plan.title or known.goal[:300], blocks=(*blocks[: MAX_BLOCKS - 2], lacks), used=used)


def _adds(looked: StepResult) -> bool:
    """Whether a step that only looked around found anything."""
    return bool((looked.outcome.answer or {}).get("items"))


def _line(text: str, most: int) -> str:
    plain = " ".join(text.split())
    plain = plain[:1].upper() + plain[1:]
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"


def _part_blocks(
    part: PartPlan, known: GoalKnowledge, given: Results, checks: Mapping[str, bool], say: Say
) -> tuple[list[ReportBlock], list[str]]:
    if part.set is not None:
        return _SetSections(part, part.set, given, say).blocks()
    if part.figures is not None:
        return _figure_blocks(part, part.figures, given, say)
    if part.list is not None:
        return _list_blocks(part, part.list, given, say)
    if part.writes:
        return _writing_blocks(part, known, given, checks, say)
    blocks: list[ReportBlock] = []
    limits: list[str] = []
    for id in part.steps:
        if id not in given:
            continue
        if part.recalls:
            blocks += _memory_blocks(part, given[id], say)
            continue
        answer = QuestionAnswer.model_validate(given[id].answer)
        if len(part.steps) > 1:
            step = next(result.step for result in known.worked if result.step.id == id)
            blocks.append(HeadingBlock(text=_line(step.description, 300), level=3))
        blocks += _answer_blocks(part, answer, say)
        limits += answer.notes if is_partial(answer) else ()
        limits += [say("not_on_record", property=one, words=part.said) for one in answer.lacking]
        limits += [say("left_out", property=one, words=part.said) for one in find_lacking(part, answer, say)]
    return blocks, limits


def _figure_blocks(part: PartPlan, about: FiguresAsked, given: Results, say: Say) -> tuple[list[ReportBlock], list[str]]:
    """A table with a row for each set and group, and a column for each figure; and of how many a figure is not known."""
    cells: dict[tuple[str, ...], dict[int, Cell]] = {}
    unknown: Counter[str] = Counter()
    ids = iter(part.steps)
    for name in about.sets:
        for at, one in enumerate(about.figures):
            found = given.get(next(ids))
            for row in (found.answer or {}).get("rows", ()) if found is not None else ():
                groups = (row.get("group"), row.get("group2"))[: len(about.groups)]
                key = (name, *(say("none_on_record") if value is None else str(value) for value in groups))
                value = row.get("value")
                cells.setdefault(key, {})[at] = round(value, 2) if isinstance(value, float) else value
                unknown[one.property] += int(row.get("unknown") or 0) if one.property else 0
    whole: dict[int, Cell] = {}
    for at, id in enumerate(ids if about.totals else ()):
        found = given.get(id)
        for row in (found.answer or {}).get("rows", ())[:1] if found is not None else ():
            whole[at] = round(row["value"], 2) if isinstance(row.get("value"), float) else row.get("value")
    several = len(about.sets) > 1
    rows = tuple(
        (*(key if several else key[1:]), *(of.get(at, None if one.property else 0) for at, one in enumerate(about.figures)))
        for key, of in cells.items()
    )
    if about.totals and rows:
        rest = (None,) * (len(about.groups) - 1)
        rows = (*rows, (say("figure_total"), *rest, *(whole.get(at) for at in range(len(about.figures)))))
    heads = (*([say("column_set")] if several else []), *about.groups)
    limits = [say("not_known_of", property=name, n=f"{n:,}") for name, n in unknown.items() if n]
    labels = tuple(one.label for one in about.figures)
    if not heads:
        values = rows[0] if rows else ()
        told = tuple(FigureRow(label=_line(one, 300), value=value) for one, value in zip(labels, values, strict=False))
        return [FiguresBlock(rows=told)], limits
    table = TableBlock(columns=tuple(_line(one, 100) for one in (*heads, *labels)), rows=rows)
    blocks: list[ReportBlock] = [table]
    if "chart" in part.formats and (place := chart_column(table)) is not None:
        x, y = table.columns[0], table.columns[place]
        shown = table.rows[: len(table.rows) - 1 if about.totals else None]
        drawn = [{x: str(row[0]), y: row[place]} for row in shown if is_number(row[place])]
        blocks.append(ChartBlock(chart=column(_line(part.said, 200), x, y, drawn)))
    return blocks, limits


def _list_blocks(part: PartPlan, about: ListAsked, given: Results, say: Say) -> tuple[list[ReportBlock], list[str]]:
    read = [list((given[id].answer or {}).get("rows", ())) if id in given else [] for id in part.steps]
    joined: list[dict[str, list[str]]] = []
    for rows in read[1:]:
        of: dict[str, list[str]] = defaultdict(list)
        for row in rows:
            of[str(row.get("group"))] += [str(row["group2"])] if row.get("group2") is not None else []
        joined.append(of)
    columns = (say("column_name"), *(label for _, label in about.properties), *about.links)
    if about.order is not None:
        name, falling = about.order
        known = [row for row in read[0] if row.get(name) is not None]
        unknown = [row for row in read[0] if row.get(name) is None]
        read[0] = sorted(known, key=lambda row: row[name], reverse=falling) + unknown
    cells = tuple(
        (
            str(row.get("name", "")),
            *(plain_cell(row.get(name)) for name, _ in about.properties),
            *(", ".join(dict.fromkeys(of.get(str(row["id"]), ()))) or None for of in joined),
        )
        for row in read[0]
    )
    if not cells:
        return [], []
    ordered = (
        sorted(cells, key=lambda row: (*(str(cell or "\uffff") for cell in row[:0:-1]), row[0])) if about.grouped else cells
    )
    return [TableBlock(columns=tuple(_line(one, 100) for one in columns), rows=tuple(ordered[:MAX_ROWS]))], []


def find_lacking(part: PartPlan, answer: QuestionAnswer, say: Say) -> list[str]:
    """What a question asks for and its part of the deliverable does not hold: in no column, no label and no sentence."""
    if answer.empty:
        return []
    blocks = _answer_blocks(part, answer, say)
    heads = [_stems(head) for block in blocks for head in _heads(block)]
    tabled = any(isinstance(block, TableBlock) for block in blocks)
    texts = [_stems(block.text) for block in blocks if isinstance(block, TextBlock)] if not tabled else []
    known = [*heads, *texts, *map(_stems, answer.lacking)]
    lost = [one.words for one in answer.asked if not any(_stems(label) <= held for label in one.labels for held in known)]
    return list(dict.fromkeys([*answer.left_out, *lost]))


def _heads(block: ReportBlock) -> Iterator[str]:
    match block:
        case TableBlock(columns=columns, rows=rows):
            yield from columns
            yield from (str(row[0]) for row in rows)
        case FiguresBlock(rows=figures):
            yield from (row.label for row in figures)
        case TextBlock(text=text):
            yield from text.split("\n")[:1]  # it says how many there are


def _stems(text: str) -> frozenset[str]:
    language = detect(text)
    return frozenset(token.stem for token in language.tokens(text) if token.folded.isalnum())


_TABLE_LINES = re.compile(r"(?:^|\n)\|[^\n]*")
_BULLETS = re.compile(r"(?:^|\n)\s*(?:[-*]|\d+\.)\s.*", re.S)
_SHOWN_ITEMS = 200
_SHORT_ROWS = 12
"""Rows of a table that a short report has."""
_EXTRA = ("dueDate", "priority", "effortHours", "decidedAt", "observedAt", "value", "unit", "deadline", "target", "likelihood",
    "severity", "confidence", "occurredAt", "startsAt", "endsAt")  # fmt: skip
"""Typed properties of nodes that a table shows, where any node has them."""


def _answer_blocks(part: PartPlan, answer: QuestionAnswer, say: Say) -> list[ReportBlock]:
    table = None if "list" in part.formats else _table_of(answer, say)
    several = table is not None and (len(table.rows) > 1 or "table" in part.formats)
    text = _TABLE_LINES.sub("", answer.text).strip()
    if several or "short" in part.formats:
        text = _BULLETS.sub("", text).strip(" \n") or text
    blocks: list[ReportBlock] = [TextBlock(text=text[:20_000])] if text else []
    if answer.figures and (not several or answer.read == "constitution"):
        blocks.append(FiguresBlock(rows=answer.figures[:100]))
    if part.report and answer.read == "constitution" and len(answer.items) > 1:
        blocks += _item_figures(answer, say)
    if table is not None and several and ("short" not in part.formats or len(table.rows) <= _SHORT_ROWS):
        blocks.append(table)
        if (of_each := _of_each(answer, say)) is not None:
            blocks.append(of_each)
    blocks += [ChartBlock(chart=one) for one in _charts_of(part, answer)]
    if answer.notes and not is_partial(answer):
        blocks.append(TextBlock(text="\n".join(f"- {note}" for note in answer.notes)))
    return blocks


def is_partial(answer: QuestionAnswer) -> bool:
    """Whether not all that there is was read for an answer: the graph's notes say nothing else."""
    return answer.read == "constitution" and bool(answer.notes)


def _table_of(answer: QuestionAnswer, say: Say) -> TableBlock | None:
    return answer.tables[0] if answer.tables else _items_table(answer, say)


def _of_each(answer: QuestionAnswer, say: Say) -> TableBlock | None:
    """The things behind a table of groups, where something is asked of each of them that the groups do not say."""
    heads = {_stems(one) for one in answer.tables[0].columns} if answer.tables else set()
    labels = {label for one in answer.items for label in (one.model_extra or {}).get(ASKED) or {}}
    more = [label for label in labels if not any(_stems(label) <= head for head in heads)]
    return _items_table(answer, say) if heads and more else None


def _items_table(answer: QuestionAnswer, say: Say) -> TableBlock | None:
    if answer.read != "constitution" or not answer.items or answer.total is None:
        return None
    extras = [name for name in _EXTRA if any(_extra(one, name) is not None for one in answer.items)]
    of_each = [(one.model_extra or {}).get(ASKED) or {} for one in answer.items]
    asked = [label for label in dict.fromkeys(label for one in of_each for label in one) if label != "status"]
    extras = [name for name in extras if not any(_stems(label) <= _stems(spaced(name)) for label in asked)]
    several = len({one.type for one in answer.items}) > 1
    columns = (
        say("column_title"),
        *([say("column_type")] if several else []),
        say("column_status"),
        *asked,
        *map(spaced, extras),
    )
    rows = tuple(
        (
            one.title,
            *([one.type] if several else []),
            _extra(one, "status"),
            *(plain_cell(of.get(label)) for label in asked),
            *(_extra(one, name) for name in extras),
        )
        for one, of in zip(answer.items[:_SHOWN_ITEMS], of_each, strict=False)
    )
    return TableBlock(columns=tuple(column[:1].upper() + column[1:] for column in columns), rows=rows)


def _extra(one: FoundThing, name: str) -> Cell:
    value = (one.model_extra or {}).get(name)
    if isinstance(value, dict):
        value = value.get("total")
    return plain_cell(value)


def _memory_blocks(part: PartPlan, found: ToolResult, say: Say) -> list[ReportBlock]:
    """What memory holds on something, quoted: the items that have all of its words."""
    items = [one for one in (found.answer or {}).get("items", ()) if holds_words(part.recalls, one)][:_MOST_QUOTED]
    said = (f"**{title}**: {text}" if (title := one.get("title")) else text for one in items if (text := _quote(one)))
    text = "\n".join(f"- {one}" for one in said)
    return [TextBlock(text=say("memory_holds", words=", ".join(part.recalls))), TextBlock(text=text)] if text else []


def _quote(item: Mapping[str, Any]) -> str:
    text = " ".join(str(item.get("text", "")).split())
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED].rpartition(' ')[0]} …"


_QUOTED = 800
"""Characters of one item of memory that a report quotes."""
_MOST_QUOTED = 10
_MOST_EARLIER = 3


def holds_words(words: Iterable[str], item: Mapping[str, Any]) -> bool:
    """Whether an item of memory has all of some words, whatever their endings. What a task wrote itself does not count."""
    if str(item.get("external_id") or "").startswith("task/"):
        return False
    language = detect(" ".join(words))
    said = f"{item.get('title') or ''} {item.get('text') or ''}"
    return {language.stem(fold(word)) for word in words} <= {token.stem for token in language.tokens(said)}


def _item_figures(answer: QuestionAnswer, say: Say) -> list[ReportBlock]:
    """How many things there are of each status, what their numbers make together, and what is missing."""
    rows = [FigureRow(label=say("figure_total"), value=answer.total if answer.total is not None else len(answer.items))]
    statuses = Counter(str(_extra(one, "status") or "") for one in answer.items)
    if len(statuses) > 1:
        rows += [
            FigureRow(label=say("figure_status", status=spaced(name) or "-"), value=n) for name, n in statuses.most_common(8)
        ]
    for name in _EXTRA:
        values = [_extra(one, name) for one in answer.items]
        there = [value for value in values if value is not None]
        if not there:
            continue
        if name == "effortHours":
            total = sum(float(value) for value in there if isinstance(value, int | float))
            rows.append(FigureRow(label=say("figure_hours"), value=total, note=say("figure_known", n=str(len(there)))))
        if len(there) < len(values):
            rows.append(FigureRow(label=say("figure_without", property=spaced(name)), value=len(values) - len(there)))
    return [FiguresBlock(rows=tuple(rows[:100]))]


def _charts_of(part: PartPlan, answer: QuestionAnswer) -> list[Visualization]:
    """The charts of an answer; where one is asked for and there is none, one of its table."""
    if "chart" not in part.formats:
        return []
    drawn: list[Visualization] = []
    for one in answer.charts:
        if one.type is not VisualizationType.TABLE and all(one.data != other.data for other in drawn):
            drawn.append(one)
    if drawn or not answer.tables:
        return drawn
    block = answer.tables[0]
    wanted = [_stems(label) for one in answer.asked for label in one.labels]
    drawn_of = (
        at for of in wanted for at in range(1, len(block.columns)) if of <= _stems(block.columns[at]) and _is_drawn(block, at)
    )
    at = next(drawn_of, None) or chart_column(block)
    if at is None:
        return []
    x, y = block.columns[0], block.columns[at]
    return [column(_line(part.said, 200), x, y, [{x: str(row[0]), y: row[at]} for row in block.rows if is_number(row[at])])]


def chart_column(block: TableBlock) -> int | None:
    """The first column of a table, but for its first, that can be drawn; `None` where none can."""
    return next((at for at in range(1, len(block.columns)) if _is_drawn(block, at)), None)


def _is_drawn(block: TableBlock, at: int) -> bool:
    return sum(is_number(row[at]) for row in block.rows) > 1


def _writing_blocks(
    part: PartPlan, known: GoalKnowledge, given: Results, checks: Mapping[str, bool], say: Say
) -> tuple[list[ReportBlock], list[str]]:
    """What was written, with the name of each thing; what was not, is a limit."""
    id = part.steps[-1]
    step = next((one.step for one in (*known.worked, *known.failed) if one.step.id == id), None)
    made = _written_names(given[id].answer, step) if id in given else []
    failed = next((result for result in known.failed if result.step.id == id), None)
    if failed is not None and (partly := (failed.outcome.answer or {}).get("items")):
        made = [name for one in partly for name in _written_names(one, step)]
    blocks: list[ReportBlock] = []
    if made:
        held = checks.get(id)
        head = say("was_not_checked" if held is None else "was_written" if held else "was_ordered", n=str(len(made)))
        blocks.append(TextBlock(text="\n".join([head, "", *(f"- {name}" for name in made[:100])])))
    elif part.goes_through and id in given:
        blocks.append(TextBlock(text=say("none_to_write")))
    limits = [say("not_written", words=part.said, why=failed.outcome.code or "")] if failed is not None else []
    return blocks, limits


def _written_names(answer: Mapping[str, Any] | None, step: Step | None) -> list[str]:
    """What a writing tool made or changed, as a reader knows it."""
    match answer:
        case {"node": {"title": str(title), "id": str(id)}}:
            return [f"{title} [{id}]"]
        case {"relationship": {"type": type, "fromId": start, "toId": end}}:
            return [f"{start} {type} {end}"]
        case {"items": [{"status": str(), "id": str(id)}]}:
            texts = [str(one.get("text", "")) for one in (step.arguments.get("items", ()) if step is not None else ())]
            return [text for text in texts if _is_literal(text)] or [id]
        case {"items": list(items)}:
            return [name for one in items if isinstance(one, dict) for name in _written_names(one, step)]
    return []


class _SetSections:
    """The sections of a report over a set of the data."""

    def __init__(self, part: PartPlan, about: SetReport, given: Results, say: Say) -> None:
        self._part, self._about, self._given, self._say = part, about, given, say
        self._number = part.steps[0].partition(".")[0]
        self._counts = {int(row["group"]): int(row["value"]) for row in self._read("count") or ()}
        listed = {year: rows for year in about.years if (rows := self._read(f"rows.{year}")) is not None}
        self._rows = {year: rows for year, rows in listed.items() if len(rows) >= self._counts.get(year, 0)}
        self._cut = [year for year in listed if year not in self._rows]
        """Years whose members are more than one list holds: what is told of single ones leaves them out."""

    def _read(self, id: str) -> list[Row] | None:
        found = self._given.get(f"{self._number}.{id}")
        return list((found.answer or {}).get("rows", ())) if found is not None else None

    def blocks(self) -> tuple[list[ReportBlock], list[str]]:
        short = "short" in self._part.formats
        blocks = [*self._summary()]
        limits: list[str] = []
        if not any(self._counted(year) for year in self._about.years):
            return blocks, limits
        for one in self._about.properties:
            if one.kind == "string":
                blocks += self._by(one)
                limits += self._scale(one)
        if not short:
            blocks += self._totals()
            blocks += self._compared()
            blocks += self._worst_items()
            blocks += self._changes()
            blocks += self._missing()
            blocks += self._earlier()
            limits += [self._say("cut", what=self._about.what, years=", ".join(map(str, self._cut)))] if self._cut else []
        return blocks, limits

    def _earlier(self) -> list[ReportBlock]:
        """What memory holds on the same things: notes, and earlier reports."""
        found = self._given.get(f"{self._number}.earlier")
        items = (found.answer or {}).get("items", ()) if found is not None else ()
        named = [
            str(one["title"])
            for one in items
            if one.get("title") and self._about.what.casefold() in str(one["text"]).casefold()
        ]
        text = "\n".join(f"- {title}" for title in dict.fromkeys(named[:_MOST_EARLIER]))
        return [TextBlock(text=self._say("earlier", titles=text))] if text else []

    def _counted(self, year: int) -> int:
        return self._counts.get(year, len(self._rows.get(year, ())))

    def _summary(self) -> list[ReportBlock]:
        if not any(self._counted(year) for year in self._about.years):
            return [TextBlock(text=self._say("nothing_found", words=self._part.said))]
        rows = []
        judged = next((one for one in self._about.properties if one.worst), None)
        tally = self._tally(judged) if judged is not None else {}
        known = self._read("count") is not None
        for year in (one for one in self._about.years if known or one in self._rows):
            n = self._counted(year)
            note = ""
            if judged is not None and year in tally and n:
                worst = sum(tally.get(year, Counter[str | None]()).get(value, 0) for value in judged.worst)
                note = self._say("of_them", n=f"{worst:,}", property=judged.label, values=self._values(judged))
            rows.append(FigureRow(label=self._say("in_year", what=self._about.what, year=str(year)), value=n, note=note))
        return [FiguresBlock(rows=tuple(rows))]

    def _values(self, one: Property) -> str:
        return f" {self._say('or')} ".join(reversed(one.worst))

    def _tally(self, one: Property, id: str = "by") -> dict[int, Counter[str | None]]:
        found: dict[int, Counter[str | None]] = defaultdict(Counter)
        for row in self._read(f"{id}.{one.name}") or ():
            found[int(row["group"])][row.get("group2")] += int(row["value"])
        return found

    def _by(self, one: Property) -> list[ReportBlock]:
        tally = self._tally(one)
        if not tally:
            return []
        there = {value for counter in tally.values() for value in counter if value is not None}
        ordered = [value for value in reversed(one.choices) if value in there] if one.choices else []
        values = [*ordered, *sorted(there - set(ordered), key=str)][:25]
        unknown = self._say("not_published")
        years = [year for year in self._about.years if year in tally]
        rows = tuple((year, *(tally[year].get(value, 0) for value in values), tally[year].get(None, 0)) for year in years)
        title = self._say("table_by", what=_line(self._about.what, 80), property=one.label)
        blocks: list[ReportBlock] = [
            TableBlock(title=title, columns=(self._say("column_year"), *map(str, values), unknown), rows=rows)
        ]
        if one.worst and ("short" not in self._part.formats or "chart" in self._part.formats):
            drawn = [{"year": str(year), "n": sum(tally[year].get(value, 0) for value in one.worst)} for year in years]
            name = self._say("chart_worst", what=_line(self._about.what, 80), property=one.label, values=self._values(one))
            blocks.append(ChartBlock(chart=column(name, "year", "n", drawn)))
        return blocks

    def _scale(self, one: Property) -> list[str]:
        """Values that were in use in some of the years alone: a comparison over them meets two scales."""
        tally = (
            self._tally(one, "all") if self._about.filtered and self._read(f"all.{one.name}") is not None else self._tally(one)
        )
        years = sorted(tally)
        if not one.choices or len(years) < 2:
            return []
        used = {year: {value for value, n in tally[year].items() if value is not None and n} for year in years}
        gone = sorted({value for earlier, later in pairwise(years) for value in used[earlier] - used[later]} - used[years[-1]])
        if not gone:
            return []
        last = max(year for year in years if used[year] & set(gone))
        return [self._say("scale", property=one.label, values=", ".join(map(str, gone)), year=str(last))]

    def _totals(self) -> list[ReportBlock]:
        numbers = [one for one in self._about.properties if one.kind == "number" and self._read(f"sum.{one.name}")]
        if not numbers:
            return []
        sums = {one.name: {int(row["group"]): row for row in self._read(f"sum.{one.name}") or ()} for one in numbers}
        columns = [self._say("column_year")]
        for one in numbers:
            unit = f" ({one.unit})" if one.unit else ""
            columns += [
                f"{self._say('mean_of' if one.share else 'total_of', property=one.label)}{unit}",
                self._say("known_by", property=one.label),
            ]
        rows = []
        for year in self._about.years:
            cells: list[Cell] = [year]
            for one in numbers:
                row = sums[one.name].get(year, {})
                value = row.get("value")
                cells += [round(value, 2) if isinstance(value, int | float) else None, row.get("known", 0)]
            rows.append(tuple(cells))
        blocks: list[ReportBlock] = [TableBlock(title=self._say("table_totals"), columns=tuple(columns), rows=tuple(rows))]
        drawn = [{"year": str(row[0]), "value": row[1]} for row in rows if is_number(row[1])]
        if len(drawn) > 1:
            blocks.append(ChartBlock(chart=line(_line(columns[1], 200), "year", "value", drawn)))
        return blocks

    def _compared(self) -> list[ReportBlock]:
        judged = next((one for one in self._about.properties if one.worst), None)
        if judged is None or not self._about.filtered or self._read(f"all.{judged.name}") is None:
            return []
        here, everywhere = self._tally(judged), self._tally(judged, "all")
        rows = tuple(
            (year, self._share(here.get(year), judged), self._share(everywhere.get(year), judged)) for year in self._about.years
        )
        title = self._say("table_compared", property=judged.label, values=self._values(judged))
        columns = (self._say("column_year"), self._say("here"), self._say("everywhere", what=self._about.what))
        return [TableBlock(title=title, columns=columns, rows=rows)]

    @staticmethod
    def _share(tally: Counter[str | None] | None, judged: Property) -> Cell:
        """Per cent of those whose value is known, to a tenth."""
        known = sum(n for value, n in (tally or {}).items() if value is not None)
        worst = sum(n for value, n in (tally or {}).items() if value in judged.worst)
        return f"{100 * worst / known:.1f} %" if known else None

    def _worst_items(self) -> list[ReportBlock]:
        judged = next((one for one in self._about.properties if one.worst), None)
        if judged is None or not self._rows:
            return []
        year = max(self._rows)
        worst = [row for row in self._rows[year] if row.get(judged.name) in judged.worst]
        shown = [judged, *(one for one in self._about.properties if one is not judged)][:5]
        title = self._say(
            "table_worst", what=_line(self._about.what, 80), property=judged.label, values=self._values(judged), year=str(year)
        )
        if not worst:
            return [
                TextBlock(
                    text=self._say(
                        "none_worst",
                        what=_line(self._about.what, 80),
                        property=judged.label,
                        values=self._values(judged),
                        year=str(year),
                    )
                )
            ]
        order = {value: n for n, value in enumerate(reversed(judged.worst))}
        worst.sort(key=lambda row: (order[row[judged.name]], str(row.get("name", "")).casefold()))
        columns = (self._say("column_name"), *(f"{one.label} ({one.unit})" if one.unit else one.label for one in shown))
        rows = tuple(
            (str(row.get("name", "")), *(plain_cell(row.get(one.name)) for one in shown)) for row in worst[:_SHOWN_ITEMS]
        )
        return [TableBlock(title=title, columns=tuple(_line(one, 100) for one in columns), rows=rows)]

    def _changes(self) -> list[ReportBlock]:
        years = sorted(self._rows)
        rows = []
        for old, new in pairwise(years):
            before, after = ({str(row["id"]) for row in self._rows[year]} for year in (old, new))
            rows.append((f"{old} – {new}", len(after - before), len(before - after)))
        if not rows:
            return []
        columns = (self._say("column_years"), self._say("came"), self._say("went"))
        return [TableBlock(title=self._say("table_changes"), columns=columns, rows=tuple(rows))]

    def _missing(self) -> list[ReportBlock]:
        if not self._rows:
            return []
        lacking = [
            one
            for one in self._about.properties
            if any(row.get(one.name) is None for rows in self._rows.values() for row in rows)
        ]
        if not lacking:
            return []
        columns = (self._say("column_year"), *(one.label for one in lacking))
        rows = tuple(
            (year, *(sum(row.get(one.name) is None for row in found) for one in lacking)) for year, found in self._rows.items()
        )
        return [TableBlock(title=self._say("table_missing"), columns=columns, rows=rows)]


# What the deliverable is held against


class Check(Message):
    """Whether what a step gave is so, by reading it again."""

    step: str
    holds: bool


CAP_WITHOUT_EVIDENCE = 0.3
"""The most that a result scores of which a part has no evidence."""
CAP_IN_PART = 0.7
"""The most where what was read is known not to be all."""


async def check_steps(goal: GoalPlan, known: GoalKnowledge, caller: Caller, ask: Ask) -> dict[str, bool]:
    """What was written, read back; and what was counted, counted again. Steps that cannot be checked are left out."""
    found: dict[str, bool] = {}
    given = {result.step.id: result for result in known.worked}
    for part in goal.parts:
        if part.set is not None:
            found |= {id: held for id, held in _sets_agree(part, part.set, given).items() if id in given}
            continue
        for id in part.steps:
            result = given.get(id)
            if result is None:
                continue
            if id == part.goes_through:  # what was written may have changed it: all of it has to be gone through
                found[id] = part.steps[-1] in given and len(_items(result)) == len(_items(given[part.steps[-1]]))
            elif result.step.question is not None:
                again = await ask(f"task.check.{id}", result.step.question)
                found[id] = again.ok and _same_answer(result.outcome.answer or {}, again.answer or {})
            elif part.figures is not None or part.list is not None:
                again = await caller.call(f"task.check.{id}", SURVEY_TOOL.name, result.step.arguments, ours=True)
                rows = (result.outcome.answer or {}).get("rows") or []
                found[id] = again.ok and (again.answer or {}).get("rows") == rows and len(rows) < MAX_ROWS  # more is cut off
            elif part.recalls:
                found[id] = any(holds_words(part.recalls, one) for one in _items(result))
            elif part.writes:
                found[id] = await _reads_back(result, caller)
    return found


def _items(result: StepResult) -> list[Any]:
    return list((result.outcome.answer or {}).get("items", ()))


def _same_answer(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two answers found the same, but for what was written meanwhile."""
    ids = [{item["id"] for item in answer.get("items", ())} for answer in (one, other)]
    same = all(one.get(name) == other.get(name) for name in ("figures", "tables", "total"))
    return ids[0] <= ids[1] and (same or ids[0] != ids[1])


def _sets_agree(part: PartPlan, about: SetReport, given: Mapping[str, StepResult]) -> dict[str, bool]:
    """Whether the members that were listed are as many as the data counts, in all and by each property."""
    number = part.steps[0].partition(".")[0]
    read = {id: list((one.outcome.answer or {}).get("rows", ())) for id, one in given.items() if id.startswith(f"{number}.")}
    counts = {int(row["group"]): int(row["value"]) for row in read.get(f"{number}.count", ())}
    found: dict[str, bool] = {}
    for year in about.years:
        rows = read.get(f"{number}.rows.{year}")
        if rows is not None:
            found[f"{number}.rows.{year}"] = len(rows) == min(counts.get(year, 0), MAX_ROWS)
    for one in about.properties:
        id = f"{number}.by.{one.name}"
        if id in read:
            tally: Counter[int] = Counter()
            for row in read[id]:
                tally[int(row["group"])] += int(row["value"])
            found[id] = all(tally[year] == counts.get(year, 0) for year in about.years)
        id = f"{number}.sum.{one.name}"
        if id in read and not one.share:
            rows_of = {year: read.get(f"{number}.rows.{year}") for year in about.years}
            listed = {year: rows for year, rows in rows_of.items() if rows is not None and len(rows) == counts.get(year, 0)}
            pairs = [(row, mine) for row in read[id] if (mine := listed.get(int(row["group"]))) is not None]
            if pairs:
                found[id] = all(
                    abs(float(row["value"] or 0) - sum(float(each[one.name] or 0) for each in mine)) < 0.01
                    for row, mine in pairs
                )
    found[f"{number}.count"] = bool(counts) or not any(read.get(f"{number}.rows.{year}") for year in about.years)
    return found


async def _reads_back(result: StepResult, caller: Caller) -> bool:
    """Whether what a step says that it wrote is on record, as it was ordered."""
    answers = (result.outcome.answer or {}).get("items") if result.step.each is not None else [result.outcome.answer]
    stated = {**result.step.arguments, **result.step.arguments.get("fields", {})}
    literal = {name: value for name, value in stated.items() if _is_literal(value)}
    held = []
    for at, answer in enumerate(answers or [], 1):
        name = f"task.check.{result.step.id}.{at}"
        match answer:
            case {"node": {"id": str(id)}}:
                found = await caller.call(name, GET_NODE_TOOL.name, {"id": id}, ours=True)
                node = (found.answer or {}).get("node") or {}
                held.append(found.ok and all(_says(node, field, value) for field, value in literal.items()))
            case {"relationship": {"fromId": str(start), "toId": str(end), "type": str(type)}}:
                found = await caller.call(name, GET_NODE_TOOL.name, {"id": start, "includeRelationships": True}, ours=True)
                links = (found.answer or {}).get("relationships") or []
                held.append(any(one.get("type") == type and one.get("toId") == end for one in links))
            case {"items": [{"id": str(id)}, *_]}:
                text = str(result.step.arguments["items"][0].get("text", ""))
                query = text if result.step.each is None else text.partition("{")[0]
                found = await caller.call(name, RECALL_TOOL.name, {"query": query or id, "limit": 50}, ours=True)
                held.append(any(one.get("id") == id for one in (found.answer or {}).get("items", ())))
            case _:
                held.append(False)
    return all(held)


def _is_literal(value: Any) -> bool:
    return not isinstance(value, dict | list) and '{"$' not in str(value)


def _says(node: Mapping[str, Any], name: str, value: Any) -> bool:
    stored = node.get(name, (node.get("properties") or {}).get(name))
    return stored == value or str(stored) == str(value) or (isinstance(value, str) and str(stored).startswith(f"{value}T"))


def judge(
    goal: GoalPlan, known: GoalKnowledge, written: WrittenReport, skipped: int, checks: Mapping[str, bool], say: Say
) -> tuple[Criticism, bool]:
    """How well a goal that rules planned was met, and whether all of it is verified.

    Args:
        skipped: steps that were not made.
        checks: by step, whether what it gave was so when it was read again.
    """
    given = {result.step.id: result for result in known.worked}
    faults: list[str] = []
    score = 1.0
    for part in goal.parts:
        lacking = [id for id in part.steps if id not in given]
        wrong = [id for id in part.steps if checks.get(id) is False]
        unchecked = [id for id in part.steps if id in given and id not in checks and not _needs_no_check(id)]
        if lacking or wrong:
            faults.append(f"{part.said}: {', '.join([*lacking, *wrong])}")
            score = min(score, CAP_WITHOUT_EVIDENCE)
        elif unchecked:
            faults.append(f"{part.said}: not checked")
            score = min(score, CAP_IN_PART)
        for id in part.steps:
            if id not in given or given[id].step.question is None:
                continue
            answer = QuestionAnswer.model_validate(given[id].outcome.answer)
            if is_partial(answer):
                score = min(score, CAP_IN_PART)
                faults.append(f"{part.said}: read in part")
            if lost := find_lacking(part, answer, say):
                score = min(score, CAP_WITHOUT_EVIDENCE)
                faults.append(f"{part.said}: without {', '.join(lost)}")
    if skipped or not given:
        score = min(score, CAP_WITHOUT_EVIDENCE)
        faults.append("steps were left out")
    if any(part.set is None and part.figures is None and part.list is None for part in goal.parts) and (
        strays := unsupported_figures(written, known)
    ):
        score = min(score, CAP_WITHOUT_EVIDENCE)
        faults.append(f"figures without a source: {', '.join(sorted(strays)[:5])}")
    return Criticism(score=score, reason="; ".join(faults) or "each part was done and checked"), not faults


def _needs_no_check(id: str) -> bool:
    return ".all." in id or ".sum." in id


_FIGURE = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:(?!\w)|(?=T\d))")
_ORDINAL = re.compile(r"^\s*\d+[.)]\s+", re.M)
"""Numbers an item of a list, and states nothing."""


def unsupported_figures(written: WrittenReport, known: GoalKnowledge) -> set[str]:
    """Figures of a report that stand in no step's result, and are no number of its things."""
    said = _ORDINAL.sub("", "\n".join(_figures_said(written.blocks)) if written.blocks else written.text)
    results = " ".join(json.dumps(one.outcome.answer, default=str) + one.outcome.text for one in known.worked)
    there = {_plain_figure(found) for found in _FIGURE.findall(results)} | {
        _plain_figure(one) for one in _FIGURE.findall(known.goal)
    }
    sizes = {
        str(len(value)) for one in known.worked for value in (one.outcome.answer or {}).values() if isinstance(value, list)
    }
    there |= sizes | {"0", "1"}
    return {found for found in map(_plain_figure, _FIGURE.findall(said)) if found not in there}


def _figures_said(blocks: Iterable[ReportBlock]) -> Iterator[str]:
    """The texts of a report that state something of the world: no figures that were counted from the things themselves."""
    for block in blocks:
        match block:
            case TextBlock(text=text):
                yield text
            case TableBlock(rows=rows):
                yield from (str(cell) for row in rows for cell in row if cell is not None)


def _plain_figure(text: str) -> str:
    plain = re.sub(r"^0+(?=\d)", "", text.replace(",", "").rstrip("."))
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def judge_by_evidence(known: GoalKnowledge, written: WrittenReport, skipped: int, *, asked: bool, writes: bool) -> Criticism:
    """The most that a report on a model's plan can score by what its steps gave, whoever says more.

    Args:
        skipped: steps that were not made.
        asked: whether a critic is asked, too; without one the steps that were made are the score.
        writes: whether the goal asks for something to be written.
    """
    needed = [result for result in (*known.worked, *known.failed) if not result.step.optional]
    share = sum(1 for result in needed if result.outcome.ok) / (len(needed) + skipped) if needed else 0.0
    score = share if not asked else float(bool(known.worked))
    faults = [] if share == 1 else ["not every step was made well"]
    if not written.used or not set(written.used) <= {result.step.id for result in known.worked}:
        score = min(score, CAP_WITHOUT_EVIDENCE) if asked else score / 2
        faults.append("it rests on no step that was made well")
    if writes and not any(TOOLS[name].risk > Risk.READ for one in known.worked for name in one.outcome.tools if name in TOOLS):
        score = min(score, CAP_WITHOUT_EVIDENCE)
        faults.append("nothing was written")
    if strays := unsupported_figures(written, known):
        score = min(score, CAP_WITHOUT_EVIDENCE)
        faults.append(f"figures without a source: {', '.join(sorted(strays)[:5])}")
    return Criticism(score=round(score, 3), reason="; ".join(faults) or "by rules")
