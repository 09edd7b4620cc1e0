"""What looking ahead, strategies and re-planning are worth to background tasks: the same tasks with and without each of them.

python -m bench.ablation                     ten worlds; writes its section of docs/generated/tasks.md
python -m bench.ablation --seeds 2 --rounds 1 --dry    a quick look; nothing is written

The loop and its policy gate are the real ones; the model is a script that is equal in all arms (`bench/ablation_model.py`), the
world is made up (`bench/ablation_world.py`), and journal and memory are stand-ins. So the figures tell what the loop does with
what it knows, and nothing about a language model.

An arm that lacks a part also spends less. So each arm runs twice: as it is, and at equal cost, where what the part costs is
spent on reading more figures from a further source. How many, is found on worlds that are not measured.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import multiprocessing
import random
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean

from evals.tasks import REPORT
from evals.tasks_report import ABLATION, commit, put
from phronesis_contracts import Label, OriginKind, Principal
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

SEEDS, ROUNDS = 10, 3
"""Worlds, and tasks of each of their 24 subjects."""
PILOTS = (1_001, 1_002)
"""Worlds that the equal cost is found on; none of them is measured."""
STEP, MOST = 0.5, 12.0
"""By how many further readings a task they are tried, and up to how many."""
DRAWS = 2_000
"""Samples of a bootstrap."""
_OWN = (Label(kind=OriginKind.USER),)
RETIRED = 2
"""Failures in a row that retire a strategy."""


@dataclass(frozen=True)
class Arm:
    """What the loop has."""

    name: str
    preflight: bool = True
    strategies: bool = True
    replanning: bool = True
    further: float = 0.0
    """Readings a task, on the average, that are made beside what is planned."""


ALL = Arm("all three")
ARMS = (
    ALL,
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

    @property
    def cost(self) -> int:
        """Tool calls and model calls, which count alike."""
        return self.steps + self.calls


@dataclass
class Subjects(Strategies):
    """A memory that finds the strategies of a subject, best first, and retires one that fails twice in a row.

    It hands them out as their user's own: with the origins that the loop records, outside tools, each later outside call would
    need a person, because the script cannot say which calls the user's words alone want.
    """

    kept: dict[str, list[Strategy]] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)

    async def recall(self, who: Principal, goal: str, n: int, agent: str, tools: tuple[str, ...]) -> tuple[Strategy, ...]:
        found = [one for one in self.kept.get(_subject(goal), []) if self.failures.get(one.id, 0) < RETIRED]
        return tuple(found[-n:][::-1])

    async def record(self, who: Principal, lesson: Lesson, verified: Verified) -> None:
        subject, goal = _subject(lesson.goal), lesson.goal
        id = f"{subject}/{len(self.kept.get(subject, []))}"
        known = Strategy(id, goal, lesson.approach, lesson.tools_used, lesson.avoid, _OWN)
        self.kept.setdefault(subject, []).append(known)

    async def outcome(self, who: Principal, task_id: str, ids: tuple[str, ...], verified: Verified) -> None:
        self.failures |= {id: 0 if verified.accepted else self.failures.get(id, 0) + 1 for id in ids}


@dataclass
class Records(NoExperience):
    """How often tools worked so far."""

    uses: dict[str, list[bool]] = field(default_factory=dict)

    async def tool_statistics(self, who: Principal, tools: tuple[str, ...]) -> tuple[ToolRecord, ...]:
        return tuple(ToolRecord(name, len(used), sum(used)) for name, used in self.uses.items())


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
    model = Scripted(_times(arm.further, job))
    thinking = CognitionSettings(strategies=2 if arm.strategies else 0, strategy_holdout=0, task_look_ahead=arm.preflight)
    stage = TaskStage(model, goal=job.goal, agent=agent, strategies=strategies, experience=records, thinking=thinking)
    stage.neighbours.owners |= {OFFERED.rpc.subject: world.offered(), CALLED: world.read, REMEMBER.subject: world.save}
    await stage.run()
    await stage.judged(world.met(job))
    for used in stage.running.tools:
        if used.name.startswith("outside."):
            records.uses.setdefault(used.name, []).append(used.ok)
    made = [step for step in stage.state.steps if step.state.value in ("done", "failed")]
    return Ran(world.met(job), len(made), model.calls, stage.state.replanned)


def _times(further: float, job: Job) -> int:
    """Whole readings for one task, so that their mean over tasks is `further`; the same for a task in every run."""
    whole = int(further)
    return whole + (random.Random(f"{job.goal}/further").random() < further - whole)


def _subject(goal: str) -> str:
    return goal.split(" ")[-1].partition("-")[0]


Runs = Mapping[int, Sequence[Ran]]
"""By seed what became of its tasks, in their order."""


def run(arm: Arm, seeds: Sequence[int], rounds: int, pool: Executor | None = None) -> dict[int, list[Ran]]:
    """An arm in several worlds, in each of them from nothing, and in several processes where there is a pool of them."""
    job = partial(_in_world, arm, rounds)
    return dict(zip(seeds, (map(job, seeds) if pool is None else pool.map(job, seeds)), strict=True))


def _in_world(arm: Arm, rounds: int, seed: int) -> list[Ran]:
    logging.disable(logging.WARNING)  # that tools fail is what the world is for
    return asyncio.run(worked(arm, World(seed), rounds))


def at_equal_cost(arm: Arm, seeds: Sequence[int], rounds: int, room: float, pool: Executor | None = None) -> Arm:
    """The same arm with as many further readings as leave it within a cost.

    Args:
        arm: without further readings.
        seeds: worlds that it is tried in.
        rounds: tasks of each subject.
        room: the cost of a task.
        pool: processes.
    """
    low, high = 0, int(MOST / STEP)
    while low < high:
        middle = (low + high + 1) // 2
        tried = _with(arm, middle * STEP)
        if cost(run(tried, seeds, rounds, pool)) <= room:
            low = middle
        else:
            high = middle - 1
    return _with(arm, low * STEP)


def _with(arm: Arm, further: float) -> Arm:
    return Arm(arm.name, arm.preflight, arm.strategies, arm.replanning, further)


def cost(runs: Runs) -> float:
    """Calls of tools and of the model a task."""
    return fmean(one.cost for some in runs.values() for one in some)


def success(runs: Runs) -> float:
    """The share of tasks that succeeded."""
    return fmean(one.met for some in runs.values() for one in some)


def interval(values: Mapping[int, Sequence[float]], draws: int = DRAWS) -> tuple[float, float]:
    """The 95 % interval of a mean by a bootstrap over seeds, and over the tasks of each seed that was drawn."""
    drawn, worlds = random.Random(0), list(values.values())
    means = []
    for _ in range(draws):
        some = [drawn.choice(worlds) for _ in worlds]
        means.append(fmean(fmean(drawn.choices(one, k=len(one))) for one in some))
    means.sort()
    return means[int(0.025 * draws)], means[int(0.975 * draws) - 1]


def differences(full: Runs, arm: Runs) -> dict[int, list[float]]:
    """By seed how much better each task fared with all three: 1, 0 or -1."""
    return {
        seed: [float(one.met) - float(other.met) for one, other in zip(some, arm[seed], strict=True)]
        for seed, some in full.items()
    }


def table(full: Runs, arms: Mapping[Arm, Runs]) -> list[str]:
    """A line for each arm: what it reached, what it took, and how much more all three reach on the same tasks."""
    columns = "further readings | success | 95 % | steps | model calls | cost | re-planned | all three reach more by | 95 %"
    return [
        f"| arm | {columns} |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *(row(arm, runs, full) for arm, runs in arms.items()),
        "",
    ]


def row(arm: Arm, runs: Runs, full: Runs) -> str:
    """One arm's line."""
    low, high = interval({seed: [float(one.met) for one in some] for seed, some in runs.items()})
    every = [one for some in runs.values() for one in some]
    cells = [
        arm.name,
        f"{arm.further:g}",
        f"{success(runs):.1%}",
        f"{low:.1%} to {high:.1%}",
        f"{fmean(one.steps for one in every):.1f}",
        f"{fmean(one.calls for one in every):.1f}",
        f"{cost(runs):.1f}",
        f"{fmean(one.replanned for one in every):.0%}",
    ]
    if runs is full:
        return f"| {' | '.join([*cells, '-', '-'])} |"
    apart = differences(full, runs)
    low, high = interval(apart)
    mean = fmean(one for some in apart.values() for one in some)
    return f"| {' | '.join([*cells, f'{100 * mean:+.1f} points', f'{100 * low:+.1f} to {100 * high:+.1f}'])} |"


def verdict(arm: Arm, full: Runs, runs: Runs) -> str:
    """Whether a part pays, said of the arm that lacks it."""
    low, high = interval(differences(full, runs))
    if low > 0:
        return f"- {arm.name}: worse at equal cost. What it lacks pays."
    if high < 0:
        return f"- {arm.name}: better at equal cost. **What it lacks does not pay**: further readings do more."
    return f"- {arm.name}: no difference is shown at equal cost. **It is not shown that what it lacks pays.**"


def section(seeds: Sequence[int], rounds: int, pool: Executor) -> list[str]:
    """The lines of the report."""
    say(f"ablation: {ALL.name}")
    full = run(ALL, seeds, rounds, pool)
    room = cost(run(ALL, PILOTS, rounds, pool))
    plain, equal = {ALL: full}, {ALL: full}
    for arm in ARMS[1:]:
        say(f"ablation: {arm.name}")
        plain[arm] = run(arm, seeds, rounds, pool)
        same = at_equal_cost(arm, PILOTS, rounds, room, pool)
        equal[same] = run(same, seeds, rounds, pool)
    tasks = len(full[seeds[0]])
    return [
        f"`python -m bench.ablation`: {len(seeds)} worlds of {tasks} tasks, the same in each arm, four figures each, one after",
        "the other, so that later ones can use what earlier ones taught. Five tools read the figures; three know a subject,",
        "and of most subjects one of these fails, stalls or lies, at seeded places. A task succeeds when the document that it",
        "saved holds the four true figures. The model is a script that is misled by its sources, equal in all arms: it acts on",
        "what the loop shows it. So this tells what the loop does with what it knows, and nothing of a language model.",
        "Intervals are of a bootstrap over worlds and the tasks of each; differences are paired by task.",
        "",
        "Strategies are recalled here as their user's own. With the origins that the loop records, outside tools, the script",
        "would have to ask a person before each outside call, because it cannot say which calls the user's words alone want.",
        "",
        "### As they are",
        "",
        *table(full, plain),
        "### At equal cost",
        "",
        "Calls of tools and of the model count alike. Whoever lacks a part spends what it costs on reading figures from",
        f"further sources; how many, was found in {len(PILOTS)} other worlds, by steps of {STEP:g} a task.",
        "",
        *table(full, equal),
        *(verdict(arm, full, runs) for arm, runs in equal.items() if runs is not full),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.ablation", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS, help="worlds (10)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="tasks of each subject (3)")
    parser.add_argument("--workers", type=int, default=2, help="worlds at a time (2)")
    parser.add_argument("--dry", action="store_true", help="write nothing")
    given = parser.parse_args(arguments)
    at = commit()
    with ProcessPoolExecutor(given.workers, multiprocessing.get_context("spawn")) as pool:
        lines = section(range(1, given.seeds + 1), given.rounds, pool)
    print("\n".join(lines))
    if not given.dry:
        put(REPORT, ABLATION, lines, at)
    return 0


if __name__ == "__main__":
    sys.exit(main())
