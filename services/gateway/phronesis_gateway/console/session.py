"""Signing in by a cookie with a random id of a session, the rule that only the console's own pages may send forms, and routes
that a session opens. Any copy of the gateway finds the session in the store; signing out ends it, and so does a revoked key.
The key itself is read once and kept nowhere.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Coroutine
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

import htpy as h
from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.responses import Response

from phronesis_contracts import Forbidden, Principal, ServiceError, Unauthorized
from phronesis_contracts.orchestrator import Problem

from ..auth.authentication import Authenticator, StrictRequest
from ..auth.keys import WRITE, SessionStore, hash_secret, is_secret, require_scope
from ..http.responses import invalid_input
from ..turns.submission import TurnRefused

COOKIE = "phronesis_console"
LIFETIME = 8 * 3600
"""Seconds after which a person signs in again."""
IDLE = 3600
"""Seconds after which a person who did nothing signs in again."""
_ID = re.compile(r"[A-Za-z0-9_-]{43}")
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class Sessions:
    """Lets people in and out.

    Args:
        store: where all copies of the gateway keep who is signed in.
        path: where the cookie is sent, and nowhere else.
    """

    def __init__(self, authenticator: Authenticator, store: SessionStore, path: str) -> None:
        self._authenticator = authenticator
        self._store = store
        self._path = path

    async def holder(self, request: Request) -> Principal:
        """Who is signed in.

        Raises:
            Unauthorized: nobody, or the session is over, or the key was revoked.
            TooManyRequests: the key is over its rate.
            Unavailable: the store of keys is down.
        """
        hash = _hash_of(request)
        key = await self._store.key_of(hash, IDLE) if hash else None
        if key is None:
            raise Unauthorized("you are not signed in, or your session is over")
        return await self._authenticator.by_id(key)

    async def begin(self, request: Request, answer: Response) -> None:
        """Sign in with the key in a form, and let `answer` carry the session; raises as `Authenticator.by_key` does."""
        given = (await _field(request, "key")).strip()
        if not is_secret(given):
            raise Unauthorized("this is no key: a key begins with phr_ and has 47 characters")
        who = await self._authenticator.by_key(f"Bearer {given}")
        id = secrets.token_urlsafe(32)
        await self._store.begin(hash_secret(id), who, LIFETIME)
        secure = urlsplit(request.headers.get("origin", "")).scheme == "https"
        answer.set_cookie(
            COOKIE,
            id,
            max_age=LIFETIME,
            path=self._path,
            secure=secure,
            httponly=True,
            samesite="strict",
        )

    async def end(self, request: Request, answer: Response) -> None:
        """Sign out, and where the form says so, everywhere: every session of the same user ends.

        Raises:
            Unavailable: the store is down, so that the session goes on.
        """
        hash = _hash_of(request)
        if hash:
            await self._store.end(hash, everywhere=bool(await _field(request, "everywhere")))
        answer.delete_cookie(COOKIE, path=self._path, httponly=True, samesite="strict")


def _hash_of(request: Request) -> bytes | None:
    id = request.cookies.get(COOKIE, "")
    return hash_secret(id) if _ID.fullmatch(id) else None


async def _field(request: Request, name: str) -> str:
    return parse_qs((await request.body()).decode("ascii", "replace")).get(name, [""])[0]


def from_own_page(headers: Headers) -> None:
    """Let a form in that a page of this console sent.

    Raises:
        Forbidden: another site's page sent it, or it came over a line that others can read.
    """
    origin = urlsplit(headers.get("origin", ""))
    site = headers.get("sec-fetch-site")
    if site != "same-origin" if site is not None else origin.netloc != headers.get("host"):
        raise Forbidden("only the console's own pages may send this")
    if origin.scheme != "https" and origin.hostname not in _LOOPBACK:
        raise Forbidden("the console needs https: over plain http others could read the key and the answers")


_EMPTY_STYLE = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
"""The hash of nothing: the chart library adds an empty style element and fills it by script. It wants a second one, for maps;
that is refused, since no visualization is a map."""
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        f"style-src 'self' {_EMPTY_STYLE}",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
_GUARDS = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    # Not `no-referrer`: browsers would then hide the origin of our own forms.
    "Referrer-Policy": "same-origin",
}


def html_response(node: h.Renderable, status: int = 200) -> Response:
    """A page or a part of one, with what keeps foreign scripts, styles and frames out."""
    return Response(str(node), status, _GUARDS, "text/html; charset=utf-8")


def session_route(sessions: Sessions, failed: Callable[[Problem], h.Element]) -> type[APIRoute]:
    """The class of routes that a session opens; who came in is checked before a body is read."""

    class Entered(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def answered(request: Request) -> Response:
                try:
                    request.state.who = await sessions.holder(request)
                    if request.method != "GET":
                        from_own_page(request.headers)
                        require_scope(request.state.who, WRITE)
                    return await handle(StrictRequest(request.scope, request.receive))
                except TurnRefused as refused:
                    found = refused.problem
                except RequestValidationError as error:
                    found = problem_of(invalid_input([each | {"loc": each["loc"][1:]} for each in error.errors()]))
                except ServiceError as error:
                    found = problem_of(error)
                return html_response(failed(found), found.status)

            return answered

    return Entered


def problem_of(error: ServiceError) -> Problem:
    return Problem(**error.body())


async def _caller(request: Request) -> Principal:
    who: Principal = request.state.who
    return who


Person = Annotated[Principal, Depends(_caller)]
