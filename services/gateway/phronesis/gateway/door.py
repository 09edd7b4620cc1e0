"""The way in: who asks, and whether the key's rate allows it; and a route that asks this before it reads a body."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Depends, Header, Request, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from opentelemetry import trace
from starlette.exceptions import HTTPException
from starlette.responses import Response

from phronesis.contracts import BadRequest, Principal, Unauthorized

from .keyring import Keyring
from .limits import Rate
from .strict_json import strict_json
from .tickets import Tickets
from .traces import OWNER, owner

BODY_SECONDS = 20.0
"""Seconds in which a JSON body has to arrive."""
BEARER = HTTPBearer(auto_error=False, description="A key: `phronesis keys create --tenant T --user U --role R`.")


class Door:
    """Lets callers in.

    Args:
        keyring: finds keys.
        tickets: checks tickets.
        rate: the rate of each key.
    """

    def __init__(self, keyring: Keyring, tickets: Tickets, rate: Rate) -> None:
        self._keyring = keyring
        self._tickets = tickets
        self._rate = rate

    async def by_key(self, authorization: str | None) -> Principal:
        """The holder of the key in an `Authorization` header.

        Raises:
            Unauthorized: there is none, or it is not valid.
            TooManyRequests: the key is over its rate.
            Unavailable: the store of keys is down.
        """
        scheme, _, secret = (authorization or "").partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthorized("send a key: Authorization: Bearer phr_...")
        return self._counted(await self._keyring.holder(secret.strip()))

    async def by_ticket(self, ticket: str, turn: str) -> Principal:
        """The holder of the key that a ticket for `turn` was made with; raises as `by_key` does."""
        return self._counted(await self._keyring.holder_of(self._tickets.key(ticket, turn)))

    def _counted(self, who: Principal) -> Principal:
        assert who.key is not None
        trace.get_current_span().set_attribute(OWNER, owner(who))
        self._rate.spend(who.key)
        return who


class StrictRequest(Request):
    """A request whose JSON is read strictly and within a time."""

    async def body(self) -> bytes:
        """The body."""
        try:
            async with asyncio.timeout(BODY_SECONDS):
                return await super().body()
        except TimeoutError as error:
            raise HTTPException(408, "the body did not arrive in time", {"Connection": "close"}) from error

    async def json(self) -> Any:
        """The body as JSON."""
        try:
            return strict_json(await self.body())
        except BadRequest as error:
            # The framework lets this class of error through as it is, and hides any other.
            raise HTTPException(error.status, error.detail) from error


def keyed(door: Door) -> type[APIRoute]:
    """The class of routes that a key opens. The key is checked first: a stranger's body is never read."""

    class Keyed(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def entered(request: Request) -> Response:
                request.state.who = await door.by_key(request.headers.get("authorization"))
                return await handle(StrictRequest(request.scope, request.receive))

            return entered

    return Keyed


async def _caller(request: Request, _: Annotated[object, Security(BEARER)]) -> Principal:
    who: Principal = request.state.who
    return who


Caller = Annotated[Principal, Depends(_caller)]
"""The caller of a keyed route."""


async def _idempotency_key(
    request: Request,
    _: Annotated[
        str | None,
        Header(alias="Idempotency-Key", description="The same key with the same body is answered with the first result."),
    ] = None,
) -> str | None:
    given = request.headers.getlist("idempotency-key")
    if not given:
        return None
    key = given[0]
    if len(given) > 1 or not 1 <= len(key) <= 255 or not (key.isascii() and key.isprintable()):
        raise BadRequest("an idempotency key is 1 to 255 printable ASCII characters", field="Idempotency-Key")
    return key


def scoped(who: Principal, key: str | None) -> str | None:
    """The caller's idempotency key as the owner of a write gets it: no other user's, and no other way in, can meet it."""
    return None if key is None else f"http/{who.user}/{key}"


IdempotencyKey = Annotated[str | None, Depends(_idempotency_key)]
"""The caller's `Idempotency-Key`, checked."""
