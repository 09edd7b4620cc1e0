"""One value of a typed property, in the one form that the store keeps."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime

from phronesis_contracts.constitution.kinds import Kind, Property
from phronesis_contracts.constitution.values import MAX_TEXT
from phronesis_contracts.constitution.writes import RegistryRefused

from .records import moment

PRIORITIES = {"low": 2, "medium": 3, "high": 4, "critical": 5}
"""Priorities in words (O-261)."""
_PRIORITIES = range(1, 6)
_MOST_TEXTS = 100


def typed(one: Property, value: object) -> object:
    """The value of a property in its form: numbers as numbers, a day as a day, a time in UTC.

    Raises:
        RegistryRefused: the value is not of the property's kind, or out of its range; `field` is the property.
    """
    return _FORMS[one.kind](one.name, value)


def text(name: str, value: object) -> str:
    """A text of a node; raises as `typed` does."""
    if not isinstance(value, str):
        raise RegistryRefused(f"{name} is a text", field=name)
    if len(value) > MAX_TEXT:
        raise RegistryRefused(f"{name} is over {MAX_TEXT} characters", field=name)
    return value


def _texts(name: str, value: object) -> list[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise RegistryRefused(f"{name} is a list of texts", field=name)
    if len(value) > _MOST_TEXTS or sum(map(len, value)) > MAX_TEXT:
        raise RegistryRefused(f"{name} has over {_MOST_TEXTS} texts, or over {MAX_TEXT} characters in all", field=name)
    return list(value)


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RegistryRefused(f"{name} is a number", field=name)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise RegistryRefused(f"{name} is too great a number", field=name)
    return number


def _share(name: str, value: object) -> float:
    number = _number(name, value)
    if not 0 <= number <= 1:
        raise RegistryRefused(f"{name} lies between 0 and 1", field=name)
    return number


def _hours(name: str, value: object) -> float:
    number = _number(name, value)
    if number < 0:
        raise RegistryRefused(f"{name} is 0 hours or more", field=name)
    return number


def _priority(name: str, value: object) -> int:
    if isinstance(value, str):
        value = {**PRIORITIES, **{str(number): number for number in _PRIORITIES}}.get(value.strip().lower())
    if isinstance(value, bool) or value not in _PRIORITIES:
        raise RegistryRefused(f"{name} is 1 to 5, 5 the highest, or one of {', '.join(PRIORITIES)}", field=name)
    return int(value)  # type: ignore[call-overload, no-any-return]  # what is in the range is a number


def _date(name: str, value: object) -> str:
    if isinstance(value, str):
        value = value.strip()
        try:
            return date.fromisoformat(value).isoformat()
        except ValueError:
            pass  # no day; perhaps a time
        try:
            when = datetime.fromisoformat(value)
            return moment(when if when.tzinfo else when.replace(tzinfo=UTC))
        except (ValueError, OverflowError):
            pass  # nor a time
    raise RegistryRefused(f"{name} is no date: write 2026-11-22 or 2026-11-22T10:00:00Z", field=name)


def _roi(name: str, value: object) -> dict[str, float]:
    if isinstance(value, dict):
        if value.keys() != {"total"}:
            raise RegistryRefused(f'{name} holds its total and nothing else: {{"total": 2.5}}', field=name)
        value = value["total"]
    return {"total": _number(name, value)}


_FORMS: dict[Kind, Callable[[str, object], object]] = {
    Kind.TEXT: text,
    Kind.TEXTS: _texts,
    Kind.NUMBER: _number,
    Kind.SHARE: _share,
    Kind.HOURS: _hours,
    Kind.PRIORITY: _priority,
    Kind.DATE: _date,
    Kind.ROI: _roi,
}
