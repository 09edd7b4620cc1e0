"""What came of many seeds, and the report of a long run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from .bugs import BUGS
from .world import Outcome

FAULTS = {
    "kill": "processes killed between two of their steps, most of them before they heard of a commit of their own",
    "stop": "processes stopped in order",
    "pause": "pauses of a process, most of them longer than a lease",
    "jump": "jumps of a clock",
    "outage": "outages of a database or the broker",
    "cut": "times that a process could not reach the broker",
}
TURNS = {
    "accepted": "times that somebody heard `accepted`",
    "turn running": "claims",
    "call": "calls of steps",
    "turn waiting": "waits for an approval",
    "turn completed": "turns completed",
    "turn cancelled": "turns cancelled",
    "turn failed": "turns failed",
    "turn parked": "turns parked",
}


@dataclass
class Totals:
    """What came of the seeds of one command."""

    command: str
    seeds: int = 0
    processes: int = 1
    seconds: float = 0.0
    steps: int = 0
    simulated: float = 0.0
    """Seconds of simulated time."""
    counts: dict[str, int] = field(default_factory=dict)
    violations: list[Outcome] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        self.seeds += 1
        self.steps += outcome.steps
        self.simulated += outcome.seconds
        self.counts = dict(Counter(self.counts) + Counter(outcome.counts))
        if outcome.violation:
            self.violations.append(outcome)

    @property
    def sentence(self) -> str:
        rate = self.seeds / self.seconds if self.seconds else 0.0
        found = f"{len(self.violations)} violations" if self.violations else "no violation"
        return f"{self.seeds} seeds in {self.seconds:.0f} s, {rate:.1f} a second by {self.processes} processes: {found}"


def _table(head: str, rows: dict[str, str], counts: dict[str, int]) -> list[str]:
    return [f"| {head} | |", "|---|--:|", *(f"| {what} | {counts.get(name, 0):,} |" for name, what in rows.items()), ""]


def write_report(path: Path, totals: Totals) -> None:
    """Write the report of a run."""
    lines = [
        "# Simulation of the turn core",
        "",
        "The services' own code (intake, claims, journal, steps, ends, approvals, leases, the outbox and what follows it) on a",
        "model of Postgres and a model of NATS, in simulated time. All order and chance come from a seed; a seed that breaks",
        "something is replayed exactly with `python -m tests.simulation --replay SEED`.",
        "",
        f"`{totals.command}`",
        "",
        f"**{totals.sentence}.** {totals.steps:,} steps of processes; {totals.simulated / 3600:,.0f} hours of simulated time.",
        "",
        *_table("What went wrong", FAULTS, totals.counts),
        *_table("What turns did", TURNS, totals.counts),
    ]
    if totals.violations:
        lines += ["| Seed | What was violated |", "|--:|---|"]
        lines += [f"| {found.seed} | {found.violation} |" for found in sorted(totals.violations, key=lambda found: found.seed)]
        lines.append("")
    lines += [
        "## What is looked at",
        "",
        "With each commit: a turn's status changes only as it may; the fence is raised by each claim and each cancellation;",
        "nothing of a running turn is changed by another than its holder; a claim finds the lease run out; one turn of a",
        "conversation runs at a time, and the first one; a key makes one turn; idle claims are counted right; an end has its",
        "one piece of news and its own messages; nothing leaves the outbox before it is stored; no write takes effect twice.",
        "With each call: its intent is written, its result is not, and what may be made once is made once. With each",
        "message: what is said to be accepted or ended is committed. At the end, when nothing goes wrong any more: all that",
        "was accepted has ended, every end was followed, and no conversation has gaps.",
        "",
        "## Bugs that are planted",
        "",
        "`tests/simulation/test_planted_bugs.py` plants each of these and finds it within so many seeds.",
        "",
        "| Bug | Seeds |",
        "|---|--:|",
        *(f"| {found.what} | {found.seeds} |" for found in BUGS.values()),
        "",
    ]
    path.write_text("\n".join(lines))
