"""Making the first plan of a task: by a model, or by rules, with what worked before (V-019, V-040, V-042)."""

from __future__ import annotations

import logging
from collections.abc import Callable

from phronesis_contracts.tasks import NoPlan

from ..reasoner import Answer, TurnContext
from ..steps import Steps
from .deciding import decided
from .plan import BadPlan, Plan, checked
from .ports import Known, Planner, Strategy
from .replan import DECOMPOSITION

log = logging.getLogger(__name__)


async def decomposed(
    steps: Steps,
    context: TurnContext,
    planner: Planner | None,
    rules: Callable[[Known], Plan | None],
    known: Known,
) -> Plan:
    """The first plan of a task.

    Args:
        steps: the journalled steps of its turn.
        context: what the model is told of the turn.
        planner: the model; rules plan where there is none.
        rules: makes a plan by rules; `None` where they do not understand the goal.
        known: the goal, the tools, the strategies and the template.

    Raises:
        NoPlan: nobody could make one.
    """

    async def make() -> Answer[Plan]:
        return await planner.decompose(context, known) if planner is not None else Answer(rules(known))

    made = await decided(steps, "task.plan", Plan, make, DECOMPOSITION)
    if made.value is None and planner is None:
        raise NoPlan("without a language model only tasks over the portfolio and the constitution are understood")
    plan = made.value or known.template
    if plan is None:
        raise NoPlan("no plan could be made for this goal")
    try:
        sound = checked(plan, known.tools, works=planner is not None)
    except BadPlan as wrong:
        log.warning("a plan is no good: %s", wrong)
        raise NoPlan(f"the plan for this goal cannot be worked off: {wrong}") from wrong
    return shortened(sound, known.strategies)


def shortened(plan: Plan, strategies: tuple[Strategy, ...]) -> Plan:
    """A plan without the looking around that a strategy which worked did without (V-126).

    Steps that are optional are left out where no strategy used their tool; a plan that would be empty stays.
    """
    if not strategies:
        return plan
    used = {tool for strategy in strategies for tool in strategy.tools_used}
    gone = {step.id for step in plan.steps if step.optional and step.tool is not None and step.tool not in used}
    kept = [step for step in plan.steps if step.id not in gone]
    if not kept or not gone:
        return plan
    freed = tuple(step.model_copy(update={"depends": tuple(id for id in step.depends if id not in gone)}) for step in kept)
    waves = {wave: number for number, wave in enumerate(sorted({step.wave for step in freed}), 1)}
    return plan.model_copy(update={"steps": tuple(step.model_copy(update={"wave": waves[step.wave]}) for step in freed)})
