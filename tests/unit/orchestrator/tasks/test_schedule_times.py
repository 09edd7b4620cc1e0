"""The times of schedules: where clocks are put, and what is no schedule."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_contracts import BadRequest
from phronesis_contracts.orchestrator import ScheduledRun, SubmitTurn, TaskOrder
from phronesis_orchestrator.tasks.schedules import check_times, iterate_times
from phronesis_orchestrator.turns.turn import check_task_order, hash_request

NOW = datetime(2027, 1, 4, 12, tzinfo=UTC)


def times(cron: str, zone: str, after: datetime, count: int = 3) -> list[str]:
    return [f"{time:%m-%d %H:%M}" for time in islice(iterate_times(cron, zone, after), count)]


def test_a_time_in_the_hour_that_is_left_out_is_due_once_right_after_it() -> None:
    # In Oslo 02:00 becomes 03:00 on 28 March 2027, at 01:00 UTC.
    assert times("30 2 * * *", "Europe/Oslo", datetime(2027, 3, 27, 0, tzinfo=UTC)) == [
        "03-27 01:30",
        "03-28 01:00",
        "03-29 00:30",
    ]


def test_a_time_in_the_hour_that_comes_twice_is_due_once() -> None:
    # In Oslo 03:00 becomes 02:00 on 31 October 2027, at 01:00 UTC.
    assert times("30 2 * * *", "Europe/Oslo", datetime(2027, 10, 30, 12, tzinfo=UTC)) == [
        "10-31 00:30",
        "11-01 01:30",
        "11-02 01:30",
    ]


def test_a_time_is_not_due_again_when_it_is_looked_for_between_its_two_hours() -> None:
    assert times("30 2 * * *", "Europe/Oslo", datetime(2027, 10, 31, 0, 31, tzinfo=UTC), 1) == ["11-01 01:30"]


def test_every_hour_follows_the_clock_through_both_nights() -> None:
    spring = times("0 * * * *", "Europe/Oslo", datetime(2027, 3, 27, 23, 30, tzinfo=UTC), 4)
    autumn = times("0 * * * *", "Europe/Oslo", datetime(2027, 10, 30, 23, 30, tzinfo=UTC), 4)
    assert [time[-5:] for time in spring] == [time[-5:] for time in autumn] == ["00:00", "01:00", "02:00", "03:00"]


def test_a_morning_stays_the_same_hour_of_the_wall_all_year() -> None:
    assert times("0 8 * * 1", "Europe/Oslo", datetime(2027, 3, 20, tzinfo=UTC)) == ["03-22 07:00", "03-29 06:00", "04-05 06:00"]


@pytest.mark.parametrize(
    "cron",
    [
        "* * * * *",
        "*/4 * * * *",
        "0,4 8 1 1 *",
        "58,1 23,0 * * *",
        "0 8 * * * *",
        "0 8 * *",
        "61 8 * * *",
        "0 0 31 2 *",
        "@daily 1 2 3 4",
    ],
)
def test_what_is_no_expression_is_never_due_or_comes_too_often_is_refused(cron: str) -> None:
    with pytest.raises(BadRequest) as caught:
        check_times(cron, "UTC", NOW)
    assert caught.value.field == "cron"


@pytest.mark.parametrize("cron", ["*/5 * * * *", "0 8 * * 1", "0 0 29 2 *", "0 0 LW * *", "15 6 1-7 * MON#1", "30 2,3 * * *"])
def test_times_that_are_five_minutes_apart_are_taken(cron: str) -> None:
    check_times(cron, "Europe/Oslo", NOW)


@pytest.mark.parametrize("zone", ["", "Oslo", "../etc/passwd", "Europe", "europe/oslo", "UTC+1"])
def test_a_name_of_no_time_zone_is_refused(zone: str) -> None:
    with pytest.raises(BadRequest) as caught:
        check_times("0 8 * * *", zone, NOW)
    assert caught.value.field == "time_zone"


@given(st.text("0123456789*/,-#LW JANMON", min_size=9, max_size=40))
def test_whatever_is_written_is_taken_or_refused(cron: str) -> None:
    field = "cron"
    try:
        check_times(cron, "Europe/Oslo", NOW)
    except BadRequest as error:
        field = error.field or ""
    assert field == "cron"


def test_no_caller_can_say_that_a_schedule_started_a_task() -> None:
    run = ScheduledRun(schedule_id="s", due=NOW)
    with pytest.raises(BadRequest):
        check_task_order(SubmitTurn(idempotency_key="k", text="Look", task=TaskOrder(schedule=run)))


def test_a_task_without_a_schedule_has_the_hash_that_it_had_before_there_were_any() -> None:
    request = SubmitTurn(idempotency_key="k", text="Look", agent="nova", task=TaskOrder())
    assert hash_request(request) == "c08bfff25d1413d70ca7448942ee7040c7f652f2c159d85f83c134a4d043733a"
