"""What the orchestrator answers about conversations: read, listed, found and deleted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from phronesis_bus import Bus, Call, News, follow, serve
from phronesis_contracts.deletions import DeleteConversation, Deletion, DeletionRef, Purged
from phronesis_contracts.media import MEDIA_PURGED
from phronesis_contracts.memory import MEMORY_PURGED
from phronesis_contracts.orchestrator import (
    CONVERSATION_DELETE,
    CONVERSATION_FIND,
    CONVERSATION_GET,
    CONVERSATION_LIST,
    DELETION_GET,
    Conversation,
    ConversationPage,
    ConversationRef,
    FindConversation,
    FoundConversation,
    ListConversations,
    TurnProgress,
)
from phronesis_contracts.twin import GRAPH_PURGED

from ..turns.ports import ShowProgress
from .store import PostgresConversations


class ConversationHandlers:
    """The handlers. `cancelled`: called with the id of a turn whose conversation was deleted, to stop it where it runs."""

    def __init__(self, conversations: PostgresConversations, progress: ShowProgress, cancelled: Callable[[str], None]) -> None:
        self._conversations, self._progress, self._cancelled = conversations, progress, cancelled

    async def get(self, call: Call, request: ConversationRef) -> Conversation:
        return await self._conversations.get(call.who, request)

    async def list(self, call: Call, request: ListConversations) -> ConversationPage:
        return await self._conversations.page(call.who, request)

    async def find(self, call: Call, request: FindConversation) -> FoundConversation:
        """The caller's conversation that ends as a client says."""
        return FoundConversation(conversation_id=await self._conversations.ending(call.who, request))

    async def delete(self, call: Call, request: DeleteConversation) -> Deletion:
        """Delete a conversation; what it has running commits nothing from here on."""
        deletion, stopped = await self._conversations.delete(call.who, request.conversation_id)
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
    await serve(bus, CONVERSATION_DELETE, handlers.delete)
    await serve(bus, DELETION_GET, handlers.deletion)
    await follow(bus, MEMORY_PURGED, partial(handlers.on_purged, service="memory"), workers=1)
    await follow(bus, GRAPH_PURGED, partial(handlers.on_purged, service="graph"), workers=1)
    await follow(bus, MEDIA_PURGED, partial(handlers.on_purged, service="media"), workers=1)
