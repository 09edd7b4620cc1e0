"""Forgetting knowledge items: nodes, links and waiting links go, their keys stay, so that late news is dropped."""

from __future__ import annotations

import time

from phronesis_bus import sendable
from phronesis_contracts.deletions import Purged
from phronesis_contracts.graph import GRAPH_PURGED
from phronesis_contracts.memory import ItemsForgotten

from ..knowledge import LABELS, item_key
from .bolt import Transaction
from .labels import GONE, LINKS
from .writes import news_id, write_news

_BURY = f"UNWIND $keys AS key MERGE (gone:{GONE} {{key: key}}) SET gone.at = $at"
_BURIED = f"UNWIND $keys AS key MATCH (gone:{GONE} {{key: key}}) RETURN gone.key AS key"
_LINKS = " UNION ALL ".join(
    f"UNWIND $keys AS key MATCH (n:{label} {{key: key}})-[link]-() RETURN count(DISTINCT link) AS links" for label in LABELS
)
_REMOVE = {label: f"UNWIND $keys AS key MATCH (n:{label} {{key: key}}) DETACH DELETE n RETURN key" for label in LABELS}
_DROP_WAITING = tuple(
    f"UNWIND $keys AS key MATCH (w:{LINKS} {{{end}: key}}) DETACH DELETE w RETURN key" for end in ("source", "target")
)


async def forget(transaction: Transaction, tenant: str, news: ItemsForgotten) -> None:
    """Remove the items of one event, and write the report to their deletion, in the transaction of their owner's turn."""
    keys = [item_key(tenant, news.owner, id) for id in news.ids]
    removed = {"items": 0, "links": 0}
    if keys:
        await transaction.rows(_BURY, keys=keys, at=time.time())
        removed["links"] = sum(row["links"] for row in await transaction.rows(_LINKS, keys=keys))
        for statement in _REMOVE.values():
            removed["items"] += len(await transaction.rows(statement, keys=keys))
        for statement in _DROP_WAITING:
            await transaction.rows(statement, keys=keys)
    if news.deletion_id is not None:
        report = Purged(deletion_id=news.deletion_id, removed=removed, part=news.part, parts=news.parts)
        await write_news(transaction, [sendable("graph", news_id(), tenant, GRAPH_PURGED, report)])


async def buried(transaction: Transaction, keys: list[str]) -> set[str]:
    """Which of these items were forgotten."""
    return {row["key"] for row in await transaction.rows(_BURIED, keys=keys)} if keys else set()
