"""Decompositions that worked, found again by the signature of a goal; they are apart from strategies (V-042)."""

from __future__ import annotations

import hashlib
import re

from .plan import Plan

_WORD = re.compile(r"[^\W\d_]{3,}|\d+")
"""Numbers count however short they are: a plan for part 12 is none for part 15."""
_SMALL = frozenset(
    "a an and are by do for from how in is it of on or our please the their to up us was we what which with".split()
)


def signature(goal: str, agent: str) -> str:
    """What goals have in common that one decomposition is good for: their words, without order, case and small words.

    Args:
        goal: of the task.
        agent: whose tools the plan used.
    """
    words = sorted({word for word in _WORD.findall(goal.casefold()) if word not in _SMALL})
    return hashlib.sha256("\x00".join((agent, *words)).encode()).hexdigest()


def usable(plan: Plan | None, tools: tuple[str, ...]) -> Plan | None:
    """A kept plan whose tools are all at hand still."""
    if plan is None or any(step.tool is not None and step.tool not in tools for step in plan.steps):
        return None
    return plan
