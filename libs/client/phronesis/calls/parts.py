"""What the calls are made of: checked input, ids in paths, lists in answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import ValidationError

from phronesis_contracts import BadRequest, Message

M = TypeVar("M", bound=Message)


def segment(text: str, name: str) -> str:
    """`text` as one segment of a path."""
    if not text or text in (".", ".."):
        raise BadRequest(f"{name} is not an id", field=name)
    return quote(text, safe="")


def checked(model: type[M], fields: Mapping[str, Any]) -> M:
    """A message of these fields, or a `BadRequest` that names the one at fault."""
    try:
        return model.model_validate(fields)
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_context=False)[0]
        raise BadRequest(first["msg"], field=".".join(map(str, first["loc"])) or None) from exc


def each(model: type[M], name: str) -> Callable[[Any], tuple[M, ...]]:
    """Parses the list that an answer holds under `name`."""
    return lambda body: tuple(model.model_validate(one) for one in body[name])
