"""Working hours against what takes them."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from phronesis_contracts import BadRequest
from phronesis_contracts.constitution.session import Capacity
from phronesis_orchestrator.sessions.calendar import HOURS, parse_window
from phronesis_orchestrator.sessions.workload import compute_capacity, count_available_hours
from tests.unit.orchestrator.sessions.fakes import MONDAY

LONDON, AUCKLAND = ZoneInfo("Europe/London"), ZoneInfo("Pacific/Auckland")


@pytest.mark.req("O-189", "O-190", "O-241")
def test_a_window_is_seven_days_from_today_where_nothing_is_stated() -> None:
    found = parse_window(None, None, LONDON, MONDAY)
    days = tuple(found.days())
    assert (found.first.isoformat(), found.end.isoformat(), len(days)) == ("2026-11-23", "2026-11-30", 7)


def test_today_is_the_day_of_the_user_s_time_zone() -> None:
    late = datetime(2026, 11, 23, 20, 0, tzinfo=UTC)
    assert parse_window(None, None, AUCKLAND, late).first.isoformat() == "2026-11-24"


@pytest.mark.req("O-189", "O-190")
@pytest.mark.parametrize(
    ("start", "end", "days"),
    [
        ("2026-11-23", "2026-11-25", 2),
        ("2026-11-23", "2026-11-23", 1),
        ("2026-11-23", "2026-11-24T17:00:00Z", 2),
        ("2026-11-23T09:00:00Z", "2026-11-24T00:00:00Z", 1),
        ("2026-11-23", None, 7),
    ],
)
def test_a_window_is_whole_days_and_an_end_that_is_a_time_has_its_day_inside(start: str, end: str | None, days: int) -> None:
    assert len(tuple(parse_window(start, end, LONDON, MONDAY).days())) == days


@pytest.mark.req("O-190")
@pytest.mark.parametrize(
    ("start", "end", "field"),
    [
        ("2026-11-23", "2026-11-22", "endDate"),
        ("next week", None, "startDate"),
        ("2026-11-23", "2026-13-01", "endDate"),
        ("2026-11-23", "2028-11-23", "endDate"),
        ("9999-12-30", None, "endDate"),
        ("", None, "startDate"),
        ("0001-01-01T00:00:00+14:00", None, "startDate"),
    ],
)
def test_what_is_no_window_is_refused_and_the_field_is_named(start: str, end: str | None, field: str) -> None:
    with pytest.raises(BadRequest) as refused:
        parse_window(start, end, LONDON, MONDAY)
    assert refused.value.field == field


@pytest.mark.req("O-194", "O-430", "C-47")
@pytest.mark.parametrize(
    ("hours", "expected"),
    [(HOURS, 40.0), ((0.0, 6.5, 6.5, 0.0, 4.0, 2.0, 0.0), 19.0), ((0.0,) * 7, 0.0)],
)
def test_a_full_week_has_the_hours_of_its_days(hours: tuple[float, ...], expected: float) -> None:
    assert count_available_hours(parse_window(None, None, LONDON, MONDAY), hours) == expected


@pytest.mark.req("O-193", "O-195", "O-196", "O-430")
def test_thirty_hours_of_forty_are_three_quarters() -> None:
    assert compute_capacity(40.0, 20.0 + 10.0) == Capacity(
        available_hours=40.0, scheduled_hours=30.0, utilization_percent=75.0, zone="yellow"
    )


@pytest.mark.req("O-197", "O-431")
@pytest.mark.parametrize(
    ("scheduled", "zone"),
    [(0.0, "green"), (749.0, "green"), (750.0, "yellow"), (850.0, "yellow"), (851.0, "red"), (2000.0, "red")],
)
def test_zones_begin_and_end_where_they_should(scheduled: float, zone: str) -> None:
    assert compute_capacity(1000.0, scheduled).zone == zone


def test_a_sum_of_many_small_parts_is_in_the_zone_of_the_figure_that_is_told() -> None:
    assert compute_capacity(10.0, sum([0.1] * 85)) == Capacity(
        available_hours=10.0, scheduled_hours=8.5, utilization_percent=85.0, zone="yellow"
    )


@pytest.mark.req("O-198")
@pytest.mark.parametrize(("scheduled", "percent", "zone"), [(5.0, None, "red"), (0.0, 0.0, "green")])
def test_without_working_hours_there_is_no_percentage_for_work(scheduled: float, percent: float | None, zone: str) -> None:
    assert compute_capacity(0.0, scheduled) == Capacity(
        available_hours=0.0, scheduled_hours=scheduled, utilization_percent=percent, zone=zone
    )
