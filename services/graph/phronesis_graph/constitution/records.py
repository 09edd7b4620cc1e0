"""A node as the store holds it and as messages tell it, with each typed value in its one form."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Any

from phronesis_contracts.constitution.registry import LABELS, NODE_LABEL, TYPES, Kind, NodeType, Property, lifecycle_of
from phronesis_contracts.constitution.values import MAX_TEXT, ConstitutionLink, ConstitutionNode
from phronesis_contracts.constitution.writes import RegistryRefused

COMMON = ("id", "type", "layer", "title", "summary", "description", "status", "createdAt", "updatedAt", "version")
"""Properties that every node has in the store under the names that messages have for them."""
BAGS = ("properties", "metadata", "provenance")
"""Properties that hold JSON."""
RESERVED_LABELS = frozenset(label.lower() for label in (NODE_LABEL, *LABELS))
"""Labels that no query tool reaches and no agent gives to nodes of its own: the constitutional graph has tools of its own."""
ROI = "roiTotal"
"""Where a decision's return stands in the store."""

_SERVICE_FIELDS = frozenset({"id", "type", "layer", "createdAt", "updatedAt", "version"})


def node_key(tenant: str, id: str) -> str:
    """The unique key of a node. A tenant's name holds no slash, so no two tenants share a key."""
    return f"{tenant}/constitution/{id}"


def link_key(tenant: str, from_id: str, name: str, to_id: str) -> str:
    """The key of a relationship: its triple."""
    return f"{tenant}/{from_id}/{name}/{to_id}"


def format_time(when: datetime) -> str:
    """A time as the store holds it: `2026-11-22T10:00:00.000000Z`."""
    return when.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def column_name(one: Property) -> str:
    return ROI if one.kind is Kind.ROI else one.name


def column_names(kind: NodeType) -> tuple[str, ...]:
    """Names of all properties in the store from which a node of a type is told in full."""
    return (*COMMON, *BAGS, *(column_name(one) for one in kind.properties))


def node_from_row(row: Mapping[str, Any]) -> ConstitutionNode:
    """A node as messages tell it.

    Args:
        row: properties of a node in the store, all of them or as many as are to be told; what is null is left out.
            `id`, `type`, `layer` and `title` have to be among them.
    """
    kind = TYPES[row["type"]]
    fields: dict[str, Any] = {name: row[name] for name in COMMON if row.get(name) is not None}
    fields |= {name: json.loads(row[name]) for name in BAGS if row.get(name) is not None}
    for one in kind.properties:
        value = row.get(column_name(one))
        if value is not None:
            fields[one.name] = {"total": value} if one.kind is Kind.ROI else value
    return ConstitutionNode.model_validate(fields)


def node_content(node: ConstitutionNode) -> dict[str, Any]:
    """What a node says, as messages have it: all but what the service keeps of it."""
    return {name: value for name, value in node.model_dump(mode="json").items() if name not in _SERVICE_FIELDS}


def node_to_row(tenant: str, node: ConstitutionNode) -> dict[str, Any]:
    """All properties of a node in the store; its typed ones are in the form that `validation` gives them."""
    fields = node.model_dump(mode="json")
    row: dict[str, Any] = {name: fields[name] for name in COMMON if fields.get(name) is not None}
    row |= {name: json.dumps(fields[name], ensure_ascii=False) for name in BAGS if fields.get(name)}
    for one in TYPES[node.type].properties:
        value = fields.get(one.name)
        if value is not None:
            row[column_name(one)] = value["total"] if one.kind is Kind.ROI else value
    row |= {"tenant": tenant, "key": node_key(tenant, node.id), "lifecycle": lifecycle_of(node.status or "").value}
    row |= {name: format_time(when) for name, when in (("createdAt", node.created_at), ("updatedAt", node.updated_at)) if when}
    return row


def link_from_row(row: Mapping[str, Any]) -> ConstitutionLink:
    """A relationship; the row has `id`, `type`, `fromId` and `toId`."""
    return ConstitutionLink(id=row["id"], type=row["type"], from_id=row["fromId"], to_id=row["toId"])


PRIORITIES = {"low": 2, "medium": 3, "high": 4, "critical": 5}
"""Priorities in words."""
_PRIORITIES = range(1, 6)
_MOST_TEXTS = 100


def normalize_value(one: Property, value: object) -> object:
    """The value of a property in its form: numbers as numbers, a day as a day, a time in UTC.

    Raises `RegistryRefused`: the value is not of the property's kind, or out of its range; `field` is the property.
    """
    return _FORMS[one.kind](one.name, value)


def normalize_text(name: str, value: object) -> str:
    """A text of a node; raises as `typed` does."""
    if not isinstance(value, str):
        raise RegistryRefused(f"{name} is a text", field=name)
    if len(value) > MAX_TEXT:
        raise RegistryRefused(f"{name} is over {MAX_TEXT} characters", field=name)
    return value


def _normalize_texts(name: str, value: object) -> list[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise RegistryRefused(f"{name} is a list of texts", field=name)
    if len(value) > _MOST_TEXTS or sum(map(len, value)) > MAX_TEXT:
        raise RegistryRefused(f"{name} has over {_MOST_TEXTS} texts, or over {MAX_TEXT} characters in all", field=name)
    return list(value)


def _normalize_number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RegistryRefused(f"{name} is a number", field=name)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise RegistryRefused(f"{name} is too great a number", field=name)
    return number


def _normalize_share(name: str, value: object) -> float:
    number = _normalize_number(name, value)
    if not 0 <= number <= 1:
        raise RegistryRefused(f"{name} lies between 0 and 1", field=name)
    return number


def _normalize_hours(name: str, value: object) -> float:
    number = _normalize_number(name, value)
    if number < 0:
        raise RegistryRefused(f"{name} is 0 hours or more", field=name)
    return number


def _normalize_priority(name: str, value: object) -> int:
    if isinstance(value, str):
        value = {**PRIORITIES, **{str(number): number for number in _PRIORITIES}}.get(value.strip().lower())
    if isinstance(value, bool) or value not in _PRIORITIES:
        raise RegistryRefused(f"{name} is 1 to 5, 5 the highest, or one of {', '.join(PRIORITIES)}", field=name)
    return int(value)  # type: ignore[call-overload, no-any-return]  # what is in the range is a number


def _normalize_date(name: str, value: object) -> str:
    if isinstance(value, str):
        value = value.strip()
        try:
            return date.fromisoformat(value).isoformat()
        except ValueError:
            pass  # no day; perhaps a time
        try:
            when = datetime.fromisoformat(value)
            return format_time(when if when.tzinfo else when.replace(tzinfo=UTC))
        except (ValueError, OverflowError):
            pass  # nor a time
    raise RegistryRefused(f"{name} is no date: write 2026-11-22 or 2026-11-22T10:00:00Z", field=name)


def _normalize_roi(name: str, value: object) -> dict[str, float]:
    if isinstance(value, dict):
        if value.keys() != {"total"}:
            raise RegistryRefused(f'{name} holds its total and nothing else: {{"total": 2.5}}', field=name)
        value = value["total"]
    return {"total": _normalize_number(name, value)}


_FORMS: dict[Kind, Callable[[str, object], object]] = {
    Kind.TEXT: normalize_text,
    Kind.TEXTS: _normalize_texts,
    Kind.NUMBER: _normalize_number,
    Kind.SHARE: _normalize_share,
    Kind.HOURS: _normalize_hours,
    Kind.PRIORITY: _normalize_priority,
    Kind.DATE: _normalize_date,
    Kind.ROI: _normalize_roi,
}
