"""What fits into one answer: tokens and bytes are counted as each thing is put in, each thing once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TypeVar

from phronesis_contracts import Message
from phronesis_contracts.constitution.values import MAX_TOKENS, ConstitutionNode, ListStats
from phronesis_tokens import count, cut

from .telling import IDENTITY

Node = TypeVar("Node", bound=ConstitutionNode)
Entry = TypeVar("Entry", bound=Message)

ENVELOPE = 1_500
"""Tokens kept for what stands around the entries: figures by type, and a cursor."""
ROOM = MAX_TOKENS - ENVELOPE
"""Tokens of the entries of one answer."""
MOST_BYTES = 1_400_000
"""Of the entries of one answer; the broker takes no message over 2 MiB."""
BETWEEN = 1
"""Tokens between two entries."""


def weight(message: Message) -> int:
    """Tokens of a message as it is sent."""
    return count(message.model_dump_json())


class Page:
    """The entries of one answer, until it is full.

    Args:
        entries: how many it may hold.
    """

    def __init__(self, entries: int) -> None:
        self._left = entries
        self._bytes = MOST_BYTES
        self._empty = True
        self.tokens = 0
        self.truncated = False

    def takes(self, entry: Message) -> bool:
        """Whether an entry fits; it is counted if so."""
        body = entry.model_dump_json()
        tokens, size = count(body, ROOM) + BETWEEN, len(body.encode())
        if not self._left or self.tokens + tokens > ROOM or size > self._bytes:
            return False
        self.tokens += tokens
        self._bytes -= size
        self._left -= 1
        self._empty = False
        return True

    def put(self, node: Node) -> Node | None:
        """The node as the answer holds it, or nothing where it does not fit any more; one that alone is too large is cut."""
        if self.takes(node):
            return node
        if not self._empty:
            return None
        small = shrunk(node, ROOM - BETWEEN)
        self.truncated = self.takes(small)
        return small

    def all(self, entries: Iterable[Entry]) -> tuple[Entry, ...]:
        """As many of the entries as fit, from the first one on."""
        fitting = []
        for entry in entries:
            if not self.takes(entry):
                self.truncated = True
                break
            fitting.append(entry)
        return tuple(fitting)


def shrunk(node: Node, room: int) -> Node:
    """The node in at most so many tokens: its longest texts are cut, and bags that are too large left out."""
    told: dict[str, Any] = json.loads(node.model_dump_json())
    while (over := _tokens(told) - room) > 0:
        name = max((name for name in told if name not in IDENTITY), key=lambda name: _tokens(told[name]))
        value = told[name]
        kept = cut(value, max(0, count(value) - over - over // 20 - 50)) if isinstance(value, str) else ""
        if kept:
            told[name] = kept
        else:
            del told[name]
    return type(node).model_validate(told)


def figures(nodes: Iterable[ConstitutionNode], tokens: int) -> ListStats:
    """What a list came to."""
    by_type: dict[str, int] = {}
    for node in nodes:
        by_type[node.type] = by_type.get(node.type, 0) + 1
    return ListStats(total_nodes=sum(by_type.values()), by_type=by_type, token_estimate=tokens)


def _tokens(value: object) -> int:
    return count(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
