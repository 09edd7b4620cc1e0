"""The agent that weighs, plans, acts and learns, on the whole stack with a scripted model: what comes of it, and its trace."""

from __future__ import annotations

import asyncio
import json
from time import monotonic
from typing import Any
from uuid import uuid4

import pytest

from tests.support.approving import Desk
from tests.support.groq_answers import blocks
from tests.support.groq_server import Fault
from tests.support.people import Person
from tests.support.tasks import ended, judged, task

pytestmark = [pytest.mark.verify, pytest.mark.timeout(300)]

REPORT = {"title": "What was found", "text": "All of it is here.", "used": ["look"]}


@pytest.fixture
async def somebody(desk: Desk) -> Person:
    """A user in a tenant of its own, who may use every tool."""
    return await desk.people.someone(role="admin")


def step(name: str, wave: int, tool: str = "recall", **arguments: Any) -> dict[str, Any]:
    """One step of a plan, as a model writes it."""
    given = arguments or {"query": name}
    return {"id": name, "description": f"Do {name}.", "tool": tool, "arguments": given, "depends": [], "wave": wave}


def scripted(desk: Desk, about: str, purpose: str, *said: dict[str, Any]) -> None:
    """Let the model answer a purpose so, one after the other, in turns whose prompt holds a word."""
    for one in said:
        desk.model.fail(purpose, Fault(content=json.dumps(one), about=about))


async def answered(person: Person, text: str, conversation: str | None = None) -> dict[str, Any]:
    """A turn of nova that has ended well."""
    answer = await person.submit(text, conversation, agent="nova")
    assert answer.status_code == 202, answer.text
    turn = await person.ended(answer.json()["turn_id"])
    assert turn["status"] == "completed", turn
    return turn


async def trace(person: Person, turn: str) -> dict[str, Any]:
    """The trace of a turn's answer."""
    answer = await person.http.get(f"/api/v1/turns/{turn}", params={"include": "trace"})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["trace"]
    return found


def logged(desk: Desk, turn: str, service: str = "orchestrator") -> str:
    """What the log of a service says of a turn: the lines of its trace."""
    own = [json.loads(line) for line in _lines(desk, "orchestrator") if turn in line]
    traces = {line["trace_id"] for line in own}
    return "\n".join(line for line in _lines(desk, service) if any(trace in line for trace in traces))


def _lines(desk: Desk, service: str) -> list[str]:
    return (desk.stack.data.logs / f"{service}.log").read_text(errors="replace").splitlines()


def prompts(desk: Desk, turn: str, purpose: str) -> list[dict[str, str]]:
    """The blocks of a turn's prompts for a purpose."""
    found = [call.request for call in desk.model.calls if call.purpose == purpose and (call.step or "").startswith(turn)]
    return [blocks(request) for request in found if request is not None]


@pytest.mark.req("V-003", "V-037", "V-167", "V-178", "V-184")
async def test_a_step_that_fails_has_the_plan_adjusted_and_one_that_fails_after_that_does_not(
    desk: Desk, somebody: Person
) -> None:
    word = f"heron{uuid4().hex[:8]}"
    first = {
        "title": "T",
        "kind": "k",
        "steps": [step("look", 1), step("gone", 1, "node.get.v1", id="no-such-node"), step("old", 2)],
    }
    second = {"title": "T", "kind": "k", "steps": [step("worse", 1, "node.get.v1", id="none-either"), step("new", 2)]}
    scripted(desk, word, "decompose", first, second)
    scripted(desk, word, "evaluate", {"revise": True, "reason": "the node is gone"})
    scripted(desk, word, "task_report", REPORT)
    scripted(desk, word, "criticise", {"score": 0.9, "reason": "all there"})
    id = await task(somebody, f"Find out about {word}")
    found = await ended(somebody, id)
    assert (found["status"], found["progress"]["adjusted"], found["progress"]["replanned"]) == ("completed", True, True)
    states = {one["description"]: one["state"] for one in found["progress"]["steps"]}
    assert [states[f"Do {name}."] for name in ("look", "gone", "worse", "new")] == ["done", "failed", "failed", "done"]
    assert "Do old." not in [name for name, state in states.items() if state == "done"]
    assert logged(desk, id).count("Adjusting plan") == 1
    told = await trace(somebody, id)
    purposes = [one["purpose"] for one in told["model_calls"]]
    assert purposes == ["decompose", "evaluate", "decompose", "task_report", "criticise"]
    assert all(one["ms"] >= 0 and one["outcome"] == "ok" for one in told["model_calls"])


@pytest.mark.req("V-169")
async def test_one_id_joins_what_four_services_log_of_a_turn(desk: Desk) -> None:
    person = await desk.people.someone(role="noor")
    answer = await person.submit(f"Count what is there in mode A, {uuid4().hex}", agent="noor")
    turn = await person.ended(answer.json()["turn_id"])
    ids = {"turn_id": turn["turn_id"], "conversation_id": turn["conversation_id"]}
    ids |= {"user_id": person.user, "trace_id": turn["trace_id"]}
    joined = set()
    for service in ("orchestrator", "memory", "instructions", "graph"):
        for line in map(json.loads, _lines(desk, service)):
            if line.get("turn_id") == turn["turn_id"]:
                joined.add(service)
                assert {name: line.get(name) for name in ids} == ids, line
    assert joined == {"orchestrator", "memory", "instructions", "graph"}


@pytest.mark.req("V-134", "V-140", "V-141")
async def test_no_reply_waits_for_the_memory_that_records_it_and_the_episode_comes_when_that_goes_on(
    desk: Desk, somebody: Person
) -> None:
    word = f"plover{uuid4().hex[:8]}"
    scripted(desk, word, "tools", {"answer": "Noted.", "confidence": 0.9})
    memory = desk.stack.process("memory")
    memory.suspend()
    try:
        turn = await answered(somebody, f"Note what I say about {word}")
        assert turn["reply"]["user_response"] == "Noted."
    finally:
        memory.resume()
    end = monotonic() + 30
    while word not in (told := (await somebody.tool("memory_query", {"operation": "episodes", "query": word})).text):
        assert monotonic() < end, told
        await asyncio.sleep(0.1)


@pytest.mark.req("V-185")
async def test_an_evaluator_that_talks_nonsense_leaves_the_plan_as_it_was(desk: Desk, somebody: Person) -> None:
    word = f"curlew{uuid4().hex[:8]}"
    steps = [step("look", 1), step("gone", 1, "node.get.v1", id="no-such-node"), step("last", 2)]
    scripted(desk, word, "decompose", {"title": "T", "kind": "k", "steps": steps})
    desk.model.fail("evaluate", Fault(content="Well, who can say?", about=word))
    scripted(desk, word, "task_report", REPORT)
    scripted(desk, word, "criticise", {"score": 0.5, "reason": "half"})
    found = await ended(somebody, await task(somebody, f"Find out about {word}"))
    assert [one["state"] for one in found["progress"]["steps"]] == ["done", "failed", "done"]
    assert (found["status"], found["progress"]["adjusted"]) == ("completed", False)


async def test_a_model_plans_a_loop_over_the_answer_to_a_question_and_each_write_waits_for_a_person(
    desk: Desk, somebody: Person
) -> None:
    word = f"heron{uuid4().hex[:8]}"
    for title, due in (("Mend the nets", "2024-03-01"), ("Paint the hull", "2024-03-02"), ("Buy rope", "2999-01-01")):
        made = await somebody.tool("task.create.v1", {"title": title, "dueDate": due})
        assert made.status_code == 200, made.text
    overdue = {"id": "overdue", "description": "Find what is overdue.", "question": "Which tasks are overdue?", "wave": 1}
    each = {"of": "overdue", "path": "items[].{id: id, title: title}"}
    steps = [
        overdue,
        step("why", 2, "node.get.v1", id={"$item": "id"}) | {"each": each},
        step("note", 3, "task.create.v1", title='Ask about {"$item": "title"}') | {"each": each},
        step("none", 3) | {"when": {"of": "overdue", "path": "items", "is": "empty"}},
    ]
    scripted(desk, word, "decompose", {"title": "T", "kind": "k", "steps": steps})
    scripted(desk, word, "wishes", {"calls": []}, {"calls": []})
    scripted(desk, word, "task_report", REPORT | {"used": ["overdue"]})
    scripted(desk, word, "criticise", {"score": 0.9, "reason": "as asked"})
    id = await task(somebody, f"Make a task to ask about each overdue one, {word}")
    asked = []
    for _ in range(2):
        waiting = await waits(somebody, id)
        asked.append(waiting["arguments"]["title"])
        answer = await somebody.http.post(f"/api/v1/approvals/{waiting['approval_id']}", json={"decision": "approve"})
        assert answer.status_code == 200, answer.text
    found = await ended(somebody, id)
    assert sorted(asked) == ["Ask about Mend the nets", "Ask about Paint the hull"]
    assert {one["id"]: (one["state"], one["code"]) for one in found["progress"]["steps"]} == {
        "overdue": ("done", None), "why": ("done", None), "note": ("done", None), "none": ("skipped", "task.condition"),
    }  # fmt: skip
    assert (found["status"], found["progress"]["tool_calls"]) == ("completed", 5)


async def waits(person: Person, turn: str) -> dict[str, Any]:
    """The approval that a turn waits for."""
    end = monotonic() + 60
    while True:
        listed = (await person.http.get("/api/v1/approvals", params={"status": "pending"})).json()["approvals"]
        if mine := [one for one in listed if one["turn_id"] == turn]:
            return mine[0]
        assert monotonic() < end, await person.turn(turn)
        await asyncio.sleep(0.1)


@pytest.mark.req("V-004", "V-167", "V-168", "V-179")
async def test_a_text_for_others_may_look_up_the_persons_style_with_no_approval(desk: Desk, somebody: Person) -> None:
    word = f"tern{uuid4().hex[:8]}"
    text = f"Write a LinkedIn post about {word}"
    scripted(desk, word, "intent", {"tier": "sonnet", "branch": "action", "persona": "content_writer", "topic": False})
    desk.model.fail("tools", Fault(calls=[("memory_query", {"operation": "style", "query": "LinkedIn post"})], about=word))
    scripted(desk, word, "tools", {"answer": "Terns are back.", "confidence": 0.9})
    turn = await answered(somebody, text)
    assert turn["reply"]["user_response"] == "Terns are back."
    called = (await trace(somebody, turn["turn_id"]))["tool_calls"]
    assert [(one["arguments"]["operation"], one["outcome"]) for one in called if one["name"] == "memory_query"] == [
        ("style", "ok")
    ]
    assert turn["approval_id"] is None
    assert "memory_query style" in logged(desk, turn["turn_id"], "memory")


@pytest.mark.req("V-113", "V-114", "V-116")
async def test_what_each_tool_gave_is_seen_before_the_next_move(desk: Desk, somebody: Person) -> None:
    word = f"godwit{uuid4().hex[:8]}"
    desk.model.fail("tools", Fault(calls=[("recall", {"query": "tides"})], about=word))
    desk.model.fail("tools", Fault(calls=[("memory_query", {"operation": "episodes", "query": "tides"})], about=word))
    scripted(desk, word, "tools", {"answer": "Nothing is known of the tides.", "confidence": 0.9})
    turn = await answered(somebody, f"What is known of the tides at {word}? (tier sonnet)")
    found = [
        call.request for call in desk.model.calls if (call.step or "").startswith(turn["turn_id"]) and call.purpose == "tools"
    ]
    seen = [sum(one["role"] == "tool" for one in request["messages"]) for request in found if request is not None]
    assert seen == [0, 1, 2]


@pytest.mark.req("V-076", "V-087", "V-167", "V-180")
async def test_what_cannot_be_undone_is_named_in_the_reasoning_context(desk: Desk, somebody: Person) -> None:
    word = f"plover{uuid4().hex[:8]}"
    scripted(desk, word, "tools", {"answer": "I looked only.", "confidence": 0.9})
    turn = await answered(somebody, f"Delete the node {word}, please, as soon as possible (tier sonnet)")
    block = prompts(desk, turn["turn_id"], "tools")[0]["plan"]
    assert "REASONING CONTEXT" in block
    assert "- Risk: HIGH — node delete is irreversible" in block
    assert "- Tone: " in block
    assert "REASONING CONTEXT" in logged(desk, turn["turn_id"])
    told = await trace(somebody, turn["turn_id"])
    assert told["tier"] == "sonnet"
    assert "node.delete.v1" not in [one["name"] for one in told["tool_calls"]]


@pytest.mark.req("V-006", "V-103", "V-167", "V-181")
@pytest.mark.parametrize(("tier", "used"), [("sonnet", True), ("quality", True), ("haiku", False), ("flash", False)])
async def test_only_a_turn_of_a_deep_tier_looks_ahead(desk: Desk, somebody: Person, tier: str, used: bool) -> None:
    word = f"dunlin{uuid4().hex[:8]}"
    scripted(desk, word, "intent", {"tier": tier, "branch": "action", "persona": "none", "topic": False})
    scripted(desk, word, "tools", {"answer": "Compared.", "confidence": 0.9})
    turn = await answered(somebody, f"Compare both plans for {word}, weigh their risks and recommend one")
    assert ("PRE-FLIGHT REASONING" in logged(desk, turn["turn_id"])) is used
    assert ("PRE-FLIGHT REASONING" in prompts(desk, turn["turn_id"], "tools")[0].get("plan", "")) is used
    purposes = [one["purpose"] for one in (await trace(somebody, turn["turn_id"]))["model_calls"]]
    assert ("preflight" in purposes) is used


@pytest.mark.req("V-007", "V-129", "V-167", "V-182")
@pytest.mark.parametrize(("score", "kept"), [(0.8, True), (0.7, False)])
async def test_approaches_of_tasks_that_went_well_are_recalled_for_the_next(
    desk: Desk, somebody: Person, score: float, kept: bool
) -> None:
    word = f"knot{uuid4().hex[:8]}"
    goals = [f"Report on the moorings of {word} {where}" for where in ("north", "south", "east", "west")]
    for goal in goals:
        scripted(desk, goal, "decompose", {"title": "T", "kind": "moorings", "steps": [step("look", 1)]})
        scripted(desk, goal, "task_report", REPORT)
        scripted(desk, goal, "criticise", {"score": score, "reason": "as asked"})
    for goal in goals[:3]:
        done = await ended(somebody, await task(somebody, goal))
        assert done["status"] == "completed"
        await judged(somebody, done["task_id"])
    last = await ended(somebody, await task(somebody, goals[3]))
    assert (0 < len(last["progress"]["strategies"]) <= 2) is kept
    assert ("PROVEN STRATEGIES" in logged(desk, last["task_id"])) is kept
    [shown] = prompts(desk, last["task_id"], "decompose")
    assert ("an approach that worked" in shown["plan"]) is kept
    turn = await answered(somebody, f"{goals[3]} (tier sonnet)")
    assert ("PROVEN STRATEGIES" in prompts(desk, turn["turn_id"], "tools")[0]["plan"]) is kept
    assert ("PROVEN STRATEGIES" in logged(desk, turn["turn_id"])) is kept


@pytest.mark.req("V-160", "V-183")
async def test_decisions_of_a_long_conversation_are_kept_word_for_word(desk: Desk, somebody: Person) -> None:
    decided = {
        2: "let's do it: the harbour office moves to Leith by 2031",
        5: "approved, sell the ferry Auk for 40,000 pounds",
        9: "go with Fatima Noor for the dredging project",
    }
    conversation, said = None, []
    for number in range(1, 27):
        text = decided.get(number, f"and a little more on gulls, part {number}")
        said.append(text)
        scripted(desk, text, "tools", {"answer": f"Noted, {number}.", "confidence": 0.9})
        turn = await answered(somebody, text, conversation)
        conversation = turn["conversation_id"]
    shown = prompts(desk, turn["turn_id"], "tools")[0]
    before = shown.get("summary", "") + shown["history"]
    assert [text for text in decided.values() if text not in before] == []
    assert [text for text in said[16:25] if text not in shown["history"]] == []
    assert "part 12" not in shown["history"]
    assert len(await somebody.messages(conversation or "")) == 2 * 26


@pytest.mark.req("V-187")
async def test_a_strategy_outlives_a_restart_of_every_part(desk: Desk, somebody: Person) -> None:
    goals = [f"Count the buoys of {uuid4().hex[:8]} {where}" for where in ("north", "south")]
    for goal in goals:
        scripted(desk, goal, "decompose", {"title": "T", "kind": "buoys", "steps": [step("look", 1)]})
        scripted(desk, goal, "task_report", REPORT)
        scripted(desk, goal, "criticise", {"score": 0.9, "reason": "as asked"})
    first = await ended(somebody, await task(somebody, goals[0]))
    await judged(somebody, first["task_id"])
    await desk.restart()
    same = desk.people.known(somebody)
    last = await ended(same, await task(same, goals[1]))
    assert len(last["progress"]["strategies"]) == 1
