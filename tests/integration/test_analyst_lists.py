"""Analysts whose allow-list adds to their tools: what memory formed by itself, and outside tools; the order of calls stays."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from phronesis_contracts import Risk
from phronesis_contracts.memory import RECALL, ItemKind, Recalled, RecalledItem
from phronesis_orchestrator.outside_tools.schemas import CALLED, OFFERED, OutsideResult, ToolOffers
from phronesis_orchestrator.turns.turn import Completed
from tests.integration.test_outside_agents import tool
from tests.support.analysts import analyst, profile
from tests.support.groq_server import Fault, GroqServer, groq_server
from tests.support.personas import Persona
from tests.unit.orchestrator.fakes import Stage, claim

FORMED = RecalledItem(
    id="i1",
    external_id="f1",
    kind=ItemKind.FACT,
    text="The user prefers figures by department.",
    score=0.9,
    why={"text": 3.0},
)
OWNERS: dict[str, Any] = {
    RECALL.subject: Recalled(items=(FORMED,)),
    OFFERED.rpc.subject: ToolOffers(tools=(tool("add", Risk.READ), tool("wipe", Risk.HIGH))),
    CALLED: OutsideResult(text="the sum is 5"),
}
CALLS = [("recall", {"query": "what the user prefers"}), ("outside_out_add", {"a": 2, "b": 3})]
TOLD = "Add 2 and 3. How many projects? mode A"


@pytest.fixture
async def server() -> AsyncIterator[GroqServer]:
    async with groq_server() as running:
        yield running


def listed(of: Stage, agent: str, **more: Any) -> Stage:
    """The stage with an allow-list for its agent."""
    of.neighbours.profiles = {agent: profile(agent).model_copy(update=more)}
    return of


def offered(server: GroqServer) -> list[str]:
    """The functions that the first call to the model for the work offered."""
    request = next(call.request for call in server.calls if call.purpose == "tools")
    assert request is not None
    return [one["function"]["name"] for one in request["tools"]]


def shown(server: GroqServer) -> str:
    """What the tools gave, as the last call showed it."""
    request = server.calls[-1].request
    assert request is not None
    return "\n".join(message["content"] for message in request["messages"] if message["role"] == "tool")


@pytest.mark.parametrize(("agent", "role"), [("noor", Persona.NOOR), ("maestro", Persona.MAESTRO)])
async def test_an_analyst_reads_formed_facts_and_calls_outside_tools_of_its_list(
    server: GroqServer, agent: str, role: Persona
) -> None:
    server.fail("tools", Fault(calls=CALLS))
    async with analyst(server, agent, OWNERS) as of:
        listed(of, agent, tools=("recall",), outside=("*",))
        asked = claim(TOLD, agent=agent)
        end = await of.run(claim(TOLD, agent=agent, who=asked.who.model_copy(update=role.rights)))
    assert isinstance(end, Completed)
    assert end.reply.analysis is not None
    assert end.reply.analysis.answer == "The records say department: Health, projects: 12."
    asked_of = [subject for subject, _, _ in of.neighbours.questions]
    assert asked_of[:3] == [OFFERED.rpc.subject, RECALL.subject, CALLED]
    assert asked_of[3:6] == ["memory.v1.scoped.recall", "instructions.v1.retrieve", "graph.v1.cypher.read"]
    assert {"recall", "outside_out_add", "outside_out_wipe"} <= set(offered(server))
    assert "The user prefers figures by department." in shown(server)
    assert "the sum is 5" in shown(server)


async def test_an_analyst_without_a_list_is_offered_neither_and_asks_no_outside_server(server: GroqServer) -> None:
    async with analyst(server, "noor", OWNERS) as of:
        await of.run(claim(TOLD, agent="noor"))
    assert not {"recall", "outside_out_add"} & set(offered(server))
    assert OFFERED.rpc.subject not in [subject for subject, _, _ in of.neighbours.questions]


async def test_an_outside_tool_of_high_risk_is_not_called_by_an_analyst_before_a_person_said_so(server: GroqServer) -> None:
    server.fail("tools", Fault(calls=[("outside_out_wipe", {"a": 2, "b": 3})]))
    async with analyst(server, "noor", OWNERS) as of:
        listed(of, "noor", outside=("*",))
        await of.attempt(claim(TOLD, agent="noor"))
    assert [asked.verdict.tool for asked in of.turns.asked.values()] == ["outside.out.wipe"]
    assert CALLED not in [subject for subject, _, _ in of.neighbours.questions]
