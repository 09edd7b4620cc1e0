"""The constitutional agents with their real profiles, and neighbours that answer from a small graph of a research institute."""

from __future__ import annotations

from datetime import date
from typing import Any

from phronesis_contracts import Principal
from phronesis_contracts.constitution.insight import (
    CHECK_POLICY,
    CONTRADICTIONS,
    WHY,
    WITHOUT,
    CheckPolicy,
    Contradiction,
    ContradictionsFound,
    Loss,
    LossesFound,
    PolicyChecked,
    Reason,
    RuleHit,
    WhyAnswered,
)
from phronesis_contracts.constitution.lists import VisionNode
from phronesis_contracts.constitution.paths import CLIMB_LADDER, DUE_WORK, DueFound, LadderClimbed, Step
from phronesis_contracts.constitution.registry import Layer
from phronesis_contracts.constitution.search import (
    GOAL_SEARCH,
    PRECEDENT_SEARCH,
    SEMANTIC_SEARCH,
    GoalFound,
    Hit,
    HybridFound,
    HybridHit,
    HybridStats,
    SearchStats,
    SemanticFound,
    Supported,
    SupportedFound,
)
from phronesis_contracts.constitution.session import (
    ASSESS_WORKLOAD,
    START_SESSION,
    CalendarFigures,
    Capacity,
    SessionStarted,
    SessionStats,
    TaskFigures,
    TaskShown,
    WorkloadAssessed,
)
from phronesis_contracts.constitution.values import ConstitutionNode, Mention
from phronesis_contracts.constitution.writes import CREATE, NodeWritten
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.orchestrator import Reply
from phronesis_instructions.library.content import read_agents
from phronesis_instructions.library.texts import PURPOSE, allowed_tools
from phronesis_orchestrator.models.reasoner import RULES
from phronesis_orchestrator.turns.turn import Completed
from tests.support.personas import Persona
from tests.unit.orchestrator.fakes import FakeConversations, FakeNeighbours, Stage, claim

AGENTS = ("discuss", "decisions", "execute", "mind")


def profile(name: str) -> AgentProfile:
    """An agent as its content folder has it."""
    content = next(content for content in read_agents() if content.agent == name)
    told = content.model_dump(include={"agent", "version", "loop", "stages", "prompts", "directives", "phrases"})
    tools = allowed_tools(told["prompts"].pop(PURPOSE))
    return AgentProfile(**told, bootstrap=told["prompts"]["guide"], tools=tools, release="1.0.0")


def node(id: str, type: str, title: str, layer: Layer, **more: Any) -> ConstitutionNode:
    """A node."""
    return ConstitutionNode(id=id, type=type, title=title, layer=layer, **more)


HONESTY = node("v-honesty", "value", "Honest results", Layer.FOUNDATION, statement="We report what we found.")
EARLY = node("p-early", "principle", "Publish early", Layer.FOUNDATION, summary="Results leave the house within a year.")
HOURS = node("g-hours", "guardrail", "No week over forty hours", Layer.FOUNDATION)
VISION = node("vi-open", "vision", "Knowledge without walls", Layer.VISION)
GOAL = node("go-data", "goal", "Open data by default", Layer.VISION, summary="Each data set is public when its paper is.")
RIVAL = node("go-patents", "goal", "File ten patents a year", Layer.VISION)
STRATEGY = node("st-repository", "strategy", "One repository for all groups", Layer.STRATEGY)
SHARED = node(
    "d-shared", "decision", "Share the mass spectrometer", Layer.EXECUTION, roi={"total": 2.5}, decidedAt="2025-03-02"
)
BOUGHT = node("d-bought", "decision", "Buy a second microscope", Layer.EXECUTION, roi={"total": -0.4})
TASK = Mention(id="t-catalogue", type="task", title="Write the catalogue", status="done")


def mention(one: ConstitutionNode) -> Mention:
    """A node in few words."""
    return Mention(id=one.id, type=one.type, title=one.title)


def step(one: ConstitutionNode, relationship: str | None = None) -> Step:
    """A step that comes to a node."""
    return Step(node_id=one.id, type=one.type, title=one.title, relationship=relationship, direction=relationship and "out")


def semantic(request: Any) -> SemanticFound:
    """What is like a question: the strategy, whatever it is."""
    return SemanticFound(results=(Hit(node=STRATEGY, score=0.55),), stats=SearchStats(total_results=1))


def policy(request: CheckPolicy) -> PolicyChecked:
    """A rule against weekends."""
    hit = RuleHit(
        rule=mention(HOURS), severity="acknowledge", because="it speaks of the weekend", response="Plan it for a weekday."
    )
    return PolicyChecked(hits=(hit,) if "weekend" in request.text.casefold() else (), allowed=True)


def workload(zone: Any = "green", scheduled: float = 12.0, **more: Any) -> WorkloadAssessed:
    """A week of forty hours."""
    given: dict[str, Any] = {
        "start_date": date(2026, 3, 2),
        "end_date": date(2026, 3, 9),
        "capacity": Capacity(available_hours=40, scheduled_hours=scheduled, utilization_percent=scheduled * 2.5, zone=zone),
        "tasks": TaskFigures(
            total=1,
            items=(
                TaskShown(
                    id="t-report", title="Finish the report", status="in_progress", effort_hours=8, due_date="2026-03-05"
                ),
            ),
        ),
        "calendar": CalendarFigures(total=3, total_hours=4),
        "recommendations": ("Keep Friday free.",),
    }
    return WorkloadAssessed(**given | more)


STARTED = SessionStarted(
    session_id="s",
    foundation=(HONESTY, EARLY, HOURS),
    vision=tuple(
        VisionNode(**one.model_dump(), parents=parents)
        for one, parents in (
            (VISION, ()),
            (GOAL, (mention(VISION).model_copy(update={"relationship": "SERVES"}),)),
            (RIVAL, ()),
        )
    ),
    workload=workload(),
    stats=SessionStats(
        total_nodes=6, total_tokens=2_300, foundation_tokens=150, vision_tokens=150, workload_tokens=2_000, load_time=3.0
    ),
)
OWNERS: dict[str, Any] = {
    START_SESSION.subject: STARTED,
    SEMANTIC_SEARCH.subject: semantic,
    CLIMB_LADDER.subject: LadderClimbed(ladder=(mention(GOAL), mention(VISION)), depth=1),
    WHY.subject: WhyAnswered(
        reasons=(
            Reason(path=(step(GOAL), step(VISION, "SERVES"), step(HONESTY, "ALIGNS_WITH")), sentence="It serves openness."),
        )
    ),
    PRECEDENT_SEARCH.subject: SupportedFound(
        results=(Supported(node=SHARED, score=0.71, linked=(TASK,)), Supported(node=BOUGHT, score=0.5)),
        stats=SearchStats(total_results=2),
    ),
    ASSESS_WORKLOAD.subject: workload(),
    DUE_WORK.subject: DueFound(),
    WITHOUT.subject: LossesFound(orphaned=(Loss(node=mention(STRATEGY), lost=(mention(HONESTY),)),), weakened=(), total=1),
    CONTRADICTIONS.subject: ContradictionsFound(
        pairs=(Contradiction(one=mention(GOAL), other=mention(RIVAL), score=0.6, because="one opens what the other closes"),)
    ),
    GOAL_SEARCH.subject: GoalFound(
        goal=GOAL,
        goal_score=0.8,
        found=HybridFound(
            results=(
                HybridHit(
                    node=STRATEGY,
                    structural_score=1.0,
                    semantic_score=0.5,
                    final_score=0.8,
                    path=(
                        step(GOAL),
                        Step(node_id=STRATEGY.id, type="strategy", title=STRATEGY.title, relationship="SERVES", direction="in"),
                    ),
                ),
            ),
            stats=HybridStats(total_results=1),
        ),
    ),
    CHECK_POLICY.subject: policy,
    CREATE["decision"].rpc.subject: NodeWritten(node=node("d-new", "decision", "Run the lab on Mondays", Layer.EXECUTION)),
}
"""Neighbours that give each tool something."""


def stage(agent: str, reasoner: Any = None, **owners: Any) -> Stage:
    """A runner whose agent is one of the four; without a model unless one is given."""
    neighbours = FakeNeighbours(profiles={agent: profile(agent)}, owners={**OWNERS, **owners})
    of: Any = reasoner or RULES
    return Stage(of, neighbours, FakeConversations())


async def ask(of: Stage, text: str, role: Persona = Persona.ADMIN) -> Reply:
    """Ask the agent of a stage; the turn must end well."""
    (agent,) = of.neighbours.profiles
    end = await of.run(claim(text, agent=agent, who=Principal(tenant="acme", user="ann", **role.rights)))
    assert isinstance(end, Completed), end
    return end.reply
