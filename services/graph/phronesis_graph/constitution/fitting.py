"""A layer that is listed whole, kept to its budget and to the greatest size of an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

from phronesis_contracts.constitution.values import ConstitutionLink

from .pages import BETWEEN, ROOM, Node, Page, weight
from .trimming import Row, Weighed, trim

_AROUND = 200
"""Tokens kept for what stands around the entries."""


@dataclass(frozen=True)
class Fitted(Generic[Node]):
    """What is told of a layer."""

    nodes: tuple[Node, ...]
    links: tuple[ConstitutionLink, ...]
    truncated: bool
    whole: bool
    """Whether every node is among them; the first ones are, where not."""


def fitted(
    rows: Sequence[Row],
    make: Callable[[Row], Node],
    links: Mapping[str, Sequence[ConstitutionLink]],
    groups: Sequence[Sequence[str]],
    budget: int,
) -> Fitted[Node]:
    """The layer without what is over its budget.

    Args:
        rows: its nodes in order, with the columns that are told.
        make: a node of a row.
        links: relationships by the node that they lead from.
        groups: columns that may be left out, those that go first first.
        budget: tokens.
    """
    items = [Weighed(row, make) for row in rows]
    joined = sum(weight(link) + BETWEEN for of in links.values() for link in of)
    truncated = trim(items, groups, sum(item.tokens + BETWEEN for item in items) + joined + _AROUND - budget)
    return _page([item.node for item in items], links, truncated)


def _page(nodes: Sequence[Node], links: Mapping[str, Sequence[ConstitutionLink]], truncated: bool) -> Fitted[Node]:
    """The first nodes, each with its relationships."""
    page, taken, joined = Page(len(nodes) + sum(map(len, links.values()))), list[Node](), list[ConstitutionLink]()
    for node in nodes:
        own = links.get(node.id, ())
        joining = sum(weight(link) + BETWEEN for link in own)
        if taken and page.tokens + weight(node) + BETWEEN + joining > ROOM:
            break
        told = page.put(node)
        if told is None:
            break
        taken.append(told)
        joined += page.all(own)
    return Fitted(tuple(taken), tuple(joined), truncated or page.truncated, len(taken) == len(nodes))
