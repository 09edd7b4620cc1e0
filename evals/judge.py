"""The verdict on one reply: right, wrong, declined or error, by code over what a person reads.

An expectation is a mapping with one kind and its details; `KINDS` has them all. A question that has an answer and was
declined or asked back counts as declined, not as wrong: wrong is another answer, given as if it were the answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from .client import Reply
from .phrasing import ABSENT, NO, QUOTES, UNPUBLISHED, WAS, YES, asks_back, declines, opening
from .reading import Number, contains, dates, normal, numbers, position, says_none, years

Expect = Mapping[str, Any]
RIGHT, WRONG, DECLINED, ERROR = "right", "wrong", "declined", "error"
OUTCOMES = (RIGHT, WRONG, DECLINED, ERROR)
_UNIT_SCALE = {"£m": 1e6, "million": 1e6, "thousand": 1e3}
"""What a unit stands for, by its last word."""
_TALK = 600
"""Characters that a reply to small talk may have."""


def verdict(expect: Expect, reply: Reply, question: str = "", names: Sequence[str] = ()) -> str:
    """What became of a question.

    Args:
        expect: an expectation.
        reply: what came back.
        question: as it was asked; its own words prove nothing.
        names: names of the data, whose digits are no figures.

    Returns:
        One of `OUTCOMES`; an error is the caller's to say, for it has no reply.
    """
    kind = kind_of(expect)
    if KINDS[kind](expect, _Read(reply, question, names)):
        return RIGHT
    if kind in ("declined", "talk", "ack"):
        return WRONG if kind == "declined" or not declines(reply.text) else DECLINED
    return DECLINED if declines(reply.text) or asks_back(reply.text) else WRONG


def group_of(expect: Expect) -> str:
    """The kind that it is counted by: of several, the one that is no answer."""
    kind = kind_of(expect)
    kinds = [kind_of(one) for one in expect["any"]] if kind == "any" else [kind]
    return next((one for one in kinds if one not in ANSWERABLE), kind)


def kind_of(expect: Expect) -> str:
    """The kind of an expectation.

    Raises:
        ValueError: it has none, or more than one.
    """
    found = [kind for kind in KINDS if kind in expect]
    if len(found) != 1:
        raise ValueError(f"one kind of {', '.join(KINDS)} is needed, got {found}: {expect}")
    return found[0]


class _Read:
    """A reply with what it is read against."""

    def __init__(self, reply: Reply, question: str, names: Sequence[str]) -> None:
        self.reply, self.question = reply, question
        self.text = reply.text
        self.names = names

    @property
    def all(self) -> str:
        """The text with the rows of the tables, for what a list may leave to a table."""
        return "\n".join([self.text, *self.reply.notes, *(" | ".join(map(str, row.values())) for row in self.reply.rows)])

    def numbers(self, text: str | None = None) -> list[Number]:
        return numbers(self.text if text is None else text, self.names)


def _number(expect: Expect, read: _Read) -> bool:
    """The value stands among the first figures of the reply."""
    value, unit = float(expect["number"]), str(expect.get("unit", ""))
    if any(contains(read.text, str(wrong)) for wrong in expect.get("not", ())):
        return False
    found = read.numbers()
    if value == 0 and says_none(opening(read.text)) and not declines(read.text):
        return _facts_of(expect, read)
    close = [number for number in found[: int(expect.get("first", 4))] if _is(number, value, unit, expect.get("tolerance"))]
    return bool(close) and _facts_of(expect, read)


def _is(number: Number, value: float, unit: str, tolerance: float | None) -> bool:
    """Whether a figure is the value, as rounded as it is shown."""
    scale = _UNIT_SCALE.get(unit.split()[-1] if unit else "", 1.0)
    factors = [1.0 / scale] if number.scaled or abs(number.value) >= scale > 1 else [1.0]
    if unit == "%":
        factors = [1.0] if number.percent else [1.0, 100.0]
    elif number.scaled:
        factors.append(1.0)
    for factor in factors:
        shown, step = abs(number.value * factor), number.step * factor
        exact = max(1e-9, 0.0005 * abs(value) if not float(value).is_integer() or unit else 0.0)
        rounded = min(step * 1.0001, 0.02 * abs(value)) if number.digits >= 2 or unit == "%" else 0.0
        if unit == "%":
            rounded = max(rounded, min(step * 1.0001, 0.5))
        if not unit and float(value).is_integer() and not number.scaled:
            rounded = 0.0
        if abs(shown - abs(value)) <= max(exact, rounded, tolerance or 0.0):
            return True
    return False


def _names(expect: Expect, read: _Read) -> bool:
    """All of the names stand in the reply or its tables, in order where asked, and none of the others."""
    wanted = [_alternatives(name) for name in expect["names"]]
    if not wanted:
        return says_none(opening(read.text)) or declines(read.text)
    where = [min((at for at in (position(read.all, one) for one in name) if at >= 0), default=-1) for name in wanted]
    if min(where) < 0 or not _facts_of(expect, read):
        return False
    if expect.get("ordered"):
        text = [min((at for at in (position(read.text, one) for one in name) if at >= 0), default=-1) for name in wanted]
        if min(text) >= 0 and text != sorted(text):
            return False
    flat = [one for name in wanted for one in name]
    return not _extras(expect.get("not", ()), flat, read) and _leads(expect.get("lead", ()), flat, read)


def _leads(others: Iterable[str], wanted: Sequence[str], read: _Read) -> bool:
    """No other name of the data stands before the first one that is wanted."""
    text = re.sub(r"^\W*(?:of|between|comparing)\b[^,:]*[,:]", "", read.text, flags=re.IGNORECASE)
    first = min((at for at in (position(text, one) for one in wanted) if at >= 0), default=-1)
    before = normal(text)[:first] if first > 0 else ""
    return not _extras(others, wanted, _Read(Reply(before), "", ()))


def _extras(forbidden: Iterable[str], wanted: Iterable[str], read: _Read) -> list[str]:
    """Names that stand in the reply and should not."""
    rest, asked = f" {normal(read.text)} ", normal(read.question)
    raw = read.text
    for name in sorted(wanted, key=len, reverse=True):
        rest = rest.replace(normal(name), " # ")
        raw = re.sub(re.escape(name), "#", raw, flags=re.IGNORECASE)
    found = []
    for name in sorted(forbidden, key=len, reverse=True):
        plain = normal(name)
        if plain in asked:
            continue
        if contains(raw, name) if name.isupper() and len(name) <= 5 else re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", rest):
            found.append(name)
            rest = rest.replace(plain, " # ")
    return found


def _facts(expect: Expect, read: _Read) -> bool:
    """The phrases, and not one that was superseded, unless it is said to be."""
    now = not any(_has(read.text, old) for old in expect.get("unlike", ())) or WAS.search(read.text) is not None
    return now and _facts_of(expect, read) and not _extras(expect.get("not", ()), (), read)


def _facts_of(expect: Expect, read: _Read) -> bool:
    """Of each group at least one phrase stands in the reply."""
    return all(any(_has(read.all, str(phrase)) for phrase in _alternatives(group)) for group in expect.get("facts", ()))


def _has(text: str, phrase: str) -> bool:
    """A phrase as whole words; a `~` before it allows any ending."""
    return normal(phrase[1:]) in normal(text) if phrase.startswith("~") else contains(text, phrase)


def _date(expect: Expect, read: _Read) -> bool:
    wanted = expect["date"] if isinstance(expect["date"], date) else date.fromisoformat(str(expect["date"]))
    return wanted in dates(read.text)


def _year(expect: Expect, read: _Read) -> bool:
    return int(expect["year"]) in [year for year in years(read.text) if str(year) not in read.question]


def _yes(expect: Expect, read: _Read) -> bool:
    """Yes or no at the beginning, or facts that say so."""
    start = opening(read.text)
    first = re.match(r"\W*(?:(no|nein|not)|(yes|ja))\b", start, re.IGNORECASE)
    if first:
        return (first[2] is not None) is bool(expect["yes"])
    if declines(read.text):
        return False
    no = NO.search(start) is not None
    if no or YES.search(start):
        return no is not bool(expect["yes"])
    return bool(expect.get("facts")) and _facts_of(expect, read)


def _groups(expect: Expect, read: _Read) -> bool:
    """Every group stands with its value, in a table's row or beside it in the text."""
    unit = str(expect.get("unit", ""))
    labels = {label: [*_alternatives(expect.get("alias", {}).get(label, [])), label] for label in expect["groups"]}
    return all(
        _in_rows(labels[label], float(value), unit, read) or _beside(labels[label], float(value), unit, read)
        for label, value in expect["groups"].items()
        if value is not None
    )


def _in_rows(labels: list[str], value: float, unit: str, read: _Read) -> bool:
    for row in read.reply.rows:
        cells = [str(cell) for cell in row.values()]
        if any(normal(cell) == normal(label) for cell in cells for label in labels):
            figures = [cell for cell in row.values() if isinstance(cell, int | float) and not isinstance(cell, bool)]
            if any(_is(Number(float(cell), 0.0, 9, False, False, 0), value, unit, None) for cell in figures):
                return True
    return False


def _beside(labels: list[str], value: float, unit: str, read: _Read) -> bool:
    """The value is one of the two figures behind a label, or the one right before it, on its line or the next."""
    for piece in re.split(r"\n|;|(?<=\d),\s(?=\D)|\.\s", read.text):
        for label in labels:
            pattern = re.escape(label)
            for found in re.finditer(rf"(?<![\w/]){pattern}(?![\w/])", piece, 0 if label.isupper() else re.IGNORECASE):
                after, before = read.numbers(piece[found.end() :])[:2], read.numbers(piece[: found.start()])[-1:]
                if any(_is(number, value, unit, None) for number in [*after, *before]):
                    return True
    return False


def _declined(expect: Expect, read: _Read) -> bool:
    """It says so; with a model, general knowledge and texts are allowed where they are marked as such."""
    text = re.sub(r"[“\"][^”\"]*[”\"]", "", read.text)
    if any(_has(text, str(answer)) for answer in expect.get("not", ())):
        modelled = read.reply.reasoner not in ("", "extractive", "rules")
        return modelled and bool(expect.get("general"))
    if expect.get("model") and read.reply.reasoner not in ("", "extractive", "rules"):
        return len(read.text) > 0
    if expect.get("model"):
        return declines(read.text) and re.search(r"model|sprachmodell", read.text, re.IGNORECASE) is not None
    absent = declines(read.text) or (ABSENT.search(opening(read.text)) is not None and not QUOTES.search(read.text))
    return absent or (bool(expect.get("or_ask")) and asks_back(read.text))


def _ask(expect: Expect, read: _Read) -> bool:
    return asks_back(read.text)


def _talk(expect: Expect, read: _Read) -> bool:
    """Short, to the point where a point is stated, and neither a refusal nor a quotation."""
    short = len(read.text) <= _TALK and not QUOTES.search(read.text)
    stated = expect["talk"] if isinstance(expect["talk"], list) else []
    if stated:
        return short and any(_has(read.text, str(phrase)) for phrase in stated)
    return short and not re.search(r"\bI (?:do not|don't) understand\b", read.text, re.IGNORECASE)


def _ack(expect: Expect, read: _Read) -> bool:
    """A statement was taken in: a short reply that neither quotes sources nor says that it did not understand."""
    short = len(read.text) <= _TALK and not QUOTES.search(read.text)
    return short and not re.search(
        r"\b(?:do not|don't|cannot|can't|could not) (?:understand|know|find)\b", read.text, re.IGNORECASE
    )


def _unpublished(expect: Expect, read: _Read) -> bool:
    understood = not re.search(r"\b(?:understand|verstehe)\b", read.text)
    return understood and UNPUBLISHED.search(opening(read.text)) is not None and _facts_of(expect, read)


def _gaps(expect: Expect, read: _Read) -> bool:
    """Each thing that is missing is named; more may be."""
    return all(any(_has(read.all, one) for one in _alternatives(name)) for name in expect["gaps"])


def _any(expect: Expect, read: _Read) -> bool:
    return any(KINDS[kind_of(one)](one, read) for one in expect["any"])


def _alternatives(name: object) -> list[str]:
    return [str(one) for one in name] if isinstance(name, list | tuple) else [str(name)]


KINDS: dict[str, Callable[[Expect, _Read], bool]] = {
    "number": _number,
    "names": _names,
    "date": _date,
    "year": _year,
    "yes": _yes,
    "groups": _groups,
    "gaps": _gaps,
    "unpublished": _unpublished,
    "declined": _declined,
    "ask": _ask,
    "talk": _talk,
    "ack": _ack,
    "matches": lambda expect, read: re.search(str(expect["matches"]), read.text, re.IGNORECASE) is not None,
    "any": _any,
    "text": lambda expect, read: _facts({**expect, "facts": expect["text"]}, read),
}
"""The kinds of expectations; `facts` beside another kind adds phrases that have to be there."""
ANSWERABLE = frozenset(KINDS) - {"declined", "ask", "talk", "ack"}
