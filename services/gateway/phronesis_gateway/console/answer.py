"""An answer as a person sees it: sanitised text, charts and tables, what it rests on, how sure it is, and what it lacks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import htpy as h
import nh3
from markdown_it import MarkdownIt
from markupsafe import Markup

from phronesis_contracts.answers import Analysis, Visualization, VisualizationType
from phronesis_contracts.orchestrator import Reply, Source

from .charts import NotDrawable, build_figure

_TAGS = set(
    "a abbr b blockquote br caption code dd del div dl dt em h1 h2 h3 h4 h5 h6 hr i li ol p pre s small span strong sub sup"
    " table tbody td tfoot th thead tr u ul".split()
)
# No image: its address would be asked for, and could carry off what the answer says.
_CLEANER = nh3.Cleaner(
    tags=_TAGS,
    attributes={"a": {"href"}, "td": {"colspan", "rowspan"}, "th": {"colspan", "rowspan", "scope"}, "ol": {"start"}},
    url_schemes={"http", "https", "mailto"},
    set_tag_attribute_values={"a": {"target": "_blank"}},
    link_rel="noopener noreferrer",
)
_PLAIN = MarkdownIt("commonmark", {"html": False}).enable("table")
_MIXED = MarkdownIt("commonmark", {"html": True}).enable("table")


def render_markdown(text: str) -> Markup:
    return sanitise(_PLAIN.render(text))


def render_rich_text(text: str) -> Markup:
    """Markdown that may hold HTML, or HTML alone, as harmless HTML."""
    return sanitise(_MIXED.render(text))


def sanitise(fragment: str) -> Markup:
    """A fragment of HTML without anything that runs, loads or styles."""
    return Markup(_CLEANER.clean(fragment))


MAX_ROWS = 200
"""Rows of a table that are shown; it says how many there are."""
_MANY = 10_000
"""From here on a number's thousands are set apart; below it may be a year."""


def render_table(title: str, rows: Sequence[dict[str, Any]], columns: object = None) -> h.Element:
    """The rows under a caption.

    Args:
        rows: the rows; what one lacks is shown as not known.
        columns: names of fields in their order; all that the rows have by default.
    """
    shown = rows[:MAX_ROWS]
    fields = _fields(columns) or list(dict.fromkeys(field for row in shown for field in row))
    return h.div(".rows", tabindex="0", role="region", aria_label=title)[
        h.table[
            h.caption[title, f" (the first {MAX_ROWS:,} of {len(rows):,} rows)" if len(rows) > MAX_ROWS else None],
            h.thead[h.tr[(h.th(scope="col")[field.replace("_", " ")] for field in fields)]],
            h.tbody[(h.tr[(_cell(row.get(field)) for field in fields)] for row in shown)],
        ]
    ]


def format_value(value: object) -> str:
    """A value as people read it; what is not known is a dash, and never zero."""
    match value:
        case None | "":
            return "—"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}" if abs(value) >= _MANY else str(value)
        case float():
            return f"{value:,.2f}".rstrip("0").rstrip(".") if abs(value) >= 1 else f"{value:.3g}"
        case str():
            return value
        case list() | tuple():
            return ", ".join(format_value(each) for each in value)
        case _:
            return json.dumps(value, ensure_ascii=False, default=str)


def _cell(value: object) -> h.Element:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return h.td(class_={"number": number})[format_value(value)]


def _fields(columns: object) -> list[str]:
    return [each for each in columns if isinstance(each, str)] if isinstance(columns, list) else []


def render_answer(reply: Reply) -> h.Fragment:
    found = reply.analysis
    return h.fragment[
        h.div(".text")[render_rich_text(found.answer) if found else render_markdown(reply.user_response)],
        _analysis_section(found) if found else None,
        _sources(reply.sources),
        _marks(reply),
    ]


def _analysis_section(found: Analysis) -> Iterator[h.Element]:
    if found.analysis:
        yield h.ul(".findings")[(h.li[render_rich_text(each)] for each in found.analysis)]
    for each in found.visualizations:
        yield _visualization(each)
    stats = found.data.summary_stats
    if stats:
        yield h.dl(".figures")[((h.dt[name.replace("_", " ")], h.dd[format_value(value)]) for name, value in stats.items())]
    if found.data.query_results:
        rows = found.data.query_results
        yield _panel(f"Data behind it ({len(rows):,} rows)", render_table("Data behind the answer", rows))
    if found.cypher_executed:
        yield _panel("What was read from the graph", h.pre[h.code[found.cypher_executed]])
    process = found.memory_process
    yield _panel(f"How it came about (mode {found.mode})", h.p[h.strong[process.intent]], h.p[process.thought_trace])
    share = f"{found.confidence:.0%}"
    yield h.p(".confidence")[
        "Confidence ", h.meter(min="0", max="1", value=str(found.confidence), aria_label="Confidence"), f" {share}"
    ]


def _visualization(shown: Visualization) -> h.Element:
    columns = shown.config.get("columns")
    match shown.type, shown.data:
        case VisualizationType.HTML, str(text):
            return h.section(".report", aria_label=shown.title)[h.h3[shown.title], sanitise(text)]
        case _, str():
            return h.section(".report")[h.h3[shown.title], h.p(".note")["It holds no rows."]]
        case VisualizationType.TABLE, list(rows):
            return render_table(shown.title, rows, columns)
    assert isinstance(shown.data, list)
    behind = render_table(f"{shown.title}: its figures", shown.data)
    try:
        drawn = json.dumps(build_figure(shown))
    except NotDrawable as error:
        return h.section(".report")[h.h3[shown.title], h.p(".note")[f"It cannot be drawn: {error}."], behind]
    return h.figure(".chart", data_type=shown.type.value)[
        h.figcaption[shown.title],
        h.div(".drawing", role="img", aria_label=f"{shown.type} chart: {shown.title}", data_figure=drawn),
        _panel("Its figures", behind),
    ]


def _sources(sources: tuple[Source, ...]) -> h.Element | None:
    if not sources:
        return None
    return h.section(".sources", aria_label="Sources")[
        h.h3["Sources"], (_panel(f"{each.title} · {each.type} · {each.score:.2f}", h.p[each.snippet]) for each in sources)
    ]


def _marks(reply: Reply) -> h.Element:
    used = reply.usage
    extractive = reply.reasoner == "extractive"
    said = ["extractive: no language model" if extractive else reply.reasoner, f"{used.ms / 1000:.1f} s"]
    if used.model_calls:
        said.append(f"{used.model_calls} model calls, {used.input_tokens + used.output_tokens:,} tokens")
    return h.footer(".marks")[
        (h.span(".mark")[each] for each in said), (h.span(".mark.degraded")[f"made without: {part}"] for part in reply.degraded)
    ]


def _panel(title: str, *inside: h.Node) -> h.Element:
    return h.details[h.summary[title], inside]
