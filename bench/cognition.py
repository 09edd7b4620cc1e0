"""What thinking about a message adds to a turn without a model: the tone, the signals, the plan block, the weighted history."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from phronesis_contracts.catalog import TOOLS
from phronesis_orchestrator.agents.cognition.preparation import classify_intent, detect_tone
from phronesis_orchestrator.agents.cognition.thought import (
    KnownStrategy,
    PastEpisode,
    PlanLine,
    ReasoningContext,
    RecalledMemory,
    StyleExample,
    Tone,
    ToolRecord,
    compose_plan,
    recalled_lines,
    signal_lines,
)
from phronesis_orchestrator.conversations.history import STEP, WINDOW, Past, PastTurn, Summary
from phronesis_orchestrator.conversations.summary import partition, select_history
from phronesis_tokens import load

TURNS, ROUNDS, QUICK = 200, 2_000, 20
_SAID = "Please compare both offers for the archive by tomorrow, I prefer the cheaper one. Is Fatima informed? "
_LINE = "The first offer is 12,000 below the second, and Fatima was told of both on Monday. "
_REPLY = _LINE * 8


async def section(quick: bool) -> list[str]:
    """Its lines."""
    load()
    rounds = QUICK if quick else ROUNDS
    tools, records = tuple(TOOLS.values()), tuple(ToolRecord(name, 20, 17) for name in TOOLS)

    def told() -> list[PlanLine]:
        return signal_lines(ReasoningContext.build(Tone(), tools, records, ("be more concise",), 800, _SAID))

    known = RecalledMemory(
        tuple(PastEpisode(_REPLY, "completed", "2026-03-01") for _ in range(3)),
        (StyleExample(_SAID * 4),) * 3,
        (KnownStrategy(_SAID, _REPLY, tuple(TOOLS)[:5], 0.8),) * 2,
    )
    turns, past = _turns(), _past()
    measured: list[tuple[str, str, Callable[[], Any]]] = [
        ("tone, a message of 100 characters", "0.2", lambda: detect_tone(_SAID)),
        ("tone, a message of 10,000 characters", "0.2", lambda: detect_tone(_SAID * 100)),
        ("intent by rules", "", lambda: classify_intent(_SAID)),
        (f"reasoning context, {len(tools)} tools with records", "1", told),
        (f"history of {TURNS} turns, as a turn reads it", "1", lambda: select_history(past)),
        (f"the importance of {TURNS} turns, and the best five", "", lambda: partition((), turns)),
        ("the plan block, all sections", "", lambda: compose_plan([*recalled_lines(known), *told()])),
    ]
    lines = [
        "Each is the call that a turn makes, on values at hand: reading the conversation and asking the memory come before.",
        f"A message has {len(_SAID)} characters, its reply {len(_REPLY)}; the summary is as far behind as it gets.",
        "",
        "| what | p50 ms | p95 ms | aim, ms |",
        "|---|---|---|---|",
    ]
    return lines + [_line(name, aim, _taken(call, rounds)) for name, aim, call in measured]


def _turns() -> list[PastTurn]:
    return [PastTurn(2 * at - 1, f"{_SAID} Number {at}.", _REPLY) for at in range(1, TURNS + 1)]


def _past() -> Past:
    """A conversation of so many turns, with a summary that is as far behind as it gets: this turn carries it on."""
    said, summary, done = _turns(), Summary(), 0
    aged = len(said) - WINDOW
    while aged - done > STEP:
        summary, _ = select_history(Past(summary=summary, kept=_kept(said, summary), aged=tuple(said[done : done + STEP])))
        done += STEP
    return Past(summary=summary, kept=_kept(said, summary), aged=tuple(said[done:aged]), window=tuple(said[aged:]))


def _kept(said: list[PastTurn], summary: Summary) -> tuple[PastTurn, ...]:
    return tuple(turn for turn in said if turn.seq in summary.kept)


def _taken(call: Callable[[], Any], rounds: int) -> list[float]:
    """Milliseconds of each of so many calls, the first ones left out."""
    taken = []
    for _ in range(rounds + rounds // 10):
        began = time.perf_counter()
        call()
        taken.append((time.perf_counter() - began) * 1000)
    return taken[rounds // 10 :]


def _line(name: str, aim: str, taken: list[float]) -> str:
    p95 = statistics.quantiles(taken, n=20)[18]
    return f"| {name} | {statistics.median(taken):.3f} | {p95:.3f} | {aim and f'under {aim}'} |"
