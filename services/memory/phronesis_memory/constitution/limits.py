"""Numbers with a limit in a text: at least 50 hours, at most 10 percent."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_FROM = r"at least|no less than|not less than|no fewer than|a minimum of|minimum|more than|over|above|exceeding|≥|>="
_TO = (
    r"at most|no more than|not more than|not exceed|never exceed|a maximum of|maximum|up to|under|below|less than|fewer than"
    r"|within|≤|<="
)
_STRICT = frozenset({"more than", "over", "above", "exceeding", "under", "below", "less than", "fewer than"})
_LIMIT = re.compile(
    rf"(?P<from>{_FROM})?(?P<to>{_TO})?\s*(?P<money>[€$£])?\s*(?P<number>\d+(?:[.,]\d+)*)\s*(?P<scale>k|thousand|m|million)?\b\s*"
    r"(?P<unit>%|[^\W\d_]+)?",
    re.IGNORECASE,
)
_WORDS = dict(
    zip(
        "one two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty hundred".split(),
        (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 20, 30, 40, 50, 100),
        strict=True,
    )
)
_WORD = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b", re.IGNORECASE)
_SCALES = {"k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6}


@dataclass(frozen=True)
class Limit:
    """Numbers from `low` to `high` of a unit."""

    low: float
    high: float
    unit: str
    strict: bool = False
    """Whether the limits themselves are outside."""

    def excludes(self, other: Limit) -> bool:
        """Whether no number is within both."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return low > high or (low == high and (self.strict or other.strict))


def limits(text: str) -> tuple[Limit, ...]:
    """The limits that a text states, each with its unit; a number alone is none."""
    found = []
    for match in _LIMIT.finditer(_WORD.sub(lambda word: str(_WORDS[word[0].casefold()]), text)):
        low, high = match["from"], match["to"]
        unit = _unit(match)
        if unit is None or (low is None) == (high is None):
            continue
        number = float(match["number"].replace(",", "")) * _SCALES.get((match["scale"] or "").casefold(), 1.0)
        strict = (low or high).casefold() in _STRICT
        found.append(Limit(number, math.inf, unit, strict) if low else Limit(-math.inf, number, unit, strict))
    return tuple(found)


def _unit(match: re.Match[str]) -> str | None:
    if match["money"]:
        return match["money"]
    unit = (match["unit"] or "").casefold()
    if unit in ("%", "percent"):
        return "percent"
    return unit.removesuffix("s") or None
