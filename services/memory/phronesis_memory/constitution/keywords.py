"""Words that tell groups of texts apart: TF-IDF over classes, a group's texts taken as one (O-385)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from ..domain.analysis import stems

KEYWORDS = 8
"""Words of one topic."""
_WORD = re.compile(r"[^\W\d_]{3,}(?:['’-][^\W\d_]+)*")
_SPREAD = 2
"""Texts of a group in which a word has to stand: what one text alone says is no topic."""


def keywords(groups: Mapping[str, Sequence[str]], most: int = KEYWORDS) -> dict[str, tuple[str, ...]]:
    """For each group of texts the words that are its own, the most telling first.

    A word counts in its stem, and is shown as it is written most often.

    Args:
        groups: texts by group.
        most: words of a group.
    """
    counted = {name: [_counted(text) for text in texts] for name, texts in groups.items()}
    totals = {name: sum((Counter(_stems(text)) for text in texts), Counter()) for name, texts in counted.items()}
    everywhere = sum(totals.values(), Counter[str]())
    average = everywhere.total() / max(1, len(totals))
    return {name: _best(counted[name], totals[name], everywhere, average, most) for name in groups}


def _best(
    texts: Sequence[Counter[tuple[str, str]]], own: Counter[str], everywhere: Counter[str], average: float, most: int
) -> tuple[str, ...]:
    spread = Counter(stem for text in texts for stem in {stem for stem, _ in text})
    written: dict[str, Counter[str]] = {}
    for text in texts:
        for (stem, word), count in text.items():
            written.setdefault(stem, Counter())[word] += count
    weights = {
        stem: count / own.total() * math.log(1 + average / everywhere[stem])
        for stem, count in own.items()
        if spread[stem] >= min(_SPREAD, len(texts))
    }
    ranked = sorted(weights, key=lambda stem: (-weights[stem], stem))[:most]
    return tuple(min(written[stem].items(), key=lambda item: (-item[1], len(item[0]), item[0]))[0] for stem in ranked)


def _counted(text: str) -> Counter[tuple[str, str]]:
    """How often each stem stands in a text, in each way of writing it."""
    found: Counter[tuple[str, str]] = Counter()
    for word in _WORD.findall(text.casefold()):
        for stem in stems(word):
            found[stem, word] += 1
    return found


def _stems(text: Counter[tuple[str, str]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for (stem, _), count in text.items():
        found[stem] += count
    return dict(found)
