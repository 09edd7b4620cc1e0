"""The graph's pages.

A layer, a search, a node with what is around it, the workload, the drawing, and the forms made from the registry that
change it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import htpy as h

from phronesis_contracts import BadRequest, Principal
from phronesis_contracts.constitution.lists import Inventory
from phronesis_contracts.constitution.paths import LadderClimbed, SubgraphFound
from phronesis_contracts.constitution.registry import RELATIONSHIPS, Kind, Layer, Lifecycle, NodeType, Property, types_of_layer
from phronesis_contracts.constitution.search import SemanticFound
from phronesis_contracts.constitution.session import WorkloadAssessed
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_contracts.orchestrator import Problem

from ..page import plain_page, render_fault
from .drawing import render_graph
from .parts import (
    field_label,
    format_value,
    may_write,
    page_address,
    relationship_label,
    render_ladder,
    render_neighbours,
    render_nodes,
    render_tasks,
    render_times,
)
from .tools import LayerPage

_HEAD = ("id", "type", "layer", "title", "status", "version", "createdAt", "updatedAt")
"""What stands at the head of a node's page, or under it."""


def page_frame(who: Principal, title: str, *inside: h.Node, found: Inventory | None = None) -> h.Element:
    """A page of the graph, with the layers at the side."""
    counts = {layer: sum(each.count for each in found.types if each.layer is layer) for layer in Layer} if found else {}
    side = h.nav("#layers", aria_label="Layers")[
        h.ul[(h.li[h.a(href=page_address(layer=layer.value))[layer.value], _count(counts.get(layer))] for layer in Layer)],
        h.ul[h.li[h.a(href=page_address("graph"))["Drawing"]], h.li[h.a(href=page_address("workload"))["Workload"]]],
        _search(""),
    ]
    return plain_page(who, title, h.div(".columns")[side, h.main(".graph-page")[h.h1[title], inside]])


def _count(count: int | None) -> h.Element | None:
    return None if count is None else h.span(".note")[f"{count:,} nodes"]


def layer_page(who: Principal, layer: Layer, status: Lifecycle, found: LayerPage, counted: Inventory) -> h.Element:
    """The nodes of a layer in a status, a page of them."""
    kinds = types_of_layer(layer)
    more = page_address(layer=layer.value, status=status.value, cursor=found.next_cursor)
    others = (one for one in Lifecycle if one is not status)
    return page_frame(
        who,
        f"The {layer} layer",
        h.p(".note")[", ".join(f"{each.count} {field_label(each.type)}" for each in counted.types if each.layer is layer)],
        h.p(".new")["New: ", (h.a(href=page_address("new", type=kind.name))[field_label(kind.name)] for kind in kinds)]
        if may_write(who, layer)
        else None,
        render_nodes(found.items) if found.items else h.p[f"There is nothing {status} in this layer."],
        h.p[h.a(href=more)["More"]] if found.next_cursor else None,
        h.p(".note")[
            "Shown: ",
            status.value,
            (h.a(href=page_address(layer=layer.value, status=one.value))[f" · {one}"] for one in others),
        ],
        found=counted,
    )


def search_page(who: Principal, text: str, found: SemanticFound) -> h.Element:
    rows = [(hit.node, f"{hit.score:.2f}") for hit in found.results]
    return page_frame(
        who,
        f"Found: {text}",
        render_nodes([node for node, _ in rows], [score for _, score in rows])
        if rows
        else h.p["Nothing is near enough to it."],
        (h.p(".note")[each] for each in found.warnings),
    )


def node_page(who: Principal, node: ConstitutionNode, around: SubgraphFound, ladder: LadderClimbed | None) -> h.Element:
    """A node in full, its neighbours by relationship, and the ladder of a goal."""
    fields = node.model_dump(mode="json", by_alias=True)
    said = {name: value for name, value in fields.items() if name not in _HEAD and value not in (None, "", [], {})}
    return page_frame(
        who,
        node.title,
        h.p(".marks")[
            (h.span(".mark")[each] for each in (field_label(node.type), node.layer.value, node.status or "", node.id))
        ],
        h.dl(".figures")[((h.dt[field_label(name)], h.dd[format_value(value)]) for name, value in said.items())],
        render_times(node),
        h.p[
            h.a(href=page_address("graph", id=node.id))["Draw what is around it"],
            [" · ", h.a(href=page_address("edit", node.id))["Change it"]] if may_write(who, node.layer) else None,
        ],
        render_ladder(ladder),
        render_neighbours(node, around),
    )


def workload_page(who: Principal, found: WorkloadAssessed) -> h.Element:
    """Whether there is room for more."""
    capacity = found.capacity
    share = capacity.utilization_percent
    return page_frame(
        who,
        "Workload",
        h.p(".note")[f"{found.start_date:%d %b %Y} to {found.end_date:%d %b %Y}"],
        h.p(f".zone.{capacity.zone}")[
            h.meter(min="0", max="100", value=str(min(100.0, share or 0.0)), aria_label="Use of the working hours"),
            f" {capacity.zone}: {capacity.scheduled_hours:g} of {capacity.available_hours:g} hours",
            f" ({share:.0f}%)" if share is not None else None,
        ],
        h.ul(".findings")[(h.li[each] for each in found.recommendations)],
        h.h2["Tasks that are due"],
        render_tasks(found),
        h.p(".note")[f"Made without: {', '.join(found.degraded)}"] if found.degraded else None,
    )


def graph_page(who: Principal, found: SubgraphFound, middle: ConstitutionNode | None, depth: int) -> h.Element:
    """The drawing of a neighbourhood, or of the graph's top."""
    other = 1 if depth == 2 else 2
    return page_frame(
        who,
        f"Around: {middle.title}" if middle else "Foundation and vision",
        h.p[
            h.a(href=page_address("nodes", middle.id))["Read it"],
            " · ",
            h.a(href=page_address("graph", id=middle.id, depth=str(other)))["Draw more" if other == 2 else "Draw less"],
        ]
        if middle
        else h.p(".note")["Press a box to draw what is around it."],
        render_graph(found, middle.id if middle else None),
        h.p(".note")["There is more around it than is drawn."] if found.truncated else None,
    )


def _search(text: str) -> h.Element:
    return h.form(method="get", action=page_address("search"))[
        h.label(for_="q")["Find by meaning"],
        h.input("#q", name="q", type="search", value=text, required=True, maxlength="500"),
        h.button(type="submit")["Find"],
    ]


_COMMON = ("title", "summary", "description")
_LONG = frozenset(
    {"summary", "description", "narrative", "statement", "rationale", "reasoning", "content", "pattern", "response"}
)
_GUARDRAIL = "constitution.guardrail"
_INPUTS: dict[Kind, dict[str, str]] = {
    Kind.NUMBER: {"type": "number", "step": "any"},
    Kind.SHARE: {"type": "number", "step": "any", "min": "0", "max": "1"},
    Kind.HOURS: {"type": "number", "step": "any", "min": "0"},
    Kind.PRIORITY: {"type": "number", "step": "1", "min": "1", "max": "5"},
    Kind.ROI: {"type": "number", "step": "any"},
    Kind.DATE: {"type": "text", "placeholder": "2026-11-22, or with a time"},
    Kind.TEXT: {"type": "text"},
}


def create_page(who: Principal, kind: NodeType, key: str, filled: Mapping[str, str], problem: Problem | None) -> h.Element:
    inside = [h.input(type="hidden", name="key", value=key), h.input(type="hidden", name="type", value=kind.name)]
    return page_frame(
        who,
        f"New {field_label(kind.name)}",
        _render_problem(problem),
        _form(page_address("new"), kind, filled, inside, problem),
    )


def edit_page(
    who: Principal, kind: NodeType, node: ConstitutionNode, filled: Mapping[str, str], problem: Problem | None
) -> h.Element:
    """The form for a node that is there, and the one that joins it to another."""
    inside = [h.input(type="hidden", name="version", value=str(node.version))]
    return page_frame(
        who,
        f"Change: {node.title}",
        _render_problem(problem),
        _form(page_address("edit", node.id), kind, filled, inside, problem),
        _join_form(node),
    )


def form_values(kind: NodeType, node: ConstitutionNode) -> dict[str, str]:
    said = node.model_dump(mode="json", by_alias=True)
    return {name: _value_text(said.get(name)) for name in (*_COMMON, "status", *(one.name for one in kind.properties))}


def read_form(kind: NodeType, filled: Mapping[str, str], before: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What a form says, as a write takes it.

    Args:
        before: what stood in it; what did not change is not written, and what was emptied is removed.

    Raises:
        BadRequest: what should be a number is none.
    """
    said: dict[str, Any] = {}
    for name in (*_COMMON, "status"):
        said[name] = filled.get(name, "").strip() or None
    for one in kind.properties:
        said[one.name] = _read_value(one, filled.get(one.name, "").strip())
    if before is None:
        said = {name: value for name, value in said.items() if value is not None}
    else:
        said = {name: value for name, value in said.items() if filled.get(name, "").strip() != before.get(name, "")}
    named = [id.strip() for id in filled.get("acknowledge", "").split(",") if id.strip()]
    reason = filled.get("override", "").strip()
    return said | ({"acknowledge": named} if named else {}) | ({"override": reason} if reason else {})


def _read_value(one: Property, text: str) -> Any:
    if not text:
        return None
    match one.kind:
        case Kind.TEXT | Kind.DATE:
            return text
        case Kind.TEXTS:
            return [line.strip() for line in text.splitlines() if line.strip()]
        case Kind.PRIORITY:
            return int(text) if text.isdigit() else text
    try:
        number = float(text)
    except ValueError as error:
        raise BadRequest(f"{field_label(one.name)} is a number", field=one.name) from error
    return {"total": number} if one.kind is Kind.ROI else number


def _value_text(value: Any) -> str:
    match value:
        case None:
            return ""
        case {"total": total}:
            return f"{total:g}"
        case list():
            return "\n".join(str(each) for each in value)
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def _form(where: str, kind: NodeType, filled: Mapping[str, str], inside: h.Node, problem: Problem | None) -> h.Element:
    return h.form(".node", method="post", action=where)[
        inside,
        (_field(Property(name), filled.get(name, ""), name == "title") for name in _COMMON),
        _status(kind, filled.get("status", "")),
        (_field(one, filled.get(one.name, ""), False) for one in kind.properties),
        _rule_field(problem, filled) if problem and problem.code == _GUARDRAIL else None,
        h.button(type="submit")["Save"],
    ]


def _rule_field(problem: Problem, filled: Mapping[str, str]) -> h.Fragment:
    """The names of rules that may be acknowledged; of one that blocks, an admin's reason to override it."""
    name = "acknowledge" if problem.field == "acknowledge" else "override"
    return _field(Property(name), filled.get(name, ""), False)


def _field(one: Property, value: str, required: bool) -> h.Fragment:
    id = f"f-{one.name}"
    label = h.label(for_=id)[field_label(one.name).capitalize()]
    if one.name in _LONG or one.kind is Kind.TEXTS:
        hint = "one a line" if one.kind is Kind.TEXTS else None
        return h.fragment[label, h.textarea(f"#{id}", name=one.name, rows="3", maxlength="20000", placeholder=hint)[value]]
    return h.fragment[label, h.input(f"#{id}", _INPUTS[one.kind], name=one.name, value=value, required=required)]


def _status(kind: NodeType, value: str) -> h.Fragment:
    options = (h.option(value=each, selected=each == value)[each] for each in kind.statuses)
    return h.fragment[h.label(for_="f-status")["Status"], h.select("#f-status", name="status")[options]]


def _join_form(node: ConstitutionNode) -> h.Element:
    options = (h.option(value=name)[relationship_label(name)] for name in RELATIONSHIPS)
    return h.form(".node", method="post", action=page_address("join", node.id))[
        h.h2["Join it to another node"],
        h.label(for_="f-relationship")["Relationship"],
        h.select("#f-relationship", name="type")[options],
        h.label(for_="f-to")["Id of the other node"],
        h.input("#f-to", name="to", required=True, maxlength="200"),
        h.button(type="submit")["Join"],
    ]


def _render_problem(problem: Problem | None) -> h.Element | None:
    return render_fault(problem) if problem else None
