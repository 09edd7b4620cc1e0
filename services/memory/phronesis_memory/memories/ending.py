"""How memories end by themselves: on expiry, with a tenant's retention, and with all else that is held of a user."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from phronesis_bus import Bus, Call, audit_entry, serve, work_in_background
from phronesis_contracts import Agent, BadRequest, Nothing, Principal, Role
from phronesis_contracts.deletions import AGED_DROP, USER_DATA, USER_ERASE, Aged, DropAged, PartErased, UserData
from phronesis_contracts.memory import ITEMS_FORGOTTEN, ItemKind, ItemsForgotten, Scope
from phronesis_contracts.service import AUDITED
from phronesis_postgres import EVERY_TENANT, WRITES_OF_USER, Connection, Database, write_news

from ..items.rows import SERVICE, ItemRemover, bury_user, lock_owner, remove_items
from ..ports import VectorIndex
from ..values import owner_of_documents, owner_of_facts, owner_of_scope

BATCH = 500
"""Items that go in one transaction."""
_ACTOR = "memory"
"""Who acts where nobody asked."""

# Tenants in turn, so that one with much to sweep lets the others in.
_EXPIRED = """
    SELECT tenant, owner FROM items WHERE expires_at <= now() AND tenant = (
        (SELECT tenant FROM items WHERE expires_at <= now() AND tenant > $1 ORDER BY tenant LIMIT 1)
        UNION ALL (SELECT tenant FROM items WHERE expires_at <= now() ORDER BY tenant LIMIT 1) LIMIT 1
    ) ORDER BY expires_at LIMIT 1"""
_EXPIRED_OF = """
    SELECT id, kind, external_id FROM items WHERE tenant = $1 AND owner = $2 AND expires_at <= now()
    ORDER BY expires_at LIMIT $3"""
_AGED = """
    SELECT owner, array_agg(id) AS ids FROM (
        SELECT id, owner FROM items WHERE tenant = $1 AND kind = $2 AND kind IN ('message', 'episode') AND created_at < $3
        ORDER BY created_at LIMIT $4
    ) AS old GROUP BY owner ORDER BY owner"""
_AGED_OF = "SELECT id, kind, external_id FROM items WHERE tenant = $1 AND owner = $2 AND id = ANY($3::uuid[])"
# Facts that were drawn from these memories, and from nothing else that is left.
_RESTING = """
    SELECT id, item_id FROM facts WHERE tenant = $1 AND owner = $2 AND id IN (
        SELECT fact_id FROM fact_sources WHERE split_part(source, '/', 1) = ANY($3::text[])
    ) AND NOT EXISTS (
        SELECT FROM fact_sources WHERE fact_id = facts.id AND NOT split_part(source, '/', 1) = ANY($3::text[])
    )"""
_DROP_SOURCES = """
    DELETE FROM fact_sources USING facts WHERE facts.id = fact_id AND tenant = $1 AND owner = $2
    AND split_part(source, '/', 1) = ANY($3::text[])"""
_DROP_FACTS = "DELETE FROM facts WHERE tenant = $1 AND owner = $2 AND id = ANY($3::uuid[])"

_THEIRS = "tenant = $1 AND (owner = ANY($2::text[]) OR starts_with(owner, $3))"
_OF_USER = {
    "profiles": "profiles WHERE tenant = $1 AND user_id = $2",
    "facts": "facts WHERE tenant = $1 AND owner = $2",
    "forgettings": "forgettings WHERE tenant = $1 AND owner = $2",
    "tombstones": "tombstones WHERE tenant = $1 AND owner = $2",
    "documents": "documents WHERE tenant = $1 AND owner = $2",
    "writes": WRITES_OF_USER,
    "searches": "constitution_retrievals WHERE tenant = $1 AND actor = $2",
    "ratings": "constitution_ratings WHERE tenant = $1 AND rater = $2",
}
"""Rows beside items, by what they are."""
_KINDS = f"SELECT kind, count(*) AS held FROM items WHERE {_THEIRS} GROUP BY kind ORDER BY kind"  # noqa: S608
_HELD = f"SELECT id FROM items WHERE {_THEIRS} ORDER BY id LIMIT $4"  # noqa: S608
_SCOPES = f"scopes WHERE {_THEIRS}"
_ENTER = "SELECT set_config('phronesis.room', $1, true)"


class Ending:
    """Deletes memories that have had their time. Each call is one bounded step, and may be repeated."""

    def __init__(self, database: Database, vectors: VectorIndex, wake: Callable[[], None]) -> None:
        self._database, self._vectors, self._wake = database, vectors, wake
        self._removing = ItemRemover(database, vectors, wake)
        self._last = ""

    async def expire(self) -> bool:
        """Delete a batch of one owner's expired memories, tenants in turn; whether there was one. Raises `Unavailable`."""
        async with self._database.connection(EVERY_TENANT) as connection:
            row = await connection.fetchrow(_EXPIRED, self._last)
        if row is None:
            return False
        self._last, owner = row["tenant"], row["owner"]
        await self._remove(self._last, owner, "memory.expire", _EXPIRED_OF, BATCH)
        return True

    async def drop_aged(self, call: Call, request: DropAged) -> PartErased:
        """Delete the oldest messages, or episodes, of a tenant that are from before a moment. Raises `BadRequest`."""
        kinds = {Aged.MESSAGES: ItemKind.MESSAGE, Aged.EPISODES: ItemKind.EPISODE}
        if request.what not in kinds:
            raise BadRequest(f"memory holds no {request.what}", field="what")
        tenant = call.who.tenant
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_AGED, tenant, kinds[request.what], request.before, BATCH)
        for row in rows:
            await self._remove(tenant, row["owner"], "memory.retention", _AGED_OF, row["ids"])
        gone = sum(len(row["ids"]) for row in rows)
        return PartErased(removed={request.what.value: gone} if gone else {}, done=gone < BATCH)

    async def held(self, call: Call, request: Nothing) -> UserData:
        """How much is held of the caller."""
        who = call.who
        async with self._database.connection(who.tenant) as connection:
            await connection.execute(_ENTER, owner_of_scope(who, Scope.PERSONAL))
            counts = {f"{row['kind']}_items": row["held"] for row in await connection.fetch(_KINDS, *_owners(who))}
            for name, rows in _OF_USER.items():
                counts[name] = await connection.fetchval(f"SELECT count(*) FROM {rows}", who.tenant, who.user)  # noqa: S608
            counts["scopes"] = await connection.fetchval(f"SELECT count(*) FROM {_SCOPES}", *_owners(who))  # noqa: S608
        tenant, owners, prefix = _owners(who)
        counts["vectors"] = await self._vectors.count(tenant, owners, prefix)
        return UserData(held={name: count for name, count in counts.items() if count})

    async def erase(self, call: Call, request: Nothing) -> PartErased:
        """Erase a batch of the caller's items, or, where none is left, all else that is held of them."""
        who, gone, removed = call.who, list[str](), dict[str, int]()
        async with self._database.transaction(who.tenant) as connection:
            for owner in (who.user, owner_of_facts(who.user)):
                await lock_owner(connection, who.tenant, owner)
            await connection.execute(_ENTER, owner_of_scope(who, Scope.PERSONAL))
            # From here on late news of what was said before brings nothing back.
            await bury_user(connection, who.tenant, who.user)
            gone = [str(row["id"]) for row in await connection.fetch(_HELD, *_owners(who), BATCH)]
            if gone:
                await remove_items(connection, self._vectors, who.tenant, gone)
                news = ItemsForgotten(owner=who.user, ids=tuple(gone))
                await write_news(connection, SERVICE, who.tenant, ITEMS_FORGOTTEN, news)
                removed["items"] = len(gone)
            else:
                for name, rows in _OF_USER.items():
                    removed[name] = _count(await connection.execute(f"DELETE FROM {rows}", who.tenant, who.user))  # noqa: S608
                removed["scopes"] = _count(await connection.execute(f"DELETE FROM {_SCOPES}", *_owners(who)))  # noqa: S608
        self._wake()
        await self._vectors.settle(who.tenant, gone)
        return PartErased(removed={name: count for name, count in removed.items() if count}, done=not gone)

    async def _remove(self, tenant: str, owner: str, action: str, statement: str, which: Any) -> None:
        """Delete the items that a statement finds of an owner, with the facts that rest on them alone, once."""
        async with self._database.transaction(tenant) as connection:
            for one in (owner, owner_of_facts(owner)):
                await lock_owner(connection, tenant, one)
            rows = await connection.fetch(statement, tenant, owner, which)
            ids = [str(row["id"]) for row in rows]
            behind = await self._drop_facts(connection, tenant, owner, ids)
            await self._removing.remove(connection, tenant, owner, rows)
            if ids:
                entry = {"items": len(ids), "facts": len(behind)}
                who = Principal(tenant=tenant, user=_ACTOR, role=Role.MEMBER, agents=(Agent.MAESTRO,))
                await write_news(connection, SERVICE, tenant, AUDITED[SERVICE], audit_entry(who, action, entry))
        self._wake()
        await self._vectors.settle(tenant, [*ids, *behind])

    async def _drop_facts(self, connection: Connection, tenant: str, owner: str, ids: list[str]) -> list[str]:
        """Delete the facts that rest on these items alone; the items by which they were found."""
        sources = [f"memory:{id}" for id in ids]
        rows = await connection.fetch(_RESTING, tenant, owner, sources)
        await connection.execute(_DROP_FACTS, tenant, owner, [row["id"] for row in rows])
        await connection.execute(_DROP_SOURCES, tenant, owner, sources)
        behind = [str(row["item_id"]) for row in rows if row["item_id"] is not None]
        await remove_items(connection, self._vectors, tenant, behind)
        return behind


def _owners(who: Principal) -> tuple[str, list[str], str]:
    """The tenant, the owners of what is a user's own, and the beginning of those of their documents' passages."""
    names = [who.user, owner_of_facts(who.user), owner_of_scope(who, Scope.PERSONAL) or who.user]
    return who.tenant, names, owner_of_documents(who.user, "")


def _count(status: str) -> int:
    return int(status.rpartition(" ")[2])


async def serve_ending(bus: Bus, database: Database, vectors: VectorIndex, wake: Callable[[], None]) -> None:
    """Let memories end, and what is held of a user be counted and erased."""
    ending = Ending(database, vectors, wake)
    await serve(bus, USER_DATA[SERVICE], ending.held)
    await serve(bus, USER_ERASE[SERVICE], ending.erase)
    await serve(bus, AGED_DROP[SERVICE], ending.drop_aged)
    work_in_background(bus, "expired memories", ending.expire, asyncio.Event())
