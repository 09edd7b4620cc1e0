"""Constitutional graphs in a few words, for tests that read them: as values, and planted in a store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from phronesis_contracts import Principal
from phronesis_contracts.constitution.registry import NODE_LABEL, TYPES
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_graph.constitution.records import link_key, node_key, node_to_row
from tests.support.graph import Stores

DAWN = datetime(2026, 1, 1, tzinfo=UTC)


def thing(id: str, type: str, *, at: int = 0, **fields: Any) -> ConstitutionNode:
    """A node that changed last `at` minutes after the beginning; what it says is given by the names of the contract."""
    when = DAWN + timedelta(minutes=at)
    kind = TYPES[type]
    known = {"status": kind.statuses[0], "title": f"The {id}", "created_at": when, "updated_at": when, "version": 1}
    return ConstitutionNode.model_validate({"id": id, "type": type, "layer": kind.layer, **known, **fields})


def things(type: str, *ids: str) -> list[ConstitutionNode]:
    """Nodes of one type."""
    return [thing(id, type) for id in ids]


def triples(*links: str) -> list[tuple[str, str, str]]:
    """Relationships, each written `a SERVES b`."""
    return [(a, name, b) for a, name, b in (link.split() for link in links)]


async def plant(stores: Stores, who: Principal, nodes: Iterable[ConstitutionNode], *links: str) -> None:
    """Put nodes and relationships straight into the store, for somebody's tenant."""
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for node in nodes:
        rows[TYPES[node.type].label].append(node_to_row(who.tenant, node))
    for label, of_type in rows.items():
        await stores.run(f"UNWIND $rows AS row CREATE (n:{NODE_LABEL}:`{label}`) SET n = row", rows=of_type)
    await join(stores, who, triples(*links))


async def join(stores: Stores, who: Principal, links: Iterable[tuple[str, str, str]]) -> None:
    """Put relationships straight into the store, whatever the registry says of them."""
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for a, name, b in links:
        kept = {"id": str(uuid4()), "key": link_key(who.tenant, a, name, b), "tenant": who.tenant}
        rows[name].append({"a": node_key(who.tenant, a), "b": node_key(who.tenant, b), "kept": kept})
    for name, of_type in rows.items():
        await stores.run(
            f"UNWIND $rows AS row MATCH (a:{NODE_LABEL} {{key: row.a}}) MATCH (b:{NODE_LABEL} {{key: row.b}}) "
            f"CREATE (a)-[r:`{name}`]->(b) SET r = row.kept",
            rows=of_type,
        )
