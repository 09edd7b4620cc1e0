"""Where the nodes of a small graph are drawn: a column for each layer that is there, in the order that crosses least."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from phronesis_contracts.constitution.kinds import Layer
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode

WIDTH, HEIGHT = 168, 46
"""Of a box."""
_ACROSS, _DOWN, _EDGE = 232, 60, 28
"""From one box to the next, and from the picture's edge to the first."""
_SWEEPS = 6
"""How often columns are put in order by the places of what they are joined to (Sugiyama et al. 1981)."""
_BEND = 42
"""How far a line that joins two boxes of one column stands out from it."""


@dataclass(frozen=True)
class Box:
    """A node in its place."""

    node: ConstitutionNode
    x: int
    y: int


@dataclass(frozen=True)
class Line:
    """A relationship from box to box."""

    link: ConstitutionLink
    path: str
    """As SVG writes it."""


@dataclass(frozen=True)
class Column:
    """The name above a layer's boxes."""

    layer: Layer
    x: int


@dataclass(frozen=True)
class Picture:
    """A whole drawing, in pixels."""

    columns: tuple[Column, ...]
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    width: int
    height: int


def picture(nodes: Sequence[ConstitutionNode], links: Sequence[ConstitutionLink]) -> Picture:
    """Draw nodes and what joins them; a relationship to a node that is not there is left out."""
    ids = {node.id for node in nodes}
    inside = [link for link in links if link.from_id in ids and link.to_id in ids]
    columns = _ordered([[node.id for node in nodes if node.layer is layer] for layer in Layer], inside)
    by_id = {node.id: node for node in nodes}
    tallest = max((len(column) for column in columns), default=0)
    boxes: dict[str, Box] = {}
    for across, column in enumerate(columns):
        top = _EDGE + HEIGHT // 2 + (tallest - len(column)) * _DOWN // 2
        for down, id in enumerate(column):
            boxes[id] = Box(by_id[id], _EDGE + across * _ACROSS, top + down * _DOWN)
    heads = tuple(Column(by_id[column[0]].layer, _EDGE + at * _ACROSS) for at, column in enumerate(columns))
    lines = tuple(Line(link, _path(boxes[link.from_id], boxes[link.to_id])) for link in inside)
    width = 2 * _EDGE + max(0, len(columns) - 1) * _ACROSS + WIDTH + _BEND
    return Picture(heads, tuple(boxes.values()), lines, width, 2 * _EDGE + max(1, tallest) * _DOWN + HEIGHT // 2)


def _ordered(columns: Sequence[list[str]], links: Sequence[ConstitutionLink]) -> list[list[str]]:
    """The columns that hold something, each ordered by the mean place of what its nodes are joined to."""
    near: dict[str, list[str]] = {}
    for link in links:
        near.setdefault(link.from_id, []).append(link.to_id)
        near.setdefault(link.to_id, []).append(link.from_id)
    found = [column for column in columns if column]
    for sweep in range(_SWEEPS):
        place = {id: at / len(column) for column in found for at, id in enumerate(column)}
        for column in found if sweep % 2 else reversed(found):
            column.sort(key=lambda id: _middle(id, near, place))
            place |= {id: at / len(column) for at, id in enumerate(column)}
    return found


def _middle(id: str, near: Mapping[str, Sequence[str]], place: Mapping[str, float]) -> float:
    return mean(place[other] for other in near[id]) if near.get(id) else place[id]


def _path(source: Box, target: Box) -> str:
    """From the side of a box to the side of another; lines inside a column bow out to its right."""
    y1, y2 = source.y + HEIGHT // 2, target.y + HEIGHT // 2
    if source.x == target.x:
        x = source.x + WIDTH
        return f"M{x} {y1}C{x + _BEND} {y1} {x + _BEND} {y2} {x} {y2}"
    right = source.x < target.x
    x1, x2 = (source.x + WIDTH, target.x) if right else (source.x, target.x + WIDTH)
    middle = (x1 + x2) // 2
    return f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}"
