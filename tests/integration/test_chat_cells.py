"""Each fault of the model in each call of a turn, and how the turn ends; `docs/generated/faults.md` measures it on a stack."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from phronesis_contracts.orchestrator import Directive
from phronesis_orchestrator.turns.turn import Completed
from tests.faults.model_faults import NOT_JSON, SALVAGED, Expected, ModelFault, cells, expected
from tests.support.chat import AGENT, reasoning
from tests.support.groq_server import GroqServer, groq_server
from tests.unit.orchestrator.fakes import FakeConversations, FakeNeighbours, Stage, claim

_SORRY = "I am sorry."
_BY_RULES = "I found nothing about this in what I may read, so I will not guess."
"""What memory gives is about something else than the question, so that the rules do not quote it."""
_AGENT = AGENT.model_copy(update={"phrases": {"apology": _SORRY}})
_CELLS = list(cells(quick=True))


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[GroqServer]:
    async with groq_server() as running:
        yield running


@pytest.mark.req("D-003", "D-133", "D-134", "D-135", "D-136", "D-140", "D-141", "D-142", "D-167")
@pytest.mark.parametrize(("fault", "call"), _CELLS, ids=[f"{fault.name} in {call}" for fault, call in _CELLS])
async def test_a_fault_in_a_call_ends_the_turn_as_the_list_says(server: GroqServer, fault: ModelFault, call: str) -> None:
    server.reset()
    for purpose, scripted in fault.script(call):
        server.fail(purpose, scripted)
    async with reasoning(server) as model:
        stage = Stage(
            model,  # type: ignore[arg-type]  # the real one, in place of a script
            neighbours=FakeNeighbours(profiles={"dialogue": _AGENT}),
            conversations=FakeConversations(Directive.CREATIVE_COLLABORATOR),
        )
        end = await stage.run(claim(f"What is the heat network {uuid4().hex} for?"))
    assert isinstance(end, Completed)
    reply = end.reply
    changed = reply.next_agent_directive is not Directive.CREATIVE_COLLABORATOR
    found = Expected(200, None, reply.degraded, changed, reply.usage.model_calls)
    assert reply.user_response in _said(call, fault) or fault.name == "no draft"
    assert reply.reasoner == ("extractive" if "model" in reply.degraded else "groq")
    assert found == expected(fault, call)
    assert len(server.calls) == found.calls


def _said(call: str, fault: ModelFault) -> tuple[str, ...]:
    """What may be said: never the model's raw words (D-003)."""
    if call.startswith("final") and fault.kind == "away":
        return (_BY_RULES,)
    if call == "final.repair" and fault.kind == "broken":
        return (SALVAGED, "Pipes.", "y" * 50_000) if fault.saved else (_BY_RULES,)
    found = "Phoenix: Phoenix moves the archive."
    return (found, "Pipes.", "ab") if fault.kind == "harmless" else (found,)


async def test_what_is_saved_of_a_cut_answer_is_said_and_nothing_else(server: GroqServer) -> None:
    server.reset()
    cut = next(fault for fault, _ in _CELLS if fault.name == "cut at the greatest length")
    for purpose, scripted in cut.script("final.repair"):
        server.fail(purpose, scripted)
    async with reasoning(server) as model:
        stage = Stage(model, neighbours=FakeNeighbours(profiles={"dialogue": _AGENT}))  # type: ignore[arg-type]
        end = await stage.run(claim())
    assert isinstance(end, Completed)
    assert end.reply.user_response == SALVAGED
    assert NOT_JSON not in end.reply.user_response
