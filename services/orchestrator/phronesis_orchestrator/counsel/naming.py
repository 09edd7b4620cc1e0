"""Which node a question is about: one whose title it says, or the one that a search by meaning finds near enough."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from phronesis_contracts import ServiceError
from phronesis_contracts.constitution import similarity
from phronesis_contracts.constitution.search import SEMANTIC_SEARCH_TOOL, SemanticSearch
from phronesis_contracts.constitution.session import START_SESSION_TOOL, StartSession

from ..text import is_content, stem, words
from .asking import Question
from .desk import Desk
from .record import Seen

_PART = 0.6
"""The share of a title's words that a question must say to mean it, where it says two at least."""
_NEAR = 3
"""Nodes that are named where none was meant clearly."""
_ASIDE = frozenset(
    stem(word) for word in "goal goals value values principle guardrail strategy vision task decision project".split()
)
"""Words that name a type, and so no node by themselves."""


@dataclass(frozen=True)
class Named:
    """The node that is meant; where none is clear, those that are near."""

    node: Seen | None
    near: tuple[Seen, ...] = ()


async def named(desk: Desk, question: Question) -> Named:
    """The node that a question names; of equals one of a type that the question speaks of.

    Args:
        desk: the tools of the turn.
        question: the question.

    Raises:
        NotOffered: a search is needed, and is not at hand.
        ServiceError: the search failed.
    """
    await _known(desk)
    said = {stem(word) for word in words(question.text)}
    if found := _by_title(said, desk.record):
        return Named(found)
    asked = SemanticSearch(query=question.subject, top_k=5, min_similarity=0.0)
    answer = await desk.ask(SEMANTIC_SEARCH_TOOL, asked)
    hits = [(one, hit.score) for hit in answer.results if (one := desk.record.get(hit.node.id)) is not None]
    if found := _by_title(said, (one for one, _ in hits)):
        return Named(found)
    if hits and hits[0][1] >= similarity.GOAL:
        return Named(hits[0][0])
    return Named(None, tuple(one for one, score in hits if score >= similarity.HYBRID)[:_NEAR])


async def _known(desk: Desk) -> None:
    """See foundation and vision, which are at hand at once. Without them a search has to do."""
    if not desk.has(START_SESSION_TOOL):
        return
    try:
        await desk.ask(START_SESSION_TOOL, StartSession())
    except ServiceError:
        return


def _by_title(said: set[str], nodes: Iterable[Seen]) -> Seen | None:
    """The node whose title is said, the one with the most words first; one whose title is said in part where none is whole."""
    rated = []
    for one in nodes:
        title = {stem(word) for word in words(one.title) if is_content(word)} - _ASIDE
        both = len(title & said)
        whole = both == len(title)
        if title and (whole or (both >= 2 and both / len(title) >= _PART)):
            rated.append(((whole, both, both / len(title), stem(one.type.casefold()) in said), one))
    return max(rated, key=lambda rating: rating[0])[1] if rated else None
