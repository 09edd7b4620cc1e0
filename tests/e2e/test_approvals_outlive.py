"""Questions to people outlive every process: the stack ends and begins anew between the question and its answer."""

from __future__ import annotations

import pytest

from tests.support.approving import Desk

pytestmark = [pytest.mark.verify, pytest.mark.timeout(600)]


async def test_after_a_full_restart_an_answer_or_the_end_of_time_resumes_its_turn(desk: Desk) -> None:
    goals, turns, ids = {}, {}, {}
    for ending in ("approve", "refuse", "expire"):
        goals[ending] = await desk.goal()
        desk.deletes(goals[ending], f"Answered after: {ending}.")
        turns[ending] = await desk.submitted(goals[ending])
        ids[ending] = (await desk.waits(turns[ending]))["approval_id"]
    await desk.restart()
    assert {(await desk.person.turn(turn))["status"] for turn in turns.values()} == {"waiting"}
    assert [await desk.there(goal) for goal in goals.values()] == [True, True, True]
    for decision in ("approve", "refuse"):
        assert (await desk.answer(ids[decision], decision))[0] == 200
    await desk.run_out(ids["expire"])
    ended = {ending: await desk.person.ended(turn) for ending, turn in turns.items()}
    replies = {ending: turn["reply"] and turn["reply"]["user_response"] for ending, turn in ended.items()}
    assert replies == {
        "approve": "Answered after: approve.",
        "refuse": "Answered after: refuse.",
        "expire": "Answered after: expire.",
    }
    statuses = {ending: (await desk.approval(id))["status"] for ending, id in ids.items()}
    assert statuses == {"approve": "granted", "refuse": "refused", "expire": "expired"}
    assert {ending: await desk.there(goal) for ending, goal in goals.items()} == {
        "approve": False,
        "refuse": True,
        "expire": True,
    }
