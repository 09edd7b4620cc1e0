"""What looking ahead, strategies and re-planning are worth to background tasks: the same tasks with and without each of them.

The loop and its policy gate are the real ones; the model is a script that is equal in all arms (`bench/ablation_model.py`), the
world is made up (`bench/ablation_world.py`), and journal and memory are stand-ins. So the figures tell what the loop does with
what it knows, and nothing about a language model.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from statistics import mean

from scipy.stats import binomtest

from phronesis_contracts import Principal
from phronesis_contracts.memory import REMEMBER
from phronesis_contracts.tasks import Verified
from phronesis_orchestrator.agents.cognition.state import NoExperience
from phronesis_orchestrator.agents.cognition.thought import ToolRecord
from phronesis_orchestrator.outside_tools.schemas import CALLED, OFFERED
from phronesis_orchestrator.settings import CognitionSettings
from phronesis_orchestrator.tasks.ports import Lesson, Strategies, Strategy
from tests.unit.orchestrator.tasks.stage import NOVA, PROMPTS, TaskStage

from .ablation_model import Scripted
from .ablation_world import SERVER, Job, World
from .progress import say

ROUNDS, QUICK = 10, 1
"""Tasks of each of the 24 subjects."""
SEED = 8
RETIRED = 2
"""Failures in a row that retire a strategy."""


@dataclass(frozen=True)
class Arm:
    """What the loop has."""

    name: str
    preflight: bool = True
    strategies: bool = True
    replanning: bool = True


ARMS = (
    Arm("all three"),
    Arm("without the look ahead", preflight=False),
    Arm("without strategies", strategies=False),
    Arm("without re-planning", replanning=False),
    Arm("none of them", preflight=False, strategies=False, replanning=False),
)


@dataclass(frozen=True)
class Ran:
    """One task that has ended."""

    met: bool
    steps: int
    calls: int
    """Of the model."""
    replanned: bool


@dataclass
class Subjects(Strategies):
    """A memory that finds the strategies of a subject, best first, and retires one that fails twice in a row."""

    kept: dict[str, list[Strategy]] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)

    async def recall(self, who: Principal, goal: str, n: int, agent: str, tools: tuple[str, ...]) -> tuple[Strategy, ...]:
        found = [one for one in self.kept.get(_subject(goal), []) if self.failures.get(one.id, 0) < RETIRED]
        return tuple(found[-n:][::-1])

    async def record(self, who: Principal, lesson: Lesson, verified: Verified) -> None:
        subject, goal = _subject(lesson.goal), lesson.goal
        id = f"{subject}/{len(self.kept.get(subject, []))}"
        known = Strategy(id, goal, lesson.approach, lesson.tools_used, lesson.avoid, lesson.labels)
        self.kept.setdefault(subject, []).append(known)

    async def outcome(self, who: Principal, task_id: str, ids: tuple[str, ...], verified: Verified) -> None:
        self.failures |= {id: 0 if verified.accepted else self.failures.get(id, 0) + 1 for id in ids}


@dataclass
class Records(NoExperience):
    """How often tools worked so far."""

    uses: dict[str, list[bool]] = field(default_factory=dict)

    async def tool_statistics(self, who: Principal, tools: tuple[str, ...]) -> tuple[ToolRecord, ...]:
        return tuple(ToolRecord(name, len(used), sum(used)) for name, used in self.uses.items())


async def section(quick: bool) -> list[str]:
    """Its lines."""
    rounds, ran = QUICK if quick else ROUNDS, {}
    logging.getLogger("phronesis").setLevel(logging.ERROR)  # that tools fail is what the world is for
    for arm in ARMS:
        say(f"ablation: {arm.name}")
        ran[arm.name] = await worked(arm, World(SEED), rounds)
    return table(ran)


async def worked(arm: Arm, world: World, rounds: int) -> list[Ran]:
    """All tasks of a world one after the other, with what the earlier ones taught.

    Args:
        arm: what the loop has.
        world: a fresh one.
        rounds: tasks of each subject.
    """
    strategies, records = Subjects(), Records()
    return [await _ran(arm, world, job, strategies, records) for job in world.jobs(rounds)]


async def _ran(arm: Arm, world: World, job: Job, strategies: Subjects, records: Records) -> Ran:
    prompts = PROMPTS | {"preflight": "x"}
    if not arm.replanning:
        prompts = {name: text for name, text in prompts.items() if name != "evaluate"}
    stages = ("preflight",) if arm.preflight else ()
    agent = NOVA.model_copy(update={"stages": stages, "prompts": prompts, "tools": (), "outside": (SERVER,)})
    model = Scripted()
    thinking = CognitionSettings(strategies=2 if arm.strategies else 0, strategy_holdout=0)
    stage = TaskStage(model, goal=job.goal, agent=agent, strategies=strategies, experience=records, thinking=thinking)
    stage.neighbours.owners |= {OFFERED.rpc.subject: world.offered(), CALLED: world.read, REMEMBER.subject: world.save}
    await stage.run()
    await stage.judged(world.met(job))
    for used in stage.running.tools:
        if used.name.startswith("outside."):
            records.uses.setdefault(used.name, []).append(used.ok)
    made = [step for step in stage.state.steps if step.state.value in ("done", "failed")]
    return Ran(world.met(job), len(made), model.calls, stage.state.replanned)


def _subject(goal: str) -> str:
    return goal.split(" ")[-1].partition("-")[0]


def table(ran: dict[str, list[Ran]]) -> list[str]:
    """The lines of the report.

    Args:
        ran: by arm what became of the same tasks, in the same order.
    """
    count = len(next(iter(ran.values())))
    return [
        f"The same {count} tasks in each arm, four figures each, one after the other, so that later ones can use what",
        "earlier ones taught. Five tools read the figures; three know a subject, and of most subjects one of these fails,",
        "stalls or lies, at seeded places. A task succeeds when the document that it saved holds the four true figures. The",
        "model is a script, equal in all arms: it acts on what the loop shows it. So this tells what the loop does with what",
        "it knows, and nothing of a language model.",
        "",
        "| arm | success | 95 % interval (Wilson) | steps a task | steps a success | model calls a task | re-planned |",
        "|---|---|---|---|---|---|---|",
        *(row(arm, tasks) for arm, tasks in ran.items()),
    ]


def row(arm: str, ran: list[Ran]) -> str:
    """One arm's line."""
    met, steps = sum(one.met for one in ran), sum(one.steps for one in ran)
    low, high = binomtest(met, len(ran)).proportion_ci(method="wilson")
    each = f"{steps / met:.1f}" if met else "—"
    shares = f"{met / len(ran):.0%} | {low:.0%} to {high:.0%} | {steps / len(ran):.1f} | {each}"
    calls, again = mean(one.calls for one in ran), sum(one.replanned for one in ran) / len(ran)
    return f"| {arm} | {shares} | {calls:.1f} | {again:.0%} |"
