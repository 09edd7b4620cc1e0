"""Pages of lists: which fields a node is told with, what fits into one answer, and the cursor where the next one begins."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from phronesis_contracts import BadRequest, Message
from phronesis_contracts.constitution.registry import TYPES, Layer, NodeType, node_type
from phronesis_contracts.constitution.values import MAX_TOKENS, ConstitutionNode, ListStats
from phronesis_tokens import count, cut

from ..twin.ontology import suggest_nearest
from .records import BAGS, COMMON, column_name, column_names


def make_cursor(kind: str, *place: str) -> str:
    """The word for a place."""
    told = json.dumps([kind, *place], ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(told.encode()).decode().rstrip("=")


def read_cursor(given: str, kinds: Mapping[str, int]) -> tuple[str, ...]:
    """The kind of a cursor and its place. Whatever it names, nothing of another tenant is told for it.

    Args:
        kinds: the kinds that there may be, and of how many texts a place of each is made.

    Raises:
        BadRequest: it is no cursor of these kinds.
    """
    try:
        told = json.loads(base64.b64decode(given + "=" * (-len(given) % 4), altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        told = None
    match told:
        case [str(kind), *texts] if kinds.get(kind) == len(texts) and all(isinstance(text, str) for text in texts):
            return (kind, *texts)
    raise BadRequest("this is no cursor of this list; take `nextCursor` of the page before", field="cursor")


IDENTITY_FIELDS = ("id", "type", "layer", "title")
"""Fields that no caller can leave out."""
FOUNDATION_FIELDS = ("id", "type", "layer", "title", "summary", "description", "status", "createdAt", "updatedAt")
"""Fields of the foundation's list."""
VISION_FIELDS = ("id", "type", "layer", "title", "summary", "description", "horizon", "deadline", "target", "status")
"""Fields of the vision's list, and the description for who asks for it."""


def full_columns(kinds: Iterable[NodeType]) -> tuple[str, ...]:
    """Columns of the store from which nodes of these types are told in full."""
    return tuple(dict.fromkeys(name for kind in kinds for name in column_names(kind)))


def list_columns(kinds: Sequence[NodeType], excluded: Collection[str], base: Sequence[str] = COMMON) -> tuple[str, ...]:
    """Columns of the store from which nodes are told in part.

    Args:
        excluded: fields to leave out, as messages name them; `properties` stands for all typed properties that are not
            in `base`. A name that there is not leaves nothing out.
        base: fields to tell beside the bags and the typed properties.
    """
    typed = {one.name: column_name(one) for kind in kinds for one in kind.properties}
    names = (*base, *BAGS, *(() if "properties" in excluded else typed))
    return tuple(dict.fromkeys(typed.get(name, name) for name in names if name in IDENTITY_FIELDS or name not in excluded))


def find_kinds(given: Iterable[str], field: str, layer: Layer | None = None) -> tuple[NodeType, ...]:
    """The types that a caller names, in whatever case; all of the layer where none is named. Raises `BadRequest`."""
    among = tuple(kind for kind in TYPES.values() if layer is None or kind.layer is layer)
    named = []
    for i, name in enumerate(given):
        kind = node_type(name)
        if kind is None or kind not in among:
            what = "no such node type" if kind is None else f"{kind.name} is of the {kind.layer} layer"
            raise BadRequest(f"{what}{suggest_nearest(name, (one.name for one in among))}", field=f"{field}.{i}")
        named.append(kind)
    return tuple(named) or among


Node = TypeVar("Node", bound=ConstitutionNode)
Entry = TypeVar("Entry", bound=Message)

ENVELOPE = 1_500
"""Tokens kept for what stands around the entries: figures by type, and a cursor."""
PAGE_ROOM = MAX_TOKENS - ENVELOPE
"""Tokens of the entries of one answer."""
MOST_BYTES = 1_400_000
"""Of the entries of one answer; the broker takes no message over 2 MiB."""
SEPARATOR_TOKENS = 1
"""Tokens between two entries."""


def message_tokens(message: Message) -> int:
    return count(message.model_dump_json())


class Page:
    """The entries of one answer, until it is full."""

    def __init__(self, entries: int) -> None:
        self._left = entries
        self._bytes = MOST_BYTES
        self._empty = True
        self.tokens = 0
        self.truncated = False

    def takes(self, entry: Message) -> bool:
        """Whether an entry fits; it is counted if so."""
        body = entry.model_dump_json()
        tokens, size = count(body, PAGE_ROOM) + SEPARATOR_TOKENS, len(body.encode())
        if not self._left or self.tokens + tokens > PAGE_ROOM or size > self._bytes:
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
        small = shrink_node(node, PAGE_ROOM - SEPARATOR_TOKENS)
        self.truncated = self.takes(small)
        return small

    def all(self, entries: Iterable[Entry]) -> tuple[Entry, ...]:
        fitting = []
        for entry in entries:
            if not self.takes(entry):
                self.truncated = True
                break
            fitting.append(entry)
        return tuple(fitting)


def shrink_node(node: Node, room: int) -> Node:
    """The node in at most so many tokens: its longest texts are cut, and bags that are too large left out."""
    told: dict[str, Any] = json.loads(node.model_dump_json())
    while (over := _value_tokens(told) - room) > 0:
        name = max((name for name in told if name not in IDENTITY_FIELDS), key=lambda name: _value_tokens(told[name]))
        value = told[name]
        kept = cut(value, max(0, count(value) - over - over // 20 - 50)) if isinstance(value, str) else ""
        if kept:
            told[name] = kept
        else:
            del told[name]
    return type(node).model_validate(told)


def list_stats(nodes: Iterable[ConstitutionNode], tokens: int) -> ListStats:
    """What a list came to."""
    by_type: dict[str, int] = {}
    for node in nodes:
        by_type[node.type] = by_type.get(node.type, 0) + 1
    return ListStats(total_nodes=sum(by_type.values()), by_type=by_type, token_estimate=tokens)


def _value_tokens(value: object) -> int:
    return count(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
