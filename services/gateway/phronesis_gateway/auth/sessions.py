"""Sessions of the console: a cookie with a random id, and the rule that only the console's own pages may use it.

Any copy of the gateway finds the session in the store; signing out ends it, and so does a revoked key. The key itself is read
once and kept nowhere.
"""

from __future__ import annotations

import re
import secrets
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import Response

from phronesis_contracts import Forbidden, Principal

from .keys import SessionStore, hash_secret

COOKIE = "phronesis_console"
LIFETIME = 8 * 3600
"""Seconds after which a person signs in again."""
IDLE = 3600
"""Seconds after which a person who did nothing signs in again."""
_ID = re.compile(r"[A-Za-z0-9_-]{43}")
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def session_of(headers: Headers) -> bytes | None:
    """The hash of the session that a request's cookie names; `None` where it names none.

    Raises:
        Forbidden: another site's page sent it, or it came over a line that others can read.
    """
    id = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
    if not _ID.fullmatch(id):
        return None
    from_own_page(headers)
    return hash_secret(id)


def from_own_page(headers: Headers) -> None:
    """Let a request in that a page of this console sent.

    Raises:
        Forbidden: another site's page sent it, or it came over a line that others can read.
    """
    given, site = headers.get("origin"), headers.get("sec-fetch-site")
    origin = urlsplit(given or "")
    if site != "same-origin" if site is not None else origin.netloc != headers.get("host"):
        raise Forbidden("only the console's own pages may send this")
    # A browser sends no origin when it only reads.
    if given is not None and origin.scheme != "https" and origin.hostname not in _LOOPBACK:
        raise Forbidden("the console needs https: over plain http others could read the key and the answers")


async def begin_session(store: SessionStore, who: Principal, headers: Headers, answer: Response) -> None:
    """Keep a session of `who`, and let `answer` carry its cookie. Raises `Unavailable`: the store is down."""
    id = secrets.token_urlsafe(32)
    await store.begin(hash_secret(id), who, LIFETIME)
    secure = urlsplit(headers.get("origin", "")).scheme == "https"
    answer.set_cookie(COOKIE, id, max_age=LIFETIME, path="/", secure=secure, httponly=True, samesite="strict")


async def end_session(store: SessionStore, hash: bytes, answer: Response, *, everywhere: bool) -> None:
    """End a session, or every one of its user. Raises `Unavailable`: the store is down, so that the session goes on."""
    await store.end(hash, everywhere=everywhere)
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
