"""What answers of this interface have in common.

Errors in OpenAI's envelope, models, and what is said of a turn beside its reply.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Literal

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response

from phronesis_contracts import BadRequest, ServiceError
from phronesis_contracts.orchestrator import Problem, Reply, Source, Turn
from phronesis_contracts.orchestrator import Usage as Used

from ..auth.authentication import Authenticator, authenticated_route
from ..http.responses import error_response as problem_of
from ..http.responses import invalid_input, json_response
from ..turns.submission import TurnRefused


class Extra(BaseModel):
    """What this platform says of an answer beside what OpenAI's API has a place for."""

    turn_id: str
    """The turn that was made of the question."""
    conversation_id: str
    """The conversation that it belongs to."""
    reasoner: str = ""
    """What thought: the name of a provider, or `extractive`, which is no model."""
    degraded: tuple[str, ...] = ()
    """What the turn had to do without; empty where nothing failed."""
    sources: tuple[Source, ...] = ()
    """What the reply rests on."""
    ignored: tuple[str, ...] = ()
    """Parts of the request that changed nothing: a history that is not known here, and where rules answered, the messages that
    say how to answer."""
    restart: bool | None = None
    """In a stream: the text before this piece is void, and the reply begins behind it."""


class Model(BaseModel):
    """An agent."""

    id: str
    """The agent's name, to give as `model`."""
    object: Literal["model"] = "model"
    """Always `model`."""
    created: int = 0
    """Always 0: an agent has no such moment."""
    owned_by: str = "phronesis"
    """Always `phronesis`."""


class Models(BaseModel):
    """The agents."""

    object: Literal["list"] = "list"
    """Always `list`."""
    data: tuple[Model, ...]
    """The agents that the caller may talk to."""


def extra_of(turn: Turn, ignored: tuple[str, ...]) -> Extra:
    said = Extra(turn_id=turn.turn_id, conversation_id=turn.conversation_id, ignored=ignored)
    reply = turn.reply
    if reply is None:
        return said
    return said.model_copy(update={"reasoner": reply.reasoner, "degraded": reply.degraded, "sources": reply.sources})


def usage_of(reply: Reply | None) -> Used:
    """What a turn used; nothing where it has no reply."""
    return reply.usage if reply else Used()


_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_FIELDS = {"agent": "model", "currentMessageText": "messages", "currentMessageMedia": "messages"}
"""Fields of a message as this face names them."""


class Fault(BaseModel):
    """What is wrong."""

    message: str
    """What happened, for people; the wording may change."""
    type: str
    """The kind of error by its status, for example `invalid_request_error`, `authentication_error` or `server_error`."""
    param: str | None = None
    """The field at fault."""
    code: str
    """Stable: the code that every other face gives too."""


class Envelope(BaseModel):
    """Why a request was not done, as OpenAI's clients read it."""

    error: Fault
    """What is wrong."""


ENVELOPES: dict[int | str, dict[str, Any]] = {"default": {"model": Envelope, "description": Envelope.__doc__}}


def fault_of(body: Mapping[str, Any]) -> Fault:
    status, field = int(body["status"]), body.get("field")
    kind = _TYPES.get(status) or ("invalid_request_error" if status < 500 else "server_error")
    head, dot, rest = (field or "").partition(".")
    named = (_FIELDS.get(head, head) + dot + rest) or None
    return Fault(message=body.get("detail") or body["code"], type=kind, param=named, code=body["code"])


def envelope_response(error: ServiceError) -> Response:
    """An error as a response, with the status and the headers that the other faces give it."""
    problem = problem_of(error)
    headers = {name: problem.headers[name] for name in ("Retry-After", "WWW-Authenticate") if name in problem.headers}
    return json_response(Envelope(error=fault_of(error.body())), error.status, headers)


def turn_error(turn: Turn) -> ServiceError | None:
    """Why an ended turn has no reply; `None` where it has one."""
    if turn.reply is not None:
        return None
    ended = Problem(code="turn_ended", status=409, detail=f"the turn ended without a reply: it is {turn.status}")
    return ServiceError.from_body((turn.problem or ended).model_dump(exclude_none=True))


def enveloped_route(authenticator: Authenticator, sends: str) -> type[Any]:
    """The class of routes that a key opens and whose every error is an envelope.

    Args:
        sends: the scope that a narrowed key needs for what is no GET.
    """

    class Enveloped(authenticated_route(authenticator, sends)):  # type: ignore[misc]
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def answered(request: Request) -> Response:
                try:
                    response: Response = await handle(request)
                except ServiceError as error:
                    response = envelope_response(error)
                except TurnRefused as refused:
                    response = envelope_response(ServiceError.from_body(refused.problem.model_dump(exclude_none=True)))
                except RequestValidationError as error:
                    response = envelope_response(invalid_input([one | {"loc": one["loc"][1:]} for one in error.errors()]))
                except HTTPException as error:
                    if error.status_code >= 500:
                        raise
                    response = _http_fault(error)
                return response

            return answered

    return Enveloped


def _http_fault(error: HTTPException) -> Response:
    body = BadRequest(str(error.detail)).body() | {"status": error.status_code}
    return json_response(Envelope(error=fault_of(body)), error.status_code, dict(error.headers or {}))
