"""Tasks without a language model: goals that rules understand, their plans, and their reports."""

from __future__ import annotations

from ..ports import GoalKnowledge, Plan, WrittenReport
from . import constitution, portfolio

__all__ = ["plan", "report"]


def plan(known: GoalKnowledge) -> Plan | None:
    """A plan for a goal; `None` where no rule understands it."""
    asked = portfolio.understood(known.goal)
    if asked is not None:
        return portfolio.plan(asked, known.tools)
    if constitution.understood(known.goal):
        return constitution.plan(known.tools)
    return None


def report(known: GoalKnowledge) -> WrittenReport | None:
    """The report on a goal; `None` where no rule understands it."""
    asked = portfolio.understood(known.goal)
    if asked is not None:
        return portfolio.report(asked, known)
    return constitution.report(known) if constitution.understood(known.goal) else None
