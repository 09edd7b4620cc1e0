"""The constitutional agents' folders: their allow-lists, their guides, and what a tenant may publish over them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from phronesis_contracts import Risk
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.constitution import search
from phronesis_contracts.instructions import AgentRef, NewText, Unpublishable
from phronesis_instructions.library.content import AgentContent, read_agents
from phronesis_instructions.library.handlers import LibraryCache, LibraryHandlers
from phronesis_instructions.library.texts import Library, Overlay, allowed_servers, allowed_tools, unknown_tools
from phronesis_instructions.releases.publication import apply_publication
from phronesis_orchestrator.models.templates import check_prompts
from tests.support.counsel import AGENTS, profile
from tests.support.instructions import CALL, Clock, HashedArms, MemoryStore
from tests.support.personas import Persona

CONTENT = {one.agent: one for one in read_agents() if one.agent in AGENTS}
LISTS = {name: allowed_tools(one.prompts["allow_list"]) for name, one in CONTENT.items()}
EACH = pytest.mark.parametrize("agent", AGENTS)
_EXAMPLE = re.compile(r"```json\n(.*?)\n```", re.S)


def examples(agent: str) -> list[dict[str, Any]]:
    """The calls that a guide shows."""
    return [json.loads(text) for text in _EXAMPLE.findall(CONTENT[agent].prompts["guide"])]


@EACH
def test_an_agents_list_holds_tools_that_there_are_and_that_its_role_may_use(agent: str) -> None:
    assert LISTS[agent]
    assert all(Persona(agent).may(TOOLS[name]) for name in LISTS[agent])


@pytest.mark.req("O-230")
def test_discuss_has_both_searches_and_writes_nothing_but_what_it_thought_of_a_search() -> None:
    assert {"semantic.search.v1", "hybrid.search.v1"} <= set(LISTS["discuss"])
    assert [name for name in LISTS["discuss"] if TOOLS[name].risk is not Risk.READ] == ["retrieval.feedback.v1"]


@pytest.mark.req("O-231")
def test_decisions_has_the_precedents_and_the_tools_that_record_a_decision() -> None:
    assert {"decision.precedents.v1", "decisions.list.v1", "policy.check.v1", "decision.create.v1"} <= set(LISTS["decisions"])


@pytest.mark.req("O-232")
def test_execute_has_due_tasks_and_the_workload() -> None:
    assert {"tasks.due.v1", "workload.assess.v1", "semantic.search.v1", "task.create.v1"} <= set(LISTS["execute"])


@pytest.mark.req("O-233")
def test_mind_has_the_search_for_insights() -> None:
    assert {"semantic.search.v1", "insight.search.v1", "patterns.detect.v1", "insight.create.v1"} <= set(LISTS["mind"])


@EACH
@pytest.mark.req("O-234", "O-252")
def test_every_agent_can_start_its_session_and_lists_layers_by_the_second_version_alone(agent: str) -> None:
    assert "session.start.v1" in LISTS[agent]
    assert [name for name in LISTS[agent] if ".list." in name and name.split(".")[0] in ("foundation", "vision")] == [
        "foundation.list.v2",
        "vision.list.v2",
    ]


@EACH
@pytest.mark.req("O-236")
def test_each_example_of_a_guide_names_a_tool_of_the_list_and_arguments_that_it_takes(agent: str) -> None:
    for example in examples(agent):
        assert set(example) == {"tool", "arguments"}
        assert example["tool"] in LISTS[agent]
        TOOLS[example["tool"]].rpc.input.model_validate(example["arguments"])


@EACH
@pytest.mark.req("O-236", "O-289", "O-290", "O-380")
def test_each_guide_shows_how_strategies_and_precedents_are_found_in_one_call_and_in_two(agent: str) -> None:
    shown = {example["tool"] for example in examples(agent)}
    assert {"goal.search.v1", "goal.strategies.v1", "discuss_goal_ladder", "decision.precedents.v1"} <= shown
    by_meaning = [one["arguments"] for one in examples(agent) if one["tool"] == "semantic.search.v1"]
    assert [(one["layers"], one.get("types")) for one in by_meaning][:2] == [
        (["vision"], ["goal"]),
        (["execution"], ["decision"]),
    ]


@EACH
@pytest.mark.req("O-285", "O-286", "C-60")
def test_the_thresholds_of_a_guide_are_the_translated_ones(agent: str) -> None:
    goal, hybrid = (
        next(one["arguments"] for one in examples(agent) if one["tool"] == name)
        for name in ("semantic.search.v1", "hybrid.search.v1")
    )
    assert (goal["minSimilarity"], goal["topK"]) == (search.GOAL_FLOOR, 1)
    assert {name: value for name, value in hybrid.items() if name not in ("query", "anchorNodeId")} == {
        "structuralWeight": 0.6,
        "semanticWeight": 0.4,
        "maxDepth": 2,
        "topK": 10,
        "minSimilarity": search.HYBRID_FLOOR,
    }


@EACH
def test_the_prompts_of_an_agent_with_a_list_are_whole(agent: str) -> None:
    check_prompts(profile(agent))


@pytest.mark.parametrize("purpose", ["allow_list", "tools", "repair", "closing"])
def test_an_agent_with_a_list_lacks_no_prompt(purpose: str) -> None:
    fields = CONTENT["discuss"].model_dump()
    del fields["prompts"][purpose]
    with pytest.raises(ValidationError):
        AgentContent.model_validate(fields)


def test_a_list_that_names_what_there_is_not_is_refused_at_the_start() -> None:
    fields = CONTENT["discuss"].model_dump()
    fields["prompts"]["allow_list"] += "\n- graph.dream.v1"
    with pytest.raises(ValidationError, match=r"graph\.dream\.v1"):
        AgentContent.model_validate(fields)


def test_only_lines_that_begin_with_a_dash_are_names() -> None:
    text = "All - of them.\n\n- a.v1  that finds\n - b.v1\n- c.v1\n- a.v1\n-d"
    assert allowed_tools(text) == ("a.v1", "c.v1")


async def told(store: MemoryStore, agent: str) -> Any:
    handlers = LibraryHandlers(store, LibraryCache(store, 3600.0, Clock()), HashedArms())
    await handlers.load((CONTENT[agent],), 0.001, lambda: None)
    return await handlers.agent_get(CALL, AgentRef(agent=agent))


@EACH
@pytest.mark.req("O-229")
async def test_a_profile_tells_the_tools_and_the_guide_stands_before_every_prompt(agent: str) -> None:
    found = await told(MemoryStore(), agent)
    assert found.tools == LISTS[agent]
    assert (found.loop, found.bootstrap) == ("tools", CONTENT[agent].prompts["guide"])
    assert "allow_list" not in found.prompts


@pytest.mark.req("O-235")
async def test_a_tenants_own_list_is_told_in_place_of_the_platforms() -> None:
    store = MemoryStore()
    await told(store, "discuss")
    library = Library(await store.platform(), Overlay())
    shorter = "\n".join(f"- {name}" for name in LISTS["discuss"] if name != "hybrid.search.v1")
    own = apply_publication(library, [NewText(tag="discuss/allow_list", content=shorter)])
    store.overlays[CALL.who.tenant] = replace(Overlay(), number=1, texts=own)
    assert "hybrid.search.v1" not in (await told(store, "discuss")).tools


async def test_a_list_with_a_tool_that_there_is_not_cannot_be_published() -> None:
    store = MemoryStore()
    await told(store, "discuss")
    library = Library(await store.platform(), Overlay())
    with pytest.raises(Unpublishable, match=r"discuss/allow_list: there are no such tools: graph\.dream\.v1"):
        apply_publication(library, [NewText(tag="discuss/allow_list", content="- graph.dream.v1")])


def test_a_list_names_outside_servers_beside_tools() -> None:
    text = "- recall\n- outside.weather for the forecast\n- outside.*\n- outside.Weather\n- outside.weather.forecast\n"
    assert allowed_servers(text) == ("weather", "*")
    assert allowed_tools(text) == ("recall", "outside.Weather", "outside.weather.forecast")
    assert unknown_tools(text) == ["outside.Weather", "outside.weather.forecast"]
