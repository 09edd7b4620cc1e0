"""Memories by scope: what a role may recall, what a maestro keeps, and the items that hold them, which no graph knows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import numpy as np

from phronesis_bus import Call, audit_entry
from phronesis_contracts import BadRequest, Forbidden, Principal, ServiceError, Unavailable
from phronesis_contracts.memory import (
    ForgetMemory,
    ForgottenMemory,
    KeepMemory,
    KeptMemory,
    RecalledMemories,
    RecallMemory,
    Scope,
    Snippet,
)
from phronesis_contracts.service import AUDITED
from phronesis_postgres import Connection, Database, write_news, write_once

from ..embedding.queries import QueryVectors
from ..ports import ScopedMemories, VectorIndex
from ..values import MEMORY_KIND, Audience, Draft, Vector, is_storable, owner_of_scope, scope_for_role, shorten
from .drafts import Drafter, draft_from_memory
from .rows import lock_owner, remove_items, write_items

log = logging.getLogger(__name__)


class ScopeHandlers:
    """The handlers of memories by scope.

    Args:
        rooms: the store of memories.
        queries: the vectors of questions.
        drafting: completes what is to be kept.
        seconds: time that the vector of a question, and each search, may take.
    """

    def __init__(self, rooms: ScopedMemories, queries: QueryVectors, drafting: Drafter, *, seconds: float) -> None:
        self._rooms = rooms
        self._queries = queries
        self._drafting = drafting
        self._seconds = seconds

    async def recall_memory(self, call: Call, request: RecallMemory) -> RecalledMemories:
        """Memories of one scope by meaning; of the tenant where the caller's department has none (N-097).

        A question without a vector, and a store that does not answer, leave an empty answer that says so (N-100, N-101).
        """
        scope = _check_scope(call.who, request.scope)
        try:
            vector = await self._vector(call.who.tenant, request.query_summary)
        except (ServiceError, TimeoutError) as error:
            return _answer_without("vector", scope, error)
        try:
            scope, snippets = await self._found(call.who, scope, vector, request.limit)
        except (ServiceError, TimeoutError) as error:
            return _answer_without("memory", scope, error)
        if snippets:
            log.info("%d memories of the scope %s", len(snippets), scope)
        else:
            log.warning("no memories of the scope %s", scope)
        return RecalledMemories(snippets=snippets, scope=scope)

    async def keep_memory(self, call: Call, request: KeepMemory) -> KeptMemory:
        """Keep one memory in a scope of the caller's, once for the call's key."""
        room = _owner_to_write(call.who, request.scope, request.key, request.content)
        [draft] = await self._drafting.complete([draft_from_memory(request)], {})
        if draft.vector is None or not _has_direction(draft.vector):
            raise Unavailable("the model makes no vector of this content")
        return await self._rooms.keep(call, request, room, draft)

    async def forget_memory(self, call: Call, request: ForgetMemory) -> ForgottenMemory:
        """Remove one memory of a scope of the caller's for good, once for the call's key."""
        return await self._rooms.forget(call, request, _owner_to_write(call.who, request.scope, request.key))

    async def _vector(self, tenant: str, question: str) -> Vector:
        async with asyncio.timeout(self._seconds):
            vector = (await self._queries.of(tenant, [question]))[question]
        if not _has_direction(vector):
            raise Unavailable("the model makes no vector of this question")
        return vector

    async def _found(self, who: Principal, scope: Scope, vector: Vector, limit: int) -> tuple[Scope, tuple[Snippet, ...]]:
        """What is near in the scope, or in the one that it falls back to, and which one that is."""
        snippets = await self._near(who, scope, vector, limit)
        if snippets or scope is not Scope.DEPARTMENTAL:
            return scope, snippets
        log.info("no departmental memories: falling back to the scope %s", Scope.GLOBAL)
        return Scope.GLOBAL, await self._near(who, Scope.GLOBAL, vector, limit)

    async def _near(self, who: Principal, scope: Scope, vector: Vector, limit: int) -> tuple[Snippet, ...]:
        room = owner_of_scope(who, scope)
        if room is None:
            return ()
        async with asyncio.timeout(self._seconds):
            return await self._rooms.near(who.tenant, room, vector, limit)


def _check_scope(who: Principal, name: str) -> Scope:
    try:
        return scope_for_role(who.role, name)
    except Forbidden:
        log.warning("blocked: role %s asked for memories of the scope %s", who.role, name)
        raise


def _answer_without(part: str, scope: Scope, error: Exception) -> RecalledMemories:
    """The empty answer of a recall that lacks a part."""
    log.error("the %s part of recalling the scope %s failed: %s", part, scope, getattr(error, "code", "timed_out"))
    return RecalledMemories(snippets=(), scope=scope, degraded=(part,))


def _has_direction(vector: Vector) -> bool:
    """Whether a vector has a direction, without which there is no cosine (NC-038)."""
    length = float(np.linalg.norm(vector))
    return bool(np.isfinite(length)) and length > 0


def _owner_to_write(who: Principal, scope: Scope, key: str, content: str = "") -> str:
    for name, said in (("key", key), ("content", content)):
        if not is_storable(said):
            raise BadRequest("no NUL characters", field=name)
    room = owner_of_scope(who, scope)
    if room is None:
        raise BadRequest(f"the caller has no {'ministry' if scope is Scope.MINISTRY else 'department'}", field="scope")
    return room


SERVICE = "memory"

_ENTER = "SELECT set_config('phronesis.room', $1, true)"
_READ = """
    SELECT id, external_id, body, metadata FROM items WHERE tenant = $1 AND owner = $2 AND id = ANY($3::uuid[])"""
_NAMED = "SELECT id FROM items WHERE tenant = $1 AND owner = $2 AND external_id = $3"


class PostgresScopedMemories:
    """`Rooms` on the table `items`. A transaction enters the one room that it reads or writes (migration 0008).

    Args:
        database: the schema.
        vectors: the index of the items' vectors.
        wake: called after a transaction that wrote news.
    """

    def __init__(self, database: Database, vectors: VectorIndex, wake: Callable[[], None]) -> None:
        self._database = database
        self._vectors = vectors
        self._wake = wake

    async def near(self, tenant: str, room: str, vector: Vector, limit: int) -> tuple[Snippet, ...]:
        """See `Rooms`."""
        [hits] = await self._vectors.search(Audience(tenant, (room,), (MEMORY_KIND,)), [vector], limit)
        if not hits:
            return ()
        async with self._database.connection(tenant) as connection:
            await connection.execute(_ENTER, room)
            rows = await connection.fetch(_READ, tenant, room, [hit.id for hit in hits])
        found = {str(row["id"]): row for row in rows}
        return tuple(
            Snippet(
                key=found[hit.id]["external_id"],
                content=shorten(found[hit.id]["body"], len(hits)),
                confidence=found[hit.id]["metadata"]["confidence"],
                score=hit.cosine,
            )
            for hit in hits
            if hit.id in found
        )

    async def keep(self, call: Call, request: KeepMemory, room: str, draft: Draft) -> KeptMemory:
        """See `Rooms`."""
        who = call.who

        async def store(connection: Connection) -> KeptMemory:
            await self._enter(connection, who.tenant, room)
            version = int(await connection.fetchval("SELECT nextval('versions')"))
            [done] = await write_items(connection, self._vectors, who.tenant, room, version, [draft])
            kept = KeptMemory(id=done.id, status=done.status)
            if kept.status != "unchanged":
                entry = audit_entry(who, "keep_memory", {"scope": request.scope, "id": kept.id})
                await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], entry)
            return kept

        kept = await write_once(self._database, call, request, KeptMemory, store)
        self._wake()
        await self._vectors.settle(who.tenant, [kept.id])
        return kept

    async def forget(self, call: Call, request: ForgetMemory, room: str) -> ForgottenMemory:
        """See `Rooms`."""
        who = call.who

        async def work(connection: Connection) -> ForgottenMemory:
            await self._enter(connection, who.tenant, room)
            id = await connection.fetchval(_NAMED, who.tenant, room, request.key)
            if id is None:
                return ForgottenMemory()
            await remove_items(connection, self._vectors, who.tenant, [str(id)])
            entry = audit_entry(who, "forget_memory", {"scope": request.scope, "id": str(id)})
            await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], entry)
            return ForgottenMemory(id=str(id))

        gone = await write_once(self._database, call, request, ForgottenMemory, work)
        self._wake()
        await self._vectors.settle(who.tenant, [gone.id] if gone.id else [])
        return gone

    async def _enter(self, connection: Connection, tenant: str, room: str) -> None:
        """Go in, and let no other transaction write there until this one ends."""
        await connection.execute(_ENTER, room)
        await lock_owner(connection, tenant, room)
