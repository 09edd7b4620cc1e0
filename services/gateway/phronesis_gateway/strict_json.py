"""JSON without its loose ends: what two parsers could read in two ways is refused."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from phronesis_contracts import BadRequest

MAX_DEPTH = 32
"""Arrays and objects inside each other."""
_INT64 = 2**63


def strict_json(data: bytes) -> Any:
    """The value in `data`.

    Raises:
        BadRequest: it is no UTF-8 or no JSON; an object has a key twice; a number is NaN, infinite or beyond 64 bits; a
            text holds NUL or half a surrogate pair; it is nested deeper than `MAX_DEPTH`. The detail never quotes it.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRequest(f"the body is not UTF-8 at byte {error.start}") from error
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite, parse_int=_int64)
    except json.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON at character {error.pos}") from error
    except RecursionError as error:
        raise _too_deep() from error
    # Only escapes can bring in what the decoder did not see, and only brackets depth: most bodies need no walk.
    escapes = "\\u" in text
    if escapes or text.count("[") + text.count("{") > MAX_DEPTH:
        _walk(value, texts=escapes)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise BadRequest("an object of the body has a key twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise BadRequest("a number of the body is not finite")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise BadRequest("a number of the body is not finite")
    return number


def _int64(text: str) -> int:
    if len(text) > 20 or not -_INT64 <= (number := int(text)) < _INT64:
        raise BadRequest("a number of the body is beyond 64 bits")
    return number


def _walk(value: Any, *, texts: bool) -> None:
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH + 1):
        inner: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                if texts:
                    for key in one:
                        _check_text(key)
                inner.extend(one.values())
            elif isinstance(one, list):
                inner.extend(one)
            elif texts and isinstance(one, str):
                _check_text(one)
        if not inner:
            return
        level = inner
    raise _too_deep()


def _check_text(text: str) -> None:
    if "\x00" in text:
        raise BadRequest("a text of the body holds NUL")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadRequest("a text of the body holds half a surrogate pair") from error


def _too_deep() -> BadRequest:
    return BadRequest(f"the body is nested deeper than {MAX_DEPTH}")
