"""What goes into the context that a retrieval hands back, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from phronesis_contracts.memory import ContextItem
from phronesis_tokens import count, cut

DECAY = 0.5
"""What a hop away from a seed costs: the neighbour of the best seed scores half of it, two hops away a quarter."""
_EARLIEST = datetime.min.replace(tzinfo=UTC)
_SHORT = 80
_MARK = "…"


def name_of(title: str | None, text: str) -> str:
    """The title of an item, or the beginning of its text."""
    if title:
        return title
    line = " ".join(text.split())
    return line if len(line) <= _SHORT else line[: _SHORT - 1] + "…"


def ordered(items: Sequence[ContextItem]) -> list[ContextItem]:
    """Best first: by score, then nearest, then newest (D-098)."""
    return sorted(items, key=lambda item: (-item.score, item.hop, -(item.created_at or _EARLIEST).timestamp()))


def fitted(items: Sequence[ContextItem], budget: int) -> tuple[list[ContextItem], int]:
    """The first of `items` that fit into `budget` tokens, and how many were dropped (D-099).

    No item that is kept ranks below one that is dropped. The first is kept in any case, cut to the budget.
    """
    kept: list[ContextItem] = []
    left = budget
    for item in items:
        cost = count(item.title, left) + count(item.text, left)
        if cost > left and not kept:
            title = cut(item.title, left // 2, _MARK)
            kept.append(item.model_copy(update={"title": title, "text": cut(item.text, left - count(title, left), _MARK)}))
            break
        if cost > left:
            break
        kept.append(item)
        left -= cost
    return kept, len(items) - len(kept)
