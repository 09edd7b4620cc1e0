"""Checks of one value against what the ontology declares, with the nearest legal choice in the refusal."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from datetime import date

from phronesis_contracts import BadRequest

from .ontology import Kind, Property

LONGEST_STRING = 1_000
LONGEST_TEXT = 20_000
"""Characters; the most that the memory service takes as one item."""


def nearest(given: str, choices: Iterable[str]) -> str:
    """The end of a sentence that names the choice most like `given`, or all of them where they are few."""
    known = list(choices)
    by_folded = {choice.casefold(): choice for choice in known}
    close = difflib.get_close_matches(given[:100].casefold(), by_folded, n=1, cutoff=0.5)
    if close:
        return f"; the nearest is {by_folded[close[0]]}"
    return f"; there are {', '.join(known)}" if 0 < len(known) <= 10 else ""


def value(declared: Property, given: object, path: str) -> str | float:
    """The value as it is stored: numbers as floats, dates as ISO text.

    Raises:
        BadRequest: it has another type, or stands outside the declared range or set.
    """
    match declared.kind:
        case Kind.NUMBER:
            return _number(declared, given, path)
        case Kind.DATE:
            return _date(given, path)
        case Kind.STRING:
            return _string(declared, given, path, LONGEST_STRING)
        case Kind.TEXT:
            return _string(declared, given, path, LONGEST_TEXT)


def _number(declared: Property, given: object, path: str) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise BadRequest("a number is needed", field=path)
    try:
        number = float(given)
    except OverflowError as error:
        raise BadRequest("the number is too great", field=path) from error
    if not math.isfinite(number):
        raise BadRequest("a finite number is needed", field=path)
    low, high = declared.lowest, declared.highest
    if low is not None and number < low:
        raise BadRequest(f"the range is {low:g} to {high:g}; the nearest is {low:g}", field=path)
    if high is not None and number > high:
        raise BadRequest(f"the range is {low:g} to {high:g}; the nearest is {high:g}", field=path)
    return number


def _date(given: object, path: str) -> str:
    if isinstance(given, date):
        return given.isoformat()[:10]
    if isinstance(given, str) and len(given) == 10:
        try:
            return date.fromisoformat(given).isoformat()
        except ValueError as error:
            raise BadRequest("there is no such day", field=path) from error
    raise BadRequest("a date is needed, as YYYY-MM-DD", field=path)


def _string(declared: Property, given: object, path: str, longest: int) -> str:
    if not isinstance(given, str):
        raise BadRequest("text is needed", field=path)
    if len(given) > longest:
        raise BadRequest(f"the text is over {longest} characters", field=path)
    if declared.choices and given not in declared.choices:
        raise BadRequest(f"no such choice{nearest(given, declared.choices)}", field=path)
    return given
