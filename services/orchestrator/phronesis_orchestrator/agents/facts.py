"""What a turn states about its user, learnt while it runs, and what is known of them."""

from __future__ import annotations

from datetime import datetime

from phronesis_contracts.facts import ASK_FACTS, LEARN, AnsweredFacts, AskFacts, Learn, Learnt

from ..turns.execution import TurnRun


async def learn_turn(running: TurnRun, language: str | None = None) -> Learnt:
    """Learn what the message of this turn states, so that the turn itself knows it. Learnt again after the turn, it stays once.

    Args:
        language: code of the message's language, where it is known.

    Returns:
        The facts as sentences to the user, each with what it replaced. A replayed turn has their ids alone.

    Raises:
        ServiceError: memory does not answer; the turn may go on without, and is learnt from when it has ended.
    """
    claim = running.claim
    request = Learn(
        turn_id=claim.turn_id,
        conversation_id=claim.conversation_id,
        said=claim.request.text,
        said_at=claim.created_at,
        language=language,
    )
    return await running.neighbours.ask(claim.who, LEARN, request, key=f"{claim.turn_id}/learn")


async def ask_facts(
    running: TurnRun, question: str, language: str | None = None, *, as_of: datetime | None = None
) -> AnsweredFacts:
    """The facts that answer a question about the user; none where it was never told. Raises `ServiceError`."""
    request = AskFacts(question=question[:4_000], language=language, as_of=as_of)
    return await running.neighbours.ask(running.claim.who, ASK_FACTS, request)
