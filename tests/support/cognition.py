"""A memory of earlier turns and a mind that thinks as it is told, for tests of the stages around a turn's work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from phronesis_bus.tracing import Tracing
from phronesis_contracts import Label, OriginKind, Principal
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.orchestrator import Directive, TurnProgress
from phronesis_orchestrator.agents.cognition.state import Cognition
from phronesis_orchestrator.agents.cognition.thought import KnownStrategy, PastEpisode, StyleExample, ToolRecord
from phronesis_orchestrator.ledger.usage import CallUsage
from phronesis_orchestrator.models.reasoner import Answer, Draft, IntentDecision, LookAhead, Reflection, TurnContext
from phronesis_orchestrator.settings import CognitionSettings, OrchestratorSettings
from phronesis_orchestrator.turns.execution import Steps, TurnRun
from phronesis_orchestrator.turns.turn import Claim
from tests.unit.orchestrator.fakes import FakeJournal, FakeNeighbours, ScriptedReasoner, claim

EPISODE = PastEpisode("Mailed John about the lease; he agreed.", "completed", "2026-03-01")
STRATEGY = KnownStrategy("Report on risks", "Read the ratings, then the gaps.", ("survey_twin",), 0.8)
RECORD = ToolRecord("node.delete.v1", 20, 17)
AHEAD = LookAhead(know="The lease.", need="The date.", approach=("Look it up.",), risk="An old date.")
STAGES = ("tone", "intent", "recall", "strategies", "preflight", "plan", "reflect")
PROMPTS = {name: "{{input}}" for name in ("intent", "preflight", "reflect")} | {"research": "Find facts first."}


@dataclass
class FakeExperience:
    """A memory that answers from tables; an error in a table is raised, and `hangs` never answers."""

    episodes: Any = (EPISODE,)
    style: Any = ("Short lines. No fuss.",)
    strategies: Any = (STRATEGY,)
    records: Any = (RECORD,)
    hangs: frozenset[str] = frozenset()
    asked: list[str] = field(default_factory=list)
    whom: list[Principal] = field(default_factory=list)

    async def recall_episodes(self, who: Principal, query: str, limit: int) -> tuple[PastEpisode, ...]:
        found: tuple[PastEpisode, ...] = await self._given("episodes", who)
        return found

    async def tool_statistics(self, who: Principal, tools: tuple[str, ...]) -> tuple[ToolRecord, ...]:
        found: tuple[ToolRecord, ...] = await self._given("records", who)
        return found

    async def recall_strategies(
        self, who: Principal, query: str, limit: int, agent: str, tools: tuple[str, ...]
    ) -> tuple[KnownStrategy, ...]:
        found: tuple[KnownStrategy, ...] = await self._given("strategies", who)
        return found

    async def style_examples(self, who: Principal, query: str, limit: int) -> tuple[StyleExample, ...]:
        found: tuple[str, ...] = await self._given("style", who)
        return tuple(StyleExample(one, (Label(kind=OriginKind.MEMORY),)) for one in found)

    async def _given(self, name: str, who: Principal) -> Any:
        self.asked.append(name)
        self.whom.append(who)
        if name in self.hangs:
            await asyncio.Event().wait()
        found = getattr(self, name)
        if isinstance(found, Exception):
            raise found
        return found


@dataclass
class FakeThinker(ScriptedReasoner):
    """A reasoner that also thinks as it is told: an answer, an error that is raised, or `None`, which never comes."""

    decides: Any = field(default_factory=lambda: Answer(None))
    ahead: Any = AHEAD
    again: Any = field(default_factory=Reflection)
    given: list[TurnContext] = field(default_factory=list)
    stopped: bool = False
    """Whether a call that never answered was stopped."""

    async def decide(self, turn: TurnContext) -> Answer[IntentDecision]:
        found: Answer[IntentDecision] = await self._answer("decide", turn, self.decides)
        return found

    async def look_ahead(self, turn: TurnContext) -> Answer[LookAhead]:
        found: Answer[LookAhead] = await self._answer("preflight", turn, self.ahead)
        return found

    async def reflect(self, turn: TurnContext, draft: Draft) -> Answer[Reflection]:
        found: Answer[Reflection] = await self._answer("reflect", turn, self.again)
        return found

    async def _answer(self, name: str, turn: TurnContext, told: Any) -> Any:
        self.calls.append(name)
        self.given.append(turn)
        if isinstance(told, Exception):
            raise told
        if told is None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.stopped = True
                raise
        return told if isinstance(told, Answer) else Answer(told, spent=CallUsage(model_calls=1))


def an_agent(stages: tuple[str, ...] = STAGES, **prompts: str) -> AgentProfile:
    """An agent with all stages, and a prompt for each that needs one."""
    return AgentProfile(agent="nova", version="1", loop="tools", stages=stages, prompts={**PROMPTS, **prompts})


def a_turn(text: str, agent: AgentProfile | None = None, **more: Any) -> TurnContext:
    """A message to it."""
    given: dict[str, Any] = {"profile": {}, "history": (), "directive": Directive.FOCUSED_ANALYST} | more
    return TurnContext(agent=agent or an_agent(), final_input=text, user_text=text, **given)


def running(
    experience: FakeExperience | None = None,
    journal: FakeJournal | None = None,
    shown: list[str] | None = None,
    tracing: Tracing | None = None,
    **settings: Any,
) -> TurnRun:
    """A turn in hand, whose stages have this memory and these settings."""
    of, tracer = claim(agent="nova"), tracing or Tracing("orchestrator")
    steps = Steps(journal or FakeJournal(), of, tracer)
    cognition = Cognition(CognitionSettings(**settings), experience or FakeExperience())
    return TurnRun(of, steps, tracer, FakeNeighbours(), OrchestratorSettings(), showing(shown), [], cognition=cognition)


def showing(lines: list[str] | None) -> Callable[[Claim, TurnProgress], Awaitable[None]]:
    """What shows a turn's progress: into a list."""

    async def show(of: Claim, line: TurnProgress) -> None:
        if lines is not None:
            lines.append(line.phase or line.kind)

    return show
