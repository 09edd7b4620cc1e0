"""Parts of the stack hang or are killed: a turn is answered without them or refused in time, and all comes back by itself."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from time import monotonic
from typing import Any
from uuid import uuid4

import httpx
import pytest

from phronesis_local.parts import SERVICES
from tests.support.freezing import frozen
from tests.support.people import TURNS, Person, Town
from tests.support.production import GRAPH
from tests.support.stack import RunningStack

pytestmark = [pytest.mark.verify, pytest.mark.stores, pytest.mark.timeout(180)]

LONGEST = 10.0
"""Seconds in which a turn is answered while a store hangs."""
QUESTION = "What is the Kvitfjell observatory?"
FACT = "The Kvitfjell observatory watches meteors above the Dovre plateau."


@pytest.fixture
async def knowing(everybody: Town) -> Person:
    """A user whose memory holds a fact."""
    await everybody.ready()
    person = await everybody.someone()
    await person.remember("Kvitfjell observatory", FACT)
    return person


@contextlib.asynccontextmanager
async def no_service_started_anew(stack: RunningStack, *but: str) -> AsyncIterator[None]:
    """Every service is the same process behind the block as before it."""

    def processes() -> dict[str, Any]:
        return {name: stack.part(name).process for name in SERVICES if name not in but}

    before = processes()
    yield
    assert processes() == before


async def answered(person: Person) -> dict[str, Any]:
    """Ask until the reply is whole again."""
    end = monotonic() + 30
    while (reply := await person.reply(QUESTION))["degraded"]:
        assert monotonic() < end, f"still degraded: {reply['degraded']}"
        await asyncio.sleep(0.2)
    assert FACT in reply["user_response"]
    return reply


async def down(person: Person, name: str) -> None:
    """Return when readiness names `name`."""
    end = monotonic() + 20
    while True:
        answer = await person.http.get("/health/ready")
        if answer.status_code == 503 and name in answer.json()["down"]:
            assert "retry-after" in answer.headers
            return
        assert monotonic() < end, f"readiness does not name {name}: {answer.text}"
        await asyncio.sleep(0.05)


@pytest.mark.req("D-138", "D-166")
async def test_while_the_graph_hangs_a_question_is_answered_without_it(stack: RunningStack, knowing: Person) -> None:
    async with no_service_started_anew(stack):
        with frozen(stack.process(GRAPH)):
            began = monotonic()
            reply = await knowing.reply(QUESTION)
            assert monotonic() - began < LONGEST
            assert reply["degraded"] == ["graph"]
            assert FACT in reply["user_response"]
            await down(knowing, "graph.graph")
        await answered(knowing)


@pytest.mark.req("D-166")
async def test_while_memory_is_gone_a_greeting_is_answered_and_memory_comes_back(stack: RunningStack, knowing: Person) -> None:
    async with no_service_started_anew(stack, "memory"):
        stack.process("memory").kill()
        named = asyncio.create_task(down(knowing, "memory"))
        reply = await knowing.reply("Hello!")
        assert reply["user_response"]
        assert reply["degraded"] == ["profile"]
        await named
        await answered(knowing)


@pytest.mark.req("D-139", "D-166")
async def test_while_the_database_hangs_a_turn_is_refused_in_time_and_taken_once_afterwards(
    stack: RunningStack, everybody: Town, knowing: Person
) -> None:
    key, before = uuid4().hex, await knowing.turns()
    async with no_service_started_anew(stack):
        with frozen(stack.process("postgres")):
            began = monotonic()
            answers = await asyncio.gather(knowing.say(QUESTION, idempotency=key), knowing.http.get(TURNS))
            assert monotonic() - began < 15
            for answer in answers:
                assert answer.status_code in (503, 504), answer.text
                assert answer.json()["code"] in ("unavailable", "timed_out")
            assert int(answers[0].headers["retry-after"]) >= 1
        await everybody.ready()
        reply = await knowing.say(QUESTION, idempotency=key)
        assert reply.status_code == 200
        turns = [one["turn_id"] for one in await knowing.turns()]
        assert turns == [reply.json()["turn_id"], *(one["turn_id"] for one in before)]
        await answered(knowing)


async def test_a_killed_broker_comes_back_and_no_service_is_started_anew(
    stack: RunningStack, everybody: Town, knowing: Person
) -> None:
    async with no_service_started_anew(stack):
        before = stack.part("nats").process
        stack.process("nats").kill()
        refused = await knowing.say("Hello!")
        assert refused.status_code in (200, 503), refused.text
        await stack.until(lambda now: now.parts["nats"].state == "up" and now.parts["nats"].process != before)
        await everybody.ready()
        await answered(knowing)


@pytest.mark.req("D-144")
async def test_a_service_that_is_gone_or_hangs_costs_its_caller_little_time(
    stack: RunningStack, everybody: Town, knowing: Person
) -> None:
    with frozen(stack.process("orchestrator")):
        assert _said(await knowing.http.get(TURNS)) == (504, "timed_out")
    process = stack.process("orchestrator")
    process.kill()
    await asyncio.to_thread(process.wait, 5)
    began = monotonic()
    while (answer := await knowing.http.get(TURNS)).status_code == 200:
        assert monotonic() - began < 5
    assert _said(answer) == (503, "unavailable")
    assert int(answer.headers["retry-after"]) >= 1
    await everybody.ready()
    assert (await knowing.http.get(TURNS)).status_code == 200


def _said(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]
