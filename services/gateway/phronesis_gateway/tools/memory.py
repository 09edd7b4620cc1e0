"""The routes of memory: add messages and texts, search them, read, correct and delete them, each by a tool of the catalog."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from pydantic import ConfigDict, Field, JsonValue
from starlette.responses import Response

from phronesis_bus import Bus
from phronesis_contracts.memories import (
    ADD_MEMORIES_TOOL,
    BUILD_CONTEXT_TOOL,
    DELETE_MEMORIES_TOOL,
    GET_HISTORY_TOOL,
    GET_MEMORY_TOOL,
    LIST_MEMORIES_TOOL,
    SEARCH_MEMORIES_TOOL,
    UPDATE_MEMORY_TOOL,
    AddedMemories,
    AddMemories,
    BuildContext,
    DeletedMemories,
    FoundMemories,
    Memory,
    MemoryContext,
    MemoryHistory,
    MemoryId,
    MemoryPage,
    Metadata,
    Moment,
    SearchedKind,
    SearchMemories,
)

from ..auth.authentication import Authenticator, Caller, IdempotencyKey, authenticated_route
from ..auth.keys import READ
from ..http.requests import Given
from ..http.responses import PROBLEMS, route_responses
from .offers import Offers, tool_response

MEMORY = "/api/v1/memory"
Id = Annotated[MemoryId, Path(description="The memory's id, or your own external id for it.")]
_ADDED: JsonValue = {
    "conversation_id": "support-417",
    "memories": [
        {"speaker": "Ada", "text": "The launch is on 4 May.", "occurred_at": "2026-03-04T12:00:00Z"},
        {"speaker": "Bo", "text": "Then the tickets go on sale in April."},
    ],
}


class MemoriesGiven(AddMemories, defer_build=False):  # a body of a route: FastAPI wants it complete
    """Messages or texts to remember."""

    model_config = ConfigDict(json_schema_extra={"examples": [_ADDED, {"memories": [{"text": "I take my coffee black."}]}]})


class SearchGiven(SearchMemories, defer_build=False):
    """What to look for."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "When is the launch?", "limit": 5}]})


class ContextGiven(BuildContext, defer_build=False):
    """What a block is wanted on, and how long it may be."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "When is the launch?", "budget_tokens": 500}]})


_TEXT: JsonValue = {"required": ["text"], "properties": {"text": {"type": "string"}}}
_METADATA: JsonValue = {"required": ["metadata"], "properties": {"metadata": {"type": "object"}}}
_EXPIRY: JsonValue = {"required": ["expires_at"], "properties": {"expires_at": {"type": "string"}}}


class MemoryChange(Given):
    """What is to be corrected; what is not given stays."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [_TEXT, _METADATA, _EXPIRY], "examples": [{"text": "The launch is on 11 May."}]}
    )

    text: str | None = Field(default=None, min_length=1, max_length=20_000, description="The new text.")
    metadata: Metadata | None = Field(default=None, description="All of the new metadata.")
    expires_at: Moment | Literal["never"] | None = Field(
        default=None, description="When it is to be forgotten, a moment still to come, or `never`."
    )


def memory_router(authenticator: Authenticator, bus: Bus, offers: Offers) -> APIRouter:
    # What a tool needs, its risk says.
    routes = APIRouter(route_class=authenticated_route(authenticator, READ, tools=True), responses=PROBLEMS, tags=["memory"])

    asked = partial(tool_response, bus, offers)

    @routes.post(MEMORY, operation_id="add_memories", responses=route_responses(AddedMemories))
    async def add_memories(given: MemoriesGiven, who: Caller, key: IdempotencyKey) -> Response:
        """Add memories.

        Messages of a conversation, or texts: up to 500, all or none. A search finds them once this answers.
        """
        return await asked(who, ADD_MEMORIES_TOOL, given.model_dump(mode="json", exclude_unset=True), key)

    @routes.get(MEMORY, operation_id="list_memories", responses=route_responses(MemoryPage))
    async def list_memories(
        who: Caller,
        limit: Annotated[int, Query(ge=1, le=200, description="Memories of a page.")] = 50,
        cursor: Annotated[
            str | None,
            Query(
                min_length=1, max_length=200, description="`next` of the page before.", json_schema_extra={"format": "cursor"}
            ),
        ] = None,
        kind: Annotated[list[SearchedKind], Query(description="Only these kinds.")] = [],  # noqa: B006
        conversation_id: Annotated[str | None, Query(min_length=1, max_length=200, description="Only messages of it.")] = None,
        since: Annotated[Moment | None, Query(description="Only what was said then or later.")] = None,
        until: Annotated[Moment | None, Query(description="Only what was said before.")] = None,
    ) -> Response:
        """List memories.

        Page by page, the newest first. `next` is absent on the last page.
        """
        given = {"limit": limit, "cursor": cursor, "kinds": kind, "conversation_id": conversation_id}
        times = {name: at.isoformat() for name, at in (("since", since), ("until", until)) if at is not None}
        return await asked(who, LIST_MEMORIES_TOOL, given | times)

    @routes.post(MEMORY + "/search", operation_id="search_memories", responses=route_responses(FoundMemories))
    async def search_memories(given: SearchGiven, who: Caller) -> Response:
        """Search memories.

        What memory holds on a question, best first. What has nothing to do with it is not among the results.
        """
        return await asked(who, SEARCH_MEMORIES_TOOL, given.model_dump(mode="json", exclude_unset=True))

    @routes.post(MEMORY + "/context", operation_id="memory_context", responses=route_responses(MemoryContext))
    async def memory_context(given: ContextGiven, who: Caller) -> Response:
        """Build a block of text for a prompt.

        With what memory holds on a question, within a budget of tokens.
        """
        return await asked(who, BUILD_CONTEXT_TOOL, given.model_dump(mode="json", exclude_unset=True))

    @routes.get(MEMORY + "/{id}", operation_id="get_memory", responses=route_responses(Memory))
    async def get_memory(id: Id, who: Caller) -> Response:
        """Get a memory.

        By its id, or by your own external id.
        """
        return await asked(who, GET_MEMORY_TOOL, {"id": id})

    @routes.patch(MEMORY + "/{id}", operation_id="update_memory", responses=route_responses(Memory))
    async def update_memory(id: Id, given: MemoryChange, who: Caller, key: IdempotencyKey) -> Response:
        """Correct a memory.

        What is not given stays, and what it said before stays in its history.
        """
        return await asked(who, UPDATE_MEMORY_TOOL, {"id": id, **given.model_dump(mode="json", exclude_none=True)}, key)

    @routes.get(MEMORY + "/{id}/history", operation_id="memory_history", responses=route_responses(MemoryHistory))
    async def memory_history(id: Id, who: Caller) -> Response:
        """Get a memory's history.

        The memory as it is, and what it said before it was changed.
        """
        return await asked(who, GET_HISTORY_TOOL, {"id": id})

    @routes.delete(MEMORY + "/{id}", operation_id="delete_memory", responses=route_responses(DeletedMemories))
    async def delete_memory(id: Id, who: Caller, key: IdempotencyKey) -> Response:
        """Delete a memory for good.

        With its history. Where there is none, the answer names no id.
        """
        return await asked(who, DELETE_MEMORIES_TOOL, {"ids": [id]}, key)

    return routes
