"""Who asks, whether the caller's limits allow it, and a route that checks this before it reads a body.

Refusals go into the audit trail.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
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
from ..settings import LimitSettings
from ..turns.submission import OWNER, owner_of
from .keyring import Keyring
from .keys import ACT_FOR_USERS, USER, WRITE, SessionStore, is_first_key, is_secret, require_scope, require_whole
from .sessions import IDLE, session_of
from .tickets import Tickets
from .tokens import TokenVerifier

_KEYS = 10_000
REFUSAL_SECONDS, REFUSAL_LONGEST, REFUSALS = 1.0, 30.0, 20
"""Seconds after which a caller over a limit is told so, at least and at most, and how many of one tenant are told in a second
while there are more: a caller with many connections that repeats at once takes little time from the others."""


class Share:
    """What one request uses of its caller's limits, and what its answer says of them; `release` when it has been answered."""

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.release: Callable[[], None] = _nothing

    def state(self, policies: Sequence[RateLimiter], keys: Sequence[str]) -> None:
        """State the limits as headers (draft-ietf-httpapi-ratelimit-headers)."""
        of = list(zip(policies, keys, strict=True))
        self.headers = [
            (b"ratelimit-policy", ", ".join(policy.policy for policy, _ in of).encode()),
            (b"ratelimit", ", ".join(policy.state(key) for policy, key in of).encode()),
        ]


def _nothing() -> None:
    """Release nothing."""


share: ContextVar[Share | None] = ContextVar("share", default=None)
"""The request at hand, in the outermost part of the application and in what it calls."""


class RateLimiter:
    """A token bucket for each key. The table is bounded: a key that was not seen for long begins with a full bucket.

    Args:
        per_second: requests that flow in each second.
        burst: requests that a bucket holds.
        name: what the limit is called in headers and metrics.
    """

    def __init__(
        self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic, *, name: str = "user"
    ) -> None:
        self.name = name
        self._per_second = per_second
        self._burst = float(burst)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def _left(self, key: str) -> tuple[float, float]:
        now = self._clock()
        left, since = self._buckets.get(key, (self._burst, now))
        return min(self._burst, left + (now - since) * self._per_second), now

    def spend(self, key: str) -> None:
        """Take one request from the bucket of `key`. Raises `TooManyRequests`: it is empty."""
        left, now = self._left(key)
        if left < 1:
            raise TooManyRequests(f"too many requests of this {self.name}", retry_after=(1 - left) / self._per_second)
        self._buckets[key] = (left - 1, now)
        self._buckets.move_to_end(key)
        if len(self._buckets) > _KEYS:
            self._buckets.popitem(last=False)

    @property
    def policy(self) -> str:
        """The item of `RateLimit-Policy`: requests in a bucket, and seconds in which an empty one is full again."""
        return f'"{self.name}";q={self._burst:.0f};w={max(1, math.ceil(self._burst / self._per_second))}'

    def state(self, key: str) -> str:
        """The item of `RateLimit`: requests left, and seconds until there is one more."""
        left, _ = self._left(key)
        return f'"{self.name}";r={int(left)};t={max(0, math.ceil((int(left) + 1 - left) / self._per_second))}'


class TenantRequests:
    """Counts requests that are being answered, by tenant. `most`: of one tenant."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    def begin(self, tenant: str) -> Callable[[], None]:
        """Count one more; the result, called once or oftener, ends it. Raises `TooManyRequests`: there are too many."""
        if self._open[tenant] >= self._most:
            raise TooManyRequests("too many requests of this tenant at once", retry_after=1)
        self._open[tenant] += 1
        ended = False

        def end() -> None:
            nonlocal ended
            if not ended:
                ended = True
                self._open[tenant] -= 1
                if not self._open[tenant]:
                    del self._open[tenant]

        return end


class Limits:
    """What callers may ask. `count`: told of each refusal, by limit and tenant."""

    def __init__(self, settings: LimitSettings, count: Callable[[str, str], None]) -> None:
        self._user = RateLimiter(settings.requests_per_second, settings.burst)
        self._program = RateLimiter(settings.program_requests_per_second, settings.program_burst, name="program")
        self._tenant = RateLimiter(settings.tenant_requests_per_second, settings.tenant_burst, name="tenant")
        self._at_once = TenantRequests(settings.max_requests_per_tenant)
        self._count = count
        self._refusing: Counter[str] = Counter()

    async def spend(self, who: Principal) -> None:
        """Count one request of `who`. Raises `TooManyRequests`, after a while."""
        if is_first_key(who):
            return
        mine = share.get() or Share()
        of = [(self._user, f"{who.tenant}/{who.user}"), (self._tenant, who.tenant)]
        if who.acted_by is not None:  # one user of a program does not use up what its others have
            of.insert(1, (self._program, str(who.key)))
        policies, keys = [policy for policy, _ in of], [key for _, key in of]
        name = "at_once"
        try:
            mine.release()
            mine.release = self._at_once.begin(who.tenant)
            for policy, key in of:
                name = policy.name
                policy.spend(key)
        except TooManyRequests:
            mine.release()
            self._count(name, who.tenant)
            await self._hold(who.tenant)
            raise
        finally:
            mine.state(policies, keys)

    async def _hold(self, tenant: str) -> None:
        self._refusing[tenant] += 1
        try:
            await asyncio.sleep(min(REFUSAL_LONGEST, max(REFUSAL_SECONDS, self._refusing[tenant] / REFUSALS)))
        finally:
            self._refusing[tenant] -= 1
            if not self._refusing[tenant]:
                del self._refusing[tenant]


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
        limits: Limits,
        jwts: TokenVerifier | None = None,
    ) -> None:
        self._keyring = keyring
        self._tickets = tickets
        self._sessions = sessions
        self._limits = limits
        self._jwts = jwts

    async def by_headers(self, headers: Headers, *, tools: bool = False) -> Principal:
        """The caller that a request's one `Authorization` header names, or the user that it acts for; without that header, who
        is signed in at the console.

        Args:
            tools: whether all that the request can do is to call tools.

        Raises:
            Unauthorized: there is no key, or it is not valid.
            Forbidden: it may not act for the user that is named, or calls its tools alone.
            BadRequest: what is named is no user.
            TooManyRequests: the user, the program or the tenant is over its limits.
            Unavailable: the store of keys is down, or the issuer's keys cannot be had.
        """
        given = headers.getlist("authorization")
        if len(given) > 1:
            raise Unauthorized("send one Authorization header")
        session = None if given else session_of(headers)
        who = await self._by_session(session) if session else await self._by_key(given[0] if given else None)
        users = headers.getlist(USER)
        if len(users) > 1:
            raise BadRequest(f"send one {USER} header", field=USER)
        return await self._counted(await self._keyring.acting(who, users[0]) if users else who, tools=tools)

    async def acting(self, who: Principal, user: str | None) -> Principal:
        """The user that a body names, where the key acts for users; `who` where it does not. Raises as `by_headers` does."""
        return await self._keyring.acting(who, user) if user and ACT_FOR_USERS in who.scopes else who

    async def by_key(self, authorization: str | None) -> Principal:
        """The holder of the key or the token in an `Authorization` header; raises as `by_headers` does."""
        return await self._counted(await self._by_key(authorization))

    async def _by_key(self, authorization: str | None) -> Principal:
        """The holder of the key or the token in an `Authorization` header."""
        found = _BEARER.fullmatch(authorization or "")
        if found is None:
            raise Unauthorized("send a key: Authorization: Bearer phr_...")
        if self._jwts is None or is_secret(found[1]):
            return await self._keyring.holder(found[1])
        return await self._keyring.admitted(await self._jwts.caller(found[1]))

    async def _by_session(self, hash: bytes) -> Principal:
        """The holder of the key that a session at the console was begun with."""
        key = await self._sessions.key_of(hash, IDLE)
        if key is None:
            raise Unauthorized("you are not signed in, or your session is over")
        return await self._keyring.holder_of(key)

    async def by_ticket(self, ticket: str, turn: str) -> Principal:
        """The holder of the key that a ticket for `turn` was made with, or its user; raises as `by_headers` does, and
        `Unauthorized` for one that was used before.
        """
        found = self._tickets.holder(ticket, turn)
        who = await self._keyring.holder_of(found.key)
        who = await self._counted(await self._keyring.acting(who, found.user, known=True) if found.user else who)
        if not await self._sessions.use_ticket(who.tenant, found.hash, found.expires_at):
            raise Unauthorized("the ticket was used; make another one")
        return who

    async def by_id(self, key: str) -> Principal:
        """The holder of the key with this id, which was presented before; raises as `by_headers` does."""
        return await self._counted(await self._keyring.holder_of(key))

    async def _counted(self, who: Principal, *, tools: bool = False) -> Principal:
        assert who.key is not None
        require_whole(who, tools=tools)
        trace.get_current_span().set_attribute(OWNER, owner_of(who))
        await self._limits.spend(who)
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
