"""A tenant's own agents: held to what there is and to what their maker may do, and made into profiles."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from phronesis_contracts import Forbidden, Principal
from phronesis_contracts.agents import AgentDefinition, AgentRefused, AnswerSource
from phronesis_contracts.instructions import AgentProfile, AgentRef, ListAgents
from phronesis_instructions.agents.definitions import changed_fields, check_definition, diff_definitions, make_profile
from phronesis_instructions.library.content import read_agents
from phronesis_instructions.library.handlers import LibraryCache, LibraryHandlers, base_of, told_profile
from phronesis_instructions.library.texts import Library, Overlay, OwnAgent
from phronesis_orchestrator.models.prompts import router_messages
from tests.support.chat import a_turn
from tests.support.instructions import CALL, HashedArms, MemoryStore
from tests.support.personas import Persona

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def own(number: int = 1, **fields: Any) -> OwnAgent:
    return OwnAgent(number, AgentDefinition.model_validate({"name": "librarian", **fields}), "eve", NOW)


async def shipped() -> MemoryStore:
    store = MemoryStore()
    for content in read_agents():
        await store.release(content)
    return store


async def refusal(role: Persona = Persona.ADMIN, **fields: Any) -> tuple[type[Exception], str | None, str]:
    packaged = (await shipped()).profiles
    with pytest.raises((AgentRefused, Forbidden)) as refused:
        check_definition(own(**fields).definition, packaged, role.principal)
    return type(refused.value), refused.value.field, refused.value.detail


@pytest.mark.parametrize(
    ("fields", "field", "told"),
    [
        ({"name": "noor"}, "name", "noor is a packaged agent"),
        ({"based_on": "librarian"}, "based_on", "there is no packaged agent librarian; there are decisions, dialogue"),
        ({"tools": ["recall"], "based_on": "dialogue"}, "tools", "based on dialogue calls no tools"),
        ({"tools": ["recall", "recal"]}, "tools", "there are no such tools: recal"),
        ({"tools": ["recall"], "sources": ["twin"]}, "tools", "recall works on memory"),
    ],
)
async def test_what_could_not_work_is_refused_by_its_field(fields: dict[str, Any], field: str, told: str) -> None:
    kind, at, detail = await refusal(**fields)
    assert (kind, at) == (AgentRefused, field)
    assert told in detail


@pytest.mark.parametrize("role", sorted(set(Persona) - {Persona.EDITOR, Persona.ADMIN}))
async def test_a_role_that_may_not_publish_is_refused(role: Persona) -> None:
    assert (await refusal(role))[:2] == (Forbidden, None)


async def test_nobody_gives_an_agent_a_tool_that_they_may_not_use_themselves() -> None:
    kind, field, detail = await refusal(Persona.EDITOR, tools=["recall", "read_neo4j_cypher"])
    assert (kind, field) == (Forbidden, "tools")
    assert "read_neo4j_cypher" in detail
    assert "recall," not in detail
    check_definition(own(tools=["recall", "read_neo4j_cypher"]).definition, (await shipped()).profiles, Persona.ADMIN.principal)


BASE = AgentProfile(
    agent="nova",
    version="1.3.0",
    loop="tools",
    stages=("recall", "strategies", "session", "rules", "loop"),
    prompts={"tools": "{{input}}"},
    phrases={"greeting": "I am Nova.", "about": "Nova.", "thanks": "Welcome.", "nothing_found": "Not in the portfolio."},
    bootstrap="The guide.",
    tools=("recall", "http_fetch"),
    outside=("*",),
)


def test_an_own_agent_is_its_base_but_for_what_it_states() -> None:
    made = make_profile(BASE, own(3, description="I keep the notes.", instructions="Ask {{boundary}} twice."))
    assert (made.agent, made.based_on, made.version, made.loop) == ("librarian", "nova", "1.3.0+3", "tools")
    assert (made.prompts, made.tools, made.outside, made.only_tools) == (BASE.prompts, BASE.tools, BASE.outside, False)
    assert (made.stages, made.sources) == (BASE.stages, None)
    assert made.phrases == {"about": "I keep the notes.", "thanks": "Welcome.", "nothing_found": "Not in the portfolio."}
    assert made.bootstrap.startswith("The guide.\n\nYou are the agent `librarian`.")
    # Nothing of the instructions is filled in: they are text, not a template.
    assert "I keep the notes.\n\nAsk {{boundary}} twice." in made.bootstrap


def test_without_words_of_its_own_nothing_is_added_to_the_prompts_of_its_base() -> None:
    assert make_profile(BASE, own()).bootstrap == BASE.bootstrap


def test_sources_take_stages_and_sentences_with_them() -> None:
    made = make_profile(BASE, own(sources=["documents", "twin"], phrases={"greeting": "Good day."}))
    assert made.sources == (AnswerSource.DOCUMENTS, AnswerSource.TWIN)
    assert made.stages == ("loop",)
    assert made.phrases == {"greeting": "Good day.", "thanks": "Welcome."}
    assert make_profile(BASE, own(sources=["memory", "constitution"])).stages == BASE.stages


def test_listed_tools_are_all_that_it_has_and_all_that_it_reads() -> None:
    made = make_profile(BASE, own(tools=["outside.weather", "recall"]))
    assert (made.tools, made.outside, made.only_tools) == (("recall",), ("weather",), True)
    assert made.sources == (AnswerSource.DOCUMENTS, AnswerSource.MEMORY)
    assert make_profile(BASE, own(tools=["turn.get"])).outside == ()


def test_two_versions_differ_in_named_fields_and_readable_lines() -> None:
    first = own(instructions="Be brief.\nBe kind.").definition
    second = own(instructions="Be brief.\nBe exact.", sources=["memory"]).definition
    assert changed_fields(first, first) == ()
    assert diff_definitions(first, first) == ""
    assert changed_fields(None, first) == ("name", "instructions")
    assert changed_fields(first, second) == ("instructions", "sources")
    assert [line for line in diff_definitions(first, second).splitlines() if line[0] in "+-"][2:] == [
        "-  Be kind.",
        "+  Be exact.",
        "+sources:",
        "+- memory",
    ]


async def test_a_turn_is_given_the_active_version_and_what_ships_goes_first() -> None:
    store = await shipped()
    store.overlays["acme"] = Overlay(agents={"librarian": own(2), "nova": own(1, name="nova", based_on="dialogue")})
    handlers = LibraryHandlers(store, LibraryCache(store, 60), HashedArms())
    await handlers.load((), 0.01, lambda: None)
    found = await handlers.agent_get(CALL, AgentRef(agent="librarian"))
    assert (found.agent, found.based_on, found.version.partition("+")[2]) == ("librarian", "dialogue", "2")
    assert (await handlers.agent_get(CALL, AgentRef(agent="nova"))).based_on == ""
    listed = (await handlers.agent_list(CALL, ListAgents())).agents
    assert "librarian" in listed
    assert listed.count("nova") == 1
    other = type(CALL)(Principal(tenant="other", user="ann"), "orchestrator")
    assert "librarian" not in (await handlers.agent_list(other, ListAgents())).agents


async def test_a_model_is_given_the_instructions_before_the_prompts_of_the_base_and_in_no_block() -> None:
    store, mine = await shipped(), own(instructions="Answer in {{boundary}} rhyme.")
    library = Library(await store.platform())
    base = base_of(library, "librarian", mine)
    assert base is not None
    told = told_profile(library, base, mine, {})
    system, data = router_messages(told, a_turn(agent=told), None, 6_000)[:2]
    assert 0 <= system["content"].index("Answer in {{boundary}} rhyme.") < system["content"].index("You are the dialogue agent")
    assert "rhyme" not in data["content"]
