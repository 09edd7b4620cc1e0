"""Days and periods that a message names, as the agents who look after a graph read them."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from phronesis_orchestrator.agents.counsel.reading import Reader, Record

RECORD = Record()
TODAY = RECORD.today


def periods(text: str) -> list[tuple[date | None, date | None]]:
    return [(one.first, one.last) for one in Reader(RECORD).read(text).periods]


def one_day(ahead: int) -> list[tuple[date | None, date | None]]:
    return [(TODAY + timedelta(days=ahead), TODAY + timedelta(days=ahead))]


@pytest.mark.parametrize(
    ("text", "ahead"),
    [
        ("two weeks from today", 14),
        ("two weeks from now", 14),
        ("10 days later", 10),
        ("3 days after tomorrow", 4),
    ],
)
def test_a_length_of_time_is_counted_from_the_day_behind_it(text: str, ahead: int) -> None:
    assert periods(text) == one_day(ahead)


@pytest.mark.parametrize("text", ["two weeks after 2030-12-01", "14 days from 1 December 2030"])
def test_a_length_of_time_is_counted_from_a_date(text: str) -> None:
    assert periods(text) == [(date(2030, 12, 15), date(2030, 12, 15))]


def test_a_length_of_time_ahead_is_a_period_and_no_day() -> None:
    assert periods("in two weeks") == [(TODAY, TODAY + timedelta(days=14))]


@pytest.mark.parametrize("text", ["due this week or before", "due this week or earlier"])
def test_a_period_or_before_has_no_first_day_and_holds_what_is_late(text: str) -> None:
    [found] = Reader(RECORD).read(text).periods
    assert (found.first, found.last, found.whole) == (None, TODAY + timedelta(days=6 - TODAY.weekday()), True)


def test_a_period_or_later_has_no_last_day() -> None:
    assert [last for _, last in periods("due this week or later")] == [None]


def test_before_a_day_says_nothing_of_what_is_late() -> None:
    [found] = Reader(RECORD).read("due before Friday").periods
    assert not found.whole
