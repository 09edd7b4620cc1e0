"""What tests of the constitutional graph's lists share: nodes in few words, and how they come into a store."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from phronesis_bus import Call
from phronesis_contracts import Principal
from phronesis_contracts.constitution.registry import NODE_LABEL, TYPES
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode
from phronesis_graph.constitution.records import format_time, link_key, node_key, node_to_row
from tests.support.graph import Stores

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
_WORDS = (
    "careful measurement open records patient honest instruments shared methods quiet review slow evidence colleague"
    " before after because which every sample keeps promise answer doubt funding deadline archive letter winter field"
).split()


def node(id: str, type: str = "value", day: int = 0, **more: Any) -> ConstitutionNode:
    """A whole node; `day` is when it was made, counted from a fixed one."""
    kind, when = TYPES[type], BEGAN + timedelta(days=day)
    own = {"id": id, "type": type, "layer": kind.layer, "title": f"The {id}", "status": kind.statuses[0]}
    return ConstitutionNode.model_validate({**own, "createdAt": when, "updatedAt": when, "version": 1, **more})


def link(source: str, type: str, target: str) -> ConstitutionLink:
    """A relationship, whose id says what it joins."""
    return ConstitutionLink(id=f"{source}-{type}-{target}", type=type, from_id=source, to_id=target)


def words(number: int, seed: int = 0) -> str:
    """So many words, about one token each."""
    chance = random.Random(seed)
    return " ".join(chance.choice(_WORDS) for _ in range(number))


def call(who: Principal) -> Call:
    """A call of a caller's."""
    return Call(who, "gateway")


async def keep(
    stores: Stores, who: Principal, nodes: Iterable[ConstitutionNode], links: Sequence[ConstitutionLink] = ()
) -> None:
    """Put nodes and relationships into the store as they are, without news."""
    await stores.schema.declared()
    by_label: dict[str, list[dict[str, Any]]] = {}
    for one in nodes:
        by_label.setdefault(TYPES[one.type].label, []).append(node_to_row(who.tenant, one))
    for label, rows in by_label.items():
        await stores.run(f"UNWIND $rows AS row CREATE (n:{NODE_LABEL}:`{label}`) SET n = row", rows=rows)
    by_type: dict[str, list[dict[str, Any]]] = {}
    for each in links:
        key = link_key(who.tenant, each.from_id, each.type, each.to_id)
        row = {"id": each.id, "key": key, "tenant": who.tenant, "createdAt": format_time(BEGAN)}
        ends = {"a": node_key(who.tenant, each.from_id), "b": node_key(who.tenant, each.to_id)}
        by_type.setdefault(each.type, []).append({**ends, "row": row})
    for type, rows in by_type.items():
        await stores.run(
            f"UNWIND $rows AS one MATCH (a:{NODE_LABEL} {{key: one.a}}) MATCH (b:{NODE_LABEL} {{key: one.b}}) "
            f"CREATE (a)-[r:`{type}`]->(b) SET r = one.row",
            rows=rows,
        )
