"""Errors as problem documents (RFC 9457): the gateway's one translator."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response

from phronesis_bus import trace_id, traceparent
from phronesis_contracts import BadRequest, Internal, ServiceError, Unauthorized
from phronesis_contracts.orchestrator import Problem

from .description import methods

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


def problem(body: dict[str, Any], headers: dict[str, str] | None = None, **more: Any) -> Response:
    """A response that states a problem.

    Args:
        body: `code`, `status` and `detail`, and `field` and `retry_after` where known: a `ServiceError`'s body.
        headers: headers of the response.
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


def refusal(error: ServiceError, **more: Any) -> Response:
    """A `ServiceError` as a response."""
    return problem(error.body(), {"WWW-Authenticate": "Bearer"} if isinstance(error, Unauthorized) else None, **more)


def challenge(headers: Headers) -> dict[str, str]:
    """How a caller that was not let in is told so (RFC 6750): a fault is named only where something was presented."""
    return {"WWW-Authenticate": 'Bearer error="invalid_token"' if "authorization" in headers else "Bearer"}


def turn_problem(found: Problem, **more: Any) -> Response:
    """The problem that a turn ended with, with its own code and status."""
    status = found.status if 400 <= found.status <= 599 else Internal.status
    return problem(found.model_dump(exclude_none=True) | {"status": status}, **more)


def invalid(errors: Sequence[Any]) -> BadRequest:
    """The faults of a validation, without the values at fault. `field` is the first one's; where there are several, the text
    names each field (O-095)."""
    told = [(".".join(str(part) for part in fault["loc"]), str(fault["msg"]).removeprefix("Value error, ")) for fault in errors]
    place, said = told[0]
    if len(told) > 1:
        said = "; ".join(f"{where}: {what}" if where else what for where, what in told[:_FAULTS])
    return BadRequest(said, field=place or None)


def install(app: FastAPI) -> None:
    """Let every error of `app` leave as a problem document."""
    app.add_exception_handler(ServiceError, _service_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _any_error)


async def _service_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ServiceError)
    return problem(error.body(), challenge(request.headers)) if isinstance(error, Unauthorized) else refusal(error)


async def _validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    # Only the first part says where in the request it is; a field of a body may be called `query` too.
    return refusal(invalid([fault | {"loc": fault["loc"][1:]} for fault in error.errors()]))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, f"http_{error.status_code}")
    body = {"code": code, "status": error.status_code, "detail": error.detail}
    headers = dict(error.headers or {})
    # A route knows its own methods alone, and a path may have several routes.
    if error.status_code == 405 and (allowed := methods(request.app, request.url.path)):
        headers["Allow"] = allowed
    return problem(body, headers)


async def _any_error(request: Request, error: Exception) -> Response:
    return refusal(Internal("the gateway failed"))
