"""Errors as OpenAI's clients read them: an envelope with a message, a type, the field at fault and a stable code."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response

from phronesis_contracts import BadRequest, ServiceError
from phronesis_contracts.orchestrator import Problem, Turn
from phronesis_gateway.answers import as_json
from phronesis_gateway.door import Door, keyed
from phronesis_gateway.problems import invalid
from phronesis_gateway.problems import refusal as problem_of
from phronesis_gateway.submission import Refused

_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_FIELDS = {"agent": "model", "currentMessageText": "messages", "currentMessageMedia": "messages"}
"""Fields of a message as this face names them."""


class Fault(BaseModel):
    """What is wrong."""

    message: str
    type: str
    param: str | None = None
    """The field at fault."""
    code: str
    """Stable: the code that every other face gives too."""


class Envelope(BaseModel):
    """Why a request was not done, as OpenAI's clients read it."""

    error: Fault


ENVELOPES: dict[int | str, dict[str, Any]] = {"default": {"model": Envelope, "description": Envelope.__doc__}}


def fault(body: Mapping[str, Any]) -> Fault:
    """What a `ServiceError`'s body, or a turn's problem, says."""
    status, field = int(body["status"]), body.get("field")
    kind = _TYPES.get(status) or ("invalid_request_error" if status < 500 else "server_error")
    head, dot, rest = (field or "").partition(".")
    named = (_FIELDS.get(head, head) + dot + rest) or None
    return Fault(message=body.get("detail") or body["code"], type=kind, param=named, code=body["code"])


def refusal(error: ServiceError) -> Response:
    """An error as a response, with the status and the headers that the other faces give it."""
    told = problem_of(error)
    headers = {name: told.headers[name] for name in ("Retry-After", "WWW-Authenticate") if name in told.headers}
    return as_json(Envelope(error=fault(error.body())), error.status, headers)


def why(turn: Turn) -> ServiceError | None:
    """Why an ended turn has no reply; `None` where it has one."""
    if turn.reply is not None:
        return None
    ended = Problem(code="turn_ended", status=409, detail=f"the turn ended without a reply: it is {turn.status}")
    return ServiceError.from_body((turn.problem or ended).model_dump(exclude_none=True))


def enveloped(door: Door, sends: str) -> type[Any]:
    """The class of routes that a key opens and whose every error is an envelope.

    Args:
        door: lets callers in.
        sends: the scope that a narrowed key needs for what is no GET.
    """

    class Enveloped(keyed(door, sends)):  # type: ignore[misc]
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def answered(request: Request) -> Response:
                try:
                    response: Response = await handle(request)
                except ServiceError as error:
                    response = refusal(error)
                except Refused as refused:
                    response = refusal(ServiceError.from_body(refused.problem.model_dump(exclude_none=True)))
                except RequestValidationError as error:
                    response = refusal(invalid([one | {"loc": one["loc"][1:]} for one in error.errors()]))
                except HTTPException as error:
                    if error.status_code >= 500:
                        raise
                    response = _http(error)
                return response

            return answered

    return Enveloped


def _http(error: HTTPException) -> Response:
    body = BadRequest(str(error.detail)).body() | {"status": error.status_code}
    return as_json(Envelope(error=fault(body)), error.status_code, dict(error.headers or {}))
