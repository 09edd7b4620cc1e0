"""Plans run on the twin: every plan that the twin answers becomes reads of the graph, and what they give a finding."""

from __future__ import annotations

from dataclasses import replace

from .changes import change
from .figures import aggregate, compare
from .finding import Finding
from .gaps import gaps
from .plan import Aggregate, Change, Compare, Coverage, Describe, Gaps, Plan, Rank, Relate, Select
from .reader import TooMany, TwinReader
from .relations import relate
from .sets import rank, select
from .things import coverage, describe


async def execute(plan: Plan, twin: TwinReader) -> Finding:
    """Answer a plan of `DATA_PLANS`.

    Raises `ServiceError` (the graph cannot be asked, or the plan does not fit its ontology), `TypeError` (the twin answers no
    such plan).
    """
    try:
        found = await _run(plan, twin)
    except TooMany as more:
        found = Finding(outcome="too_many", total=more.args[0] if more.args else 0)
    return replace(found, statements=twin.statements)


async def _run(plan: Plan, twin: TwinReader) -> Finding:
    match plan:
        case Select():
            return await select(plan, twin)
        case Aggregate():
            return await aggregate(plan, twin)
        case Rank():
            return await rank(plan, twin)
        case Compare():
            return await compare(plan, twin)
        case Change():
            return await change(plan, twin)
        case Relate():
            return await relate(plan, twin)
        case Gaps():
            return await gaps(plan, twin)
        case Describe():
            return await describe(plan, twin)
        case Coverage():
            return await coverage(plan, twin)
    raise TypeError(f"the twin answers no plan of kind {plan.kind}")
