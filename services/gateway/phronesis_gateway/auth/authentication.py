"""Who asks, whether the key's rate allows it, and a route that checks this before it reads a body.

Refusals go into the audit trail.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import Depends, Header, Request, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from opentelemetry import trace
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response

from phronesis_bus import Bus, announce, audit_entry
from phronesis_contracts import BadRequest, Principal, ServiceError, TooManyRequests, Unauthorized
from phronesis_contracts.service import AUDITED

from ..http.requests import parse_json
from ..turns.submission import OWNER, owner_of
from .keyring import Keyring
from .keys import ACT_FOR_USERS, USER, WRITE, SessionStore, is_secret, require_scope, require_whole
from .tickets import Tickets
from .tokens import TokenVerifier

_KEYS = 10_000
_SHARE = 0.05
"""What a request for one of a program's users costs the program's key: twenty users may be as busy as one key."""


class RateLimiter:
    """A token bucket for each key. The table is bounded: a key that was not seen for long begins with a full bucket.

    Args:
        per_second: requests that flow in each second.
        burst: requests that a bucket holds.
    """

    def __init__(self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def spend(self, key: str, requests: float = 1.0) -> None:
        """Take one request, or a share of one, from the bucket of `key`. Raises `TooManyRequests`: it is empty."""
        now = self._clock()
        left, since = self._buckets.get(key, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._per_second)
        if left < requests:
            raise TooManyRequests("too many requests for this key", retry_after=(requests - left) / self._per_second)
        self._buckets[key] = (left - requests, now)
        self._buckets.move_to_end(key)
        if len(self._buckets) > _KEYS:
            self._buckets.popitem(last=False)


class OpenStreams:
    """Counts open streams. `most`: of all keys together; `most_per_key`: of one key."""

    def __init__(self, most: int, most_per_key: int) -> None:
        self._most = most
        self._most_per_key = most_per_key
        self._open: Counter[str] = Counter()

    @property
    def open(self) -> int:
        return self._open.total()

    @contextmanager
    def opened(self, key: str) -> Iterator[None]:
        """One stream of `key`, for the length of a block. Raises `TooManyRequests`: there are too many already."""
        if self._open[key] >= self._most_per_key:
            raise TooManyRequests("too many open streams for this key", retry_after=5)
        if self.open >= self._most:
            raise TooManyRequests("too many open streams", retry_after=5)
        self._open[key] += 1
        try:
            yield
        finally:
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key]


log = logging.getLogger(__name__)


async def audit_refusal(bus: Bus, who: Principal, action: str, arguments: dict[str, Any], error: ServiceError) -> None:
    """Enter that `who` was refused `action`. A trail that cannot be reached changes nothing about the refusal."""
    entry = audit_entry(who, action, arguments, code=error.code)
    try:
        await announce(bus, who.tenant, AUDITED[bus.name], entry)
    except ServiceError as failure:
        log.error("a refusal could not be audited: %s", failure.code)


_PRINTABLE = "^[!-~]([ -~]*[!-~])?$"
BODY_SECONDS = 20.0
"""Seconds in which a JSON body has to arrive."""
_BEARER = re.compile(r"bearer ([A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)
BEARER = HTTPBearer(auto_error=False, description="A key: `phronesis keys create --tenant T --user U --role member`.")


class Authenticator:
    """Lets callers in. `jwts`: reads tokens of an identity provider; `None` where none is trusted."""

    def __init__(
        self,
        keyring: Keyring,
        tickets: Tickets,
        sessions: SessionStore,
        rate: RateLimiter,
        jwts: TokenVerifier | None = None,
    ) -> None:
        self._keyring = keyring
        self._tickets = tickets
        self._sessions = sessions
        self._rate = rate
        self._jwts = jwts

    async def by_headers(self, headers: Headers, *, tools: bool = False) -> Principal:
        """The caller that a request's one `Authorization` header names, or the user that it acts for.

        Args:
            tools: whether all that the request can do is to call tools.

        Raises:
            Unauthorized: there is no key, or it is not valid.
            Forbidden: it may not act for the user that is named, or calls its tools alone.
            BadRequest: what is named is no user.
            TooManyRequests: the key is over its rate.
            Unavailable: the store of keys is down, or the issuer's keys cannot be had.
        """
        given = headers.getlist("authorization")
        if len(given) > 1:
            raise Unauthorized("send one Authorization header")
        who = await self._by_key(given[0] if given else None)
        users = headers.getlist(USER)
        if len(users) > 1:
            raise BadRequest(f"send one {USER} header", field=USER)
        return self._counted(await self._keyring.acting(who, users[0]) if users else who, tools=tools)

    async def acting(self, who: Principal, user: str | None) -> Principal:
        """The user that a body names, where the key acts for users; `who` where it does not. Raises as `by_headers` does."""
        return await self._keyring.acting(who, user) if user and ACT_FOR_USERS in who.scopes else who

    async def by_key(self, authorization: str | None) -> Principal:
        """The holder of the key or the token in an `Authorization` header; raises as `by_headers` does."""
        return self._counted(await self._by_key(authorization))

    async def _by_key(self, authorization: str | None) -> Principal:
        """The holder of the key or the token in an `Authorization` header."""
        found = _BEARER.fullmatch(authorization or "")
        if found is None:
            raise Unauthorized("send a key: Authorization: Bearer phr_...")
        if self._jwts is None or is_secret(found[1]):
            return await self._keyring.holder(found[1])
        return await self._keyring.admitted(await self._jwts.caller(found[1]))

    async def by_ticket(self, ticket: str, turn: str) -> Principal:
        """The holder of the key that a ticket for `turn` was made with, or its user; raises as `by_headers` does, and
        `Unauthorized` for one that was used before.
        """
        found = self._tickets.holder(ticket, turn)
        who = await self._keyring.holder_of(found.key)
        who = self._counted(await self._keyring.acting(who, found.user, known=True) if found.user else who)
        if not await self._sessions.use_ticket(who.tenant, found.hash, found.expires_at):
            raise Unauthorized("the ticket was used; make another one")
        return who

    async def by_id(self, key: str) -> Principal:
        """The holder of the key with this id, which was presented before; raises as `by_headers` does."""
        return self._counted(await self._keyring.holder_of(key))

    def _counted(self, who: Principal, *, tools: bool = False) -> Principal:
        assert who.key is not None
        require_whole(who, tools=tools)
        trace.get_current_span().set_attribute(OWNER, owner_of(who))
        if who.acted_by is not None:  # one user of a program does not use up what its others have
            self._rate.spend(f"{who.key}/{who.user}")
        self._rate.spend(who.key, 1.0 if who.acted_by is None else _SHARE)
        return who


class StrictRequest(Request):
    """A request whose JSON is read strictly and within a time."""

    async def body(self) -> bytes:
        try:
            async with asyncio.timeout(BODY_SECONDS):
                return await super().body()
        except TimeoutError as error:
            raise HTTPException(408, "the body did not arrive in time", {"Connection": "close"}) from error

    async def json(self) -> Any:
        try:
            return parse_json(await self.body())
        except BadRequest as error:
            # The framework lets this class of error through as it is, and hides any other.
            raise HTTPException(error.status, error.detail) from error


def authenticated_route(authenticator: Authenticator, sends: str = WRITE, *, tools: bool = False) -> type[APIRoute]:
    """The class of routes that a key opens. The key is checked first: a stranger's body is never read.

    Args:
        sends: the scope that a narrowed key needs for what is no GET.
        tools: whether each of the routes calls a tool, which the caller may call or not, and does nothing else.
    """

    class Keyed(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def entered(request: Request) -> Response:
                request.state.who = await authenticator.by_headers(request.headers, tools=tools)
                if request.method != "GET":
                    require_scope(request.state.who, sends)
                return await handle(StrictRequest(request.scope, request.receive))

            return entered

    return Keyed


async def _caller(request: Request, _: Annotated[object, Security(BEARER)]) -> Principal:
    who: Principal = request.state.who
    return who


Caller = Annotated[Principal, Depends(_caller)]


async def _idempotency_key(
    request: Request,
    _: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            description="The same key with the same body is answered with the first result.",
            max_length=255,
            pattern=_PRINTABLE,
        ),
    ] = None,
) -> str | None:
    given = request.headers.getlist("idempotency-key")
    if not given:
        return None
    if len(given) > 1:
        raise BadRequest("give one idempotency key", field="Idempotency-Key")
    return given[0]


def scope_idempotency_key(who: Principal, key: str | None) -> str | None:
    """The caller's idempotency key as the owner of a write gets it: no other user's, and no other way in, can meet it."""
    return None if key is None else f"http/{who.user}/{key}"


IdempotencyKey = Annotated[str | None, Depends(_idempotency_key)]
