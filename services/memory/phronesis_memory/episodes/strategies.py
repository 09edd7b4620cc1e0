"""The rules of experience: which strategy is kept, how it is cleaned, when it is no use any more, what a question names."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from phronesis_contracts.episodes import MIN_SCORE

from ..words.analysis import stems

ENOUGH_USES = 3
"""Uses before which a strategy is not retired."""
WORST = 0.2
"""The lower bound of its success under which it is: below two of three, four of eight, five of ten."""
_Z = 1.96
"""Of a 95 % interval."""
_TITLES = (
    "REASONING CONTEXT",
    "PRE-FLIGHT REASONING",
    "PROVEN STRATEGIES",
    "EPISODIC RECALL",
    "PAST EPISODES",
    "STYLE EXAMPLES",
    "RESEARCH DIRECTIVE",
)
"""Titles of the blocks of a plan, which no text of a strategy may pretend to begin."""
_BLOCKS = re.compile("|".join(r"[\s_\-]*".join(re.split(r"[ \-]", title)) for title in _TITLES), re.I)
_MARKS = re.compile(r"^[ \t]*(?:#{1,6}|={3,}|-{3,}|<{2,}|>{2,}|\[{2,})[ \t]*|`{3,}", re.M)
_NAME = re.compile(r"[\w.\-]+")


def refusal_reason(score: float | None, succeeded: bool, verified: bool) -> str:
    """Why a strategy is not kept; empty where it is. A critic's `score` outside 0 to 1, or none, counts as not successful.

    Args:
        verified: whether a checker or a person accepted the task's result; a critic's word alone is none.
    """
    if not succeeded:
        return "the task failed"
    if not verified:
        return "nobody verified the result"
    if score is None or not math.isfinite(score) or not 0.0 <= score <= 1.0:
        return "the task has no score"
    return "" if score >= MIN_SCORE else f"the score is under {MIN_SCORE}"


def clean_text(text: str, most: int) -> str:
    """A text without the titles of blocks and the marks of headings, and of a bounded length."""
    left = "".join(c for c in unicodedata.normalize("NFKC", text) if c in "\n\t" or unicodedata.category(c)[0] != "C")
    before = None
    while left != before:  # what is taken out may bring together what was apart
        before = left
        left = _MARKS.sub("", _BLOCKS.sub("", left))
    return left.strip()[:most].rstrip()


def expected_success(uses: int, wins: int) -> float:
    """How well a strategy may be expected to work: Laplace's rule of succession, its own task counted as a success."""
    return (wins + 2) / (uses + 3)


def is_spent(uses: int, wins: int) -> bool:
    """Whether a strategy has stopped working: its success is surely under what it would need.

    The lower bound is Wilson's (E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22,
    1927, 209-212): with few uses it asks for nearly all of them to have gone well, with many for about half.
    """
    return uses >= ENOUGH_USES and wilson_lower_bound(uses, wins) < WORST


def wilson_lower_bound(uses: int, wins: int) -> float:
    """The lower end of Wilson's 95 % interval of a share; 0 without uses."""
    if uses == 0:
        return 0.0
    share, z2 = wins / uses, _Z * _Z
    spread = _Z * math.sqrt((share * (1 - share) + z2 / (4 * uses)) / uses)
    return max(0.0, (share + z2 / (2 * uses) - spread) / (1 + z2 / uses))


def tool_names(query: str) -> list[str]:
    """The words of a question as the names of tools are compared: in lower case, dots as underscores."""
    return list(dict.fromkeys(word.strip(".-").replace(".", "_") for word in _NAME.findall(query.casefold())))


def profile_entries(profile: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a profile says, a path and a text for each value in it."""
    return list(_entries(profile, ()))


def _entries(value: Any, path: tuple[str, ...]) -> Iterable[tuple[str, str]]:
    match value:
        case dict():
            for name, member in value.items():
                yield from _entries(member, (*path, str(name)))
        case list() | tuple() if any(isinstance(member, dict | list) for member in value):
            for number, member in enumerate(value):
                yield from _entries(member, (*path, str(number)))
        case list() | tuple():
            yield ".".join(path), ", ".join(map(str, value))
        case None:
            return
        case _:
            yield ".".join(path), str(value)


def word_overlap(query: str, text: str) -> float:
    """The share of a question's words, as stems, that stand in a text: 0 to 1."""
    terms = set(stems(query))
    return len(terms & set(stems(re.sub(r"[._]", " ", text)))) / len(terms) if terms else 0.0
