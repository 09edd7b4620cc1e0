"""Sessions, workloads and calendars through the front door of a whole stack."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from tests.support.people import Person, Town

CALENDAR = "\r\n".join(
    [
        *("BEGIN:VCALENDAR", "VERSION:2.0", "BEGIN:VEVENT", "UID:1", "SUMMARY:Stand-up", "DESCRIPTION:who is late"),
        *("DTSTART:20200106T090000Z", "DURATION:PT30M", "RRULE:FREQ=DAILY", "END:VEVENT", "END:VCALENDAR", ""),
    ]
)


async def call(person: Person, tool: str, **body: Any) -> dict[str, Any]:
    """What a tool answers."""
    answer = await person.tool(tool, body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def agents(everybody: Town) -> tuple[Person, Person, Person]:
    """An admin and two agents of a tenant whose constitution has a value, a goal and a task."""
    tenant = f"t-{uuid4().hex[:12]}"
    admin, discuss, execute = [await everybody.someone(tenant, role) for role in ("admin", "discuss", "execute")]
    await call(admin, "value.create.v1", id="candour", title="Candour", description="Say what is so.")
    await call(admin, "goal.create.v1", id="answers", title="Answer within a day", target="90 %")
    await call(admin, "relationship.create.v1", fromId="answers", toId="candour", type="SUPPORTED_BY")
    due = datetime.now(UTC).date().isoformat()
    await call(admin, "task.create.v1", id="write", title="Write it down", dueDate=due, effortHours=3)
    return admin, discuss, execute


@pytest.mark.req("O-234", "O-237", "O-242", "O-252", "O-434", "O-441")
async def test_an_agent_begins_its_session_by_the_tool_of_that_name(everybody: Town) -> None:
    _, discuss, execute = await agents(everybody)
    for agent in (discuss, execute):
        found = await call(agent, "session.start.v1", sessionId="s1")
        assert [node["id"] for node in found["foundation"]] == ["candour"]
        assert [(node["id"], node["parents"][0]["id"]) for node in found["vision"]] == [("answers", "candour")]
        assert (found["workload"]["tasks"]["total"], found["warnings"]) == (1, [])
        stats = found["stats"]
        assert stats["totalTokens"] == stats["foundationTokens"] + stats["visionTokens"] + stats["workloadTokens"]
        used = await call(agent, "context.usage.v1", sessionId="s1")
        rows = {row["component"]: row for row in used["rows"]}
        assert (rows["foundation"]["used"], rows["total"]["budget"]) == (stats["foundationTokens"], 200_000)


@pytest.mark.req("O-202", "O-204", "O-232", "O-443")
async def test_a_calendar_that_is_set_is_in_the_workload_and_nothing_but_title_and_time_comes_out(everybody: Town) -> None:
    _, _, execute = await agents(everybody)
    told = await call(execute, "calendar.set.v1", ics=CALENDAR, hours=[8, 8, 8, 8, 8, 8, 8])
    assert (told["source"], told["events"]) == ("ics", 7)
    found = await call(execute, "workload.assess.v1", includeTaskDetails=True)
    assert (found["capacity"]["availableHours"], found["capacity"]["scheduledHours"]) == (56.0, 6.5)
    assert {tuple(sorted(event)) for event in found["calendar"]["events"]} == {("durationHours", "start", "title")}
    assert "late" not in str(found)


@pytest.mark.req("O-225")
async def test_both_names_of_the_workload_s_tool_give_the_same(everybody: Town) -> None:
    _, discuss, _ = await agents(everybody)
    assert await call(discuss, "discuss_workload_assess") == await call(discuss, "workload.assess.v1")


async def test_an_address_inside_is_no_calendar(everybody: Town) -> None:
    admin = await everybody.someone(role="admin")
    for url in ("http://127.0.0.1:4222/", "http://169.254.169.254/latest/meta-data/", "file:///etc/passwd"):
        answer = await admin.tool("calendar.set.v1", {"url": url})
        assert (answer.status_code, (await call(admin, "calendar.get.v1"))["source"]) == (400, "none")
