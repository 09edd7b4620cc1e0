"""The report of a long chaos run, as Markdown."""

from __future__ import annotations

from collections import Counter
from statistics import median, quantiles

from .run import Kill, Outcome


def report(outcome: Outcome, seed: int, paused: bool, away: float, back: float) -> str:
    """What was done, what was found."""
    found, kills = outcome.found, outcome.kills
    share = 100 * found.ended_with_reply / max(1, found.accepted)
    slow = quantiles(outcome.recovery, n=20)[-1] if len(outcome.recovery) > 1 else 0.0
    rows = [
        ("kills with -9", len(kills)),
        ("turns accepted", found.accepted),
        ("ended with a reply", f"{found.ended_with_reply} ({share:.1f} %)"),
        ("parked", found.parked),
        ("failed", found.failed),
        ("not ended", found.not_ended),
        ("replies lost", found.replies_lost),
        ("replies doubled", found.replies_doubled),
        ("journalled model steps", found.steps),
        ("model calls", found.model_calls),
        ("calls made again for a kill between call and journal", found.repeated_calls),
        ("calls made again for any other reason", found.unexplained_calls),
        ("writes of ours that took effect twice", found.writes_twice),
        ("writes of ours that are missing", found.writes_missing),
        ("time from a kill to the end of all turns in flight, median", f"{median(outcome.recovery):.1f} s"),
        ("the same, 95th percentile", f"{slow:.1f} s"),
        ("the same, longest", f"{max(outcome.recovery):.1f} s"),
        ("orchestrator paused for a minute committed nothing when it woke", "yes" if paused else "NO"),
        (f"broker gone for {away:.0f} s: from its return to the end of a turn, no service started anew", f"{back:.1f} s"),
    ]
    lines = [
        "# Chaos report",
        "",
        f"Made by `make chaos` (seed {seed}). Each kill hits one process while turns wait at a durable step, before or after",
        "its commit; `tests/chaos/gates.py` says how. The job stream was emptied twenty times half-way, with turns on their",
        "way.",
        "",
        "| what | figure |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in rows),
        "",
        "| killed | times |",
        "|---|---|",
        *(f"| {name} | {n} |" for name, n in sorted(Counter(kill.victim for kill in kills).items())),
        "",
        "| at | before | after |",
        "|---|---|---|",
        *(_point_row(name, kills) for name in dict.fromkeys(kill.point.name for kill in kills)),
        "",
        f"Kills whose step nobody came to within ten seconds: {outcome.missed}.",
        "",
    ]
    return "\n".join(lines)


def _point_row(name: str, kills: list[Kill]) -> str:
    counts = Counter(kill.when for kill in kills if kill.point.name == name)
    return f"| {name} | {counts['before']} | {counts['after']} |"
