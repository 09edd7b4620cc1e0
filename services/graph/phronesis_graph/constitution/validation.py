"""Validation by the registry: a node's fields, sorted into typed ones and bags, and the ends that relationships may have."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic.alias_generators import to_camel

from phronesis_contracts import Forbidden, Principal
from phronesis_contracts.constitution import registry
from phronesis_contracts.constitution.values import WRITERS
from phronesis_contracts.constitution.writes import RegistryRefused

from .records import BAGS, normalize_text, normalize_value

PROVENANCE_FIELDS = ("actor", "role", "source", "at")
"""What the service itself says in a node's provenance; nobody else does."""
_TEXTS = ("title", "summary", "description")
_CALL_FIELDS = frozenset({"id", "requestId", "acknowledge", "override", "version", "fields"})
_RESERVED_FIELDS = frozenset(
    {"createdAt", "updatedAt", "lifecycle", "tenant", "key", "version", "embedding", "embeddingUpdatedAt", "embeddingState"}
)
_MOST_ENTRIES = 40
_LONGEST_NAME = 64
_SIZE = 60_000
"""Characters of all that a node says, so that one node always fits into an answer."""


def find_type(given: str, field: str = "type") -> registry.NodeType:
    """The type that a caller names. Raises `RegistryRefused`: there is none of that name; the nearest one is named."""
    kind = registry.node_type(given)
    if kind is None:
        folded = {name.casefold(): name for name in registry.TYPES}
        close = get_close_matches(given.casefold(), folded, n=1)
        hint = f"did you mean {folded[close[0]]}?" if close else "schema.inventory.v1 lists the types"
        raise RegistryRefused(f"there is no type {given[:60]!r}; {hint}", field=field)
    return kind


def node_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a call says about its node, without what it says about itself."""
    return {name: value for name, value in given.items() if name not in _CALL_FIELDS}


def merge_content(kind: registry.NodeType, before: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a node after a write.

    Args:
        before: its content until now, as messages have it; for a new node, nothing.
        given: what is to be different; null removes, and what is not named stays. Bags are merged by their names.

    Raises:
        RegistryRefused: the registry does not allow it; `field` names what.
    """
    after = dict(before)
    bags: dict[str, dict[str, Any]] = {name: dict(before.get(name) or {}) for name in BAGS}
    for name, value in _place_fields(kind, given, bags):
        after[name] = value
    for name, bag in bags.items():
        after[name] = _check_bag(name, bag)
    after = {name: value for name, value in after.items() if value is not None and (value or name not in BAGS)}
    after.setdefault("status", kind.statuses[0])
    if not str(after.get("title", "")).strip():
        raise RegistryRefused("a node has a title", field="title")
    if len(json.dumps(after, ensure_ascii=False)) > _SIZE:
        raise RegistryRefused(f"a node has at most {_SIZE} characters in all", field="description")
    return after


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the fields in which two contents differ, in the order of the newer one."""
    names = dict.fromkeys((*after, *before))
    return tuple(name for name in names if _canonical(before.get(name)) != _canonical(after.get(name)))


def _place_fields(
    kind: registry.NodeType, given: Mapping[str, Any], bags: dict[str, dict[str, Any]]
) -> Iterator[tuple[str, Any]]:
    """Fields with their values in form; entries of bags are put into them."""
    for spelt, value in given.items():
        name = to_camel(spelt) if "_" in spelt else spelt
        if name in BAGS:
            yield from _put_into_bag(kind, name, value, bags)
        elif name in _TEXTS:
            yield name, None if value is None else normalize_text(name, value)
        elif name == "status":
            yield name, kind.statuses[0] if value is None else _check_status(kind, value)
        elif (one := kind.property(name)) is not None:
            yield name, None if value is None else normalize_value(one, value)
        elif name in ("layer", "type"):
            _check_fixed(kind, name, value)
        elif name in _RESERVED_FIELDS:
            raise RegistryRefused(f"{name} is the service's own to keep; leave it out", field=name)
        else:
            bags["properties"][spelt] = value


def _put_into_bag(kind: registry.NodeType, name: str, value: Any, bags: dict[str, dict[str, Any]]) -> Iterator[tuple[str, Any]]:
    if value is not None and not isinstance(value, dict):
        raise RegistryRefused(f"{name} is an object", field=name)
    own = PROVENANCE_FIELDS if name == "provenance" else ()
    if value is None:
        bags[name] = {word: said for word, said in bags[name].items() if word in own}
    for entry, each in (value or {}).items():
        if name == "properties" and (one := kind.property(entry)) is not None:
            yield entry, None if each is None else normalize_value(one, each)
        elif entry not in own:
            bags[name][entry] = each


def _check_bag(name: str, entries: Mapping[str, Any]) -> dict[str, Any]:
    kept = {entry: value for entry, value in entries.items() if value is not None}
    if len(kept) > _MOST_ENTRIES + len(PROVENANCE_FIELDS):
        raise RegistryRefused(f"{name} has over {_MOST_ENTRIES} entries", field=name)
    for entry, value in kept.items():
        if not entry.strip() or len(entry) > _LONGEST_NAME:
            raise RegistryRefused(f"a name in {name} has 1 to {_LONGEST_NAME} characters", field=name)
        if not _is_finite(value):
            raise RegistryRefused(f"{name} holds a number that is none", field=f"{name}.{entry}")
    return kept


def _is_finite(value: object) -> bool:
    match value:
        case float():
            return math.isfinite(value)
        case dict():
            return all(map(_is_finite, value.values()))
        case list() | tuple():
            return all(map(_is_finite, value))
        case _:
            return True


def _check_status(kind: registry.NodeType, value: object) -> str:
    status = str(value).strip().lower().replace(" ", "_").replace("-", "_")
    if status not in kind.statuses:
        close = get_close_matches(status, kind.statuses, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(kind.statuses)}"
        raise RegistryRefused(f"a {kind.name} has no status {str(value)[:40]!r}; {hint}", field="status")
    return str(status)


def _check_fixed(kind: registry.NodeType, name: str, value: object) -> None:
    if str(value).casefold() != (kind.layer.value if name == "layer" else kind.name).casefold():
        said = f"a {kind.name} is of the layer {kind.layer}" if name == "layer" else f"this is a {kind.name}"
        raise RegistryRefused(f"{said}, and of no other; leave {name} out", field=name)


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


_PLAIN = re.compile(registry.RELATIONSHIP_NAME)
_LONGEST_RELATIONSHIP = 64
_MISSPELT = 0.8
"""How alike an undeclared name and a declared one are when the one is taken for a misspelling of the other."""


def check_relationship_name(name: str) -> None:
    """Let only plain names reach a statement. Raises `RegistryRefused`: it is not in capitals."""
    if not _PLAIN.fullmatch(name) or len(name) > _LONGEST_RELATIONSHIP:
        raise RegistryRefused("a relationship type is a name in capitals, such as SUPPORTED_BY", field="type")


def check_ends(name: str, source: registry.NodeType, target: registry.NodeType) -> None:
    """Hold ends against the registry; an undeclared type joins any, unless it is nearly a declared one.

    Raises `RegistryRefused`, which names what would do: nothing that the registry does not allow between these ends.
    """
    kind = registry.RELATIONSHIPS.get(name)
    there = ", ".join(registry.declared_types(source, target))
    if kind is None:
        close = get_close_matches(name, registry.RELATIONSHIPS, n=3, cutoff=_MISSPELT)
        if close:
            meant = next((one for one in close if registry.RELATIONSHIPS[one].joins(source, target)), None)
            between = f"from a {source.name} to a {target.name}"
            hint = (
                f"did you mean {meant}?"
                if meant
                else f"{between} lead {there}"
                if there
                else f"no declared one leads {between}"
            )
            raise RegistryRefused(f"there is no relationship type {name}; {hint}", field="type")
        return
    if kind.joins(source, target):
        return
    back = ", ".join(registry.declared_types(target, source))
    hint = f"{there} does" if there else f"{back} leads the other way" if back else _target_advice(name, source)
    raise RegistryRefused(f"{name} does not lead from a {source.name} to a {target.name}; {hint}", field="type")


def check_writer(who: Principal, layer: registry.Layer) -> None:
    """Hold a caller's rights against a layer. Raises `Forbidden`: it may not write that layer."""
    if not who.writes_as(WRITERS[layer]):
        raise Forbidden(f"{who.rights} may not write the {layer} layer")


def check_cycle(name: str, cycle: Sequence[str]) -> None:
    """Refuse a relationship that would close a chain.

    Args:
        cycle: titles along the chain, from the node that it leads from back to it; nothing where there is no such chain.

    Raises:
        RegistryRefused: there is one.
    """
    if cycle:
        chain = f" -{name}-> ".join(title[:60] for title in cycle)
        raise RegistryRefused(f"a chain of {name} may not come back to where it began: {chain}", field="toId")


def _target_advice(name: str, source: registry.NodeType) -> str:
    ends = sorted(
        {target for ends in registry.RELATIONSHIPS[name].ends if source.name in ends.source for target in ends.target}
    )
    return f"from a {source.name} it leads to {', '.join(ends)}" if ends else f"it never leads from a {source.name}"
