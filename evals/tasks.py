"""Hand goals in as background tasks, in worlds of their own, and judge by code what each left behind.

python -m evals tasks --own                              a stack of its own; all domains, by rules
python -m evals tasks --own --trials 4 --report FILE     four times each: pass^1 and pass^4
python -m evals tasks --own --arm full --arm no-strategies --seeds 3
python -m evals tasks --own --model local --limit 12     the small local model, on the same fixed sample of each domain
python -m evals tasks --own --model given --tokens 20000 the model of the environment, with a budget for each task
python -m evals tasks --domain orchard --failures out.txt   the local stack, and what was not accepted

An arm is a setting of the stack or a text of its tenants, so every arm but `full` needs `--own`. Rules neither look ahead nor
plan anew: with them only `no-strategies` can differ from `full`, which is the system as it is by default.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml

from . import stack, tasks_report
from .client import Client, StackError
from .items import BUILTINS
from .truth.tasks import Check, End, Tie, vocabulary
from .worlds import FOLDER, State, World, domains

REPORT = Path(__file__).parents[1] / "docs" / "generated" / "tasks.md"
REACHES = ("within", "near", "outside")
ARMS: dict[str, dict[str, str]] = {
    "full": {},
    "no-strategies": {"ORCHESTRATOR_STRATEGIES": "0"},
    "look-ahead": {"ORCHESTRATOR_TASK_LOOK_AHEAD": "true"},
    "no-replanning": {},
}
"""Settings of the stack."""
TEXTS = {
    "no-replanning": {
        "nova/evaluate": (
            'Answer `{"revise": false, "reason": "as planned"}` and nothing else, whatever stands below.\n\n'
            "{{input}}\n{{plan}}\n{{schema}}\n{{boundary}}\n"
        )
    }
}
"""Texts that the tenants of an arm have in place of the agent's own: no setting leaves re-planning out."""
MODELS = {
    "rules": {"GROQ_API_KEY": "", "ORCHESTRATOR_MODEL_URL": ""},
    "given": {},
    "local": {"PHRONESIS_MODEL": "local"},
}
PATIENCE = {"rules": 90.0, "given": 600.0, "local": 900.0}
"""Seconds until a task that has not ended is cancelled."""


_UNSAID = frozenset({"type", "code", "status", "trace_id"})
"""Fields of a problem that say nothing to a person."""
_SOON, _POLL = 100.0, 0.15
"""Seconds of patience with which a task is looked at so often, in seconds."""


@dataclass(frozen=True)
class Job:
    """One task of a set.

    Args:
        id: unique in all domains.
        domain: its world.
        goal: as a person writes it.
        kind: what is asked for: `report`, `list`, `count`, `compare`, `write`, `mixed` or `other`.
        reach: `within`, `near` or `outside` of what the tools can do.
        check: accepts the end state, or complains.
        agent: who works on it.
    """

    id: str
    domain: str
    goal: str
    kind: str
    reach: str
    check: Check
    agent: str = "nova"
    by_rules: bool = False
    """Whether it is judged without a model only: a model may well be able to do it."""


@dataclass(frozen=True)
class Outcome:
    """What became of one task.

    Args:
        job: what it was.
        arm: what the stack had.
        seed: of the world.
        trial: from 0.
        status: how it ended; `error` where the stack did not say.
        code: of its problem.
        complaints: of the check; none where the end is accepted.
        score: that the critic gave, if it gave one.
        steps: made.
        model_calls: calls of models.
        tokens: read and written.
        usd: what they cost, where that is known.
        seconds: from the request to the end.
        text: of its report, or the detail of its problem.
        verified: what the state says of a verification, if it has one.
    """

    job: Job
    arm: str
    seed: int
    trial: int
    status: str
    code: str
    complaints: tuple[str, ...]
    score: float | None = None
    steps: int = 0
    model_calls: int = 0
    tokens: int = 0
    usd: float | None = None
    seconds: float = 0.0
    text: str = ""
    verified: bool | None = None

    @property
    def accepted(self) -> bool:
        """Whether the check accepts it."""
        return not self.complaints


def jobs_of(world: World) -> list[Job]:
    """The tasks of a world, with their checks. Those whose truth is a tie in this seed are left out.

    Raises:
        ValueError: something is missing, or an expression cannot be computed.
    """
    words, found = vocabulary(world), []
    for raw in yaml.safe_load((world.folder / "tasks.yaml").read_text("utf-8")):
        try:
            check = eval(str(raw["check"]), {"__builtins__": BUILTINS, **words})  # the repository's own files
            goal = " ".join(str(raw["goal"]).split())
            found.append(
                Job(
                    id=str(raw["id"]),
                    domain=world.name,
                    goal=goal,
                    kind=str(raw["kind"]),
                    reach=str(raw["reach"]),
                    check=check,
                    agent=str(raw.get("agent", "nova")),
                    by_rules=bool(raw.get("by_rules")),
                )
            )
        except Tie:
            continue
        except Exception as exc:
            raise ValueError(f"{world.name}/{raw.get('id')}: {exc!r}") from exc
    return found


def sample(jobs: Sequence[Job], limit: int | None) -> list[Job]:
    """A fixed part of them, which depends on their ids alone, with every reach in its share."""
    if not limit or limit >= len(jobs):
        return list(jobs)
    drawn = sorted(jobs, key=lambda job: hashlib.sha256(job.id.encode()).hexdigest())
    places = {reach: [job for job in drawn if job.reach == reach] for reach in REACHES}
    ranked = sorted(((place + 0.5) / len(some), job.id, job) for some in places.values() for place, job in enumerate(some))
    return [job for _, _, job in ranked[:limit]]


class Runner:
    """Runs the tasks of one world, one after the other, so that each difference is the doing of one task.

    Args:
        where: the stack.
        world: whose tasks.
        folder: for files.
        arm: what the stack has.
        patience: seconds that a task may take.
        budget: of each task.
    """

    def __init__(
        self, where: stack.Stack, world: World, folder: Path, arm: str, patience: float, budget: Mapping[str, float]
    ) -> None:
        self._where, self._world, self._folder, self._arm = where, world, folder, arm
        self._patience, self._budget = patience, dict(budget)
        self._admin: Client | None = None
        self._person: Client | None = None

    def run(self, jobs: Iterable[Job], trials: int, told: Callable[[Outcome], None]) -> list[Outcome]:
        """Every task so many times, all by one user, so that what the earlier ones taught can be of use."""
        found = []
        try:
            for trial in range(trials):
                for job in jobs:
                    found.append(self._one(job, trial))
                    told(found[-1])
        finally:
            self._leave()
        return found

    def _leave(self) -> None:
        """Use another tenant from now on."""
        for client in (self._admin, self._person):
            if client is not None:
                client.__exit__(None, None, None)
        self._admin = self._person = None

    def _here(self) -> tuple[Client, Client]:
        """An administrator and a user of the world's tenant, which is made and loaded where there is none."""
        if self._admin is None or self._person is None:
            key = self._world.load(self._where, self._folder)
            if texts := TEXTS.get(self._arm):
                stack.publish(self._where, _written(texts, self._folder / f"texts-{self._arm}"), key)
            self._admin = Client(self._where.url, key, self._patience)
            self._person = self._admin.user(f"tasks-{uuid4().hex[:12]}", "maestro")
            self._world.equip(self._person)
        return self._admin, self._person

    def _one(self, job: Job, trial: int) -> Outcome:
        try:
            admin, person = self._here()
            before = self._world.state(person)
            began = time.monotonic()
            task = self._ended(person, job)
            seconds = time.monotonic() - began
            after = self._world.state(person)
            self._mended(admin, person, before, after)
        except StackError as exc:
            self._leave()
            return Outcome(job, self._arm, self._world.seed, trial, "error", str(exc)[:200], (f"error: {exc}"[:200],))
        return self._judged(job, trial, task, before, after, seconds)

    def _ended(self, person: Client, job: Job) -> dict[str, Any]:
        """The task when it has ended, or when it waits for a person: then it is cancelled."""
        order = {"goal": job.goal, "agent": job.agent, "budget": self._budget}
        accepted = person.call("POST", "/api/v1/tasks", json=order)
        return person.await_task(accepted["turn_id"], self._patience, _POLL if self._patience <= _SOON else 1.0)

    def _mended(self, admin: Client, person: Client, before: State, after: State) -> None:
        """Make the world as it was before; where that fails, the next task gets a new tenant."""
        if before == after:
            return
        if before.twin != after.twin or before.memories - after.memories:
            self._leave()
            return
        try:
            self._world.mend(admin, before, after)
            now = self._world.state(person)
        except StackError:
            self._leave()
            return
        if (now.nodes, now.links) != (before.nodes, before.links):
            self._leave()

    def _judged(self, job: Job, trial: int, task: Mapping[str, Any], before: State, after: State, seconds: float) -> Outcome:
        progress, usage, problem = task.get("progress") or {}, task.get("usage") or {}, task.get("problem") or {}
        report = progress.get("report")
        end = End(
            status=str(task["status"]),
            code=str(problem.get("code", "")),
            refused=400 <= int(problem.get("status") or 500) < 500,
            detail=" ".join(str(value) for name, value in problem.items() if name not in _UNSAID),
            report=report,
            goal=job.goal,
            before=before,
            after=after,
            masked=tuple(self._world.names),
        )
        made = [step for step in progress.get("steps", ()) if step["state"] in ("done", "failed")]
        verified = progress.get("verified") or {}
        return Outcome(
            job=job,
            arm=self._arm,
            seed=self._world.seed,
            trial=trial,
            status=end.status,
            code=end.code,
            complaints=tuple(job.check(end)),
            score=progress.get("score"),
            steps=len(made),
            model_calls=int(usage.get("model_calls") or 0),
            tokens=int(usage.get("input_tokens") or 0) + int(usage.get("output_tokens") or 0),
            usd=usage.get("cost_usd"),
            seconds=seconds,
            text=str((report or {}).get("text") or end.detail),
            verified=verified.get("accepted"),
        )


def _written(texts: Mapping[str, str], folder: Path) -> Path:
    """A folder with these texts by tag."""
    for tag, text in texts.items():
        file = folder / f"{tag}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return folder


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module; the exit status: 0 if everything ran, whatever came of it."""
    given = _parser().parse_args(arguments)
    arms = given.arm or ["full"]
    if not given.own and arms != ["full"]:
        print("an arm is a setting of the stack: use --own", file=sys.stderr)
        return 1
    outcomes, at = list[Outcome](), tasks_report.commit()
    try:
        with tempfile.TemporaryDirectory(prefix="phronesis-tasks-") as name:
            folder = Path(name)
            for arm in arms:
                if not given.own:
                    outcomes += _evaluate(given, arm, stack.find(given.url, given.key, given.data), folder)
                    continue
                parts = MODELS[given.model] | ARMS[arm]
                with stack.running(folder / arm, parts) as started:
                    outcomes += _evaluate(given, arm, started, folder)
    except (StackError, OSError, ValueError) as exc:
        print(exc, file=sys.stderr)
        return 1
    print("\n".join(tasks_report.summary(outcomes)))
    if given.failures:
        given.failures.write_text(tasks_report.failures(outcomes), "utf-8")
    if given.records:
        given.records.write_text(tasks_report.records(outcomes), "utf-8")
    if given.report:
        tasks_report.write(given.report, given.model, outcomes, _command(given), at)
        print(given.report)
    return 0


def _command(given: argparse.Namespace) -> str:
    """The arguments that decide what is measured."""
    parts = ["--own"] if given.own else []
    parts += [f"--arm {arm}" for arm in given.arm or ()]
    chosen = {name: getattr(given, name) for name in ("model", "seeds", "trials", "limit", "tokens", "seconds")}
    parts += [f"--{name} {value}" for name, value in chosen.items() if value]
    return " ".join([*parts, *(f"--domain {name}" for name in given.domain or ())])


def _evaluate(given: argparse.Namespace, arm: str, where: stack.Stack, folder: Path) -> list[Outcome]:
    worlds = [World(given.folder / name, seed) for seed in range(given.seeds) for name in given.domain or domains(given.folder)]
    chosen = [sample([job for job in jobs_of(world) if _wanted(job, given)], given.limit) for world in worlds]
    whole, ended = sum(map(len, chosen)) * given.trials, list[Outcome]()

    def told(outcome: Outcome) -> None:
        ended.append(outcome)
        mark = "ok" if outcome.accepted else f"not accepted: {outcome.complaints[0]}"
        if given.verbose or len(ended) % 10 == 0 or len(ended) == whole:
            line = f"{arm}: {len(ended)} of {whole}: {outcome.job.id} {outcome.status} {outcome.seconds:.1f} s, {mark}"
            print(line, file=sys.stderr, flush=True)

    budget = {name: value for name, value in (("tokens", given.tokens), ("seconds", given.seconds)) if value}
    patience = given.patience or PATIENCE[given.model]

    def run(pair: tuple[World, list[Job]]) -> list[Outcome]:
        return Runner(where, pair[0], folder, arm, patience, budget).run(pair[1], given.trials, told)

    with ThreadPoolExecutor(given.workers) as pool:
        return [one for some in pool.map(run, zip(worlds, chosen, strict=True)) for one in some]


def _wanted(job: Job, given: argparse.Namespace) -> bool:
    if job.by_rules and given.model != "rules":
        return False
    return (not given.id or job.id in given.id) and (not given.reach or job.reach in given.reach)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m evals tasks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", help="address of a gateway; the local stack's by default")
    parser.add_argument("--key", help="an administrator's key of it")
    parser.add_argument("--data", type=Path, help="data directory of a local stack; ~/.phronesis by default")
    parser.add_argument("--own", action="store_true", help="start a stack in a temporary directory for each arm")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the worlds are")
    parser.add_argument("--domain", action="append", help="a world; may be given again; all of the folder by default")
    parser.add_argument("--reach", action="append", choices=REACHES, help="only these tasks; may be given again")
    parser.add_argument("--id", action="append", help="only this task; may be given again")
    parser.add_argument("--limit", type=int, help="tasks of each world at most: a fixed sample of every reach")
    parser.add_argument("--arm", action="append", choices=list(ARMS), help="may be given again; full by default")
    parser.add_argument("--seeds", type=int, default=1, help="worlds of each domain: the one of the files, then shuffled ones")
    parser.add_argument("--trials", type=int, default=1, help="how often each task is done (1)")
    parser.add_argument("--model", choices=list(MODELS), default="rules", help="who thinks (rules)")
    parser.add_argument("--tokens", type=int, help="tokens that a task may use: the same in each arm")
    parser.add_argument("--seconds", type=float, help="seconds that a task may use: the same in each arm")
    parser.add_argument("--patience", type=float, help="seconds until a task that has not ended is cancelled")
    parser.add_argument("--workers", type=int, default=2, help="worlds at a time (2)")
    parser.add_argument("--verbose", action="store_true", help="a line for each task")
    parser.add_argument("--report", type=Path, help="file for the report, whose section of this model is replaced")
    parser.add_argument("--failures", type=Path, help="file for what was not accepted")
    parser.add_argument("--records", type=Path, help="file for all outcomes, in JSON lines")
    return parser


if __name__ == "__main__":
    sys.exit(main())
