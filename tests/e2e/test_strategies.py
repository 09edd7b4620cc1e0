"""Strategies on the whole stack: learnt from what a person accepted, lowered by a rejection, edited, retired, and forgotten."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest

from phronesis_local import postgres
from tests.support.bus import eventually
from tests.support.holding import held
from tests.support.people import Person, Town
from tests.support.stack import RunningStack
from tests.support.tasks import GOAL, STRATEGIES, TASKS, ended, judged, task

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
async def colleague(everybody: Town, analyst: Person) -> Person:
    """Somebody new in the tenant that has the sample portfolio: no strategy is theirs yet."""
    return await everybody.someone(tenant=analyst.tenant, role="maestro")


async def command(person: Person, *arguments: str) -> str:
    """What a command of a person prints."""
    line = [sys.executable, "-m", "phronesis", *arguments, "--key", person.key, "--url", str(person.http.base_url)]
    process = await asyncio.create_subprocess_exec(*line, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, err.decode()
    return out.decode()


async def strategies(person: Person, **wanted: str) -> list[dict[str, Any]]:
    answer = await person.http.get(STRATEGIES, params=wanted)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["strategies"]
    return found


@pytest.mark.verify
async def test_a_person_accepts_a_task_and_tends_the_strategy_that_was_learnt_by_command(colleague: Person) -> None:
    done = await ended(colleague, await task(colleague))
    # By rules all of it was counted again, which a person's word then takes the place of.
    assert (done["progress"]["score"], done["progress"]["verified"]["by"]) == (1.0, "checker")
    told = await command(colleague, "tasks", "accept", done["task_id"], "--comment", "the figures are right")
    assert "outcome   accepted by a person: the figures are right" in told.splitlines()
    [kept] = json.loads(await command(colleague, "strategies", "list", "--json"))["strategies"]
    assert (kept["task_id"], kept["state"], kept["goal"], kept["accepted"]) == (done["task_id"], "active", GOAL, 1)
    edited = await command(colleague, "strategies", "edit", kept["id"], "--approach", "Read the gaps first.", "--avoid", "")
    assert "approach  Read the gaps first." in edited.splitlines()
    shown = await command(colleague, "strategies", "show", kept["id"])
    assert f"task {done['task_id']} accepted by a person, edited since" in shown
    assert "state     retired" in await command(colleague, "strategies", "retire", kept["id"])
    assert [one["id"] for one in await strategies(colleague, state="retired")] == [kept["id"]]
    assert "state     active" in await command(colleague, "strategies", "retire", kept["id"], "--undo")
    assert "no difference shown" in await command(colleague, "strategies", "effect")


async def test_what_was_learnt_of_a_result_that_is_rejected_rests_until_it_is_accepted(colleague: Person) -> None:
    id = (await ended(colleague, await task(colleague)))["task_id"]
    said = await judged(colleague, id, accepted=False, comment="not the department")
    [kept] = await strategies(colleague)
    assert (said["progress"]["verified"]["accepted"], kept["state"], kept["accepted"]) == (False, "unverified", 0)
    await judged(colleague, id)
    [kept] = await strategies(colleague)
    assert (kept["state"], kept["accepted"], kept["rejected"]) == ("active", 1, 0)
    await judged(colleague, id, accepted=False)
    [kept] = await strategies(colleague)
    assert (kept["state"], kept["accepted"], kept["rejected"]) == ("unverified", 0, 1)


async def test_only_its_owner_says_what_came_of_a_task_and_sees_what_was_learnt(everybody: Town, colleague: Person) -> None:
    id = (await ended(colleague, await task(colleague)))["task_id"]
    await judged(colleague, id)
    [kept] = await strategies(colleague)
    other = await everybody.someone(tenant=colleague.tenant, role="maestro")
    path = f"{STRATEGIES}/{kept['id']}"
    answers = [
        await other.http.post(f"{TASKS}/{id}/outcome", json={"accepted": False}),
        await other.http.get(path),
        await other.http.patch(path, json={"approach": "Mine."}),
        await other.http.delete(path),
    ]
    assert [(one.status_code, one.json()["code"]) for one in answers] == [(404, "not_found")] * 4
    assert (await strategies(other), (await other.http.get(f"{STRATEGIES}/effect")).json()["used"]["tasks"]) == ([], 0)


@pytest.mark.parametrize("body", [{}, {"approach": " "}, {"approach": None}, {"more": 1}])
async def test_an_edit_that_says_nothing_is_refused(colleague: Person, body: dict[str, Any]) -> None:
    answer = await colleague.http.patch(f"{STRATEGIES}/4f3e2d1c-0b9a-4887-a665-544332211000", json=body)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")


async def test_what_was_learnt_of_a_task_goes_with_its_conversation(colleague: Person) -> None:
    done = await ended(colleague, await task(colleague))
    await judged(colleague, done["task_id"])
    assert len(await strategies(colleague)) == 1
    await colleague.http.delete(f"/api/v1/conversations/{done['conversation_id']}")

    async def gone() -> bool:
        return not await strategies(colleague)

    await eventually(gone)
    answer = await colleague.http.post(f"{TASKS}/{done['task_id']}/outcome", json={"accepted": True})
    assert answer.status_code == 404


async def test_a_running_task_has_no_outcome_yet(stack: RunningStack, colleague: Person) -> None:
    async with held(postgres.dsn(stack.data.postgres), "task.step.1.by.rating") as hold:
        id = await task(colleague)
        await hold.reached()
        answer = await colleague.http.post(f"{TASKS}/{id}/outcome", json={"accepted": True})
        assert (answer.status_code, answer.json()["code"]) == (409, "task.not_ended")
    await ended(colleague, id)
