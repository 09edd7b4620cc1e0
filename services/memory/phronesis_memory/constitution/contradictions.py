"""Nodes that cannot both be followed: by a link that says so, by negation, by opposites, or by limits."""

from __future__ import annotations

import asyncio
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from phronesis_contracts import Principal
from phronesis_contracts.constitution import search
from phronesis_contracts.constitution.insight import Contradiction
from phronesis_contracts.constitution.values import ConstitutionNode

from ..words.analysis import stems
from .clusters import gather_vectors, pairs_above
from .ports import NodeFilter, NodeVectors, Structure
from .semantic import mention

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
_NUMBER_WORDS = dict(
    zip(
        "one two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty hundred".split(),
        (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 20, 30, 40, 50, 100),
        strict=True,
    )
)
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(_NUMBER_WORDS)})\b", re.IGNORECASE)
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


def find_limits(text: str) -> tuple[Limit, ...]:
    """The limits that a text states, each with its unit; a number alone is none."""
    found = []
    for match in _LIMIT.finditer(_NUMBER_WORD.sub(lambda word: str(_NUMBER_WORDS[word[0].casefold()]), text)):
        low, high = match["from"], match["to"]
        unit = _unit_of(match)
        if unit is None or (low is None) == (high is None):
            continue
        number = float(match["number"].replace(",", "")) * _SCALES.get((match["scale"] or "").casefold(), 1.0)
        strict = (low or high).casefold() in _STRICT
        found.append(Limit(number, math.inf, unit, strict) if low else Limit(-math.inf, number, unit, strict))
    return tuple(found)


def _unit_of(match: re.Match[str]) -> str | None:
    if match["money"]:
        return match["money"]
    unit = (match["unit"] or "").casefold()
    if unit in ("%", "percent"):
        return "percent"
    return unit.removesuffix("s") or None


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
    said: str
    denied: bool
    """Whether an odd number of its words turn it into its opposite."""
    stems: frozenset[str]
    """What it speaks of: without the words that deny."""
    limits: tuple[Limit, ...]
    preferred: frozenset[tuple[str, str]]
    """What it puts above what."""


def find_opposition(one: str, other: str) -> str | None:
    """Why two texts cannot both be followed; `None` where nothing says so."""
    pairs = [(a, b) for a in split_clauses(one) for b in split_clauses(other)]
    for rule in (_exclusive_limits, _opposite_preference, _denial, _opposite_words):
        for a, b in pairs:
            if (reason := rule(a, b)) is not None:
                return reason
    return None


@lru_cache(maxsize=4_096)
def split_clauses(text: str) -> tuple[Clause, ...]:
    """The clauses of a text that say something."""
    return tuple(_iterate_clauses(text))


def _iterate_clauses(text: str) -> Iterator[Clause]:
    plain = unicodedata.normalize("NFKC", text).replace("’", "'")
    for said in filter(str.strip, _CLAUSE.split(plain)):
        words = [word.removesuffix("n't") or word for word in _WORD.findall(said.casefold())]
        denials = sum(word in _NOT for word in words) + said.casefold().count("n't")
        spoken = frozenset(stem for word in words if word not in _NOT for stem in _stem(word))
        if spoken:
            yield Clause(" ".join(said.split()), denials % 2 == 1, spoken, find_limits(said), frozenset(_preferences(said)))


def _preferences(said: str) -> Iterator[tuple[str, str]]:
    for high, low in _ABOVE.findall(said.casefold()):
        if (above := _stem(high)) and (below := _stem(low)):
            yield above[0], below[0]


@lru_cache(maxsize=20_000)
def _stem(word: str) -> tuple[str, ...]:
    # Words such as `more` and `before` are stop words elsewhere, and decide here.
    return (word,) if word in _DECIDING else tuple(stems(word))


def _denial(a: Clause, b: Clause) -> str | None:
    """The same thing, once asked for and once denied."""
    if a.denied == b.denied or _opposite_pairs(a, b):
        return None
    shared, denied = a.stems & b.stems, a.stems if a.denied else b.stems
    return _quote_both(a, b) if len(shared) >= max(_SHARED, _OVERLAP * len(denied)) else None


def _opposite_preference(a: Clause, b: Clause) -> str | None:
    turned = {(low, high) for high, low in b.preferred}
    return _quote_both(a, b) if a.denied == b.denied and a.preferred & turned else None


def _opposite_words(a: Clause, b: Clause) -> str | None:
    """Opposites of one thing, both asked for or both denied; one of them denied says the same as the other."""
    found = _opposite_pairs(a, b)
    if len(found) % 2 == 0 or a.denied != b.denied:
        return None
    used = {stem for pair in found for stem in pair}
    left, right = a.stems - used, b.stems - used
    if not left & right or len(left & right) < _AROUND * min(len(left), len(right)):
        return None
    words = ", ".join(f"“{x}” against “{y}”" for x, y in sorted(found))
    return f"{_quote_both(a, b)} ({words})"


def _exclusive_limits(a: Clause, b: Clause) -> str | None:
    if a.denied or b.denied:
        return None
    for x in a.limits:
        for y in b.limits:
            around = (a.stems & b.stems) - set(stems(x.unit))
            if x.unit == y.unit and around and x.excludes(y):
                return f"{_quote_both(a, b)} (no {x.unit} number is both)"
    return None


def _opposite_pairs(a: Clause, b: Clause) -> set[tuple[str, str]]:
    return {(x, y) for x in a.stems - b.stems for y in _OPPOSITE.get(x, frozenset()) if y in b.stems - a.stems}


def _quote_both(a: Clause, b: Clause) -> str:
    return f"“{_shorten_quote(a.said)}” against “{_shorten_quote(b.said)}”"


def _shorten_quote(said: str, most: int = 120) -> str:
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

STATED = "CONTRADICTS"
FLOOR = search.SEMANTIC_FLOOR
"""Cosine from which two nodes speak of the same; opposites do, since they share nearly all of their words."""
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
            and (why := find_opposition(demands_of(nodes[one]), demands_of(nodes[other]))) is not None
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
