"""What a survey may name and compare with, held against the ontology."""

from __future__ import annotations

import math

from phronesis_contracts import BadRequest
from phronesis_contracts.graph import Level
from phronesis_contracts.twin import Where

from ..checks import nearest, value
from ..ontology import Kind, NodeType, Ontology, Property

COMMON = {
    "id": Property("id", Kind.TEXT),
    "name": Property("name", Kind.STRING),
    "level": Property("level", Kind.STRING, choices=tuple(Level)),
    "quarter": Property("quarter", Kind.STRING, choices=("Q1", "Q2", "Q3", "Q4")),
}
"""What every node has beside its year and what its type declares. An id is compared as it stands."""
Value = str | float | list[str | float]


def node_type(ontology: Ontology, name: str, path: str) -> NodeType:
    """A declared node type.

    Raises:
        BadRequest: there is none of this name.
    """
    if name not in ontology.nodes:
        raise BadRequest(f"no such node type{nearest(name, ontology.nodes)}", field=path)
    return ontology.nodes[name]


def declared(kind: NodeType, name: str, path: str) -> Property:
    """A property that nodes of the type have.

    Raises:
        BadRequest: there is none of this name.
    """
    found = kind.properties.get(name) or COMMON.get(name)
    if found is None:
        raise BadRequest(f"{kind.name} has no such property{nearest(name, [*kind.properties, *COMMON])}", field=path)
    return found


def joined_type(ontology: Ontology, kind: NodeType, via: str | None, to: str | None, path: str) -> NodeType | None:
    """The node type at the other end of a relationship; `None` where none is asked for.

    Raises:
        BadRequest: there is no such relationship or type, or it does not join the two.
    """
    if via is None:
        if to is not None:
            raise BadRequest("without `via` there is nothing that leads there", field=f"{path}.to")
        return None
    if via not in ontology.relationships:
        raise BadRequest(f"no such relationship type{nearest(via, ontology.relationships)}", field=f"{path}.via")
    relationship = ontology.relationships[via]
    others = [t for t in ontology.nodes if relationship.joins(kind.name, t) or relationship.joins(t, kind.name)]
    if not others:
        raise BadRequest(f"{kind.name} has no {via}", field=f"{path}.via")
    if to is None:
        raise BadRequest(f"`via` needs the node type that it leads to{nearest('', others)}", field=f"{path}.to")
    if to not in others:
        raise BadRequest(f"{via} does not join {kind.name} and {to[:60]}{nearest(to, others)}", field=f"{path}.to")
    return ontology.nodes[to]


def compared(one: Where, found: Property, path: str) -> Value | None:
    """The value to compare with, as the store has its like; text without case, but for ids.

    Raises:
        BadRequest: it does not fit the property or the comparison.
    """
    if one.op == "unknown":
        return None
    if one.op == "in":
        if not isinstance(one.value, tuple):
            raise BadRequest("`in` needs a list", field=f"{path}.value")
        return [_fitting(found, each, f"{path}.value.{i}") for i, each in enumerate(one.value)]
    if one.op == "contains":
        if not isinstance(one.value, str) or found.kind in (Kind.NUMBER, Kind.DATE):
            raise BadRequest("`contains` is for text", field=f"{path}.op")
        return one.value.lower()
    if one.op in ("<", "<=", ">", ">=") and found.kind not in (Kind.NUMBER, Kind.DATE):
        raise BadRequest(f"`{one.op}` is for numbers and dates", field=f"{path}.op")
    return _fitting(found, one.value, f"{path}.value")


def folds(found: Property) -> bool:
    """Whether a property is compared without case: free text is, a member of a closed set stands as it is declared."""
    return found.kind in (Kind.STRING, Kind.TEXT) and not found.choices and found is not COMMON["id"]


def _fitting(found: Property, given: object, path: str) -> str | float:
    if found.kind is Kind.NUMBER:
        if isinstance(given, bool) or not isinstance(given, (int, float)) or not math.isfinite(given):
            raise BadRequest("a number is needed", field=path)
        return float(given)
    made = str(value(found, given, path))
    return made.lower() if folds(found) else made
