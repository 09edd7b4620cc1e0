"""An answer as a person sees it: the text, charts and tables, what it rests on, how sure it is, and what it lacks."""

from __future__ import annotations

import json
from collections.abc import Iterator

import htpy as h

from phronesis_contracts.analysis import Analysis, Visualization, VisualizationType
from phronesis_contracts.orchestrator import Reply, Source

from .charts import figure
from .fields import NotDrawable
from .tables import table, written
from .texts import clean, markdown, rich


def answer(reply: Reply) -> h.Fragment:
    """A whole reply."""
    found = reply.analysis
    return h.fragment[
        h.div(".text")[rich(found.answer) if found else markdown(reply.user_response)],
        _analysed(found) if found else None,
        _sources(reply.sources),
        _marks(reply),
    ]


def _analysed(found: Analysis) -> Iterator[h.Element]:
    if found.analysis:
        yield h.ul(".findings")[(h.li[rich(each)] for each in found.analysis)]
    for each in found.visualizations:
        yield _visualization(each)
    stats = found.data.summary_stats
    if stats:
        yield h.dl(".figures")[((h.dt[name.replace("_", " ")], h.dd[written(value)]) for name, value in stats.items())]
    if found.data.query_results:
        rows = found.data.query_results
        yield _panel(f"Data behind it ({len(rows):,} rows)", table("Data behind the answer", rows))
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
            return h.section(".report", aria_label=shown.title)[h.h3[shown.title], clean(text)]
        case _, str():
            return h.section(".report")[h.h3[shown.title], h.p(".note")["It holds no rows."]]
        case VisualizationType.TABLE, list(rows):
            return table(shown.title, rows, columns)
    assert isinstance(shown.data, list)
    behind = table(f"{shown.title}: its figures", shown.data)
    try:
        drawn = json.dumps(figure(shown))
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
        h.h3["Sources"],
        (_panel(f"{each.title} · {each.type} · {each.score:.2f}", h.p[each.snippet]) for each in sources),
    ]


def _marks(reply: Reply) -> h.Element:
    used = reply.usage
    extractive = reply.reasoner == "extractive"
    said = ["extractive: no language model" if extractive else reply.reasoner, f"{used.ms / 1000:.1f} s"]
    if used.model_calls:
        said.append(f"{used.model_calls} model calls, {used.input_tokens + used.output_tokens:,} tokens")
    return h.footer(".marks")[
        (h.span(".mark")[each] for each in said),
        (h.span(".mark.degraded")[f"made without: {part}"] for part in reply.degraded),
    ]


def _panel(title: str, *inside: h.Node) -> h.Element:
    return h.details[h.summary[title], inside]
