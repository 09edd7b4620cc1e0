"""The pages of the constitutional graph: which tools they call, and that every agent's list has them."""

from __future__ import annotations

from typing import Any

import pytest

from phronesis_contracts import Principal
from phronesis_contracts.constitution.registry import Layer, Lifecycle
from phronesis_gateway.console.constitution.tools import GraphTools
from phronesis_instructions.library.content import read_agents
from phronesis_instructions.library.texts import allowed_tools
from tests.support.counsel import AGENTS
from tests.support.personas import Persona

LISTS = {one.agent: allowed_tools(one.prompts["allow_list"]) for one in read_agents() if one.agent in AGENTS}
WHO = Principal(tenant="acme", user="ann", **Persona.DISCUSS.rights)


class Asked(GraphTools):
    """Calls no tool, holds what is given to the tool's contract, and keeps the names."""

    def __init__(self) -> None:
        self.names: list[str] = []

    async def tool(self, who: Principal, tool: Any, given: dict[str, Any], key: str | None = None) -> Any:
        tool.rpc.input.model_validate(given)
        self.names.append(tool.name)
        return tool.rpc.output.model_construct(items=())


async def listing() -> list[str]:
    asked = Asked()
    for layer in Layer:
        await asked.layer(WHO, layer, Lifecycle.ACTIVE, None)
    return asked.names


async def test_a_layer_is_listed_by_the_newest_version_that_there_is() -> None:
    assert await listing() == [
        *("foundation.list.v2", "vision.list.v2", "strategy.list.v1", "tactics.list.v1", "execution.list.v1"),
        *("track.list.v1", "mind.list.v1"),
    ]


@pytest.mark.parametrize("agent", AGENTS)
async def test_the_pages_that_only_show_call_nothing_that_an_agents_list_lacks(agent: str) -> None:
    asked = Asked()
    await asked.inventory(WHO)
    await asked.node(WHO, "a")
    await asked.around(WHO, ["a"], 1)
    await asked.ladder(WHO, "a")
    await asked.summit(WHO)
    assert {*asked.names, *await listing(), "semantic.search.v1", "workload.assess.v1"} - set(LISTS[agent]) == set()


@pytest.mark.parametrize("agent", AGENTS)
def test_every_agent_can_ask_what_joins_the_foundation(agent: str) -> None:
    assert "foundation.relationships.v1" in LISTS[agent]
