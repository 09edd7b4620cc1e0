"""Signing in: a cookie that names a key and holds no secret, and the rule that only the console's own pages may send forms.

The cookie is a ticket like those of event streams, of another purpose and for hours: any copy of the gateway reads it, and a
revoked key ends it. The key itself is read once, at the door, and kept nowhere.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from phronesis_contracts import Forbidden, Principal, Unauthorized
from phronesis_gateway.domain import is_secret
from phronesis_gateway.door import Door
from phronesis_gateway.tickets import Tickets

COOKIE = "phronesis_console"
LIFETIME = 8 * 3600
"""Seconds after which a person signs in again."""
_PURPOSE = b"phronesis gateway: session of the console"
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class Sessions:
    """Lets people in and out.

    Args:
        door: lets callers in.
        signing_key: file with what all copies of the gateway share.
        path: where the cookie is sent, and nowhere else.
    """

    def __init__(self, door: Door, signing_key: Path | None, path: str) -> None:
        self._door = door
        self._tickets = Tickets.load(signing_key, _PURPOSE, LIFETIME)
        self._path = path

    async def holder(self, request: Request) -> Principal:
        """Who is signed in.

        Raises:
            Unauthorized: nobody, or the session is over, or the key was revoked.
            TooManyRequests: the key is over its rate.
            Unavailable: the store of keys is down.
        """
        return await self._door.by_id(self._tickets.key(request.cookies.get(COOKIE, ""), self._path))

    async def begin(self, request: Request, answer: Response) -> None:
        """Sign in with the key in a form, and let `answer` carry the session; raises as `Door.by_key` does."""
        given = parse_qs((await request.body()).decode("ascii", "replace")).get("key", [""])[0].strip()
        if not is_secret(given):
            raise Unauthorized("this is no key: a key begins with phr_ and has 47 characters")
        who = await self._door.by_key(f"Bearer {given}")
        assert who.key is not None
        secure = urlsplit(request.headers.get("origin", "")).scheme == "https"
        answer.set_cookie(
            COOKIE,
            self._tickets.make(who.key, self._path).text,
            max_age=LIFETIME,
            path=self._path,
            secure=secure,
            httponly=True,
            samesite="strict",
        )

    def end(self, answer: Response) -> None:
        """Sign out."""
        answer.delete_cookie(COOKIE, path=self._path, httponly=True, samesite="strict")


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
