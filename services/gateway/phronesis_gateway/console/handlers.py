"""The console's routes.

Whole pages of conversations, and the parts that their script asks for. Each asks the bus as the API's routes do, for the
person whom the cookie names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Annotated

import htpy as h
from fastapi import APIRouter, Header, Path, Query, Request
from starlette.responses import RedirectResponse, Response

from phronesis_bus import Bus, Watch, ask
from phronesis_contracts import NotFound, Principal, ServiceError, TurnEnded
from phronesis_contracts.deletions import DeleteConversation
from phronesis_contracts.orchestrator import (
    CONVERSATION_DELETE,
    CONVERSATION_GET,
    CONVERSATION_LIST,
    TURN_CANCEL,
    Conversation,
    ConversationPage,
    ConversationRef,
    ListConversations,
    Turn,
    TurnProgress,
    TurnRef,
)

from ..auth.authentication import Authenticator, IdempotencyKey, OpenStreams, StrictRequest
from ..auth.keys import SessionStore
from ..http.requests import MessageGiven
from ..http.responses import ID_FORM
from ..tools.offers import Offers
from ..turns.events import Events, EventStream, parse_last_event_id
from ..turns.submission import TraceCollector, TurnService
from . import constitution, page
from .page import asset_response, render_fault
from .session import Person, Sessions, from_own_page, html_response, problem_of, session_route
from .traces import render_trace

PATH = "/console"
_LISTED = 30
_MESSAGES = 20
"""Messages of a conversation that is opened; each turn's row is read for its answer."""


def conversations_router(sessions: Sessions, bus: Bus, turns: TurnService) -> APIRouter:
    routes = APIRouter(route_class=session_route(sessions, page.problem_page))

    @routes.get(PATH)
    async def begin(who: Person, cursor: Annotated[str | None, Query(max_length=200)] = None) -> Response:
        return html_response(page.console_page(who, await list_conversations(bus, who, cursor), None, ()))

    @routes.get(PATH + "/conversations/{id}")
    async def open_conversation(id: Annotated[str, Path(), ID_FORM], who: Person) -> Response:
        wanted = ConversationRef(conversation_id=id, limit=_MESSAGES)
        found, others = await asyncio.gather(ask(bus, who, CONVERSATION_GET, wanted), list_conversations(bus, who))
        ids = dict.fromkeys(message.turn_id for message in found.messages)
        states = await asyncio.gather(*(_find_turn(turns, who, id) for id in ids))
        return html_response(
            page.console_page(who, others, found, _render_messages(found, dict(zip(ids, states, strict=True))))
        )

    @routes.post(PATH + "/conversations/{id}/delete")
    async def delete_conversation(id: Annotated[str, Path(), ID_FORM], who: Person) -> Response:
        await ask(bus, who, CONVERSATION_DELETE, DeleteConversation(conversation_id=id))
        return RedirectResponse(PATH, 303)

    return routes


async def list_conversations(bus: Bus, who: Principal, cursor: str | None = None) -> ConversationPage:
    return await ask(bus, who, CONVERSATION_LIST, ListConversations(limit=_LISTED, cursor=cursor))


async def _find_turn(turns: TurnService, who: Principal, id: str) -> Turn | None:
    try:
        return await turns.state(who, id)
    except NotFound:
        return None  # rows of turns may be kept shorter than messages


def _render_messages(found: Conversation, states: dict[str, Turn | None]) -> Iterator[h.Node]:
    """The messages in their order; a turn is shown whole, once, behind the first of its messages."""
    left = dict(states)
    for message in found.messages:
        if message.role == "user":
            yield page.user_message(message.text)
        state = left.pop(message.turn_id, None)
        if state is not None:
            yield page.render_turn(state)
        elif states[message.turn_id] is None and message.role != "user":
            yield page.agent_message(message.text)


def router(
    authenticator: Authenticator,
    store: SessionStore,
    bus: Bus,
    turns: TurnService,
    watch: Watch[TurnProgress],
    streams: OpenStreams,
    seconds: float,
    offers: Offers,
) -> APIRouter:
    """The routes.

    Args:
        store: where it is kept who is signed in.
        seconds: how long a stream may be open.
    """
    sessions = Sessions(authenticator, store, PATH)
    routes = APIRouter(include_in_schema=False)
    routes.include_router(_public_routes(sessions))
    routes.include_router(conversations_router(sessions, bus, turns))
    routes.include_router(constitution.router(sessions, bus, offers))
    routes.include_router(_part_routes(sessions, bus, turns))
    routes.include_router(_stream_routes(sessions, turns, watch, streams, seconds))
    return routes


def _public_routes(sessions: Sessions) -> APIRouter:
    routes = APIRouter()

    @routes.post(PATH + "/sign-in")
    async def sign_in(request: Request) -> Response:
        answer = RedirectResponse(PATH, 303)
        try:
            from_own_page(request.headers)
            await sessions.begin(StrictRequest(request.scope, request.receive), answer)
        except ServiceError as error:
            return html_response(page.sign_in_page(render_fault(problem_of(error))), error.status)
        return answer

    @routes.post(PATH + "/sign-out")
    async def sign_out(request: Request) -> Response:
        answer = RedirectResponse(PATH, 303)
        try:
            from_own_page(request.headers)
            await sessions.end(StrictRequest(request.scope, request.receive), answer)
        except ServiceError as error:
            return html_response(page.sign_in_page(render_fault(problem_of(error))), error.status)
        return answer

    @routes.get(PATH + "/assets/{name}")
    async def get_asset(name: str) -> Response:
        return asset_response(name)

    return routes


def _part_routes(sessions: Sessions, bus: Bus, turns: TurnService) -> APIRouter:
    routes = APIRouter(route_class=session_route(sessions, render_fault))

    @routes.get(PATH + "/conversations")
    async def conversation_list(who: Person) -> Response:
        return html_response(page.conversation_list(await list_conversations(bus, who)))

    @routes.post(PATH + "/messages")
    async def send_message(message: MessageGiven, who: Person, key: IdempotencyKey) -> Response:
        async with turns.submitted(who, message, key) as turn:
            state = await turns.state(who, turn.turn_id)
        return html_response(h.fragment[page.user_message(message.current_message_text or ""), page.render_turn(state)], 201)

    @routes.get(PATH + "/turns/{id}")
    async def get_turn(id: Annotated[str, Path(), ID_FORM], who: Person) -> Response:
        return html_response(page.render_turn(await turns.state(who, id)))

    @routes.post(PATH + "/turns/{id}/cancel")
    async def cancel_turn(id: Annotated[str, Path(), ID_FORM], who: Person) -> Response:
        try:
            state = await ask(bus, who, TURN_CANCEL, TurnRef(turn_id=id))
        except TurnEnded:
            state = await turns.state(who, id)
        return html_response(page.render_turn(state))

    @routes.get(PATH + "/turns/{id}/trace")
    async def get_trace(id: Annotated[str, Path(), ID_FORM], who: Person) -> Response:
        turn = await turns.state(who, id)
        return html_response(render_trace(await TraceCollector(bus).of(who, id, turn.trace_id)))

    return routes


def _stream_routes(
    sessions: Sessions, turns: TurnService, watch: Watch[TurnProgress], streams: OpenStreams, seconds: float
) -> APIRouter:
    routes = APIRouter(route_class=session_route(sessions, render_fault))

    @routes.get(PATH + "/turns/{id}/events")
    async def watch_turn(
        id: Annotated[str, Path(), ID_FORM],
        who: Person,
        last_event_id: Annotated[str | None, Header(alias="Last-Event-ID", pattern="^[0-9]{0,19}$")] = None,
    ) -> Response:
        assert who.key is not None
        holder, seen = who.key, parse_last_event_id(last_event_id)
        await turns.state(who, id)
        return EventStream(Events(turns, watch, who, id, seen).stream(), seconds, lambda: streams.opened(holder))

    return routes
