"""The console's own routes: its files, signing in and signing out. All that it shows comes by the API's public routes."""

from __future__ import annotations

import asyncio
import gzip
import mimetypes
from functools import lru_cache
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import FileResponse, Response

from phronesis_contracts import NotFound, Unauthorized

from ..auth.authentication import Authenticator, StrictRequest
from ..auth.keys import SessionStore, is_secret
from ..auth.sessions import begin_session, end_session, from_own_page, session_of

PATH = "/console"
_WEB = Path(__file__).parent / "web"
_FOR_GOOD = {"Cache-Control": "public, max-age=31536000, immutable"}
_TEXTS = frozenset({".css", ".js", ".json"})
"""Kinds of files that are sent compressed."""
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
_GUARDS = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


def router(authenticator: Authenticator, store: SessionStore) -> APIRouter:
    """The routes.

    Args:
        store: where it is kept who is signed in.
    """
    routes = APIRouter(include_in_schema=False)

    @routes.post(PATH + "/session")
    async def sign_in(request: Request) -> Response:
        from_own_page(request.headers)
        body = await StrictRequest(request.scope, request.receive).json()
        given = body.get("key") if isinstance(body, dict) else None
        if not isinstance(given, str) or not is_secret(given.strip()):
            raise Unauthorized("this is no key: a key begins with phr_ and has 47 characters")
        who, answer = await authenticator.by_key(f"Bearer {given.strip()}"), Response(status_code=204)
        await begin_session(store, who, request.headers, answer)
        return answer

    @routes.delete(PATH + "/session")
    async def sign_out(request: Request, everywhere: bool = False) -> Response:
        answer, session = Response(status_code=204), session_of(request.headers)
        if session is not None:
            await end_session(store, session, answer, everywhere=everywhere)
        return answer

    @routes.get(PATH + "/assets/{name}")
    async def get_asset(request: Request, name: str) -> Response:
        if name not in _assets():
            raise NotFound("there is no such file")
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        if "-" not in name:
            return FileResponse(_WEB / name, media_type=kind, headers={"Cache-Control": "no-cache"})
        # The names of these change with what is in them.
        if Path(name).suffix not in _TEXTS or not _takes_gzip(request.headers.get("accept-encoding", "")):
            return FileResponse(_WEB / name, media_type=kind, headers=_FOR_GOOD | {"Vary": "Accept-Encoding"})
        content = await asyncio.to_thread(_compressed, name)
        return Response(content, media_type=kind, headers=_FOR_GOOD | {"Vary": "Accept-Encoding", "Content-Encoding": "gzip"})

    @routes.get(PATH)
    @routes.get(PATH + "/{path:path}")
    async def open_page(path: str = "") -> Response:
        if path.startswith("assets/"):
            raise NotFound("there is no such file")
        return FileResponse(_WEB / "index.html", media_type="text/html", headers=_GUARDS)

    return routes


def _takes_gzip(accepted: str) -> bool:
    """Whether an `Accept-Encoding` names gzip, and does not refuse it (`gzip;q=0`)."""
    for coding in accepted.lower().split(","):
        name, _, weight = coding.partition(";")
        if name.strip() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


@lru_cache(maxsize=128)
def _compressed(name: str) -> bytes:
    return gzip.compress((_WEB / name).read_bytes(), mtime=0)


def _assets() -> frozenset[str]:
    # Looked up each time, so that a page which was built anew finds its files without a restart.
    return frozenset(each.name for each in _WEB.iterdir())
