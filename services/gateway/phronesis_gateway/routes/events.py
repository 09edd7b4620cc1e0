"""The event stream of a turn, and the tickets that open it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Security
from pydantic import BaseModel
from starlette.responses import Response

from phronesis_bus import Watch
from phronesis_contracts.orchestrator import TurnProgress
from phronesis_gateway.answers import PROBLEMS, Id, answers, as_json
from phronesis_gateway.door import BEARER, Caller, Door, keyed
from phronesis_gateway.event_stream import EventStream
from phronesis_gateway.events import Events, last_seen
from phronesis_gateway.limits import Streams
from phronesis_gateway.scopes import READ
from phronesis_gateway.submission import Turns
from phronesis_gateway.tickets import Tickets

_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events: `accepted`, `phase`, `waiting` (for an approval), `ended`, `text` (or `executive_summary` and "
        "`analysis`), `done`.",
        "content": {"text/event-stream": {}},
    }
}


class TicketMade(BaseModel):
    """A ticket for one turn's events."""

    ticket: str
    url: str
    """Where it opens the stream."""
    expires_at: int
    """Seconds since the epoch."""


def router(
    door: Door, turns: Turns, watch: Watch[TurnProgress], streams: Streams, tickets: Tickets, seconds: float
) -> APIRouter:
    """The routes.

    Args:
        door: lets callers in.
        turns: reads turns.
        watch: hears and reads the progress of turns.
        streams: counts open streams.
        tickets: makes tickets.
        seconds: how long a stream may be open.
    """
    routes = APIRouter(responses=PROBLEMS, tags=["events"])
    keyed_routes = APIRouter(route_class=keyed(door, READ))

    @routes.get("/api/v1/turns/{id}/events", responses=_EVENTS)
    async def watch_turn(
        request: Request,
        id: Id,
        authorization: Annotated[object, Security(BEARER)],
        ticket: Annotated[str | None, Query(max_length=1_024, description="In place of a key, for browsers.")] = None,
        last_event_id: Annotated[
            str | None, Header(alias="Last-Event-ID", pattern="^[0-9]{0,19}$", description="Id of the last event received.")
        ] = None,
    ) -> Response:
        """Watch a turn: its progress, then the reply's text and its end; of an analyst the summary and the whole answer.

        Reconnect with the id of the last event. What is made from the turn's end (`ended`, `text`, `executive_summary`,
        `analysis`, `done`) has the id of the last progress event, so a reader that comes back with it gets them all again;
        a `text` event says that it is part `k` of `n`.
        """
        who = await door.by_ticket(ticket, id) if ticket is not None else await door.by_headers(request.headers)
        assert who.key is not None
        seen = last_seen(last_event_id)
        await turns.state(who, id)
        holder = who.key
        return EventStream(Events(turns, watch, who, id, seen).stream(), seconds, lambda: streams.opened(holder))

    @keyed_routes.post("/api/v1/turns/{id}/ticket", status_code=201, responses=answers(TicketMade, 201))
    async def make_ticket(id: Id, who: Caller) -> Response:
        """Make a ticket with which a browser can watch this turn; it is good for a minute."""
        await turns.state(who, id)
        assert who.key is not None
        ticket = tickets.make(who.key, id)
        url = f"/api/v1/turns/{id}/events?ticket={ticket.text}"
        return as_json(TicketMade(ticket=ticket.text, url=url, expires_at=ticket.expires_at), 201)

    routes.include_router(keyed_routes)
    return routes
