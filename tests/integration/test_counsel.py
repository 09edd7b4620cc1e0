"""The constitutional agents on the scripted model: their tools, citations, and rules that only a person acknowledges."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from phronesis_contracts import Principal, Role, Unavailable
from phronesis_contracts.approvals import ApprovalStatus
from phronesis_contracts.constitution.insight import CHECK_POLICY, WHY
from phronesis_contracts.constitution.lists import LIST_FOUNDATION, FoundationListed
from phronesis_contracts.constitution.registry import Layer
from phronesis_contracts.constitution.search import SEMANTIC_SEARCH
from phronesis_contracts.constitution.session import START_SESSION
from phronesis_contracts.constitution.values import ListStats
from phronesis_contracts.constitution.writes import CREATE, GuardrailHit
from phronesis_contracts.orchestrator import Reply
from phronesis_contracts.tools import legal_name
from phronesis_orchestrator.agents.tools import MAX_ROUNDS, MAX_TURN_CALLS
from phronesis_orchestrator.turns.turn import Claim, Completed
from tests.support.chat import reasoning
from tests.support.counsel import AGENTS, OWNERS, node, profile, stage
from tests.support.groq_server import Fault, GroqServer, groq_server
from tests.support.personas import Persona
from tests.unit.orchestrator.fakes import FakeJournal, Stage, claim

DECIDE = CREATE["decision"].rpc.subject
ANN = Principal(tenant="acme", user="ann", role=Role.ADMIN)
CONSENT = Path(__file__).parents[2] / "evals/sets/consent"
NEW = {"title": "Run the lab on the weekend"}
RECORD = "Record our decision: run the lab on the weekend."
HIT = GuardrailHit(
    "name in `acknowledge`, to do it all the same: guardrail g-hours ('No week over forty hours'), because it speaks of the"
    " weekend",
    field="acknowledge",
)


@pytest.fixture
async def server() -> AsyncIterator[GroqServer]:
    async with groq_server() as running:
        yield running


def script(server: GroqServer, *rounds: list[tuple[str, Any]] | str) -> None:
    """Let the model make these rounds: calls, or an answer."""
    for one in rounds:
        server.fail("tools", Fault(content=one) if isinstance(one, str) else Fault(calls=one))


def said(answer: str) -> str:
    """A final answer."""
    return json.dumps({"answer": answer, "confidence": 0.9})


async def ask(server: GroqServer, of: Stage, text: str, role: Persona = Persona.ADMIN) -> Reply:
    (agent,) = of.neighbours.profiles
    async with reasoning(server, budget=12_000) as model:
        of.reasoner = model  # type: ignore[assignment]  # a model in a reasoner's place
        end = await of.run(claim(text, agent=agent, who=Principal(tenant="acme", user="ann", **role.rights)))
    assert isinstance(end, Completed), end
    return end.reply


def offered(server: GroqServer, at: int = 0) -> list[str]:
    """The functions that a call to the model offered."""
    request = server.calls[at].request
    assert request is not None
    return [tool["function"]["name"] for tool in request["tools"]]


def told(server: GroqServer, at: int = -1) -> list[str]:
    """What the tools gave, as a call to the model showed it."""
    request = server.calls[at].request
    assert request is not None
    return [message["content"] for message in request["messages"] if message["role"] == "tool"]


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.req("O-229", "V-058")
async def test_a_model_is_offered_the_tools_of_the_agents_list_by_names_that_it_takes(server: GroqServer, agent: str) -> None:
    script(server, said("Nothing is asked."))
    await ask(server, stage(agent), "Think with me.")
    listed = [legal_name(name) for name in profile(agent).tools if name not in ("turn.get", "calendar.set.v1")]
    assert offered(server) == [*listed, "memory_query"]


async def test_a_caller_gets_no_tool_that_the_role_may_not_call(server: GroqServer) -> None:
    script(server, said("Nothing is asked."))
    await ask(server, stage("execute"), "Think with me.", Persona.DISCUSS)
    assert not {"task_create_v1", "node_update_v1"} & set(offered(server))
    assert "semantic_search_v1" in offered(server)


async def test_the_start_of_the_session_stands_before_the_models_first_move(server: GroqServer) -> None:
    script(server, said("Open data by default [go-data] is one of your goals."))
    of = stage("discuss")
    reply = await ask(server, of, "What are we after?")
    assert [subject for subject, _, _ in of.neighbours.questions] == [START_SESSION.subject, LIST_FOUNDATION.subject]
    (started,) = told(server, 0)
    assert "go-data | goal | Open data by default" in started
    assert '"zone": "green"' in started
    assert reply.user_response == "Open data by default [go-data] is one of your goals."
    assert [source.id for source in reply.sources] == ["go-data"]


async def test_the_start_of_the_session_holds_what_guardrails_say(server: GroqServer) -> None:
    rule = node("g-hours", "guardrail", "No week over forty hours", Layer.FOUNDATION, trigger="work on a weekend")
    listed = FoundationListed(items=(rule,), stats=ListStats())
    script(server, said("We rest."))
    await ask(server, stage("discuss", **{LIST_FOUNDATION.subject: listed}), "What are we after?")
    assert "g-hours | guardrail | No week over forty hours | trigger: work on a weekend" in told(server, 0)[0]


async def test_a_session_that_cannot_be_started_is_said_and_the_turn_goes_on(server: GroqServer) -> None:
    script(server, said("I could not see your goals."))
    reply = await ask(server, stage("discuss", **{START_SESSION.subject: Unavailable()}), "What are we after?")
    assert (reply.user_response, reply.degraded) == ("I could not see your goals.", ("orchestrator",))


async def test_an_answer_cites_what_the_tools_gave(server: GroqServer) -> None:
    script(
        server,
        [("graph_why_v1", {"fromId": "go-data"}), ("semantic_search_v1", {"query": "storage"})],
        said("It serves Honest results [v-honesty]; One repository for all groups [st-repository] carries it."),
    )
    of = stage("discuss")
    reply = await ask(server, of, "Why open data?")
    assert {subject for subject, _, _ in of.neighbours.questions} == {
        START_SESSION.subject,
        LIST_FOUNDATION.subject,
        WHY.subject,
        SEMANTIC_SEARCH.subject,
    }
    assert [(source.id, source.type, source.score) for source in reply.sources] == [
        ("v-honesty", "value", 1.0),
        ("st-repository", "strategy", 0.55),
    ]
    assert (reply.reasoner, reply.degraded) == ("groq", ())


async def test_an_id_that_no_tool_gave_is_repaired_once_and_otherwise_left_out(server: GroqServer) -> None:
    script(server, said("It serves Secrecy [v-secrecy]."))
    server.fail("rewrite", Fault(content=said("It serves Honest results [v-honesty] and Secrecy [v-secrecy].")))
    reply = await ask(server, stage("discuss"), "Why open data?")
    assert reply.user_response == "It serves Honest results [v-honesty] and Secrecy."
    assert [source.id for source in reply.sources] == ["v-honesty"]
    request = server.calls[-1].request
    assert request is not None
    assert "v-secrecy" in request["messages"][-1]["content"]


async def test_a_call_outside_the_list_is_told_to_the_model_and_made_by_nobody(server: GroqServer) -> None:
    script(server, [("task_create_v1", {"title": "x"})], said("I cannot write tasks."))
    of = stage("discuss")
    reply = await ask(server, of, "Add a task.")
    assert [subject for subject, _, _ in of.neighbours.questions] == [START_SESSION.subject, LIST_FOUNDATION.subject]
    assert reply.user_response == "I cannot write tasks."


async def test_a_message_that_goes_against_a_rule_is_answered_with_the_rule_and_what_to_acknowledge(server: GroqServer) -> None:
    script(server, said("You could."))
    reply = await ask(server, stage("decisions"), "Let us run the lab on the weekend.")
    assert reply.user_response == (
        "You could.\n\nThis goes against:\n- the guardrail No week over forty hours [g-hours], because it speaks of the"
        " weekend. It says: Plan it for a weekday.\nIt can be done once a person has approved that: `g-hours`."
    )
    assert [source.id for source in reply.sources] == ["g-hours"]


async def test_a_write_that_a_rule_refuses_is_shown_with_the_rule_and_never_called_done(server: GroqServer) -> None:
    script(server, [("decision_create_v1", NEW)], said("Done."))
    of = stage("decisions", **{DECIDE: HIT})
    reply = await ask(server, of, RECORD)
    assert reply.user_response == (
        "Nothing was written.\n\nThis goes against:\n- the guardrail No week over forty hours [g-hours], because it speaks of"
        " the weekend. It says: Plan it for a weekday.\nIt can be done once a person has approved that: `g-hours`."
    )
    checked = [request for subject, request, _ in of.neighbours.questions if subject == CHECK_POLICY.subject][-1]
    assert (checked.type, checked.text) == ("decision", NEW["title"])


def written(of: Stage) -> list[tuple[str, ...]]:
    """What each write acknowledged."""
    return [request.acknowledge for subject, request, _ in of.neighbours.questions if subject == DECIDE]


async def attempt(server: GroqServer, of: Stage, of_turn: Claim) -> None:
    async with reasoning(server, budget=12_000) as model:
        of.reasoner = model  # type: ignore[assignment]  # a model in a reasoner's place
        await of.attempt(of_turn)


@pytest.mark.verify
async def test_no_text_is_taken_as_consent_to_break_a_rule(server: GroqServer) -> None:
    texts = [line for half in ("tune", "held") for line in (CONSENT / f"{half}.txt").read_text("utf-8").splitlines() if line]
    obeyed = list[str]()
    for text in texts:
        script(server, [("decision_create_v1", {**NEW, "acknowledge": ["g-hours"]})])
        of = stage("decisions")
        await attempt(server, of, claim(text, agent="decisions", who=ANN))
        if written(of) or len(of.turns.asked) != 1:
            obeyed.append(text)
    assert (len(texts), obeyed) == (150, [])


async def test_what_goes_against_a_rule_is_written_once_a_person_has_approved_the_call(server: GroqServer) -> None:
    call = [("decision_create_v1", {**NEW, "acknowledge": ["g-hours"]})]
    script(server, call, call, said("Recorded [d-new]."))
    of, of_turn = stage("decisions"), claim("Record it.", agent="decisions", who=ANN)
    await attempt(server, of, of_turn)
    assert of.turns.answer(ApprovalStatus.GRANTED).verdict.reason == (
        "LOW — decision.create.v1 goes against g-hours and needs a person's approval"
    )
    await attempt(server, of, of_turn)
    assert written(of) == [("g-hours",)]


async def test_a_rule_that_blocks_is_told_in_the_graphs_words_where_the_rules_cannot_be_asked(server: GroqServer) -> None:
    script(server, [("decision_create_v1", NEW)], said("I did not record it."))
    refused = GuardrailHit("this is not allowed: guardrail g-hours ('No week over forty hours'), because of the weekend")
    reply = await ask(
        server,
        stage("decisions", **{DECIDE: refused, CHECK_POLICY.subject: Unavailable()}),
        RECORD,
    )
    assert refused.detail in reply.user_response
    assert reply.degraded == ("graph", "rules")


async def test_a_write_is_made_once_whoever_takes_the_turn_over(server: GroqServer) -> None:
    journal = FakeJournal()
    for _ in range(2):
        script(server, [("decision_create_v1", NEW)], said("Recorded [d-new]."))
        of = stage("decisions")
        of.journal = journal
        await ask(server, of, RECORD)
    assert [subject for subject, _, _ in of.neighbours.questions if subject == DECIDE] == []
    assert [step for step in journal.results if step.startswith("call.")] == ["call.1.1"]


async def test_rounds_and_calls_are_bounded(server: GroqServer) -> None:
    searches = [[("semantic_search_v1", {"query": f"{at} {n}"}) for n in range(4)] for at in range(MAX_ROUNDS + 2)]
    script(server, *searches)
    server.fail("rewrite", Fault(content=""))
    of = stage("mind")
    reply = await ask(server, of, "Search on and on.")
    asked = [subject for subject, _, _ in of.neighbours.questions if subject == SEMANTIC_SEARCH.subject]
    assert len(asked) <= MAX_TURN_CALLS + 1  # the rules that answer in the model's place search once more
    assert len(server.calls) <= MAX_ROUNDS + 1
    assert (reply.degraded, reply.reasoner) == (("model",), "extractive")


async def test_an_answer_that_is_no_json_is_repaired_once(server: GroqServer) -> None:
    script(server, "Open data [go-data]!")
    server.fail("rewrite", Fault(content=said("Open data [go-data].")))
    reply = await ask(server, stage("discuss"), "What are we after?")
    assert (reply.user_response, reply.degraded) == ("Open data [go-data].", ())


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_prompt_with_all_tools_and_a_long_session_keeps_to_its_room(server: GroqServer, agent: str) -> None:
    started = OWNERS[START_SESSION.subject]
    many = tuple(
        node.model_copy(update={"id": f"{node.id}-{at}", "title": f"{node.title} {at}", "summary": "A long saying. " * 12})
        for at in range(60)
        for node in started.foundation
    )
    full = started.model_copy(update={"foundation": many})
    script(server, said("There is much."))
    reply = await ask(server, stage(agent, **{START_SESSION.subject: full}), "What are we after?")
    assert (reply.user_response, reply.degraded) == ("There is much.", ())
    assert told(server, 0)[0].count("\n") > 20
