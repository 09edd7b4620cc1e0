"""Values of the store as JSON has them. What is the platform's own, or another tenant's, does not pass."""

from __future__ import annotations

import base64
import logging
import math
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from typing import Any

from neo4j.graph import Node, Path, Relationship
from neo4j.spatial import Point
from neo4j.time import Date, DateTime, Duration, Time

from phronesis_contracts import Internal
from phronesis_contracts.knowledge_graph import FoundNode

from ..curation import HIDDEN, ID, KNOWLEDGE, RELATIONSHIP_ID, is_vector
from ..ontology import Ontology

log = logging.getLogger(__name__)

_OF_THE_TWIN = HIDDEN | {"hash", "version"}


class Values:
    """Values for one tenant.

    Args:
        ontology: which labels nodes of the twin have.
        tenant: whose nodes may pass.
        adopted: ids of nodes that came before they had one, by the store's own ids.
    """

    def __init__(self, ontology: Ontology, tenant: str, adopted: Mapping[str, str] | None = None) -> None:
        self._labels = ontology.nodes.keys()
        self._tenant = tenant
        self._adopted = adopted or {}

    def row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row by the names that its statement returns, without embeddings.

        Raises:
            Internal: it holds a node that is not the tenant's, or the platform's own: the guard failed.
        """
        return {name: self.plain(value) for name, value in row.items() if not is_vector(name)}

    def node(self, node: Node) -> FoundNode:
        """A node; raises as `row` does."""
        id = self._adopted.get(node.element_id) or str(node.get("key")).removeprefix(f"{self._tenant}/")
        knowledge = KNOWLEDGE in node.labels or node.element_id in self._adopted
        if node.get("tenant") != self._tenant or not (knowledge or node.labels & self._labels):
            log.error("a statement gave a node that its caller may not see")
            raise Internal("the answer was withheld")
        hidden = HIDDEN | {ID} if knowledge else _OF_THE_TWIN
        return FoundNode(
            id=id, labels=tuple(sorted(node.labels - {KNOWLEDGE})), properties=self._properties(node.items(), hidden)
        )

    def plain(self, value: Any) -> Any:
        """One value; raises as `row` does."""
        match value:
            case None | bool() | int() | str():
                return value
            case float():
                return value if math.isfinite(value) else None
            case Node() | Relationship() | Path():
                return self._entity(value)
            case Mapping():
                return self._properties(value.items(), _hidden(value))
            case Duration() | Point():  # both are tuples
                return _other(value)
            case list() | tuple() | set() | frozenset():
                return [self.plain(member) for member in value]
        return _other(value)

    def _entity(self, value: Node | Relationship | Path) -> dict[str, Any]:
        match value:
            case Node():
                return self.node(value).model_dump(mode="json")
            case Relationship():
                shown = self._properties(value.items(), HIDDEN | {RELATIONSHIP_ID})
                return {"id": value.get(RELATIONSHIP_ID), "type": value.type, "properties": shown}
        return {
            "nodes": [self._entity(node) for node in value.nodes],
            "relationships": [self._entity(relationship) for relationship in value.relationships],
        }

    def _properties(self, items: Iterable[tuple[str, Any]], hidden: frozenset[str]) -> dict[str, Any]:
        return {name: self.plain(value) for name, value in items if name not in hidden and not is_vector(name)}


def _hidden(value: Mapping[str, Any]) -> frozenset[str]:
    """What to leave out of a map: it may be all properties of a node, as `properties()` gives them."""
    if not {"tenant", "key"} <= value.keys():
        return frozenset()
    return HIDDEN if ID in value else _OF_THE_TWIN


def _other(value: object) -> Any:
    match value:
        case Date() | Time() | DateTime() | Duration():
            return value.iso_format()
        case date() | datetime() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Point():
            return {"srid": value.srid, "coordinates": list(value)}
        case bytes() | bytearray():
            return base64.b64encode(value).decode()
    return None  # a vector, or a kind of value that this version does not know
