"""The agents without a language model: a few kinds of question, answered by rules from the tools, with the nodes cited."""

from __future__ import annotations

from datetime import UTC, datetime

from phronesis_contracts import NotFound
from phronesis_contracts.constitution.search import SEMANTIC_SEARCH_TOOL, SemanticSearch

from ..extractive import courtesy, say
from ..reasoner import TurnContext
from ..running import Running
from .asking import Kind, Question, understood
from .contradictions import contradictions
from .desk import Desk, NotOffered
from .losses import losses
from .naming import Named, named
from .precedents import precedents
from .purpose import purpose
from .room import room
from .rules import broken, told
from .saying import cite, joined, listed, paragraphs
from .strategies import strategies

_SENTENCES = {
    "by_rules": "This was looked up in the graph by rules; no language model was used.",
    "cannot": "Without a language model I can only look things up.",
}
"""Said where the agent's profile has no phrase of that name."""
_FOUND = 5
"""Nodes that a search tells."""
_SUMMARY = 160
"""Characters of what a found node says."""


async def plainly(running: Running, turn: TurnContext, desk: Desk) -> str:
    """The answer to a turn.

    Args:
        running: the turn in hand.
        turn: its context.
        desk: its tools.

    Raises:
        ServiceError: the owner of a tool that the answer cannot do without failed.
    """
    text = (turn.user_text or turn.final_input).strip()
    if kind := courtesy(text):
        return say(turn, kind)
    question = understood(turn)
    try:
        answer = await _answered(running, desk, question)
    except NotOffered as lacking:
        return f"I cannot answer that here: it needs the tool {lacking.tool}, which this agent does not have for you."
    except NotFound:
        return "A node that this is about is not there any more."
    limits = _phrase(turn, "cannot") if question.kind in (Kind.SEARCH, Kind.PROPOSAL) else ""
    return paragraphs(answer, limits, _phrase(turn, "by_rules"))


async def _answered(running: Running, desk: Desk, question: Question) -> str:
    match question.kind:
        case Kind.CONTRADICTION:
            return await contradictions(desk, question.text)
        case Kind.ROOM:
            return await room(desk, question.text, datetime.now(UTC).date())
        case Kind.STRATEGY:
            return await strategies(desk, question.subject)
        case Kind.PRECEDENT:
            return await _precedents(running, desk, question.subject)
        case Kind.PROPOSAL:
            return await _precedents(running, desk, question.text)
        case Kind.LOSS:
            found = await named(desk, question)
            return await losses(desk, found.node) if found.node else _unnamed(found)
        case Kind.PURPOSE:
            found = await named(desk, question)
            return await purpose(desk, found.node) if found.node else _unnamed(found)
        case Kind.SEARCH:
            return await _searched(desk, question)


async def _precedents(running: Running, desk: Desk, described: str) -> str:
    if not described:
        return "Which decision do you mean? Describe it in a sentence, and I look for those that are like it."
    hits = await broken(running, desk, described)
    return paragraphs(told(hits), await precedents(desk, described))


async def _searched(desk: Desk, question: Question) -> str:
    found = await desk.ask(SEMANTIC_SEARCH_TOOL, SemanticSearch(query=question.text, top_k=_FOUND))
    if not found.results:
        return "I found nothing in the graph that is near to this."
    rows = []
    for hit in found.results:
        seen = desk.record.get(hit.node.id)
        said = f": {seen.text[:_SUMMARY]}" if seen and seen.text else ""
        rows.append(f"{cite(hit.node)} ({hit.node.type}, {hit.node.layer}){said}")
    return paragraphs("These are nearest to it in meaning:", listed(rows))


def _unnamed(found: Named) -> str:
    near = f" Near to it are {joined([cite(one) for one in found.near])}; ask with one of their titles." if found.near else ""
    return f"I found no node that your question names.{near}"


def _phrase(turn: TurnContext, name: str) -> str:
    own = turn.agent.phrases.get(name, "").strip() if turn.agent else ""
    return own or _SENTENCES[name]
