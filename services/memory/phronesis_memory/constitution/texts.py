"""The text that a node's vector is made from, and what else memory keeps of a node."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from phronesis_contracts.constitution.kinds import Layer, Lifecycle, NodeType, Tier, lifecycle
from phronesis_contracts.constitution.registry import TYPES
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_tokens import clean, count

from ..domain.chunks import WORDS, pieces

MOST = 6_000
"""Characters of a text (O-299)."""
_PLAIN = frozenset({"title", "summary", "description"})
"""Fields that stand by themselves on their lines; the others follow their names (O-298)."""
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_NOT_CONTENT = frozenset({"id", "type", "layer", "createdAt", "updatedAt", "version", "provenance"})


@dataclass(frozen=True)
class Facts:
    """What memory keeps of a node as it was when it was read."""

    id: str
    type: str
    layer: Layer
    tier: Tier | None
    lifecycle: Lifecycle
    title: str
    version: int
    born: datetime
    changed_at: datetime
    content: dict[str, Any]
    """Its fields by name, for the history."""
    body: str
    """What is embedded; empty where there is nothing to embed (O-302), or the type is never embedded."""
    text_hash: str
    tokens: int


def facts_of(node: ConstitutionNode) -> Facts:
    """What memory keeps of a node that was read in full."""
    kind = TYPES[node.type]
    body = "" if kind.tier is None else text_of(node, kind)
    told = _storable(node.model_dump(mode="json"))
    return Facts(
        node.id,
        node.type,
        kind.layer,
        kind.tier,
        lifecycle(node.status or ""),
        told["title"],
        node.version or 1,
        node.created_at or _NEVER,
        node.updated_at or _NEVER,
        {name: value for name, value in told.items() if name not in _NOT_CONTENT and value is not None},
        body,
        hashlib.sha256(body.encode()).hexdigest(),
        count(body) if body else 0,
    )


def text_of(node: ConstitutionNode, kind: NodeType) -> str:
    """The text of a node: its type in words, then the registry's fields in their order, one line each (O-298 to O-301).

    Returns:
        At most `MOST` characters that can be stored and sent; empty where the node has none of the fields.
    """
    told = node.model_dump(mode="json")
    # A field that the type does not declare is kept in the bag (C-08).
    values = {name: told.get(name, (told.get("properties") or {}).get(name)) for name in kind.text}
    lines = [_line(name, said) for name, value in values.items() if (said := _said(value))]
    label = _HUMP.sub(" ", kind.label).lower()
    return "\n".join([label, *lines])[:MOST] if lines else ""


def parts_of(body: str) -> list[str]:
    """What is given to the model for a text: itself, or its pieces where it is longer than the local model reads."""
    if len(body.split()) <= WORDS:
        return [body]
    head, _, rest = body.partition("\n")
    title, _, rest = rest.partition("\n")
    # Each piece follows the type and the title, so that it is about the node; a title alone can be long, too.
    return pieces(f"{head}: {title[:200]}", rest or title)


def _line(name: str, said: str) -> str:
    return said if name in _PLAIN else f"{name}: {said}"


def _said(value: Any) -> str:
    if value is None or value in ("", [], {}, ()):
        return ""
    text = value if isinstance(value, str) else json.dumps(_even(value), ensure_ascii=False, sort_keys=True)
    return " ".join(clean(text).replace("\x00", " ").split())


def _even(value: Any) -> Any:
    """The same with whole numbers as such: one store gives 5 back, the other 5.0."""
    match value:
        case bool():
            return value
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {name: _even(one) for name, one in value.items()}
        case list() | tuple():
            return [_even(one) for one in value]
        case _:
            return value


def _storable(value: Any) -> Any:
    match value:
        case str():
            return clean(value).replace("\x00", " ")
        case dict():
            return {_storable(name): _storable(one) for name, one in value.items()}
        case list() | tuple():
            return [_storable(one) for one in value]
        case _:
            return _even(value)
