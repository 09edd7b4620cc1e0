"""A reply that is shown while a model writes it: pieces, what takes them back, and who shows none."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from phronesis_contracts import Principal
from phronesis_contracts.orchestrator import Reply, TurnProgress
from phronesis_orchestrator.turns.turn import Completed
from tests.support.chat import AGENT, REPLY, reasoning
from tests.support.endpoints import LLAMA_CPP, PLAIN, Endpoint
from tests.support.groq_server import Fault, GroqServer, groq_server
from tests.unit.orchestrator.fakes import FakeNeighbours, Stage, claim

LONG = "Pipes of hot water run under the town, and every house has a valve. " * 4
LIVE = AGENT.model_copy(update={"stages": ("live",)})


@dataclass
class Watched(Stage):
    """A stage that keeps what is shown live."""

    lines: list[TurnProgress] = field(default_factory=list)

    async def hear(self, of: Principal, line: TurnProgress) -> None:
        if line.kind in ("live", "restart"):
            self.lines.append(line)

    def standing(self) -> str:
        """The text that stands at the end; each piece says where it belongs."""
        found = ""
        for line in self.lines:
            if line.kind == "restart":
                found = ""
                continue
            assert (line.offset, line.attempt) == (len(found), 1)
            found += line.text or ""
        return found


@pytest.fixture
async def server() -> AsyncIterator[GroqServer]:
    async with groq_server() as running:
        yield running


async def ask(server: GroqServer, agent: object = LIVE, provider: str = "groq") -> tuple[Watched, Reply]:
    async with reasoning(server, provider) as model:
        stage = Watched(model, neighbours=FakeNeighbours(profiles={"dialogue": agent}))  # type: ignore[arg-type]
        end = await stage.run(claim("What is the heat network for?"))
    assert isinstance(end, Completed), end
    return stage, end.reply


def says(text: str = LONG) -> str:
    return json.dumps({**REPLY, "user_response": text})


@pytest.mark.parametrize("provider", ["groq", "openai"])
async def test_the_pieces_are_the_reply(server: GroqServer, provider: str) -> None:
    server.fail("final", Fault(content=says(), pause=0.01))
    stage, reply = await ask(server, provider=provider)
    assert (stage.standing(), reply.user_response) == (LONG.strip(), LONG.strip())
    assert len(stage.lines) > 2
    assert reply.usage.output_tokens > 0


async def test_an_agent_without_the_stage_shows_nothing(server: GroqServer) -> None:
    server.fail("final", Fault(content=says()))
    stage, reply = await ask(server, AGENT)
    assert (stage.lines, reply.user_response) == ([], LONG.strip())


@pytest.mark.parametrize("endpoint", [LLAMA_CPP, PLAIN], ids=["llama_cpp", "plain"])
async def test_an_endpoint_that_does_not_stream_gives_the_whole_reply(server: GroqServer, endpoint: Endpoint) -> None:
    server.endpoint = endpoint
    server.fail("final", Fault(content=says()))
    stage, reply = await ask(server, provider="openai")
    assert reply.user_response == LONG.strip()
    assert stage.standing() == (LONG.strip() if endpoint.streams else "")
    assert (reply.usage.output_tokens > 0) is True


@pytest.mark.parametrize(
    "fault",
    [
        Fault(content=says(), break_after=25),
        Fault(content=says("Another beginning. " * 9)[:-30]),
        Fault(content=says()[:-1] + ', "user_response": "twice"}'),
    ],
    ids=["the connection broke", "the object was cut", "a key stands twice"],
)
async def test_text_that_came_to_nothing_is_taken_back(server: GroqServer, fault: Fault) -> None:
    server.fail("final", fault)
    server.fail("final", Fault(content=says("It is for heat.")))
    server.fail("repair", Fault(content=says("It is for heat.")))
    stage, reply = await ask(server)
    assert [line.kind for line in stage.lines].count("restart") == 1
    assert (stage.standing(), reply.user_response, reply.degraded) == ("It is for heat.", "It is for heat.", ())


async def test_a_model_that_fails_for_good_leaves_no_provisional_text(server: GroqServer) -> None:
    server.fail("final", Fault(content=says(), break_after=25, times=9))
    stage, reply = await ask(server)
    assert (stage.lines[-1].kind, stage.standing()) == ("restart", "")
    assert (reply.reasoner, reply.degraded) == ("extractive", ("model",))
    assert [line.kind for line in stage.lines].count("restart") == 3
