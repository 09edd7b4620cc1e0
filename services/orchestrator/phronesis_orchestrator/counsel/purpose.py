"""What a goal serves and why: the ladder above it, and the chains of reasons that come to a value or a vision."""

from __future__ import annotations

from phronesis_contracts.constitution.insight import WHY_TOOL, AskWhy
from phronesis_contracts.constitution.paths import CLIMB_LADDER_TOOL, ClimbLadder, LadderClimbed

from .desk import Desk
from .record import Seen
from .saying import chain, cite, joined, listed, paragraphs

_REASONS = 4
"""Chains that are told."""


async def purpose(desk: Desk, node: Seen) -> str:
    """The answer.

    Args:
        desk: the tools of the turn.
        node: what is asked about, of whatever type.

    Raises:
        NotOffered: the tools for it are not at hand.
        ServiceError: they failed.
    """
    ladder = await _ladder(desk, node) if node.type == "goal" else ""
    why = await desk.ask(WHY_TOOL, AskWhy(from_id=node.id, limit=_REASONS))
    reasons = listed(dict.fromkeys(chain(reason.path) for reason in why.reasons if len(reason.path) > 1))
    if not ladder and not reasons:
        return f"The graph holds no reason for {cite(node)}: no relationship leads from it to a goal, a vision or a value."
    return paragraphs(
        ladder or f"{cite(node)} is a {node.type}.",
        f"Why, step by step:\n{reasons}" if reasons else "No chain from it comes to a value.",
    )


async def _ladder(desk: Desk, node: Seen) -> str:
    found: LadderClimbed = await desk.ask(CLIMB_LADDER_TOOL, ClimbLadder(id=node.id))
    above = [cite(rung) for rung in found.ladder if rung.id != node.id]
    return f"{cite(node)} serves {joined(above[:1])}{_further(above[1:])}." if above else ""


def _further(above: list[str]) -> str:
    return f", and above that {joined(above)}" if above else ""
