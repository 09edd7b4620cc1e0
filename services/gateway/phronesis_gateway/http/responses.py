"""Responses: messages as JSON, and errors as problem documents (RFC 9457)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from pydantic import AfterValidator, BaseModel
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import compile_path

from phronesis_bus import trace_id, traceparent
from phronesis_contracts import BadRequest, Internal, NotFound, ServiceError, Unauthorized
from phronesis_contracts.orchestrator import Problem


def allowed_methods(app: FastAPI, path: str) -> str | None:
    """The methods of `path` as an `Allow` header states them; `None` where the description has no such path."""
    methods: dict[str, set[str]] = {}
    for route in iter_route_contexts(app.routes):
        if route.path and route.methods and route.include_in_schema:
            methods.setdefault(route.path, set()).update(route.methods)
    # A path that is named stands before one that is a pattern for it.
    for template in sorted(methods, key=lambda template: template.count("{")):
        if compile_path(template)[0].match(path):
            return ", ".join(sorted(methods[template]))
    return None


MEDIA_TYPE = "application/problem+json"
_CODES = {
    400: "bad_request",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    413: "too_large",
    415: "unsupported_media",
}
_PASSING = (429, 503)
_RETRY_AFTER = 1.0
_FAULTS = 20
"""Faults of one input that are told."""


def problem_response(body: dict[str, Any], headers: dict[str, str] | None = None, **more: Any) -> Response:
    """A response that states a problem.

    Args:
        body: `code`, `status` and `detail`, and `field` and `retry_after` where known: a `ServiceError`'s body.
        more: further members of the document; those that are `None` are left out.
    """
    status = int(body["status"])
    document = {
        "type": f"urn:phronesis:problem:{body['code']}",
        "title": HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Error",
        **body,
        "trace_id": trace_id(traceparent()),
        **more,
    }
    headers = dict(headers or {})
    retry_after = body.get("retry_after")
    if retry_after is None and status in _PASSING:
        retry_after = _RETRY_AFTER
    if retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(retry_after)))
    content = json.dumps({k: v for k, v in document.items() if v is not None}).encode()
    return Response(content, status, headers, MEDIA_TYPE)


def error_response(error: ServiceError, **more: Any) -> Response:
    return problem_response(error.body(), {"WWW-Authenticate": "Bearer"} if isinstance(error, Unauthorized) else None, **more)


def bearer_challenge(headers: Headers) -> dict[str, str]:
    """How a caller that was not let in is told so (RFC 6750): a fault is named only where something was presented."""
    return {"WWW-Authenticate": 'Bearer error="invalid_token"' if "authorization" in headers else "Bearer"}


def turn_problem_response(found: Problem, **more: Any) -> Response:
    """The problem that a turn ended with, with its own code and status."""
    status = found.status if 400 <= found.status <= 599 else Internal.status
    return problem_response(found.model_dump(exclude_none=True) | {"status": status}, **more)


def invalid_input(errors: Sequence[Any]) -> BadRequest:
    """The faults of a validation, without the values at fault. `field` is the first one's; where there are several, the text
    names each field."""
    faults = [
        (".".join(str(part) for part in fault["loc"]), str(fault["msg"]).removeprefix("Value error, ")) for fault in errors
    ]
    place, said = faults[0]
    if len(faults) > 1:
        said = "; ".join(f"{where}: {what}" if where else what for where, what in faults[:_FAULTS])
    return BadRequest(said, field=place or None)


def install_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(ServiceError, _service_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _any_error)


async def _service_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ServiceError)
    return (
        problem_response(error.body(), bearer_challenge(request.headers))
        if isinstance(error, Unauthorized)
        else error_response(error)
    )


async def _validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    # Only the first part says where in the request it is; a field of a body may be called `query` too.
    return error_response(invalid_input([fault | {"loc": fault["loc"][1:]} for fault in error.errors()]))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, f"http_{error.status_code}")
    body = {"code": code, "status": error.status_code, "detail": error.detail}
    headers = dict(error.headers or {})
    # A route knows its own methods alone, and a path may have several routes.
    if error.status_code == 405 and (allowed := allowed_methods(request.app, request.url.path)):
        headers["Allow"] = allowed
    return problem_response(body, headers)


async def _any_error(request: Request, error: Exception) -> Response:
    return error_response(Internal("the gateway failed"))


_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class ProblemDocument(BaseModel):
    """Why a request was not done (RFC 9457)."""

    type: str
    """Which problem it is, as a URN; it ends in `code`."""
    title: str
    """The status in words."""
    status: int
    """The HTTP status."""
    code: str
    """Stable: programs may depend on it."""
    detail: str
    """For people: it may change."""
    field: str | None = None
    """The part of the input that is at fault."""
    retry_after: float | None = None
    """Seconds after which a repeat may succeed."""
    trace_id: str | None = None
    """Id of the request's trace, for those who read the logs."""


PROBLEMS: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": ProblemDocument.__doc__,
        "content": {MEDIA_TYPE: {"schema": ProblemDocument.model_json_schema()}},
    }
}


def route_responses(model: type[BaseModel], status: int = 200) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": model, "description": (model.__doc__ or "").partition("\n")[0]}}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For a route's description: errors that it answers with beside those of every route of its kind."""
    return {status: {} for status in statuses}


def json_response(body: BaseModel, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(body.__pydantic_serializer__.to_json(body), status, headers, "application/json")


def _check_id(id: str) -> str:
    if not _ID.fullmatch(id):
        raise NotFound("there is no such thing")
    return id


ID_FORM = AfterValidator(_check_id)
"""Of an id in a path. What cannot be one is as unknown as one that is nobody's."""
