"""What is written, held against the registry: a node's fields, sorted into typed ones and bags, each in its form."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic.alias_generators import to_camel

from phronesis_contracts.constitution.kinds import NodeType
from phronesis_contracts.constitution.registry import TYPES, node_type
from phronesis_contracts.constitution.writes import RegistryRefused

from .records import BAGS
from .typed import text, typed

OWN_WORDS = ("actor", "role", "source", "at")
"""What the service itself says in a node's provenance; nobody else does."""
_TEXTS = ("title", "summary", "description")
_OF_THE_CALL = frozenset({"id", "requestId", "acknowledge", "version", "fields"})
_KEPT = frozenset(
    {"createdAt", "updatedAt", "lifecycle", "tenant", "key", "version", "embedding", "embeddingUpdatedAt", "embeddingState"}
)
_MOST_ENTRIES = 40
_LONGEST_NAME = 64
_SIZE = 60_000
"""Characters of all that a node says, so that one node always fits into an answer."""


def found_type(given: str, field: str = "type") -> NodeType:
    """The type that a caller names.

    Raises:
        RegistryRefused: there is none of that name; the nearest one is named.
    """
    kind = node_type(given)
    if kind is None:
        folded = {name.casefold(): name for name in TYPES}
        close = get_close_matches(given.casefold(), folded, n=1)
        hint = f"did you mean {folded[close[0]]}?" if close else "schema.inventory.v1 lists the types"
        raise RegistryRefused(f"there is no type {given[:60]!r}; {hint}", field=field)
    return kind


def told(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a call says about its node, without what it says about itself."""
    return {name: value for name, value in given.items() if name not in _OF_THE_CALL}


def merged(kind: NodeType, before: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a node after a write.

    Args:
        kind: the node's type.
        before: its content until now, as messages have it; for a new node, nothing.
        given: what is to be different; null removes, and what is not named stays. Bags are merged by their names.

    Raises:
        RegistryRefused: the registry does not allow it; `field` names what.
    """
    after = dict(before)
    bags: dict[str, dict[str, Any]] = {name: dict(before.get(name) or {}) for name in BAGS}
    for name, value in _placed(kind, given, bags):
        after[name] = value
    for name, bag in bags.items():
        after[name] = _bag(name, bag)
    after = {name: value for name, value in after.items() if value is not None and (value or name not in BAGS)}
    after.setdefault("status", kind.statuses[0])
    if not str(after.get("title", "")).strip():
        raise RegistryRefused("a node has a title", field="title")
    if len(json.dumps(after, ensure_ascii=False)) > _SIZE:
        raise RegistryRefused(f"a node has at most {_SIZE} characters in all", field="description")
    return after


def differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the fields in which two contents differ, in the order of the newer one (O-117)."""
    names = dict.fromkeys((*after, *before))
    return tuple(name for name in names if _canonical(before.get(name)) != _canonical(after.get(name)))


def _placed(kind: NodeType, given: Mapping[str, Any], bags: dict[str, dict[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Fields with their values in form; entries of bags are put into them."""
    for spelt, value in given.items():
        name = to_camel(spelt) if "_" in spelt else spelt
        if name in BAGS:
            yield from _into_bag(kind, name, value, bags)
        elif name in _TEXTS:
            yield name, None if value is None else text(name, value)
        elif name == "status":
            yield name, kind.statuses[0] if value is None else _status(kind, value)
        elif (one := kind.property(name)) is not None:
            yield name, None if value is None else typed(one, value)
        elif name in ("layer", "type"):
            _same(kind, name, value)
        elif name in _KEPT:
            raise RegistryRefused(f"{name} is the service's own to keep; leave it out", field=name)
        else:
            bags["properties"][spelt] = value


def _into_bag(kind: NodeType, name: str, value: Any, bags: dict[str, dict[str, Any]]) -> Iterator[tuple[str, Any]]:
    if value is not None and not isinstance(value, dict):
        raise RegistryRefused(f"{name} is an object", field=name)
    own = OWN_WORDS if name == "provenance" else ()
    if value is None:
        bags[name] = {word: said for word, said in bags[name].items() if word in own}
    for entry, each in (value or {}).items():
        if name == "properties" and (one := kind.property(entry)) is not None:
            yield entry, None if each is None else typed(one, each)
        elif entry not in own:
            bags[name][entry] = each


def _bag(name: str, entries: Mapping[str, Any]) -> dict[str, Any]:
    kept = {entry: value for entry, value in entries.items() if value is not None}
    if len(kept) > _MOST_ENTRIES + len(OWN_WORDS):
        raise RegistryRefused(f"{name} has over {_MOST_ENTRIES} entries", field=name)
    for entry, value in kept.items():
        if not entry.strip() or len(entry) > _LONGEST_NAME:
            raise RegistryRefused(f"a name in {name} has 1 to {_LONGEST_NAME} characters", field=name)
        if not _finite(value):
            raise RegistryRefused(f"{name} holds a number that is none", field=f"{name}.{entry}")
    return kept


def _finite(value: object) -> bool:
    match value:
        case float():
            return math.isfinite(value)
        case dict():
            return all(map(_finite, value.values()))
        case list() | tuple():
            return all(map(_finite, value))
        case _:
            return True


def _status(kind: NodeType, value: object) -> str:
    status = str(value).strip().lower().replace(" ", "_").replace("-", "_")
    if status not in kind.statuses:
        close = get_close_matches(status, kind.statuses, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(kind.statuses)}"
        raise RegistryRefused(f"a {kind.name} has no status {str(value)[:40]!r}; {hint}", field="status")
    return str(status)


def _same(kind: NodeType, name: str, value: object) -> None:
    if str(value).casefold() != (kind.layer.value if name == "layer" else kind.name).casefold():
        said = f"a {kind.name} is of the layer {kind.layer}" if name == "layer" else f"this is a {kind.name}"
        raise RegistryRefused(f"{said}, and of no other; leave {name} out", field=name)


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
