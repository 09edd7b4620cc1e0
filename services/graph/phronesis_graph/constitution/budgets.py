"""The budget of an answer: how many tokens what is told has, and how much of it fits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from pydantic import BaseModel

import phronesis_tokens as tokens
from phronesis_contracts.constitution.values import MAX_TOKENS, ConstitutionNode

M = TypeVar("M", bound=BaseModel)

ROOM = MAX_TOKENS - 500
"""Tokens of what an answer lists; the rest is for what stands around it."""


_LONGEST = 1_000
"""Tokens of one text of a node where several nodes are told in full."""


def shortened(node: ConstitutionNode) -> ConstitutionNode:
    """A node with its long texts cut, so that one node does not take the room of all."""
    texts = {name: value for name, value in node.model_dump(by_alias=False).items() if isinstance(value, str)}
    cut = {name: tokens.cut(value, _LONGEST) for name, value in texts.items() if len(value) > _LONGEST}
    return node.model_copy(update=cut)


def measured(items: Iterable[BaseModel]) -> int:
    """Tokens of values as they are sent."""
    return sum(tokens.count(item.model_dump_json()) for item in items)


def fitting(items: Iterable[M], room: int = ROOM) -> tuple[list[M], int]:
    """The first of the items that have `room` tokens together at most, and how many they have."""
    kept, used = [], 0
    for item in items:
        size = tokens.count(item.model_dump_json(), room)
        if used + size > room:
            break
        used += size
        kept.append(item)
    return kept, used
