"""A task's report as a file: Markdown, one HTML page that needs nothing else, or the data of a PDF."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import htpy as h
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from markupsafe import Markup
from starlette.responses import Response

from phronesis_contracts import Principal
from phronesis_contracts.answers import Visualization, VisualizationType
from phronesis_contracts.tasks import (
    MAX_BLOCK_TEXT,
    Cell,
    ChartBlock,
    FigureRow,
    FiguresBlock,
    HeadingBlock,
    LimitsBlock,
    NoReport,
    ReportBlock,
    SourceRow,
    SourcesBlock,
    TableBlock,
    Task,
    TaskNotEnded,
    TaskReport,
    TextBlock,
)

from .charts import NotDrawable, draw_svg
from .texts import format_value, render_markdown, sanitise
from .typesetting import Typesetter

log = logging.getLogger(__name__)

_ASSETS = Path(__file__).parent / "assets"
_TITLE_OF_LIMITS = "What this report does not say"


class ReportFormat(StrEnum):
    """The forms of a report."""

    MARKDOWN = "markdown"
    HTML = "html"
    PDF = "pdf"


MEDIA_TYPES = {
    ReportFormat.MARKDOWN: "text/markdown",
    ReportFormat.HTML: "text/html",
    ReportFormat.PDF: "application/pdf",
}
_ENDINGS = {ReportFormat.MARKDOWN: "md", ReportFormat.HTML: "html", ReportFormat.PDF: "pdf"}


def chosen_format(accept: str) -> ReportFormat:
    """The form that an `Accept` header prefers; Markdown where it names none of them."""
    found = ReportFormat.MARKDOWN
    best = 0.0
    for part in accept.split(","):
        name, *parameters = (one.strip().lower() for one in part.split(";"))
        weights = [re.fullmatch(r"q=([01](?:\.\d{0,3})?)", one) for one in parameters]
        weight = next((float(one[1]) for one in weights if one), 1.0)
        wanted = next((form for form, media in MEDIA_TYPES.items() if media == name), None)
        if wanted is not None and weight > best:
            found, best = wanted, weight
    return found


async def report_response(who: Principal, task: Task, form: ReportFormat, typesetter: Typesetter) -> Response:
    """A task's report as a file.

    Raises:
        TaskNotEnded: the task goes on.
        NoReport: it ended without one.
        Unavailable: too many reports are set in type already, or the process for it failed.
        TimedOut: it took too long.
        ReportTooLong: a PDF of it would have too many pages.
    """
    if not task.status.ended:
        raise TaskNotEnded(f"the task is {task.status}; its report is there once it has ended")
    report = task.progress.report
    if report is None:
        raise NoReport(f"the task was {task.status} and has no report")
    exported = _Exported(report, task, who.user)
    headers = {"Content-Disposition": f'attachment; filename="report-{task.task_id}.{_ENDINGS[form]}"'}
    match form:
        case ReportFormat.MARKDOWN:
            content = exported.markdown().encode("utf-8", "replace")
        case ReportFormat.HTML:
            # The page is large for a loop that others wait for.
            content = (await asyncio.to_thread(exported.html)).encode("utf-8", "replace")
            headers["Content-Security-Policy"] = _policy()
        case ReportFormat.PDF:
            content = await typesetter.typeset(who.tenant, await asyncio.to_thread(exported.paper))
    return Response(content, 200, headers, MEDIA_TYPES[form])


@dataclass(frozen=True)
class _Exported:
    """One report with what stands around it. `user`: who asked for it."""

    report: TaskReport
    task: Task
    user: str

    @property
    def at(self) -> datetime:
        return (self.task.ended_at or self.task.created_at).astimezone(UTC)

    @property
    def meta(self) -> str:
        """When, for whom and by whom it was written."""
        by = "rules, without a language model" if self.report.reasoner == "extractive" else self.report.reasoner
        return f"{self.at.day} {self.at:%B %Y} · asked by {self.user} · written by {by}"

    @property
    def blocks(self) -> tuple[ReportBlock, ...]:
        """Its blocks; a report of an earlier release has text and charts alone."""
        if self.report.blocks:
            return self.report.blocks
        text = self.report.text
        pieces = [text[at : at + MAX_BLOCK_TEXT] for at in range(0, len(text), MAX_BLOCK_TEXT)]
        return (*(TextBlock(text=piece) for piece in pieces), *(ChartBlock(chart=chart) for chart in self.report.charts))

    def markdown(self) -> str:
        quoted = "\n".join(f"> {line}" for line in self.task.goal.splitlines())
        return f"# {_one_line(self.report.title)}\n\n{self.meta}\n\n{quoted}\n\n{self.report.text}\n"

    def html(self) -> str:
        body = h.body[
            h.header[
                h.h1(dir="auto")[self.report.title],
                h.p(".meta")[self.meta],
                h.p(".goal", dir="auto")[self.task.goal],
            ],
            h.main[map(_block_of_page, self.blocks)],
            h.footer[f"Task {self.task.task_id}"],
        ]
        page = h.html(lang="en")[
            h.head[
                h.meta(charset="utf-8"),
                h.meta(http_equiv="Content-Security-Policy", content=_policy()),
                h.meta(name="viewport", content="width=device-width, initial-scale=1"),
                h.title[self.report.title],
                h.style[Markup(_css())],
            ],
            body,
        ]
        return str(page)

    def paper(self) -> dict[str, Any]:
        """What the template of the PDF is filled with."""
        return {
            "title": self.report.title,
            "short": _broken(_shorten(_one_line(self.report.title), 90), 60),
            "heading": _worded(self.report.title, 18),
            "author": self.user,
            "date": {"year": self.at.year, "month": self.at.month, "day": self.at.day},
            "meta": _broken(self.meta, 60),
            "foot": f"Task {self.task.task_id}",
            "goal": _worded(self.task.goal, 50),
            "blocks": _Paper().blocks(self.blocks),
        }


_CURRENCIES = frozenset("£$€¥")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


# The page.


@cache
def _css() -> str:
    return (_ASSETS / "report.css").read_text()


@cache
def _policy() -> str:
    digest = base64.b64encode(hashlib.sha256(_css().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _block_of_page(block: ReportBlock) -> h.Node:
    match block:
        case HeadingBlock(text=text, level=level):
            return (h.h2, h.h2, h.h3, h.h4)[level - 1](dir="auto")[text]
        case TextBlock(text=text):
            return h.div(dir="auto")[render_markdown(text)]
        case FiguresBlock(rows=rows):
            return h.dl(".figures")[map(_figure_of_page, rows)]
        case TableBlock(title=title, columns=columns, rows=rows):
            return _table_of_page(title, columns, rows)
        case ChartBlock(chart=chart):
            return _chart_of_page(chart)
        case SourcesBlock(rows=rows):
            listed = (h.li[row.title or row.id, h.span(".note")[_beside(row)]] for row in rows)
            return h.section(aria_label="Sources")[h.h2["Sources"], h.ol(".sources")[listed]]
        case LimitsBlock(items=items):
            return h.aside(aria_label=_TITLE_OF_LIMITS)[
                h.h2[_TITLE_OF_LIMITS], h.ul[(h.li(dir="auto")[item] for item in items)]
            ]


def _figure_of_page(row: FigureRow) -> h.Element:
    return h.div[h.dt[row.label], h.dd[_figure(row)], h.dd(".note")[row.note] if row.note else None]


def _figure(row: FigureRow) -> str:
    """A figure with its unit; a currency stands in front of it."""
    value, unit = format_value(row.value), row.unit
    if unit[:1] in _CURRENCIES and row.value is not None:
        return f"{unit[0]}{value} {unit[1:].strip()}".strip()
    return f"{value} {unit}".strip()


def _table_of_page(title: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> h.Element:
    numeric = _numeric(columns, rows)
    return h.div(".rows", tabindex="0", role="region", aria_label=title or "Table")[
        h.table[
            h.caption[title] if title else None,
            h.thead[h.tr[(h.th(scope="col", class_={"number": n})[name] for name, n in zip(columns, numeric, strict=True))]],
            h.tbody[
                (
                    h.tr[(h.td(class_={"number": _is_number(cell)}, dir="auto")[format_value(cell)] for cell in row)]
                    for row in rows
                )
            ],
        ]
    ]


def _chart_of_page(chart: Visualization) -> h.Node:
    if isinstance(chart.data, str):
        return h.section(aria_label=chart.title)[h.h3[chart.title], sanitise(chart.data)]
    if chart.type is not VisualizationType.TABLE:
        try:
            return h.figure[h.figcaption[chart.title], Markup(draw_svg(chart))]
        except NotDrawable as error:
            log.info("a chart of a report is shown as a table: %s", error)
    return _table_of_page(*_rows_of_chart(chart))


def _rows_of_chart(chart: Visualization) -> tuple[str, list[str], list[list[Cell]]]:
    """The rows that a chart stands on, as a table."""
    data = chart.data if isinstance(chart.data, list) else []
    named = chart.config.get("columns")
    fields = [str(one) for one in named] if isinstance(named, list) and named else []
    fields = fields or list(dict.fromkeys(field for row in data for field in row)) or ["-"]
    return chart.title, fields, [[_as_cell(row.get(field)) for field in fields] for row in data]


def _as_cell(value: object) -> Cell:
    return value if value is None or isinstance(value, str | int | float) else format_value(value)


def _beside(row: SourceRow) -> str:
    parts = [part for part in (row.kind, row.id if row.title else "") if part]
    return f" ({', '.join(parts)})" if parts else ""


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _numeric(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[bool]:
    """Which columns hold numbers."""
    return [any(len(row) > at and _is_number(row[at]) for row in rows) for at in range(len(columns))]


# The paper: plain data for the template, in which no text is markup.

MAX_PAPER_CELLS = 9_000
"""Cells of all tables together that a PDF shows; it says where a table is cut."""
_LETTERS = 104
"""Letters of a line at 9 points."""
_DEEPEST = 5
"""Lists and quotations within each other; what lies deeper becomes one paragraph."""
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff]")
_LINK = re.compile(r"(?:https?://|mailto:)[!-~]+", re.I)
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


def _clean(text: str) -> str:
    """A text without what cannot be printed, and what turns the direction of a line over what follows it."""
    return re.sub("[\u202a-\u202e\u2066-\u2069]", "", _UNPRINTABLE.sub("", text))


def _broken(text: str, letters: int) -> str:
    """A text whose longest words may be broken, so that none stands over the edge."""
    return re.sub(rf"\S{{{max(4, letters)}}}(?=\S)", lambda found: f"{found[0]}\u200b", _clean(text))


def _right_to_left(text: str) -> bool:
    first = next((kind for letter in text[:500] if (kind := unicodedata.bidirectional(letter)) in ("L", "R", "AL")), "L")
    return first != "L"


def _worded(text: str, letters: int) -> dict[str, Any]:
    return {"text": _broken(text, letters), "rtl": _right_to_left(text)}


class _Paper:
    """Makes the data of one report's blocks."""

    def __init__(self) -> None:
        self._cells = MAX_PAPER_CELLS

    def blocks(self, blocks: Sequence[ReportBlock]) -> list[dict[str, Any]]:
        return [made for block in blocks for made in self._block(block)]

    def _block(self, block: ReportBlock) -> Iterator[dict[str, Any]]:
        match block:
            case HeadingBlock(text=text, level=level):
                yield {"kind": "heading", "level": max(1, level - 1), **_worded(_one_line(text), 30)}
            case TextBlock(text=text):
                yield from self._nodes(SyntaxTreeNode(_MARKDOWN.parse(_clean(text))).children, 0)
            case FiguresBlock(rows=rows):
                yield _paper_figures(rows)
            case TableBlock(title=title, columns=columns, rows=rows):
                yield self._table(title, columns, rows)
            case ChartBlock(chart=chart):
                yield from self._chart(chart)
            case SourcesBlock(rows=rows):
                told = [{"text": _broken(row.title or row.id, 60), "beside": _broken(_beside(row), 60)} for row in rows]
                yield {"kind": "sources", "rows": told}
            case LimitsBlock(items=items):
                yield {"kind": "limits", "items": [_broken(item, 60) for item in items]}

    def _chart(self, chart: Visualization) -> Iterator[dict[str, Any]]:
        if isinstance(chart.data, str):
            yield {"kind": "heading", "level": 3, **_worded(_one_line(chart.title), 30)}
            yield _paragraph([_part(Markup(sanitise(chart.data)).striptags())])
            return
        if chart.type is not VisualizationType.TABLE:
            try:
                yield {"kind": "chart", "title": _broken(_one_line(chart.title), 60), "svg": draw_svg(chart)}
                return
            except NotDrawable as error:
                log.info("a chart of a report is shown as a table: %s", error)
        yield self._table(*_rows_of_chart(chart))

    def _table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> dict[str, Any]:
        shown = rows[: self._cells // len(columns)]
        self._cells -= len(shown) * len(columns)
        texts = [[format_value(cell) for cell in [*row, *[None] * len(columns)][: len(columns)]] for row in shown]
        numeric = _numeric(columns, shown)
        size = next((size for most, size in ((5, 9.0), (8, 8.0), (12, 7.0), (18, 5.5)) if len(columns) <= most), 4.0)
        # What the cells' own edges take is the same for every size.
        line = int((_LETTERS - 2 * len(columns)) * 9 / size)
        widths = _share(line, [[name, *(row[at] for row in texts[:300])] for at, name in enumerate(columns)], numeric)
        cut = (
            f"These are the first {len(shown):,} of {len(rows):,} rows; the HTML page has them all."
            if len(shown) < len(rows)
            else ""
        )
        return {
            "kind": "table",
            "title": _broken(_one_line(title), 60),
            "columns": [_hard_broken(name, widths[at]) for at, name in enumerate(columns)],
            "rows": [[_hard_broken(cell, widths[at]) for at, cell in enumerate(row)] for row in texts],
            "numeric": numeric,
            "widths": widths,
            "size": size,
            "note": cut,
        }

    def _nodes(self, nodes: Sequence[SyntaxTreeNode], depth: int) -> Iterator[dict[str, Any]]:
        """The blocks of a Markdown text."""
        for node in nodes:
            match node.type:
                case "paragraph" | "inline":
                    yield _paragraph(_parts(node))
                case "heading":
                    level = min(4, max(1, int(node.tag[1:]) - 1))
                    yield {"kind": "heading", "level": level, **_worded("".join(one["text"] for one in _parts(node)), 30)}
                case "fence" | "code_block":
                    yield {"kind": "code", "text": _broken(node.content.rstrip("\n"), 80)}
                case "hr":
                    yield {"kind": "rule"}
                case "table":
                    head, *body = [[_words(cell) for cell in row.children] for part in node.children for row in part.children]
                    yield self._table("", head, body)
                case "bullet_list" | "ordered_list" | "blockquote" if depth >= _DEEPEST:
                    yield _paragraph([_part(_words(node))])
                case "bullet_list" | "ordered_list":
                    items = [list(self._nodes(item.children, depth + 1)) for item in node.children]
                    start = min(999_999, int(node.attrGet("start") or 1))
                    yield {"kind": "list", "ordered": node.type == "ordered_list", "start": start, "items": items}
                case "blockquote":
                    yield {"kind": "quote", "blocks": list(self._nodes(node.children, depth + 1))}
                case _:
                    yield _paragraph([_part(_words(node))])


def _share(line: int, cells: Sequence[Sequence[str]], numeric: Sequence[bool]) -> list[int]:
    """Letters of a line for each column: columns of text give way before figures do, since a figure is not to be parted.

    Args:
        cells: of each column, its name first.
    """
    wanted = []
    for column, number in zip(cells, numeric, strict=True):
        words = max([4, *map(len, column[0].split())])
        # The name of a column of figures may take several lines.
        wanted.append(min(45, max(words, *map(len, column[number:]), words)) + 1)
    fixed = sum(width for width, number in zip(wanted, numeric, strict=True) if number)
    texts = sum(wanted) - fixed
    if texts and sum(wanted) > line:
        left = max(0.0, (line - fixed) / texts)
        wanted = [width if number else max(9, int(width * left)) for width, number in zip(wanted, numeric, strict=True)]
    over = max(1.0, sum(wanted) / line)
    return [max(3, int(width / over)) for width in wanted]


def _hard_broken(text: str, letters: int) -> str:
    return re.sub(rf"\S{{{letters}}}(?=\S)", lambda found: f"{found[0]}\u200b", _clean(_one_line(text)))


def _paper_figures(rows: Sequence[FigureRow]) -> dict[str, Any]:
    told = []
    for row in rows:
        value = _figure(row)
        told.append({"label": _broken(row.label, 24), "value": _broken(value, 14), "note": _broken(row.note, 24)})
    short = len(rows) <= 12 and all(
        len(one["value"]) <= 20 and len(one["label"]) <= 80 and len(one["note"]) <= 120 for one in told
    )
    return {"kind": "figures", "short": short, "rows": told}


def _part(text: str, *, strong: bool = False, emphasis: bool = False, code: bool = False, address: str = "") -> dict[str, Any]:
    return {
        "kind": "text",
        "text": _broken(text, 60),
        "strong": strong,
        "emphasis": emphasis,
        "code": code,
        "address": address if _LINK.fullmatch(address) else "",
    }


def _paragraph(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {"kind": "paragraph", "parts": parts, "rtl": _right_to_left("".join(one.get("text", "") for one in parts))}


def _parts(node: SyntaxTreeNode, **marks: Any) -> list[dict[str, Any]]:
    """What stands in a line of Markdown, each piece with its marks."""
    found: list[dict[str, Any]] = []
    for child in node.children:
        match child.type:
            case "text":
                found.append(_part(child.content, **marks))
            case "softbreak":
                found.append(_part(" ", **marks))
            case "hardbreak":
                found.append({"kind": "break"})
            case "code_inline":
                found.append(_part(child.content, **{**marks, "code": True}))
            case "image":
                found.append(_part(child.content, **marks))
            case "strong":
                found += _parts(child, **{**marks, "strong": True})
            case "em":
                found += _parts(child, **{**marks, "emphasis": True})
            case "link":
                found += _parts(child, **{**marks, "address": str(child.attrGet("href") or "")})
            case _:
                found += _parts(child, **marks)
    return found


def _words(node: SyntaxTreeNode) -> str:
    """All the words below a node."""
    if node.type in ("softbreak", "hardbreak"):
        return " "
    if not node.children:
        return node.content if node.type in ("text", "code_inline", "fence", "code_block", "image") else ""
    between = " " if node.type not in ("inline", "strong", "em", "link", "paragraph", "th", "td") else ""
    return between.join(map(_words, node.children))
