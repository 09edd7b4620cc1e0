"""What the graph service does when it is asked what there is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from phronesis_bus import Call
from phronesis_contracts import Nothing
from phronesis_contracts.constitution.kinds import RETRIEVAL, Layer
from phronesis_contracts.constitution.lists import Inventory, RelationshipCount, TypeCount
from phronesis_contracts.constitution.registry import TYPES
from phronesis_contracts.constitution.relationships import RELATIONSHIPS
from phronesis_contracts.constitution.values import MAX_TOKENS

from .list_ports import Survey
from .pages import weight

_BAGS = 5_000
"""Bags of free properties that are looked through for names."""
_NAMES = 20
"""Names of undeclared properties that are told of a type."""
_LONGEST = 64
"""Characters that are told of one."""


class Inventories:
    """One method for the one message."""

    def __init__(self, store: Survey) -> None:
        self._store = store

    async def inventory(self, call: Call, request: Nothing) -> Inventory:
        """The layers, types, relationship types and indexes, with what the caller's tenant has of each.

        Names of undeclared properties come from the first 5,000 bags. Of relationship types that are not declared the
        rarest are left out where the answer would be too large, and before them those names.
        """
        counted = await self._store.counted(call.who.tenant, _BAGS)
        others = sorted(
            counted.relationships.keys() - RELATIONSHIPS.keys(), key=lambda name: (-counted.relationships[name], name)
        )
        whole = Inventory(
            layers=tuple(Layer),
            retrieval={layer.value: how.value for layer, how in RETRIEVAL.items()},
            types=_types(counted.types, _undeclared(counted.bags)),
            relationship_types=_relationships(counted.relationships, others),
            indexes=tuple(await self._store.indexes()),
            total_nodes=sum(counted.types.values()),
            total_relationships=sum(counted.relationships.values()),
        )
        if weight(whole) > MAX_TOKENS:
            whole = whole.model_copy(update={"types": _types(counted.types, {}), "truncated": True})
        while weight(whole) > MAX_TOKENS:
            others = others[: len(others) // 2]
            whole = whole.model_copy(update={"relationship_types": _relationships(counted.relationships, others)})
        return whole


def _types(counts: Mapping[str, int], undeclared: Mapping[str, tuple[str, ...]]) -> tuple[TypeCount, ...]:
    return tuple(
        TypeCount(
            type=kind.name,
            label=kind.label,
            layer=kind.layer,
            tier=None if kind.tier is None else kind.tier.name,
            retrieval=RETRIEVAL[kind.layer].value,
            properties={one.name: one.kind.value for one in kind.properties},
            statuses=kind.statuses,
            count=counts.get(kind.name, 0),
            undeclared=undeclared.get(kind.name, ()),
        )
        for kind in TYPES.values()
    )


def _relationships(counts: Mapping[str, int], others: Iterable[str]) -> tuple[RelationshipCount, ...]:
    declared = tuple(
        RelationshipCount(
            type=name,
            declared=True,
            ends=tuple({"from": sorted(e.source), "to": sorted(e.target), "meaning": e.meaning} for e in kind.ends),
            count=counts.get(name, 0),
        )
        for name, kind in RELATIONSHIPS.items()
    )
    return declared + tuple(RelationshipCount(type=name, declared=False, count=counts[name]) for name in others)


def _undeclared(bags: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    names: dict[str, set[str]] = {}
    for type, bag in bags:
        names.setdefault(type, set()).update(json.loads(bag))
    return {type: tuple(sorted(name[:_LONGEST] for name in found)[:_NAMES]) for type, found in names.items()}
