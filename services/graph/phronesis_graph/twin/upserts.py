"""What an upsert means: held against the ontology first, and against what the graph holds second."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from phronesis_contracts import BadRequest
from phronesis_contracts.twin import Level, NodeRef, Upsert, UpsertNode

from .ontology import LevelRule, NodeType, Ontology, RelationshipType, check_value, suggest_nearest
from .vocabulary import join_aliases

Value = str | float | int

_DOWN = {(Level.L1, Level.L2), (Level.L2, Level.L3)}


@dataclass(frozen=True)
class NodeRecord:
    """A node as it should stand in the graph."""

    key: str
    """`tenant/type/id/year`. A tenant and a type hold no slash, so no key of one tenant is a key of another."""
    ref: str
    """`type/id/year`, as callers know it."""
    type: str
    level: Level
    hash: str
    """Of all content; equal hashes mean that there is nothing to write."""
    properties: Mapping[str, Value]
    """All properties but the version, which is the graph's to count."""
    text_bytes: int
    """Size of the texts, in bytes."""


@dataclass(frozen=True)
class End:
    """One end of a relationship: the node's type and key."""

    type: str
    key: str


@dataclass(frozen=True)
class RelationshipRecord:
    """A relationship as it should stand in the graph."""

    type: str
    source: End
    target: End


@dataclass(frozen=True)
class Plan:
    """A batch that fits the ontology."""

    nodes: tuple[NodeRecord, ...]
    relationships: tuple[RelationshipRecord, ...]

    def ends(self) -> Iterator[tuple[str, End]]:
        """Every end of every relationship, with the path of the input field that names it."""
        for i, relationship in enumerate(self.relationships):
            yield f"relationships.{i}.source", relationship.source
            yield f"relationships.{i}.target", relationship.target


@dataclass(frozen=True)
class Stored:
    """What the graph already holds of a node."""

    hash: str
    level: Level
    version: int


def plan_batch(ontology: Ontology, tenant: str, request: Upsert) -> Plan:
    """The batch as records of `tenant`.

    Raises `BadRequest`: it breaks the ontology; `field` is the path to the value at fault, and the detail names the nearest
    legal choice.
    """
    nodes = tuple(_to_record(ontology, tenant, node, f"nodes.{i}") for i, node in enumerate(request.nodes))
    _check_unique([record.key for record in nodes], "nodes", "node")
    relationships = []
    for i, relationship in enumerate(request.relationships):
        path = f"relationships.{i}"
        kind = _relationship_type(ontology, relationship.type, path)
        _known_type(ontology, relationship.source.type, f"{path}.source.type")
        _known_type(ontology, relationship.target.type, f"{path}.target.type")
        _check_ends(kind, relationship.source, relationship.target, path)
        for name in relationship.properties:
            raise BadRequest("relationships of the twin have no properties", field=f"{path}.properties.{name[:60]}")
        ends = (End(ref.type, f"{tenant}/{ref.key}") for ref in (relationship.source, relationship.target))
        relationships.append(RelationshipRecord(kind.name, *ends))
    _check_unique([f"{r.type}\n{r.source.key}\n{r.target.key}" for r in relationships], "relationships", "relationship")
    return Plan(nodes, tuple(relationships))


def check_levels(ontology: Ontology, batch: Plan, stored: Mapping[str, Stored]) -> None:
    """Hold the batch against what the graph holds of its nodes and ends, by key.

    Raises `BadRequest`: a node would change its level, an end is in neither the graph nor the batch, or a relationship joins
    levels that it may not join.
    """
    levels = {key: node.level for key, node in stored.items()}
    for i, node in enumerate(batch.nodes):
        if levels.setdefault(node.key, node.level) is not node.level:
            raise BadRequest(f"the node stands at {levels[node.key]}, and a node keeps its level", field=f"nodes.{i}.level")
    for path, end in batch.ends():
        if end.key not in levels:
            raise BadRequest("there is no such node", field=path)
    for i, relationship in enumerate(batch.relationships):
        source, target = levels[relationship.source.key], levels[relationship.target.key]
        match ontology.relationships[relationship.type].rule:
            case LevelRule.SAME if source is not target:
                raise BadRequest(
                    f"{relationship.type} joins nodes of one level, not {source} to {target}", field=f"relationships.{i}"
                )
            case LevelRule.DOWN if (source, target) not in _DOWN:
                raise BadRequest(
                    f"{relationship.type} joins L1 to L2 or L2 to L3, not {source} to {target}", field=f"relationships.{i}"
                )


def _to_record(ontology: Ontology, tenant: str, node: UpsertNode, path: str) -> NodeRecord:
    kind = _known_type(ontology, node.type, f"{path}.type")
    own = dict(_check_properties(kind, node, path))
    body: dict[str, Value] = {"id": node.id, "name": node.name, "year": node.year, "level": node.level.value, **own}
    if node.quarter is not None:
        body["quarter"] = node.quarter
    if node.aliases:
        body["aliases"] = join_aliases(node.aliases)
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    key = f"{tenant}/{node.key}"
    everything = {**body, "tenant": tenant, "key": key, "hash": digest}
    size = sum(len(str(own.get(name, "")).encode()) for name in kind.texts)
    return NodeRecord(key, node.key, kind.name, node.level, digest, everything, size)


def _check_properties(kind: NodeType, node: UpsertNode, path: str) -> Iterator[tuple[str, Value]]:
    for name, given in node.properties.items():
        declared = kind.properties.get(name)
        if declared is None:
            hint = suggest_nearest(name, kind.properties)
            raise BadRequest(f"{kind.name} has no such property{hint}", field=f"{path}.properties.{name[:60]}")
        if given is not None:
            yield name, check_value(declared, given, f"{path}.properties.{name}")


def _known_type(ontology: Ontology, name: str, path: str) -> NodeType:
    if name not in ontology.nodes:
        raise BadRequest(f"no such node type{suggest_nearest(name, ontology.nodes)}", field=path)
    return ontology.nodes[name]


def _relationship_type(ontology: Ontology, name: str, path: str) -> RelationshipType:
    if name not in ontology.relationships:
        raise BadRequest(f"no such relationship type{suggest_nearest(name, ontology.relationships)}", field=f"{path}.type")
    return ontology.relationships[name]


def _check_ends(kind: RelationshipType, source: NodeRef, target: NodeRef, path: str) -> None:
    if kind.joins(source.type, target.type):
        return
    if kind.rule is LevelRule.DOWN:
        raise BadRequest(f"{kind.name} joins nodes of one type", field=f"{path}.target.type")
    if source.type not in kind.sources:
        raise BadRequest(
            f"{kind.name} cannot start there{suggest_nearest(source.type, kind.sources)}", field=f"{path}.source.type"
        )
    raise BadRequest(f"{kind.name} cannot end there{suggest_nearest(target.type, kind.targets)}", field=f"{path}.target.type")


def _check_unique(keys: list[str], where: str, what: str) -> None:
    seen: set[str] = set()
    for i, key in enumerate(keys):
        if key in seen:
            raise BadRequest(f"the batch holds this {what} twice", field=f"{where}.{i}")
        seen.add(key)
