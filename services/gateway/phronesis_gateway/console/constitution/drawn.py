"""A drawing of the graph as SVG: boxes that are links, and lines that say what they are."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import htpy as h

from phronesis_contracts.constitution.paths import SubgraphFound

from .drawing import HEIGHT, WIDTH, Box, Line, picture
from .words import address

_LETTERS, _LINES = 25, 2
"""Of a title in a box."""


def drawn(found: SubgraphFound, middle: str | None = None) -> h.Element:
    """A graph as a picture, one node of it marked."""
    if not found.nodes:
        return h.p(".note")["There is nothing to draw yet."]
    made = picture(found.nodes, found.relationships)
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
            h.defs[_arrow()],
            (h.text(".column", x=str(each.x), y="16")[each.layer.value] for each in made.columns),
            (_line(each) for each in made.lines),
            (_box(each, each.node.id == middle) for each in made.boxes),
        ]
    ]


def _arrow() -> h.Element:
    head = h.path(d="M0 0L10 5L0 10z")
    return h.marker(id="head", viewBox="0 0 10 10", refX="10", refY="5", markerWidth="7", markerHeight="7", orient="auto")[head]


def _line(line: Line) -> h.Element:
    said = f"{line.link.from_id} {line.link.type} {line.link.to_id}"
    marker = {"marker-end": "url(#head)"}
    return h.path(f".line.{line.link.type}", marker, d=line.path)[h.title[said]]


def _box(box: Box, marked: bool) -> h.Element:
    node = box.node
    return h.a(href=address("graph", id=node.id))[
        h.g(class_={"box": True, str(node.layer): True, "marked": marked})[
            h.title[f"{node.title} ({node.type})"],
            h.rect(x=str(box.x), y=str(box.y), width=str(WIDTH), height=str(HEIGHT), rx="6"),
            _words(box),
        ]
    ]


def _words(box: Box) -> Iterator[h.Element]:
    lines = textwrap.wrap(box.node.title, _LETTERS, max_lines=_LINES, placeholder=" …") or [box.node.id]
    top = box.y + HEIGHT // 2 + 4 - 8 * (len(lines) - 1)
    for number, line in enumerate(lines):
        yield h.text(x=str(box.x + WIDTH // 2), y=str(top + 16 * number))[line]
