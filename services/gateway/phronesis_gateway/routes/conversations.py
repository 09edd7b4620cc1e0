"""Conversations: listed, read and deleted; and what became of a deletion."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from phronesis_bus import Bus, ask
from phronesis_contracts.deletions import DeleteConversation, Deletion, DeletionRef
from phronesis_contracts.orchestrator import (
    CONVERSATION_DELETE,
    CONVERSATION_GET,
    CONVERSATION_LIST,
    DELETION_GET,
    Conversation,
    ConversationPage,
    ConversationRef,
    ListConversations,
)
from phronesis_gateway.answers import PROBLEMS, Id, answers, as_json
from phronesis_gateway.door import Caller, Door, keyed

CONVERSATIONS = "/api/v1/conversations"
DELETIONS = "/api/v1/deletions"
_CURSOR = "`next` of the page before, as it came. Good for the caller it was made for; anything else is a 400."


def router(door: Door, bus: Bus) -> APIRouter:
    """The routes.

    Args:
        door: lets callers in.
        bus: the connected bus.
    """
    routes = APIRouter(route_class=keyed(door), responses=PROBLEMS, tags=["conversations"])

    @routes.get(CONVERSATIONS, responses=answers(ConversationPage))
    async def list_conversations(
        who: Caller,
        limit: Annotated[int, Query(ge=1, le=100)] = 20,
        cursor: Annotated[
            str | None, Query(max_length=200, description=_CURSOR, json_schema_extra={"format": "cursor"})
        ] = None,
    ) -> Response:
        """The caller's conversations, newest activity first; `next` is absent on the last page."""
        return as_json(await ask(bus, who, CONVERSATION_LIST, ListConversations(limit=limit, cursor=cursor)))

    @routes.get(CONVERSATIONS + "/{id}", responses=answers(Conversation))
    async def get_conversation(
        id: Id,
        who: Caller,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        before: Annotated[int | None, Query(ge=0, le=2**62)] = None,
    ) -> Response:
        """A conversation with its newest messages, or those before sequence `before`; oldest first."""
        wanted = ConversationRef(conversation_id=id, limit=limit, before=before)
        return as_json(await ask(bus, who, CONVERSATION_GET, wanted))

    @routes.delete(CONVERSATIONS + "/{id}", status_code=202, responses=answers(Deletion, 202))
    async def delete_conversation(id: Id, who: Caller) -> Response:
        """Delete a conversation for good, with what was learnt from it alone. A second time answers with the first deletion.

        It is out of sight when this returns; every service removes its part after it, as the deletion tells.
        """
        deletion = await ask(bus, who, CONVERSATION_DELETE, DeleteConversation(conversation_id=id))
        return as_json(deletion, 202, {"Location": f"{DELETIONS}/{deletion.deletion_id}"})

    @routes.get(DELETIONS + "/{id}", responses=answers(Deletion))
    async def get_deletion(id: Id, who: Caller) -> Response:
        """How far a deletion is, and what each service removed: how many of what."""
        return as_json(await ask(bus, who, DELETION_GET, DeletionRef(deletion_id=id)))

    return routes
