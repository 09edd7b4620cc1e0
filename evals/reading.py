"""Reading a reply as a person would: its numbers, dates and names, whatever their format.

Figures that belong to something else are left out: years, dates, the numbers of a list, and digits inside names.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import combinations

_NUMBER = re.compile(
    r"(?<![\w.,])(?P<sign>[-−–]\s?)?(?P<digits>\d{1,3}(?:[ \u00a0\u202f']\d{3})+(?:[.,]\d+)?|\d[\d.,]*\d|\d)"
    r"(?P<percent>\s?(?:%|per ?cent|percent|prozent))?"
    r"(?P<scale>\s?-?(?:billions?|bn|milliarden?|mrd\.?|millions?|millionen?|mio\.?|mn|m|thousand|tausend|k)(?![\w]))?"
    r"(?![\w])",
    re.IGNORECASE,
)
_SCALES = {"b": 1e9, "milliard": 1e9, "mrd": 1e9, "million": 1e6, "mio": 1e6, "mn": 1e6, "m": 1e6, "t": 1e3, "k": 1e3}
_WORDS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12, "null": 0, "eins": 1, "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "sieben": 7,
    "acht": 8, "neun": 9, "zehn": 10, "elf": 11, "zwölf": 12, "half": 0.5, "twice": 2.0,
}  # fmt: skip
_WORD = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b", re.IGNORECASE)
_NONE = re.compile(r"\b(?:none|no|not any|not a single|nobody|keine?[rsnm]?|nichts)\b", re.IGNORECASE)
_LIST_MARK = re.compile(r"^\s*(?:\d{1,3}[.)]|#\d+)\s+", re.MULTILINE)
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar", "february feb februar", "march mar märz", "april apr", "may mai", "june jun juni",
            "july jul juli", "august aug", "september sep sept", "october oct oktober okt", "november nov",
            "december dec dezember dez",
        ), start=1
    )
    for name in names.split()
}  # fmt: skip
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DATES = (
    (re.compile(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b"), "ymd"),
    (re.compile(r"\b(\d{1,2})[./](\d{1,2})[./](\d{4})\b"), "dmy"),
    (re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+)?({_MONTH})\.?,?\s+(\d{{4}})\b", re.IGNORECASE), "dmy"),
    (re.compile(rf"\b({_MONTH})\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?,?\s+(\d{{4}})\b", re.IGNORECASE), "mdy"),
)
_YEAR = re.compile(r"(?<![\w.,/-])((?:19|20|21)\d\d)(?![\w]|[.,]\d|\s?(?:%|million|bn|billion))")
_YEARS = (1800, 2199)


@dataclass(frozen=True)
class Number:
    """A figure as it was written.

    Args:
        value: with its scale applied.
        step: half a unit of the last digit that is shown: how far the true value may be away by rounding.
        digits: significant digits.
        scaled: whether a word such as *billion* stood behind it.
        percent: whether a percent sign stood behind it.
        at: where it stands.
    """

    value: float
    step: float
    digits: int
    scaled: bool
    percent: bool
    at: int


def numbers(text: str, masked: Iterable[str] = ()) -> list[Number]:
    """Every figure of a text, each reading of an ambiguous one (1.234 is a thousand in German and one and a bit in English).

    Args:
        text: a reply.
        masked: names whose digits are no figures.
    """
    text = mask(_without_dates(_LIST_MARK.sub(lambda found: " " * len(found[0]), text)), masked)
    found: list[Number] = []
    for match in _NUMBER.finditer(text):
        scale = _scale(match["scale"])
        for plain in _plain(match["digits"]):
            value = float(plain)
            decimals = len(plain.partition(".")[2])
            if not match["scale"] and not match["percent"] and not decimals and _is_year(match["digits"], plain):
                continue
            sign = -1.0 if match["sign"] else 1.0
            digits = len(plain.replace(".", "").strip("0")) if decimals == 0 else len(plain.replace(".", "").lstrip("0"))
            for factor in {scale, 1.0} if (match["scale"] or "").strip(" -").lower() in ("m", "k", "mn") else {scale}:
                step, scaled = 0.5 * 10**-decimals * factor, factor != 1.0
                found.append(Number(sign * value * factor, step, digits, scaled, bool(match["percent"]), match.start()))
    found += [
        Number(_WORDS[word[0].lower()], 0.0, 1, False, False, word.start())
        for word in _WORD.finditer(text)
        if not re.match(r"\s+of\b", text[word.end() :]) or word[0].lower() != "one"
    ]
    return sorted(found, key=lambda number: number.at)


def says_none(text: str) -> bool:
    """Whether a text says that there are none."""
    return _NONE.search(text) is not None


def dates(text: str) -> list[date]:
    """Every complete date of a text."""
    found = []
    for pattern, order in _DATES:
        for match in pattern.finditer(text):
            parts = dict(zip(order, match.groups(), strict=True))
            month = _MONTHS.get(parts["m"].lower()) or (int(parts["m"]) if parts["m"].isdigit() else 0)
            try:
                found.append(date(int(parts["y"]), month, int(parts["d"])))
            except ValueError:
                continue
    return found


def years(text: str) -> list[int]:
    """Every year that a text names, alone or in a date."""
    return [int(year) for year in _YEAR.findall(text)] + [day.year for day in dates(text)]


def normal(text: str) -> str:
    """A text without mark-up, case, accents and kinds of dashes, quotes and spaces."""
    text = unicodedata.normalize("NFKD", text)
    text = "".join(letter for letter in text if not unicodedata.combining(letter))
    text = re.sub(r"[*_`\"“”„»«]+", "", text.replace("’", "'").replace("&", " and "))
    text = re.sub(r"[-–—−‑/]", " ", text)
    return re.sub(r"\s+", " ", text).strip().casefold()


def contains(text: str, phrase: str) -> bool:
    """Whether a phrase stands in a text as whole words. Short capitals such as HO are looked for in capitals."""
    return position(text, phrase) >= 0


def position(text: str, phrase: str) -> int:
    """Where a phrase begins in a text, or -1."""
    if phrase.isupper() and len(phrase) <= 5:
        found = re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text)
        return found.start() if found else -1
    for variant in _variants(phrase):
        found = re.search(rf"(?<!\w){re.escape(variant)}(?:'?e?s)?(?!\w)", normal(text))
        if found:
            return found.start()
    return -1


def mask(text: str, names: Iterable[str]) -> str:
    """A text with names blanked out, the longest first, so that positions stay."""
    for name in sorted(set(names), key=len, reverse=True):
        if name and any(letter.isdigit() for letter in name):
            pattern = r"[\s\-–/]+".join(re.escape(part) for part in re.split(r"[\s\-–/]+", name))
            text = re.sub(pattern, lambda found: "x" * len(found[0]), text, flags=re.IGNORECASE)
    return text


def differences(values: Sequence[float]) -> set[float]:
    """How far the figures of a reply are apart."""
    return {abs(one - other) for one, other in combinations(values[:12], 2)}


def _variants(phrase: str) -> Iterable[str]:
    """A name as written, and without what stands in parentheses behind it."""
    yield normal(phrase)
    short = re.sub(r"\s*\([^)]*\)", "", phrase).strip()
    if short and short != phrase and len(short) > 3:
        yield normal(short)


def _plain(digits: str) -> Iterable[str]:
    """The readings of digits with separators, as Python writes them."""
    digits = re.sub(r"[ \u00a0\u202f']", "", digits)
    english, german = re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?|\d+(\.\d+)?", digits), None
    german = re.fullmatch(r"\d{1,3}(\.\d{3})+(,\d+)?|\d+(,\d+)?", digits)
    readings = []
    if english:
        readings.append(digits.replace(",", ""))
    if german:
        readings.append(digits.replace(".", "").replace(",", "."))
    return dict.fromkeys(readings)


def _scale(word: str | None) -> float:
    word = (word or "").strip(" -.").lower()
    return next((scale for start, scale in _SCALES.items() if word.startswith(start)), 1.0)


def _is_year(written: str, plain: str) -> bool:
    return len(written) == 4 and written.isdigit() and _YEARS[0] <= int(plain) <= _YEARS[1]


def _without_dates(text: str) -> str:
    for pattern, _ in _DATES:
        text = pattern.sub(lambda found: "x" * len(found[0]), text)
    return text
