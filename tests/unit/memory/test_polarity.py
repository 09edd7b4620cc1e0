"""Whether two texts ask for opposite things: a set of pairs with right answers, half of them consistent."""

from __future__ import annotations

import math

import pytest

from phronesis_memory.constitution.contradictions import Limit, find_limits, find_opposition
from tests.support.cases import for_each

CONTRARY = [
    ("Always publish our data openly", "Never publish our data openly"),
    ("Take outside funding early", "We do not take outside funding"),
    ("Work at most 40 hours a week", "Work at least 50 hours a week"),
    ("Keep raw data private", "Keep raw data public"),
    ("Increase the number of partners", "Reduce the number of partners"),
    ("Decide slowly about people", "Decide quickly about people"),
    ("Prefer depth over breadth in research", "Prefer breadth over depth in research"),
    ("Spend no more than 10% of income on tools", "Spend over 15 percent of income on tools"),
    ("We don't hire fast", "Hire fast when money allows"),
    ("Avoid meetings before noon", "Hold meetings before noon"),
    ("Centralise purchasing decisions in one office", "Decentralise purchasing decisions to each team"),
    ("Share early drafts with partners", "Withhold early drafts from partners"),
    ("Keep a reserve of at least €50k", "Keep a reserve under €20k"),
    ("Double the days spent sampling on the mud", "Halve the days spent sampling on the mud"),
    ("Every study is preregistered before data collection", "Studies are not preregistered before data collection"),
]
CONSISTENT = [
    ("Never ship a release without tests", "Always test a release before it ships"),
    ("Work at most 40 hours a week", "Rest at least 8 hours a day"),
    ("Do not increase debt", "Reduce debt"),
    ("Decide slowly about people", "Decide quickly about tools"),
    ("Share results early", "Share results before they are perfect"),
    ("Be honest even when it costs us", "Honesty first: never mislead a reader"),
    ("Write down every decision", "Decisions are recorded in writing with their reasons"),
    ("Answer every reader within two days", "Do not answer readers on weekends"),
    ("Grow the circle of readers", "Grow the circle of partners"),
    ("Never publish personal data", "Publish research data openly"),
    ("Spend at most 10% of income on tools", "Spend at most 5% of income on tools"),
    ("Keep a reserve of at least €50k", "Keep a reserve of at least six months"),
    ("Do not work on weekends", "Keep weekends free"),
    ("Prefer depth over breadth in research", "Depth before breadth"),
    ("Keep raw data private", "Keep raw data safe"),
    ("", "Never publish our data openly"),
]
# Written apart from the rules, to see what they reach.
FOREIGN = [
    ("Grow quickly, even at a loss", "Grow slowly and stay profitable"),
    ("All meetings are recorded", "No meeting is recorded"),
    ("Researchers choose their own topics", "Topics are chosen for researchers by the board"),
    ("Accept anonymous donations", "Refuse anonymous donations"),
    ("Answer within one day", "Take at least three days before answering"),
    ("We publish every result", "We publish only positive results"),
    ("Work from anywhere", "Everyone works in the office"),
    ("Expand to three new countries this year", "Do not expand to new countries this year"),
    ("Always consult the village before a survey", "Surveys never wait for the village"),
    ("Keep the team below ten people", "Hire until we are more than fifteen people"),
    ("Use open-source software only", "Use commercial software whenever it saves time"),
    ("Never fly to conferences", "Fly to every major conference"),
    ("Save half of each grant", "Spend each grant completely"),
    ("Interns are paid", "Interns are not paid"),
]
FOREIGN_CONSISTENT = [
    ("Grow slowly", "Grow with care"),
    ("All meetings are recorded", "Minutes of meetings are published"),
    ("Never fly to conferences", "Take the train to conferences"),
    ("Accept donations", "Refuse donations with conditions"),
    ("Do not publish before review", "Publish after review"),
    ("Keep the team below ten people", "Keep the team below twelve people"),
    ("No one works more than 40 hours", "Nobody works on Sundays"),
    ("Interns are paid", "Interns are not employees"),
    ("Data are never sold", "Data are shared without charge"),
    ("Respect the village council", "Never survey land without the village council"),
    ("Reduce emissions by at least 10 percent", "Reduce emissions by at least 30 percent"),
    ("Tell bad news early", "Do not keep bad news secret"),
    ("Hire slowly", "Do not rush hiring"),
    ("Protect the quiet of the marsh", "Keep boats out of the marsh"),
]


@pytest.mark.req("O-398")
def test_of_pairs_in_anybodys_words_more_than_half_are_told_and_no_consistent_one() -> None:
    assert sum(find_opposition(one, other) is not None for one, other in FOREIGN) >= 10
    assert [pair for pair in FOREIGN_CONSISTENT if find_opposition(*pair)] == []


@pytest.mark.req("O-398")
@for_each(("one", "other"), CONTRARY)
def test_texts_that_oppose_each_other_are_told_with_their_reason(one: str, other: str) -> None:
    assert f"“{one}” against “{other}”" in (find_opposition(one, other) or "")
    assert find_opposition(other, one) is not None


@pytest.mark.req("O-398")
@for_each(("one", "other"), CONSISTENT)
def test_texts_that_agree_are_not_told(one: str, other: str) -> None:
    assert (find_opposition(one, other), find_opposition(other, one)) == (None, None)


@for_each("text", [text for pair in CONTRARY for text in pair])
def test_no_text_opposes_itself(text: str) -> None:
    assert find_opposition(text, text) is None


@pytest.mark.req("O-398")
def test_the_reason_names_the_opposites_and_the_unit() -> None:
    private = find_opposition("Keep raw data private", "Keep raw data public") or ""
    hours = find_opposition("Work at most 40 hours a week", "Work at least 50 hours a week") or ""
    assert private.endswith("(“privat” against “public”)")
    assert hours.endswith("(no hour number is both)")


def test_limits_are_read_with_their_units() -> None:
    assert find_limits("no more than 10% of income; over €5k, at least 3.5 days, 12 apples") == (
        Limit(-math.inf, 10.0, "percent"),
        Limit(5_000.0, math.inf, "€", strict=True),
        Limit(3.5, math.inf, "day"),
    )


@pytest.mark.parametrize(
    ("one", "other", "excludes"),
    [
        ("at least 5 days", "at most 5 days", False),
        ("more than 5 days", "at most 5 days", True),
        ("over 6 days", "under 5 days", True),
    ],
)
def test_limits_exclude_each_other_where_no_number_is_within_both(one: str, other: str, excludes: bool) -> None:
    [left], [right] = find_limits(one), find_limits(other)
    assert (left.excludes(right), right.excludes(left)) == (excludes, excludes)
