"""A node as the store holds it and as messages tell it.

The store has no maps: bags are JSON texts, and a decision's return is the plain number `roiTotal`. Times have one form, so
that the order of their texts is the order of time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from phronesis_contracts.constitution.kinds import Kind, NodeType, Property, lifecycle
from phronesis_contracts.constitution.registry import LABELS, NODE_LABEL, TYPES
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode

COMMON = ("id", "type", "layer", "title", "summary", "description", "status", "createdAt", "updatedAt", "version")
"""Properties that every node has in the store under the names that messages have for them."""
BAGS = ("properties", "metadata", "provenance")
"""Properties that hold JSON."""
BARRED = frozenset(label.lower() for label in (NODE_LABEL, *LABELS))
"""Labels that no query tool reaches and no agent gives to nodes of its own: the constitutional graph has tools of its own."""
ROI = "roiTotal"
"""Where a decision's return stands in the store (O-082)."""

_OF_THE_SERVICE = frozenset({"id", "type", "layer", "createdAt", "updatedAt", "version"})


def key_of(tenant: str, id: str) -> str:
    """The unique key of a node. A tenant's name holds no slash, so no two tenants share a key."""
    return f"{tenant}/constitution/{id}"


def link_key(tenant: str, from_id: str, name: str, to_id: str) -> str:
    """The key of a relationship: its triple."""
    return f"{tenant}/{from_id}/{name}/{to_id}"


def moment(when: datetime) -> str:
    """A time as the store holds it: `2026-11-22T10:00:00.000000Z`."""
    return when.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def column(one: Property) -> str:
    """The name of a typed property in the store."""
    return ROI if one.kind is Kind.ROI else one.name


def columns(kind: NodeType) -> tuple[str, ...]:
    """Names of all properties in the store from which a node of a type is told in full."""
    return (*COMMON, *BAGS, *(column(one) for one in kind.properties))


def node_of(row: Mapping[str, Any]) -> ConstitutionNode:
    """A node as messages tell it.

    Args:
        row: properties of a node in the store, all of them or as many as are to be told; what is null is left out.
            `id`, `type`, `layer` and `title` have to be among them.
    """
    kind = TYPES[row["type"]]
    told: dict[str, Any] = {name: row[name] for name in COMMON if row.get(name) is not None}
    told |= {name: json.loads(row[name]) for name in BAGS if row.get(name) is not None}
    for one in kind.properties:
        value = row.get(column(one))
        if value is not None:
            told[one.name] = {"total": value} if one.kind is Kind.ROI else value
    return ConstitutionNode.model_validate(told)


def content_of(node: ConstitutionNode) -> dict[str, Any]:
    """What a node says, as messages have it: all but what the service keeps of it."""
    return {name: value for name, value in node.model_dump(mode="json").items() if name not in _OF_THE_SERVICE}


def row_of(tenant: str, node: ConstitutionNode) -> dict[str, Any]:
    """All properties of a node in the store.

    Args:
        tenant: whose node it is.
        node: the whole node, its typed properties in the form that `checking` gives them.
    """
    told = node.model_dump(mode="json")
    row: dict[str, Any] = {name: told[name] for name in COMMON if told.get(name) is not None}
    row |= {name: json.dumps(told[name], ensure_ascii=False) for name in BAGS if told.get(name)}
    for one in TYPES[node.type].properties:
        value = told.get(one.name)
        if value is not None:
            row[column(one)] = value["total"] if one.kind is Kind.ROI else value
    row |= {"tenant": tenant, "key": key_of(tenant, node.id), "lifecycle": lifecycle(node.status or "").value}
    row |= {name: moment(when) for name, when in (("createdAt", node.created_at), ("updatedAt", node.updated_at)) if when}
    return row


def link_of(row: Mapping[str, Any]) -> ConstitutionLink:
    """A relationship; the row has `id`, `type`, `fromId` and `toId`."""
    return ConstitutionLink(id=row["id"], type=row["type"], from_id=row["fromId"], to_id=row["toId"])
