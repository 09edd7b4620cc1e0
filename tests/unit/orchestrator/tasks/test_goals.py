"""Goals read into parts: verbs, objects, sets, forms, in words of their own; and any text at all."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phronesis_orchestrator.tasks.goals import GoalPart, goal_words, read_goal


def parts(goal: str) -> list[tuple[str, str, str]]:
    """Deed, verb and object of each part."""
    return [(one.deed, one.verb, one.object) for one in read_goal(goal)]


def only(goal: str) -> GoalPart:
    """The one part of a goal."""
    [found] = read_goal(goal)
    return found


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        ("Please list the ships in dock", [("read", "list", "the ships in dock")]),
        ("Could you count the ferries?", [("read", "count", "the ferries")]),
        ("The ships in dock", [("read", "find", "The ships in dock")]),
        ("Weekly report on tasks and decisions", [("read", "report", "tasks and decisions")]),
        ("Draft a one-page status report about the ferries", [("read", "report", "the ferries")]),
        ("Produce a risk summary covering the repairs", [("read", "report", "the repairs")]),
        ("Prepare a summary of the repairs", [("read", "report", "the repairs")]),
        ("Make me a short list of the ferries", [("read", "list", "the ferries")]),
        ("Show us a bar chart of ships by berth", [("read", "chart", "ships by berth")]),
        ("I would like a table of the ships", [("read", "list", "the ships")]),
        ("Delete all ships", [("other", "delete", "all ships")]),
        ("Give all of Bo's ships to Ann", [("other", "give all", "of Bo's ships to Ann")]),
        ("Order ten litres of oil", [("other", "order", "ten litres of oil")]),
        ("Remember that Ann is away", [("write", "remember", "that Ann is away")]),
        ("Zähle die Schiffe", [("read", "count", "die Schiffe")]),
    ],
)
def test_a_goal_has_a_verb_and_an_object(goal: str, expected: list[tuple[str, str, str]]) -> None:
    assert parts(goal) == expected


@pytest.mark.parametrize(
    ("goal", "verbs"),
    [
        ("List the ships, count the ferries and email the result to Bo", ["list", "count", "email"]),
        ("1. List the ships 2. Count the ferries", ["list", "count"]),
        ("List the ships; then chart the costs by year", ["list", "chart"]),
        ("- List the ships\n- Add a task to paint the hull", ["list", "create"]),
        ("Add a task to paint the hull and then list the open tasks", ["create", "list"]),
        ("Add a task to paint the hull and add a task to order oil", ["create", "create"]),
        ("Add a task to call Bo and order oil", ["create"]),
        ("Record a decision: rent a dock. It is cheaper than buying one.", ["record"]),
        ('Add a task called "List the ships; count them"', ["create"]),
        ("Compare the costs of ships and ferries", ["compare"]),
    ],
)
def test_a_goal_is_cut_where_another_order_begins_and_not_inside_a_text(goal: str, verbs: list[str]) -> None:
    assert [one.verb for one in read_goal(goal)] == verbs


@pytest.mark.parametrize(
    ("goal", "each", "object"),
    [
        ("For every ship in dock, create a task to paint it", "ship in dock", "a task to paint it"),
        ("Create a task for each ship in dock to paint it", "ship in dock", "a task to paint it"),
        ("Create a task for each ship that had rust, titled Scrape", "ship that had rust", "a task titled Scrape"),
        ("For each harbour count the ships", "harbour", ""),
    ],
)
def test_a_set_that_is_gone_through_is_told_from_what_is_done_for_each(goal: str, each: str, object: str) -> None:
    found = only(goal)
    if object:
        assert (found.each, found.object) == (each, object)
    else:
        assert each in f"{found.each} {found.object}"


@pytest.mark.parametrize(
    ("goal", "formats", "refused"),
    [
        ("List the ships as a table", ("table",), ""),
        ("Report on the ships with charts as a PDF", ("chart", "pdf"), ""),
        ("List the ships. Keep it short.", ("short",), ""),
        ("Report on the ships by berth. I want a table and a chart.", ("chart", "table"), ""),
        ("How many ships are in dock? Write it up in a short note.", ("short",), ""),
        ("Report on the ships in French", (), "in French"),
        ("Report on the ships as slides", (), "as slides"),
        ("Remember that the report is due in French", (), ""),
    ],
)
def test_the_form_is_told_from_what_is_asked_for(goal: str, formats: tuple[str, ...], refused: str) -> None:
    found = read_goal(goal)[0]
    assert (found.formats, found.refused) == (formats, refused)


@pytest.mark.parametrize(("goal", "ordered"), [("Risk report on the ships", True), ("Status report on the ships", False)])
def test_a_risk_report_looks_at_what_is_worst(goal: str, ordered: bool) -> None:
    found = only(goal)
    assert (found.report, found.ordered, found.object) == (True, ordered, "the ships")


@pytest.mark.parametrize("code", sorted(goal_words()))
def test_every_language_has_every_sentence_and_every_kind_of_word(code: str) -> None:
    english, other = goal_words()["en"], goal_words()[code]
    assert set(other.said) == set(english.said)
    assert {kind.partition(".")[0] for kind in other.language.words} >= {
        "reading",
        "writing",
        "other",
        "each",
        "about",
        "joins",
    }


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_read_into_parts_that_hold_no_more_than_it(text: str) -> None:
    for part in read_goal(text):
        assert part.deed in ("read", "write", "other")
        assert len(part.object) <= len(text) + 1
