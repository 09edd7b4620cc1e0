"""Memories by scope: what a role may recall, and what a maestro keeps."""

from __future__ import annotations

import asyncio
import logging

import numpy as np

from phronesis_bus import Call
from phronesis_contracts import BadRequest, Forbidden, Principal, ServiceError, Unavailable
from phronesis_contracts.scoped_memory import (
    ForgetMemory,
    ForgottenMemory,
    KeepMemory,
    KeptMemory,
    RecalledMemories,
    RecallMemory,
    Scope,
    Snippet,
)

from .cache import QueryVectors
from .domain.limits import is_storable
from .domain.rooms import recalled, room_of
from .domain.values import Vector
from .drafting import Drafting, of_memory
from .ports import Rooms

log = logging.getLogger(__name__)


class Scoping:
    """The handlers of memories by scope.

    Args:
        rooms: the store of memories.
        queries: the vectors of questions.
        drafting: completes what is to be kept.
        seconds: time that the vector of a question, and each search, may take.
    """

    def __init__(self, rooms: Rooms, queries: QueryVectors, drafting: Drafting, *, seconds: float) -> None:
        self._rooms = rooms
        self._queries = queries
        self._drafting = drafting
        self._seconds = seconds

    async def recall_memory(self, call: Call, request: RecallMemory) -> RecalledMemories:
        """Memories of one scope by meaning; of the tenant where the caller's department has none (N-097).

        A question without a vector, and a store that does not answer, leave an empty answer that says so (N-100, N-101).
        """
        scope = _allowed(call.who, request.scope)
        try:
            vector = await self._vector(call.who.tenant, request.query_summary)
        except (ServiceError, TimeoutError) as error:
            return _without("vector", scope, error)
        try:
            scope, snippets = await self._found(call.who, scope, vector, request.limit)
        except (ServiceError, TimeoutError) as error:
            return _without("memory", scope, error)
        if snippets:
            log.info("%d memories of the scope %s", len(snippets), scope)
        else:
            log.warning("no memories of the scope %s", scope)
        return RecalledMemories(snippets=snippets, scope=scope)

    async def keep_memory(self, call: Call, request: KeepMemory) -> KeptMemory:
        """Keep one memory in a scope of the caller's, once for the call's key."""
        room = _written(call.who, request.scope, request.key, request.content)
        [draft] = await self._drafting.complete([of_memory(request)], {})
        if draft.vector is None or not _points(draft.vector):
            raise Unavailable("the model makes no vector of this content")
        return await self._rooms.keep(call, request, room, draft)

    async def forget_memory(self, call: Call, request: ForgetMemory) -> ForgottenMemory:
        """Remove one memory of a scope of the caller's for good, once for the call's key."""
        return await self._rooms.forget(call, request, _written(call.who, request.scope, request.key))

    async def _vector(self, tenant: str, question: str) -> Vector:
        async with asyncio.timeout(self._seconds):
            vector = (await self._queries.of(tenant, [question]))[question]
        if not _points(vector):
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
        room = room_of(who, scope)
        if room is None:
            return ()
        async with asyncio.timeout(self._seconds):
            return await self._rooms.near(who.tenant, room, vector, limit)


def _allowed(who: Principal, name: str) -> Scope:
    try:
        return recalled(who.role, name)
    except Forbidden:
        log.warning("blocked: role %s asked for memories of the scope %s", who.role, name)
        raise


def _without(part: str, scope: Scope, error: Exception) -> RecalledMemories:
    """The empty answer of a recall that lacks a part."""
    log.error("the %s part of recalling the scope %s failed: %s", part, scope, getattr(error, "code", "timed_out"))
    return RecalledMemories(snippets=(), scope=scope, degraded=(part,))


def _points(vector: Vector) -> bool:
    """Whether a vector has a direction, without which there is no cosine (NC-038)."""
    length = float(np.linalg.norm(vector))
    return bool(np.isfinite(length)) and length > 0


def _written(who: Principal, scope: Scope, key: str, content: str = "") -> str:
    for name, said in (("key", key), ("content", content)):
        if not is_storable(said):
            raise BadRequest("no NUL characters", field=name)
    room = room_of(who, scope)
    if room is None:
        raise BadRequest(f"the caller has no {'ministry' if scope is Scope.MINISTRY else 'department'}", field="scope")
    return room
