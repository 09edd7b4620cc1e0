"""Which of the retrieved items a question is about."""

from __future__ import annotations

import math
import re

from phronesis_contracts.memory import AugmentedMemoryContext, ContextItem

from .text import Terms

_NODE = re.compile(r"^(?P<node>\w+/.+)/(?P<year>\d{4})(?:[/#:].*)?$")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_TEXT, _TITLE, _SCORE, _HOP = 0.4, 0.35, 0.25, 0.03
_NEWEST = 0.15
"""By how much an older year of a node must fit better than the newest."""


def ranked(question: str, memory: AugmentedMemoryContext) -> list[tuple[float, ContextItem]]:
    """The items of `memory` with their rank from 0 to about 1, best first, one for each thing.

    Of a node with a text for each year, it is the year that fits.

    Args:
        question: what was asked, with the topic of the conversation where it depends on it (`phrases.focus`).
        memory: what retrieval handed back.
    """
    items = (*memory.concepts, *memory.memory_units)
    terms = Terms.of(question)
    titles = [terms.found_in(item.title) for item in items]
    found = [title | terms.found_in(item.text) for title, item in zip(titles, items, strict=True)]
    weights = weigh(terms, found)
    top = max((item.score for item in items), default=0.0) or 1.0
    scored = [
        (
            _TEXT * _share(weights, held) + _TITLE * _named(weights, title, item) + _SCORE * item.score / top - _HOP * item.hop,
            item,
        )
        for item, title, held in zip(items, titles, found, strict=True)
    ]
    return _one_each(scored, set(_YEAR.findall(question)))


def weigh(terms: Terms, found: list[frozenset[str]]) -> dict[str, float]:
    """A weight for each term: the fewer of the texts hold it, the more it says."""
    counts = {term: sum(term in held for held in found) for term in terms.stems}
    return {term: math.log(1 + (len(found) + 1) / (count + 1)) for term, count in counts.items()}


def _share(weights: dict[str, float], held: frozenset[str]) -> float:
    return sum(weights[term] for term in held) / (sum(weights.values()) or 1.0)


def _named(weights: dict[str, float], held: frozenset[str], item: ContextItem) -> float:
    """How far the question names the item: the share of its terms in the title, and of the title's terms in it."""
    own = Terms.of(item.title).stems
    return 0.5 * _share(weights, held) + 0.5 * len(held) / len(own) if own else 0.0


def _one_each(scored: list[tuple[float, ContextItem]], years: set[str]) -> list[tuple[float, ContextItem]]:
    """For each node the year that was asked for, else the newest, else one that fits clearly better than the newest."""
    newest: dict[str, str] = {}
    for _, item in scored:
        node, year = node_year(item)
        newest[node] = max(newest.get(node, ""), year)
    best: dict[str, tuple[tuple[bool, float], float, ContextItem]] = {}
    for score, item in scored:
        node, year = node_year(item)
        rank = (year in years, score + (_NEWEST if year == newest[node] else 0.0))
        if node not in best or rank > best[node][0]:
            best[node] = (rank, score, item)
    return sorted(((score, item) for _, score, item in best.values()), key=lambda pair: (-pair[0], pair[1].id))


def node_year(item: ContextItem) -> tuple[str, str]:
    """The thing that an item tells of, and the year that it tells of; no year where it is no node of the twin."""
    name = item.external_id or item.id
    match = _NODE.match(name)
    return (match["node"], match["year"]) if match else (name, "")
