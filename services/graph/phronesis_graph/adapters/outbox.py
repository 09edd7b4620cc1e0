"""The outbox in the graph: news as nodes, as the relay reads it."""

from __future__ import annotations

import json

from phronesis_bus import Sendable

from .bolt import Bolt, Transaction
from .labels import NEWS

_UNSENT = f"""
MATCH (news:{NEWS}) WHERE news.key > ''
RETURN news.key AS key, news.whose AS whose, news.subject AS subject, news.body AS body, news.headers AS headers
ORDER BY news.key LIMIT $limit
"""
_WAITING = f"MATCH (news:{NEWS}) WHERE news.key > '' RETURN count(news) AS waiting"
_SENT = f"UNWIND $keys AS key MATCH (news:{NEWS} {{key: key}}) DELETE news"


class GraphOutbox:
    """Unsent news. Sent news is deleted."""

    def __init__(self, bolt: Bolt) -> None:
        self._bolt = bolt

    async def unsent(self, limit: int) -> list[Sendable]:
        """The oldest unsent news."""

        async def read(transaction: Transaction) -> list[Sendable]:
            rows = await transaction.rows(_UNSENT, limit=limit)
            return [
                Sendable(row["key"], row["whose"], row["subject"], row["body"].encode(), json.loads(row["headers"]))
                for row in rows
            ]

        return await self._bolt.read(read)

    async def waiting(self) -> int:
        """How much news is unsent."""

        async def read(transaction: Transaction) -> int:
            return int((await transaction.rows(_WAITING))[0]["waiting"])

        return await self._bolt.read(read)

    async def sent(self, ids: list[str]) -> None:
        """Delete news that the broker has stored."""

        async def delete(transaction: Transaction) -> None:
            await transaction.rows(_SENT, keys=ids)

        await self._bolt.write(delete)
