"""Traces, replays, sums and limits on the whole stack, by command and by HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.people import Person, Town
from tests.support.stack import RunningStack

from .commands import command

pytestmark = [pytest.mark.verify, pytest.mark.timeout(300)]

QUESTION = "What is the Geological Disposal Facility programme for?"


async def told(stack: RunningStack, *arguments: str) -> Any:
    """What a command says in JSON."""
    code, out, err = await command(stack, *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


@pytest.mark.usefixtures("portfolio")
async def test_a_turn_that_is_replayed_by_command_gives_the_identical_answer(stack: RunningStack) -> None:
    reply = await told(stack, "ask", QUESTION)
    replayed = await told(stack, "replay", reply["turn_id"])
    assert (replayed["same"], replayed["diff"], replayed["answer"]) == (True, "", reply["user_response"])
    code, out, err = await command(stack, "replay", reply["turn_id"], "--with-instructions", "0")
    assert (code, out.splitlines()[0]) == (0, "the same"), err
    kept = (await told(stack, "conversations", "show", reply["conversation_id"]))["messages"]
    assert [one["role"] for one in kept] == ["user", "assistant"]


@pytest.mark.usefixtures("portfolio")
async def test_an_analysts_turn_is_replayed_by_command_from_its_record(stack: RunningStack) -> None:
    reply = await told(stack, "ask", "How many projects are there?", "--agent", "noor")
    replayed = await told(stack, "replay", reply["turn_id"])
    assert (replayed["same"], replayed["unrecorded"], replayed["answer"]) == (True, [], reply["user_response"])
    assert replayed["before"]["tool_calls"] != []


async def test_a_release_that_there_is_not_is_refused(stack: RunningStack) -> None:
    reply = await told(stack, "ask", "Hello there!")
    code, _, err = await command(stack, "replay", reply["turn_id"], "--with-instructions", "99")
    assert (code, "not_found" in err) == (3, True)


async def test_a_turn_holds_the_whole_trace_of_its_answer(somebody: Person) -> None:
    await somebody.remember("Skarvholm", "The lighthouse at Skarvholm was built in 1911.")
    reply = await somebody.reply("When was the lighthouse at Skarvholm built?")
    answer = await somebody.http.get(f"/api/v1/turns/{reply['turn_id']}", params={"include": "trace"})
    trace = answer.json()["trace"]
    assert (trace["reasoner"], trace["release"] != "", trace["model_calls"]) == ("extractive", True, [])
    assert [stage["name"] for stage in trace["stages"]] == ["I media", "II route", "III retrieve", "IV answer"]
    assert [memory["forgotten"] for memory in trace["memories"]] == [False]
    assert "1911" not in json.dumps(trace)


async def test_a_trace_and_a_replay_say_what_was_forgotten(somebody: Person) -> None:
    await somebody.remember("Skarvholm", "The lighthouse at Skarvholm was built in 1911.")
    turn = (await somebody.reply("When was the lighthouse at Skarvholm built?"))["turn_id"]
    (item,) = await somebody.recall("Skarvholm")
    assert (await somebody.tool("forget", {"ids": [item["id"]]})).status_code == 200
    while True:  # the test's limit of time ends this
        found = (await somebody.http.get(f"/api/v1/turns/{turn}", params={"include": "trace"})).json()["trace"]["memories"]
        if found[0]["forgotten"]:
            break
    replayed = (await somebody.http.post(f"/api/v1/turns/{turn}/replay", json={})).json()
    assert (replayed["forgotten"], replayed["same"]) == ([item["id"]], False)


async def test_limits_are_set_listed_and_removed_by_command(stack: RunningStack) -> None:
    limits = await told(stack, "limits", "set", "month", "--usd", "12.5", "--agent", "mind")
    ours = {"window": "month", "agent": "mind", "user": None, "tokens": None, "usd": 12.5, "used_tokens": 0, "used_usd": 0.0}
    assert ours in limits["limits"]
    assert (await told(stack, "limits"))["limits"] == limits["limits"]
    assert ours not in (await told(stack, "limits", "remove", "month", "--agent", "mind"))["limits"]
    assert (await told(stack, "usage", "--by", "day"))["sums"] == []


async def test_what_is_no_limit_is_refused_and_so_is_who_is_no_admin(somebody: Person, everybody: Town) -> None:
    admin = await everybody.someone(somebody.tenant, "admin")
    for body in ({"window": "day", "usd": False}, {"window": "day", "tokens": True}, {"window": "year", "tokens": 1}):
        assert (await admin.http.put("/api/v1/limits", json=body)).status_code == 400
    assert (await somebody.http.put("/api/v1/limits", json={"window": "day", "tokens": 1})).status_code == 403
    assert (await admin.http.put("/api/v1/limits", json={"window": "day", "tokens": 0})).status_code == 200
    assert (await somebody.reply("Hello there!"))["reasoner"] == "extractive"
