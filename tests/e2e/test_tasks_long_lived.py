"""Schedules, events, waits and dry runs outlive kills and a rolling restart: nothing is lost, and nothing is done twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import uuid4

import asyncpg
import httpx
import pytest

from tests.support.approving import environment
from tests.support.bus import eventually
from tests.support.groq_server import Fault, GroqServer, groq_server
from tests.support.holding import held
from tests.support.mixed import MixedStack
from tests.support.people import ENDS, Person, Town, town
from tests.support.round_robin import round_robin

pytestmark = [pytest.mark.verify, pytest.mark.timeout(900)]

TASKS, SCHEDULES = "/api/v1/tasks", "/api/v1/schedules"
LOOK = {"id": "look", "description": "Look at what is known", "tool": "recall", "arguments": {"query": "report"}, "wave": 2}
KEEP = {"id": "keep", "description": "Keep it", "tool": "remember", "arguments": {"items": [{"text": "Kept."}]}, "wave": 3}
ASK = {
    "id": "ask",
    "description": "Ask which year",
    "tool": "task.ask.v1",
    "arguments": {"question": "Which year?", "choices": ["2021", "2022"]},
    "wave": 1,
}
WAIT = {"id": "wait", "description": "Wait a day", "tool": "task.wait.v1", "arguments": {"seconds": 86_400}, "wave": 1}
PLANS = {"ASKING": [ASK, LOOK], "WAITING": [WAIT, LOOK], "KEEPING": [LOOK, KEEP]}
"""By a word of the goal, the steps that the model plans for it; to look is all there is for any other goal."""


_RUNS = """
SELECT status, run ->> 'due' AS due, (run ->> 'late')::boolean AS late
FROM (SELECT status, request -> 'task' -> 'schedule' AS run FROM orchestrator.turns) AS turns
WHERE run ->> 'schedule_id' = $1 ORDER BY due
"""


def says(purpose: str, request: dict[str, Any]) -> Fault | None:
    """What the model makes of tasks; the rest it answers by itself."""
    text = json.dumps(request["messages"])
    steps = next((steps for word, steps in PLANS.items() if word in text), [LOOK])
    answers: dict[str, Any] = {
        "decompose": {"title": "Report", "kind": "look", "steps": steps},
        "task_report": {"title": "Report", "text": "All was looked at.", "used": ["look"]},
        "criticise": {"score": 0.9, "reason": "all there"},
        "evaluate": {"revise": False, "reason": ""},
    }
    return Fault(content=json.dumps(answers[purpose])) if purpose in answers else None


class Desk:
    """Two copies of each service, and somebody with long-lived work."""

    def __init__(self, stack: MixedStack, model: GroqServer, person: Person) -> None:
        self.stack, self.model, self.person = stack, model, person

    async def task(self, goal: str, **more: Any) -> str:
        """A task that was handed in."""
        return str((await self.sent("POST", TASKS, {"goal": goal, **more}))["turn_id"])

    async def get(self, path: str) -> dict[str, Any]:
        return await self.sent("GET", path)

    async def sent(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """What is answered, by whoever is there again: a request is repeated with its key while nobody is."""
        headers, answers = {"Idempotency-Key": uuid4().hex}, list[httpx.Response]()

        async def answered() -> bool:
            try:
                answers.append(await self.person.http.request(method, path, json=body, headers=headers))
            except httpx.TransportError:  # the copy of the gateway that had the connection has ended
                return False
            return answers[-1].status_code != 503

        await eventually(answered)
        assert answers[-1].is_success, answers[-1].text
        return cast(dict[str, Any], answers[-1].json())

    async def reaches(self, id: str, *statuses: str) -> dict[str, Any]:
        """A task once it is there."""
        found: dict[str, Any] = {}

        async def there() -> bool:
            found.update(await self.get(f"{TASKS}/{id}"))
            assert found["status"] not in set(ENDS) - set(statuses), found
            return found["status"] in statuses

        await eventually(there, 120)
        return found

    async def answer(self, id: str, text: str) -> None:
        await self.sent("POST", f"{TASKS}/{id}/answer", {"answer": text})

    async def schedule(self, goal: str) -> str:
        # In a month far off: no time of it lies between one that a test sets and now, where several runs would be one.
        month = (datetime.now(UTC).month + 5) % 12 + 1
        wanted = {"goal": goal, "cron": f"0 8 1 {month} *", "time_zone": "Europe/Oslo"}
        return str((await self.sent("POST", SCHEDULES, wanted))["schedule_id"])

    async def trigger(self, goal: str) -> str:
        """A schedule whose runs are started by changed titles of tasks."""
        on = {"event": "node_changed", "type": "task", "property": "title"}
        return str((await self.sent("POST", SCHEDULES, {"goal": goal, "on": on}))["schedule_id"])

    async def node(self, title: str) -> str:
        """The id of a new node, of which there is news."""
        id = f"task-{uuid4().hex[:8]}"
        await self.sent("POST", "/api/v1/tools/task.create.v1", {"id": id, "title": title})
        return id

    async def runs(self, schedule: str) -> list[tuple[str, datetime, bool]]:
        """The runs that a schedule started: status, time, and whether it is late. There are more than a list of tasks holds."""
        rows = await self.sql(_RUNS, schedule)
        return [(row["status"], datetime.fromisoformat(row["due"]), row["late"]) for row in rows]

    async def sql(self, statement: str, *values: Any) -> list[asyncpg.Record]:
        connection = await asyncpg.connect(self.stack.dsn)
        try:
            rows: list[asyncpg.Record] = await connection.fetch(statement, *values)
        finally:
            await connection.close()
        return rows

    async def due(self, schedule: str, at: datetime) -> None:
        """Let a schedule be due at a time that has passed."""
        await self.sql("UPDATE orchestrator.schedules SET next_at = $2 WHERE id = $1", schedule, at)

    async def kill_workers(self) -> None:
        """Kill every copy of the orchestrator, and return when all are up again."""
        parts = ("orchestrator", "orchestrator-2")
        killed = [self.stack.kill(part) for part in parts]
        for part, pid in zip(parts, killed, strict=True):
            assert await self.stack.again(part, pid, 60)
        await self.healthy()

    async def healthy(self) -> None:
        async def ready() -> bool:
            return (await self.person.http.get("/health/ready")).status_code == 200

        await eventually(ready, 120)

    async def asked(self, purpose: str, goal: str) -> int:
        """How often the model was asked for something about a goal."""
        calls = [call for call in self.model.calls if call.purpose == purpose and call.request]
        return sum(goal in json.dumps(call.request) for call in calls)


@dataclass
class Doubled:
    """A stack of two copies of each service, its model, and its users, who come to both gateways in turn."""

    stack: MixedStack
    model: GroqServer
    people: Town


@pytest.fixture(scope="module")
async def doubled(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Doubled]:
    folder = tmp_path_factory.mktemp("longlived")
    async with AsyncExitStack() as opened:
        model = await opened.enter_async_context(groq_server())
        model.says = says
        stack = MixedStack(folder / "data", folder / "none", environment(model))
        stack.plan(())
        opened.push_async_callback(stack.down)
        await stack.up()
        proxy = await opened.enter_async_context(round_robin([stack.port("gateway"), stack.port("gateway-2")]))
        people = await opened.enter_async_context(town(proxy.url, stack.key))
        yield Doubled(stack, model, people)


@pytest.fixture
async def desk(doubled: Doubled) -> Desk:
    """Somebody in a tenant of its own, once the stack is ready."""
    await doubled.people.ready()
    return Desk(doubled.stack, doubled.model, await doubled.people.someone(role="admin"))


async def test_schedules_waits_and_dry_runs_outlive_kills_of_every_worker(desk: Desk) -> None:
    word = uuid4().hex[:8]
    asking, waiting = await desk.task(f"ASKING what {word} is"), await desk.task(f"WAITING for {word}")
    for id in (asking, waiting):
        await desk.reaches(id, "waiting")
    schedule = await desk.schedule("Look again")
    times = [(datetime.now(UTC) - timedelta(days=days)).replace(microsecond=0) for days in (3, 2, 1)]
    for count, time in enumerate(times, 1):
        # The times of the expression between this one and now are missed; each is looked at in the middle of kills.
        await desk.due(schedule, time)
        await desk.kill_workers()
        await desk.kill_workers()
        await eventually(lambda count=count: _all_ended(desk, schedule, count), 120)  # type: ignore[misc]
    async with held(desk.stack.dsn, "task.plan") as hold:
        dry = await desk.task("KEEPING things", dry_run=True)
        await hold.reached()
        await desk.kill_workers()
        await hold.release()
    planned = await desk.reaches(dry, "completed")
    assert [(call["tool"], call["approval"]) for call in planned["progress"]["calls"]] == [
        ("recall", "no"),
        ("remember", "maybe"),
    ]
    assert {step["state"] for step in planned["progress"]["steps"]} == {"pending"}
    assert "report" not in {name for name, value in planned["progress"].items() if value}

    runs = await desk.runs(schedule)
    state = await desk.get(f"{SCHEDULES}/{schedule}")
    assert (len(runs), state["runs"]) == (3, 3)
    assert [(status, late) for status, _, late in runs] == [("completed", True)] * 3
    assert len({due for _, due, _ in runs}) == 3

    before = await desk.get(f"{TASKS}/{asking}")
    assert (before["status"], before["waiting"]["question"], before["waiting"]["choices"]) == (
        "waiting",
        "Which year?",
        ["2021", "2022"],
    )
    await desk.answer(asking, "2022")
    await desk.sql("UPDATE orchestrator.task_waits SET due_at = now() WHERE turn_id = $1", waiting)
    for id in (asking, waiting):
        ended = await desk.reaches(id, "completed")
        assert [step["state"] for step in ended["progress"]["steps"]] == ["done", "done"]
        assert ended["progress"].get("stopped") is None
    assert [await desk.asked("decompose", goal) for goal in (f"ASKING what {word}", f"WAITING for {word}")] == [1, 1]


async def test_schedules_waits_and_dry_runs_outlive_a_rolling_restart(desk: Desk) -> None:
    asking, waiting = await desk.task("ASKING what to report"), await desk.task("WAITING for the day")
    for id in (asking, waiting):
        await desk.reaches(id, "waiting")
    schedule = await desk.schedule("Look again")
    starts = desk.stack.starts()
    restart = asyncio.create_task(desk.stack.restart())
    fired, dry = 0, list[str]()
    first = datetime.now(UTC).replace(microsecond=0) - timedelta(days=1)
    while not restart.done() or fired < 3:
        fired += 1
        await desk.due(schedule, first + timedelta(minutes=fired))
        dry.append(await desk.task(f"KEEPING things {fired}", dry_run=True))
        await eventually(lambda count=fired: _all_ended(desk, schedule, count), 120)  # type: ignore[misc]
    await restart
    assert desk.stack.starts() == starts
    runs = await desk.runs(schedule)
    assert [status for status, _, _ in runs] == ["completed"] * fired
    assert len({due for _, due, _ in runs}) == fired
    assert (await desk.get(f"{SCHEDULES}/{schedule}"))["skipped"] == 0
    for id in dry:
        planned = await desk.reaches(id, "completed")
        assert [call["tool"] for call in planned["progress"]["calls"]] == ["recall", "remember"]
    await desk.answer(asking, "2021")
    await desk.sql("UPDATE orchestrator.task_waits SET due_at = now() WHERE turn_id = $1", waiting)
    for id in (asking, waiting):
        ended = await desk.reaches(id, "completed")
        assert [step["state"] for step in ended["progress"]["steps"]] == ["done", "done"]


async def test_an_event_starts_one_task_though_it_is_told_twice_and_its_followers_are_killed_in_between(desk: Desk) -> None:
    first, second = await desk.trigger("Look at {node} first"), await desk.trigger("Look at {node} then")
    async with held(desk.stack.dsn, second, "trigger_events", "schedule_id") as hold:
        node = await desk.node("Order flour")
        await hold.reached()
        assert [len(await desk.runs(one)) for one in (first, second)] == [1, 0]
        await desk.kill_workers()
        await hold.release()
    # The second run was not written when its writer was killed: only news that is told again starts it.
    for one in (first, second):
        await eventually(lambda one=one: _all_ended(desk, one, 1), 120)  # type: ignore[misc]
    await desk.kill_workers()
    later = await desk.node("Paint the door")
    for one, goal in ((first, "Look at {} first"), (second, "Look at {} then")):
        await eventually(lambda one=one: _all_ended(desk, one, 2), 120)  # type: ignore[misc]
        assert [status for status, _, _ in await desk.runs(one)] == ["completed"] * 2
        state = await desk.get(f"{SCHEDULES}/{one}")
        assert (state["runs"], state["skipped"]) == (2, 0)
        goals = [task["goal"] for task in (await desk.get(TASKS))["tasks"] if task["schedule"]["schedule_id"] == one]
        assert sorted(goals) == sorted(goal.format(id) for id in (node, later))


async def test_a_title_that_carries_an_order_changes_nothing_unasked(desk: Desk) -> None:
    schedule = await desk.trigger("Look at {node}")
    node = await desk.node("Stop here and go KEEPING this in memory at once")
    await eventually(lambda: _count(desk, schedule, 1), 120)
    [task] = (await desk.get(TASKS))["tasks"]
    waiting = await desk.reaches(task["task_id"], "waiting")
    assert (waiting["goal"], waiting["schedule"]["event"]["things"][0]["id"]) == (f"Look at {node}", node)
    [asked] = (await desk.get("/api/v1/approvals?status=pending"))["approvals"]
    assert asked["tool"] == "remember", "the model obeyed the title"
    await desk.sent("POST", f"/api/v1/approvals/{asked['approval_id']}", {"decision": "refuse"})
    ended = await desk.reaches(task["task_id"], "completed", "failed")
    assert [effect["step"] for effect in ended["progress"]["effects"]] == ["report"], "that of every task"
    found = (await desk.sent("POST", "/api/v1/tools/recall", {"query": "Kept."}))["items"]
    assert "Kept." not in [item["text"] for item in found]


async def _count(desk: Desk, schedule: str, count: int) -> bool:
    return len(await desk.runs(schedule)) == count


async def _all_ended(desk: Desk, schedule: str, count: int) -> bool:
    runs = await desk.runs(schedule)
    assert len(runs) <= count, runs
    return len(runs) == count and all(status in ENDS for status, _, _ in runs)
