"""What the orchestrator answers about conversations: read, listed, found, deleted, and ended with a user or a retention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from uuid import UUID

from phronesis_bus import Bus, Call, News, erase_parked, erase_shown, follow, serve
from phronesis_contracts import BadRequest, Forbidden, Nothing, Principal
from phronesis_contracts.deletions import (
    AGED_DROP,
    USER_DATA,
    USER_ERASE,
    Aged,
    DeleteConversation,
    Deletion,
    DeletionRef,
    DropAged,
    PartErased,
    Purged,
    UserData,
)
from phronesis_contracts.media import MEDIA_PURGED
from phronesis_contracts.memory import MEMORY_PURGED
from phronesis_contracts.orchestrator import (
    CONVERSATION_DELETE,
    CONVERSATION_FIND,
    CONVERSATION_GET,
    CONVERSATION_LIST,
    DELETION_GET,
    PROGRESS,
    TURN_ENDED,
    USER_LIST,
    Conversation,
    ConversationPage,
    ConversationRef,
    FindConversation,
    FoundConversation,
    ListConversations,
    ListUsers,
    SeenUsers,
    TurnProgress,
)
from phronesis_contracts.twin import GRAPH_PURGED
from phronesis_postgres import WRITES_OF_USER, Connection, Database

from ..learning.statements import Streams
from ..turns.ports import ShowProgress
from .store import WITHOUT_ARGUMENTS, PostgresConversations


class ConversationHandlers:
    """The handlers.

    Args:
        cancelled: called with the id of a turn whose conversation was deleted, to stop it where it runs.
        streams: what the broker keeps of turns.
    """

    def __init__(
        self,
        conversations: PostgresConversations,
        progress: ShowProgress,
        cancelled: Callable[[str], None],
        streams: Streams,
    ) -> None:
        self._conversations, self._progress, self._cancelled = conversations, progress, cancelled
        self._streams = streams

    async def get(self, call: Call, request: ConversationRef) -> Conversation:
        return await self._conversations.get(call.who, request)

    async def list(self, call: Call, request: ListConversations) -> ConversationPage:
        return await self._conversations.page(call.who, request)

    async def users(self, call: Call, request: ListUsers) -> SeenUsers:
        """Who has talked to agents of the tenant. Raises `Forbidden`: the caller does not administer it."""
        if not call.who.administers:
            raise Forbidden("the users of a tenant are listed for administrators")
        return await self._conversations.users(call.who.tenant, request)

    async def find(self, call: Call, request: FindConversation) -> FoundConversation:
        """The caller's conversation that ends as a client says."""
        return FoundConversation(conversation_id=await self._conversations.ending(call.who, request))

    async def delete(self, call: Call, request: DeleteConversation) -> Deletion:
        """Delete a conversation; what it has running commits nothing from here on.

        Raises:
            NotFound: there is no such conversation of the caller.
            Unavailable: what was shown of its turns is not erased yet; a repeat erases it.
        """
        deletion, stopped = await self._conversations.delete(call.who, request.conversation_id)
        shown = await self._conversations.shown(call.who, request.conversation_id)
        await self._streams.erase_shown(call.who.tenant, call.who.user, shown)
        for turn in stopped:
            self._cancelled(turn)
            line = TurnProgress(turn_id=turn, kind="ended", conversation_id=deletion.conversation_id)
            await self._progress(call.who, line)
        return deletion

    async def deletion(self, call: Call, request: DeletionRef) -> Deletion:
        return await self._conversations.deletion(call.who, request.deletion_id)

    async def on_purged(self, news: News, event: Purged, service: str) -> None:
        """A service has removed its part of a deleted conversation."""
        await self._conversations.purged(news.tenant, service, event)


async def serve_conversations(bus: Bus, handlers: ConversationHandlers) -> None:
    await serve(bus, CONVERSATION_GET, handlers.get)
    await serve(bus, CONVERSATION_LIST, handlers.list)
    await serve(bus, CONVERSATION_FIND, handlers.find)
    await serve(bus, USER_LIST, handlers.users)
    await serve(bus, CONVERSATION_DELETE, handlers.delete)
    await serve(bus, DELETION_GET, handlers.deletion)
    await follow(bus, MEMORY_PURGED, partial(handlers.on_purged, service="memory"), workers=1)
    await follow(bus, GRAPH_PURGED, partial(handlers.on_purged, service="graph"), workers=1)
    await follow(bus, MEDIA_PURGED, partial(handlers.on_purged, service="media"), workers=1)


SERVICE = "orchestrator"
BATCH = 50
"""Conversations that go in one transaction, with their turns."""
TRACES = 2_000
"""Traces that go in one transaction."""

_OF_USER = {
    "conversations": "conversations WHERE tenant = $1 AND user_id = $2",
    "turns": "turns WHERE tenant = $1 AND user_id = $2",
    "messages": "messages WHERE conversation_id IN (SELECT id FROM conversations WHERE tenant = $1 AND user_id = $2)",
    "steps": "journal WHERE turn_id IN (SELECT id FROM turns WHERE tenant = $1 AND user_id = $2)",
    "traces": "traces WHERE tenant = $1 AND user_id = $2",
    "tasks": "task_states WHERE turn_id IN (SELECT id FROM turns WHERE tenant = $1 AND user_id = $2)",
    "task_templates": "task_templates WHERE tenant = $1 AND user_id = $2",
    "waits": "task_waits WHERE tenant = $1 AND user_id = $2",
    "schedules": "schedules WHERE tenant = $1 AND user_id = $2",
    "approvals": "approvals WHERE tenant = $1 AND user_id = $2",
    "grants": "approval_grants WHERE tenant = $1 AND user_id = $2",
    "deletions": "deletions WHERE tenant = $1 AND user_id = $2",
    "forgettings": "source_forgettings WHERE tenant = $1 AND user_id = $2",
    "calendars": "calendars WHERE tenant = $1 AND user_id = $2",
    "limits": "limits WHERE tenant = $1 AND user_id = $2",
    "usage": "ledger WHERE tenant = $1 AND user_id = $2",
    "writes": WRITES_OF_USER,
    "audit_arguments": "audit WHERE tenant = $1 AND who = $2 AND arguments <> '{}' AND NOT starts_with(action, 'user.')",
}
"""Rows that name a user, by what they are."""
_AUDITED = "SELECT count(*) FROM audit WHERE tenant = $1 AND (who = $2 OR acted_by = $2)"
# What was used stays, so that the tenant's sums do, and says no more by whom.
_REST = {
    "task_templates": f"DELETE FROM {_OF_USER['task_templates']}",  # noqa: S608
    "schedules": f"DELETE FROM {_OF_USER['schedules']}",  # noqa: S608
    "forgettings": f"DELETE FROM {_OF_USER['forgettings']}",  # noqa: S608
    "calendars": f"DELETE FROM {_OF_USER['calendars']}",  # noqa: S608
    "limits": f"DELETE FROM {_OF_USER['limits']}",  # noqa: S608
    "grants": f"DELETE FROM {_OF_USER['grants']}",  # noqa: S608
    "writes": f"DELETE FROM {_OF_USER['writes']}",  # noqa: S608
    "usage": "UPDATE ledger SET user_id = 'erased' WHERE tenant = $1 AND user_id = $2",
    "audit_arguments": (
        "UPDATE audit SET arguments = '{}' WHERE tenant = $1 AND who = $2 AND arguments <> '{}' "
        "AND NOT starts_with(action, 'user.')"
    ),
}
_THEIRS = "SELECT id FROM conversations WHERE tenant = $1 AND user_id = $2 ORDER BY id LIMIT $3"
# A conversation that something still goes on in has not had its last activity.
_AGED = """
    SELECT id FROM conversations AS c WHERE tenant = $1 AND updated_at < $2 AND NOT EXISTS (
        SELECT FROM turns WHERE conversation_id = c.id AND status IN ('queued', 'running', 'waiting')
    ) ORDER BY updated_at LIMIT $3"""
_AGED_TRACES = """
    DELETE FROM traces WHERE turn_id IN (SELECT turn_id FROM traces WHERE tenant = $1 AND at < $2 ORDER BY at LIMIT $3)"""
# In the order in which the end of a turn takes the same locks: turns first, then their conversation.
_TURNS = "SELECT id, user_id, status FROM turns WHERE tenant = $1 AND conversation_id = ANY($2::uuid[]) ORDER BY id FOR UPDATE"
_OF_CONVERSATIONS = "tenant = $1 AND conversation_id = ANY($2::uuid[])"
_REMOVE = {
    "audit_arguments": f"{WITHOUT_ARGUMENTS} IN (SELECT id::text FROM turns WHERE {_OF_CONVERSATIONS})",  # noqa: S608
    "grants": "DELETE FROM approval_grants WHERE tenant = $1 AND conversation_id = ANY($2::uuid[])",
    "turns": "DELETE FROM turns WHERE tenant = $1 AND conversation_id = ANY($2::uuid[])",
    "conversations": "DELETE FROM conversations WHERE tenant = $1 AND id = ANY($2::uuid[])",
}
# Inside a JSON text quotes are escaped, so these bytes are found nowhere but in the field itself.
_UNSEND = "DELETE FROM outbox WHERE tenant = $1 AND subject = $2 AND position($3::bytea IN body) > 0"
_OPEN = ("queued", "running", "waiting")


class Erasing:
    """Deletes conversations with all that hangs on them. Each call is one bounded step, and may be repeated.

    Args:
        cancelled: called with the id of a turn that is gone, to stop it where it runs.
        dropped: called with a tenant of which conversations are gone, so that nothing keeps what it read of them.
    """

    def __init__(self, bus: Bus, database: Database, cancelled: Callable[[str], None], dropped: Callable[[str], None]) -> None:
        self._bus, self._database = bus, database
        self._cancelled, self._dropped = cancelled, dropped

    async def held(self, call: Call, request: Nothing) -> UserData:
        """How much is held of the caller."""
        who, counts = (call.who.tenant, call.who.user), dict[str, int]()
        async with self._database.connection(call.who.tenant) as connection:
            for name, rows in _OF_USER.items():
                counts[name] = await connection.fetchval(f"SELECT count(*) FROM {rows}", *who)  # noqa: S608
            audited = await connection.fetchval(_AUDITED, *who)
        return UserData(held={name: count for name, count in counts.items() if count}, kept={"audit": audited})

    async def erase(self, call: Call, request: Nothing) -> PartErased:
        """Erase some of the caller's conversations, or, where none is left, all else that is held of them."""
        who, removed = call.who, dict[str, int]()
        async with self._database.transaction(who.tenant) as connection:
            rows = await connection.fetch(_THEIRS, who.tenant, who.user, BATCH)
            gone = [row["id"] for row in rows]
            turns = await self._remove(connection, who.tenant, gone, removed)
            if not gone:
                for name, statement in _REST.items():
                    removed[name] = _count(await connection.execute(statement, who.tenant, who.user))
                field = f'"user":"{who.user}"'.encode()
                removed["news"] = _count(await connection.execute(_UNSEND, who.tenant, TURN_ENDED.on(who.tenant), field))
        self._dropped(who.tenant)
        await self._erase_streams(who, turns, every=not gone)
        return PartErased(removed={name: count for name, count in removed.items() if count}, done=not gone)

    async def drop_aged(self, call: Call, request: DropAged) -> PartErased:
        """Delete conversations of a tenant, or traces, whose time is over. Raises `BadRequest`.

        What was learnt of them stays: memory and media have limits of their own.
        """
        tenant, removed = call.who.tenant, dict[str, int]()
        async with self._database.transaction(tenant) as connection:
            if request.what is Aged.TRACES:
                done = _count(await connection.execute(_AGED_TRACES, tenant, request.before, TRACES))
                removed["traces"], most = done, TRACES
            elif request.what is Aged.CONVERSATIONS:
                rows = await connection.fetch(_AGED, tenant, request.before, BATCH)
                done, most = len(rows), BATCH
                await self._remove(connection, tenant, [row["id"] for row in rows], removed)
            else:
                raise BadRequest(f"the orchestrator holds no {request.what}", field="what")
        self._dropped(tenant)
        return PartErased(removed={name: count for name, count in removed.items() if count}, done=done < most)

    async def _remove(
        self, connection: Connection, tenant: str, conversations: Sequence[UUID], removed: dict[str, int]
    ) -> list[str]:
        """Delete conversations, and count what went; the ids of their turns."""
        if not conversations:
            return []
        turns = await connection.fetch(_TURNS, tenant, list(conversations))
        for name, statement in _REMOVE.items():
            removed[name] = _count(await connection.execute(statement, tenant, list(conversations)))
        for turn in turns:
            if turn["status"] in _OPEN:
                self._cancelled(str(turn["id"]))
        return [str(turn["id"]) for turn in turns]

    async def _erase_streams(self, who: Principal, turns: Sequence[str], *, every: bool) -> None:
        """Erase what was shown of the user's turns, and what of them is parked."""
        if every:
            await erase_shown(self._bus, PROGRESS, who.tenant, who.user, [">"])
        if turns:
            await erase_parked(self._bus, who.tenant, turns)


def _count(status: str) -> int:
    return int(status.rpartition(" ")[2])


async def serve_erasing(bus: Bus, database: Database, cancelled: Callable[[str], None], dropped: Callable[[str], None]) -> None:
    """Let what is held of a user be counted and erased, and conversations end with a tenant's retention."""
    erasing = Erasing(bus, database, cancelled, dropped)
    await serve(bus, USER_DATA[SERVICE], erasing.held)
    await serve(bus, USER_ERASE[SERVICE], erasing.erase)
    await serve(bus, AGED_DROP[SERVICE], erasing.drop_aged)
