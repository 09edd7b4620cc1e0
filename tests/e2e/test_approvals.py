"""An agent that wants to delete, on the whole stack: by HTTP, by the command, and by nobody who may not."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest

from tests.e2e.commands import command
from tests.support import approving
from tests.support.approving import APPROVALS, Desk

pytestmark = [pytest.mark.verify, pytest.mark.timeout(300)]


@pytest.mark.req("V-089")
async def test_nothing_is_deleted_before_a_person_approves_and_it_is_once_after(desk: Desk) -> None:
    goal = await desk.goal()
    desk.deletes(goal, "It is gone.")
    turn = await desk.submitted(goal)
    approval = await desk.waits(turn)
    assert await desk.there(goal)
    told = {name: approval[name] for name in ("tool", "arguments", "risk", "irreversible", "reason", "status", "turn_id")}
    assert told == {
        "tool": "node.delete.v1",
        "arguments": {"id": goal},
        "risk": "high",
        "irreversible": True,
        "reason": "HIGH — node.delete.v1 is irreversible",
        "status": "pending",
        "turn_id": turn,
    }
    assert (await desk.answer(approval["approval_id"], "approve"))[0] == 200
    ended = await desk.person.ended(turn)
    assert (ended["status"], ended["reply"]["user_response"]) == ("completed", "It is gone.")
    assert not await desk.there(goal)


@pytest.mark.req("V-072")
async def test_what_a_person_refuses_stays_and_the_turn_ends_with_a_reply(desk: Desk) -> None:
    goal = await desk.goal()
    desk.deletes(goal, "It stays.")
    turn = await desk.submitted(goal)
    id = (await desk.waits(turn))["approval_id"]
    assert (await desk.answer(id, "refuse", "We need it."))[0] == 200
    ended = await desk.person.ended(turn)
    assert (ended["status"], ended["reply"]["user_response"], ended["approval_id"]) == ("completed", "It stays.", id)
    found = await desk.approval(id)
    assert (found["status"], found["answered_by"], found["note"]) == ("refused", desk.person.user, "We need it.")
    assert await desk.there(goal)


async def test_a_message_that_comes_to_wait_is_answered_with_where_its_turn_is(desk: Desk) -> None:
    goal = await desk.goal()
    desk.deletes(goal, "-")
    answer = await desk.person.say(approving.order(goal), agent=approving.AGENT)
    assert (answer.status_code, answer.json()["status"]) == (202, "waiting")
    cancelled = await desk.person.http.delete(f"/api/v1/turns/{answer.json()['turn_id']}")
    assert cancelled.json()["status"] == "cancelled"
    status, body = await desk.answer(cancelled.json()["approval_id"], "approve")
    assert (status, body["code"]) == (409, "approval_answered")
    assert await desk.there(goal)


async def test_the_events_of_a_turn_tell_what_it_waits_for(desk: Desk) -> None:
    goal = await desk.goal()
    desk.deletes(goal, "Gone.")
    turn = await desk.submitted(goal)
    approval = await desk.waits(turn)
    told = []
    async with desk.person.http.stream("GET", f"/api/v1/turns/{turn}/events") as events:
        name = ""
        async for line in events.aiter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: ") and name == "waiting":
                told.append(json.loads(line.removeprefix("data: "))["detail"]["approval_id"])
                await desk.answer(approval["approval_id"], "approve")
            elif line.startswith("data: ") and name == "done":
                break
    assert told == [approval["approval_id"]]


async def test_nobody_else_sees_or_answers_it_but_an_admin_of_the_tenant(desk: Desk) -> None:
    goal = await desk.goal()
    desk.deletes(goal, "Gone.")
    turn = await desk.submitted(goal)
    id = (await desk.waits(turn))["approval_id"]
    for other in (await desk.people.someone(role="admin"), await desk.people.someone(desk.person.tenant, "maestro")):
        assert (await other.http.get(f"{APPROVALS}/{id}")).status_code == 404
        assert (await desk.answer(id, "approve", person=other))[0] == 404
        assert (await other.http.get(APPROVALS)).json() == {"approvals": []}
    assert await desk.there(goal)
    admin = await desk.people.someone(desk.person.tenant, "admin")
    assert (await desk.answer(id, "approve", person=admin))[1]["answered_by"] == admin.user
    assert (await desk.person.ended(turn))["status"] == "completed"


async def test_no_tool_answers_an_approval(desk: Desk) -> None:
    tools = (await desk.person.http.get("/api/v1/tools")).json()["tools"]
    assert [tool["name"] for tool in tools if "approval" in tool["name"]] == []
    assert (await desk.person.tool("approval.answer", {"approval_id": str(uuid4()), "decision": "approve"})).status_code == 404


async def test_an_answer_that_is_none_is_a_400(desk: Desk) -> None:
    status, body = await desk.answer(str(uuid4()), "maybe")
    assert (status, body["field"]) == (400, "decision")


async def test_the_command_lists_shows_and_answers(desk: Desk) -> None:
    goal = await desk.goal()
    desk.deletes(goal, "Gone.")
    turn = await desk.submitted(goal)
    id = (await desk.waits(turn))["approval_id"]
    own = ("--key", desk.person.key, "--url", desk.stack.data.url.read_text().strip())
    code, listed, _ = await command(desk.stack, "approvals", "list", *own)
    assert (code, id in listed) == (0, True)
    code, shown, _ = await command(desk.stack, "approvals", "show", id, *own)
    assert (code, goal in shown, "HIGH — node.delete.v1 is irreversible" in shown) == (0, True, True)
    code, answered, _ = await command(desk.stack, "approvals", "approve", id, "--note", "Go on.", "--json", *own)
    assert (code, json.loads(answered)["note"]) == (0, "Go on.")
    assert (await desk.person.ended(turn))["status"] == "completed"
    code, _, error = await command(desk.stack, "approvals", "refuse", id, *own)
    assert (code, "approval_answered" in error) == (3, True)


@pytest.mark.verify
async def test_an_orchestrator_that_is_killed_around_the_answer_loses_nothing(desk: Desk) -> None:
    goal = await desk.goal()
    desk.deletes(goal, "Gone.")
    turn = await desk.submitted(goal)
    id = (await desk.waits(turn))["approval_id"]
    before = desk.stack.part("orchestrator").process
    desk.stack.process("orchestrator").kill()
    await desk.stack.until(lambda now: now.parts["orchestrator"].state == "up" and now.parts["orchestrator"].process != before)
    await desk.people.ready()
    assert (await desk.answer(id, "approve"))[0] == 200
    desk.stack.process("orchestrator").kill()
    await desk.people.ready()
    ended = await desk.person.ended(turn, within=120)
    assert (ended["status"], await desk.there(goal)) == ("completed", False)
