"""A background task with working stand-ins: a planner that is scripted, tools that answer from tables, and stores in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from phronesis_bus import Call
from phronesis_bus.tracing import Tracing
from phronesis_contracts import Principal, Unavailable
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.memory import Remember, Remembered, RememberedItem
from phronesis_contracts.ontology import VOCABULARY
from phronesis_contracts.orchestrator import (
    Directive,
    ScheduledRun,
    StartingEvent,
    TaskBudget,
    TaskOrder,
    TurnProgress,
    TurnRef,
    TurnStatus,
)
from phronesis_contracts.origins import Label
from phronesis_contracts.tasks import Task, TaskOutcome, TaskRef, TaskState, Verified
from phronesis_contracts.twin import Survey, Surveyed
from phronesis_orchestrator.agents.cognition.state import Cognition, Experience, NoExperience
from phronesis_orchestrator.agents.loops import LoopAnswer
from phronesis_orchestrator.ledger.usage import CallUsage
from phronesis_orchestrator.models.reasoner import (
    RULES,
    Answer,
    Draft,
    IntentDecision,
    LookAhead,
    Reasoner,
    Reflection,
    TurnContext,
)
from phronesis_orchestrator.settings import CognitionSettings, OrchestratorSettings
from phronesis_orchestrator.tasks.background import LOOKING_UP, PURPOSES, Background, TaskHandlers
from phronesis_orchestrator.tasks.ports import (
    Criticism,
    GoalKnowledge,
    Lesson,
    Plan,
    Step,
    Strategy,
    Verdict,
    WrittenReport,
)
from phronesis_orchestrator.turns.execution import Steps, TurnRun
from phronesis_orchestrator.turns.run import begin_origins
from phronesis_orchestrator.turns.turn import Claim, fill_goal
from phronesis_orchestrator.understanding.reader import Vocabularies
from tests.support.personas import Persona
from tests.unit.orchestrator.fakes import FakeJournal, FakeNeighbours, FakeTurns, claim, raised

ANN = Principal(tenant="acme", user="ann", **Persona.MAESTRO.rights)
NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
PROMPTS = dict.fromkeys((*PURPOSES, LOOKING_UP), "x")
NOVA = AgentProfile(agent="nova", version="1", loop="tools", stages=(), prompts=PROMPTS, tools=("survey_twin",))


def step(id: str, wave: int, *, depends: tuple[str, ...] = (), tool: str = "survey_twin", optional: bool = False) -> Step:
    """A step that surveys a type of its own name."""
    return Step(id=id, description=f"Do {id}", tool=tool, arguments={"type": id}, depends=depends, wave=wave, optional=optional)


def plan(*waves: str) -> Plan:
    """A plan of waves, each a line of ids."""
    return Plan(title="T", steps=tuple(step(id, at) for at, ids in enumerate(waves, 1) for id in ids.split()))


Script = list[Any]


@dataclass
class ScriptedPlanner:
    """Gives what is scripted, in order; an error in a script is raised, and a function is awaited."""

    plans: Script = field(default_factory=list)
    verdicts: Script = field(default_factory=list)
    scores: Script = field(default_factory=lambda: [Criticism(score=0.9)])
    reports: Script = field(default_factory=lambda: [WrittenReport(title="Done", text="All done.", used=("a",))])
    spent: CallUsage = field(default_factory=CallUsage)
    cost_usd: float | None = None
    name: str = "scripted"
    asked: list[tuple[str, GoalKnowledge]] = field(default_factory=list)

    async def route(self, *given: Any) -> Any:
        raise NotImplementedError

    async def compose(self, *given: Any) -> Any:
        raise NotImplementedError

    async def decompose(self, turn: TurnContext, known: GoalKnowledge) -> Answer[Plan]:
        return await self._next("decompose", known, self.plans)

    async def evaluate(self, turn: TurnContext, known: GoalKnowledge) -> Answer[Verdict]:
        return await self._next("evaluate", known, self.verdicts)

    async def criticise(self, turn: TurnContext, known: GoalKnowledge, written: WrittenReport) -> Answer[Criticism]:
        return await self._next("criticise", known, self.scores)

    async def write(self, turn: TurnContext, known: GoalKnowledge) -> Answer[WrittenReport]:
        return await self._next("write", known, self.reports)

    async def _next(self, purpose: str, known: GoalKnowledge, script: Script) -> Answer[Any]:
        self.asked.append((purpose, known))
        found = script.pop(0)
        if callable(found):
            found = await found()
        if isinstance(found, Exception):
            raise found
        return Answer(found, spent=self.spent, cost_usd=self.cost_usd)

    def times(self, purpose: str) -> int:
        """How often it was asked for something."""
        return sum(1 for asked, _ in self.asked if asked == purpose)

    def known(self, purpose: str, nth: int = 0) -> GoalKnowledge:
        """What it was asked with."""
        return [known for asked, known in self.asked if asked == purpose][nth]


@dataclass
class ThinkingPlanner(ScriptedPlanner):
    """One that also looks ahead."""

    thoughts: Script = field(default_factory=lambda: [LookAhead(risk="The first source is often wrong.")])
    shown: list[str] = field(default_factory=list)
    """The blocks that it looked ahead with."""

    async def decide(self, turn: TurnContext) -> Answer[IntentDecision]:
        raise NotImplementedError

    async def reflect(self, turn: TurnContext, draft: Draft) -> Answer[Reflection]:
        raise NotImplementedError

    async def look_ahead(self, turn: TurnContext) -> Answer[LookAhead]:
        self.shown.append(turn.thought.plan)
        found = self.thoughts.pop(0)
        if isinstance(found, Exception):
            raise found
        return Answer(found, spent=self.spent, cost_usd=self.cost_usd)


@dataclass
class MemoryStrategies:
    """A memory of strategies that finds all that it holds."""

    found: tuple[Strategy, ...] = ()
    log: list[tuple[str, Any]] = field(default_factory=list)

    async def recall(self, who: Principal, goal: str, n: int, agent: str, tools: tuple[str, ...]) -> tuple[Strategy, ...]:
        return self.found[:n]

    async def record(self, who: Principal, lesson: Lesson, verified: Verified) -> None:
        self.log.append(("record", lesson))

    async def outcome(self, who: Principal, task_id: str, ids: tuple[str, ...], verified: Verified) -> None:
        self.log.append(("outcome", (ids, verified.accepted)))


@dataclass
class MemoryStore:
    """The states and templates of tasks."""

    journal: FakeJournal
    states: list[TaskState] = field(default_factory=list)
    templates: dict[str, Plan] = field(default_factory=dict)
    log: list[tuple[str, Any]] = field(default_factory=list)
    counted: int = 0
    """How often a template was asked for, and that counted."""

    async def keep_state(self, claim: Claim, state: TaskState) -> None:
        self.states.append(state)

    async def journalled(self, claim: Claim) -> frozenset[str]:
        return frozenset(self.journal.results)

    async def template(self, who: Principal, signature: str, *, counted: bool = True) -> Plan | None:
        self.counted += counted
        return self.templates.get(signature)

    async def keep_template(self, claim: Claim, signature: str, plan: Plan) -> None:
        self.templates[signature] = plan
        self.log.append(("template", plan))

    async def get(self, who: Principal, task_id: str) -> Task:
        state = self.states[-1]
        status = TurnStatus.COMPLETED if state.report is not None else TurnStatus.RUNNING
        about = {"conversation_id": "c", "agent": "nova", "goal": "g", "budget": TaskBudget(), "created_at": NOON}
        return Task(task_id=task_id, status=status, progress=state, **about)

    async def lesson(self, who: Principal, task_id: str) -> Lesson | None:
        kept = self.journal.results.get("task.lesson")
        return Lesson.model_validate(kept["lesson"]) if kept is not None else None

    async def verify(self, who: Principal, task_id: str, verified: Verified, template: Lesson | None) -> None:
        self.states.append(self.states[-1].model_copy(update={"verified": verified}))
        self.templates = {template.signature: template.plan} if template is not None else {}
        self.log.append(("template", template.plan) if template is not None else ("no template", None))

    async def list(self, who: Principal, query: Any) -> Any:
        raise NotImplementedError

    async def effect(self, who: Principal) -> Any:
        raise NotImplementedError


@dataclass
class TaskStage:
    """One task; `run` again takes it over with the same journal."""

    planner: Any = None
    """Who plans; rules do where there is nobody."""
    goal: str = "Do it all"
    budget: TaskBudget = field(default_factory=TaskBudget)
    journal: FakeJournal = field(default_factory=FakeJournal)
    strategies: Any = field(default_factory=MemoryStrategies)
    answers: dict[str, Any] = field(default_factory=dict)
    """By type what a survey gives: an error, or a coroutine function; else one row."""
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    """Types that were surveyed, in the order of their ends."""
    remembered: list[Remember] = field(default_factory=list)
    who: Principal = ANN
    agent: AgentProfile = NOVA
    tracing: Tracing = field(default_factory=lambda: Tracing("orchestrator"))
    experience: Experience = field(default_factory=NoExperience)
    thinking: CognitionSettings = field(default_factory=lambda: CognitionSettings(strategy_holdout=0))
    """No goal is planned without strategies to measure what these are worth."""
    approvals: FakeTurns | None = None
    vocabularies: Any = None
    settings: OrchestratorSettings = field(default_factory=OrchestratorSettings)
    dry_run: bool = False
    owners: dict[str, Any] = field(default_factory=dict)
    """Answers of other contracts by subject; with words of the twin among them there is one."""
    rules_alone: bool = False
    event: StartingEvent | None = None
    """The event that started it; the goal is then as its owner wrote it."""

    def __post_init__(self) -> None:
        self.waits: Any = None
        self.labels: tuple[Label, ...] = ()
        self.store = MemoryStore(self.journal)
        self.neighbours = _Neighbours(self._surveyed)
        self.neighbours.owners["memory.v1.remember"] = self._remember
        self.neighbours.owners |= self.owners
        if VOCABULARY.subject in self.owners:
            self.vocabularies = Vocabularies(self.neighbours)
        plain = claim(self.goal, agent="nova", who=self.who)
        run = ScheduledRun(schedule_id="s", due=NOON, event=self.event) if self.event is not None else None
        task = TaskOrder(budget=self.budget, dry_run_of=self.goal if self.dry_run else None, schedule=run)
        order = plain.request.model_copy(update={"task": task})
        self.claim = replace(plain, request=order)

    @property
    def state(self) -> TaskState:
        """What is seen of the task."""
        return self.store.states[-1]

    @property
    def told(self) -> list[str]:
        """Names of the events so far."""
        return [name for name, _ in self.events]

    async def run(self) -> LoopAnswer:
        """One attempt at the task."""

        async def show(of: Claim, line: TurnProgress) -> None:
            self.events.append((line.phase or line.kind, line.detail))

        steps = Steps(self.journal, self.claim, self.tracing)
        cognition = Cognition(self.thinking, self.experience)
        running = TurnRun(
            self.claim,
            steps,
            self.tracing,
            self.neighbours,
            self.settings,
            show,
            [],
            cognition=cognition,
            approvals=self.approvals,
            vocabularies=self.vocabularies,
        )
        words = fill_goal(self.claim.request)
        turn = TurnContext(self.agent, {}, (), Directive.FOCUSED_ANALYST, words, words)
        reasoner: Reasoner = self.planner if self.planner is not None else RULES
        self.steps = steps
        self.running, running.reasoner = running, reasoner
        begin_origins(running.origins, turn, self.claim.request, self.labels)
        return await Background(self.store, self.strategies, self.waits, self.rules_alone).run(running, reasoner, turn)

    async def judged(self, accepted: bool, comment: str = "") -> Task:
        """What a person says of the task that has ended."""
        handlers = TaskHandlers(self.store, _NoTurns(), self.strategies, lambda: None, _NoAnswers(), lambda: None)
        said = TaskOutcome(task_id=self.claim.turn_id, accepted=accepted, comment=comment)
        return await handlers.outcome(Call(self.who, "gateway"), said)

    async def _surveyed(self, request: Survey) -> Surveyed:
        found = self.answers.get(request.type)
        if callable(found):
            found = await found()
        self.made.append(request.type)
        raised(found)
        return found or Surveyed(rows=({"group": request.type, "value": 1},), total=1, statement="MATCH")

    def _remember(self, request: Remember) -> Remembered:
        self.remembered.append(request)
        return Remembered(items=(RememberedItem(id="doc-1", external_id=request.items[0].external_id, status="created"),))


class _NoAnswers:
    """Nobody is asked anything."""

    async def answer(self, call: Call, request: Any) -> TaskRef:
        raise NotImplementedError


class _NoTurns:
    async def cancel(self, call: Call, request: TurnRef) -> Any:
        raise NotImplementedError


@dataclass
class _Neighbours(FakeNeighbours):
    surveyed: Callable[[Survey], Awaitable[Surveyed]] | None = None

    def __init__(self, surveyed: Callable[[Survey], Awaitable[Surveyed]]) -> None:
        super().__init__()
        self.surveyed = surveyed

    async def ask(self, who: Principal, rpc: Any, request: Any, *, key: str | None = None) -> Any:
        if isinstance(request, Survey) and self.surveyed is not None:
            self.questions.append((rpc.subject, request, key))
            return await self.surveyed(request)
        return await super().ask(who, rpc, request, key=key)


BROKEN = Unavailable("it is down")
KEEP = Verdict(revise=False)
REVISE = Verdict(revise=True, reason="it failed")


async def never() -> Any:
    """What does not end by itself."""
    await asyncio.Event().wait()
