"""What events take of a window."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_contracts.constitution.session import CalendarEvent
from phronesis_orchestrator.sessions.calendar import HOURS, Occurrence, Window, measure_busy_time
from tests.unit.orchestrator.sessions.fakes import at

UTC_ZONE = ZoneInfo("UTC")
WEEK = Window(date(2026, 11, 23), date(2026, 11, 30), UTC_ZONE)


def hours(*events: Occurrence, window: Window = WEEK) -> float:
    return measure_busy_time(events, window, HOURS).hours


def test_events_that_stand_apart_add_up() -> None:
    assert hours(at(0, 9, 1), at(0, 11, 2), at(3, 14, 0.5)) == 3.5


@pytest.mark.req("O-195")
def test_an_hour_that_several_events_take_counts_once() -> None:
    assert hours(at(0, 9, 2), at(0, 10, 2), at(0, 9, 2), at(0, 9.5, 0.25)) == 3.0


def test_an_event_is_cut_at_the_window_s_ends() -> None:
    found = measure_busy_time((at(-1, 23, 3), at(6, 22, 5)), WEEK, HOURS)
    assert (found.hours, [event.duration_hours for event in found.events]) == (4.0, [2.0, 2.0])


def test_what_only_touches_the_window_is_outside() -> None:
    assert measure_busy_time((at(-1, 23, 1), at(7, 0, 1)), WEEK, HOURS).events == ()


@pytest.mark.parametrize(("day", "expected"), [(0, 8.0), (5, 0.0)])
def test_an_event_of_a_whole_day_takes_the_day_s_working_hours(day: int, expected: float) -> None:
    assert hours(at(day, 0, 24, whole=True)) == expected


def test_a_meeting_on_a_day_that_is_taken_as_a_whole_adds_nothing() -> None:
    assert hours(at(0, 0, 24, whole=True), at(0, 9, 2)) == 8.0


def test_a_conference_of_three_days_takes_their_working_hours_and_not_their_nights() -> None:
    assert hours(at(1, 9, 56)) == 24.0


def test_a_day_whose_events_take_all_its_hours_is_full() -> None:
    found = measure_busy_time((at(1, 8, 9), at(2, 9, 7)), WEEK, HOURS)
    assert found.full == ((date(2026, 11, 24), 9.0, 8.0),)


def test_an_event_over_midnight_belongs_to_two_days() -> None:
    assert measure_busy_time((at(0, 14, 20),), WEEK, (8.0, 10.0, 8, 8, 8, 0, 0)).full == (
        (date(2026, 11, 23), 10.0, 8.0),
        (date(2026, 11, 24), 10.0, 10.0),
    )


def test_days_are_those_of_the_time_zone_also_when_clocks_change() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    sunday = Window(date(2026, 10, 25), date(2026, 10, 26), berlin)  # has 25 hours
    whole = Occurrence("Sleep", sunday.start, sunday.stop - timedelta(hours=1, minutes=30), False)
    assert hours(whole, window=sunday) == 23.5


@pytest.mark.req("O-202", "O-349")
def test_of_an_event_title_start_and_length_are_told() -> None:
    found = measure_busy_time((at(0, 9, 1.5, title="x" * 900),), WEEK, HOURS)
    start = datetime(2026, 11, 23, 9, tzinfo=UTC)
    assert found.events == (CalendarEvent(title="x" * 200, start=start, duration_hours=1.5),)


_MOMENTS = st.datetimes(datetime(2026, 11, 20), datetime(2026, 12, 3), timezones=st.just(UTC))


@given(st.lists(st.tuples(_MOMENTS, st.floats(-5, 60), st.booleans()), max_size=12), st.sampled_from(["UTC", "America/Lima"]))
def test_no_hour_is_counted_twice_and_none_outside_the_window(events: list[tuple[datetime, float, bool]], zone: str) -> None:
    window = Window(WEEK.first, WEEK.end, ZoneInfo(zone))
    many = [Occurrence("x", start, start + timedelta(hours=length), whole) for start, length, whole in events]
    once, twice = measure_busy_time(many, window, HOURS), measure_busy_time(many * 2, window, HOURS)
    assert once.hours == twice.hours
    assert 0 <= once.hours <= 7 * 24
    assert all(window.start <= event.start < window.stop for event in once.events)
