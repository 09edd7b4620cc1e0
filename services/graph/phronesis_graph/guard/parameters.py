"""What a caller's values may be, and those that a statement needs."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from .notes import OWN
from .refusals import Rule, refused

MAX_PARAMETERS = 50
MAX_VALUES = 2_000
"""Numbers, strings and keys in all values together."""
MAX_CHARACTERS = 100_000
"""Of all strings together."""
MAX_NESTING = 4
_BITS = 2**63


def hold(parameters: Mapping[str, object]) -> None:
    """Hold a caller's values against the rules.

    Raises:
        QueryRefused: a name is the service's own, or a value is too large, too deep, or not one a store takes.
    """
    if len(parameters) > MAX_PARAMETERS:
        raise refused(Rule.PARAMETER, f"at most {MAX_PARAMETERS} parameters; pass a list")
    for key in parameters:
        if not isinstance(key, str) or not key.isascii() or not key.isidentifier():
            raise refused(Rule.PARAMETER, "a parameter's name is letters, digits and underscores")
        if key.lower().startswith(OWN):
            raise refused(Rule.PARAMETER, f"names that begin with {OWN} are the service's own; choose another")
    values = characters = 0
    waiting: list[tuple[object, int]] = [(value, 0) for value in parameters.values()]
    while waiting:
        value, depth = waiting.pop()
        values += 1
        if values > MAX_VALUES or depth > MAX_NESTING:
            raise refused(Rule.PARAMETER, f"at most {MAX_VALUES} values, nested at most {MAX_NESTING} deep; ask in parts")
        match value:
            case None | bool():
                continue
            case int():
                if not -_BITS <= value < _BITS:
                    raise refused(Rule.PARAMETER, "a whole number has 64 bits")
            case float():
                if not math.isfinite(value):
                    raise refused(Rule.PARAMETER, "a number is finite")
            case str():
                characters += _characters(value)
            case list() | tuple():
                _room(len(value))
                waiting.extend((part, depth + 1) for part in value)
            case Mapping():
                _room(len(value))
                waiting.extend((part, depth + 1) for part in (*value, *value.values()))
                if not all(isinstance(part, str) for part in value):
                    raise refused(Rule.PARAMETER, "the keys of a map are strings")
            case _:
                raise refused(Rule.PARAMETER, "a value is null, true, false, a number, a string, a list or a map")
        if characters > MAX_CHARACTERS:
            raise refused(Rule.PARAMETER, f"strings have at most {MAX_CHARACTERS} characters together; ask in parts")


def _room(size: int) -> None:
    if size > MAX_VALUES:
        raise refused(Rule.PARAMETER, f"at most {MAX_VALUES} values; ask in parts")


def _characters(value: str) -> int:
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise refused(Rule.PARAMETER, "a string holds whole characters and no NUL")
    return len(value)


def need(names: Collection[str], limits: Collection[str], parameters: Mapping[str, object], limit: int) -> None:
    """Hold the values that a statement uses.

    Raises:
        QueryRefused: one is missing, or one behind LIMIT is not a whole number up to `limit`.
    """
    for missing in sorted(set(names) - parameters.keys()):
        raise refused(Rule.PARAMETER, f"${missing[:60]} has no value; pass it in parameters")
    for name in limits:
        value = parameters[name]
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= limit:
            raise refused(Rule.LIMIT, f"${name[:60]} is a whole number from 0 to {limit}")
