"""Requests that a store can be asked with."""

from __future__ import annotations

from typing import TypeVar

from phronesis_contracts import BadRequest, Message

from ..domain.limits import is_storable

Request = TypeVar("Request", bound=Message)


def storable(request: Request) -> Request:
    """The request itself.

    Raises:
        BadRequest: a field of it holds what no store takes, such as a NUL character.
    """
    for name, value in request.model_dump(mode="json").items():
        if not is_storable(value):
            raise BadRequest("no NUL characters", field=name)
    return request
