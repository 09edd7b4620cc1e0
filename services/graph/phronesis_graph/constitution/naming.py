"""Names that callers give, held against what there is before a question goes to the store."""

from __future__ import annotations

import re
from collections.abc import Iterable

from phronesis_contracts import BadRequest
from phronesis_contracts.constitution.registry import TYPES, node_type
from phronesis_contracts.constitution.relationships import NAME

from ..checks import nearest


def type_names(given: Iterable[str]) -> frozenset[str]:
    """Names of node types as the registry spells them (O-026).

    Raises:
        BadRequest: there is no such type; the text names the nearest.
    """
    found = set()
    for name in given:
        kind = node_type(name)
        if kind is None:
            raise BadRequest(f"there is no node type {name[:64]}{nearest(name, TYPES)}", field="types")
        found.add(kind.name)
    return frozenset(found)


def relationship_names(given: Iterable[str]) -> tuple[str, ...]:
    """Names of relationship types, each once, in order.

    Raises:
        BadRequest: no relationship type can have such a name (O-351).
    """
    names = tuple(sorted(set(given)))
    for name in names:
        if len(name) > 64 or not re.fullmatch(NAME, name):
            raise BadRequest("a relationship type is written in capitals, such as SERVES", field="relationshipTypes")
    return names
