"""Which tools a caller may call, and what it is told of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

import phronesis_tokens as tokens
from phronesis_bus import News
from phronesis_contracts import (
    SYSTEM_TENANT,
    Agent,
    Forbidden,
    NotFound,
    Principal,
    Retired,
    Risk,
    Role,
    ServiceError,
    Unavailable,
)
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.instructions import AgentProfile, Released
from phronesis_contracts.tools import NAME_PREFIXES, legal_name, successor_name
from phronesis_gateway.mcp.tools import BUDGET, SEARCH, SHORT_LISTS, SearchTools, list_tools, rank_tools
from phronesis_gateway.mcp.turns import ASK
from phronesis_gateway.settings import ToolSettings
from phronesis_gateway.tools.offers import AGENTS, OF_MEMORY, AllowLists, Offers, find_tool
from phronesis_instructions.library.content import read_agents
from phronesis_instructions.library.texts import allowed_tools
from tests.support.personas import Persona

RELEASED = Released(tags=("discuss/allow_list",), version="4.0.0+1")
PROFILES = {one.agent: allowed_tools(one.prompts["allow_list"]) for one in read_agents() if "allow_list" in one.prompts}
EACH_ROLE = pytest.mark.parametrize("role", Persona)
OF_AGENTS = pytest.mark.parametrize("role", sorted(map(Persona, AGENTS)))


def who(role: Persona = Persona.DISCUSS, tenant: str = "acme", user: str = "ann") -> Principal:
    return Principal(tenant=tenant, user=user, **role.rights)


@dataclass
class Instructions:
    """An instructions service that counts its questions."""

    tools: dict[str, tuple[str, ...]] = field(default_factory=lambda: dict(PROFILES))
    arms: dict[str, str] = field(default_factory=dict)
    away: ServiceError | None = None
    asked: int = 0
    meanwhile: Callable[[], None] = lambda: None

    async def read(self, of: Principal, agent: Agent) -> AgentProfile:
        self.asked += 1
        if self.away is not None:
            raise self.away
        tools = self.tools[agent.value]
        self.meanwhile()
        return AgentProfile(
            agent=agent.value, version="1.0.0", loop="tools", stages=("loop",), prompts={}, tools=tools, arms=self.arms
        )


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def news(tenant: str) -> News:
    return News(tenant, "1", 1)


def offers(instructions: Instructions, *retired: str) -> Offers:
    return Offers(AllowLists(instructions.read), retired)


@OF_AGENTS
@pytest.mark.req("O-229", "O-346")
async def test_an_agent_may_call_what_its_list_has_and_its_role_may_and_nothing_else(role: Persona) -> None:
    made, listed_names = offers(Instructions()), PROFILES[role.value]
    assert [tool.name for tool in await made.of(who(role))] == list(listed_names)
    for name, tool in TOOLS.items():
        try:
            await made.require(who(role), tool)
            may = True
        except Forbidden:
            may = False
        assert may == (name in listed_names), name


async def test_a_list_gives_no_right_that_the_role_lacks() -> None:
    made = offers(Instructions({"discuss": ("semantic.search.v1", "node.delete.v1", "no.such.tool")}))
    assert [tool.name for tool in await made.of(who())] == ["semantic.search.v1"]
    with pytest.raises(Forbidden, match=r"member \(discuss\) may not use node\.delete\.v1"):
        await made.require(who(), TOOLS["node.delete.v1"])


@pytest.mark.req("O-229")
async def test_a_tool_that_a_list_lacks_is_not_offered_and_is_forbidden() -> None:
    rest = tuple(name for name in PROFILES["discuss"] if name != "hybrid.search.v1")
    made = offers(Instructions({"discuss": rest}))
    assert [tool.name for tool in await made.of(who())] == list(rest)
    with pytest.raises(Forbidden, match=r"hybrid\.search\.v1 is not among the tools of the agent discuss"):
        await made.require(who(), TOOLS["hybrid.search.v1"])


@pytest.mark.parametrize("role", sorted(set(Persona) - set(map(Persona, AGENTS))))
async def test_a_role_without_a_list_has_the_tools_of_its_role_and_asks_nobody(role: Persona) -> None:
    instructions = Instructions()
    found = {tool.name for tool in await offers(instructions).of(who(role))}
    assert (found, instructions.asked) == ({name for name, tool in TOOLS.items() if role.may(tool)}, 0)


async def test_several_agents_have_the_lists_of_each_and_a_tool_that_none_of_them_may_use_is_forbidden() -> None:
    both = Principal(tenant="acme", user="ann", agents=(Agent.DISCUSS, Agent.EXECUTE))
    made = offers(Instructions({"discuss": ("semantic.search.v1", "task.create.v1"), "execute": ("task.update.v1",)}))
    assert {tool.name for tool in await made.of(both)} == {"semantic.search.v1", "task.update.v1"}
    await made.require(both, TOOLS["semantic.search.v1"])
    await made.require(both, TOOLS["task.update.v1"])
    for name in ("task.create.v1", "hybrid.search.v1"):
        with pytest.raises(Forbidden, match="is not among the tools of the agent discuss, execute"):
            await made.require(both, TOOLS[name])


async def test_a_reader_is_offered_what_reads_of_its_agents_list() -> None:
    reader = Principal(tenant="acme", user="ann", role=Role.READER, agents=(Agent.EXECUTE,))
    made = offers(Instructions())
    found = [tool.name for tool in await made.of(reader)]
    assert found == [name for name in PROFILES["execute"] if TOOLS[name].risk is Risk.READ]
    with pytest.raises(Forbidden, match=r"reader \(execute\) may not use task\.create\.v1"):
        await made.require(reader, TOOLS["task.create.v1"])


@pytest.mark.req("O-235", "O-405")
async def test_a_release_takes_a_tool_from_the_next_list_and_from_the_next_call() -> None:
    instructions = Instructions()
    lists = AllowLists(instructions.read)
    made = Offers(lists)
    await made.require(who(), TOOLS["hybrid.search.v1"])
    instructions.tools["discuss"] = ("semantic.search.v1",)
    await lists.on_released(news("acme"), RELEASED)
    assert [tool.name for tool in await made.of(who())] == ["semantic.search.v1"]
    with pytest.raises(Forbidden):
        await made.require(who(), TOOLS["hybrid.search.v1"])


@pytest.mark.req("O-235", "O-324")
async def test_a_release_of_one_tenant_leaves_the_lists_of_others_and_one_of_the_platform_drops_all() -> None:
    instructions = Instructions()
    lists = AllowLists(instructions.read)
    for tenant in ("acme", "other"):
        await lists.of(who(tenant=tenant), Agent.DISCUSS)
    await lists.on_released(news("acme"), RELEASED)
    for tenant in ("acme", "other"):
        await lists.of(who(tenant=tenant), Agent.DISCUSS)
    assert instructions.asked == 3
    await lists.on_released(news(SYSTEM_TENANT), RELEASED)
    for tenant in ("acme", "other"):
        await lists.of(who(tenant=tenant), Agent.DISCUSS)
    assert instructions.asked == 5


@pytest.mark.req("O-324")
async def test_the_list_of_one_agent_is_not_told_to_another() -> None:
    lists = AllowLists(Instructions().read)
    assert [await lists.of(who(Persona(agent)), agent) for agent in sorted(AGENTS)] == [
        PROFILES[agent] for agent in sorted(AGENTS)
    ]


async def test_a_list_of_somebody_in_an_experiment_is_theirs_alone() -> None:
    instructions = Instructions(arms={"tools": "few"})
    lists = AllowLists(instructions.read)
    for user in ("ann", "bob", "ann"):
        await lists.of(who(user=user), Agent.DISCUSS)
    assert instructions.asked == 2


async def test_a_list_is_kept_for_a_while_and_an_older_one_serves_while_instructions_are_away() -> None:
    instructions, clock = Instructions(), Clock()
    lists = AllowLists(instructions.read, clock)
    for clock.now in (0.0, 9.0):
        await lists.of(who(), Agent.DISCUSS)
    assert instructions.asked == 1
    instructions.away, clock.now = Unavailable(), 60.0
    assert await lists.of(who(), Agent.DISCUSS) == PROFILES["discuss"]
    assert instructions.asked == 2


async def test_without_a_list_and_without_instructions_there_is_no_tool() -> None:
    made = offers(Instructions(away=Unavailable("instructions is not there")))
    with pytest.raises(Unavailable):
        await made.of(who())
    with pytest.raises(Unavailable):
        await made.require(who(), TOOLS["semantic.search.v1"])


async def test_a_list_that_a_release_made_stale_is_not_used_any_more() -> None:
    instructions = Instructions()
    lists = AllowLists(instructions.read)
    await lists.of(who(), Agent.DISCUSS)
    await lists.on_released(news("acme"), RELEASED)
    instructions.away = Unavailable()
    with pytest.raises(Unavailable):
        await lists.of(who(), Agent.DISCUSS)


async def test_a_list_that_was_read_while_a_release_came_is_read_anew() -> None:
    instructions = Instructions()
    lists = AllowLists(instructions.read)

    def released() -> None:
        lists._drops += 1

    instructions.meanwhile = released
    await lists.of(who(), Agent.DISCUSS)
    await lists.of(who(), Agent.DISCUSS)
    assert instructions.asked == 2


async def test_an_agent_that_there_is_not_has_no_tools() -> None:
    made = offers(Instructions(away=NotFound("no such agent")))
    assert await made.of(who()) == ()


@pytest.mark.req("O-097", "O-098", "C-22")
async def test_a_retired_tool_is_not_offered_and_says_which_one_took_its_place_until_it_is_back() -> None:
    admin, name = who(Persona.ADMIN), "foundation.list.v1"
    usual, made = offers(Instructions()), offers(Instructions(), name)
    assert [name in {tool.name for tool in await one.of(admin)} for one in (usual, made)] == [True, False]
    await usual.require(admin, TOOLS[name])
    with pytest.raises(Retired, match=r"foundation\.list\.v1 is retired; use foundation\.list\.v2") as error:
        await made.require(admin, TOOLS[name])
    assert (error.value.code, error.value.status) == ("retired", 410)
    await made.require(admin, TOOLS["foundation.list.v2"])


@pytest.mark.parametrize("names", [["strategy.list.v1"], ["foundation.list.v2"], ["nothing.v1"]])
def test_only_a_tool_that_has_a_second_version_can_be_retired(names: list[str]) -> None:
    with pytest.raises(ValueError, match=r"second version|pattern"):
        ToolSettings(retired=tuple(names))
    assert ToolSettings(retired=("foundation.list.v1", "vision.list.v1")).retired == ("foundation.list.v1", "vision.list.v1")


@pytest.mark.req("O-094", "C-20")
def test_every_spelling_of_a_name_is_one_tool_and_no_two_tools_share_one() -> None:
    dotted, underscored = NAME_PREFIXES
    spelt = {name: (name, legal_name(name), f"{dotted}{name}", f"{underscored}{legal_name(name)}") for name in TOOLS}
    for name, ways in spelt.items():
        assert [find_tool(way) for way in ways] == [TOOLS[name]] * 4
        assert max(len(way) for way in ways) <= 64
    assert len({way for ways in spelt.values() for way in set(ways)}) == sum(len(set(ways)) for ways in spelt.values())


def size(role: Persona, names: tuple[str, ...]) -> int:
    """Tokens of a list of tools as it is sent."""
    tools = tuple(TOOLS[name] for name in names)
    shown = [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in list_tools(tools)]
    return tokens.count(json.dumps({"tools": shown}, separators=(",", ":")))


@EACH_ROLE
@pytest.mark.req("O-099", "C-23")
async def test_the_list_of_every_role_fits_its_budget(role: Persona) -> None:
    tools = await offers(Instructions()).of(who(role))
    assert size(role, tuple(tool.name for tool in tools)) <= BUDGET == 15_000


@OF_AGENTS
@pytest.mark.req("O-099")
async def test_an_agent_sees_all_of_its_list(role: Persona) -> None:
    tools = await offers(Instructions()).of(who(role))
    assert [one.name for one in list_tools(tools)] == [ASK.name, *(legal_name(tool.name) for tool in tools)]


SETUP = {name for name in TOOLS if name.startswith(("agents.", "mcp_servers.", "ontology."))} | {"twin_vocabulary"} | OF_MEMORY


async def test_what_there_is_no_room_for_is_found_by_a_tool_and_the_schemas_of_outputs_go_first() -> None:
    tools = await offers(Instructions()).of(who(Persona.ADMIN))
    names = {one.name for one in list_tools(tools)}
    left = [tool for tool in tools if legal_name(tool.name) not in names]
    assert {ASK.name, SEARCH.name, "semantic_search_v1", "node_update_v1", "backup_restore_v1"} <= names
    assert left
    others = [
        tool.name
        for tool in left
        if not (tool.name.endswith((".create.v1", ".update.v1")) or tool.name in SETUP or successor_name(tool.name) in TOOLS)
    ]
    told = {tool.rpc.subject for tool in tools if legal_name(tool.name) in names}
    assert {TOOLS[name].rpc.subject for name in others} <= told, "other names of tools that are told"
    assert {one.output_schema for one in list_tools(tools) if one.name != SEARCH.name} == {None}
    for tool in left:
        query = tool.name.removesuffix(".v1").replace(".", " ")
        assert legal_name(tool.name) == rank_tools(tools, SearchTools(query=query, limit=1)).tools[0].name


async def test_a_short_list_says_what_its_tools_answer_but_for_the_last_where_there_is_no_room() -> None:
    shown = list_tools(await offers(Instructions()).of(who(Persona.NOOR)))
    without = [one.name for one in shown if one.output_schema is None]
    assert without == [one.name for one in shown][-len(without) :]
    assert {legal_name(name) for name in SETUP} & {one.name for one in shown} <= set(without)
    assert len(without) < len(shown) / 2
    assert SEARCH.name not in {one.name for one in shown}


def test_a_search_for_tools_counts_words_of_names_more_and_says_how_many_there_are() -> None:
    tools = tuple(TOOLS[name] for name in ("goal.create.v1", "goal.search.v1", "graph.why.v1", "value.create.v1"))
    found = rank_tools(tools, SearchTools(query="create a goal", limit=2))
    assert ([one.name for one in found.tools], found.total) == (["goal_create_v1", "goal_search_v1"], 4)
    assert found.tools[0].input_schema["required"] == ["title"]
    assert rank_tools(tools, SearchTools(query="zebra")).tools == ()


async def test_each_profile_tells_its_own_tools_alone_and_that_of_memory_eight() -> None:
    tools = await offers(Instructions()).of(who(Persona.ADMIN))
    told = {profile: [one.name for one in list_tools(tools, profile)] for profile in SHORT_LISTS}
    assert sorted(told["memory"]) == sorted(map(legal_name, OF_MEMORY))
    assert len(told["memory"]) == 8
    assert told["analyst"][0] == ASK.name
    known = {profile: set(map(legal_name, names)) | {ASK.name, SEARCH.name} for profile, names in SHORT_LISTS.items()}
    assert all(set(names) <= known[profile] for profile, names in told.items())
    assert {"query_graph", "diagnose_gaps"} <= set(told["analyst"])
    assert "semantic_search_v1" in told["constitution"]


@pytest.mark.req("O-013")
def test_every_tool_for_agents_alone_only_reads() -> None:
    found = {name: tool.risk for name, tool in TOOLS.items() if name.startswith("discuss_")}
    assert set(found.values()) == {Risk.READ}
    assert {"discuss_semantic_search", "discuss_hybrid_search", "discuss_goal_ladder", "discuss_workload_assess"} <= set(found)


@pytest.mark.req("O-347")
@OF_AGENTS
async def test_no_agent_may_delete_for_good_restore_or_make_vectors_anew(role: Persona) -> None:
    made = offers(Instructions({role.value: tuple(TOOLS)}))
    for name in ("node.delete.v1", "backup.restore.v1", "embeddings.regenerate.v1"):
        with pytest.raises(Forbidden):
            await made.require(who(role), TOOLS[name])
