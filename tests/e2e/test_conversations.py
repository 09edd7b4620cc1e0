"""Turns of one conversation stand in line, other conversations do not wait for them, and a cancelled turn leaves nothing.

Memory is made to hang, so that turns take seconds and the order in which they end can be told without a stopwatch.
"""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from tests.support.bus import eventually
from tests.support.freezing import frozen
from tests.support.people import ENDS, TURNS, Person, Town
from tests.support.stack import RunningStack

pytestmark = [pytest.mark.any_store, pytest.mark.timeout(300)]

SLOW = "What do you know of the weather station at Finsevatn, number {n}?"


@pytest.mark.verify
@pytest.mark.req("D-019")
async def test_two_turns_sent_together_are_answered_in_order(stack: RunningStack, somebody: Person) -> None:
    conversation = (await somebody.reply("Hello!"))["conversation_id"]
    with frozen(stack.process("memory")):
        sent = await asyncio.gather(*(somebody.accepted(SLOW.format(n=n), conversation) for n in range(2)))
        first, second = sorted([await somebody.turn(one["turn_id"]) for one in sent], key=lambda turn: turn["sequence"])
        assert (first["sequence"], second["sequence"]) == (2, 3)
        while True:
            behind, ahead = await somebody.turn(second["turn_id"]), await somebody.turn(first["turn_id"])
            if ahead["status"] in ENDS:
                break
            # It was read before the one ahead of it was seen open.
            assert behind["status"] == "queued"
    ends = [await somebody.ended(turn["turn_id"]) for turn in (first, second)]
    assert ends[0]["ended_at"] < ends[1]["ended_at"]
    kept = [message["turn_id"] for message in await somebody.messages(conversation)][2:]
    assert kept == [first["turn_id"]] * 2 + [second["turn_id"]] * 2


@pytest.mark.verify
async def test_twenty_waiting_turns_do_not_delay_another_conversation(stack: RunningStack, somebody: Person) -> None:
    long = (await somebody.reply("Hello!"))["conversation_id"]
    with frozen(stack.process("memory")):
        waiting = [await somebody.accepted(SLOW.format(n=n), long) for n in range(20)]
        other = await somebody.ended((await somebody.accepted("Hello!"))["turn_id"])
    ends = [await somebody.ended(turn["turn_id"]) for turn in waiting]
    assert other["status"] == "completed"
    # One turn of the long conversation may have been under way; of the rest, each ended after the other conversation's.
    assert [end["status"] for end in ends] == ["completed"] * 20
    assert len([end for end in ends if end["ended_at"] > other["ended_at"]]) >= 18
    assert [end["ended_at"] for end in ends] == sorted(end["ended_at"] for end in ends)


async def test_a_cancelled_turn_commits_nothing(stack: RunningStack, somebody: Person) -> None:
    conversation = (await somebody.reply("Hello!"))["conversation_id"]
    with frozen(stack.process("memory")):
        running, queued = [(await somebody.accepted(SLOW.format(n=n), conversation))["turn_id"] for n in range(2)]

        async def is_claimed() -> bool:
            return bool((await somebody.turn(running))["status"] == "running")

        await eventually(is_claimed)
        for turn in (queued, running):
            answer = await somebody.http.delete(f"{TURNS}/{turn}")
            assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    again = await somebody.http.delete(f"{TURNS}/{running}")
    assert (again.status_code, again.json()["code"]) == (409, "turn_ended")
    assert again.json()["turn"]["status"] == "cancelled"
    last = await somebody.reply("Goodbye!", conversation)
    kept = await somebody.messages(conversation)
    assert [message["turn_id"] for message in kept][2:] == [last["turn_id"]] * 2
    assert [(await somebody.turn(turn))["reply"] for turn in (running, queued)] == [None, None]


@pytest.mark.verify
@pytest.mark.req("D-122", "D-168")
async def test_a_conversation_outlives_the_orchestrator_that_began_it(stack: RunningStack, everybody: Town) -> None:
    somebody = await everybody.someone()
    text = "The Tindfjell cable car carries thirty people to the summit and was built in 1972."
    await somebody.remember("Tindfjell cable car", text)
    first = await somebody.reply("I am afraid of the Tindfjell cable car. What is it?")
    stack.process("orchestrator").kill()
    key, asked = uuid4().hex, ("When was it built?", first["conversation_id"])
    async with asyncio.timeout(120):
        # A slow machine may not have a new orchestrator in the time that a turn has to be accepted: it says to send it again.
        while (answer := await somebody.say(*asked, idempotency=key)).status_code == 503:
            assert answer.json()["detail"] == "the turn was not accepted in time; send it again with the same key"
    assert answer.status_code == 200, answer.text
    second = answer.json()
    await everybody.ready()
    assert "1972" in second["user_response"]
    assert len(await somebody.messages(first["conversation_id"])) == 4
    again = (await somebody.http.get(f"/api/v1/conversations/{first['conversation_id']}")).json()
    assert again["directive"] == second["next_agent_directive"]
