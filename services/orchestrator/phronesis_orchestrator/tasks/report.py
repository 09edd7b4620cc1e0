"""What is written of a task: lines of data for a model, and the report, by a model or by rules."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pydantic import ValidationError

from phronesis_bus import mask
from phronesis_contracts import untrusted
from phronesis_contracts.answers import Visualization, VisualizationType
from phronesis_contracts.memory import REMEMBER_TOOL, ItemKind
from phronesis_contracts.orchestrator import StartingEvent
from phronesis_contracts.tasks import (
    MAX_BLOCK_TEXT,
    MAX_BLOCKS,
    MAX_COLUMNS,
    MAX_FOUND,
    MAX_TABLE_ROWS,
    Cell,
    ChartBlock,
    FigureRow,
    FiguresBlock,
    HeadingBlock,
    LimitsBlock,
    ReportBlock,
    SourceRow,
    SourcesBlock,
    TableBlock,
    TaskReport,
    TextBlock,
)

from ..agents.presentation import MAX_ROWS, sanitize_text
from ..models.reasoner import Answer, TurnContext
from ..models.templates import Line, fit_lines
from ..turns.execution import Steps
from ..turns.turn import Claim
from .decisions import decide
from .ports import (
    Caller,
    Contracts,
    GoalKnowledge,
    Planner,
    Step,
    StepResult,
    Strategy,
    ToolResult,
    WrittenReport,
    holds_raw_data,
    is_number,
    outline,
)

_TEMPLATE = "a plan that worked for a goal like this"
_REFUSED = "a plan that is refused"


def plan_lines(known: GoalKnowledge) -> list[Line]:
    """What a plan is made with: what was done of an older one, what worked for goals like it, and the tools."""
    ahead = [Line.json(what="a look ahead", said=known.ahead)] if known.ahead else []
    event = [_event(known.event)] if known.event is not None else []
    template = [Line.json(what=_TEMPLATE, steps=[_step(step) for step in known.template.steps])] if known.template else []
    refused = [Line.json(what=_REFUSED, why=known.refused.wrong, plan=known.refused.said)] if known.refused else []
    return [
        *refused,
        *state_lines(known),
        *ahead,
        *event,
        *known_strategy_lines(known.strategies),
        *template,
        *(_tool(one, known.contracts) for one in known.offered),
    ]


def _event(event: StartingEvent) -> Line:
    """The event that started a task: quoted, since whoever named a thing wrote its title."""
    things = [{"id": thing.id, "title": thing.title} for thing in event.things]
    more = {"left_out": event.left_out} if event.left_out else {}
    origin = {"from": [event.label.kind.value]}
    return Line.json(
        what="the event that started this task", event=event.event, type=event.type, things=things, **more, **origin
    )


def known_strategy_lines(strategies: Iterable[Strategy]) -> list[Line]:
    """What worked for goals like this one."""
    return [
        Line.json(
            what="an approach that worked",
            goal=strategy.goal,
            approach=strategy.approach,
            tools=strategy.tools_used,
            avoid=strategy.avoid,
            **_origin(strategy),
        )
        for strategy in strategies
    ]


def _origin(strategy: Strategy) -> dict[str, object]:
    """Where an approach comes from, if not from the person's own words: it was then formed with what others wrote."""
    kinds = sorted({label.kind.value for label in untrusted(strategy.labels)})
    return {"from": kinds} if kinds else {}


def state_lines(known: GoalKnowledge) -> list[Line]:
    """How far a task is: what is left, what failed, and what worked."""
    left = [Line.json(what="left to do", **_step(step)) for step in known.remaining]
    return [*left, *result_lines(known)]


def result_lines(known: GoalKnowledge) -> list[Line]:
    """What the steps of a task gave; the failures first, since there are few."""
    failed = (Line.json(what="failed", **_result(one), why=one.outcome.code, said=one.outcome.text) for one in known.failed)
    worked = (Line.json(what="worked", **_result(one), gave=one.outcome.text) for one in known.worked)
    return [*failed, *worked]


def describe_tools(names: Iterable[str], offered: Iterable[dict[str, Any]]) -> tuple[tuple[str, str, dict[str, Any]], ...]:
    """Tools by the names that plans know them by."""
    functions = (one["function"] for one in offered)
    return tuple((name, one["description"], one["parameters"]) for name, one in zip(names, functions, strict=True))


def block_text(lines: Iterable[Line], tokens: int) -> str:
    """Lines as the text of one block, in at most so many tokens: the first ones stay."""
    return "\n".join(fit_lines(list(lines), tokens))


def _step(step: Step) -> dict[str, object]:
    return {"id": step.id, "wave": step.wave, "description": step.description, "tool": step.tool, "depends": step.depends}


def _result(result: StepResult) -> dict[str, object]:
    return {"step": result.step.id, "description": result.step.description, "tool": result.step.tool}


def _tool(offered: tuple[str, str, dict[str, Any]], contracts: Contracts) -> Line:
    name, description, arguments = offered
    gives = {"gives": outline(contracts[name])} if name in contracts else {}
    return Line.json(what="tool", name=name, description=description, arguments=arguments, **gives)


def needed_lines(results: Iterable[StepResult]) -> list[Line]:
    """What earlier steps gave, for who works on one that needs them."""
    return [Line.json(what="found by an earlier step", **_result(one), gave=one.outcome.text) for one in results]


DOCUMENT = "task.document"
"""Name of the journalled step that saves the report."""
_DOCUMENT = 19_000
"""Characters of a report that are saved; an item of the memory has room for 20,000."""
_CUT = "\n\n(The document is cut here; the task holds the whole report.)"
_ROWS = 40
"""Rows of a table that the text shows."""
_COLUMNS = 8
"""Columns of a table that is made of what a tool gave."""
_LIST = 20
"""Names of a list that is made of what a tool gave."""
_CELL = 300
"""Characters of a cell that is made of what a tool gave."""
_LISTED = 10
"""Things that one step may add to the sources; of more its description stands for them."""
_SOURCES = 100
_LARGEST = 160_000
"""Characters of a report's blocks as JSON. The task holds them beside their text, and a message has room for half a million."""
_CONDITION = "task.condition"
"""Code of a step that its plan rightly did not make."""
_NO_REPORT = "The report of the language model could not be used; this is what the steps found."


async def write_report(
    steps: Steps,
    context: TurnContext,
    planner: Planner | None,
    rules: Callable[[GoalKnowledge], WrittenReport | None],
    known: GoalKnowledge,
    limits: Sequence[str] = (),
) -> WrittenReport:
    """The report as blocks and their text. Where a model fails to write one, it lists what the steps gave (what there is, is
    reported).

    Args:
        limits: what the report has to say of itself, beside the steps that failed.
    """

    async def make() -> Answer[WrittenReport]:
        return await planner.write(context, known) if planner is not None else Answer(rules(known))

    made = await decide(steps, "task.report", WrittenReport, make)
    if made.value is not None:
        return finish_report(known, made.value, limits)
    said = (_NO_REPORT, *limits) if planner is not None else limits
    return finish_report(known, list_results(known), said)


def finish_report(known: GoalKnowledge, written: WrittenReport, limits: Sequence[str] = ()) -> WrittenReport:
    """A report with what it rests on and what it lacks, and its text rendered from its blocks.

    Args:
        limits: what it lacks beside the steps that failed.
    """
    blocks = list(written.blocks or (*parse_blocks(written.text, written.title), *map(chart_block, written.charts)))
    ends = [block for block in blocks if isinstance(block, LimitsBlock | SourcesBlock)]
    # Room for what it lacks and what it rests on.
    blocks = [*[block for block in blocks if block not in ends][: MAX_BLOCKS - 2], *ends]
    failed = (
        f"{result.step.description}: not found out ({_readable(result.outcome.code or 'failed').lower()})."
        for result in known.failed
        if not result.step.optional and result.outcome.code != _CONDITION
    )
    blocks = _with_limits(blocks, (*failed, *limits))
    if not any(isinstance(block, SourcesBlock) for block in blocks) and (rows := list_sources(known, written.used)):
        blocks.append(SourcesBlock(rows=rows))
    kept = tuple(_fit_blocks(blocks))
    charts = written.charts or tuple(filter(None, map(_shown_beside, kept)))
    return written.model_copy(update={"blocks": kept, "text": render_blocks(kept), "charts": charts})


def _with_limits(blocks: list[ReportBlock], items: Iterable[str]) -> list[ReportBlock]:
    there = [item for block in blocks if isinstance(block, LimitsBlock) for item in block.items]
    more = [item for item in dict.fromkeys(items) if item not in there]
    if not more:
        return blocks
    others = [block for block in blocks if not isinstance(block, LimitsBlock)]
    at = next((at for at, block in enumerate(others) if isinstance(block, SourcesBlock)), len(others))
    return [*others[:at], LimitsBlock(items=tuple([*there, *more][:100])), *others[at:]]


def _fit_blocks(blocks: Sequence[ReportBlock]) -> list[ReportBlock]:
    """The blocks, the largest tables cut until all of them fit a message."""
    fitted, cut = list(blocks), False
    sizes = [len(block.model_dump_json()) for block in fitted]
    while sum(sizes) > _LARGEST:
        at = sizes.index(max(sizes))
        match fitted[at]:
            case TableBlock() as table_block if len(table_block.rows) > 1:
                fitted[at] = table_block.model_copy(update={"rows": table_block.rows[: len(table_block.rows) // 2]})
            case ChartBlock(chart=drawn) if isinstance(drawn.data, list) and len(drawn.data) > 1:
                half = drawn.model_copy(update={"data": drawn.data[: len(drawn.data) // 2]})
                fitted[at] = ChartBlock(chart=half)
            case _:
                del fitted[at], sizes[at]
                cut = True
                continue
        sizes[at], cut = len(fitted[at].model_dump_json()), True
    return _with_limits(fitted, ("The report was too large: its longest tables are cut.",) if cut else ())


def chart_block(drawn: Visualization) -> ReportBlock:
    """A chart as a block; one that is a table becomes a table."""
    if drawn.type is not VisualizationType.TABLE or not isinstance(drawn.data, list) or not drawn.data:
        return ChartBlock(chart=drawn)
    named = drawn.config.get("columns")
    fields = (
        [str(one) for one in named]
        if isinstance(named, list) and named
        else list(dict.fromkeys(f for r in drawn.data for f in r))
    )
    fields = fields[:MAX_COLUMNS]
    rows = tuple(tuple(_cell(row.get(field)) for field in fields) for row in drawn.data[:MAX_TABLE_ROWS])
    return TableBlock(title=drawn.title, columns=tuple(fields), rows=rows)


def _shown_beside(block: ReportBlock) -> Visualization | None:
    """What is shown beside the text: a chart, and a table that the text cuts."""
    match block:
        case ChartBlock(chart=drawn):
            return drawn
        case TableBlock(title=title, columns=columns, rows=rows) if len(rows) > _ROWS:
            return table(title or "Table", [dict(zip(columns, row, strict=False)) for row in rows])
    return None


def list_results(known: GoalKnowledge) -> WrittenReport:
    """What the steps gave, one after the other, as figures, tables and sentences."""
    blocks: list[ReportBlock] = []
    for result in known.worked:
        found = answer_blocks(result.outcome)
        blocks += [
            HeadingBlock(text=_one_line(result.step.description, 300)),
            *(found or [TextBlock(text="Nothing was found.")]),
        ]
    blocks = blocks[: MAX_BLOCKS - 3] or [TextBlock(text="Nothing was found out.")]
    title = _one_line(known.goal, 300) or "Report"
    return WrittenReport(title=title, blocks=tuple(blocks), used=tuple(result.step.id for result in known.worked))


def answer_blocks(outcome: ToolResult) -> list[ReportBlock]:
    """What a tool gave as blocks: a list of objects is a table, a number a figure, a text a paragraph. None holds JSON."""
    answer = outcome.answer
    if not answer:
        return _text_blocks(outcome.text)
    if (made := _ready_blocks(answer)) is not None:
        return made
    figures: list[FigureRow] = []
    blocks: list[ReportBlock] = []
    for name, value in answer.items():
        match value:
            case str() if name in _SAID:
                blocks = [*_text_blocks(value), *blocks]
            case bool() | int() | float():
                figures.append(FigureRow(label=_readable(name), value=value))
            case str() if 0 < len(value) <= _CELL and not holds_raw_data(value):
                figures.append(FigureRow(label=_readable(name), value=_one_line(value, _CELL)))
            case [dict(), *_]:
                blocks += _listed(name, [row for row in value if isinstance(row, dict)])
            case [str() | int() | float(), *_]:
                blocks.append(TextBlock(text=f"{_readable(name)}: {_enumerate([format_cell(_cell(one)) for one in value])}"))
            case dict():
                figures += [
                    FigureRow(label=_one_line(f"{_readable(name)}: {_readable(str(key)).lower()}", 300), value=_cell(one))
                    for key, one in value.items()
                    if isinstance(one, int | float | str) and one != ""
                ]
    return [*([FiguresBlock(rows=tuple(figures[:100]))] if figures else []), *blocks]


def _ready_blocks(answer: dict[str, Any]) -> list[ReportBlock] | None:
    """The blocks of an answer that holds figures, tables and charts as a report does; `None` for any other."""
    if not isinstance(answer.get("text"), str) or not {"figures", "tables", "charts"} <= answer.keys():
        return None
    try:
        figures = [FiguresBlock(rows=tuple(answer["figures"]))] if answer["figures"] else []
        tables = [TableBlock.model_validate(one) for one in answer["tables"]]
        charts = [chart_block(Visualization.model_validate(one)) for one in answer["charts"]]
    except (ValidationError, TypeError):
        return None
    return [*_text_blocks(answer["text"]), *figures, *tables, *charts]


_SAID = ("text", "answer", "summary")
"""Fields of a tool's answer that are read as Markdown."""
_UNSHOWN = frozenset({"labels", "embedding", "vector"})


def _listed(name: str, rows: list[dict[str, Any]]) -> list[ReportBlock]:
    fields = [field for field in dict.fromkeys(field for row in rows for field in row) if field not in _UNSHOWN]
    told = {field: [_cell(row.get(field)) for row in rows[:_ROWS]] for field in fields}
    kept = [field for field in fields if any(cell is not None for cell in told[field])][:_COLUMNS]
    if not kept:
        return []
    columns = tuple(_readable(field)[:300] for field in kept)
    found: list[ReportBlock] = [
        TableBlock(title=_readable(name)[:300], columns=columns, rows=tuple(zip(*(told[field] for field in kept), strict=True)))
    ]
    if len(rows) > _ROWS:
        found.append(TextBlock(text=f"These are the first {_ROWS} of {len(rows):,}."))
    return found


def _cell(value: object) -> Cell:
    """A value as a table's cell: what is made of parts is named by its parts' names."""
    match value:
        case None | "" | [] | ():
            return None
        case bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else None
        case str():
            return _one_line(value, _CELL)
        case list() | tuple():
            return _enumerate([format_cell(cell) for one in value if (cell := _cell(one)) is not None]) or None
        case dict():
            return _name_of(value) or None
        case _:
            return _one_line(str(value), _CELL)


def _enumerate(names: Sequence[str]) -> str:
    """Names behind each other, the first of them."""
    more = f" and {len(names) - _LIST} more" if len(names) > _LIST else ""
    return f"{', '.join(names[:_LIST])}{more}"


def _name_of(thing: dict[str, Any]) -> str:
    """What a thing is called, else its id."""
    named = (thing.get(field) for field in ("title", "name", "label", "id"))
    return next((_one_line(str(one), 200) for one in named if isinstance(one, str | int) and one != ""), "")


def _text_blocks(text: str) -> list[ReportBlock]:
    return [] if not text.strip() or holds_raw_data(text) else parse_blocks(text)


_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_.]*")
_WORDS = re.compile(r"[_.]+|(?<=[a-z0-9])(?=[A-Z])")


def _readable(name: str) -> str:
    """A field's name in words: `dueDate` and `due_date` are `Due date`. A name of words already stays as it is."""
    if not _IDENTIFIER.fullmatch(name):
        return _one_line(name, 300) or "Value"
    words = [word if word.isupper() else word.lower() for word in _WORDS.split(name) if word]
    text = " ".join(words)
    return text[:1].upper() + text[1:]


def _one_line(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


def parse_blocks(text: str, title: str = "") -> list[ReportBlock]:
    """A Markdown text as blocks: its headings, its tables, and what stands between them.

    Args:
        title: the report's own title; a heading at its very beginning that repeats it is left out.
    """
    lines, tokens = text.split("\n"), _MARKDOWN.parse(text)
    blocks: list[ReportBlock] = []
    said = 0
    for at, token in enumerate(tokens):
        if token.level or token.map is None or token.type not in ("heading_open", "table_open"):
            continue
        first, last = token.map
        blocks += _paragraphs("\n".join(lines[said:first]))
        said = last
        if token.type == "table_open":
            blocks += _parsed_table(tokens, at)
        elif words := _one_line(_plain(tokens[at + 1]), 300):
            repeats = not blocks and words.casefold() == title.casefold()
            blocks += [] if repeats else [HeadingBlock(text=words, level=min(4, int(token.tag[1:])))]
    return [*blocks, *_paragraphs("\n".join(lines[said:]))]


def _paragraphs(text: str) -> list[ReportBlock]:
    """A text as blocks of at most the size that one may have, parted between its lines where that can be."""
    blocks: list[ReportBlock] = []
    left = text.strip("\n")
    while left.strip():
        end = len(left) if len(left) <= MAX_BLOCK_TEXT else left.rfind("\n", 1, MAX_BLOCK_TEXT)
        end = end if end > 0 else MAX_BLOCK_TEXT
        piece, left = left[:end], left[end:]
        if piece.strip():
            blocks.append(TextBlock(text=piece.strip("\n")))
    return blocks


def _plain(inline: Token) -> str:
    """The words of a line of Markdown, without its marks."""
    kinds = {"softbreak": " ", "hardbreak": " "}
    return "".join(kinds.get(one.type, one.content) for one in inline.children or ())


def _parsed_table(tokens: Sequence[Token], at: int) -> list[ReportBlock]:
    rows: list[list[str]] = []
    for token in tokens[at:]:
        match token.type:
            case "tr_open":
                rows.append([])
            case "inline":
                rows[-1].append(_one_line(_plain(token), _CELL))
            case "table_close":
                break
    head, *body = rows
    columns = tuple(name or "-" for name in head[:MAX_COLUMNS])
    kept = tuple(tuple(cell or None for cell in row[:MAX_COLUMNS]) for row in body[:MAX_TABLE_ROWS])
    return [TableBlock(columns=columns, rows=kept)]


def list_sources(known: GoalKnowledge, used: Collection[str]) -> tuple[SourceRow, ...]:
    """What the steps of a task read: a step's tool, or the things by name where there are few.

    Args:
        used: ids of the steps that the report rests on; without any it is all that worked.
    """
    rows: dict[str, SourceRow] = {}
    for result in (one for one in known.worked if not used or one.step.id in used):
        step = result.step
        things = [one for one in _things(result.outcome.answer or {}) if isinstance(one.get("id"), str | int)]
        tools = ", ".join(dict.fromkeys(result.outcome.tools or ((step.tool,) if step.tool else ())))
        if things and len(things) <= _LISTED:
            for one in things:
                kind = one.get("type") or one.get("kind") or tools
                row = SourceRow(id=str(one["id"])[:300], title=_name_of({**one, "id": ""}), kind=_one_line(str(kind), 100))
                rows.setdefault(row.id, row)
        else:
            counted_rows = f" ({counted(len(things), 'row', 'rows')})" if things else ""
            title = _one_line(f"{step.description}{counted_rows}", 300)
            rows.setdefault(step.id, SourceRow(id=step.id, title=title, kind=_one_line(tools, 100)))
    return tuple(rows.values())[:_SOURCES]


def _things(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The sources that a tool's answer names, else the objects of its longest list."""
    named = answer.get("sources")
    if isinstance(named, list) and named and all(isinstance(one, dict) and "id" in one for one in named):
        return named
    lists = [[row for row in value if isinstance(row, dict)] for value in answer.values() if isinstance(value, list)]
    return max(lists, key=len, default=[])


def describe_found(outcome: ToolResult) -> str:
    """What a step found, in one line of at most 200 characters: how much, a figure, or its first words.

    Of memories it says only how many there are, since nothing but the memory keeps their texts.
    """
    if not outcome.ok:
        return ""
    answer = outcome.answer or {}
    said = next((answer[name] for name in _SAID if isinstance(answer.get(name), str) and answer[name].strip()), "")
    if said and not holds_raw_data(said):
        return _one_line(" ".join(_plain(one) for one in _MARKDOWN.parse(said) if one.type == "inline"), MAX_FOUND)
    named, things = max(
        ((name, value) for name, value in answer.items() if isinstance(value, list)),
        key=lambda one: len(one[1]),
        default=("", []),
    )
    if named:
        words = _readable(named).lower()
        size = counted(len(things), _singular(words), words) if things else "nothing"
        rows = [one for one in things if isinstance(one, dict)]
        # A memory's text stays with the memory: of such rows nothing but their number is told.
        names = [] if any("text" in one for one in rows) else [name for one in rows[:3] if (name := _row_words(one))]
        shown = f": {'; '.join(names)}{'…' if len(rows) > len(names) else ''}" if names else ""
        return _one_line(f"{size}{shown}", MAX_FOUND)
    told = mask({name: value for name, value in answer.items() if isinstance(value, str | int | float) and value != ""})
    figures = [f"{_readable(name).lower()} {format_cell(_cell(value))}" for name, value in list(told.items())[:4]]
    if figures:
        return _one_line(", ".join(figures), MAX_FOUND)
    return "" if holds_raw_data(outcome.text) else _one_line(outcome.text, MAX_FOUND)


def _singular(words: str) -> str:
    return f"{words[:-3]}y" if words.endswith("ies") else words.removesuffix("s")


def _row_words(row: dict[str, Any]) -> str:
    """What a row is called, else its first values."""
    values = [format_cell(_cell(one)) for one in row.values() if isinstance(one, str | int | float) and one != ""]
    return _name_of(row) or _one_line(" ".join(values[:4]), 80)


def render_blocks(blocks: Iterable[ReportBlock]) -> str:
    """A report's blocks as one Markdown text."""
    return "\n\n".join(text for block in blocks if (text := _render_block(block)))


def _render_block(block: ReportBlock) -> str:
    match block:
        case HeadingBlock(text=text, level=level):
            return f"{'#' * max(2, level)} {_escape(_one_line(text, 300))}"
        case TextBlock(text=text):
            return text.strip("\n")
        case FiguresBlock(rows=rows):
            return "\n".join(map(_figure_line, rows))
        case TableBlock(title=title, columns=columns, rows=rows):
            return _render_table(title, columns, rows)
        case ChartBlock(chart=drawn):
            return _render_chart(drawn)
        case SourcesBlock(rows=rows):
            told = (f"{_escape_line(row.title or row.id)}{_beside(row)}" for row in rows)
            return "## Sources\n\n" + "\n".join(f"{at}. {line}" for at, line in enumerate(told, 1))
        case LimitsBlock(items=items):
            return "## What this report does not say\n\n" + "\n".join(f"- {_escape_line(item)}" for item in items)


_CURRENCIES = frozenset("£$€¥")
"""Stand in front of a figure."""


def _figure_line(row: FigureRow) -> str:
    value, unit = format_cell(row.value), _one_line(row.unit, 50)
    in_front = unit[:1] in _CURRENCIES and row.value is not None
    value = f"{unit[0]}{value} {unit[1:].strip()}".strip() if in_front else f"{value} {unit}".strip()
    note = f" ({_escape(_one_line(row.note, 1_000))})" if row.note else ""
    return f"- {_escape_line(row.label)}: **{_escape(value)}**{note}"


def _beside(row: SourceRow) -> str:
    parts = [part for part in (row.kind, row.id if row.title else "") if part]
    return f" ({_escape(_one_line(', '.join(parts), 400))})" if parts else ""


def _render_chart(drawn: Visualization) -> str:
    if isinstance(drawn.data, str):
        text = sanitize_text(drawn.data)
        return f"### {_escape(drawn.title)}\n\n{_escape(_one_line(text, 2_000))}" if text.strip() else ""
    there = list(dict.fromkeys(field for row in drawn.data for field in row))
    drawn_of = {one for value in drawn.config.values() for one in (value if isinstance(value, list) else [value])}
    fields = ([field for field in there if field in drawn_of] or there)[:MAX_COLUMNS]
    rows = [tuple(_cell(row.get(field)) for field in fields) for row in drawn.data]
    return _render_table(drawn.title, tuple(_readable(field) for field in fields), rows) if rows and fields else ""


def _render_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    padded = [[*row, *[None] * len(columns)][: len(columns)] for row in rows]
    numeric = [any(is_number(row[at]) for row in padded) for at in range(len(columns))]
    lines_ = [_line(columns), _line(["---:" if number else "---" for number in numeric], plain=True)]
    lines_ += [_line([format_cell(cell) for cell in row]) for row in padded[:_ROWS]]
    head = [f"### {_escape(_one_line(title, 300))}"] if title else []
    rest = [f"({len(rows) - _ROWS:,} more rows are not shown here.)"] if len(rows) > _ROWS else []
    return "\n\n".join([*head, "\n".join(lines_), *rest])


_MANY = 10_000
"""From here on a number's thousands are set apart; below it may be a year."""
NOT_KNOWN = "—"


def format_cell(value: Cell) -> str:
    """A value as people read it; what is not known is a dash, and never zero."""
    match value:
        case None | "":
            return NOT_KNOWN
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}" if abs(value) >= _MANY else str(value)
        case float():
            return f"{value:,.2f}".rstrip("0").rstrip(".") if abs(value) >= 1 else f"{value:.3g}"
        case _:
            return value


_MARKS = re.compile(r"[\\`*\[\]<>|]|(?<![^\W_])_|_(?![^\W_])")
_OPENING = re.compile(r"^(?=[#+>~=-])|^(\d{1,9})(?=[.)])")
"""Where a line would begin a list, a heading or a quotation."""


def _escape(text: str) -> str:
    """A text whose characters mean nothing in Markdown."""
    return _MARKS.sub(lambda found: f"\\{found[0]}", text)


def _escape_line(text: str) -> str:
    """The same for a text that stands at the beginning of a line or of a list's item."""
    return _OPENING.sub(lambda found: f"{found[1] or ''}\\", _escape(_one_line(text, 1_000)))


def _line(cells: Sequence[str], *, plain: bool = False) -> str:
    return f"| {' | '.join(cells if plain else [_escape(_one_line(cell, 2_000)) for cell in cells])} |"


async def save_report(caller: Caller, claim: Claim, report: WrittenReport, reasoner: str) -> TaskReport:
    """The report with the id of its document; without one where it could not be saved."""
    item = {
        "text": render_document(report, reasoner),
        "title": report.title,
        "kind": ItemKind.NOTE.value,
        "external_id": f"task/{claim.turn_id}",
        "metadata": {"task": claim.turn_id, "reasoner": reasoner},
        "sources": [claim.conversation_id],
    }
    outcome = await caller.call(DOCUMENT, REMEMBER_TOOL.name, {"items": [item]}, ours=True)
    found = (outcome.answer or {}).get("items") or [{}]
    return TaskReport(
        title=report.title,
        text=report.text,
        blocks=report.blocks,
        charts=report.charts,
        document_id=found[0].get("id"),
        reasoner=reasoner,
    )


def render_document(report: WrittenReport, reasoner: str) -> str:
    """The report as one Markdown text, and who wrote it."""
    foot = f"\n\n---\n\nreasoner: {reasoner}"
    text = f"# {report.title}\n\n{report.text}"
    room = _DOCUMENT - len(foot)
    return (text if len(text) <= room else text[: room - len(_CUT)] + _CUT) + foot


def counted(n: int, one: str, many: str) -> str:
    """`1 project`, `7 projects`."""
    return f"{n:,} {one if n == 1 else many}"


def table(title: str, rows: Sequence[dict[str, Any]]) -> Visualization:
    """Rows as a table with the columns of the first."""
    columns = list(rows[0]) if rows else []
    return Visualization(
        type=VisualizationType.TABLE, title=title[:200], config={"columns": columns}, data=list(rows)[:MAX_ROWS]
    )


def column(title: str, x: str, y: str, rows: Sequence[dict[str, Any]]) -> Visualization:
    """Discrete things side by side."""
    return _drawn(VisualizationType.COLUMN, title, x, y, rows)


def line(title: str, x: str, y: str, rows: Sequence[dict[str, Any]]) -> Visualization:
    """A change over time."""
    return _drawn(VisualizationType.LINE, title, x, y, rows)


def _drawn(kind: VisualizationType, title: str, x: str, y: str, rows: Sequence[dict[str, Any]]) -> Visualization:
    data = [row for row in rows if isinstance(row[y], int | float)]
    return Visualization(type=kind, title=title[:200], config={"xAxis": x, "yAxis": y}, data=data)
