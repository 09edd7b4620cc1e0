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
from phronesis_orchestrator.tasks.ports import GoalKnowledge, Plan, Step, Strategy
from phronesis_orchestrator.turns.execution import Steps
from phronesis_orchestrator.turns.turn import LostClaim
from tests.unit.orchestrator.fakes import FakeJournal, claim

from .stage import NOVA, ScriptedPlanner, plan, step

SPENT = CallUsage(input_tokens=100, output_tokens=10, model_calls=1)
UNREADABLE = Fault("I would begin by thinking.", "The answer is not JSON.")
UNKNOWN_TOOL = Plan(steps=(step("a", 1, tool="rm"),))
BY_RULES = plan("r")
SLOW = CallFailed(ModelUnavailable("no time is left for the language model"), SPENT)


class FaultyPlanner(ScriptedPlanner):
    """One whose script may hold faults."""

    async def decompose(self, turn: TurnContext, known: GoalKnowledge) -> Answer[Plan]:
        answer = await super().decompose(turn, known)
        return Answer(None, answer.value, answer.spent) if isinstance(answer.value, Fault) else answer


@dataclass
class Planning:
    """One task that is planned; `made` again takes it over with the same journal."""

    script: list[Any]
    rules: Plan | None = None
    template: Plan | None = None
    budget: TaskBudget = field(default_factory=TaskBudget)
    journal: FakeJournal = field(default_factory=FakeJournal)
    asked_rules: int = 0

    def __post_init__(self) -> None:
        self.planner = FaultyPlanner(self.script, spent=SPENT)

    async def made(self) -> Plan:
        def by_rules(known: GoalKnowledge) -> Plan | None:
            self.asked_rules += 1
            return self.rules

        steps = Steps(self.journal, claim(), Tracing("orchestrator"))
        known = GoalKnowledge("Do it all", ("survey_twin",), template=self.template)
        turn = TurnContext(NOVA, {}, (), Directive.FOCUSED_ANALYST, known.goal, known.goal)
        return await make_plan(steps, turn, self.planner, by_rules, known, BudgetMeter(self.budget, steps, datetime.now(UTC)))


@pytest.mark.parametrize("wrong", [UNKNOWN_TOOL, Plan(steps=()), UNREADABLE], ids=["unknown tool", "empty", "unreadable"])
async def test_a_models_plan_that_is_no_good_is_repaired_once_by_what_is_wrong_with_it(wrong: Any) -> None:
    planning = Planning([wrong, plan("x")], BY_RULES)
    made = await planning.made()
    refused = planning.planner.known("decompose", 1).refused
    assert ([one.id for one in made.steps], made.by_rules, planning.asked_rules) == (["x"], False, 0)
    assert refused is not None
    assert refused.wrong
    assert refused.said == (wrong.said if isinstance(wrong, Fault) else wrong.model_dump_json(exclude_defaults=True))


@pytest.mark.parametrize(
    ("script", "times"),
    [([UNREADABLE, UNKNOWN_TOOL], 2), ([SLOW], 1), ([ValueError("broken")], 1), ([UNREADABLE, SLOW], 2)],
    ids=["twice no good", "too slow", "broken", "no good and then too slow"],
)
async def test_a_model_without_a_plan_leaves_the_task_to_the_rules_plan(script: list[Any], times: int) -> None:
    planning = Planning(script, BY_RULES)
    made = await planning.made()
    assert ([one.id for one in made.steps], made.by_rules) == (["r"], True)
    assert planning.planner.times("decompose") == times


async def test_where_the_rules_have_no_plan_either_the_reason_is_the_models() -> None:
    with pytest.raises(NoPlan, match="a names an unknown tool"):
        await Planning([UNKNOWN_TOOL, UNREADABLE]).made()


async def test_a_plan_of_the_rules_that_is_no_good_is_not_worked_off() -> None:
    with pytest.raises(NoPlan, match="no time is left"):
        await Planning([SLOW], UNKNOWN_TOOL).made()


async def test_a_plan_that_worked_before_is_the_last_that_is_tried() -> None:
    made = await Planning([SLOW], template=plan("t")).made()
    assert [one.id for one in made.steps] == ["t"]


async def test_a_model_cannot_pass_its_plan_off_as_the_rules() -> None:
    made = await Planning([plan("x").model_copy(update={"by_rules": True})]).made()
    assert made.by_rules is False


async def test_no_repair_is_asked_for_once_the_tokens_are_spent() -> None:
    planning = Planning([UNREADABLE, plan("x")], BY_RULES, budget=TaskBudget(tokens=50))
    made = await planning.made()
    assert (made.by_rules, planning.planner.times("decompose")) == (True, 1)


@pytest.mark.parametrize(
    "script", [[plan("x")], [UNREADABLE, plan("x")], [UNREADABLE, SLOW]], ids=["good", "repaired", "rules"]
)
async def test_whoever_takes_the_task_over_works_off_the_same_plan_and_asks_nobody(script: list[Any]) -> None:
    first = Planning(script[:], BY_RULES)
    made = await first.made()
    second = Planning([], BY_RULES, journal=first.journal)
    assert await second.made() == made
    assert (second.planner.asked, second.asked_rules) == ([], 0)


@pytest.mark.parametrize("at", range(1, 7))
async def test_wherever_planning_is_killed_the_repaired_or_the_rules_plan_is_the_same(at: int) -> None:
    planning = Planning([UNREADABLE, UNREADABLE], BY_RULES)
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
        again = Planning([UNREADABLE, UNREADABLE], BY_RULES, journal=planning.journal)
        made = await again.made()
    assert (made.by_rules, [one.id for one in made.steps]) == (True, ["r"])


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
