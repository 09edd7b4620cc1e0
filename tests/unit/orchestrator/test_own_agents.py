"""Turns of a tenant's own agent: from its sources alone, with its tools alone, within its limits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from phronesis_bus import Call
from phronesis_contracts import Principal
from phronesis_contracts.agents import KEEP_AGENT, AgentPublished, AgentRefused, PublishAgent
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.documents import SEARCH_DOCUMENTS, FoundPassages
from phronesis_contracts.facts import ASK_FACTS, AnsweredFacts
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.memory import AugmentedMemoryContext, ContextItem, ItemKind
from phronesis_contracts.ontology import AskVocabulary, EntityName, OntologyView, PropertyView, TypeView, Vocabulary
from phronesis_contracts.orchestrator import Reply, TurnStatus
from phronesis_contracts.tools import legal_name
from phronesis_contracts.twin import Level
from phronesis_orchestrator.agents.counsel.tools import list_offered_tools
from phronesis_orchestrator.agents.tools import Gate, NotAdmitted, Toolbox, build_toolbox, max_calls, uses_allow_list
from phronesis_orchestrator.ledger.usage import CallUsage
from phronesis_orchestrator.models.handlers import AgentHandlers
from phronesis_orchestrator.models.reasoner import RULES, Answer, RouteDecision, ToolCall, TurnContext
from phronesis_orchestrator.tasks.background import list_task_tools
from phronesis_orchestrator.turns.turn import Completed, Failed
from phronesis_orchestrator.understanding.reader import Vocabularies
from tests.support.personas import Persona
from tests.unit.orchestrator.fakes import FakeNeighbours, ScriptedReasoner, Stage, claim, query, reply

NOTE = ContextItem(id="n1", kind=ItemKind.NOTE, title="Tide clock", text="The tide clock hangs in room 12.", score=0.9, hop=0)
NODE = NOTE.model_copy(
    update={"id": "n2", "kind": ItemKind.NODE, "title": "Tide works", "text": "The tide works hang in room 14."}
)
BOTH = AugmentedMemoryContext(user_id="ann", key_phrases=("x",), memory_units=(NOTE,), concepts=(NODE,))
EMPTY = AugmentedMemoryContext(user_id="ann", key_phrases=("x",))
PROFILE = AgentProfile(agent="librarian", based_on="dialogue", version="1+1", loop="router", stages=(), prompts={})


def agent(**more: Any) -> AgentProfile:
    return AgentProfile.model_validate(PROFILE.model_dump() | more)


def neighbours(profile: AgentProfile, **more: Any) -> FakeNeighbours:
    return FakeNeighbours(profiles={"dialogue": profile}, memory=BOTH, **more)


async def answered(text: str, profile: AgentProfile, reasoner: Any = RULES, **more: Any) -> tuple[Reply, FakeNeighbours]:
    around = neighbours(profile, **more)
    end = await Stage(reasoner, around).run(claim(text))
    assert isinstance(end, Completed), end
    return end.reply, around


@pytest.mark.parametrize(
    ("sources", "found"),
    [(None, {"n1", "n2"}), (["memory"], {"n1"}), (["twin"], {"n2"}), (["memory", "twin"], {"n1", "n2"})],
)
async def test_a_model_is_shown_what_was_retrieved_of_the_agents_sources(sources: list[str] | None, found: set[str]) -> None:
    model = ScriptedReasoner(routes=[query("tide")], composes=[reply("Room 12.")])
    await answered("Where does the tide clock hang?", agent(sources=sources), model)
    [shown] = model.memories
    assert shown is not None
    assert {item.id for item in (*shown.memory_units, *shown.concepts)} == found


async def test_nothing_is_retrieved_for_an_agent_of_neither_source() -> None:
    model = ScriptedReasoner(routes=[query("tide")], composes=[reply("I do not know.")])
    _, around = await answered("Where does the tide clock hang?", agent(sources=["documents"]), model)
    assert around.asked == []


async def test_a_model_is_told_who_the_person_is_by_an_agent_that_reads_memory_alone() -> None:
    for sources, told in ((["memory"], {"name": "Ann"}), (["documents"], {})):
        model = ScriptedReasoner(routes=[query("tide")], composes=[reply("Here.")])
        await answered("Where?", agent(sources=sources), model, known={"name": "Ann"})
        assert model.contexts[0].profile == told


@pytest.mark.parametrize(
    ("source", "quoted", "asked"), [("memory", True, {ASK_FACTS.subject}), ("documents", False, {SEARCH_DOCUMENTS.subject})]
)
async def test_rules_search_the_agents_sources_alone(source: str, quoted: bool, asked: set[str]) -> None:
    owners = {SEARCH_DOCUMENTS.subject: FoundPassages(), ASK_FACTS.subject: AnsweredFacts(known=False, understood=False)}
    said, around = await answered("Where does the tide clock hang?", agent(sources=[source]), owners=owners)
    assert ("room 12" in said.user_response) is quoted
    assert {subject for subject, _, _ in around.questions} == asked
    assert quoted or said.user_response.endswith("I answer from what you attach here.")


async def test_an_agent_that_does_not_read_documents_leaves_attachments_out_and_marks_it() -> None:
    end = await Stage(RULES, neighbours(agent(sources=["memory"]))).run(claim("Where does the tide clock hang?", ("m1",)))
    assert isinstance(end, Completed), end
    assert end.reply.degraded == ("documents",)
    assert "room 12" in end.reply.user_response


@pytest.mark.parametrize("text", ["What is my name?", "Remember that I like tea."])
async def test_what_is_a_matter_of_memory_is_declined_by_an_agent_that_reads_none(text: str) -> None:
    said, _ = await answered(text, agent(sources=["documents"]))
    assert said.user_response.startswith("That would be in your memory, which I do not read.")


class Shipyard:
    """A twin whose words can be read, and nothing else."""

    async def ask(self, who: Principal, rpc: Any, request: AskVocabulary, **_: Any) -> Vocabulary:
        words = {"en": ("vessel", "vessels")}
        weight = PropertyView(name="tonnage", kind="number", words={"en": ("tonnage",)})
        vessel = TypeView(name="Vessel", words=words, levels={}, properties=(weight,))
        aurora = EntityName(type="Vessel", id="a", name="Aurora Borealis", level=Level.L3, years=(2023,))
        ontology = OntologyView(name="shipyard", version="1", types=(vessel,))
        return Vocabulary(version="1", ontology=ontology, years=(2023,), names=(aurora,))


@pytest.mark.parametrize(
    "text",
    [
        "How many vessels are there?",
        "What is the tonnage of Aurora Borealis?",
        "What is the tonnage of Aurora Boraelis?",
        "How many vessels were there in 1950?",
        "What is missing about vessels?",
    ],
)
async def test_what_is_a_matter_of_the_twin_is_declined_without_a_word_of_it(text: str) -> None:
    around = FakeNeighbours(profiles={"dialogue": agent(sources=["memory", "documents"])}, memory=EMPTY)
    end = await Stage(RULES, around, vocabularies=Vocabularies(Shipyard())).run(claim(text))
    assert isinstance(end, Completed), end
    told = "That would be in the records, which I do not read. I answer from your memory and what you attach here."
    assert end.reply.user_response == told
    assert {subject.partition(".")[0] for subject, _, _ in around.questions} <= {"memory"}


async def test_what_it_can_do_is_said_without_the_words_of_a_twin_that_it_does_not_read() -> None:
    around = FakeNeighbours(profiles={"dialogue": agent(sources=["documents"])})
    end = await Stage(RULES, around, vocabularies=Vocabularies(Shipyard())).run(claim("What can you do?"))
    assert isinstance(end, Completed), end
    assert end.reply.user_response == "I answer from what you attach here."


WHO = Principal(tenant="acme", user="ann", **Persona.ADMIN.rights)


def test_listed_tools_are_all_that_an_agent_is_offered_and_sources_take_from_them() -> None:
    narrowed = agent(loop="tools", tools=["recall", "node.get.v1"], only_tools=True)
    assert [tool.name for tool in list_offered_tools(narrowed, WHO)] == ["recall", "node.get.v1"]
    of_memory = agent(loop="tools", tools=["recall", "node.get.v1", "http_fetch"], sources=["memory"])
    assert [tool.name for tool in list_offered_tools(of_memory, WHO)] == ["recall", "http_fetch"]
    assert set(list_task_tools(of_memory, WHO, rules=True)) == {"recall", "http_fetch", "calendar.get.v1"}


def test_an_agent_with_outside_tools_alone_works_with_its_list() -> None:
    assert uses_allow_list(agent(loop="tools", outside=["weather"], only_tools=True))
    assert not uses_allow_list(agent(loop="tools", stages=["gaps"], outside=["weather"], only_tools=True))


def test_an_analysts_own_tools_are_narrowed_too() -> None:
    usual = set(build_toolbox(agent(loop="tools", stages=["gaps"]), WHO).tools)
    assert usual == {"recall_memory", "retrieve_instructions", "read_neo4j_cypher", "memory_query"}
    of_twin = build_toolbox(agent(loop="tools", stages=["gaps"], sources=["twin"]), WHO)
    assert set(of_twin.tools) == {"retrieve_instructions", "read_neo4j_cypher"}
    listed = agent(loop="tools", stages=["gaps"], tools=["read_neo4j_cypher"], only_tools=True)
    assert set(build_toolbox(listed, WHO).tools) == {"read_neo4j_cypher"}


def test_an_own_list_gives_no_role_a_tool_that_it_may_not_use() -> None:
    listed = agent(loop="tools", tools=["recall", "publish_instructions", "read_neo4j_cypher"], only_tools=True)
    low = WHO.model_copy(update=Persona.DISCUSS.rights)
    assert [tool.name for tool in list_offered_tools(listed, low)] == ["recall"]


def test_the_order_of_calls_skips_the_steps_whose_tool_there_is_not() -> None:
    box = build_toolbox(agent(loop="tools", stages=["gaps"], sources=["twin"]), WHO)
    gate = Gate(box, WHO)
    read = ToolCall(name="read_neo4j_cypher", arguments='{"cypher_query": "MATCH (n) RETURN n"}')
    with pytest.raises(NotAdmitted, match="out_of_order"):
        gate.admit(read)
    loaded = gate.admit(ToolCall(name="retrieve_instructions", arguments='{"mode": "A"}'))
    gate.settle(loaded, refused=False, failed=False)
    assert gate.admit(read).call == read


@pytest.mark.parametrize(("limit", "calls"), [(3, 3), (None, 20), (20, 20)])
def test_no_more_tool_calls_are_made_than_the_agent_may(limit: int | None, calls: int) -> None:
    recall = TOOLS["recall"]
    own = agent(limits={"tool_calls": limit})
    gate = Gate(Toolbox({legal_name(recall.name): recall}, ()), WHO, max_calls(own))
    for number in range(calls):
        gate.admit(ToolCall(name="recall", arguments=f'{{"query": "q{number}"}}'))
    assert gate.full
    with pytest.raises(NotAdmitted, match="too_many_calls"):
        gate.admit(ToolCall(name="recall", arguments='{"query": "one more"}'))


class Spender(ScriptedReasoner):
    """Uses so many tokens in its first call."""

    def __init__(self, tokens: int) -> None:
        super().__init__(composes=[reply("Written by a model.")])
        self._tokens = tokens

    async def route(self, turn: TurnContext, fault: Any = None) -> Answer[RouteDecision]:
        self.calls.append("route")
        spent = CallUsage(input_tokens=self._tokens - 10, output_tokens=10, model_calls=1)
        return Answer(RouteDecision(decision="query_memory", key_phrases=("tide",)), spent=spent)


@pytest.mark.parametrize(("spent", "made"), [(900, ["route", "compose"]), (1_000, ["route"])])
async def test_once_its_tokens_are_used_rules_answer_for_the_agent(spent: int, made: list[str]) -> None:
    model = Spender(spent)
    said, _ = await answered("Where does the tide clock hang?", agent(limits={"tokens": 1_000}), model)
    assert model.calls == made
    assert (said.reasoner, "model" in said.degraded) == (("scripted", False) if len(made) == 2 else ("extractive", True))


class Stalled(ScriptedReasoner):
    """Never answers."""

    async def route(self, turn: TurnContext, fault: Any = None) -> Answer[RouteDecision]:
        await asyncio.Event().wait()
        raise AssertionError("nobody wakes it")


async def test_a_turn_takes_no_longer_than_its_agent_may() -> None:
    end = await Stage(Stalled(), neighbours(agent(limits={"seconds": 1}))).run(claim("Where?"))
    assert isinstance(end, Failed)
    assert (end.status, end.problem.code) == (TurnStatus.FAILED, "timed_out")


class Named:
    """A reasoner on an endpoint with two models."""

    name = "scripted"
    capabilities: Any = None
    models = ("large", "small")
    url = "http://models"


async def publish(reasoner: Any, **fields: Any) -> tuple[AgentPublished, FakeNeighbours]:
    around = FakeNeighbours(owners={KEEP_AGENT.subject: AgentPublished(name="librarian", version=1)})
    handlers = AgentHandlers(around, reasoner)
    done = await handlers.publish(Call(WHO, "gateway", "k1"), PublishAgent.model_validate({"name": "librarian", **fields}))
    return done, around


async def test_a_model_that_is_not_set_up_is_refused_with_those_that_are() -> None:
    with pytest.raises(AgentRefused, match="there are large, small") as refused:
        await publish(Named(), model="huge")
    assert refused.value.field == "model"


@pytest.mark.parametrize(("reasoner", "model"), [(Named(), "small"), (Named(), None), (RULES, "whatever")])
async def test_what_can_run_is_handed_to_the_owner_with_the_callers_key(reasoner: Any, model: str | None) -> None:
    done, around = await publish(reasoner, model=model)
    assert done.version == 1
    [(subject, request, key)] = around.questions
    assert (subject, request.model, key) == (KEEP_AGENT.subject, model, "k1")
