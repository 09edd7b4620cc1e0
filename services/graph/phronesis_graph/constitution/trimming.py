"""Keeping a list to its budget: what costs most and says least goes first, and nodes never (O-334)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic

from phronesis_tokens import count

from .pages import Node, weight

Row = dict[str, Any]


class Weighed(Generic[Node]):
    """A node of a list, from its row in the store, with what it costs."""

    def __init__(self, row: Row, make: Callable[[Row], Node]) -> None:
        self._make = make
        self.row = row
        self.node = make(row)
        self.tokens = weight(self.node)

    def drop(self, name: str) -> int:
        """Leave a column out; gives how many tokens that saves."""
        before = self.tokens
        self.row = {key: value for key, value in self.row.items() if key != name}
        self.node = self._make(self.row)
        self.tokens = weight(self.node)
        return before - self.tokens


def budget(table: Sequence[tuple[int, int]], nodes: int) -> int:
    """The tokens that a list may have in a graph of so many nodes.

    Args:
        table: nodes at least, and the tokens then; the fewest nodes first.
        nodes: of the whole graph.
    """
    return next(tokens for least, tokens in reversed(table) if nodes >= least)


def order(columns: Sequence[str], base: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The columns that may be left out, in the order in which they are: those of one group together, the longest first.

    Args:
        columns: all that are told.
        base: the list's own fields; typed properties that are not among them go with `properties`.
    """
    last = ("provenance", "metadata", "description", "summary")
    typed = tuple(name for name in columns if name not in (*base, *last))
    return (("provenance",), ("metadata",), typed, ("description",), ("summary",))


def trim(items: Sequence[Weighed[Any]], groups: Sequence[Sequence[str]], over: int) -> bool:
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
