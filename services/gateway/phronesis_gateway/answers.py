"""Answers: messages as JSON, and the problem document as the API's description states it."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import Path
from pydantic import AfterValidator, BaseModel
from starlette.responses import Response

from phronesis_contracts import NotFound

from .problems import MEDIA_TYPE

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class ProblemDocument(BaseModel):
    """Why a request was not done (RFC 9457)."""

    type: str
    title: str
    status: int
    code: str
    """Stable: programs may depend on it."""
    detail: str
    """For people: it may change."""
    field: str | None = None
    """The part of the input that is at fault."""
    retry_after: float | None = None
    """Seconds after which a repeat may succeed."""
    trace_id: str | None = None


PROBLEMS: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": ProblemDocument.__doc__,
        "content": {MEDIA_TYPE: {"schema": ProblemDocument.model_json_schema()}},
    }
}


def answers(model: type[BaseModel], status: int = 200) -> dict[int | str, dict[str, Any]]:
    """The description of a route that answers with `model`."""
    return {status: {"model": model, "description": (model.__doc__ or "").partition("\n")[0]}}


def as_json(body: BaseModel, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """`body` as a response."""
    return Response(body.__pydantic_serializer__.to_json(body), status, headers, "application/json")


def _possible(id: str) -> str:
    if not _ID.fullmatch(id):
        raise NotFound("there is no such thing")
    return id


Id = Annotated[str, Path(), AfterValidator(_possible)]
"""An id in a path. What cannot be one is as unknown as one that is nobody's."""
