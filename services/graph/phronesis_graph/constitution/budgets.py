"""Token budgets of answers: in a layer that is listed whole the costliest, least telling fields go first, and nodes never."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

import phronesis_tokens as tokens
from phronesis_contracts.constitution.values import MAX_TOKENS, ConstitutionLink, ConstitutionNode
from phronesis_tokens import count

from .pages import PAGE_ROOM, SEPARATOR_TOKENS, Node, Page, message_tokens

M = TypeVar("M", bound=BaseModel)

ANSWER_ROOM = MAX_TOKENS - 500
"""Tokens of what an answer lists; the rest is for what stands around it."""


_LONGEST = 1_000
"""Tokens of one text of a node where several nodes are told in full."""


def shorten_texts(node: ConstitutionNode) -> ConstitutionNode:
    """A node with its long texts cut, so that one node does not take the room of all."""
    texts = {name: value for name, value in node.model_dump(by_alias=False).items() if isinstance(value, str)}
    cut = {name: tokens.cut(value, _LONGEST) for name, value in texts.items() if len(value) > _LONGEST}
    return node.model_copy(update=cut)


def count_tokens(items: Iterable[BaseModel]) -> int:
    return sum(tokens.count(item.model_dump_json()) for item in items)


def take_fitting(items: Iterable[M], room: int = ANSWER_ROOM) -> tuple[list[M], int]:
    """The first of the items that have `room` tokens together at most, and how many they have."""
    kept, used = [], 0
    for item in items:
        size = tokens.count(item.model_dump_json(), room)
        if used + size > room:
            break
        used += size
        kept.append(item)
    return kept, used


NodeRow = dict[str, Any]


class WeighedNode(Generic[Node]):
    """A node of a list, from its row in the store, with what it costs."""

    def __init__(self, row: NodeRow, make: Callable[[NodeRow], Node]) -> None:
        self._make, self.row = make, row
        self.node = make(row)
        self.tokens = message_tokens(self.node)

    def drop(self, name: str) -> int:
        """Leave a column out; gives how many tokens that saves."""
        before = self.tokens
        self.row = {key: value for key, value in self.row.items() if key != name}
        self.node = self._make(self.row)
        self.tokens = message_tokens(self.node)
        return before - self.tokens


def allowed_tokens(table: Sequence[tuple[int, int]], nodes: int) -> int:
    """The tokens that a list may have in a graph of so many nodes. `table`: nodes at least, and the tokens; fewest first."""
    return next(tokens for least, tokens in reversed(table) if nodes >= least)


def removal_order(columns: Sequence[str], base: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The columns that may be left out, in the order in which they are: those of one group together, the longest first.

    Args:
        base: the list's own fields; typed properties that are not among them go with `properties`.
    """
    last = ("provenance", "metadata", "description", "summary")
    typed = tuple(name for name in columns if name not in (*base, *last))
    return (("provenance",), ("metadata",), typed, ("description",), ("summary",))


def trim_nodes(items: Sequence[WeighedNode[Any]], groups: Sequence[Sequence[str]], over: int) -> bool:
    """Leave columns out until `over` tokens are saved, or nothing more may go; gives whether anything was."""
    dropped = False
    for names in groups:
        longest = sorted(
            (-_length(item.row, name), i, name) for i, item in enumerate(items) for name in names if item.row.get(name)
        )
        for _, i, name in longest:
            if over <= 0:
                return dropped
            over -= items[i].drop(name)
            dropped = True
    return dropped


def _length(row: Mapping[str, Any], name: str) -> int:
    return count(str(row[name]))


_ENVELOPE = 200
"""Tokens kept for what stands around the entries."""


@dataclass(frozen=True)
class FittedLayer(Generic[Node]):
    """What is told of a layer."""

    nodes: tuple[Node, ...]
    links: tuple[ConstitutionLink, ...]
    truncated: bool
    whole: bool
    """Whether every node is among them; the first ones are, where not."""


def fit_layer(
    rows: Sequence[NodeRow],
    make: Callable[[NodeRow], Node],
    links: Mapping[str, Sequence[ConstitutionLink]],
    groups: Sequence[Sequence[str]],
    budget: int,
) -> FittedLayer[Node]:
    """The layer without what is over its budget; the first of `groups` are the columns that are left out first."""
    items = [WeighedNode(row, make) for row in rows]
    joined = sum(message_tokens(link) + SEPARATOR_TOKENS for of in links.values() for link in of)
    truncated = trim_nodes(items, groups, sum(item.tokens + SEPARATOR_TOKENS for item in items) + joined + _ENVELOPE - budget)
    return _fill_page([item.node for item in items], links, truncated)


def _fill_page(nodes: Sequence[Node], links: Mapping[str, Sequence[ConstitutionLink]], truncated: bool) -> FittedLayer[Node]:
    page, taken, joined = Page(len(nodes) + sum(map(len, links.values()))), list[Node](), list[ConstitutionLink]()
    for node in nodes:
        own = links.get(node.id, ())
        joining = sum(message_tokens(link) + SEPARATOR_TOKENS for link in own)
        if taken and page.tokens + message_tokens(node) + SEPARATOR_TOKENS + joining > PAGE_ROOM:
            break
        told = page.put(node)
        if told is None:
            break
        taken.append(told)
        joined += page.all(own)
    return FittedLayer(tuple(taken), tuple(joined), truncated or page.truncated, len(taken) == len(nodes))
