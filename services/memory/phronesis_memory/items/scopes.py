"""Memories by scope: what a caller may recall, what a maestro keeps, and the items that hold them, which no graph knows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import numpy as np

from phronesis_bus import Call, audit_entry
from phronesis_contracts import (
    BadRequest,
    Forbidden,
    Label,
    OriginKind,
    Principal,
    ServiceError,
    Unavailable,
    formed,
    labels_from_row,
    memory,
    merge_labels,
    untrusted,
)
from phronesis_contracts.service import AUDITED
from phronesis_postgres import Connection, Database, write_news, write_once

from ..embedding.queries import QueryVectors
from ..ports import VectorIndex
from ..values import (
    MEMORY_KIND,
    Audience,
    Draft,
    Vector,
    find_scope,
    is_storable,
    labels_of_call,
    owner_of_scope,
    shorten,
)
from .drafts import Drafter, draft_from_memory
from .rows import lock_owner, remove_items, write_items

log = logging.getLogger(__name__)


class ScopeHandlers:
    """The handlers of memories by scope. `seconds`: time that the vector of a question, and each search, may take."""

    def __init__(self, memories: PostgresScopedMemories, queries: QueryVectors, drafting: Drafter, *, seconds: float) -> None:
        self._memories, self._queries = memories, queries
        self._drafting, self._seconds = drafting, seconds

    async def recall_memory(self, call: Call, request: memory.RecallMemory) -> memory.RecalledMemories:
        """Memories of one scope by meaning; of the tenant where the caller's department has none.

        A question without a vector, and a store that does not answer, leave an empty answer that says so.
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
        return memory.RecalledMemories(snippets=snippets, scope=scope)

    async def keep_memory(self, call: Call, request: memory.KeepMemory) -> memory.KeptMemory:
        """Keep one memory in a scope of the caller's, once for the call's key."""
        owner = _owner_to_write(call.who, request.scope, request.key, request.content)
        labels = labels_of_call(call, request.labels)
        if request.scope is not memory.Scope.PERSONAL:
            labels = merge_labels(untrusted(labels), (_writer(call.who),))
        [draft] = await self._drafting.complete([draft_from_memory(request, labels)], {})
        if draft.vector is None or not _has_direction(draft.vector):
            raise Unavailable("the model makes no vector of this content")
        return await self._memories.keep(call, request, owner, draft)

    async def forget_memory(self, call: Call, request: memory.ForgetMemory) -> memory.ForgottenMemory:
        """Remove one memory of a scope of the caller's for good, once for the call's key."""
        return await self._memories.forget(call, request, _owner_to_write(call.who, request.scope, request.key))

    async def _vector(self, tenant: str, question: str) -> Vector:
        async with asyncio.timeout(self._seconds):
            vector = (await self._queries.of(tenant, [question]))[question]
        if not _has_direction(vector):
            raise Unavailable("the model makes no vector of this question")
        return vector

    async def _found(
        self, who: Principal, scope: memory.Scope, vector: Vector, limit: int
    ) -> tuple[memory.Scope, tuple[memory.Snippet, ...]]:
        """What is near in the scope, or in the one that it falls back to, and which one that is."""
        snippets = await self._near(who, scope, vector, limit)
        if snippets or scope is not memory.Scope.DEPARTMENTAL:
            return scope, snippets
        log.info("no departmental memories: falling back to the scope %s", memory.Scope.GLOBAL)
        return memory.Scope.GLOBAL, await self._near(who, memory.Scope.GLOBAL, vector, limit)

    async def _near(self, who: Principal, scope: memory.Scope, vector: Vector, limit: int) -> tuple[memory.Snippet, ...]:
        owner = owner_of_scope(who, scope)
        if owner is None:
            return ()
        async with asyncio.timeout(self._seconds):
            found = await self._memories.near(who.tenant, owner, vector, limit)
        # What somebody kept themselves in a scope of several is theirs when they read it.
        return tuple(one.model_copy(update={"labels": formed(_without(one.labels, _writer(who)))}) for one in found)


def _writer(who: Principal) -> Label:
    return Label(kind=OriginKind.PERSON, id=who.user[:200])


def _without(labels: tuple[Label, ...], one: Label) -> tuple[Label, ...]:
    return tuple(label for label in labels if label != one)


def _check_scope(who: Principal, name: str) -> memory.Scope:
    try:
        return find_scope(who, name)
    except Forbidden:
        log.warning("blocked: %s asked for memories of the scope %s", who.rights, name)
        raise


def _answer_without(part: str, scope: memory.Scope, error: Exception) -> memory.RecalledMemories:
    log.error("the %s part of recalling the scope %s failed: %s", part, scope, getattr(error, "code", "timed_out"))
    return memory.RecalledMemories(snippets=(), scope=scope, degraded=(part,))


def _has_direction(vector: Vector) -> bool:
    length = float(np.linalg.norm(vector))
    return bool(np.isfinite(length)) and length > 0


def _owner_to_write(who: Principal, scope: memory.Scope, key: str, content: str = "") -> str:
    for name, said in (("key", key), ("content", content)):
        if not is_storable(said):
            raise BadRequest("no NUL characters", field=name)
    owner = owner_of_scope(who, scope)
    if owner is None:
        raise BadRequest(f"the caller has no {'ministry' if scope is memory.Scope.MINISTRY else 'department'}", field="scope")
    return owner


SERVICE = "memory"

_ENTER = "SELECT set_config('phronesis.room', $1, true)"
_READ = """
    SELECT id, external_id, body, metadata, labels FROM items WHERE tenant = $1 AND owner = $2 AND id = ANY($3::uuid[])"""
_NAMED = "SELECT id FROM items WHERE tenant = $1 AND owner = $2 AND external_id = $3"


class PostgresScopedMemories:
    """Memories of scopes, in the table `items`. A transaction enters the one scope that it reads or writes (migration 0008)."""

    def __init__(self, database: Database, vectors: VectorIndex, wake: Callable[[], None]) -> None:
        self._database, self._vectors, self._wake = database, vectors, wake

    async def near(self, tenant: str, owner: str, vector: Vector, limit: int) -> tuple[memory.Snippet, ...]:
        """The memories of a scope that are nearest to a vector, by cosine. Raises `Unavailable`."""
        [hits] = await self._vectors.search(Audience(tenant, (owner,), (MEMORY_KIND,)), [vector], limit)
        if not hits:
            return ()
        async with self._database.connection(tenant) as connection:
            await connection.execute(_ENTER, owner)
            rows = await connection.fetch(_READ, tenant, owner, [hit.id for hit in hits])
        found = {str(row["id"]): row for row in rows}
        return tuple(
            memory.Snippet(
                key=found[hit.id]["external_id"],
                content=shorten(found[hit.id]["body"], len(hits)),
                confidence=found[hit.id]["metadata"]["confidence"],
                score=hit.cosine,
                labels=labels_from_row(found[hit.id]["labels"]),
            )
            for hit in hits
            if hit.id in found
        )

    async def keep(self, call: Call, request: memory.KeepMemory, owner: str, draft: Draft) -> memory.KeptMemory:
        """Store one memory in a scope, in place of the one with its key, once for the call's key. Raises `KeyReused`."""
        who = call.who

        async def store(connection: Connection) -> memory.KeptMemory:
            await self._enter(connection, who.tenant, owner)
            version = int(await connection.fetchval("SELECT nextval('versions')"))
            [done] = await write_items(connection, self._vectors, who.tenant, owner, version, [draft])
            kept = memory.KeptMemory(id=done.id, status=done.status)
            if kept.status != "unchanged":
                entry = audit_entry(who, "keep_memory", {"scope": request.scope, "id": kept.id})
                await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], entry)
            return kept

        kept = await write_once(self._database, call, request, memory.KeptMemory, store)
        self._wake()
        await self._vectors.settle(who.tenant, [kept.id])
        return kept

    async def forget(self, call: Call, request: memory.ForgetMemory, owner: str) -> memory.ForgottenMemory:
        """Remove one memory of a scope with its words and its vector, once for the call's key. Raises `KeyReused`."""
        who = call.who

        async def work(connection: Connection) -> memory.ForgottenMemory:
            await self._enter(connection, who.tenant, owner)
            id = await connection.fetchval(_NAMED, who.tenant, owner, request.key)
            if id is None:
                return memory.ForgottenMemory()
            await remove_items(connection, self._vectors, who.tenant, [str(id)])
            entry = audit_entry(who, "forget_memory", {"scope": request.scope, "id": str(id)})
            await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], entry)
            return memory.ForgottenMemory(id=str(id))

        gone = await write_once(self._database, call, request, memory.ForgottenMemory, work)
        self._wake()
        await self._vectors.settle(who.tenant, [gone.id] if gone.id else [])
        return gone

    async def _enter(self, connection: Connection, tenant: str, owner: str) -> None:
        """Go in, and let no other transaction write there until this one ends."""
        await connection.execute(_ENTER, owner)
        await lock_owner(connection, tenant, owner)
