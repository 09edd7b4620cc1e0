"""Reading the rows of a chart: fields that are named and there, figures, and labels.

Every text is escaped for Plotly, which reads a small HTML of its own in labels and would make links of it.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]

_LONGEST_LABEL = 80


class NotDrawable(ValueError):
    """A chart that its own fields or rows do not allow; the text says why, for people."""


def field(config: Row, key: str, rows: Sequence[Row]) -> str:
    """The field that `config` names under `key`.

    Raises:
        NotDrawable: it names none, or no row has it.
    """
    name = config.get(key)
    if not isinstance(name, str) or not name:
        raise NotDrawable(f"`{key}` names no field")
    return there(name, rows)


def there(name: str, rows: Sequence[Row]) -> str:
    """The name of a field that at least one row has.

    Raises:
        NotDrawable: none has it.
    """
    if not any(name in row for row in rows):
        raise NotDrawable(f"no row has the field {name!r}")
    return name


def number(value: object) -> int | float | None:
    """A number as it can be drawn; what is not one is a gap, and never zero."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:  # an integer that no float holds
        return None


def numbers(rows: Sequence[Row], field: str) -> list[int | float | None]:
    """The figures of a field, with gaps.

    Raises:
        NotDrawable: there are gaps only.
    """
    found = [number(row.get(field)) for row in rows]
    if all(each is None for each in found):
        raise NotDrawable(f"there are no figures in {field!r}")
    return found


def text(value: object) -> str:
    """A text for the library, escaped and of a length that fits."""
    whole = "unknown" if value is None else str(value)
    return html.escape(whole if len(whole) <= _LONGEST_LABEL else whole[: _LONGEST_LABEL - 1] + "…", quote=False)


def labels(rows: Sequence[Row], field: str) -> list[str]:
    """The rows' labels, each one once: the library would draw two rows with one label at one place."""
    taken: set[str] = set()
    return [_once(text(row.get(field)), taken) for row in rows]


def names(rows: Sequence[Row], measures: set[str]) -> list[str]:
    """What to call each row: its first text that is no measure, or its place."""
    return [
        next((text(each) for key, each in row.items() if key not in measures and isinstance(each, str)), str(place))
        for place, row in enumerate(rows, 1)
    ]


def _once(label: str, taken: set[str]) -> str:
    made = next(made for made in (label, *(f"{label} ({n})" for n in range(2, len(taken) + 3))) if made not in taken)
    taken.add(made)
    return made
