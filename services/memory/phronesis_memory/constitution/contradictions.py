"""Nodes that cannot both be followed: by a link that says so, or by what their words ask for, read by rules.

A text is read clause by clause: what it speaks of, whether it asks for it or denies it, which way it turns it, how much of it,
for whom alone, and when. Two clauses of the same thing oppose each other by typed opposites, denial, quantities, exclusivity or
time. The words come from `content/opposites.yaml` (English and German) and from WordNet.
"""

from __future__ import annotations

import asyncio
import importlib.resources
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

import yaml

from phronesis_contracts import Principal
from phronesis_contracts.constitution.insight import Contradiction
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_embedding.wordnet import load_wordnet

from ..words.analysis import stem
from .clusters import gather_vectors, pairs_above
from .ports import NodeFilter, NodeVectors, Structure
from .semantic import mention


@cache
def _read_content() -> dict[str, Any]:
    file = importlib.resources.files("phronesis_memory") / "constitution" / "content" / "opposites.yaml"
    found: dict[str, Any] = yaml.safe_load(file.read_text("utf-8"))
    return found


@dataclass(frozen=True, eq=False)
class Lexicon:
    """`content/opposites.yaml`, by the stems of its words."""

    phrases: re.Pattern[str]
    meant: Mapping[str, str]
    deny: frozenset[str]
    only: frozenset[str]
    every: frozenset[str]
    part: frozenset[str]
    bring: frozenset[str]
    occupy: frozenset[str]
    up: frozenset[str]
    down: frozenset[str]
    steady: frozenset[str]
    generic: frozenset[str]
    poles: Mapping[str, frozenset[tuple[int, int]]]
    """The ends of which axes a word stands for."""
    alone: int
    """The first axis whose ends oppose each other whatever else is said."""
    kinds: Mapping[str, frozenset[int]]
    """The rows of kinds that exclude each other in which a word stands."""
    absent: Mapping[str, frozenset[str]]
    same: Mapping[str, frozenset[int]]
    durations: Mapping[str, float]
    frequencies: Mapping[str, float]
    months: Mapping[str, int]
    seasons: Mapping[str, tuple[int, int]]
    weekdays: Mapping[str, int]


@cache
def load_lexicon() -> Lexicon:
    """The packaged words."""
    given = _read_content()

    def words(name: str) -> frozenset[str]:
        return frozenset(map(stem, str(given[name]).split()))

    meant = {phrase.strip(): word for word, phrases in given["phrases"].items() for phrase in phrases.split("|")}
    ordered = sorted(meant, key=len, reverse=True)
    axes = [*given["axes"], *given["alone"]]
    poles: dict[str, set[tuple[int, int]]] = {}
    for number, ends in enumerate(axes):
        for end, some in enumerate(ends):
            for word in some.split():
                poles.setdefault(stem(word), set()).add((number, end))

    def rows(name: str) -> dict[str, frozenset[int]]:
        found: dict[str, set[int]] = {}
        for number, some in enumerate(given[name]):
            for word in some.split():
                found.setdefault(stem(word), set()).add(number)
        return {word: frozenset(some) for word, some in found.items()}

    return Lexicon(
        re.compile(rf"\b(?:{'|'.join(map(re.escape, ordered))})\b"),
        meant,
        **{
            name: words(name)
            for name in ("deny", "only", "every", "part", "bring", "occupy", "up", "down", "steady", "generic")
        },
        poles={word: frozenset(some) for word, some in poles.items()},
        alone=len(given["axes"]),
        absent={stem(word): frozenset(map(stem, some.split())) for word, some in given["absent"].items()},
        kinds=rows("kinds"),
        same=rows("same"),
        durations={stem(word): float(hours) for word, hours in given["durations"].items()},
        frequencies={stem(word): float(times) for word, times in given["frequencies"].items()},
        months=given["months"],
        seasons={word: (first, last) for word, (first, last) in given["seasons"].items()},
        weekdays={word: day for word, day in given["weekdays"].items()},
    )


@lru_cache(maxsize=100_000)
def are_related(one: str, other: str) -> bool:
    """Whether two plain words speak of the same: equal, made of one another, synonyms, or one a kind of the other."""
    x, y = stem(one), stem(other)
    lexicon = load_lexicon()
    if x == y or lexicon.same.get(x, frozenset()) & lexicon.same.get(y, frozenset()):
        return True
    if min(len(x), len(y)) >= 5 and (x.startswith(y) or y.startswith(x)):
        return True
    net = load_wordnet()
    if net.plain(other) in net.derived(one) or net.plain(one) in net.derived(other):
        return True
    return net.are_synonyms(one, other) or max(net.is_a(one, other), net.is_a(other, one)) > _KIND


_KIND = 0.9


@lru_cache(maxsize=100_000)
def are_opposites(one: str, other: str) -> bool:
    """Whether two words are ends of one axis, or antonyms."""
    poles = load_lexicon().poles
    here, there = poles.get(stem(one), frozenset()), poles.get(stem(other), frozenset())
    if {axis for axis, end in here for far, back in there if axis == far and end != back} - {
        axis for axis, end in here & there
    }:
        return True
    net = load_wordnet()
    return bool(net.forms(other) & net.antonyms(one))


class Limit(NamedTuple):
    """Numbers from `low` to `high` of a unit."""

    low: float
    high: float
    unit: str
    strict: bool = False
    """Whether the limits themselves are outside."""
    period: str = ""
    """Per what."""
    stated: bool = True
    """Whether words such as `at least` or `exactly` say so; a number alone is meant less strictly."""

    def excludes(self, other: Limit) -> bool:
        """Whether no number is within both."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return low > high or (low == high and (self.strict or other.strict))


_FROM = (
    r"at least|no less than|not less than|no fewer than|not fewer than|a minimum of|minimum of|minimum|more than|over"
    r"|above|exceeding|≥|>="
    r"|beyond|upwards of|mindestens|wenigstens|mehr als|über"
)
_TO = (
    r"at most|no more than|not more than|not exceed|never exceed|a maximum of|maximum of|maximum|max|up to|under"
    r"|below|less than|fewer than"
    r"|within|≤|<=|no longer than|no later than|limited to|limit of|höchstens|maximal|weniger als|unter|bis zu|innerhalb von"
)
_EXACT = r"exactly|precisely|just|only|genau|nur"
_STRICT = frozenset(
    {"more than", "over", "above", "exceeding", "under", "below", "less than", "fewer than", "beyond", "mehr als", "über"}
    | {"weniger als", "unter"}
)
_LIMIT = re.compile(
    rf"(?:\b(?P<from>{_FROM})\s+|\b(?P<to>{_TO})\s+|\b(?P<exact>{_EXACT})\s+|\b(?P<by>by|um)\s+|\b(?P<level>to|at|auf)\s+"
    r"|(?P<sign>[≥≤]|>=|<=)\s*)?"
    r"(?P<money>[€$£])?\s*(?<![\d.,:/-])(?P<number>\d+(?:[.,]\d+)*)(?![\d:]|[.,]\d)(?:\s*(?:to|-|–|bis)\s*(?P<upper>\d+(?:[.,]\d+)*)(?![\d:]|[.,]\d))?\s*(?P<scale>k|thousand|m"
    r"|million)?\b(?!-)\s*"
    r"(?P<unit>%|euros?\b|dollars?\b|pounds?\b|percent\b|prozent\b)?(?P<after>[^.;:!?,\d]*)",
    re.IGNORECASE,
)
_MONEY = {"€": "€", "euro": "€", "$": "$", "dollar": "$", "£": "£", "pound": "£"}
_NUMBER_WORDS: Mapping[str, int] = _read_content()["numbers"]
_COMPARED = re.compile(rf"\b(?:{_FROM}|{_TO})(?=\s+[€$£]?\s*(?:\d|(?:{'|'.join(_NUMBER_WORDS)})\b))")
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(_NUMBER_WORDS)})\b(?!-)", re.IGNORECASE)
_SCALES = {"k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6}
_PERIOD = re.compile(
    r"\b(?:an?|per|each|every|pro|je)\s+(hour|day|week|month|quarter|year|stunde|tag|woche|monat|jahr)\b|\b(daily"
    r"|weekly|monthly|yearly|annual(?:ly)?)\b"
)
_OFTEN = re.compile(
    r"\b(?:(once|twice|(?P<times>\d+) times|einmal|zweimal) (?:an?|per|every|each|in der|im|pro) (?P<per>day|week"
    r"|month|quarter|year|tag|woche|monat|jahr)"
    r"|(?P<count>\d+) [^\W\d_]+ (?:an?|per|every|each|pro) (?P<each>day|week|month|quarter|year|tag|woche|monat|jahr)"
    r"|every (?P<gap>\d+|other)? ?(?P<unit>day|week|month|quarter|year)s?|every (?P<weekday>mon|tues|wednes|thurs|fri"
    r"|satur|sun)day"
    r"|(?P<word>daily|weekly|fortnightly|biweekly|monthly|quarterly|yearly|annually|täglich"
    r"|wöchentlich|monatlich|jährlich))\b"
)
_A_YEAR = {
    "day": 365.0,
    "week": 52.0,
    "month": 12.0,
    "quarter": 4.0,
    "year": 1.0,
    "tag": 365.0,
    "woche": 52.0,
    "monat": 12.0,
    "jahr": 1.0,
}


def find_limits(text: str) -> tuple[Limit, ...]:
    """The limits that a text states, each with its unit; a number alone is none."""
    return tuple(limit for limit in _quantities(text) if limit.stated and math.inf in (limit.high, -limit.low))


def _quantities(text: str) -> Iterator[Limit]:
    plain = _NUMBER_WORD.sub(
        lambda word: str(_NUMBER_WORDS[word[0].casefold()]), unicodedata.normalize("NFKC", text).casefold()
    )
    plain = _date_pattern().sub(" ", plain)
    for match in _LIMIT.finditer(plain):
        number = _read_number(match["number"]) * _SCALES.get(match["scale"] or "", 1.0)
        if (
            match["by"]
            or (number == 1 and not any(match[how] for how in ("exact", "from", "to", "level")))
            or (match["number"].isdigit() and 1_990 <= number <= 2_100)
        ):
            continue
        unit = _unit_of(match)
        if not unit:
            continue
        hours = load_lexicon().durations.get(unit)
        upper = match["upper"]
        if hours is not None and unit != "day" and not any(match[how] for how in ("from", "to", "level", "upper")):
            continue
        period = _PERIOD.search(match["after"])
        per = next((stem(one) for one in (period.groups() if period else ()) if one), "")
        sign = match["sign"] or ""
        if upper:
            yield Limit(number, max(number, _read_number(upper)), unit, False, per)
        elif match["from"] or sign in ("≥", ">="):
            yield Limit(number, math.inf, unit, (match["from"] or "") in _STRICT, per)
        elif match["to"] or sign in ("≤", "<="):
            yield Limit(-math.inf, number, unit, (match["to"] or "") in _STRICT, per)
        elif match["exact"]:
            yield Limit(number, number, unit, False, per)
        else:
            before = frozenset(map(stem, _WORD.findall(plain[: match.start()])[-8:]))
            low, high = number, number
            if before & _CAPS:
                low = -math.inf
            elif before & _FLOORS:
                high = math.inf
            elif match["level"] and before & load_lexicon().down:
                low = -math.inf
            elif match["level"] and before & load_lexicon().up:
                high = math.inf
            if low == high and _MORE.match(match["after"]):
                continue
            yield Limit(low, high, unit, False, per, stated=math.inf in (high, -low))


_MORE = re.compile(r"\s*(?:more|new|other|additional|extra|further|weitere|neue)\b")
_CAPS = frozenset("limit cap restrict begrenz beschränk".split())
_FLOORS = frozenset("reach exceed attain hit surpass erreich".split())


def _read_number(said: str) -> float:
    if re.fullmatch(r"\d{1,3}(?:[.,]\d{3})+", said):
        return float(re.sub(r"[.,]", "", said))
    return float(said.replace(",", "."))


_FEW_WORDS = 3
"""Words behind a number among which its unit stands."""


def _unit_of(match: re.Match[str]) -> str:
    named = (match["unit"] or match["money"] or "").removesuffix("s")
    if named in ("%", "percent", "prozent"):
        return "percent"
    if named:
        return _MONEY[named]
    lexicon, unit = load_lexicon(), ""
    # The noun of a phrase is its last word: `new goals a year`.
    for word in match["after"].split()[:_FEW_WORDS]:
        found = stem(word)
        if found in lexicon.durations and not unit:
            return found
        if word in _JOINING or found in _OF or not _WORD.fullmatch(word):
            if not (word in ("of", "von") and unit in _KINDS):
                break
            unit = ""
            continue
        unit = found
    return "" if unit in _NO_UNIT else unit or "amount"


_JOINING = frozenset(
    "a an the per each every in on at to for from with by of or and into as is are when than before after until between during "
    "within this next last over der die das pro im in am für mit von und oder bis".split()
)
_OF = frozenset(("together", "more", "less", "fewer"))
_KINDS = frozenset(("kind", "type", "sort", "varieti", "pair", "piec", "art", "sorten"))
_NO_UNIT = frozenset(("clock", "am", "pm", "o'clock", "uhr"))


class Span(NamedTuple):
    """When something may happen, on one scale: `month` of the year, `day` of the week, `clock` in hours, or around an event."""

    scale: str
    low: float
    high: float
    point: bool = False
    """Whether it is said to happen then, and not only by then or from then on."""

    def apart(self, other: Span) -> bool:
        return self.scale == other.scale and (self.high <= other.low or other.high <= self.low)

    def meets(self, other: Span) -> bool:
        return self.scale == other.scale and not self.apart(other)


@cache
def _date_pattern() -> re.Pattern[str]:
    lexicon = load_lexicon()
    months = "|".join((*lexicon.months, *lexicon.seasons))
    return re.compile(
        rf"(?P<prep>\b(?:not before|no earlier than|only after|not until|by the end of|by the start of"
        rf"|until the end of|at the end of"
        rf"|at the start of|end of|start of|by|until|till|before|after|from|since|in|on|at|this|next|between|through"
        rf"|during|over|starting"
        rf"|bis|vor|nach|ab|im|am|um)\b\s+)?(?:(?:the|next|this|early|late|mid|mid-)\s*)*(?:"
        rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?(?: of)? (?P<month1>{months})\b"
        rf"|(?P<month>{months})\b(?: (?P<day2>\d{{1,2}})\b(?!:))?"
        rf"|(?P<end>end of the year|year's end|year end|new year|jahresende)|(?P<weekday>{'|'.join(lexicon.weekdays)})s?\b"
        rf"|(?P<hour>\d{{1,2}})(?::(?P<minute>\d\d)| ?(?P<half>am|pm|a\.m\.|p\.m\.|o'clock|uhr)\b)|(?P<noon>noon"
        rf"|midday|midnight|mittag|mitternacht)\b"
        rf"|(?P<year>20\d\d)\b)"
        rf"(?:\s*(?:and|to|-|–|until|bis|und)\s*(?:the\s+)?(?:(?P<hour2>\d{{1,2}})(?::(?P<minute2>\d\d)"
        rf"| ?(?P<half2>am|pm)\b)|(?P<month2>{months})\b))?"
    )


def _read_spans(plain: str, denied: bool) -> Iterator[Span]:
    for match in _date_pattern().finditer(plain):
        prep = (match["prep"] or "").strip()
        where = _where(match)
        if where is None:
            continue
        scale, low, high = where
        if prep.endswith("end of"):
            low = high - (high - low) / 3
        if prep in (
            "not before",
            "no earlier than",
            "only after",
            "not until",
            "from",
            "since",
            "after",
            "starting",
            "ab",
            "nach",
        ):
            low = high if prep in ("only after", "after", "nach") else low
            yield Span(scale, low, math.inf)
        elif prep in ("before", "vor") or (prep in ("until", "till", "bis") and denied):
            yield Span(scale, low, math.inf) if denied else Span(scale, -math.inf, low)
        elif prep.startswith(("by", "until", "till", "bis")):
            yield Span(scale, -math.inf, high if scale != "clock" else low)
        else:
            yield Span(scale, low, high, True)


def _where(match: re.Match[str]) -> tuple[str, float, float] | None:
    lexicon = load_lexicon()
    if named := match["month1"] or match["month"]:
        day = match["day"] or match["day2"]
        first, last = lexicon.seasons.get(named) or (lexicon.months[named], lexicon.months[named])
        if named == "may" and not match["prep"] and not day:
            return None
        if far := match["month2"]:
            last = lexicon.seasons[far][1] if far in lexicon.seasons else lexicon.months[far]
        if day and named in lexicon.months:
            at = first + (int(day) - 1) / 31
            return "month", at, at + 1 / 31
        later = 12 if "next" in match[0] else 0
        return "month", first + later, last + later + 1
    if match["end"]:
        return "month", 12.97, 13.0
    if match["weekday"]:
        day_number = lexicon.weekdays[match["weekday"]]
        return "day", day_number, day_number + (2 if match["weekday"] in ("weekend", "wochenende") else 1)
    if match["year"]:
        return "year", float(match["year"]), float(match["year"]) + 1
    if match["noon"]:
        at = 0.0 if match["noon"] in ("midnight", "mitternacht") else 12.0
        return "clock", at, at + 0.01
    at = _clock(match["hour"], match["minute"], match["half"])
    if match["hour2"]:
        far_end = _clock(match["hour2"], match["minute2"], match["half2"])
        return "clock", at, far_end if far_end > at else far_end + 24
    return "clock", at, at + 0.01


def _clock(hour: str, minute: str | None, half: str | None) -> float:
    at = int(hour) + int(minute or 0) / 60
    return at + 12 if half and half.startswith("p") and at < 12 else at


class Word(NamedTuple):
    said: str
    stem: str
    place: int


@dataclass(frozen=True)
class Clause:
    said: str
    denied: bool
    """Whether an odd number of its words turn it into its opposite."""
    words: tuple[Word, ...]
    """What it speaks of: without what denies, counts, compares, or carries nothing."""
    every_word: tuple[Word, ...]
    raw: tuple[str, ...]
    """All words as they are written, by place."""
    core: frozenset[str]
    """Words that are denied; all of them where that is not told apart."""
    subject: frozenset[str]
    """Words before the one that denies."""
    up: bool
    down: bool
    steady: bool
    only: bool
    every: bool
    part: bool
    bring: bool
    limits: tuple[Limit, ...]
    often: float
    """Times a year; 0 where it does not say."""
    spans: tuple[Span, ...]
    until: bool
    preferred: frozenset[tuple[str, str]]
    """What it puts above what."""

    @property
    def stems(self) -> frozenset[str]:
        return frozenset(word.stem for word in self.every_word)


_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_CLAUSE = re.compile(r"[.;:!?\n](?!\d)|,(?!\d)|\s+(?:and|but|while|whereas|although|und|aber)\s+")
_ABOVE = re.compile(r"([^\W\d_]+),? (?:over|above|before|ahead of|rather than|instead of) ([^\W\d_]+)")
_WHEN = frozenset("after when if before until on once at in nach wenn vor".split())
_BOUNDS = frozenset(
    "in on at for by to from with before after during until into onto over under within between who which that where"
    "through via "
    "against about around among towards without behind beside despite "
    "als in im auf für mit bis vor nach bei zu".split()
)
_FREE = re.compile(r"\b((?:[^\W\d_]+ )?([^\W\d_]+))(?:-free\b(?! of| from)| free (?=([^\W\d_]+)))")


def _read_free(found: re.Match[str]) -> str:
    if found[3] and (found[3] in _BOUNDS or found[3] == "of" or found[2] in _DETERMINERS or load_wordnet().is_verb(found[2])):
        return found[0]
    return found[0] if stem(f"{found[2]}-free") in load_lexicon().absent else f"without {found[1]} "


_NEGATED = ("un", "non-", "non")


@lru_cache(maxsize=8_192)
def split_clauses(text: str) -> tuple[Clause, ...]:
    """The clauses of a text that say something."""
    return tuple(_iterate_clauses(text))


def _iterate_clauses(text: str) -> Iterator[Clause]:
    plain = unicodedata.normalize("NFKC", text).replace("’", "'")
    for said in filter(str.strip, _split(plain)):
        if (clause := _read_clause(" ".join(said.split()))) is not None:
            yield clause


def _split(text: str) -> Iterator[str]:
    # `between June and July` is one clause, and so are two words that `and` joins.
    for line in re.split(r"[.;:!?\n](?!\d)", text):
        parts = re.split(r"(,(?!\d)|(?<!nothing)\s+(?:and|but|while|whereas|although|und|aber)\s+)", line)
        held = parts[0]
        for joint, part in zip(parts[1::2], parts[2::2], strict=True):
            if joint.strip() in ("and", "und") and (
                len(part.split()) < _SHORT or "between" in held or _date_pattern().match(part.casefold())
            ):
                held += joint + part
            else:
                yield held
                held = part
        yield held


_SHORT = 2


def _read_clause(said: str) -> Clause | None:
    lexicon, net = load_lexicon(), load_wordnet()
    lowered = said.casefold()
    lowered = re.sub(r"n't\b", " not", lowered).replace("only-", "only ")
    lowered = re.sub(r"\b([^\W\d_]+)-only\b", r"only \1", lowered)
    lowered = re.sub(r"'s\b|(?<=s)'(?=\s|$)", "", lowered)
    lowered = lexicon.phrases.sub(lambda found: f"{lexicon.meant[found[0]]}", lowered)
    dated = _date_pattern().sub(lambda found: " " if found["month"] != "may" or found["prep"] else found[0], lowered)
    spoken = _FREE.sub(_read_free, dated)
    spoken = _COMPARED.sub(" ", spoken)
    words: list[Word] = []
    everything: list[Word] = []
    denials: list[int] = []
    flags: set[str] = set()
    raw = _WORD.findall(spoken)
    bounds = [at for at, word in enumerate(raw) if word in _BOUNDS]
    for at, word in enumerate(raw):
        short = stem(word)
        if short in lexicon.deny and not (word in ("cease", "drop") and at and raw[at - 1] in ("a", "the")):
            denials.append(at)
            continue
        plain = net.plain(word)
        positive = next((word[len(start) :] for start in _NEGATED if word.startswith(start)), "")
        if (
            len(positive) > 2
            and net.knows(positive)
            and (word.startswith("non-") or {positive, net.plain(positive)} & net.antonyms(word))
        ):
            denials.append(at)
            word, plain, short = positive, net.plain(positive), stem(positive)
        named = {name for name, some in _flagging(lexicon) if short in some}
        if "only" in named and at + 1 < len(raw) and raw[at + 1] in _WHEN:
            named -= {"only"}
        flags |= named
        one = Word(plain, short, at)
        everything.append(one)
        if (
            short not in lexicon.generic
            and word not in _JOINING
            and word not in _BOUNDS
            and not named & _ONLY_FLAGS
            and word not in _NUMBER_WORDS
        ):
            words.append(one)
    if not everything:
        return None
    if not words:  # generic ones are better than none
        words = [
            word
            for word in everything
            if word.stem not in lexicon.durations and raw[word.place] not in _JOINING and word.stem not in _flagged(lexicon)
        ]
    core, subject = _deny_core(words, denials, bounds, [at for at, word in enumerate(raw) if word in ("to", "zu")], len(raw))
    denied = len(denials) % 2 == 1
    return Clause(
        said,
        denied,
        tuple(words),
        tuple(everything),
        tuple(raw),
        core,
        subject,
        "up" in flags,
        "down" in flags,
        "steady" in flags,
        "only" in flags,
        "every" in flags,
        "part" in flags,
        "bring" in flags,
        tuple(_quantities(lowered)),
        _read_often(lowered),
        tuple(_read_spans(lowered, denied)),
        bool(re.search(r"\b(?:until|till|bis)\b", lowered)),
        frozenset(_preferences(lowered)),
    )


def _flagging(lexicon: Lexicon) -> tuple[tuple[str, frozenset[str]], ...]:
    return (
        *(("up", lexicon.up), ("down", lexicon.down), ("steady", lexicon.steady), ("only", lexicon.only)),
        *(("every", lexicon.every), ("part", lexicon.part), ("bring", lexicon.bring)),
    )


@cache
def _flagged(lexicon: Lexicon) -> frozenset[str]:
    return frozenset().union(*(some for name, some in _flagging(lexicon) if name in _ONLY_FLAGS))


_ONLY_FLAGS = frozenset(("up", "down", "steady", "only", "every", "part"))
"""What these words say is kept apart from what a clause speaks of."""


def _deny_core(
    words: list[Word], denials: list[int], bounds: list[int], infinitives: list[int], size: int
) -> tuple[frozenset[str], frozenset[str]]:
    if not denials:
        return frozenset(word.said for word in words), frozenset()
    start = denials[-1]
    after = [word for word in words if word.place >= start]
    if (
        ((start + 1 in bounds and start + 1 not in infinitives) or not after)
        and denials
        and any(word.place < start for word in words)
    ):
        # `photography is forbidden in the hall`: what is denied stands before.
        return frozenset(word.said for word in words if word.place < start), frozenset()
    first = next((word.place for word in words if word.place >= start), size)
    end = next((at for at in bounds if at > first and at not in infinitives), size)
    core = frozenset(word.said for word in words if start <= word.place < end)
    before = frozenset(word.said for word in words if word.place < start)
    return (core, before) if core else (frozenset(word.said for word in words), frozenset())


def _read_often(plain: str) -> float:
    plain = _NUMBER_WORD.sub(lambda word: str(_NUMBER_WORDS[word[0]]), plain)
    match = _OFTEN.search(plain)
    if match is None:
        return 0.0
    if match["word"]:
        return load_lexicon().frequencies.get(stem(match["word"]), 0.0)
    if match["weekday"]:
        return 52.0
    if match["count"]:
        return float(match["count"]) * _A_YEAR[match["each"]]
    if match["unit"]:
        gap = 2.0 if match["gap"] == "other" else float(match["gap"] or 1)
        return _A_YEAR[match["unit"]] / gap
    times = float(match["times"] or (2 if match[1] in ("twice", "zweimal") else 1))
    return times * _A_YEAR[match["per"]]


def _preferences(said: str) -> Iterator[tuple[str, str]]:
    lexicon = load_lexicon()
    for high, low in _ABOVE.findall(said):
        above, below = stem(high), stem(low)
        if not {above, below} & lexicon.generic:
            yield above, below


class Overlap(NamedTuple):
    """How much two clauses speak of the same thing."""

    matched: int
    dice: float
    cover: float
    left: frozenset[str]
    right: frozenset[str]
    """Words of each that the other does not have."""


def _overlap(a: Clause, b: Clause, without: frozenset[str] = frozenset()) -> Overlap:
    one = {word.said for word in a.words if word.said not in without}
    other = {word.said for word in b.words if word.said not in without}
    free = set(other)
    left = set()
    for word in sorted(one):
        met = word if word in free else next((far for far in sorted(free) if are_related(word, far)), None)
        if met is None:
            left.add(word)
        else:
            free.discard(met)
    matched = len(one) - len(left)
    total = len(one) + len(other)
    smaller = min(len(one), len(other))
    return Overlap(
        matched, 2 * matched / total if total else 0.0, matched / smaller if smaller else 0.0, frozenset(left), frozenset(free)
    )


_DICE = 0.6
"""Share of their words that two clauses of the same thing have in common."""
_NEARLY = 0.7
"""The same where each has a word that the other does not."""
_HALF_SAID = 0.5
"""The same where numbers differ."""
_LOOSE = 0.4
"""The same where something else shows that they speak of the same."""
_CLOSE = 0.6
"""Cosine of texts that speak of the same thing."""
_HALF = 0.45
"""Cosine of texts of which one word in common says that they speak of the same."""
_COUNTED = 0.55
"""Cosine of texts that count the same, with no other word in common."""
_NEAR = 0.65
"""Cosine of texts about one narrow thing."""
_FAR = 0.3
"""Cosine below which only what says so by itself counts."""


def find_opposition(one: str, other: str, cosine: float = _CLOSE) -> str | None:
    """Why two texts cannot both be followed; `None` where nothing says so.

    Args:
        one: a text.
        other: another.
        cosine: of their vectors, where it is known; words that are alike count for more in texts that are.
    """
    found = find_reason(one, other, cosine)
    return None if found is None else found[1]


def find_reason(one: str, other: str, cosine: float = _CLOSE) -> tuple[str, str] | None:
    """The rule by which two texts oppose each other, and why; `None` where none does."""
    pairs = [(a, b) for a in split_clauses(one) for b in split_clauses(other)]
    for name, rule in RULES.items():
        for a, b in pairs:
            if (reason := rule(a, b, cosine)) is not None:
                return name, f"{_quote_both(a, b)}{reason and f' ({reason})'}"
    return None


def _same_thing(over: Overlap, cosine: float) -> bool:
    if over.left and over.right:  # each says something more: of another part of it, perhaps
        return over.dice >= _NEARLY and cosine >= _CLOSE
    if over.matched == 1 and cosine < _HALF:
        return False
    return over.matched > 0 and (over.dice >= _DICE or (over.dice >= _LOOSE and cosine >= _CLOSE))


def _by_quantity(a: Clause, b: Clause, cosine: float) -> str | None:
    if _verbs_differ(a, b):
        return None
    over = _overlap(a, b)
    if a.often and b.often and max(a.often, b.often) >= 2 * min(a.often, b.often) and _same_thing(over, cosine):
        if not a.denied and not b.denied and not a.limits and not b.limits:
            return "one is more often than the other"
    if a.denied != b.denied and not (a.limits and b.limits):
        return None
    lexicon = load_lexicon()
    for x in a.limits:
        for y in b.limits:
            spans = x.unit in lexicon.durations and y.unit in lexicon.durations
            if not (spans or are_related(x.unit, y.unit) or _bare_amount(x, y, b) or _bare_amount(y, x, a)):
                continue
            if spans and cosine < _COUNTED:
                continue
            if x.period and y.period and x.period != y.period:
                continue
            if spans:
                x, y = (
                    limit._replace(
                        low=limit.low * lexicon.durations[limit.unit], high=limit.high * lexicon.durations[limit.unit]
                    )
                    for limit in (x, y)
                )
            if not x.excludes(y):
                continue
            units = frozenset(word.said for c in (a, b) for word in c.words if word.stem in (x.unit, y.unit))
            beside = _overlap(a, b, units)
            counted = bool(units) and not spans
            # What is counted is a part of what both speak of.
            enough = beside.matched > 0 or (counted and x.stated and y.stated and cosine >= _COUNTED)
            alone = not (x.stated or y.stated)
            if enough and (not alone or (over.dice >= _HALF_SAID and cosine >= _CLOSE)):
                return f"no {x.unit} number is both"
    return None


def _bare_amount(limit: Limit, counted: Limit, where: Clause) -> bool:
    """Whether a number without a unit may count what another one counts; `where`: the clause of the latter."""
    if counted.unit != "amount":
        return False
    return limit.unit in ("amount", "€", "$", "£") or any(are_related(limit.unit, word.said) for word in where.words)


def _verbs_differ(a: Clause, b: Clause) -> bool:
    net = load_wordnet()
    return any(
        are_opposites(x.said, y.said) and net.is_verb(x.said) and net.is_verb(y.said) and x.place < 2 and y.place < 2
        for x in a.every_word
        for y in b.every_word
    )


def _by_preference(a: Clause, b: Clause, cosine: float) -> str | None:
    turned = {(low, high) for high, low in b.preferred}
    return "" if a.denied == b.denied and a.preferred & turned else None


def _by_direction(a: Clause, b: Clause, cosine: float) -> str | None:
    if a.denied or b.denied:
        return None
    ways = [(c.up and not c.down, c.down and not c.up, c.steady and not c.up and not c.down) for c in (a, b)]
    (up, down, steady), (rise, fall, stay) = ways
    if not ((up and fall) or (down and rise) or (steady and (rise or fall)) or (stay and (up or down))):
        return None
    bring = frozenset(word.said for c in (a, b) for word in c.words if word.stem in load_lexicon().bring)
    over = _overlap(a, b, bring)
    if not over.matched and not (over.left or over.right):
        over = _overlap(a, b)
    if cosine < _HALF or not _same_thing(over, cosine):
        return None
    if over.matched == 1 and any(
        _modifies(word, c)
        for c, some in ((a, over.left), (b, over.right))
        for word in c.words
        if some and word.said not in some
    ):
        return None
    return "one raises what the other lowers or keeps"


def _by_denial(a: Clause, b: Clause, cosine: float) -> str | None:
    """The same thing, once asked for and once denied."""
    if a.denied == b.denied or any(_denies(a, x) or _denies(b, y) for x, y in _opposite_pairs(a, b)):
        return None
    no, yes = (a, b) if a.denied else (b, a)
    if not no.core or not _times_meet(no, yes) or (no.up and not yes.up) or (no.down and not yes.down):
        return None
    if "then" in no.raw or ("between" in no.raw and not no.spans):
        return None
    if any((word in no.raw) != (word in yes.raw) for word in _CONDITIONS) and not no.spans:
        return None
    said = {word.said: word for word in yes.words}
    met: set[str] = set()
    for word in no.core:
        left = [far for far in said if far not in met]
        found = word if word in left else next((far for far in left if are_related(word, far) or _same_end(word, far)), None)
        if found is None:
            return None
        met.add(found)
    if len(no.core) == 1 and any(_modifies(said[word], yes) or _belongs(said[word], yes) for word in met):
        return None
    over = _overlap(no, yes, no.core | met)
    # What is denied in a special case alone may be asked for in general.
    special = {word for word in over.left if word not in no.subject}
    if special and not no.every and not _GENERAL.search(no.said.casefold()) and len(special) > len(no.core) / 2:
        return None
    if len(met) == 1 and not over.matched and cosine < _CLOSE and not any(are_related(x, y) for x in no.core for y in met):
        return None
    if len(met) >= 2 or over.matched:
        return "" if cosine >= _FAR else None
    return "" if cosine >= (_LOOSE if no.every else _HALF) else None


_CONDITIONS = ("before", "after", "unless", "if", "except", "vor", "nach", "außer")
_GENERAL = re.compile(r"\b(?:any|our|never|at all|unser\w*|nie)\b")


def _same_end(one: str, other: str) -> bool:
    poles = load_lexicon().poles
    return bool(poles.get(stem(one), frozenset()) & poles.get(stem(other), frozenset()))


def _belongs(word: Word, clause: Clause) -> bool:
    """Whether a word only says what something is of: `a picture of a dog`."""
    return re.search(rf"\bof (?:an? |the )?{re.escape(word.said[:4])}", clause.said.casefold()) is not None


def _modifies(word: Word, clause: Clause) -> bool:
    """Whether a word only says more of the noun behind it, as `release` does in `release party`."""
    net = load_wordnet()
    after = next((one for one in clause.words if one.place == word.place + 1), None)
    if after is None or not word.place:  # an order begins with its verb
        return False
    if word.place and clause.raw[word.place - 1] in _DETERMINERS:
        return True
    return not net.is_verb(after.said) and not net.is_verb(word.said)


_DETERMINERS = frozenset("a an the our of any every each some no more fewer all der die das ein eine unser unsere".split())


def _times_meet(no: Clause, yes: Clause) -> bool:
    """Whether what is denied at some time is asked for then."""
    if not no.spans:
        return True
    if no.until:
        return True
    return any(x.meets(y) and y.low > -math.inf for x in no.spans for y in yes.spans)


def _by_opposites(a: Clause, b: Clause, cosine: float) -> str | None:
    """Opposites of one thing, both asked for or both denied; one of them denied says the same as the other."""
    found = _opposite_pairs(a, b)
    found = {(x, y) for x, y in found if _denies(a, x) == _denies(b, y)}
    if min(len({x for x, _ in found}), len({y for _, y in found})) % 2 == 0 or _other_times(a, b):
        return None
    lexicon = load_lexicon()
    if (a.limits and b.limits and any(one.stated for one in (*a.limits, *b.limits))) or _lessens(
        a, {x for x, _ in found}
    ) != _lessens(b, {y for _, y in found}):
        return None
    used = frozenset(word.said for pair in found for word in pair)
    over = _overlap(a, b, used)
    words = ", ".join(dict.fromkeys(f"“{x.stem}” against “{y.stem}”" for x, y in sorted(found)))
    if any(_axes(x) & _axes(y) and max(_axes(x) & _axes(y)) >= lexicon.alone for x, y in found):
        return words if cosine >= _LOOSE else None
    ends = any({x.said, y.said} & _CLOSING for x, y in found)
    if ends and any(span.scale in ("day", "clock") for span in (*a.spans, *b.spans)):
        return None
    if ends and (a.part != b.part or bool(a.limits) != bool(b.limits)) and cosine < _CLOSE:
        return None
    verbs = any(load_wordnet().is_verb(x.said) and load_wordnet().is_verb(y.said) for x, y in found)
    scoped = not verbs and ((a.every and b.bring) or (b.every and a.bring) or a.only or b.only)
    curated = any(_axes(x) & _axes(y) for x, y in found)
    if curated and cosine >= _NEAR and over.matched and over.cover >= _HALF_SAID:
        return words
    bare = not over.left | over.right and not over.matched and (a.up, a.down) == (b.up, b.down) and (a.up or a.down)
    if bare or _same_thing(over, cosine) or (scoped and over.matched and over.cover >= _LOOSE):
        return words
    return None


_CLOSING = frozenset(("close", "shut", "schließen"))


def _axes(word: Word) -> frozenset[int]:
    return frozenset(axis for axis, _ in load_lexicon().poles.get(word.stem, frozenset()))


def _opposite_pairs(a: Clause, b: Clause) -> set[tuple[Word, Word]]:
    here, there = a.stems, b.stems
    return {
        (x, y)
        for x in a.every_word
        for y in b.every_word
        if x.stem not in there and y.stem not in here and are_opposites(x.said, y.said)
    }


def _denies(clause: Clause, word: Word) -> bool:
    return clause.denied and word.said in clause.core


def _lessens(clause: Clause, beside: set[Word]) -> bool:
    """Whether a clause asks for less: to lose fewer is not the opposite of to win."""
    down = load_lexicon().down
    if any(limit.low == -math.inf for limit in clause.limits) and any(load_wordnet().is_verb(word.said) for word in beside):
        return True
    return any(word.stem in down for word in clause.every_word if word not in beside)


def _other_times(a: Clause, b: Clause) -> bool:
    """Whether both say when, and never the same: what opens on one day may be closed on another."""
    pairs = [(x, y) for x in a.spans for y in b.spans if x.scale == y.scale]
    return bool(pairs) and all(x.apart(y) for x, y in pairs)


def _by_exclusivity(a: Clause, b: Clause, cosine: float) -> str | None:
    """One thing alone or all of it, and another beside it."""
    if a.denied or b.denied:
        return None
    for one, other in ((a, b), (b, a)):
        if (other.bring or other.part) and cosine >= _LOOSE:
            for kind in one.every_word:
                for word in other.words:
                    if word.stem in load_lexicon().absent.get(kind.stem, frozenset()):
                        return f"“{kind.said}” leaves out “{word.said}”"
        if one.only and not other.only and (found := _shut_out(one, other, cosine)):
            return found
        bring = frozenset(word.said for word in (*one.words, *other.words) if word.stem in load_lexicon().bring)
        over = _overlap(one, other, bring)
        if not over.matched or other.only or cosine < _LOOSE:
            continue
        further = any(
            place.said not in over.right and place.place and other.raw[place.place - 1] in _FURTHER for place in other.words
        )
        if _SINGLE.search(one.said.casefold()):
            several = any(
                limit.low >= 2 and any(are_related(limit.unit, word.said) for word in one.words) for limit in other.limits
            )
            if several or further or _EACH_OWN.search(other.said.casefold()):
                return "one against several"
        if one.only and further and not _focus(one)[1]:
            return "one alone against another beside it"
        if one.only and (met := _outside_focus(one, over, other)):
            if _opposed_values(one, other) or (
                (other.part and (met > 1 or cosine >= _CLOSE)) or (other.bring and over.right and (met > 1 or cosine >= _NEAR))
            ):
                return "one alone against another beside it"
        if (one.only or one.every) and over.left and over.right and cosine >= _HALF:
            for x in over.left:
                for y in over.right:
                    if load_wordnet().are_siblings(x, y) or _kinds(x) & _kinds(y):
                        return f"“{x}” alone against “{y}”"
            source, another = _SOURCE.search(one.said.casefold()), _SOURCE.search(other.said.casefold())
            if source and another and source[1] == another[1] and cosine >= _CLOSE and not other.every and not other.up:
                here, there = (
                    {word.said for word in c.words if word.said in _plain_words(m[2])}
                    for c, m in ((one, source), (other, another))
                )
                if here and there and not any(are_related(x, y) for x in here for y in there):
                    return "all of it from one against another"
    return None


def _kinds(word: str) -> frozenset[int]:
    return load_lexicon().kinds.get(stem(word), frozenset())


def _opposed_values(one: Clause, other: Clause) -> bool:
    """Whether other words than those by which something comes in are opposites."""
    bring = load_lexicon().bring
    return any(x.stem not in bring and y.stem not in bring for x, y in _opposite_pairs(one, other))


def _shut_out(one: Clause, other: Clause, cosine: float) -> str | None:
    """What one lets in alone, against another kind or the opposite of it."""
    over = _overlap(one, other)
    if cosine < _LOOSE or not (over.matched or cosine >= _HALF):
        return None
    for x in (word.said for word in one.words):
        for y in (word.said for word in other.words):
            if _kinds(x) & _kinds(y) and not are_related(x, y):
                return f"“{x}” alone against “{y}”"
    if cosine >= (_LOOSE if over.matched else _COUNTED) and len(one.words) <= 3 and _opposed_values(one, other):
        return "one alone against its opposite"
    return None


_FURTHER = frozenset(
    "more two three four five six several both second third another additional further extra zweite zweites zweiten weitere "
    "weiteres".split()
)


def _focus(clause: Clause) -> tuple[range, str]:
    """Where the words stand that are let in alone, and the verb behind them: `only members may borrow`."""
    only, verbs = load_lexicon().only, load_wordnet()
    at = next((place for place, word in enumerate(clause.raw) if stem(word) in only), 0)
    if at + 1 < len(clause.raw) and clause.raw[at + 1] not in _BOUNDS - {"from", "through", "by", "with", "via"}:
        stops = (n for n in range(at + 2, len(clause.raw)) if clause.raw[n] in _BOUNDS or verbs.is_verb(clause.raw[n]))
        end = next(stops, len(clause.raw))
        verb = next((word.said for word in clause.words if word.place >= end and verbs.is_verb(word.said)), "")
        return range(at, end), verb if end < len(clause.raw) and clause.raw[end] not in _BOUNDS else ""
    start = next((n for n in range(at - 1, 0, -1) if clause.raw[n] in _BOUNDS), at - 1)
    return range(start, at), ""


def _outside_focus(clause: Clause, over: Overlap, other: Clause) -> int:
    """Words that two clauses share beside those which one of them lets in alone."""
    focus, verb = _focus(clause)
    if verb and not any(are_related(verb, word.said) for word in other.words):
        return 0
    bring = load_lexicon().bring
    return sum(word.said not in over.left and word.stem not in bring and word.place not in focus for word in clause.words)


@lru_cache(maxsize=1_000)
def _plain_words(text: str) -> frozenset[str]:
    net = load_wordnet()
    return frozenset(net.plain(word) for word in _WORD.findall(text))


_SINGLE = re.compile(
    r"^(?:[^\W\d_]+ ){0,3}(?:one|a single|single|sole|ein einziger|eine einzige|ein einziges) (?!of |more |another "
    r"|day |week |month |year )"
)
_EACH_OWN = re.compile(r"\b(?:every|each|all)\b.*\b(?:its|their|his|her) own\b|\bone (?:per|for each|for every)\b")
_SOURCE = re.compile(r"\b(from|through|with|via|by) (.+)")


_AROUND = re.compile(r"\b(?:(before|vor)|(after|nach)) (?:(?:the|a|our|der|dem|die|das|den) )?([^\W\d_]+)")


def _around_event(a: Clause, b: Clause) -> bool:
    """Whether one is before an event, and the other after it."""
    (one, other) = ({(stem(event), bool(before)) for before, _, event in _AROUND.findall(c.said.casefold())} for c in (a, b))
    return a.denied == b.denied and any((event, not before) in other for event, before in one)


def _by_time(a: Clause, b: Clause, cosine: float) -> str | None:
    if cosine >= _COUNTED and _around_event(a, b) and _overlap(a, b).matched > 1:
        return "one before it, the other after it"
    if not a.spans or not b.spans or (a.denied and b.denied) or cosine < _COUNTED:
        return None
    opposed = _opposite_pairs(a, b)
    over = _overlap(a, b, frozenset(word.said for pair in opposed for word in pair))
    if over.matched and cosine >= _COUNTED and any(x.meets(y) for x in a.spans for y in b.spans):
        closed = [any(word.stem in load_lexicon().occupy for word in c.every_word) for c in (a, b)]
        if closed[0] != closed[1] and (b if closed[0] else a).bring and not a.denied and not b.denied:
            return "closed when it is used"
    if not _same_thing(over, cosine) and not (over.matched and cosine >= _ALIKE):
        return None
    for x in a.spans:
        for y in b.spans:
            if x.scale != y.scale or x.scale == "day":
                continue
            for one, other, mine, theirs in ((a, b, x, y), (b, a, y, x)):
                lasts = _LASTS.search(one.said.casefold()) or _ends_something(other)
                if one.until and not one.denied and not other.until and lasts:
                    if (theirs.high if theirs.high < math.inf else theirs.low) < mine.high and not other.denied:
                        return "one ends before the other lets it"
            if a.until or b.until or not x.apart(y):
                continue
            first, second = _ends_something(a), _ends_something(b)
            if opposed or first != second:
                if first != second and (x.high <= y.low if first else y.high <= x.low):
                    return "the end before the beginning"
            elif not (x.point and y.point) or over.dice >= _DICE:
                return "not at the same time"
    return None


_ALIKE = 0.7
"""Cosine of texts that are about the same, whatever their words."""
_LASTS = re.compile(
    r"\b(?:keep|kept|stay|stays|remain|remains|leave|run|runs|running|continue|open|wait|hold|let|bleib\w*|offen|behalten)\b"
)


def _ends_something(clause: Clause) -> bool:
    return any(word.stem in _ENDS for word in clause.every_word)


_ENDS = frozenset(map(stem, "finish end close stop complete shut conclude beenden schließen fertigstellen".split()))


RULES = {
    "quantity": _by_quantity,
    "opposite": _by_preference,
    "direction": _by_direction,
    "negation": _by_denial,
    "typed": _by_opposites,
    "exclusive": _by_exclusivity,
    "timing": _by_time,
}
"""By what two clauses oppose each other, in the order in which it is asked."""


def _quote_both(a: Clause, b: Clause) -> str:
    return f"“{_shorten_quote(a.said)}” against “{_shorten_quote(b.said)}”"


def _shorten_quote(said: str, most: int = 120) -> str:
    return said if len(said) <= most else said[: most - 1].rsplit(" ", 1)[0] + "…"


STATED = "CONTRADICTS"
FLOOR = 0.25
"""Cosine from which two nodes may speak of the same; what opposes each other in other words is less alike than what repeats."""
_NODES = 3_000
_PAIRS = 5_000
"""Nodes that are compared, and pairs of them whose words are read."""
_SAYS = ("title", "summary", "description", "statement", "response", "target")
"""Fields that ask for something; a story or a trigger tells when."""


class Contradictions:
    """Finds contradictions, and changes nothing."""

    def __init__(self, vectors: NodeVectors, structure: Structure) -> None:
        self._vectors, self._structure = vectors, structure

    async def find(self, who: Principal, types: frozenset[str], limit: int) -> tuple[list[Contradiction], int]:
        """Contradictions among active nodes of some types, the stated ones first; and how many nodes were compared."""
        found = await gather_vectors(self._vectors, who.tenant, NodeFilter(types=types), _NODES)
        if not found.ids:
            return [], 0
        near = await asyncio.to_thread(pairs_above, found.points, FLOOR, _PAIRS)
        stated = await self._structure.ends(who, found.ids, STATED)
        alike = {(found.ids[a], found.ids[b]): cosine for a, b, cosine in near}
        said = sorted({tuple(sorted((id, end.id))) for id, ends in stated.items() for end in ends if end.id != id})
        wanted = list(dict.fromkeys([*(id for pair in said for id in pair), *(id for pair in alike for id in pair)]))
        nodes = await self._structure.nodes(who, wanted) if wanted else {}
        pairs = [
            _stated_contradiction(nodes[a], nodes[b], alike.get((a, b), 0.0)) for a, b in said if a in nodes and b in nodes
        ]
        told = await asyncio.to_thread(find_opposed, nodes, {pair: c for pair, c in alike.items() if pair not in set(said)})
        return [*pairs, *told][:limit], len(found.ids)


def find_opposed(nodes: Mapping[str, ConstitutionNode], alike: Mapping[tuple[str, str], float]) -> list[Contradiction]:
    """The pairs whose words oppose each other, the most alike first; `alike` is the cosine of each pair looked at."""
    found = []
    for (one, other), cosine in sorted(alike.items(), key=lambda item: (-item[1], item[0])):
        if (
            one in nodes
            and other in nodes
            and (why := find_opposition(demands_of(nodes[one]), demands_of(nodes[other]), cosine)) is not None
        ):
            found.append(_to_contradiction(nodes[one], nodes[other], cosine, why))
    return found


def demands_of(node: ConstitutionNode) -> str:
    """What a node asks for, one field a line."""
    told = {"title": node.title, "summary": node.summary, "description": node.description} | dict(node.model_extra or {})
    return "\n".join(str(told[name]) for name in _SAYS if told.get(name))


def _stated_contradiction(one: ConstitutionNode, other: ConstitutionNode, cosine: float) -> Contradiction:
    why = find_opposition(demands_of(one), demands_of(other))
    return _to_contradiction(one, other, cosine, f"stated ({STATED})" + (f": {why}" if why else ""))


def _to_contradiction(one: ConstitutionNode, other: ConstitutionNode, cosine: float, why: str) -> Contradiction:
    return Contradiction(one=mention(one), other=mention(other), score=round(max(0.0, cosine), 6), because=why)
