"""Tasks in a terminal: a line for each step, and reports shown or written."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from phronesis import Client, KeyInfo
from phronesis.calls.turns import add_schedule
from phronesis.cli import account, run, tasks
from phronesis.cli.chat import describe_wait
from phronesis.models import TurnEvent
from phronesis_contracts import BadRequest, TimedOut
from phronesis_contracts.orchestrator import TaskBudget, TurnStatus
from phronesis_contracts.tasks import Task, TaskNotEnded, Trigger
from tests.support.fake_gateway import KEY, FakeGateway

PDF = b"%PDF-1.7 \xff\x00\r\n"


@pytest.fixture(autouse=True)
def stack(gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names the fake gateway, whose tasks have ended."""
    monkeypatch.setenv("PHRONESIS_URL", gateway.url)
    monkeypatch.setenv("PHRONESIS_KEY", KEY)
    gateway.reports = {"markdown": b"# Costs\n\nThey \x1b[31mrose\x07.", "html": b"<h1>Costs</h1>", "pdf": PDF}


def line(**detail: Any) -> str:
    """What is printed of a step that has ended."""
    return tasks._line(TurnEvent(id="1", kind="phase", data={"phase": "step_finished", "detail": detail}))


def test_a_report_is_shown_without_what_would_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tasks", "report", "t1"]) == 0
    assert capsys.readouterr().out == "# Costs\n\nThey [31mrose.\n"


@pytest.mark.parametrize(
    ("name", "options", "form"),
    [
        ("r.pdf", [], "pdf"),
        ("r.HTML", [], "html"),
        ("r.md", [], "markdown"),
        ("r", [], "markdown"),
        ("r", ["--format", "pdf"], "pdf"),
    ],
)
def test_a_report_is_written_as_the_file_is_called_or_as_the_option_says(
    gateway: FakeGateway, tmp_path: Path, name: str, options: list[str], form: str
) -> None:
    assert run(["tasks", "report", "t1", *options, "--output", str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_bytes() == gateway.reports[form]


def test_a_pdf_is_not_shown_in_a_terminal_and_written_to_stdout_where_that_is_meant(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    assert run(["tasks", "report", "t1", "--format", "pdf"]) == 2
    assert b"name a file" in capfdbinary.readouterr().err
    assert run(["tasks", "report", "t1", "--format", "pdf", "--output", "-"]) == 0
    assert capfdbinary.readouterr().out == PDF


def test_a_file_that_cannot_be_written_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["tasks", "report", "t1", "--output", str(tmp_path / "none" / "r.pdf")]) == 2
    assert "r.pdf cannot be written: No such file" in " ".join(capsys.readouterr().err.split())


def test_a_task_that_goes_on_has_no_report(gateway: FakeGateway, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    gateway.reports = {}
    assert run(["tasks", "report", "t1"]) == 3
    assert capsys.readouterr().err == "error: task.not_ended: the task is running\n"
    with pytest.raises(TaskNotEnded):
        client.tasks.report("t1", "pdf")


def test_the_client_returns_the_bytes_of_a_report(client: Client) -> None:
    assert client.tasks.report("t1", "pdf") == PDF
    assert client.tasks.report("t1").startswith(b"# Costs")


@pytest.mark.parametrize(
    ("detail", "said"),
    [
        ({"state": "done", "found": "3 rows: A; B; C", "ms": 420}, "  ✓ Read it: 3 rows: A; B; C (0.4 s)"),
        ({"state": "done", "found": "", "ms": 0}, "  ✓ Read it: done (0.0 s)"),
        ({"state": "failed", "code": "timed_out", "ms": 5_000}, "  ✗ Read it: failed (timed_out) (5.0 s)"),
        ({"state": "skipped", "code": "task.needed_failed"}, "  - Read it: skipped (task.needed_failed) (0.0 s)"),
    ],
)
def test_a_step_is_told_with_what_it_found_or_why_it_found_nothing(detail: dict[str, Any], said: str) -> None:
    assert line(step="s1", description="Read it", **detail) == said


def test_a_plan_is_told_step_by_step() -> None:
    data = {"phase": "plan", "detail": {"waves": 2, "steps": ["1. Read", "2. Count"]}}
    assert tasks._line(TurnEvent(id="1", kind="phase", data=data)) == "plan: 2 steps in 2 waves\n  1. Read\n  2. Count"


@pytest.mark.parametrize("times", [{}, {"cron": "0 8 * * *", "on": Trigger(event="file_arrived")}])
def test_a_schedule_has_times_or_events_and_not_both(client: Client, times: dict[str, Any]) -> None:
    with pytest.raises(BadRequest, match="give `cron` or `on`"):
        client.schedules.add("Look", **times)


def test_a_schedule_of_events_is_sent_without_times() -> None:
    on = Trigger(event="node_changed", property="status")
    body = add_schedule("Look at {node}", on=on, enabled=False).json
    assert body == {
        "goal": "Look at {node}",
        "on": {"event": "node_changed", "property": "status"},
        "agent": "nova",
        "budget": {"seconds": 900.0, "tool_calls": 100},
        "enabled": False,
    }


def test_what_a_task_or_a_turn_waits_for_is_told_in_plain_words() -> None:
    data = {"phase": "waiting_for", "detail": {"waiting_for": "graph", "code": "unavailable", "tries": 2}}
    event = TurnEvent(id="1", kind="phase", data=data)
    said = "waiting for graph, which does not answer; it goes on by itself"
    assert (tasks._line(event), describe_wait(event)) == (said, said)


@dataclass
class Slow:
    """A client of one task that is asked each half hour, and the clock by which it is."""

    states: list[str]
    now: float = 0.0

    @property
    def tasks(self) -> Slow:
        return self

    def get(self, task_id: str) -> Task:
        return task_of(self.states.pop(0))

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += 1_800.0


def task_of(status: str) -> Task:
    return Task.model_construct(task_id="t1", status=TurnStatus(status), budget=TaskBudget(seconds=900.0))


def test_a_task_that_waited_for_longer_than_its_budget_is_watched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(["running", "waiting", "waiting", "waiting", "running", "completed"])
    monkeypatch.setattr(tasks, "time", slow)
    assert tasks._await_end(cast(Client, slow), task_of("running")).status is TurnStatus.COMPLETED


def test_a_task_that_works_for_longer_than_its_budget_is_not_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(["running"] * 4)
    monkeypatch.setattr(tasks, "time", slow)
    with pytest.raises(TimedOut, match="task t1 has not ended"):
        tasks._await_end(cast(Client, slow), task_of("running"))
    assert slow.now == 3_600.0


def test_a_schedule_of_events_takes_no_time_zone(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BadRequest, match="a time zone belongs to `cron`"):
        client.schedules.add("Look", time_zone="Europe/Oslo", on=Trigger(event="file_arrived"))
    assert run(["schedules", "add", "Look", "--on", "file_arrived", "--time-zone", "UTC"]) == 2
    assert "it belongs to times: --at" in " ".join(capsys.readouterr().err.split())


NOW = datetime.now(UTC)
DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("ends", "revoked", "state"),
    [
        (None, None, "good"),
        (NOW + DAY, None, f"good until {NOW + DAY:%Y-%m-%d}"),
        (NOW - DAY, None, "expired"),
        (NOW - DAY, NOW - DAY, "expired"),
        (NOW - DAY, NOW - 2 * DAY, "revoked"),
        (NOW + DAY, NOW, "revoked"),
        (None, NOW, "revoked"),
    ],
)
def test_a_key_whose_time_was_over_before_it_was_revoked_is_shown_as_expired(
    ends: datetime | None, revoked: datetime | None, state: str
) -> None:
    key = KeyInfo(id="k", tenant="t", user="u", role="member", expires_at=ends, revoked_at=revoked)
    assert account._state(key) == state
