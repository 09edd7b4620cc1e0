"""Forgetting for good: facts and items go with their words, vectors and links, and whoever holds a copy is told."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID, uuid4

import asyncpg

from phronesis_bus import Call, audited
from phronesis_contracts import NotFound, Principal
from phronesis_contracts.deletions import ConversationDeleted, Purged
from phronesis_contracts.forgetting import (
    MEMORY_FORGOTTEN,
    MOST,
    CopiesPurged,
    ForgetFor,
    Forgetting,
    ForgettingPreview,
    MemoryForgotten,
)
from phronesis_contracts.memory import ITEMS_FORGOTTEN, ItemsForgotten
from phronesis_contracts.service import AUDITED
from phronesis_postgres import EVERY_TENANT, Connection, Database, write_news, write_once

from ..domain.rooms import owner_of_facts
from ..ports import VectorIndex
from .fact_reports import enter, read
from .fact_rows import COLUMNS, kept, shown
from .fact_targets import Targets, again, episodes_of, targets, turn_names
from .facts import forgotten_name
from .forgetting import bury
from .vector_changes import hold_news
from .writing import lock, remove

SERVICE = "memory"
_SHOWN = 50

# What took the place of another is gone: the other stays as it was, ended.
_ENDED = """
    UPDATE facts SET ended_at = valid_to, superseded_by = NULL
    WHERE tenant = $1 AND owner = $2 AND superseded_by = ANY($3::uuid[]) AND NOT id = ANY($3::uuid[])"""
_DETACH = """
    DELETE FROM fact_sources USING facts
    WHERE facts.id = fact_id AND tenant = $1 AND owner = $2 AND conversation_id = $3"""
_BEGUN = """
    INSERT INTO forgettings (id, tenant, owner, ids, turns, conversation_id, removed) VALUES ($1, $2, $3, $4, $5, $6, $7)"""
_OWNER = "SELECT owner FROM forgettings WHERE id = $1 AND tenant = $2"
_NEWEST = f"SELECT {COLUMNS} FROM facts WHERE id = ANY($1::uuid[]) ORDER BY recorded_at DESC, id LIMIT $2"  # noqa: S608


class PostgresForgettings:
    """`Forgettings` on the tables of facts and items.

    Args:
        database: the schema.
        vectors: the index of the items' vectors.
        wake: called after a transaction that wrote news.
    """

    def __init__(self, database: Database, vectors: VectorIndex, wake: Callable[[], None]) -> None:
        self._database = database
        self._vectors = vectors
        self._wake = wake

    async def preview(self, who: Principal, request: ForgetFor) -> ForgettingPreview:
        """See `Forgettings`."""
        async with self._database.connection(who.tenant) as connection:
            found = await targets(connection, who.tenant, who.user, request)
            rows = await connection.fetch(_NEWEST, found.facts, _SHOWN)
            facts = await kept(connection, rows)
        shown_facts = tuple(shown(fact, row) for fact, row in zip(facts, rows, strict=True))
        return ForgettingPreview(facts=shown_facts, turns=tuple(found.turns), removed=found.counts)

    async def begin(self, call: Call, request: ForgetFor) -> Forgetting:
        """See `Forgettings`."""
        who, touched = call.who, list[str]()

        async def work(connection: Connection) -> Forgetting:
            await _locked(connection, who.tenant, who.user)
            found = await targets(connection, who.tenant, who.user, request)
            if found.empty:
                raise NotFound("there is nothing of that to forget")
            id = uuid4()
            removed = {SERVICE: found.counts}
            ids = [*map(str, found.facts), *found.cited]
            row = (id, who.tenant, who.user, ids, found.turns, request.conversation_id, removed)
            await connection.execute(_BEGUN, *row)
            touched.extend(await self._remove(connection, who.tenant, who.user, str(id), found))
            entry = {"forgetting_id": str(id), "facts": len(found.facts), "items": len(found.items)}
            await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], audited(who, "memory.forget", entry))
            return await read(connection, who, id)

        result = await write_once(self._database, call, request, Forgetting, work)
        self._wake()
        await self._vectors.settle(who.tenant, touched)
        return result

    async def _remove(self, connection: Connection, tenant: str, owner: str, id: str, found: Targets) -> list[str]:
        """Remove rows, words and vectors, and tell the others; the items that went."""
        gone = [*found.behind, *map(str, found.items), *found.episodes.values()]
        await connection.execute(_ENDED, tenant, owner, found.facts)
        await connection.execute(
            "DELETE FROM facts WHERE tenant = $1 AND owner = $2 AND id = ANY($3::uuid[])", tenant, owner, found.facts
        )
        if found.conversation is not None:
            await connection.execute(_DETACH, tenant, owner, found.conversation)
        settled = await remove(connection, self._vectors, tenant, gone)
        await bury(connection, tenant, owner, found.buried)
        linked = ItemsForgotten(owner=owner, ids=tuple(map(str, found.items)), deletion_id=id)
        await write_news(connection, SERVICE, tenant, ITEMS_FORGOTTEN, linked)
        told = MemoryForgotten(
            forgetting_id=id,
            owner=owner,
            ids=(*map(str, found.facts), *found.cited),
            turns=tuple(found.turns),
            found_by=tuple(found.behind[:MOST]),
        )
        if settled:
            await write_news(connection, SERVICE, tenant, MEMORY_FORGOTTEN, told)
        else:
            await hold_news(connection, SERVICE, tenant, MEMORY_FORGOTTEN, told, gone)
        return gone

    async def get(self, who: Principal, forgetting_id: str) -> Forgetting:
        """See `Forgettings`."""
        try:
            id = UUID(forgetting_id)
        except ValueError:
            raise NotFound("no such forgetting") from None
        async with self._database.connection(who.tenant) as connection:
            return await read(connection, who, id)

    async def purged(self, tenant: str, service: str, removed: Purged) -> None:
        """See `Forgettings`."""
        async with self._database.transaction(tenant) as connection:
            await enter(connection, tenant, service, removed)

    async def copies_purged(self, tenant: str, report: CopiesPurged) -> None:
        """See `Forgettings`."""
        gone: list[str] = []
        async with self._database.transaction(tenant) as connection:
            owner = await connection.fetchval(_OWNER, UUID(report.deletion_id), tenant)
            if owner is None:
                return
            await _locked(connection, tenant, owner)
            gone = await episodes_of(connection, tenant, owner, report.turns)
            await remove(connection, self._vectors, tenant, gone)
            await bury(connection, tenant, owner, turn_names(report.turns))
            await enter(connection, tenant, "orchestrator", report)
        await self._vectors.settle(tenant, gone)

    async def forget_conversation(self, tenant: str, event: ConversationDeleted) -> None:
        """See `Forgettings`."""
        request = ForgetFor(conversation_id=event.conversation_id)
        async with self._database.transaction(tenant) as connection:
            await _locked(connection, tenant, event.user)
            await bury(connection, tenant, event.user, [forgotten_name("conversation", event.conversation_id)])
            found = await targets(connection, tenant, event.user, request)
            await connection.execute(_ENDED, tenant, event.user, found.facts)
            await connection.execute("DELETE FROM facts WHERE tenant = $1 AND id = ANY($2::uuid[])", tenant, found.facts)
            await connection.execute(_DETACH, tenant, event.user, event.conversation_id)
            await remove(connection, self._vectors, tenant, found.behind)
        await self._vectors.settle(tenant, found.behind)

    async def repeat(self) -> int:
        """Forget again what a restored backup brought back; how many forgettings that were."""
        async with self._database.connection(EVERY_TENANT) as connection:
            rows = await connection.fetch("SELECT * FROM forgettings WHERE again ORDER BY requested_at")
        for row in rows:
            await self._repeat(row)
        if rows:
            self._wake()
        return len(rows)

    async def _repeat(self, row: asyncpg.Record) -> None:
        async with self._database.transaction(row["tenant"]) as connection:
            await _locked(connection, row["tenant"], row["owner"])
            found = await again(connection, row)
            gone = await self._remove(connection, row["tenant"], row["owner"], str(row["id"]), found)
            await connection.execute("UPDATE forgettings SET again = false WHERE id = $1", row["id"])
        await self._vectors.settle(row["tenant"], gone)


async def _locked(connection: Connection, tenant: str, owner: str) -> None:
    await lock(connection, tenant, owner)
    await lock(connection, tenant, owner_of_facts(owner))
