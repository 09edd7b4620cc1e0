"""Tables of rows, as an answer gives them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import htpy as h

MOST = 200
"""Rows of a table that are shown; it says how many there are."""
_MANY = 10_000
"""From here on a number's thousands are set apart; below it may be a year."""


def table(title: str, rows: Sequence[dict[str, Any]], columns: object = None) -> h.Element:
    """The rows under a caption.

    Args:
        title: the caption.
        rows: the rows; what one lacks is shown as not known.
        columns: names of fields in their order; all that the rows have by default.
    """
    shown = rows[:MOST]
    fields = _fields(columns) or list(dict.fromkeys(field for row in shown for field in row))
    return h.div(".rows", tabindex="0", role="region", aria_label=title)[
        h.table[
            h.caption[title, f" (the first {MOST:,} of {len(rows):,} rows)" if len(rows) > MOST else None],
            h.thead[h.tr[(h.th(scope="col")[field.replace("_", " ")] for field in fields)]],
            h.tbody[(h.tr[(_cell(row.get(field)) for field in fields)] for row in shown)],
        ]
    ]


def written(value: object) -> str:
    """A value as people read it; what is not known is a dash, and never zero."""
    match value:
        case None | "":
            return "—"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}" if abs(value) >= _MANY else str(value)
        case float():
            return f"{value:,.2f}".rstrip("0").rstrip(".") if abs(value) >= 1 else f"{value:.3g}"
        case str():
            return value
        case list() | tuple():
            return ", ".join(written(each) for each in value)
        case _:
            return json.dumps(value, ensure_ascii=False, default=str)


def _cell(value: object) -> h.Element:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return h.td(class_={"number": number})[written(value)]


def _fields(columns: object) -> list[str]:
    return [each for each in columns if isinstance(each, str)] if isinstance(columns, list) else []
