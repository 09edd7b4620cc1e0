"""The pages that only show: a layer, a search, a node with what is around it, the workload, the drawing."""

from __future__ import annotations

import htpy as h

from phronesis_contracts import Principal
from phronesis_contracts.constitution.kinds import Layer, Lifecycle
from phronesis_contracts.constitution.lists import Inventory
from phronesis_contracts.constitution.paths import LadderClimbed, SubgraphFound
from phronesis_contracts.constitution.registry import of_layer
from phronesis_contracts.constitution.search import SemanticFound
from phronesis_contracts.constitution.session import WorkloadAssessed
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_gateway.console.page import plain

from .asking import Listed
from .drawn import drawn
from .parts import ladder_of, neighbours, rows_of, tasks, times
from .words import address, may_write, shown, spaced

_HEAD = ("id", "type", "layer", "title", "status", "version", "createdAt", "updatedAt")
"""What stands at the head of a node's page, or under it."""


def frame(who: Principal, title: str, *inside: h.Node, found: Inventory | None = None) -> h.Element:
    """A page of the graph, with the layers at the side."""
    counts = {layer: sum(each.count for each in found.types if each.layer is layer) for layer in Layer} if found else {}
    side = h.nav("#layers", aria_label="Layers")[
        h.ul[(h.li[h.a(href=address(layer=layer.value))[layer.value], _count(counts.get(layer))] for layer in Layer)],
        h.ul[
            h.li[h.a(href=address("graph"))["Drawing"]],
            h.li[h.a(href=address("workload"))["Workload"]],
        ],
        _search(""),
    ]
    return plain(who, title, h.div(".columns")[side, h.main(".graph-page")[h.h1[title], inside]])


def _count(count: int | None) -> h.Element | None:
    return None if count is None else h.span(".note")[f"{count:,} nodes"]


def layer_page(who: Principal, layer: Layer, status: Lifecycle, found: Listed, counted: Inventory) -> h.Element:
    """The nodes of a layer in a status, a page of them."""
    kinds = of_layer(layer)
    more = address(layer=layer.value, status=status.value, cursor=found.next_cursor)
    others = (one for one in Lifecycle if one is not status)
    return frame(
        who,
        f"The {layer} layer",
        h.p(".note")[", ".join(f"{each.count} {spaced(each.type)}" for each in counted.types if each.layer is layer)],
        h.p(".new")["New: ", (h.a(href=address("new", type=kind.name))[spaced(kind.name)] for kind in kinds)]
        if may_write(who, layer)
        else None,
        rows_of(found.items) if found.items else h.p[f"There is nothing {status} in this layer."],
        h.p[h.a(href=more)["More"]] if found.next_cursor else None,
        h.p(".note")[
            "Shown: ", status.value, (h.a(href=address(layer=layer.value, status=one.value))[f" · {one}"] for one in others)
        ],
        found=counted,
    )


def search_page(who: Principal, text: str, found: SemanticFound) -> h.Element:
    """What was found by meaning."""
    rows = [(hit.node, f"{hit.score:.2f}") for hit in found.results]
    return frame(
        who,
        f"Found: {text}",
        rows_of([node for node, _ in rows], [score for _, score in rows]) if rows else h.p["Nothing is near enough to it."],
        (h.p(".note")[each] for each in found.warnings),
    )


def node_page(who: Principal, node: ConstitutionNode, around: SubgraphFound, ladder: LadderClimbed | None) -> h.Element:
    """A node in full, its neighbours by relationship, and the ladder of a goal."""
    fields = node.model_dump(mode="json", by_alias=True)
    said = {name: value for name, value in fields.items() if name not in _HEAD and value not in (None, "", [], {})}
    return frame(
        who,
        node.title,
        h.p(".marks")[(h.span(".mark")[each] for each in (spaced(node.type), node.layer.value, node.status or "", node.id))],
        h.dl(".figures")[((h.dt[spaced(name)], h.dd[shown(value)]) for name, value in said.items())],
        times(node),
        h.p[
            h.a(href=address("graph", id=node.id))["Draw what is around it"],
            [" · ", h.a(href=address("edit", node.id))["Change it"]] if may_write(who, node.layer) else None,
        ],
        ladder_of(ladder),
        neighbours(node, around),
    )


def workload_page(who: Principal, found: WorkloadAssessed) -> h.Element:
    """Whether there is room for more."""
    capacity = found.capacity
    share = capacity.utilization_percent
    return frame(
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
        tasks(found),
        h.p(".note")[f"Made without: {', '.join(found.degraded)}"] if found.degraded else None,
    )


def graph_page(who: Principal, found: SubgraphFound, middle: ConstitutionNode | None, depth: int) -> h.Element:
    """The drawing of a neighbourhood, or of the graph's top."""
    other = 1 if depth == 2 else 2
    return frame(
        who,
        f"Around: {middle.title}" if middle else "Foundation and vision",
        h.p[
            h.a(href=address("nodes", middle.id))["Read it"],
            " · ",
            h.a(href=address("graph", id=middle.id, depth=str(other)))["Draw more" if other == 2 else "Draw less"],
        ]
        if middle
        else h.p(".note")["Press a box to draw what is around it."],
        drawn(found, middle.id if middle else None),
        h.p(".note")["There is more around it than is drawn."] if found.truncated else None,
    )


def _search(text: str) -> h.Element:
    return h.form(method="get", action=address("search"))[
        h.label(for_="q")["Find by meaning"],
        h.input("#q", name="q", type="search", value=text, required=True, maxlength="500"),
        h.button(type="submit")["Find"],
    ]
