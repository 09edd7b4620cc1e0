"""How a goal ended, as its node says it."""

from __future__ import annotations

import re
from enum import StrEnum

from phronesis_contracts.constitution.kinds import Lifecycle, lifecycle
from phronesis_contracts.constitution.values import ConstitutionNode


class Ended(StrEnum):
    """What became of a goal."""

    ACHIEVED = "achieved"
    FAILED = "failed"
    OPEN = "open"


_DENIED = r"(?:not|never|without being|hardly|barely|only partly|partly)"
_REACHED = (
    r"(?:achieved?|reached|met|succeeded|success(?:ful|fully)?|exceeded|fulfilled|accomplished|completed?|delivered|done|won)"
)
_REACH = rf"(?:{_REACHED}|achieve|reach|meet|succeed|fulfil|deliver|win)"
_FAILED = re.compile(
    rf"(?:\b{_DENIED}|n't)\s+(?:\w+\s+){{0,2}}{_REACH}\b"
    r"|\b(?:fail(?:ed|ure|s)?|missed|abandoned|cancell?ed|dropped|given up|gave up|gone wrong|lost|fell short)\b"
    r"|\bunsuccessful",
    re.IGNORECASE,
)
_ACHIEVED = re.compile(rf"\b{_REACHED}\b", re.IGNORECASE)


def ended(goal: ConstitutionNode) -> Ended:
    """How a goal ended: by its `outcome`, or `outcome` in its metadata or properties; archived without one it has failed.

    A goal that is archived before it was reached was given up (O-391); one that is active and says nothing is open.
    """
    said = _said(goal)
    if said:
        if _FAILED.search(said):
            return Ended.FAILED
        if _ACHIEVED.search(said):
            return Ended.ACHIEVED
    return Ended.OPEN if lifecycle(goal.status or "") is Lifecycle.ACTIVE else Ended.FAILED


def _said(goal: ConstitutionNode) -> str:
    for bag in (goal.model_extra, goal.metadata, goal.properties):
        said = (bag or {}).get("outcome")
        if isinstance(said, str) and said.strip():
            return said
    return ""
