"""The orchestrator's process with a planner that is ready with every answer: what is measured is the orchestrator, not a model.

python -m bench.planned    on the broker and the database that its environment names, as the service itself
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from phronesis_bus import run
from phronesis_bus.tracing import Tracing
from phronesis_orchestrator.__main__ import start
from phronesis_orchestrator.ledger.usage import AskedModel, CallUsage
from phronesis_orchestrator.models.reasoner import Answer, Reasoner, Rules, TurnContext, Value
from phronesis_orchestrator.settings import ModelSettings
from phronesis_orchestrator.tasks.ports import Criticism, GoalKnowledge, Plan, Step, Verdict, WrittenReport

WAVES, WIDE = 5, 4
"""Of each plan: 20 steps."""
TOOL = "survey_twin"


class Planned(Rules):
    """A planner that never waits: a plan of 20 steps, no doubt about it, and a report."""

    name = "scripted"

    async def decompose(self, turn: TurnContext, known: GoalKnowledge) -> Answer[Plan]:
        """The same plan for every goal; a wave needs the one before."""
        return _used("decompose", PLAN)

    async def evaluate(self, turn: TurnContext, known: GoalKnowledge) -> Answer[Verdict]:
        """The plan stands."""
        return _used("evaluate", Verdict(revise=False))

    async def criticise(self, turn: TurnContext, known: GoalKnowledge, written: WrittenReport) -> Answer[Criticism]:
        """It was done well."""
        return _used("criticise", Criticism(score=0.9))

    async def write(self, turn: TurnContext, known: GoalKnowledge) -> Answer[WrittenReport]:
        """A report on all steps."""
        text = "\n\n".join(f"{one.step.description}: {one.outcome.text[:200]}" for one in known.worked)
        return _used(
            "task_report", WrittenReport(title=turn.user_text[:100], text=text, used=tuple(one.step.id for one in known.worked))
        )


def _used(purpose: str, value: Value) -> Answer[Value]:
    """An answer with its entry in the ledger, as a model's has one."""
    spent = CallUsage(input_tokens=2_000, output_tokens=300, model_calls=1)
    return Answer(value, spent=spent, cost_usd=0.0, asked=AskedModel(purpose, "scripted"))


def _plan() -> Plan:
    steps = [
        Step(
            id=f"s{wave}.{at}",
            description=f"Look at part {at} of stage {wave}",
            tool=TOOL,
            arguments={"type": "EntityProject", "years": [2020 + wave % 4], "limit": 10},
            depends=(f"s{wave - 1}.{at}",) if wave > 1 else (),
            wave=wave,
        )
        for wave in range(1, WAVES + 1)
        for at in range(WIDE)
    ]
    return Plan(title="Measured", steps=tuple(steps))


PLAN = _plan()


@asynccontextmanager
async def _planned(settings: ModelSettings, tracing: Tracing) -> AsyncIterator[Reasoner]:
    yield Planned()


if __name__ == "__main__":
    run("orchestrator", partial(start, reasoners=_planned))
