"""Figures over records: what is right, wrong and declined, how sure of it the replies were, and how long they took."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from .judge import ANSWERABLE, DECLINED, ERROR, RIGHT, WRONG
from .run import Record

BINS = 10
_HEAD = "| {} | questions | right | 95 % | wrong | 95 % | declined | errors |\n|---|---|---|---|---|---|---|---|"


def wilson(part: float, whole: int) -> tuple[float, float]:
    """The 95 % Wilson interval of a share."""
    if not whole:
        return 0.0, 1.0
    z, p = 1.96, part / whole
    centre = (p + z * z / (2 * whole)) / (1 + z * z / whole)
    spread = z * math.sqrt(p * (1 - p) / whole + z * z / (4 * whole * whole)) / (1 + z * z / whole)
    return max(0.0, centre - spread), min(1.0, centre + spread)


def calibration_error(pairs: Sequence[tuple[float, bool]], bins: int = BINS) -> float | None:
    """The expected calibration error over bins of equal mass.

    Args:
        pairs: a stated confidence, and whether the answer was right.
        bins: how many.

    Returns:
        The mean distance of confidence and correctness, weighted by bin; none without answers.
    """
    if not pairs:
        return None
    alike: dict[float, list[bool]] = {}
    for confidence, right in pairs:
        alike.setdefault(confidence, []).append(right)
    ordered = [(one, statistics.fmean(map(float, alike[one]))) for one, _ in sorted(pairs)]  # no bin may part what is tied
    size = len(ordered) / min(bins, len(ordered))
    edges = [round(size * n) for n in range(min(bins, len(ordered)) + 1)]
    error = 0.0
    for low, high in pairwise(edges):
        some = ordered[low:high]
        distance = abs(statistics.fmean(one for one, _ in some) - statistics.fmean(right for _, right in some))
        error += distance * len(some) / len(ordered)
    return error


def markdown(records: Sequence[Record], head: Iterable[str]) -> str:
    """The whole report."""
    lines = ["# Evaluation of answers", "", *head, ""]
    for agent in sorted({record.agent for record in records}):
        some = [record for record in records if record.agent == agent]
        asked = [record for record in some if record.kind in ANSWERABLE]
        lines += [f"## `{agent}`", ""]
        lines += _table("set and half", asked, lambda one: f"{one.item.set}, {one.item.half}")
        lines += _table("set, single or follow-up", asked, lambda one: f"{one.item.set}, {_place(one)}")
        lines += _table("what is no question to the data", [r for r in some if r.kind not in ANSWERABLE], _other)
        lines += _table("language", asked, lambda one: one.item.language)
        lines += _table("with typing errors", asked, lambda one: "yes" if "typo" in one.item.tags else "no")
        lines += _table(
            "kind of question", asked, lambda one: f"{one.item.set}: {one.item.tags[0] if one.item.tags else one.kind}"
        )
        lines += [*_calibration(some), "", *_times(some), ""]
    return "\n".join(lines).rstrip() + "\n"


def summary(records: Sequence[Record]) -> str:
    """Some lines for the terminal."""
    lines = []
    for agent in sorted({record.agent for record in records}):
        for name in dict.fromkeys(record.item.set for record in records):
            some = [record for record in records if (record.agent, record.item.set) == (agent, name)]
            for label, part in (
                ("single", [r for r in some if r.kind in ANSWERABLE and not r.follow_up]),
                ("follow-up", [r for r in some if r.kind in ANSWERABLE and r.follow_up]),
                ("unanswerable", [r for r in some if r.kind == "declined"]),
                ("talk", [r for r in some if r.kind not in ANSWERABLE and r.kind != "declined"]),
            ):
                if part:
                    shares = ", ".join(
                        f"{one} {_percent(_count(part, one), len(part))}" for one in (RIGHT, WRONG, DECLINED, ERROR)
                    )
                    lines.append(f"{agent:9} {name:13} {label:13} {len(part):5}  {shares}")
    return "\n".join(lines)


def failures(records: Iterable[Record]) -> str:
    """What was not right in the tuning half, one JSON object in a line; the held half is never shown."""
    lines = []
    for record in records:
        if record.item.half == "tune" and record.outcome != RIGHT:
            shown = {
                "id": record.item.id,
                "agent": record.agent,
                "outcome": record.outcome,
                "kind": record.kind,
                "question": record.item.turns[record.turn].text,
                "before": [turn.text for turn in record.item.turns[: record.turn]],
                "got": record.reply.text[:1500],
                "expected": {key: _short(value) for key, value in record.item.turns[record.turn].expect.items()},
                "confidence": record.reply.confidence,
            }
            lines.append(json.dumps(shown, ensure_ascii=False, default=str))
    return "\n".join(lines) + "\n"


def _short(value: object) -> object:
    return [*value[:12], f"and {len(value) - 12} more"] if isinstance(value, list) and len(value) > 12 else value


def _place(record: Record) -> str:
    return "follow-up" if record.follow_up else "single"


def _other(record: Record) -> str:
    return f"{record.item.set}, {record.item.half}: {record.kind}"


def _table(title: str, records: Sequence[Record], of: Callable[[Record], str]) -> list[str]:
    if not records:
        return []
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(of(record), []).append(record)
    rows = [_row(name, groups[name]) for name in sorted(groups)]
    return [_HEAD.format(title), *rows, *([_row("all", records)] if len(rows) > 1 else []), ""]


def _row(name: str, some: Sequence[Record]) -> str:
    whole = len(some)
    right, wrong, declined, errors = (_count(some, one) for one in (RIGHT, WRONG, DECLINED, ERROR))
    cells = [name, str(whole), _percent(right, whole), _interval(right, whole), _percent(wrong, whole), _interval(wrong, whole)]
    return f"| {' | '.join([*cells, _percent(declined, whole), str(errors)])} |"


def _count(some: Iterable[Record], outcome: str) -> int:
    return sum(record.outcome == outcome for record in some)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _interval(part: int, whole: int) -> str:
    low, high = wilson(part, whole)
    return f"{100 * low:.1f}-{100 * high:.1f}"


def _calibration(records: Sequence[Record]) -> list[str]:
    """Over replies that answer: a refusal states nothing that could be right."""
    answers = [r for r in records if r.reply.confidence is not None and r.outcome in (RIGHT, WRONG) and not _refused(r)]
    pairs = [(float(record.reply.confidence or 0), record.outcome == RIGHT) for record in answers]
    error = calibration_error(pairs)
    if error is None:
        return ["Calibration: the replies state no confidence."]
    return [f"Expected calibration error over {len(pairs)} answers in {BINS} bins of equal mass: {error:.3f}."]


def _refused(record: Record) -> bool:
    return record.kind in ("declined", "ask", "talk", "ack") and record.outcome == RIGHT


def _times(records: Sequence[Record]) -> list[str]:
    taken = [record.reply.seconds for record in records if record.outcome != ERROR]
    if len(taken) < 2:
        return []
    median, late = statistics.median(taken), statistics.quantiles(taken, n=20)[18]
    return [f"Time of a turn as a client sees it: median {1000 * median:.0f} ms, 95th percentile {1000 * late:.0f} ms."]
