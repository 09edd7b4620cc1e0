"""The way into the console's routes: by a session and from its own pages; and answers and errors as guarded HTML."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

import htpy as h
from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.responses import Response

from phronesis_contracts import Principal, ServiceError
from phronesis_contracts.orchestrator import Problem
from phronesis_gateway.door import StrictRequest
from phronesis_gateway.problems import invalid
from phronesis_gateway.scopes import WRITE, require
from phronesis_gateway.submission import Refused

from .session import Sessions, from_own_page

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


def as_html(node: h.Renderable, status: int = 200) -> Response:
    """A page or a part of one, with what keeps foreign scripts, styles and frames out."""
    return Response(str(node), status, _GUARDS, "text/html; charset=utf-8")


def entered(sessions: Sessions, failed: Callable[[Problem], h.Element]) -> type[APIRoute]:
    """The class of routes that a session opens; who came in is checked before a body is read.

    Args:
        sessions: tells who is signed in.
        failed: shows a problem.
    """

    class Entered(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def answered(request: Request) -> Response:
                try:
                    request.state.who = await sessions.holder(request)
                    if request.method != "GET":
                        from_own_page(request.headers)
                        require(request.state.who, WRITE)
                    return await handle(StrictRequest(request.scope, request.receive))
                except Refused as refused:
                    found = refused.problem
                except RequestValidationError as error:
                    found = problem_of(invalid([each | {"loc": each["loc"][1:]} for each in error.errors()]))
                except ServiceError as error:
                    found = problem_of(error)
                return as_html(failed(found), found.status)

            return answered

    return Entered


def problem_of(error: ServiceError) -> Problem:
    """An error as what is shown of it."""
    return Problem(**error.body())


async def _caller(request: Request) -> Principal:
    who: Principal = request.state.who
    return who


Person = Annotated[Principal, Depends(_caller)]
"""Who is signed in, on an entered route."""
