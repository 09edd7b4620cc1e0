"""Rules in words, held against what a write does: its things, what it says of them, and the conditions of the rule."""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, lru_cache
from itertools import islice, product
from typing import Any

import numpy as np
import numpy.typing as npt

from phronesis_embedding.wordnet import WordNet

from .wording import (
    Phrase,
    Segment,
    cut_ending,
    find_cue,
    find_phrase,
    fold,
    load_cues,
    match_phrase,
    plain,
    read_segments,
    split_words,
)

Vector = npt.NDArray[np.float32]
Embed = Callable[[Sequence[str]], list[Vector]]
"""Vectors of length 1 of texts."""
Minutes = tuple[float, float]

_END = 1e9
_STOPS = frozenset(".;:!?,()")
_BREAKS = frozenset(".;:!?,")


@dataclass(frozen=True)
class Quantity:
    """A number with its unit, and the range that it stands for."""

    low: float
    high: float
    unit: str
    """A name of `units`, the stem of a word, or empty."""


@dataclass(frozen=True)
class Absent:
    """What has to be missing.

    Attributes:
        part: the thing, as one of its alternatives.
        for_ever: "not baked" is no longer so where it is baked later; "without approval" is so until it is given.
    """

    part: tuple[Phrase, ...]
    for_ever: bool


@dataclass(frozen=True)
class Wording:
    """A trigger in words, taken apart.

    Attributes:
        text: the whole, made plain.
        parts: what has to be there; each is one of its alternatives.
        absent: what has to be missing.
        quantities: ranges that a quantity has to lie in.
        times: ranges of a day, in minutes, one of which a time has to lie in.
        days: days of the week from Monday, 0.
    """

    text: str
    parts: tuple[tuple[Phrase, ...], ...]
    absent: tuple[Absent, ...] = ()
    quantities: tuple[Quantity, ...] = ()
    times: tuple[Minutes, ...] = ()
    days: frozenset[int] = frozenset()

    @property
    def stems(self) -> frozenset[str]:
        return _stems_of(self)

    @property
    def sayings(self) -> list[str]:
        """The whole, and what it says with one alternative of each part."""
        return _sayings_of(self)

    @property
    def phrases(self) -> list[str]:
        """What vectors are needed of."""
        every = [alternative for part in (*self.parts, *(one.part for one in self.absent)) for alternative in part]
        return [*self.sayings, *(" ".join(one) for one in every), *(word for one in every for word in one)]


@lru_cache(maxsize=4_096)
def _sayings_of(wording: Wording) -> list[str]:
    every = islice(product(*(*wording.parts, *(one.part for one in wording.absent))), _SAYINGS)
    return list(dict.fromkeys([wording.text, *(" ".join(word for phrase in one for word in phrase) for one in every if one)]))


_SAYINGS = 12
"""Ways to read the alternatives of a rule."""


@lru_cache(maxsize=4_096)
def _stems_of(wording: Wording) -> frozenset[str]:
    return frozenset(cut_ending(word) for word in split_words(wording.text))


@lru_cache(maxsize=4_096)
def parse_wording(text: str) -> Wording | None:
    """A trigger in words taken apart; `None` where it says nothing."""
    words = split_words(plain(text))
    words = _drop_prohibitions(words)
    said = " ".join(word for word in words if word not in _STOPS)
    quantities, words = _take_quantities(words)
    times, words = _take_times(words)
    days, words = _take_days(words)
    told, missing = _take_absent(words)
    parts = _split_parts(told)
    absent = tuple(Absent(part, for_ever) for one, for_ever in missing for part in _split_parts(one, whole=True))
    if not (parts or absent or times or days):
        return None
    return Wording(said, parts, absent, tuple(quantities), tuple(times), days)


def _drop_prohibitions(words: list[str]) -> list[str]:
    phrases = load_cues().phrases("prohibitions")
    heads = {one for one in phrases if len(one) == 1}
    while words and (taken := find_phrase(words, 0, phrases)):
        words = words[taken:]
    found: list[str] = []
    at = 0
    while at < len(words):
        taken = find_phrase(words, at, (one for one in phrases if one not in heads))
        at += taken or 1
        if not taken:
            found.append(words[at - 1])
    return found


@cache
def _units() -> dict[str, str]:
    given: Mapping[str, str] = load_cues().given["units"]
    return {
        form: name for name, forms in given.items() for word in forms.split() for form in (fold(word), cut_ending(fold(word)))
    }


def _read_number(word: str) -> float | None:
    if re.fullmatch(r"\d+(?:[.,]\d+)*", word):
        if re.fullmatch(r"\d{1,3}(?:[.,]\d{3})+", word):
            return float(re.sub("[.,]", "", word))
        return float(word.replace(",", ".")) if word.count(",") + word.count(".") <= 1 else None
    value = load_cues().given["numbers"].get(word)
    return None if value is None else float(value)


def _unit_of(word: str) -> str:
    return _units().get(word) or _units().get(cut_ending(word)) or ""


def _scaled(value: float, unit: str) -> tuple[float, str]:
    base = load_cues().given["scales"].get(unit)
    return (value * base[1], base[0]) if base else (value, unit)


_SIDES = (("at_most", "less", False), ("less", "less", True), ("at_least", "more", False), ("more", "more", True))
_TINY = 1e-6


def read_quantities(words: Sequence[str], key: Sequence[str] = ()) -> Iterator[tuple[int, int, str, Quantity]]:
    """Quantities with where they stand and how they are compared: `""`, `"more"` or `"less"`."""
    for at, word in enumerate(words):
        value = _read_number(word)
        begin, end = at, at + 1
        unit = ""
        if value is None:
            share = load_cues().given["fractions"].get(word)
            if share is None or not ((at and words[at - 1] in ("a", "one", "ein", "eine")) or "price" in words[at : at + 2]):
                continue
            value, unit, begin = float(share), "%", max(0, at - 1)
        following = words[end] if end < len(words) else ""
        before = words[at - 1] if at else ""
        if unit:
            pass
        elif following in ("past", "to") and _read_number(words[end + 1] if end + 1 < len(words) else "") is not None:
            continue
        elif _unit_of(following):
            unit, end = _unit_of(following), end + 1
        elif before in "€$£" and before:
            unit, begin = "money", at - 1
        elif key and (named := next((_unit_of(one) for one in reversed(key) if _unit_of(one)), "")):
            unit = named
        elif following.isalpha() and following not in load_cues().words("stop"):
            unit = cut_ending(following)
        elif key:
            unit = cut_ending(key[-1])
        value, unit = _scaled(value, unit)
        side, low, high = "", value, value
        for name, where, strict in _SIDES:
            phrase = next(
                (one for one in load_cues().phrases(name) if begin >= len(one) and match_phrase(words, begin - len(one), one)),
                None,
            )
            if phrase or (name == "at_least" and list(words[end : end + 2]) in (["or", "more"], ["oder", "mehr"])):
                begin -= len(phrase) if phrase else 0
                side = where
                if where == "more":
                    low, high = value + _TINY * strict, _END
                else:
                    low, high = -_END, value - _TINY * strict
                break
        yield begin, end, side, Quantity(low, high, unit)


def _take_quantities(words: list[str]) -> tuple[list[Quantity], list[str]]:
    found: list[Quantity] = []
    rest, last = [], 0
    for begin, end, side, quantity in read_quantities(words):
        if not side or any(one in words[end : end + 2] for one in ("am", "pm", "uhr")):
            continue
        found.append(quantity)
        rest += (
            [*words[last:begin], ","]
            if quantity.unit in _units().values()
            else [*words[last:begin], ",", words[end] if end < len(words) else ""]
        )
        last = end if quantity.unit in _units().values() else end + 1
    return found, [word for word in [*rest, *words[last:]] if word]


_CLOCK = re.compile(r"(\d{1,2})(?:[:.](\d\d))?")


def read_times(words: Sequence[str]) -> Iterator[tuple[int, int, list[Minutes]]]:
    """Times of the day, with where they stand and the ranges, in minutes, that they may mean."""
    parts: Mapping[str, Sequence[float]] = load_cues().given["parts_of_day"]
    numbers: Mapping[str, int] = load_cues().given["numbers"]
    at = 0
    while at < len(words):
        word, taken = words[at], 0
        minutes: float | None = None
        sure = False
        if word in ("half", "quarter") or (
            _read_number(word) is not None and words[at + 1 : at + 2] and words[at + 1] in ("past", "to")
        ):
            hour = _hour(words[at + 2]) if at + 2 < len(words) and words[at + 1] in ("past", "to") else None
            if hour is not None:
                off = {"half": 30.0, "quarter": 15.0}.get(word) or _read_number(word) or 0.0
                minutes, taken = hour * 60 + (off if words[at + 1] == "past" else -off), 3
        elif (found := _CLOCK.fullmatch(word)) and int(found[1]) < 25:
            following = words[at + 1] if at + 1 < len(words) else ""
            before = words[at - 1] if at else ""
            if found[2] and ":" in word:
                minutes, taken, sure = int(found[1]) * 60 + int(found[2]), 1, following not in ("am", "pm")
            elif following in ("am", "pm", "uhr", "o'clock"):
                minutes, taken, sure = int(found[1]) * 60 + int(found[2] or 0), 1, following == "uhr"
            elif before in ("at", "by", "from", "until", "before", "after", "till", "um", "vor", "nach", "ab") and not found[2]:
                follows = following in ("", "in", "on", "and", "so", "at") or following in _STOPS or following in parts
                if follows and int(found[1]) < 13:
                    minutes, taken = int(found[1]) * 60, 1
        elif (
            word in numbers
            and 1 <= numbers[word] <= 12
            and at
            and words[at - 1] in ("at", "by", "until", "before", "after", "um", "from")
        ):
            following = words[at + 1] if at + 1 < len(words) else ""
            if following in ("", "in", "on", "and", "so", "o'clock", "am", "pm") or following in _STOPS:
                minutes, taken = numbers[word] * 60, 1
        if minutes is None:
            if word in parts and not (at and words[at - 1] == "good"):
                low, high = (float(hour) * 60 for hour in parts[word])
                yield at, at + 1, _wrap(low, high)
            at += 1
            continue
        end = at + taken
        if end < len(words) and words[end] == "o'clock":
            end += 1
        half = words[end] if end < len(words) else ""
        if half not in ("am", "pm"):
            near = next((one for one in words[end : end + 3] if one in parts), "")
            if near:
                half = "am" if parts[near][0] < 12 or (parts[near][0] >= 22 and minutes < 360) else "pm"
                end = words.index(near, end) + 1 if not sure else end
        else:
            end += 1
        if sure:
            options = [minutes]
        elif half == "am":
            options = [minutes % 720]
        elif half == "pm":
            options = [minutes % 720 + 720]
        else:
            options = [minutes] if minutes >= 780 else [minutes % 720, minutes % 720 + 720]
        yield at, end, [(one, one) for one in options]
        at = end


def _read_spans(words: Sequence[str]) -> Iterator[list[Minutes]]:
    """Times with what stands before them: `before 5 am` is the time up to it."""
    for at, _, ranges in read_times(words):
        before = words[at - 1] if at else ""
        if before in ("before", "vor", "bevor"):
            yield [(0, max(0, high - 1)) for _, high in ranges]
        elif before in ("after", "nach", "past"):
            yield [(low + 1, 1440) for low, _ in ranges]
        else:
            yield ranges


def _hour(word: str) -> float | None:
    value = _read_number(word)
    return value if value is not None and 1 <= value <= 24 else None


def _wrap(low: float, high: float) -> list[Minutes]:
    return [(low, 1440), (0, high - 1440)] if high > 1440 else [(low, high)]


def _take_times(words: list[str]) -> tuple[list[Minutes], list[str]]:
    found: list[Minutes] = []
    rest: list[str] = []
    last = 0
    read = list(read_times(words))
    skip = False
    for number, (begin, end, ranges) in enumerate(read):
        if skip:
            skip = False
            continue
        before = words[begin - 1] if begin else ""
        exact = all(low == high for low, high in ranges)
        start = begin
        if exact and before == "between" and number + 1 < len(read):
            low, high = ranges[0][0], read[number + 1][2][0][0]
            found += [(low, high)] if low < high else [(low, 1440), (0, high)]
            end, start, skip = read[number + 1][1], begin - 1, True
        elif exact and before in load_cues().words("earlier"):
            found.append((0, ranges[0][0] - 1 / 60))
            start -= 1
        elif exact and before in load_cues().words("later"):
            low = ranges[-1][0] if len(ranges) == 2 else ranges[0][0]
            found += _after(low)
            start -= 1
        elif exact:
            found += ranges
        elif found and any(low < 1440 for low, _ in found):
            # "Friday afternoon after 3": both
            pass
        else:
            found += ranges
        rest += [*words[last:start], ","]
        last = end
    return found, [*rest, *words[last:]]


def _after(low: float) -> list[Minutes]:
    """From a time to the end of the day; what is late at night goes on until morning."""
    return [(low + 1 / 60, 1440), (0, 300)] if low >= 20 * 60 else [(low + 1 / 60, 1440)]


_ISO = re.compile(r"\d{4}-\d\d-\d\d")


def read_days(words: Iterable[str]) -> frozenset[int]:
    """Days of the week that words name, dates among them."""
    days: Mapping[str, Sequence[int]] = load_cues().given["days"]
    found: set[int] = set()
    for word in words:
        if _ISO.fullmatch(word):
            try:
                found.add(date.fromisoformat(word).weekday())
            except ValueError:
                continue
        else:
            found.update(days.get(word) or days.get(word.removesuffix("s")) or days.get(word.removesuffix("en")) or ())
    return frozenset(found)


def _take_days(words: list[str]) -> tuple[frozenset[int], list[str]]:
    found = read_days(words)
    return found, [word if not read_days([word]) else "," for word in words]


def _take_absent(words: list[str]) -> tuple[list[str], list[tuple[list[str], bool]]]:
    """What a trigger speaks of, and what it wants to be missing; with whether for ever."""
    cues = load_cues()
    told: list[str] = []
    missing: list[tuple[list[str], bool]] = []
    at = 0
    while at < len(words):
        taken, for_ever = find_cue(words, at, "lacking"), False
        if not taken and words[at] in ("before", "until", "bevor", "bis") and at + 1 < len(words):
            taken = 1
        if not taken and words[at] in ("not", "never", "nicht", "n't"):
            taken, for_ever = 1, True
            while told and (told[-1] in cues.words("between") | cues.words("stop")) and told[-1] != ",":
                told.pop()
        if not taken:
            told.append(words[at])
            at += 1
            continue
        end = at + taken
        while end < len(words) and words[end] not in ".;:!?" and not find_cue(words, end, "lacking"):
            end += 1
        missing.append((words[at + taken : end], for_ever))
        told.append(",")
        at = end
    return told, missing


_LIGHT = frozenset(
    ("come", "back", "has", "been", "given", "received", "done", "afterwards", "first", "prior", "is", "are", "arrived")
)


def _split_parts(words: Sequence[str], *, whole: bool = False) -> tuple[tuple[Phrase, ...], ...]:
    cues = load_cues()
    between, articles, stop = cues.words("between"), cues.words("articles"), cues.words("stop")
    parts: list[tuple[Phrase, ...]] = []
    alternatives: list[Phrase] = []
    current: list[str] = []

    def flush() -> None:
        if current:
            alternatives.append(tuple(current))
            current.clear()
        if alternatives:
            parts.append(tuple(alternatives))
            alternatives.clear()

    joined = False
    for number, word in enumerate(words):
        if word in ("or", "oder") or (word == "," and _goes_on(words, number)):
            if current:
                alternatives.append(tuple(current))
                current.clear()
            joined = True
        elif word in _STOPS:
            flush()
        elif word in articles:
            if current:
                flush()
        elif word in between:
            if not whole:
                flush()
        elif (
            (word in stop and word not in ("on", "off"))
            or not any(sign.isalpha() for sign in word)
            or (whole and word in _LIGHT)
        ):
            continue
        else:
            if alternatives and not joined and not current:
                flush()
            current.append(word)
            joined = False
    flush()
    return tuple(parts)


def _goes_on(words: Sequence[str], at: int) -> bool:
    """Whether a comma stands in a list of alternatives: an "or" follows before anything else ends."""
    for word in words[at + 1 : at + 6]:
        if word in ("or", "oder"):
            return True
        if word in ".;:!?" or word in load_cues().words("between"):
            return False
    return False


# What a write says


@dataclass(frozen=True)
class Clause:
    """A clause of a sentence and what is said of its words.

    Attributes:
        words: its words.
        sentence: the number of its sentence.
        denied: for each word, whether it is denied, removed, prevented, checked or asked about; 2 where there is none of it.
        negated: a word of denial stands in it.
        key: how many of its words name a field.
        empty: the field says that there is none.
    """

    words: tuple[str, ...]
    sentence: int
    denied: tuple[int, ...]
    negated: bool
    key: int = 0
    empty: bool = False


_GOVERNORS = frozenset("to will must should please we they i who which that can shall let would".split())


def read_clauses(segments: Sequence[Segment], own: frozenset[str], knows: WordNet) -> tuple[Clause, ...]:
    """The clauses of a text. `own`: stems of the rule's own words, whose cues deny nothing."""
    found: list[Clause] = []
    for number, segment in enumerate(segments):
        found += _read_sentence(segment, number, own, knows)
    return tuple(found)


def _read_sentence(segment: Segment, number: int, own: frozenset[str], knows: WordNet) -> Iterator[Clause]:
    words, cues = segment.words, load_cues()
    denied, negated = [0] * len(words), [False] * len(words)
    starts = _clause_starts(segment, knows)
    ends = [*starts[1:], len(words)]
    clause_of = [max(n for n, start in enumerate(starts) if start <= at) for at in range(len(words))]
    head = next(
        (
            at
            for at, word in enumerate(words)
            if at >= segment.key and word not in _STOPS and word not in ("please", "let", "us", "to", "we")
        ),
        0,
    )

    def deny(begin: int, end: int, how: int = 1) -> None:
        for at in range(max(0, begin), min(end, len(words))):
            denied[at] = max(denied[at], how)

    if words and words[-1] == "?" and words[0] in cues.words("questions"):
        deny(0, len(words))
    for start, end in zip(starts, ends, strict=True):
        if start and words[start] in cues.words("asked"):
            deny(start, end)
    if segment.empty:
        deny(0, segment.key, 2)
    for at, word in enumerate(words):
        begin, end = starts[clause_of[at]], ends[clause_of[at]]
        if at < segment.key:
            begin, end = 0, segment.key
        if word in cues.words("free") and at and word not in own:
            deny(at - 1, at + (2 if word in ("free", "frei") else 1), 2)
        if word in cues.words("non"):
            deny(at, at + 2, 2)
        taken = find_cue(words, at, "none")
        if taken:
            negated[at] = True
            if not _inverted(words, at + taken, 2, cues.words("inverse")):
                deny(at, end, 2)
        elif find_cue(words, at, "not") and not _inverted(words, at + 1, 2, cues.words("inverse")):
            negated[at] = True
            deny(at, end)
            deny(begin, at, 0 if segment.key and at >= segment.key else 1)
        elif word in ("not", "n't", "never"):
            negated[at] = True
        if (taken := find_cue(words, at, "forbidden")) and cut_ending(word) not in own and not _negated_before(words, at):
            deny(begin, end)
        taken = find_cue(words, at, "remove", forms=True)
        if taken and _acts(words, at, head, knows) and cut_ending(word) not in own and not _negated_before(words, at):
            inside = words[at + 1 : at + taken - 1]
            counts = any(_read_number(one) is not None or one == "%" or one in cues.given["fractions"] for one in inside)
            if not counts and not _inverted(words, at + taken, 1, cues.words("inverse")):
                deny(at, _scope_end(words, at + taken, knows, word))
        if at == head and not _negated_before(words, at):
            taken = find_cue(words, at, "check", forms=True)
            if (
                taken
                and cut_ending(word) not in own
                and words[at + taken : at + taken + 1]
                and words[at + taken] not in cues.words("acts")
            ):
                deny(at, _scope_end(words, at + taken, knows, ""))
    for start, end in zip(starts, ends, strict=True):
        if start < end:
            key = segment.key if start == 0 else 0
            yield Clause(
                words[start:end], number, tuple(denied[start:end]), any(negated[start:end]), key, segment.empty and start == 0
            )


def _clause_starts(segment: Segment, knows: WordNet) -> list[int]:
    words, cues = segment.words, load_cues()
    starts = [0]
    for at, word in enumerate(words):
        if at <= segment.key and segment.key:
            continue
        if word in _BREAKS and at + 1 < len(words):
            starts.append(at + 1)
        elif at and word in cues.words("clauses") and starts[-1] != at:
            starts.append(at)
        elif at and word in cues.words("joints") and at + 1 < len(words) and _is_act(words, at + 1, knows):
            starts.append(at)
    return starts


def _is_act(words: Sequence[str], at: int, knows: WordNet) -> bool:
    return knows.is_verb(words[at]) and not words[at].endswith("ing")


def _inverted(words: Sequence[str], at: int, most: int, inverse: frozenset[str]) -> bool:
    return any(word in inverse or any(form in inverse for form in _stems(word)) for word in words[at : at + most])


@lru_cache(maxsize=20_000)
def _stems(word: str) -> tuple[str, ...]:
    return tuple(
        word.removesuffix(ending) + plain_
        for ending, plain_ in (("ing", ""), ("ing", "e"), ("ed", ""), ("ed", "e"), ("s", ""))
        if word.endswith(ending)
    )


def _negated_before(words: Sequence[str], at: int) -> bool:
    return any(word in ("not", "never", "n't", "nicht", "nie", "no", "without") for word in words[max(0, at - 2) : at])


def _acts(words: Sequence[str], at: int, head: int, knows: WordNet) -> bool:
    """Whether a word that may be a noun too is an act here."""
    word = words[at]
    before = words[at - 1] if at else ","
    if at == head or before in _GOVERNORS or before in _STOPS or before in load_cues().words("joints"):
        return True
    return word.endswith(("ed", "ing", "en")) or (knows.is_verb(word) and before not in load_cues().words("articles"))


def _scope_end(words: Sequence[str], at: int, knows: WordNet, verb: str) -> int:
    swaps = verb.startswith(("replac", "swap", "substitut", "ersetz"))
    for place in range(at, len(words)):
        if words[place] in ".;!?" or (words[place] in ("but", "instead", "aber", "sondern")):
            return place
        if swaps and words[place] in ("with", "by", "for", "durch", "gegen"):
            return place
        if words[place] in load_cues().words("joints") and place + 1 < len(words) and _is_act(words, place + 1, knows):
            return place
    return len(words)


# How much of a rule a write covers


class Vectors:
    """Vectors of words and phrases, the last ones kept. `embed` is asked for what is new."""

    def __init__(self, embed: Embed, most: int = 8_000) -> None:
        self._embed, self._most = embed, most
        self._kept: OrderedDict[str, Vector] = OrderedDict()

    def of(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """A row for each text."""
        new = [text for text in dict.fromkeys(texts) if text not in self._kept]
        if new:
            self._kept.update(zip(new, self._embed(new), strict=True))
        rows = [self._kept[text] for text in texts]
        for text in texts:
            self._kept.move_to_end(text)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return np.array(rows, dtype=np.float32).reshape(len(texts), -1)


@dataclass(frozen=True)
class Mention:
    """Words of a write that may stand for a thing."""

    text: str
    words: Phrase
    clause: int
    sentence: int
    denied: int

    @property
    def places(self) -> frozenset[tuple[int, str]]:
        return frozenset((self.clause, word) for word in self.words)


@dataclass(frozen=True)
class Cover:
    """How well a part is covered, and by which words of the write."""

    score: float
    said: str
    meant: str
    clause: int = -1
    used: frozenset[tuple[int, str]] = frozenset()


@dataclass(frozen=True)
class Evidence:
    """What a write has to do with a rule.

    Attributes:
        features: conditions that hold, at most 2, as far as the parts are covered; how well the parts are covered together; the
            closest sentence's cosine; whether one part is exact and another not there.
        veto: why it breaks it not, whatever it speaks of; empty where nothing says so.
        because: in plain words, which words of the write stand for which of the rule.
        sure: every part is there word for word, or by a kind of it.
    """

    features: tuple[float, ...]
    veto: str
    because: str
    sure: bool = False


WEIGHTS = (5.89, 5.67, 10.55, -2.03)
BIAS = -7.34
THRESHOLD = 0.22
"""From a logistic regression (C = 10; near misses count twice) on `evals/sets/guardrails/tune.yaml`, without the pairs that are
ruled out before: `python -m evals.guardrails --half tune --fit` prints them anew."""


def probability(evidence: Evidence) -> float:
    """How likely it is that a write breaks a rule."""
    if evidence.veto:
        return 0.0
    if evidence.sure:
        return 1.0
    return 1 / (1 + math.exp(-(sum(map(float.__mul__, WEIGHTS, evidence.features)) + BIAS)))


class Judge:
    """Holds writes against rules in words. Not for several threads at once."""

    def __init__(self, knows: WordNet, embed: Embed) -> None:
        self._knows = knows
        self._vectors = Vectors(embed)

    def because(self, wordings: Sequence[Wording], fields: Mapping[str, Any]) -> list[str | None]:
        """Why a node breaks each of some rules, or `None`."""
        windows = self._windows(fields)
        found = [self.weigh(wordings, some, long=len(windows) > 1) for some in windows]
        reasons: list[str | None] = []
        for number in range(len(wordings)):
            best = max((one[number] for one in found), key=probability, default=None)
            reasons.append(best.because if best and probability(best) >= THRESHOLD else None)
        return reasons

    def _windows(self, fields: Mapping[str, Any]) -> list[tuple[Segment, ...]]:
        """What is read together: all of a short node; of a long one its title with each stretch of the rest."""
        segments = read_segments(fields, self._knows)
        if sum(len(one.words) for one in segments) <= _TOGETHER:
            return [segments]
        first = segments[:1]
        found: list[tuple[Segment, ...]] = []
        at = 0
        while at < len(segments):
            end, size = at, 0
            while end < len(segments) and (size == 0 or size + len(segments[end].words) <= _TOGETHER // 2):
                size += len(segments[end].words)
                end += 1
            found.append((*(first if at else ()), *segments[at : end + 1]))
            at = end
        return found

    def weigh(self, wordings: Sequence[Wording], segments: Sequence[Segment], *, long: bool = False) -> list[Evidence]:
        """What some sentences have to do with each of some rules. `long`: they are one of many stretches, read less closely."""
        self._vectors.of([text for one in wordings for text in one.phrases])
        read: dict[frozenset[str], tuple[tuple[Clause, ...], list[Mention]]] = {}
        found = []
        for one in wordings:
            own = one.stems & load_cues().stems
            if own not in read:
                clauses = read_clauses(segments, own, self._knows)
                read[own] = clauses, self._mentions(clauses, long=long)
            found.append(self._weigh(one, segments, *read[own], long=long))
        return found

    def _weigh(
        self,
        wording: Wording,
        segments: Sequence[Segment],
        clauses: Sequence[Clause],
        mentions: Sequence[Mention],
        *,
        long: bool,
    ) -> Evidence:
        kept = [one for one in mentions if not one.denied]
        covers: list[Cover] = []
        veto = ""
        for part, best in zip(wording.parts, self._share_out(wording.parts, kept), strict=True):
            none = self._cover(part, [one for one in mentions if one.denied == 2], lexical=True)
            gone = self._cover(part, [one for one in mentions if one.denied], lexical=True)
            if best.score < _MENTIONED and (
                self._is_of_age(part, kept) or gone.score >= 0.9 or none.score >= _MENTIONED or self._is_other(part, kept)
            ):
                veto = veto or f"what it has of {best.meant} is denied, or another thing"
            covers.append(best)
        things = {one.clause for one in covers if one.score >= 0.6} or {one.clause for one in covers if one.score > 0.3}
        veto = veto or self._check_conditions(wording, segments, clauses, things)
        if not any(mention for mention in kept):
            veto = veto or "nothing is left of it that is not denied"
        for one in wording.absent:
            state, cover = self._find_absent(one, clauses, mentions)
            if state == "there":
                veto = veto or f"it has {cover.said}"
            if state == "missing":
                cover = Cover(max(cover.score, 0.9), f"no {cover.said}", cover.meant)
            covers.append(cover)
        scores = [one.score for one in covers] or [1.0]
        held = (
            len(wording.quantities)
            + bool(wording.times)
            + bool(wording.days)
            + sum(one.said.startswith("no ") for one in covers)
        )
        together = math.prod(scores) ** (1 / len(scores))
        named = [one.score for one in covers[: len(wording.parts)]] or [1.0]
        elsewhere = float(max(named) >= _EXACT and min(named) < _NOT_THERE)
        features = (together * min(2.0, float(held)), together, self._closeness(wording.sayings, clauses, long=long), elsewhere)
        said = [
            f"{one.said} ({one.meant})" if one.said != one.meant else one.said
            for one in covers
            if one.score >= 0.3 and one.said
        ]
        because = f"it speaks of {' and '.join(said)}" if said else f"it says much the same as {wording.text!r}"
        return Evidence(features, veto, because, min(scores) >= 0.95)

    def _share_out(self, parts: Sequence[Sequence[Phrase]], mentions: Sequence[Mention]) -> list[Cover]:
        """What covers each part; words that cover one best cover no other."""
        found = [self._cover(part, mentions) for part in parts]
        taken: set[tuple[int, str]] = set()
        for n in sorted(range(len(parts)), key=lambda n: -found[n].score):
            if taken & found[n].used:
                found[n] = self._cover(parts[n], [one for one in mentions if not taken & one.places])
            taken |= found[n].used if found[n].score >= 0.3 else set()
        return found

    def _mentions(self, clauses: Sequence[Clause], *, long: bool) -> list[Mention]:
        stop = load_cues().words("stop")
        found: list[Mention] = []
        for number, clause in enumerate(clauses):
            words = clause.words
            for at, word in enumerate(words):
                if word in _STOPS or word in stop or not any(sign.isalpha() for sign in word):
                    continue
                pair = words[at - 1 : at + 1] if at else ()
                if (
                    pair
                    and (not long or self._knows.knows(" ".join(pair)))
                    and pair[0] not in stop
                    and pair[0] not in _STOPS
                    and any(sign.isalpha() for sign in pair[0])
                ):
                    found.append(
                        Mention(" ".join(pair), tuple(pair), number, clause.sentence, max(clause.denied[at - 1 : at + 1]))
                    )
                found.append(Mention(word, (word,), number, clause.sentence, clause.denied[at]))
        return found

    def _cover(self, part: Sequence[Phrase], mentions: Sequence[Mention], *, lexical: bool = False) -> Cover:
        best = Cover(0.0, "", " ".join(part[0]))
        if not mentions:
            return best
        rows = None if lexical else self._vectors.of([one.text for one in mentions])
        pairs = {(one.clause, one.words[1]): one for one in mentions if len(one.words) == 2}
        for alternative in part:
            meant = " ".join(alternative)
            wanted = [*alternative, meant] if len(alternative) > 1 else list(alternative)
            near = None if rows is None else rows @ self._vectors.of(wanted).T
            scores = np.array(
                [
                    [
                        self._meets(one, word, meant, pairs, None if near is None else float(near[at, n]))
                        for at, one in enumerate(mentions)
                    ]
                    for n, word in enumerate(wanted)
                ]
            )
            found = _combine(scores[: len(alternative)], mentions)
            if len(alternative) > 1:
                at = int(scores[-1].argmax())
                if scores[-1, at] > found[0]:
                    found = (float(scores[-1, at]), [mentions[at]])
            if found[0] > best.score:
                said = " ".join(dict.fromkeys(word for one in found[1] for word in one.words))
                used = frozenset(place for one in found[1] for place in one.places)
                best = Cover(found[0], said, meant, found[1][-1].clause if found[1] else -1, used)
        return best

    def _meets(
        self, mention: Mention, word: str, meant: str, pairs: Mapping[tuple[int, str], Mention], near: float | None
    ) -> float:
        """How surely some words of a write stand for a word of a rule, or for all of its words."""
        said = mention.text
        soft = 0.9 * _soft(near) if near is not None else 0.0
        if " " in word and {cut_ending(one) for one in mention.words} & {cut_ending(one) for one in word.split()}:
            soft = 0.0  # a part of the phrase is near the whole, whatever the rest of it says
        if len(mention.words) == 2 or " " in word:
            score = self._knows.is_a(said, word)
        elif cut_ending(said) == cut_ending(word):
            score = 1.0
        else:
            score = self._knows.is_a(said, word)
            if score < 0.9 and len(said) > 4 and len(word) > 4 and not self._knows.knows(said) and _is_near(said, word):
                score = 0.9
        if score < 0.8 and min(len(said), len(word)) >= 5 and _derives(said, word):
            score = 0.8
        if self._within(mention, word) or any(
            self._other(pair, word, meant) for pair in (mention, pairs.get((mention.clause, mention.words[0]))) if pair
        ):
            return min(soft, 0.3)
        return max(score, soft)

    def _other(self, pair: Mention, word: str, meant: str) -> bool:
        """Whether two words mean another thing together than the second one alone, as `coconut milk` does."""
        if (
            len(pair.words) < 2
            or not self._knows.knows(pair.text)
            or cut_ending(pair.words[0]) in map(cut_ending, meant.split())
        ):
            return False
        head = pair.words[1]
        alone = self._knows.is_a(head, meant) or (" " not in meant and cut_ending(head) == cut_ending(meant))
        return bool(alone) and not self._knows.is_a(pair.text, word) and not self._knows.is_a(pair.text, meant)

    def _within(self, mention: Mention, word: str) -> bool:
        """Whether one word means another thing than the word that it begins or ends with, as `nutmeg` does."""
        said, stem = mention.text, cut_ending(word)
        if len(mention.words) > 1 or len(stem) < 3 or cut_ending(said) == stem:
            return False
        rest = said.removeprefix(stem) if said.startswith(stem) else said.removesuffix(stem)
        if rest == said or len(rest) < 3 or rest in load_cues().words("derivations") or not self._knows.knows(said):
            return False
        return not self._knows.is_a(said, word)

    def _is_other(self, part: Sequence[Phrase], mentions: Sequence[Mention]) -> bool:
        return any(
            self._other(one, word, " ".join(phrase)) or (len(phrase) == 1 and self._within(one, word))
            for one in mentions
            for phrase in part
            for word in phrase
        )

    def _is_of_age(self, part: Sequence[Phrase], mentions: Sequence[Mention]) -> bool:
        """Whether a write names grown-ups where the rule is of children, or the other way round."""
        young, old = load_cues().given["ages"]["below"], load_cues().given["ages"]["above"]
        heads = [phrase[-1] for phrase in part]
        for meant, said in ((young, old), (old, young)):
            if any(self._knows.is_a(head, meant) >= 0.9 or cut_ending(head) == meant for head in heads):
                return any(cut_ending(one.text) == said for one in mentions)
        return False

    def _closeness(self, sayings: Sequence[str], clauses: Sequence[Clause], *, long: bool) -> float:
        """The best cosine of a sentence that stands with a reading of the rule."""
        texts = _left(clauses, long=long)
        return float((self._vectors.of(texts) @ self._vectors.of(sayings).T).max()) if texts else 0.0

    def _check_conditions(
        self, wording: Wording, segments: Sequence[Segment], clauses: Sequence[Clause], things: set[int]
    ) -> str:
        for wanted in wording.quantities:
            if reason := _check_quantity(wanted, segments):
                return reason
        if wording.times:
            found = [ranges for clause in clauses for ranges in _read_spans(clause.words)]
            beside = [ranges for n in things if n >= 0 for ranges in _read_spans(segments[clauses[n].sentence].words)]
            for ranges in beside or found:
                if any(low <= high_ and low_ <= high for low, high in ranges for low_, high_ in wording.times):
                    break
            else:
                return "another time of the day" if beside or found else "no time of the day"
        if wording.days:
            found_days = read_days(word for clause in clauses for word in clause.words)
            if not found_days & wording.days:
                return "another day of the week" if found_days else "no day of the week"
        return ""

    def _find_absent(self, wanted: Absent, clauses: Sequence[Clause], mentions: Sequence[Mention]) -> tuple[str, Cover]:
        """Whether something is said to be missing or to be there, and the words that say it."""
        part = wanted.part
        best = self._cover(part, mentions)
        missing = there = None
        for number, clause in enumerate(clauses):
            here = [one for one in mentions if one.clause == number]
            cover = self._cover(part, here)
            opposite = next(
                (word for word in clause.words if word.startswith("un") and any(_same(word[2:], one[-1]) for one in part)), ""
            )
            if opposite:
                missing = Cover(1.0, cover.meant, cover.meant)
                continue
            if cover.score < _MENTIONED:
                continue
            open_ended = clause.words[-1] == ":"
            near = [word for one in clauses if 0 <= one.sentence - clause.sentence <= open_ended for word in one.words]
            pending = any(find_cue(near, at, "pending", forms=True) for at in range(len(near)))
            before = clause.words[0] in ("before", "bevor")
            if clause.negated or clause.empty or ((pending or before) and not wanted.for_ever):
                missing = cover
            elif self._cover(part, here, lexical=wanted.for_ever).score >= _THERE:
                there = there or cover
        if missing:
            return "missing", missing
        return ("there", there) if there else ("", best)


def _combine(scores: npt.NDArray[np.float64], mentions: Sequence[Mention]) -> tuple[float, list[Mention]]:
    """How well words of a write cover all words of a phrase, best in one sentence; with what they are."""
    best: tuple[float, list[Mention]] = (0.0, [])
    groups: dict[int, list[int]] = {-1: list(range(len(mentions)))} if len(scores) > 1 else {}
    for at, one in enumerate(mentions):
        groups.setdefault(one.sentence, []).append(at)
    for sentence, rows in groups.items():
        places = [rows[int(some[rows].argmax())] for some in scores]
        values = [float(some[at]) for some, at in zip(scores, places, strict=True)]
        total = (0.5 * sum(values) / len(values) + 0.5 * min(values)) * (_APART if sentence < 0 else 1.0)
        if total > best[0]:
            used = sorted({at for at, value in zip(places, values, strict=True) if value >= 0.3})
            best = (total, [mentions[at] for at in used])
    return best


_APART = 0.75
"""What a phrase counts whose words stand in different sentences."""
_TOGETHER = 160
"""Words of a node that are read together."""
_EXACT = 0.9
_NOT_THERE = 0.33
"""Covers: where one part is exact and another not there, the thing is in another place or for another purpose."""
_MENTIONED = 0.6
_THERE = 0.7


def _left(clauses: Sequence[Clause], *, long: bool) -> list[str]:
    """The sentences of a text, each two that follow each other, and the whole, without what is denied."""
    by: dict[int, list[str]] = {}
    for clause in clauses:
        said = [word for word, denied in zip(clause.words, clause.denied, strict=True) if not denied and word not in _STOPS]
        by.setdefault(clause.sentence, []).extend(said)
    texts = [" ".join(words) for words in by.values() if words]
    if long:
        return list(dict.fromkeys(texts))
    return (
        list(dict.fromkeys([*texts, *(" ".join(texts[at : at + 2]) for at in range(len(texts) - 1)), " ".join(texts)]))
        if texts
        else []
    )


def _same(one: str, other: str) -> bool:
    return cut_ending(one) == cut_ending(other)


def _soft(cosine: float) -> float:
    """What a cosine of MiniLM says of two words: unrelated ones have 0.25 and more."""
    return min(1.0, max(0.0, (cosine - 0.25) / 0.5))


def _derives(one: str, other: str) -> bool:
    """Whether two words may have one root: all but three letters at the end of each are the same."""
    shared = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return shared >= 5 and max(len(one), len(other)) - shared <= 3


def _is_near(one: str, other: str) -> bool:
    """Whether two words are one slip of the hand apart."""
    if abs(len(one) - len(other)) > 1 or one[0] != other[0]:
        return False
    begin = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    tails = one[begin:], other[begin:]
    return (
        tails[0][1:] == tails[1][1:]
        or tails[0][1:] == tails[1]
        or tails[0] == tails[1][1:]
        or (tails[0][:2] == tails[1][:2][::-1] and tails[0][2:] == tails[1][2:])
    )


def _check_quantity(wanted: Quantity, segments: Sequence[Segment]) -> str:
    """Why no quantity of a text lies in a range; empty where one does, or where one may."""
    said: list[Quantity] = []
    for segment in segments:
        said += [one for *_, one in read_quantities(segment.words, segment.words[: segment.key])]
    same = [one for one in said if one.unit == wanted.unit]
    loose = [one for one in said if not one.unit]
    for group in (same, loose):
        if any(one.low <= wanted.high and wanted.low <= one.high for one in group):
            return ""
        if group:
            return "the quantity keeps the limit"
    return "no such quantity"
