"""Who plans a task: a model, repaired once; where it has no plan, rules; and where they have none the task ends typed."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from phronesis_bus.envelope import deadline
from phronesis_bus.tracing import Tracing
from phronesis_contracts import ModelUnavailable
from phronesis_contracts.orchestrator import Directive, TaskBudget
from phronesis_contracts.tasks import NoPlan
from phronesis_orchestrator.ledger.usage import CallUsage
from phronesis_orchestrator.models.reasoner import Answer, CallFailed, Fault, TurnContext
from phronesis_orchestrator.tasks.decisions import BudgetMeter, make_plan, shorten_plan
from phronesis_orchestrator.tasks.ports import GoalKnowledge, Plan, Step, Strategy, goal_signature
from phronesis_orchestrator.turns.execution import Steps
from phronesis_orchestrator.turns.turn import LostClaim
from tests.unit.orchestrator.fakes import FakeJournal, claim

from .stage import NOVA, ScriptedPlanner, plan, step
from .test_rules import portfolio, report_of

SPENT = CallUsage(input_tokens=100, output_tokens=10, model_calls=1)
UNREADABLE = Fault("I would begin by thinking.", "The answer is not JSON.")
UNKNOWN_TOOL = Plan(steps=(step("a", 1, tool="rm"),))
SLOW = CallFailed(ModelUnavailable("no time is left for the language model"), SPENT)


class FaultyPlanner(ScriptedPlanner):
    """One whose script may hold faults."""

    async def decompose(self, turn: TurnContext, known: GoalKnowledge) -> Answer[Plan]:
        answer = await super().decompose(turn, known)
        return Answer(None, answer.value, answer.spent) if isinstance(answer.value, Fault) else answer


@dataclass
class Planning:
    """One task that a model plans; `made` again takes it over with the same journal."""

    script: list[Any]
    budget: TaskBudget = field(default_factory=TaskBudget)
    journal: FakeJournal = field(default_factory=FakeJournal)

    def __post_init__(self) -> None:
        self.planner = FaultyPlanner(self.script, spent=SPENT)

    async def made(self) -> Plan | str:
        steps = Steps(self.journal, claim(), Tracing("orchestrator"))
        known = GoalKnowledge("Do it all", ("survey_twin",))
        turn = TurnContext(NOVA, {}, (), Directive.FOCUSED_ANALYST, known.goal, known.goal)
        return await make_plan(steps, turn, self.planner, known, BudgetMeter(self.budget, steps, datetime.now(UTC)))


@pytest.mark.parametrize("wrong", [UNKNOWN_TOOL, Plan(steps=()), UNREADABLE], ids=["unknown tool", "empty", "unreadable"])
async def test_a_models_plan_that_is_no_good_is_repaired_once_by_what_is_wrong_with_it(wrong: Any) -> None:
    planning = Planning([wrong, plan("x")])
    made = await planning.made()
    refused = planning.planner.known("decompose", 1).refused
    assert made == plan("x")
    assert refused is not None
    assert refused.wrong
    assert refused.said == (wrong.said if isinstance(wrong, Fault) else wrong.model_dump_json(exclude_defaults=True))


@pytest.mark.parametrize(
    ("script", "times"),
    [([UNREADABLE, UNKNOWN_TOOL], 2), ([SLOW], 1), ([ValueError("broken")], 1), ([UNREADABLE, SLOW], 2)],
    ids=["twice no good", "too slow", "broken", "no good and then too slow"],
)
async def test_a_model_without_a_plan_leaves_the_task_to_the_rules_plan(script: list[Any], times: int) -> None:
    stage = portfolio(planner=FaultyPlanner(script, spent=SPENT))
    report = await report_of(stage)
    assert (report.reasoner, stage.running.degraded) == ("extractive", ["model"])
    assert stage.planner.times("decompose") == times


async def test_where_the_rules_have_no_plan_either_the_reason_is_the_models() -> None:
    with pytest.raises(NoPlan, match="a names an unknown tool"):
        await portfolio("Write a poem about the sea", FaultyPlanner([UNKNOWN_TOOL, UNREADABLE])).run()


async def test_the_rules_plan_comes_before_one_that_worked_before() -> None:
    stage = portfolio(planner=FaultyPlanner([SLOW], spent=SPENT))
    await stage.store.keep_template(stage.claim, goal_signature(stage.goal, "nova"), plan("t"))
    assert (await report_of(stage)).reasoner == "extractive"


async def test_a_plan_that_worked_before_is_the_last_that_is_tried() -> None:
    stage = portfolio("Write a poem about the sea", FaultyPlanner([SLOW], spent=SPENT))
    await stage.store.keep_template(stage.claim, goal_signature(stage.goal, "nova"), plan("t"))
    await stage.run()
    assert [one.id for one in stage.state.steps] == ["t"]


async def test_no_repair_is_asked_for_once_the_tokens_are_spent() -> None:
    planning = Planning([UNREADABLE, plan("x")], budget=TaskBudget(tokens=50))
    assert await planning.made() == "The answer is not JSON."
    assert planning.planner.times("decompose") == 1


@pytest.mark.parametrize("script", [[plan("x")], [UNREADABLE, plan("x")], [UNREADABLE, SLOW]], ids=["good", "repaired", "none"])
async def test_whoever_takes_the_task_over_has_the_same_plan_and_asks_nobody(script: list[Any]) -> None:
    first = Planning(script[:])
    made = await first.made()
    second = Planning([], journal=first.journal)
    assert await second.made() == made
    assert second.planner.asked == []


@pytest.mark.parametrize("at", range(1, 7))
@pytest.mark.parametrize("last", [UNREADABLE, plan("x")], ids=["none", "repaired"])
async def test_wherever_planning_is_killed_the_repaired_plan_or_its_lack_is_the_same(last: Any, at: int) -> None:
    planning = Planning([UNREADABLE, last])
    kept, writes = planning.journal.result, 0

    async def dying(*given: Any, **more: Any) -> None:
        nonlocal writes
        writes += 1
        if writes == at:
            raise LostClaim("killed")
        await kept(*given, **more)

    planning.journal.result = dying  # type: ignore[method-assign]
    try:
        made = await planning.made()
    except LostClaim:
        # What was not journalled is asked for again; what was, is not.
        known = sum(name.endswith(".call") for name in planning.journal.results)
        again = Planning([UNREADABLE, last][known:], journal=planning.journal)
        made = await again.made()
    assert made == (last if isinstance(last, Plan) else "The answer is not JSON.")


async def test_planning_takes_at_most_half_of_the_time_that_is_left() -> None:
    left: list[float] = []

    async def look() -> Plan:
        left.append((deadline.get() or math.inf) - time.time())
        return plan("x")

    token = deadline.set(None)
    try:
        await Planning([look], budget=TaskBudget(seconds=40)).made()
        deadline.set(time.time() + 5)
        await Planning([look], budget=TaskBudget(seconds=40)).made()
    finally:
        deadline.reset(token)
    assert 15 < left[0] <= 20
    assert left[1] <= 5


def test_looking_around_that_a_later_step_draws_on_is_not_left_out() -> None:
    drawn = step("a", 1, optional=True)
    use = Step(id="b", description="d", tool="find_entities", arguments={"name": {"$of": "a", "path": "x"}}, wave=2)
    made = Plan(steps=(drawn, use))
    worked = (Strategy("s", "g", "w", ("find_entities",)),)
    assert shorten_plan(made, worked) == made
    assert [one.id for one in shorten_plan(Plan(steps=(drawn, use.model_copy(update={"arguments": {}}))), worked).steps] == [
        "b"
    ]
