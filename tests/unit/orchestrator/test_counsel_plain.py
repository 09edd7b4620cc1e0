"""The constitutional agents without a language model: what they understand, what they say, and what they cite."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from phronesis_contracts import NotFound, Principal, Unavailable
from phronesis_contracts.constitution.insight import CHECK_POLICY, CONTRADICTIONS, WITHOUT, ContradictionsFound
from phronesis_contracts.constitution.paths import CLIMB_LADDER, DUE_WORK, DueFound
from phronesis_contracts.constitution.search import (
    GOAL_SEARCH,
    PRECEDENT_SEARCH,
    SEMANTIC_SEARCH,
    PrecedentSearch,
    SearchStats,
    SemanticFound,
    SupportedFound,
)
from phronesis_contracts.constitution.session import ASSESS_WORKLOAD, START_SESSION
from phronesis_contracts.orchestrator import Directive
from phronesis_orchestrator.agents.counsel.answers import window
from phronesis_orchestrator.agents.counsel.questions import Kind, classify_question
from phronesis_orchestrator.conversations.history import PastMessage
from phronesis_orchestrator.models.reasoner import TurnContext
from phronesis_orchestrator.turns.turn import Failed
from tests.support.cases import for_each
from tests.support.counsel import AGENTS, STRATEGY, ask, node, profile, stage, workload
from tests.support.personas import Persona
from tests.unit.orchestrator.fakes import claim

PURPOSE = "What does the goal Open data by default serve, and why?"
PRECEDENT = "We may lend our sequencer to a neighbour. Which decisions like this one paid off?"
ROOM = "Is there room for new work this week?"
LOSS = "What loses its support without the principle Publish early?"
CONTRADICTION = "Which goals contradict each other?"


def turn(text: str, *history: PastMessage) -> TurnContext:
    return TurnContext(None, {}, history, Directive.CURIOUS_EXPLORER, text, text)


@for_each(
    ("text", "kind", "subject"),
    [
        (PURPOSE, Kind.PURPOSE, "Open data by default"),
        ("Why do we run the summer school?", Kind.PURPOSE, "run summer school"),
        (PRECEDENT, Kind.PRECEDENT, "We may lend our sequencer to a neighbour."),
        ("Have decisions like buying a new instrument paid off?", Kind.PRECEDENT, "buying a new instrument"),
        ("Which past decisions about instruments paid off?", Kind.PRECEDENT, "instruments"),
        (ROOM, Kind.ROOM, "room new work week"),
        (LOSS, Kind.LOSS, "Publish early"),
        ("What would happen if we dropped 'Publish early'?", Kind.LOSS, "Publish early"),
        (CONTRADICTION, Kind.CONTRADICTION, CONTRADICTION),
        ("which strategies support my Q1 revenue goal", Kind.STRATEGY, "Q1 revenue"),
        ("Should we hire a second data steward?", Kind.PROPOSAL, "Should hire second data steward"),
        ("Tell me about field stations", Kind.SEARCH, "field stations"),
    ],
)
def test_a_question_is_known_by_its_words(text: str, kind: Kind, subject: str) -> None:
    question = classify_question(turn(text))
    assert (question.kind, question.subject) == (kind, subject)


def test_a_decision_that_is_only_pointed_at_is_the_one_that_was_spoken_of_before() -> None:
    past = (PastMessage("user", "We may lend our sequencer."), PastMessage("assistant", "Tell me more."))
    assert classify_question(turn("Which decisions like this one paid off?", *past)).subject == "We may lend our sequencer."
    assert classify_question(turn("Which decisions like this one paid off?")).subject == ""


@pytest.mark.parametrize("agent", AGENTS)
async def test_every_agent_says_what_a_goal_serves_and_why(agent: str) -> None:
    reply = await ask(stage(agent), PURPOSE)
    assert reply.user_response.split("\n\n") == [
        "Open data by default [go-data] serves Knowledge without walls [vi-open].",
        "Why, step by step:\n- Open data by default [go-data] serves Knowledge without walls [vi-open], which aligns with"
        " Honest results [v-honesty].",
        "This was looked up in the graph by rules; no language model was used.",
    ]
    assert [(source.id, source.type) for source in reply.sources] == [
        ("go-data", "goal"), ("vi-open", "vision"), ("v-honesty", "value"),
    ]  # fmt: skip
    assert (reply.reasoner, reply.degraded) == ("extractive", ())


@pytest.mark.req("O-446")
@pytest.mark.parametrize("agent", AGENTS)
async def test_every_agent_says_which_decisions_like_one_paid_off(agent: str) -> None:
    asked = stage(agent)
    reply = await ask(asked, PRECEDENT)
    assert reply.user_response.split("\n\n")[:-1] == [
        "Of 2 past decisions like that one, 1 paid off.",
        "Paid off:\n- Share the mass spectrometer [d-shared] (return 2.5, decided 2025-03-02); it led to Write the catalogue"
        " [t-catalogue]",
        "Did not pay off:\n- Buy a second microscope [d-bought] (return -0.4)",
    ]
    assert [source.id for source in reply.sources] == ["d-shared", "t-catalogue", "d-bought"]
    assert [source.score for source in reply.sources] == [0.71, 0.71, 0.5]
    (request,) = [request for subject, request, _ in asked.neighbours.questions if subject == PRECEDENT_SEARCH.subject]
    assert request == PrecedentSearch(query="We may lend our sequencer to a neighbour.", limit=6)


@pytest.mark.parametrize("agent", AGENTS)
async def test_every_agent_says_whether_there_is_room_for_work(agent: str) -> None:
    reply = await ask(stage(agent), ROOM)
    assert reply.user_response.split("\n\n")[:-1] == [
        "Yes, there is room: 12 hours of 40 hours are taken from 2026-03-02 to 2026-03-09 (30 %, green), so 28 hours are free.",
        "Due in that time:\n- Finish the report [t-report] (8 hours, due 2026-03-05, in progress)",
        "The calendar has 3 events in that time, 4 hours together.",
        "- Keep Friday free.",
    ]
    assert [(source.id, source.type) for source in reply.sources] == [("t-report", "task")]


@pytest.mark.parametrize(
    ("text", "found", "said"),
    [
        (ROOM, workload("yellow", 32.0), "There is little room: 32 hours of 40 hours"),
        (ROOM, workload("red", 44.0), "No, there is no room: 44 hours of 40 hours"),
        ("Do we have time for 20 more hours?", workload(), "Yes: 12 hours of 40 hours"),
        ("Do we have time for 30 more hours?", workload(), "No: 12 hours of 40 hours"),
    ],
)
async def test_the_verdict_follows_the_zone_or_the_hours_that_are_asked_for(text: str, found: Any, said: str) -> None:
    reply = await ask(stage("execute", **{ASSESS_WORKLOAD.subject: found}), text)
    assert reply.user_response.startswith(said)


async def test_a_calendar_that_could_not_be_read_is_said_and_late_tasks_are_told_where_there_is_a_tool_for_them() -> None:
    late = DueFound(items=(node("t-late", "task", "Clean the archive", "execution"),), total=1)  # type: ignore[arg-type]
    found = workload(degraded=("calendar",))
    reply = await ask(stage("execute", **{ASSESS_WORKLOAD.subject: found, DUE_WORK.subject: late}), ROOM)
    assert "The calendar could not be read, so its events are not in the figures." in reply.user_response
    assert "1 overdue and open still, which the figures above do not hold:\n- Clean the archive [t-late]" in reply.user_response


@pytest.mark.parametrize(
    ("text", "days"),
    [
        (ROOM, (date(2026, 3, 4), date(2026, 3, 11))),
        ("Is there room for it next week?", (date(2026, 3, 9), date(2026, 3, 16))),
        ("Is there room for it this month?", (date(2026, 3, 4), date(2026, 4, 3))),
    ],
)
def test_the_window_is_the_one_that_the_question_names(text: str, days: tuple[date, date]) -> None:
    assert window(text, date(2026, 3, 4)) == days


@pytest.mark.parametrize("agent", AGENTS)
async def test_every_agent_says_what_loses_its_support_without_a_principle(agent: str) -> None:
    asked = stage(agent)
    reply = await ask(asked, LOSS)
    assert reply.user_response.split("\n\n")[:-1] == [
        "Without Publish early [p-early], 1 node would lose support.",
        "With no way left to any value or vision:\n- One repository for all groups [st-repository] (strategy), which loses"
        " Honest results [v-honesty]",
    ]
    assert [source.id for source in reply.sources] == ["p-early", "st-repository", "v-honesty"]
    assert [request.id for subject, request, _ in asked.neighbours.questions if subject == WITHOUT.subject] == ["p-early"]


@pytest.mark.parametrize("agent", AGENTS)
async def test_every_agent_says_which_goals_contradict_each_other(agent: str) -> None:
    asked = stage(agent)
    reply = await ask(asked, CONTRADICTION)
    assert reply.user_response.split("\n\n")[:-1] == [
        "One pair of goals contradicts itself:",
        "- Open data by default [go-data] and File ten patents a year [go-patents]: one opens what the other closes",
    ]
    assert [source.id for source in reply.sources] == ["go-data", "go-patents"]
    assert [request.types for subject, request, _ in asked.neighbours.questions if subject == CONTRADICTIONS.subject] == [
        ("goal",)
    ]


@pytest.mark.req("O-445")
async def test_strategies_for_a_goal_are_told_with_the_path_that_joins_them() -> None:
    reply = await ask(stage("discuss"), "Which strategies support the goal of open data?")
    assert reply.user_response.split("\n\n")[:-1] == [
        "For the goal Open data by default [go-data]:",
        "- One repository for all groups [st-repository]: Open data by default [go-data] is served by One repository for all"
        " groups [st-repository].",
    ]


@pytest.mark.req("O-287")
async def test_that_no_goal_is_near_enough_is_said() -> None:
    none = {GOAL_SEARCH.subject: NotFound("no goal is near enough to this question")}
    reply = await ask(stage("discuss", **none), "Which strategies support the goal of open data?")
    assert reply.user_response.startswith("No goal is near enough to this question. Ask with the words of its title.")
    assert reply.sources == ()


async def test_anything_else_is_searched_by_meaning_and_the_limits_are_said() -> None:
    reply = await ask(stage("discuss"), "Tell me about storage")
    head, rows, cannot, by_rules = reply.user_response.split("\n\n")
    assert (head, rows) == (
        "These are nearest to it in meaning:",
        "- One repository for all groups [st-repository] (strategy, strategy)",
    )
    assert cannot.startswith("Without a language model I can say what a goal serves and why")
    assert by_rules == "This was looked up in the graph by rules; no language model was used."


async def test_a_node_that_is_not_named_clearly_is_not_guessed_at() -> None:
    reply = await ask(stage("mind"), "What does the northern wing serve?")
    assert reply.user_response.startswith(
        "I cannot tell which node your question names. Near to it are One repository for all groups [st-repository]; ask with"
        " one of their titles."
    )


async def test_a_node_is_found_by_search_where_the_session_does_not_hold_it() -> None:
    asked = stage("mind")
    await ask(asked, f"What does the strategy {STRATEGY.title} serve?")
    assert [request.from_id for subject, request, _ in asked.neighbours.questions if subject.endswith(".why")] == [
        "st-repository"
    ]
    assert not [subject for subject, _, _ in asked.neighbours.questions if subject == CLIMB_LADDER.subject]


@pytest.mark.parametrize(
    ("owners", "text", "said"),
    [
        ({CONTRADICTIONS.subject: ContradictionsFound(pairs=())}, CONTRADICTION, "I found no goals that contradict each other"),
        (
            {PRECEDENT_SEARCH.subject: SupportedFound(results=(), stats=SearchStats())},
            PRECEDENT,
            "The graph holds no decision like that one.",
        ),
        ({SEMANTIC_SEARCH.subject: SemanticFound(results=(), stats=SearchStats())}, "Storage", "I found nothing in the graph"),
        ({}, "Which decisions like this one paid off?", "Which decision do you mean?"),
    ],
)
async def test_that_nothing_was_found_is_said(owners: dict[str, Any], text: str, said: str) -> None:
    reply = await ask(stage("decisions", **owners), text)
    assert (reply.user_response.startswith(said), reply.sources) == (True, ())


async def test_a_proposal_is_held_against_the_rules_and_the_reply_cites_them_with_what_to_acknowledge() -> None:
    reply = await ask(stage("decisions"), "Should we run the lab on the weekend?")
    assert reply.user_response.startswith(
        "This goes against:\n- the guardrail No week over forty hours [g-hours], because it speaks of the weekend. It says:"
        " Plan it for a weekday.\nIt can be done once a person has approved that: `g-hours`.\n\nOf 2 past decisions"
    )
    assert reply.sources[0].id == "g-hours"


async def test_rules_that_cannot_be_asked_are_said_to_be_missing() -> None:
    reply = await ask(stage("decisions", **{CHECK_POLICY.subject: Unavailable()}), "Should we run the lab on the weekend?")
    assert reply.degraded == ("rules",)


async def test_a_tool_that_its_owner_cannot_answer_fails_the_turn_with_its_problem() -> None:
    end = await stage("discuss", **{CONTRADICTIONS.subject: Unavailable("the store is away")}).run(
        claim(CONTRADICTION, agent="discuss", who=Principal(tenant="acme", user="ann", **Persona.ADMIN.rights))
    )
    assert isinstance(end, Failed)
    assert (end.problem.code, end.problem.detail) == ("unavailable", "the store is away")


@pytest.mark.req("O-229")
async def test_a_tool_that_is_not_on_the_list_is_not_used() -> None:
    asked = stage("discuss")
    whole = profile("discuss")
    kept = tuple(name for name in whole.tools if name != "contradictions.find.v1")
    asked.neighbours.profiles = {"discuss": whole.model_copy(update={"tools": kept})}
    reply = await ask(asked, CONTRADICTION)
    assert reply.user_response == (
        "I cannot answer that here: it needs the tool contradictions.find.v1, which this agent does not have for you."
    )
    assert asked.neighbours.questions == []


async def test_a_caller_whose_role_may_not_read_the_graph_is_told_so() -> None:
    asked = stage("discuss")
    reply = await ask(asked, CONTRADICTION, Persona.NOOR)
    assert reply.user_response == "Your role may use none of this agent's tools, so it can look nothing up for you."
    assert asked.neighbours.questions == []


async def test_a_greeting_asks_nobody() -> None:
    asked = stage("mind")
    reply = await ask(asked, "Hello!")
    assert reply.user_response == profile("mind").phrases["greeting"]
    assert asked.neighbours.questions == []


async def test_without_the_start_of_a_session_a_node_is_still_found_by_search() -> None:
    asked = stage("mind", **{START_SESSION.subject: Unavailable()})
    await ask(asked, f"What does {STRATEGY.title} serve?")
    assert SEMANTIC_SEARCH.subject in [subject for subject, _, _ in asked.neighbours.questions]
