"""Background tasks on the whole stack without a model: reports to the penny, kills, strategies, and the terminal."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pypdfium2
import pytest

from phronesis_local import postgres
from tests.support.bus import eventually
from tests.support.holding import held
from tests.support.people import Person, Town
from tests.support.stack import RunningStack
from tests.support.tasks import GOAL, TASKS, documents, ended, looked, published, task, told

pytestmark = pytest.mark.timeout(600)

OTHER_WORDS = "Write a risk report on the projects of the MOD, 2021 to 2023"


async def started(stack: RunningStack, person: Person, *arguments: str) -> asyncio.subprocess.Process:
    """A command of a person on the stack that has begun."""
    line = [sys.executable, "-m", "phronesis", *arguments, "--key", person.key]
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*line, "--url", str(person.http.base_url), stdout=pipe, stderr=pipe)


@pytest.fixture
async def colleague(everybody: Town, analyst: Person) -> Person:
    """Somebody new in the tenant that has the sample portfolio: no strategy is theirs yet."""
    return await everybody.someone(tenant=analyst.tenant, role="maestro")


async def test_a_task_by_command_gives_a_saved_report_whose_figures_are_the_published_ones(
    stack: RunningStack, colleague: Person
) -> None:
    process = await started(stack, colleague, "task", GOAL, "--wait", "--json")
    out, err = await asyncio.wait_for(process.communicate(), 180)
    assert process.returncode == 0, err.decode()
    found = json.loads(out)
    report = found["progress"]["report"]
    assert told(report) == published()
    assert (found["status"], report["reasoner"]) == ("completed", "extractive")
    assert await documents(stack, found["task_id"]) == [report["document_id"]]
    lines = err.decode().splitlines()
    assert [line.split(":")[0] for line in lines if line.startswith(("plan", "wave"))] == ["plan", "wave 1", "wave 2", "wave 3"]
    assert "  1. List the projects of 2021" in lines
    assert [line for line in lines if line.startswith(f"  ✓ List the projects of 2021: {published()[2021]['projects']} rows: ")]
    listed = await started(stack, colleague, "tasks")
    out, _ = await asyncio.wait_for(listed.communicate(), 60)
    assert found["task_id"] in out.decode()


@pytest.mark.verify
@pytest.mark.parametrize("step", ["1.rows.2022", "1.by.rating", "1.all.rating"], ids=["wave-1", "wave-2", "wave-3"])
async def test_a_kill_midway_in_a_wave_costs_no_figure_and_makes_no_second_document(
    stack: RunningStack, everybody: Town, colleague: Person, step: str
) -> None:
    async with held(postgres.dsn(stack.data.postgres), f"task.step.{step}") as hold:
        id = await task(colleague)
        await hold.reached()
        before = stack.part("orchestrator").process
        stack.process("orchestrator").kill()
        await hold.release()
    await stack.until(lambda now: now.parts["orchestrator"].state == "up" and now.parts["orchestrator"].process != before)
    await everybody.ready()
    found = await ended(colleague, id)
    report = found["progress"]["report"]
    assert (found["status"], told(report), report["reasoner"]) == ("completed", published(), "extractive")
    assert await documents(stack, id) == [report["document_id"]]


@pytest.mark.verify
async def test_a_second_task_in_other_words_recalls_the_strategy_and_makes_fewer_steps(
    everybody: Town, colleague: Person
) -> None:
    first = await ended(colleague, await task(colleague))
    assert (first["progress"]["verified"]["by"], first["progress"]["strategies_arm"]) == ("checker", "none")
    second = await ended(colleague, await task(colleague, OTHER_WORDS))
    newcomer = await everybody.someone(tenant=colleague.tenant, role="maestro")
    without = await ended(newcomer, await task(newcomer, OTHER_WORDS))
    assert (len(first["progress"]["strategies"]), len(second["progress"]["strategies"])) == (0, 1)
    assert second["progress"]["strategies_arm"] == "used"
    assert without["progress"]["strategies"] == []
    steps = [len(one["progress"]["steps"]) for one in (first, second, without)]
    assert (steps[0], steps[1]) == (steps[2], steps[2] - 1)
    assert told(second["progress"]["report"]) == told(without["progress"]["report"]) == published()


@pytest.mark.verify
async def test_ctrl_c_leaves_a_task_running_and_says_how_to_follow_or_cancel_it(stack: RunningStack, colleague: Person) -> None:
    async with held(postgres.dsn(stack.data.postgres), "task.step.1.by.rating") as hold:
        process = await started(stack, colleague, "task", GOAL, "--wait")
        await hold.reached()
        assert process.stderr is not None
        async with asyncio.timeout(60):
            while not (line := (await process.stderr.readline()).decode()).startswith("wave 2"):
                assert line, "the command ended"
        process.send_signal(signal.SIGINT)
        _, err = await asyncio.wait_for(process.communicate(), 60)
        [running] = (await colleague.http.get(TASKS)).json()["tasks"]
        id = running["task_id"]
        assert (process.returncode, running["status"]) == (130, "running")
        said = f"phronesis tasks watch {id}, or end it: phronesis tasks cancel {id}"
        assert said in err.decode()
    assert (await ended(colleague, id))["status"] == "completed"


async def test_a_cancelled_task_says_so_and_commits_nothing(stack: RunningStack, colleague: Person) -> None:
    async with held(postgres.dsn(stack.data.postgres), "task.step.1.by.rating") as hold:
        id = await task(colleague)
        await hold.reached()
        early = await colleague.http.get(f"{TASKS}/{id}/report")
        assert (early.status_code, early.json()["code"]) == (409, "task.not_ended")
        answer = await colleague.http.delete(f"{TASKS}/{id}")
        assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    again = await colleague.http.delete(f"{TASKS}/{id}")
    assert again.status_code == 409
    assert ((await looked(colleague, id))["status"], await documents(stack, id)) == ("cancelled", [])
    without = await colleague.http.get(f"{TASKS}/{id}/report")
    assert (without.status_code, without.json()["code"]) == (404, "task.no_report")


async def test_a_key_hands_a_task_in_once_and_only_its_owner_finds_it(everybody: Town, colleague: Person) -> None:
    key = uuid4().hex
    ids = [await task(colleague, key=key), await task(colleague, key=key)]
    other = await everybody.someone(tenant=colleague.tenant, role="maestro")
    seen = [await other.http.get(f"{TASKS}/{ids[0]}"), await other.http.get(f"{TASKS}/{ids[0]}/events")]
    removed = await other.http.delete(f"{TASKS}/{ids[0]}")
    assert [one.status_code for one in (*seen, removed)] == [404, 404, 404]
    assert (ids[0], (await other.http.get(TASKS)).json()["tasks"]) == (ids[1], [])
    assert [one["task_id"] for one in (await colleague.http.get(TASKS)).json()["tasks"]] == [ids[0]]
    assert (await ended(colleague, ids[0]))["status"] == "completed"


@pytest.mark.verify
async def test_a_report_is_had_in_each_form_and_by_its_owner_alone(
    stack: RunningStack, everybody: Town, colleague: Person, tmp_path: Path
) -> None:
    id = await task(colleague)
    report = (await ended(colleague, id))["progress"]["report"]
    assert {block["kind"] for block in report["blocks"]} >= {"figures", "table", "chart", "sources"}
    address = f"{TASKS}/{id}/report"
    plain = await colleague.http.get(address)
    page = await colleague.http.get(address, headers={"Accept": "text/html"})
    assert plain.headers["content-type"] == "text/markdown; charset=utf-8"
    assert report["text"] in plain.text
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert f'<h1 dir="auto">{report["title"]}</h1>' in page.text
    file = tmp_path / "report.pdf"
    process = await started(stack, colleague, "tasks", "report", id, "--output", str(file))
    _, err = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 0, err.decode()
    document = pypdfium2.PdfDocument(file)
    first = document[0].get_textpage().get_text_range()
    document.close()
    assert f"asked by {colleague.user}" in first
    assert "risk report for the Ministry of Defence" in first
    process = await started(stack, colleague, "tasks", "report", id)
    shown, _ = await asyncio.wait_for(process.communicate(), 60)
    assert shown.decode().strip() == plain.text.strip()
    other = await everybody.someone(tenant=colleague.tenant, role="maestro")
    refused = [await other.http.get(address, params={"format": form}) for form in ("markdown", "html", "pdf")]
    assert [(one.status_code, one.json()["code"]) for one in refused] == [(404, "not_found")] * 3
    wrong = await colleague.http.get(address, params={"format": "docx"})
    assert (wrong.status_code, wrong.json()["field"]) == (400, "format")


@pytest.mark.verify
async def test_spent_calls_end_a_task_typed_with_a_report_of_what_there_is(colleague: Person) -> None:
    found = await ended(colleague, await task(colleague, tool_calls=2))
    progress = found["progress"]
    assert (found["status"], progress["stopped"]["code"], progress["tool_calls"]) == ("completed", "budget_exceeded", 2)
    for year in (2021, 2022):
        assert f"projects in {year}: **{published()[year]['projects']}**" in progress["report"]["text"]
    assert "projects in 2023" not in progress["report"]["text"]
    assert progress["report"]["document_id"] is not None


@pytest.mark.any_store
@pytest.mark.parametrize(
    ("body", "field"), [({"goal": " "}, "goal"), ({"goal": GOAL, "budget": {"seconds": 0}}, "budget.seconds")]
)
async def test_a_bad_order_names_its_field(somebody: Person, body: dict[str, Any], field: str) -> None:
    answer = await somebody.http.post(TASKS, json=body, headers={"Idempotency-Key": uuid4().hex})
    assert (answer.status_code, answer.json()["field"]) == (400, field)


@pytest.mark.verify
async def test_events_go_on_behind_the_last_one_that_was_seen(colleague: Person) -> None:
    id = await task(colleague)
    await ended(colleague, id)
    whole = (await colleague.http.get(f"{TASKS}/{id}/events")).text
    ids = [line.removeprefix("id:").strip() for line in whole.splitlines() if line.startswith("id:")]
    rest = (await colleague.http.get(f"{TASKS}/{id}/events", headers={"Last-Event-ID": ids[2]})).text
    again = [line.removeprefix("id:").strip() for line in rest.splitlines() if line.startswith("id:")]
    assert again == ids[3:]
    assert "task_ended" in rest


async def told_by(stack: RunningStack, person: Person, *arguments: str) -> tuple[int, str, str]:
    """What a command of a person says: its code, its output and its notes."""
    process = await started(stack, person, *arguments)
    out, err = await asyncio.wait_for(process.communicate(), 120)
    return process.returncode or 0, out.decode(), err.decode()


@pytest.mark.verify
async def test_a_schedule_is_made_paused_resumed_and_removed_by_command(stack: RunningStack, colleague: Person) -> None:
    code, out, err = await told_by(stack, colleague, "task", GOAL, "--at", "0 8 * * 1", "--time-zone", "Europe/Oslo", "--json")
    assert code == 0, err
    made = json.loads(out)
    assert (made["cron"], made["time_zone"], made["enabled"], len(made["next_runs"])) == ("0 8 * * 1", "Europe/Oslo", True, 3)
    id = made["schedule_id"]
    code, out, _ = await told_by(stack, colleague, "schedules")
    assert (code, id in out, " 08:00 " in out) == (0, True, True)
    code, out, _ = await told_by(stack, colleague, "schedules", "pause", id)
    assert "paused    until it is resumed" in out
    code, out, _ = await told_by(stack, colleague, "schedules", "resume", id)
    assert "next      " in out
    code, _, err = await told_by(stack, colleague, "schedules", "add", "Look", "--at", "* * * * *")
    assert (code != 0, "5 minutes apart" in err) == (True, True)
    code, _, _ = await told_by(stack, colleague, "schedules", "remove", id)
    assert (code, json.loads((await told_by(stack, colleague, "schedules", "list", "--json"))[1])) == (0, {"schedules": []})


async def started_by(person: Person, id: str) -> dict[str, Any]:
    """The task that the event of a node or a file has started, once it has ended."""
    found: list[dict[str, Any]] = []

    async def begun() -> bool:
        found[:] = [
            one for one in await of_events(person) if id in [thing["id"] for thing in one["schedule"]["event"]["things"]]
        ]
        return bool(found)

    await eventually(begun)
    [task] = found
    return await ended(person, task["task_id"])


async def of_events(person: Person) -> list[dict[str, Any]]:
    """The tasks of a person that events have started."""
    tasks = (await person.http.get(TASKS, params={"limit": 100})).json()["tasks"]
    return [one for one in tasks if (one.get("schedule") or {}).get("event")]


@pytest.mark.verify
async def test_a_changed_node_starts_a_task_of_who_asked_for_it_and_what_that_task_changes_starts_none(
    stack: RunningStack, colleague: Person
) -> None:
    add = ("schedules", "add", "--on", "node_changed", "--type", "task", "--property", "title")
    code, out, err = await told_by(stack, colleague, *add, "Add a task to look after {node}", "--json")
    assert code == 0, err
    made = json.loads(out)
    assert (made["cron"], made["on"]["type"], made["next_runs"]) == ("", "task", [])
    nodes = [f"crane-{uuid4().hex[:6]}" for _ in range(2)]
    for id in nodes:
        answer = await colleague.tool("task.create.v1", {"id": id, "title": "Grease the crane"})
        assert answer.status_code == 200, answer.text
        found = await started_by(colleague, id)
        assert (found["status"], found["goal"]) == ("completed", f"Add a task to look after {id}")
        assert [effect["tool"] for effect in found["progress"]["effects"]][:1] == ["task.create.v1"]
    # The news of what the first run wrote came before that of the second node.
    titles = [thing["title"] for one in await of_events(colleague) for thing in one["schedule"]["event"]["things"]]
    assert [title for title in titles if title.startswith("Look after")] == []
    code, out, _ = await told_by(stack, colleague, "schedules", "show", made["schedule_id"])
    assert "event     node_changed task title" in out
    await told_by(stack, colleague, "schedules", "remove", made["schedule_id"])


@pytest.mark.verify
async def test_events_start_twelve_runs_an_hour_and_the_command_says_how_many_were_left_out(
    stack: RunningStack, colleague: Person
) -> None:
    add = ("schedules", "add", "--on", "node_changed", "--type", "note", "Count the open tasks", "--json")
    code, out, err = await told_by(stack, colleague, *add)
    assert code == 0, err
    id = json.loads(out)["schedule_id"]
    for _ in range(14):
        answer = await colleague.tool("note.create.v1", {"id": f"note-{uuid4().hex[:6]}", "title": "The crane is old"})
        assert answer.status_code == 200, answer.text

    async def all_heard() -> bool:
        state = (await colleague.http.get(f"/api/v1/schedules/{id}")).json()
        return bool(state["runs"] + state["skipped"] == 14)

    await eventually(all_heard)
    assert len(await of_events(colleague)) == 12
    code, out, _ = await told_by(stack, colleague, "schedules", "show", id)
    assert "runs      12, 2 events left out: they start 12 runs an hour at most" in out
    await told_by(stack, colleague, "schedules", "remove", id)


@pytest.mark.verify
async def test_a_file_that_arrived_starts_a_task_of_its_owner_alone(
    stack: RunningStack, everybody: Town, colleague: Person
) -> None:
    other = await everybody.someone(tenant=colleague.tenant, role="maestro")
    for person in (colleague, other):
        add = ("schedules", "add", "--on", "file_arrived", "--type", "document", "List the open tasks, and see {file}")
        code, _, err = await told_by(stack, person, *add, "--json")
        assert code == 0, err
    file = await colleague.uploaded("rent.txt", b"The rent of the shop is due on the first of May.", "text/plain")
    found = await started_by(colleague, file)
    assert found["goal"] == f"List the open tasks, and see {file}"
    [thing] = found["schedule"]["event"]["things"]
    assert (thing["title"], found["schedule"]["event"]["label"]["kind"]) == ("rent.txt", "document")
    assert await of_events(other) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "give the times or the event"),
        (("--at", "0 8 * * *", "--on", "file_arrived"), "give the times or the event"),
        (("--at", "0 8 * * *", "--type", "task"), "it belongs to an event"),
        (("--on", "file_arrived", "--time-zone", "UTC"), "it belongs to times"),
        (("--on", "file_arrived", "--property", "status"), "only nodes have properties"),
        (("--on", "node_changed", "--type", "tsk"), "there is no such type"),
    ],
)
async def test_what_starts_no_task_is_refused_by_command(
    stack: RunningStack, colleague: Person, given: tuple[str, ...], said: str
) -> None:
    code, _, err = await told_by(stack, colleague, "schedules", "add", "Look", *given)
    assert code != 0
    assert said in " ".join(err.split())


@pytest.mark.parametrize("times", [{}, {"cron": "0 8 * * *", "on": {"event": "file_arrived"}}])
async def test_a_schedule_without_times_and_events_or_with_both_is_refused(colleague: Person, times: dict[str, Any]) -> None:
    answer = await colleague.http.post("/api/v1/schedules", json={"goal": "Look", **times}, headers={"Idempotency-Key": "k"})
    assert answer.status_code == 400
    assert "give `cron` or `on`" in answer.text


async def test_a_dry_run_by_command_shows_the_calls_and_saves_nothing(stack: RunningStack, colleague: Person) -> None:
    code, out, err = await told_by(stack, colleague, "task", GOAL, "--dry-run", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert (found["status"], found["dry_run"], found["progress"].get("report")) == ("completed", True, None)
    calls = found["progress"]["calls"]
    assert calls
    assert {call["approval"] for call in calls} == {"no"}
    assert await documents(stack, found["task_id"]) == []
    assert await colleague.messages(found["conversation_id"]) == []
    code, out, _ = await told_by(stack, colleague, "tasks", "show", found["task_id"])
    assert "calls     " in out


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        ("Delete all projects that are rated Red", "This can be done: “List projects that are rated Red”"),
        ("Draft an e-mail to my colleagues that I am quitting the project", "This can be done: “List projects”"),
        ("Translate the risk register of my programme into French", "nothing that this agent has a tool for"),
        ("Report on the whole-life cost of the Home Office's projects in verse", "nothing is delivered “in verse”"),
        ("List the projects rated Red in 2022 and phone their owners", "can be done: “List the projects rated Red in 2022”"),
    ],
)
async def test_a_goal_that_cannot_be_done_ends_before_anything_is_done_and_names_one_that_can(
    colleague: Person, goal: str, said: str
) -> None:
    found = await ended(colleague, await task(colleague, goal))
    assert (found["status"], found["problem"]["code"], found["progress"]["steps"]) == ("failed", "task.no_plan", [])
    assert said in found["problem"]["detail"]


async def test_what_a_task_writes_is_in_the_graph_and_what_it_lists_then_has_it(colleague: Person) -> None:
    name = f"Grease the crane {uuid4().hex[:6]}"
    order = f"Add a task to {name[0].lower()}{name[1:]}, due 14 December, with priority high"
    goal = f"{order}, and then list the open tasks as a table"
    found = await ended(colleague, await task(colleague, goal))
    report = found["progress"]["report"]
    assert (found["status"], found["progress"]["score"]) == ("completed", 1.0)
    rows = next(one["rows"] for one in report["blocks"] if one["kind"] == "table")
    assert any(name in row and any(str(cell).endswith("-12-14") for cell in row) for row in rows)


async def test_a_report_is_made_over_any_type_of_the_ontology(colleague: Person) -> None:
    found = await ended(colleague, await task(colleague, "Give me an overview of the risks with charts"))
    report = found["progress"]["report"]
    assert (found["status"], found["progress"]["score"]) == ("completed", 1.0)
    assert {"figures", "table", "limits"} <= {one["kind"] for one in report["blocks"]}
    assert "{" not in report["text"]
