"""A model by script for the made-up world: it acts on what the loop shows it, in every arm by the same rules.

It plans one reading for each thing, from the source that it trusts most; it looks twice only where a look ahead told it to. Of
that, of strategies and of results it knows what the loop handed to it, and no more.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from phronesis_orchestrator.models.reasoner import Answer, Draft, IntentDecision, LookAhead, Reflection, TurnContext
from phronesis_orchestrator.tasks.ports import Criticism, GoalKnowledge, Plan, Step, StepResult, Verdict, WrittenReport

POOR = 50
"""Percent of calls that went well under which a look ahead names a tool as a risk."""
TWICE = "Read every figure from two sources and compare."
_THING = re.compile(r"[a-z]+-\d+")
_TOOL = re.compile(r"outside[ .]field[ .](\w+)")
_RECORD = re.compile(r"Reliability: outside field (\w+): (\d+)% success")


class Scripted:
    """The model. It is a `Planner` and a `Thinker`.

    Args:
        further: readings of the first plan beside those that it would make, each from a further source.
    """

    name = "scripted"

    def __init__(self, further: int = 0) -> None:
        self.calls = 0
        self._further = further

    async def look_ahead(self, turn: TurnContext) -> Answer[LookAhead]:
        """Name tools with a poor record, and that one source alone may be wrong."""
        poor = [name for name, percent in _RECORD.findall(turn.thought.plan) if int(percent) < POOR]
        risk = "One source alone may be wrong." + "".join(f" Poor: outside.field.{name}." for name in poor)
        return self._said(LookAhead(approach=(TWICE,), risk=risk))

    async def decompose(self, turn: TurnContext, known: GoalKnowledge) -> Answer[Plan]:
        """A first plan in three waves; or a new one for what is left, what failed and what is in doubt."""
        if not known.remaining:
            things = list(dict.fromkeys(_THING.findall(known.goal)))
            waves = [[(thing, ()) for thing in part] for part in (things[:2], things[2:3], things[3:]) if part]
            return self._said(self._plan(waves, known))
        read = _read(known)
        left = list(dict.fromkeys(_thing(step) for step in known.remaining))
        again = [thing for thing in _THING.findall(known.goal) if thing not in left and len(set(_figures(thing, known))) != 1]
        wave = [(thing, read.get(thing, ())) for thing in dict.fromkeys([*again, *left])]
        return self._said(self._plan([wave], known, lacking=_failed(known)))

    async def evaluate(self, turn: TurnContext, known: GoalKnowledge) -> Answer[Verdict]:
        """Revise where a step failed or two sources disagree."""
        doubt = any(len(set(_figures(thing, known))) > 1 for thing in _read(known))
        return self._said(Verdict(revise=bool(known.failed) or doubt, reason="it failed or disagrees"))

    async def write(self, turn: TurnContext, known: GoalKnowledge) -> Answer[WrittenReport]:
        """A line for each thing: what most sources say, the first of them where they are even."""
        lines = [f"{thing} = {_most(_figures(thing, known))}" for thing in dict.fromkeys(_THING.findall(known.goal))]
        used = tuple(result.step.id for result in known.worked)
        return self._said(WrittenReport(title="Figures", text="\n".join(lines), used=used))

    async def criticise(self, turn: TurnContext, known: GoalKnowledge, written: WrittenReport) -> Answer[Criticism]:
        """Good where every thing has a figure that no source outvotes; what is true the critic cannot know."""
        votes = [Counter(_figures(thing, known)).most_common(2) for thing in dict.fromkeys(_THING.findall(known.goal))]
        sound = all(found and (len(found) == 1 or found[0][1] > found[1][1]) for found in votes)
        return self._said(Criticism(score=0.9 if sound else 0.4))

    async def decide(self, turn: TurnContext) -> Answer[IntentDecision]:
        raise NotImplementedError

    async def reflect(self, turn: TurnContext, draft: Draft) -> Answer[Reflection]:
        raise NotImplementedError

    async def route(self, *given: Any) -> Any:
        raise NotImplementedError

    async def compose(self, *given: Any) -> Any:
        raise NotImplementedError

    def _said(self, value: Any) -> Answer[Any]:
        self.calls += 1
        return Answer(value)

    def _plan(
        self, waves: list[list[tuple[str, Iterable[str]]]], known: GoalKnowledge, lacking: frozenset[str] = frozenset()
    ) -> Plan:
        """Readings of things, each by the sources that are trusted most and were not tried for it."""
        trusted, times = _trusted(known), 2 if TWICE in known.ahead else 1
        every = [thing for things in waves for thing, _ in things]
        further = Counter(every[at % len(every)] for at in range(0 if known.remaining else self._further))
        steps = []
        for wave, things in enumerate(waves, 1):
            for thing, tried in things:
                free = [tool for tool in trusted if tool not in set(tried) | lacking] or [
                    tool for tool in trusted if tool not in set(tried)
                ]
                steps += [_step(thing, tool, wave) for tool in free[: times + further[thing] if not tried else 1]]
        return Plan(title="Figures", kind="figures", steps=tuple(steps))


def _step(thing: str, tool: str, wave: int) -> Step:
    id = f"{thing}.{tool.rpartition('.')[2]}"
    return Step(id=id, description=f"Read {thing} from {tool}", tool=tool, arguments={"thing": thing}, wave=wave)


def _trusted(known: GoalKnowledge) -> list[str]:
    """The sources: those of strategies first, then as they are offered; those to be avoided and those at risk last."""
    tools = [name for name in known.tools if name.startswith("outside.")]
    proven = [tool for one in known.strategies for tool in one.tools_used if tool in tools]
    avoid = {f"outside.field.{name}" for one in known.strategies for name in _TOOL.findall(one.avoid)}
    risky = {f"outside.field.{name}" for name in _TOOL.findall(known.ahead)}
    order = list(dict.fromkeys([*proven, *tools]))
    return sorted(order, key=lambda tool: (tool in avoid - set(proven), tool in risky - set(proven)))


def _thing(step: Step) -> str:
    return str(step.arguments["thing"])


def _read(known: GoalKnowledge) -> dict[str, list[str]]:
    """By thing the tools that were tried."""
    found: dict[str, list[str]] = {}
    for result in (*known.worked, *known.failed):
        found.setdefault(_thing(result.step), []).append(str(result.step.tool))
    return found


def _failed(known: GoalKnowledge) -> frozenset[str]:
    """Tools that gave nothing at all so far."""
    worked = {result.step.tool for result in known.worked}
    return frozenset(str(result.step.tool) for result in known.failed if result.step.tool not in worked)


def _figures(thing: str, known: GoalKnowledge) -> list[int]:
    return [_figure(result) for result in known.worked if _thing(result.step) == thing]


def _figure(result: StepResult) -> int:
    found: int = json.loads((result.outcome.answer or {})["text"])["figure"]
    return found


def _most(figures: list[int]) -> int | str:
    return Counter(figures).most_common(1)[0][0] if figures else "unknown"
