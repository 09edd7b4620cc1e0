"""Figures over the outcomes of tasks, each with its interval, and the report that holds them."""

from __future__ import annotations

import json
import random
import statistics
import subprocess
from collections.abc import Callable, Iterable, Sequence
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING

from .report import wilson

if TYPE_CHECKING:
    from .tasks import Outcome

FALSE_SCORE = 0.3
"""Above this score a wrong deliverable counts as believed."""
DRAWS = 2_000
"""Samples of a bootstrap."""
ABLATION = "What the parts are worth"
TITLES = {
    "rules": "Without a model",
    "given": "With the model that was given",
    "local": "With the small local model, on a fixed sample",
}
_ORDER = (*TITLES.values(), ABLATION)
_HEAD = (
    "# Task suite",
    "",
    "Goals in a person's words, handed in as background tasks in worlds of their own, and judged by code that reads the end",
    "state: the nodes, the memories, the twin and the report. Truths are computed from the worlds' files (`evals/sets/tasks`)",
    "and share no code with a service. [Evaluate answers](../how-to/evaluate-answers.md) says how to run it.",
    "",
    "- *within*: the tools can do it. *near*: right, or declined with words of what is near. *outside*: nothing can do it, and",
    "  accepted is a refusal that changed nothing.",
    "- *accepted*: the checker has no complaint. *claimed*: ended `completed` though it is outside. *believed*: the checker",
    f"  rejects it and the critic scored it above {FALSE_SCORE}. Both count runs.",
    "- pass^k: the chance that k runs of one task are all accepted.",
    "- Shares are means over tasks with 95 % Wilson intervals by the number of tasks, whatever the number of runs; differences",
    "  are paired by task, world and run, with 95 % intervals of a bootstrap over tasks.",
    "",
)


def summary(outcomes: Sequence[Outcome]) -> list[str]:
    """Some lines for the terminal."""
    found = []
    for arm in _names(one.arm for one in outcomes):
        some = [one for one in outcomes if one.arm == arm]
        for reach in _names(one.job.reach for one in some):
            part = [one for one in some if one.job.reach == reach]
            claimed = sum(one.status == "completed" for one in part) if reach == "outside" else 0
            told = f"{arm:14} {reach:8} {len(part):4} accepted {_share(part, _accepted)}"
            found.append(f"{told}, believed {sum(map(_believed, part))}{f', claimed {claimed}' if reach == 'outside' else ''}")
    return found


def failures(outcomes: Iterable[Outcome]) -> str:
    """What was not accepted, with every complaint."""
    return "\n".join(
        f"## {one.job.id} {one.arm} seed {one.seed} run {one.trial}: {one.status} {one.code} score {one.score}\n"
        f"{one.job.goal}\n{''.join(f'- {line}{chr(10)}' for line in one.complaints)}\n{one.text[:1_500]}\n"
        for one in outcomes
        if one.complaints
    )


def records(outcomes: Iterable[Outcome]) -> str:
    """All outcomes, one JSON object in a line."""
    return "".join(
        json.dumps(
            {
                "id": one.job.id,
                "arm": one.arm,
                "seed": one.seed,
                "trial": one.trial,
                "status": one.status,
                "code": one.code,
                "accepted": one.accepted,
                "complaints": one.complaints,
                "score": one.score,
                "steps": one.steps,
                "model_calls": one.model_calls,
                "tokens": one.tokens,
                "usd": one.usd,
                "seconds": round(one.seconds, 2),
            },
            ensure_ascii=False,
        )
        + "\n"
        for one in outcomes
    )


def write(file: Path, model: str, outcomes: Sequence[Outcome], command: str, at: str) -> None:
    """Put the section of a model into the report.

    Args:
        file: the report.
        model: `rules`, `given` or `local`.
        outcomes: of its tasks.
        command: the arguments that they were made with.
        at: the commit that was checked out when they began.
    """
    put(file, TITLES[model], [f"`python -m evals tasks {command}`", "", *section(outcomes)], at)


def put(file: Path, title: str, lines: Sequence[str], at: str) -> None:
    """Put a section, measured at a commit, into the report in place of the one of its title; the others stay."""
    old = file.read_text("utf-8") if file.exists() else ""
    parts = [part for part in old.split("\n## ")[1:]]
    found = {part.split("\n", 1)[0].strip(): f"## {part.rstrip()}\n" for part in parts}
    found[title] = "\n".join([f"## {title}", "", f"Measured at `{at}`.", "", *lines]).rstrip() + "\n"
    text = "\n".join([*_HEAD, *(found[one] for one in _ORDER if one in found)])
    file.write_text(text, "utf-8")


def commit() -> str:
    """The commit that is checked out, with a `+` where a file differs from it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], capture_output=True, text=True, check=False).stdout.strip()

    return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")


def section(outcomes: Sequence[Outcome]) -> list[str]:
    """The tables of one model."""
    arms = _names(one.arm for one in outcomes)
    runs = max(len(some) for some in _by_task(outcomes, arms[0]).values())
    tasks = len({one.job.id for one in outcomes})
    seeds = len({one.seed for one in outcomes})
    worlds, each = "world" if seeds == 1 else "worlds", "run" if runs == 1 else "runs"
    lines = [f"{tasks} tasks, {seeds} {worlds} of each domain, {runs} {each} of each task in each arm.", ""]
    lines += _table("arm", outcomes, lambda one: one.arm)
    lines += _passes(outcomes, arms)
    if len(arms) > 1:
        lines += _differences(outcomes, arms)
    full = [one for one in outcomes if one.arm == arms[0]]
    within = [one for one in full if one.job.reach == "within"]
    lines += [f"The rest is of the arm `{arms[0]}`.", ""]
    lines += _table("reach", full, lambda one: one.job.reach)
    lines += _table("domain", full, lambda one: one.job.domain)
    lines += _table("kind, within reach", within, lambda one: one.job.kind)
    return [*lines, *_scores(full), "", *_times(full)]


def _table(title: str, outcomes: Sequence[Outcome], of: Callable[[Outcome], str]) -> list[str]:
    groups: dict[str, list[Outcome]] = {}
    for one in outcomes:
        groups.setdefault(of(one), []).append(one)
    head = (
        f"| {title} | tasks | accepted | 95 % | believed | claimed | errors | steps | model calls | tokens | US$ |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|"
    )
    return [head, *(_row(name, some) for name, some in groups.items()), ""]


def _row(name: str, some: Sequence[Outcome]) -> str:
    tasks = len({one.job.id for one in some})
    p = _mean_over_tasks(some, _accepted)
    low, high = wilson(p * tasks, tasks)
    claimed = sum(one.status == "completed" for one in some if one.job.reach == "outside")
    errors = sum(one.status in ("error", "late") for one in some)
    usd = [one.usd for one in some if one.usd is not None]
    each = [
        f"{statistics.fmean(one.steps for one in some):.1f}",
        f"{statistics.fmean(one.model_calls for one in some):.1f}",
        f"{statistics.fmean(one.tokens for one in some):.0f}",
        f"{statistics.fmean(usd):.4f}" if usd else "-",
    ]
    cells = [name, str(tasks), f"{100 * p:.1f} %", f"{100 * low:.1f}-{100 * high:.1f}"]
    return f"| {' | '.join([*cells, str(sum(map(_believed, some))), str(claimed), str(errors), *each])} |"


def _passes(outcomes: Sequence[Outcome], arms: Sequence[str]) -> list[str]:
    lines = ["| arm | reach | pass^1 | 95 % | pass^4 | 95 % |", "|---|---|---|---|---|---|"]
    for arm in arms:
        for reach in _names(one.job.reach for one in outcomes):
            some = [one for one in outcomes if one.arm == arm and one.job.reach == reach]
            cells = []
            for k in (1, 4):
                found = passes(some, k)
                low, high = wilson(sum(found), len(found))
                cells.append(f"{100 * statistics.fmean(found):.1f} % | {100 * low:.1f}-{100 * high:.1f}" if found else "- | -")
            lines.append(f"| {arm} | {reach} | {' | '.join(cells)} |")
    return [*lines, ""]


def passes(outcomes: Iterable[Outcome], k: int) -> list[float]:
    """By task the chance that `k` runs of it in one world are all accepted; those with fewer runs are left out."""
    runs: dict[str, dict[int, list[bool]]] = {}
    for one in outcomes:
        runs.setdefault(one.job.id, {}).setdefault(one.seed, []).append(one.accepted)
    return [
        statistics.fmean(found)
        for worlds in runs.values()
        if (found := [comb(sum(some), k) / comb(len(some), k) for some in worlds.values() if len(some) >= k])
    ]


def _differences(outcomes: Sequence[Outcome], arms: Sequence[str]) -> list[str]:
    full = {(one.job.id, one.seed, one.trial): one for one in outcomes if one.arm == arms[0]}
    lines = [f"| less accepted than in `{arms[0]}` | difference | 95 % |", "|---|---|---|"]
    for arm in arms[1:]:
        by_task: dict[str, list[float]] = {}
        for one in outcomes:
            other = full.get((one.job.id, one.seed, one.trial))
            if one.arm == arm and other is not None:
                by_task.setdefault(one.job.id, []).append(float(other.accepted) - float(one.accepted))
        each = [statistics.fmean(some) for some in by_task.values()]
        low, high = bootstrap(each)
        lines.append(f"| {arm} | {100 * statistics.fmean(each):+.1f} points | {100 * low:+.1f} to {100 * high:+.1f} |")
    return [*lines, ""]


def bootstrap(values: Sequence[float], draws: int = DRAWS) -> tuple[float, float]:
    """The 95 % interval of a mean over values that are drawn anew; the same values give the same interval."""
    drawn = random.Random(0)
    means = sorted(statistics.fmean(drawn.choices(values, k=len(values))) for _ in range(draws))
    return means[int(0.025 * draws)], means[int(0.975 * draws) - 1]


def _scores(some: Sequence[Outcome]) -> list[str]:
    ended = [one for one in some if one.status == "completed"]
    scored = [one for one in ended if one.score is not None]
    right = [float(one.score or 0) for one in scored if one.accepted]
    wrong = [float(one.score or 0) for one in scored if not one.accepted]
    told = [f"{len(ended)} runs ended `completed`: the checker accepts {sum(one.accepted for one in ended)} of them."]
    if right:
        told.append(f"Mean score of those that are right: {statistics.fmean(right):.2f}.")
    if wrong:
        told.append(f"Mean score of those that are wrong: {statistics.fmean(wrong):.2f}, the highest {max(wrong):.2f}.")
    if verified := [one for one in some if one.verified]:
        told.append(
            f"{len(verified)} runs are verified by the stack, {sum(not one.accepted for one in verified)} of them wrongly."
        )
    return told


def _times(some: Sequence[Outcome]) -> list[str]:
    seconds = [one.seconds for one in some if one.status != "error"]
    if len(seconds) < 2:
        return []
    late = statistics.quantiles(seconds, n=20)[18]
    return [f"Time of a task: median {statistics.median(seconds):.1f} s, 95th percentile {late:.1f} s."]


def _accepted(one: Outcome) -> float:
    return float(one.accepted)


def _believed(one: Outcome) -> bool:
    return one.status == "completed" and not one.accepted and (one.score or 0.0) > FALSE_SCORE


def _share(some: Sequence[Outcome], what: Callable[[Outcome], float]) -> str:
    tasks, p = len({one.job.id for one in some}), _mean_over_tasks(some, what)
    low, high = wilson(p * tasks, tasks)
    return f"{100 * p:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def _mean_over_tasks(some: Sequence[Outcome], what: Callable[[Outcome], float]) -> float:
    by_task: dict[str, list[float]] = {}
    for one in some:
        by_task.setdefault(one.job.id, []).append(what(one))
    return statistics.fmean(statistics.fmean(values) for values in by_task.values())


def _by_task(outcomes: Iterable[Outcome], arm: str) -> dict[tuple[str, int], list[Outcome]]:
    found: dict[tuple[str, int], list[Outcome]] = {}
    for one in outcomes:
        if one.arm == arm:
            found.setdefault((one.job.id, one.seed), []).append(one)
    return found


def _names(some: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(some))
