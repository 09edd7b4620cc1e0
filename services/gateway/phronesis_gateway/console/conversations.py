"""Whole pages: an empty conversation, one that is read again, and deleting one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Annotated

import htpy as h
from fastapi import APIRouter, Query
from starlette.responses import RedirectResponse, Response

from phronesis_bus import Bus, ask
from phronesis_contracts import NotFound, Principal
from phronesis_contracts.deletions import DeleteConversation
from phronesis_contracts.orchestrator import (
    CONVERSATION_DELETE,
    CONVERSATION_GET,
    CONVERSATION_LIST,
    Conversation,
    ConversationPage,
    ConversationRef,
    ListConversations,
    Turn,
)
from phronesis_gateway.answers import Id
from phronesis_gateway.submission import Turns

from . import page
from .entrance import Person, as_html, entered
from .session import Sessions

PATH = "/console"
_LISTED = 30
"""Conversations at the side."""
_MESSAGES = 20
"""Messages of a conversation that is opened; each turn's row is read for its answer."""


def router(sessions: Sessions, bus: Bus, turns: Turns) -> APIRouter:
    """The routes.

    Args:
        sessions: tells who is signed in.
        bus: the connected bus.
        turns: reads turns.
    """
    routes = APIRouter(route_class=entered(sessions, page.problem))

    @routes.get(PATH)
    async def begin(who: Person, cursor: Annotated[str | None, Query(max_length=200)] = None) -> Response:
        return as_html(page.console(who, await listed(bus, who, cursor), None, ()))

    @routes.get(PATH + "/conversations/{id}")
    async def open_conversation(id: Id, who: Person) -> Response:
        wanted = ConversationRef(conversation_id=id, limit=_MESSAGES)
        found, others = await asyncio.gather(ask(bus, who, CONVERSATION_GET, wanted), listed(bus, who))
        ids = dict.fromkeys(message.turn_id for message in found.messages)
        states = await asyncio.gather(*(_state(turns, who, id) for id in ids))
        return as_html(page.console(who, others, found, _shown(found, dict(zip(ids, states, strict=True)))))

    @routes.post(PATH + "/conversations/{id}/delete")
    async def delete_conversation(id: Id, who: Person) -> Response:
        await ask(bus, who, CONVERSATION_DELETE, DeleteConversation(conversation_id=id))
        return RedirectResponse(PATH, 303)

    return routes


async def listed(bus: Bus, who: Principal, cursor: str | None = None) -> ConversationPage:
    """A page of the person's conversations."""
    return await ask(bus, who, CONVERSATION_LIST, ListConversations(limit=_LISTED, cursor=cursor))


async def _state(turns: Turns, who: Principal, id: str) -> Turn | None:
    try:
        return await turns.state(who, id)
    except NotFound:
        return None  # rows of turns may be kept shorter than messages


def _shown(found: Conversation, states: dict[str, Turn | None]) -> Iterator[h.Node]:
    """The messages in their order; a turn is shown whole, once, behind the first of its messages."""
    left = dict(states)
    for message in found.messages:
        if message.role == "user":
            yield page.said(message.text)
        state = left.pop(message.turn_id, None)
        if state is not None:
            yield page.turn_view(state)
        elif states[message.turn_id] is None and message.role != "user":
            yield page.heard(message.text)
