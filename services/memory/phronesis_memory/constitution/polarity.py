"""Whether two sentences that speak of the same ask for opposite things: by negation, by opposites, by limits (O-398).

Rules, and no model: each finding says which words it rests on, so that a person can judge it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ..domain.analysis import stems
from .limits import Limit, limits

_NOT = frozenset(
    "not no never none nobody nothing nor neither without cannot avoid avoids avoiding refuse refuses refusing refrain "
    "refrains reject rejects forbid forbids forbidden prohibit prohibits prohibited prevent prevents ban bans "
    "banned decline declines abstain dont wont cant".split()
)
"""Words that turn what they stand with into its opposite."""
_OPPOSITES = """
    more/less more/fewer increase/decrease increase/reduce grow/shrink expand/shrink expand/narrow raise/lower raise/reduce
    raise/cut maximise/minimise maximize/minimize most/least high/low higher/lower large/small big/small long/short
    longer/shorter fast/slow faster/slower quick/slow quickly/slowly speed/slow early/late before/after first/last always/never
    open/closed open/secret open/private openly/secretly public/private publish/withhold share/withhold share/hide show/hide
    disclose/conceal transparent/secret accept/reject accept/refuse accept/decline allow/forbid allow/prohibit
    permit/forbid permit/prohibit encourage/discourage hire/dismiss spend/save buy/sell lend/borrow centralise/decentralise
    centralize/decentralize central/local global/local broad/narrow wide/narrow breadth/depth generalist/specialist
    simple/complex keep/discard keep/delete keep/abandon retain/delete start/stop begin/end add/remove include/exclude
    join/leave together/alone jointly/alone team/alone alone/collaborate independent/dependent free/paid cheap/expensive
    strict/lenient flexible/rigid fixed/flexible formal/informal quantity/quality remote/onsite office/remote office/home
    office/anywhere night/day weekend/weekday inside/outside internal/external indoors/outdoors manual/automatic
    manually/automatically consensus/command trust/distrust risk/safety bold/cautious rely/distrust support/oppose
    defend/attack win/lose double/halve
""".split()
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_CLAUSE = re.compile(r"[.;:!?\n](?!\d)|,(?!\d)|\s+(?:and|but|while|whereas|although)\s+")
_ABOVE = re.compile(r"([^\W\d_]+),? (?:over|above|before|ahead of|rather than|instead of) ([^\W\d_]+)")
_SHARED = 2
"""Stems that two clauses have in common where one denies the other."""
_OVERLAP = 0.75
"""Share of a denied clause that stands in the other one: what is denied in a special case alone may be asked for in general."""
_AROUND = 0.6
"""Share of the shorter clause that two clauses share beside a pair of opposites."""


@dataclass(frozen=True)
class Clause:
    """A part of a text that asks for one thing."""

    said: str
    denied: bool
    """Whether an odd number of its words turn it into its opposite."""
    stems: frozenset[str]
    """What it speaks of: without the words that deny."""
    limits: tuple[Limit, ...]
    preferred: frozenset[tuple[str, str]]
    """What it puts above what."""


def opposed(one: str, other: str) -> str | None:
    """Why two texts cannot both be followed; `None` where nothing says so.

    Args:
        one: what one node says.
        other: what the other one says.
    """
    pairs = [(a, b) for a in clauses(one) for b in clauses(other)]
    for rule in (_limited, _preferred, _denied, _opposite):
        for a, b in pairs:
            if (reason := rule(a, b)) is not None:
                return reason
    return None


@lru_cache(maxsize=4_096)
def clauses(text: str) -> tuple[Clause, ...]:
    """The clauses of a text that say something."""
    return tuple(_clauses(text))


def _clauses(text: str) -> Iterator[Clause]:
    plain = unicodedata.normalize("NFKC", text).replace("’", "'")
    for said in filter(str.strip, _CLAUSE.split(plain)):
        words = [word.removesuffix("n't") or word for word in _WORD.findall(said.casefold())]
        denials = sum(word in _NOT for word in words) + said.casefold().count("n't")
        spoken = frozenset(stem for word in words if word not in _NOT for stem in _stem(word))
        if spoken:
            yield Clause(" ".join(said.split()), denials % 2 == 1, spoken, limits(said), frozenset(_preferences(said)))


def _preferences(said: str) -> Iterator[tuple[str, str]]:
    for high, low in _ABOVE.findall(said.casefold()):
        if (above := _stem(high)) and (below := _stem(low)):
            yield above[0], below[0]


@lru_cache(maxsize=20_000)
def _stem(word: str) -> tuple[str, ...]:
    # Words such as `more` and `before` are stop words elsewhere, and decide here.
    return (word,) if word in _DECIDING else tuple(stems(word))


def _denied(a: Clause, b: Clause) -> str | None:
    """The same thing, once asked for and once denied."""
    if a.denied == b.denied or _pairs(a, b):
        return None
    shared, denied = a.stems & b.stems, a.stems if a.denied else b.stems
    return _said(a, b) if len(shared) >= max(_SHARED, _OVERLAP * len(denied)) else None


def _preferred(a: Clause, b: Clause) -> str | None:
    """One thing put above another, and the other above the one."""
    turned = {(low, high) for high, low in b.preferred}
    return _said(a, b) if a.denied == b.denied and a.preferred & turned else None


def _opposite(a: Clause, b: Clause) -> str | None:
    """Opposites of one thing, both asked for or both denied; one of them denied says the same as the other."""
    found = _pairs(a, b)
    if len(found) % 2 == 0 or a.denied != b.denied:
        return None
    used = {stem for pair in found for stem in pair}
    left, right = a.stems - used, b.stems - used
    if not left & right or len(left & right) < _AROUND * min(len(left), len(right)):
        return None
    words = ", ".join(f"“{x}” against “{y}”" for x, y in sorted(found))
    return f"{_said(a, b)} ({words})"


def _limited(a: Clause, b: Clause) -> str | None:
    """Limits of one thing that exclude each other."""
    if a.denied or b.denied:
        return None
    for x in a.limits:
        for y in b.limits:
            around = (a.stems & b.stems) - set(stems(x.unit))
            if x.unit == y.unit and around and x.excludes(y):
                return f"{_said(a, b)} (no {x.unit} number is both)"
    return None


def _pairs(a: Clause, b: Clause) -> set[tuple[str, str]]:
    """Opposites of which one stands in one clause and the other in the other, and not both in one."""
    return {(x, y) for x in a.stems - b.stems for y in _OPPOSITE.get(x, frozenset()) if y in b.stems - a.stems}


def _said(a: Clause, b: Clause) -> str:
    return f"“{_short(a.said)}” against “{_short(b.said)}”"


def _short(said: str, most: int = 120) -> str:
    return said if len(said) <= most else said[: most - 1].rsplit(" ", 1)[0] + "…"


def _table() -> tuple[frozenset[str], dict[str, frozenset[str]]]:
    named = [tuple(pair.split("/")) for pair in _OPPOSITES]
    deciding = frozenset(word for pair in named for word in pair if not stems(word))
    found: dict[str, set[str]] = {}
    for left, right in named:
        x, y = (word if word in deciding else stems(word)[0] for word in (left, right))
        found.setdefault(x, set()).add(y)
        found.setdefault(y, set()).add(x)
    return deciding, {word: frozenset(others) for word, others in found.items()}


_DECIDING, _OPPOSITE = _table()
