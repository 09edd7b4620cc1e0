"""A drawing of a small graph as SVG.

A column for each layer, in the order that crosses least; nodes are links, and lines say what they are.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

import htpy as h

from phronesis_contracts.constitution.paths import SubgraphFound
from phronesis_contracts.constitution.registry import Layer
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode

from .parts import page_address

WIDTH, HEIGHT = 168, 46
"""Of a box."""
_ACROSS, _DOWN, _EDGE = 232, 60, 28
"""From one box to the next, and from the picture's edge to the first."""
_SWEEPS = 6
"""How often columns are put in order by the places of what they are joined to (Sugiyama et al. 1981)."""
_BEND = 42
"""How far a line that joins two boxes of one column stands out from it."""


@dataclass(frozen=True)
class NodeShape:
    node: ConstitutionNode
    x: int
    y: int


@dataclass(frozen=True)
class Line:
    link: ConstitutionLink
    path: str
    """As SVG writes it."""


@dataclass(frozen=True)
class Column:
    layer: Layer
    x: int


@dataclass(frozen=True)
class Picture:
    """A whole drawing, in pixels."""

    columns: tuple[Column, ...]
    boxes: tuple[NodeShape, ...]
    lines: tuple[Line, ...]
    width: int
    height: int


def lay_out(nodes: Sequence[ConstitutionNode], links: Sequence[ConstitutionLink]) -> Picture:
    """Draw nodes and what joins them; a relationship to a node that is not there is left out."""
    ids = {node.id for node in nodes}
    inside = [link for link in links if link.from_id in ids and link.to_id in ids]
    columns = _order_columns([[node.id for node in nodes if node.layer is layer] for layer in Layer], inside)
    by_id = {node.id: node for node in nodes}
    tallest = max((len(column) for column in columns), default=0)
    boxes: dict[str, NodeShape] = {}
    for across, column in enumerate(columns):
        top = _EDGE + HEIGHT // 2 + (tallest - len(column)) * _DOWN // 2
        for down, id in enumerate(column):
            boxes[id] = NodeShape(by_id[id], _EDGE + across * _ACROSS, top + down * _DOWN)
    heads = tuple(Column(by_id[column[0]].layer, _EDGE + at * _ACROSS) for at, column in enumerate(columns))
    lines = tuple(Line(link, _path(boxes[link.from_id], boxes[link.to_id])) for link in inside)
    width = 2 * _EDGE + max(0, len(columns) - 1) * _ACROSS + WIDTH + _BEND
    return Picture(heads, tuple(boxes.values()), lines, width, 2 * _EDGE + max(1, tallest) * _DOWN + HEIGHT // 2)


def _order_columns(columns: Sequence[list[str]], links: Sequence[ConstitutionLink]) -> list[list[str]]:
    """The columns that hold something, each ordered by the mean place of what its nodes are joined to."""
    near: dict[str, list[str]] = {}
    for link in links:
        near.setdefault(link.from_id, []).append(link.to_id)
        near.setdefault(link.to_id, []).append(link.from_id)
    found = [column for column in columns if column]
    for sweep in range(_SWEEPS):
        place = {id: at / len(column) for column in found for at, id in enumerate(column)}
        for column in found if sweep % 2 else reversed(found):
            column.sort(key=lambda id: _mean_place(id, near, place))
            place |= {id: at / len(column) for at, id in enumerate(column)}
    return found


def _mean_place(id: str, near: Mapping[str, Sequence[str]], place: Mapping[str, float]) -> float:
    return mean(place[other] for other in near[id]) if near.get(id) else place[id]


def _path(source: NodeShape, target: NodeShape) -> str:
    y1, y2 = source.y + HEIGHT // 2, target.y + HEIGHT // 2
    if source.x == target.x:
        x = source.x + WIDTH
        return f"M{x} {y1}C{x + _BEND} {y1} {x + _BEND} {y2} {x} {y2}"
    right = source.x < target.x
    x1, x2 = (source.x + WIDTH, target.x) if right else (source.x, target.x + WIDTH)
    middle = (x1 + x2) // 2
    return f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}"


_LETTERS, _LINES = 25, 2
"""Of a title in a box."""


def render_graph(found: SubgraphFound, middle: str | None = None) -> h.Element:
    if not found.nodes:
        return h.p(".note")["There is nothing to draw yet."]
    made = lay_out(found.nodes, found.relationships)
    # The size is said twice: a picture keeps its size, and the page scrolls.
    svg = h.svg(
        ".graph",
        viewBox=f"0 0 {made.width} {made.height}",
        width=str(made.width),
        height=str(made.height),
        role="img",
        aria_label=f"{len(made.boxes)} nodes and {len(made.lines)} relationships",
    )
    return h.div(".drawn", tabindex="0", role="region", aria_label="Drawing")[
        svg[
            h.defs[_render_arrow()],
            (h.text(".column", x=str(each.x), y="16")[each.layer.value] for each in made.columns),
            (_render_line(each) for each in made.lines),
            (_render_node(each, each.node.id == middle) for each in made.boxes),
        ]
    ]


def _render_arrow() -> h.Element:
    head = h.path(d="M0 0L10 5L0 10z")
    return h.marker(id="head", viewBox="0 0 10 10", refX="10", refY="5", markerWidth="7", markerHeight="7", orient="auto")[head]


def _render_line(line: Line) -> h.Element:
    said = f"{line.link.from_id} {line.link.type} {line.link.to_id}"
    marker = {"marker-end": "url(#head)"}
    return h.path(f".line.{line.link.type}", marker, d=line.path)[h.title[said]]


def _render_node(box: NodeShape, marked: bool) -> h.Element:
    node = box.node
    return h.a(href=page_address("graph", id=node.id))[
        h.g(class_={"box": True, str(node.layer): True, "marked": marked})[
            h.title[f"{node.title} ({node.type})"],
            h.rect(x=str(box.x), y=str(box.y), width=str(WIDTH), height=str(HEIGHT), rx="6"),
            _render_title(box),
        ]
    ]


def _render_title(box: NodeShape) -> Iterator[h.Element]:
    lines = textwrap.wrap(box.node.title, _LETTERS, max_lines=_LINES, placeholder=" …") or [box.node.id]
    top = box.y + HEIGHT // 2 + 4 - 8 * (len(lines) - 1)
    for number, line in enumerate(lines):
        yield h.text(x=str(box.x + WIDTH // 2), y=str(top + 16 * number))[line]
