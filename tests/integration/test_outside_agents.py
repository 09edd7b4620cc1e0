"""Agents and outside tools, on the scripted model: what is offered, how calls are journalled, what they can change."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from phronesis_contracts import Risk, TimedOut, Unavailable
from phronesis_contracts.outside import AcceptedTool, OutcomeUnknown
from phronesis_orchestrator.outside_tools.schemas import (
    CALLED,
    OFFERED,
    OfferedTool,
    OutsideArguments,
    OutsideResult,
    ToolOffers,
    pin_hash,
)
from tests.integration.test_counsel import ask, offered, said, script, told
from tests.support.counsel import profile, stage
from tests.support.groq_server import GroqServer, groq_server
from tests.support.mcp_outsiders import ADD, INJECTION
from tests.unit.orchestrator.fakes import FakeJournal, Stage


@pytest.fixture
async def server() -> AsyncIterator[GroqServer]:
    async with groq_server() as running:
        yield running


def tool(name: str, risk: Risk = Risk.LOW, *, idempotent: bool = False, parameters: dict[str, Any] = ADD) -> OfferedTool:
    description = f"A tool. {INJECTION}"
    accepted = AcceptedTool(
        name=name,
        description=description,
        parameters=parameters,
        pin=pin_hash(name, description, parameters),
        risk=risk,
        idempotent=idempotent,
        accepted_by="root",
        accepted_at=datetime.now(UTC),
    )
    return OfferedTool(server="out", tool=accepted)


def outside(*tools: OfferedTool, answer: Any = OutsideResult(text="5"), servers: tuple[str, ...] = ("*",)) -> Stage:  # noqa: B008
    of = stage("discuss", **{OFFERED.rpc.subject: ToolOffers(tools=tools), CALLED: answer})
    of.neighbours.profiles = {"discuss": profile("discuss").model_copy(update={"outside": servers})}
    return of


def sent(of: Stage) -> list[dict[str, Any]]:
    """The arguments that left for outside tools."""
    return [request.given for subject, request, _ in of.neighbours.questions if subject == CALLED]


class Killed(FakeJournal):
    """A journal in which an earlier attempt began every outside call, and was killed before its result."""

    async def intend(self, claim: Any, step: str, intent: dict[str, Any], *, once: bool = False) -> dict[str, Any] | None:
        if intent["call"].startswith("outside."):
            self.intents.append(step)
        return await super().intend(claim, step, intent, once=once)


async def test_an_agent_is_offered_the_tools_with_their_pinned_schema(server: GroqServer) -> None:
    script(server, said("Nothing is asked."))
    await ask(server, outside(tool("add")), "Think with me.")
    request = server.calls[0].request
    assert request is not None
    [function] = [one["function"] for one in request["tools"] if one["function"]["name"] == "outside_out_add"]
    assert set(function["parameters"]["properties"]) == {"a", "b"}


async def test_an_agent_whose_profile_names_no_server_is_offered_none_and_asks_nobody(server: GroqServer) -> None:
    script(server, said("Nothing is asked."))
    of = outside(tool("add"), servers=())
    await ask(server, of, "Think with me.")
    assert "outside_out_add" not in offered(server)
    assert OFFERED.rpc.subject not in [subject for subject, _, _ in of.neighbours.questions]


async def test_a_turn_goes_on_without_outside_tools_and_says_so(server: GroqServer) -> None:
    script(server, said("Nothing is asked."))
    of = outside()
    of.neighbours.owners[OFFERED.rpc.subject] = Unavailable()
    assert (await ask(server, of, "Think with me.")).degraded == ("outside",)


async def test_a_call_is_journalled_made_with_its_key_and_told_as_data(server: GroqServer) -> None:
    script(server, [("outside_out_add", {"a": 2, "b": 3})], said("It is five."))
    of = outside(tool("add"))
    await ask(server, of, "Add two and three.")
    assert sent(of) == [{"a": 2, "b": 3}]
    assert [key.split("/")[1] for subject, _, key in of.neighbours.questions if subject == CALLED and key] == ["call.1.1"]
    assert {**of.journal.results["call.1.1"], "ms": 0} == {"answer": {"text": "5", "truncated": False}, "ms": 0}
    assert '"text": "5"' in told(server)[-1]


async def test_arguments_that_break_the_pinned_schema_are_not_sent(server: GroqServer) -> None:
    script(server, [("outside_out_add", {"a": "two", "b": 3}), ("outside_out_add", {"a": 1, "b": 1, "x": 1})], said("No."))
    of = outside(tool("add"))
    await ask(server, of, "Add two and three.")
    assert sent(of) == []
    assert all("bad_arguments" in one for one in told(server)[-2:])


@pytest.mark.parametrize("risk", [Risk.READ, Risk.MEDIUM])
async def test_a_call_that_was_begun_before_a_crash_is_not_made_again(server: GroqServer, risk: Risk) -> None:
    script(server, [("outside_out_add", {"a": 2, "b": 3})], said("I do not know whether it was done."))
    of = outside(tool("add", risk))
    of.journal = Killed()
    await ask(server, of, "Add two and three.")
    assert sent(of) == []
    assert OutcomeUnknown.code in told(server)[-1]


@pytest.mark.parametrize("risk", [Risk.READ, Risk.MEDIUM])
async def test_an_idempotent_call_that_was_begun_before_a_crash_is_made_again(server: GroqServer, risk: Risk) -> None:
    script(server, [("outside_out_add", {"a": 2, "b": 3})], said("It is five."))
    of = outside(tool("add", risk, idempotent=True))
    of.journal = Killed()
    await ask(server, of, "Add two and three.")
    assert sent(of) == [{"a": 2, "b": 3}]


async def test_a_call_whose_outcome_is_unknown_is_not_tried_once_more_in_its_turn(server: GroqServer) -> None:
    call = [("outside_out_add", {"a": 2, "b": 3})]
    script(server, call, call, said("I do not know."))
    of = outside(tool("add"), answer=OutcomeUnknown("its answer was lost"))
    await ask(server, of, "Add two and three.")
    assert len(sent(of)) == 1
    assert "repeated" in told(server)[-1]


async def test_a_server_that_fails_costs_its_own_call_and_marks_the_reply(server: GroqServer) -> None:
    script(server, [("outside_out_add", {"a": 2, "b": 3})], said("It could not be reached."))
    reply = await ask(server, outside(tool("add", idempotent=True), answer=TimedOut("slow")), "Add two and three.")
    assert (reply.user_response, reply.degraded) == ("It could not be reached.", ("outside",))


async def test_instructions_in_a_description_and_a_result_open_no_other_tool(server: GroqServer) -> None:
    script(
        server,
        [("outside_out_add", {"a": 2, "b": 3})],
        [("mcp_servers_remove", {"name": "out"}), ("outside_out_write", {}), ("goal_create_v1", {"title": "x"})],
        said("I may not."),
    )
    of = outside(tool("add"), answer=OutsideResult(text=INJECTION))
    await ask(server, of, "Add two and three.")
    assert all("unknown_tool" in one for one in told(server)[-3:])
    assert {subject for subject, _, _ in of.neighbours.questions} <= {
        OFFERED.rpc.subject,
        CALLED,
        "orchestrator.v1.session.start",
        "graph.v2.constitution.foundation.list",
    }


def test_the_arguments_of_two_tools_are_two_types() -> None:
    from phronesis_orchestrator.outside_tools.schemas import build_tool

    add, other = build_tool(tool("add", idempotent=True)), build_tool(tool("other", parameters={"type": "object"}))
    assert (add.rpc.input.tool, add.rpc.input.idempotent) == ("outside.out.add", True)
    assert (other.rpc.input.tool, other.rpc.input.idempotent) == ("outside.out.other", False)
    assert issubclass(add.rpc.input, OutsideArguments)
    assert json.loads(other.rpc.input.model_validate({"tool": "x", "model_config": 1}).model_dump_json()) == {
        "given": {"tool": "x", "model_config": 1}
    }
