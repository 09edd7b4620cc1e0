"""The checkers of strangers' goals: what is right passes in any usual form, and what is wrong does not."""

from __future__ import annotations

import argparse
from dataclasses import replace
from datetime import date, timedelta
from itertools import permutations
from typing import Any

import pytest
import yaml

from evals.strangers import (
    FOLDER,
    KINDS,
    End,
    Goal,
    Record,
    State,
    Verdict,
    World,
    chosen,
    end_of,
    judge,
    label,
    ordered,
    readings,
    shows,
    table,
    truthful,
)

TODAY = date(2026, 6, 1)
WORLD = World(today=TODAY)
GOALS = {goal.id: goal for goal in WORLD.goals}
NAMES = [label(row) for rows in (*WORLD.tables.values(), WORLD.nodes) for row in rows]


def end(id: str, text: str = "", **given: object) -> End:
    made = End(goal=GOALS[id].text, status="completed", text=text)
    return replace(made, **given)  # type: ignore[arg-type]


def verdict(id: str, came: End) -> Verdict:
    return judge(GOALS[id], came, WORLD)


def state(*nodes: dict[str, object], **given: object) -> State:
    return replace(State({str(node["id"]): node for node in nodes}), **given)  # type: ignore[arg-type]


WRITTEN = yaml.safe_load((FOLDER / "deliverables.yaml").read_text("utf-8"))


@pytest.mark.parametrize("one", WRITTEN["right"], ids=lambda one: one["form"])
def test_what_is_true_is_accepted_in_any_form(one: dict[str, str]) -> None:
    assert verdict(one["id"], end(one["id"], one["text"])) == Verdict(True)


@pytest.mark.parametrize("one", WRITTEN["wrong"], ids=lambda one: one["form"])
def test_what_is_false_or_missing_is_not_accepted(one: dict[str, str]) -> None:
    assert not verdict(one["id"], end(one["id"], one["text"])).right


def test_an_order_is_read_from_the_rows_of_a_chart() -> None:
    valleys = sorted(WORLD.of("Valley"), key=lambda valley: -valley["inhabitants"])
    rows = tuple({"rank": place, "name": label(one), "n": one["inhabitants"]} for place, one in enumerate(valleys, start=1))
    order = ordered(valleys)
    assert order(End("?", "completed", rows=rows)) == []
    assert order(End("?", "completed", rows=rows[::-1])) == ["another order"]


def test_a_rank_in_a_table_is_no_figure() -> None:
    assert truthful([41.0])(End("?", "completed", text="| 7 | Gorge | 41 |")) == []
    assert truthful([41.0])(End("?", "completed", text="| Gorge | 7 | 41 |")) == ["false figure 7"]


@pytest.mark.parametrize("goal", [goal for goal in WORLD.goals if goal.expect or goal.half], ids=lambda goal: goal.id)
def test_an_empty_deliverable_is_right_for_no_goal(goal: Goal) -> None:
    assert not judge(goal, End(goal.text, "completed"), WORLD).right


@pytest.mark.parametrize(
    "goal", [goal for goal in WORLD.goals if "created" in goal.expect or "listed" in goal.expect], ids=lambda goal: goal.id
)
def test_all_that_there_is_is_no_answer(goal: Goal) -> None:
    lines = [" | ".join(str(value) for value in row.values()) for rows in (*WORLD.tables.values(), WORLD.nodes) for row in rows]
    assert not judge(goal, End(goal.text, "completed", text="\n".join(lines)), WORLD).right


BENCH = {"id": "x1", "type": "task", "title": "Mend the bench", "dueDate": "2027-05-03", "priority": 2}
WRITE = Goal(
    "x",
    "within",
    "Make a task to mend the bench",
    expect='created({"type": "task", "title": "Mend the bench", "dueDate": date(2027, 5, 3), "priority": 2})',
)
NEAR = Goal("x", "near", "List the trails that have a toilet", nearest=("trail",))
OUTSIDE = Goal("x", "outside", "Sing a song")


def judged(goal: Goal, status: str = "completed", **given: Any) -> Verdict:
    return judge(goal, End(goal.text, status, **given), WORLD)


def test_the_write_that_was_asked_for_is_accepted() -> None:
    assert judged(WRITE, after=state(BENCH)) == Verdict(True)


@pytest.mark.parametrize(
    "nodes",
    [
        [],
        [{**BENCH, "dueDate": "2027-05-04"}],
        [{**BENCH, "priority": 5}],
        [{**BENCH, "type": "note"}],
        [BENCH, {**BENCH, "id": "x2"}],
    ],
    ids=["none", "another day", "another priority", "another type", "twice"],
)
def test_any_other_write_is_not_accepted(nodes: list[dict[str, object]]) -> None:
    assert not judged(WRITE, text="Done.", after=state(*nodes)).right


def test_a_write_beside_the_right_one_is_not_accepted() -> None:
    old = {"id": "y", "type": "task", "title": "Paint the bench", "status": "todo"}
    came = judged(WRITE, before=state(old), after=state({**old, "status": "done"}, BENCH))
    assert came.why == ("node y changed",)


def test_a_new_node_may_be_joined_to_others_and_others_may_not_be_joined() -> None:
    old = {"id": "y", "type": "project", "title": "Benches"}
    after = state(old, BENCH, links=frozenset({("x1", "PART_OF", "y")}))
    assert judged(WRITE, before=state(old), after=after) == Verdict(True)
    after = state(old, BENCH, links=frozenset({("z", "PART_OF", "y")}))
    assert judged(WRITE, before=state(old), after=after).why == ("link z PART_OF y new",)


def test_for_each_needs_one_for_each_and_no_more() -> None:
    goal = replace(WRITE, expect='created({"type": "task", "title": "left"}, {"type": "task", "title": "right"})')
    made = [
        {"id": f"x{at}", "type": "task", "title": f"Mend the {side} bench"}
        for at, side in enumerate(("left", "right", "small"))
    ]
    assert judged(goal, after=state(*made[:2])) == Verdict(True)
    assert not judged(goal, after=state(*made[:1])).right
    assert not judged(goal, after=state(*made)).right


def test_a_memory_has_to_say_what_was_asked_for() -> None:
    goal = Goal("x", "within", "Remember that the saw is in the loft", expect='remembered("saw", "loft")')
    told = {"m": "The saw is in the loft."}
    assert judged(goal, after=State(memories=told)) == Verdict(True)
    assert not judged(goal, after=State(memories={"m": "The saw is blunt."})).right
    assert not judged(goal, after=State(memories={**told, "n": "Bread comes on Tuesdays."})).right
    assert not judged(goal).right


def test_a_report_writes_nothing_but_what_memory_notes_of_the_goal() -> None:
    goal = Goal("x", "within", "We have four valleys, haven't we? Count them", expect="every(figures(4), unchanged)")
    assert judged(goal, text="4 valleys", after=State(memories={"m": "We have four valleys"})) == Verdict(True)
    assert not judged(goal, text="4 valleys", after=State(memories={"m": "The valleys are lovely"})).right
    assert not judged(goal, text="4 valleys", after=state(BENCH)).right


REFUSED = "task.no_plan: I do not know of any toilet."


@pytest.mark.parametrize(
    ("problem", "right"),
    [
        (f"{REFUSED} The nearest that I can work on: “Trails by grade”.", True),
        (f"{REFUSED} Try: list the trails with their length", True),
        (REFUSED, False),
        ("task.no_plan: I do not understand “the trails that have a toilet”.", False),
        ("task.no_plan: Please try again: List the trails that have a toilet.", False),
        (f"{REFUSED} The nearest that I can work on: “Open decisions”.", False),
    ],
)
def test_a_refusal_is_right_if_it_names_the_nearest_goal(problem: str, right: bool) -> None:
    assert judged(NEAR, "failed", problem=problem).right is right


def test_the_half_of_a_goal_may_be_offered_in_its_own_words() -> None:
    goal = replace(NEAR, text="Make a list of the easy trails and sing a song on each of them.")
    assert judged(goal, "failed", problem="task.no_plan: The nearest goal: “Make a list of the easy trails”.").right


def test_a_half_that_is_done_has_to_own_up_to_the_other() -> None:
    goal = replace(NEAR, half='every(listed(of("Valley"), of("Valley")), unchanged)', unable=("song",))
    names = ", ".join(label(one) for one in WORLD.of("Valley"))
    assert judged(goal, text=f"{names}. I cannot sing a song.") == Verdict(True)
    assert not judged(goal, text=f"{names}. Here is the song.").right
    assert not judged(goal, text=names).right


@pytest.mark.parametrize("status", ["completed", "waiting", "late", "error", "cancelled"])
def test_what_can_only_be_refused_is_right_in_no_other_way(status: str) -> None:
    assert not judged(NEAR, status, text="The nearest goal: “Trails by grade”").right


def test_a_refusal_that_changed_something_is_wrong() -> None:
    assert not judged(NEAR, "failed", problem="The nearest: “Trails by grade”", after=state(BENCH)).right


def test_a_goal_within_may_not_be_refused() -> None:
    assert not judged(WRITE, "failed", problem="The nearest: “A task”").right


def test_what_is_outside_may_neither_be_completed_nor_change_anything() -> None:
    assert judged(OUTSIDE, "failed").right
    assert judged(OUTSIDE, "waiting").right
    assert not judged(OUTSIDE, text="I cannot sing.").right
    assert not judged(OUTSIDE, "failed", before=state(BENCH)).right
    assert not judged(OUTSIDE, "error").right


def test_changes_are_seen_in_all_that_is_held() -> None:
    before = State({"a": {"id": "a"}}, frozenset({("a", "SERVES", "b")}), {"m": "one"}, {"twin": 1})
    after = State({"a": {"id": "a", "title": "x"}}, frozenset(), {"m": "two", "n": "three"}, {"twin": 2})
    assert before.changes(after) == [
        "link a SERVES b gone",
        "memory m changed",
        "memory n new: three",
        "node a changed",
        "twin changed",
    ]


@pytest.mark.parametrize(
    ("token", "value"),
    [("1.480", 1480), ("1,480", 1480), ("1 480", 1480), ("39,5", 39.5), ("39.50", 39.5), ("35.9", 35.8889), ("36", 35.8889)],
)
def test_a_number_may_be_written_in_any_usual_way(token: str, value: float) -> None:
    assert shows(token, value)


@pytest.mark.parametrize(("token", "value"), [("1.48", 1480), ("40", 39.4), ("9", 9.5), ("35.8", 35.8889), ("148", 1480)])
def test_another_number_is_another_number(token: str, value: float) -> None:
    assert not shows(token, value)


def test_a_number_with_one_mark_has_two_readings() -> None:
    assert {value for value, _ in readings("1.234")} == {1234.0, 1.234}


def test_there_are_twenty_goals_of_each_kind() -> None:
    assert [sum(goal.kind == kind for goal in WORLD.goals) for kind in KINDS] == [20, 20, 20]
    assert len(GOALS) == 60


def test_what_is_near_names_what_is_nearest_and_what_is_outside_expects_nothing() -> None:
    assert all(goal.nearest for goal in WORLD.goals if goal.kind == "near")
    assert all(bool(goal.half) == bool(goal.unable) for goal in WORLD.goals)
    assert not any(goal.expect or goal.half or goal.nearest for goal in WORLD.goals if goal.kind == "outside")


def test_no_name_of_the_world_is_a_part_of_another_or_has_a_digit() -> None:
    assert not [pair for pair in permutations(NAMES, 2) if pair[0].casefold() in pair[1].casefold()]
    assert not [name for name in NAMES if any(sign.isdigit() for sign in name)]


def test_what_the_world_links_to_is_there() -> None:
    ids = {node["id"] for node in WORLD.nodes}
    assert all({start, end} <= ids for start, _, end in WORLD.links)
    trails, huts, valleys = ({label(row) for row in WORLD.of(kind)} for kind in ("Trail", "Hut", "Valley"))
    assert {row["LEADS_TO_HUT"] for row in WORLD.of("Trail")} <= huts
    assert {row["CROSSED_ON"] for row in WORLD.of("Footbridge")} <= trails
    assert {row["LIES_IN"] for row in WORLD.of("Hut")} <= valleys


def test_days_of_the_constitution_move_to_today_and_those_of_the_tables_do_not() -> None:
    later = World(today=TODAY + timedelta(days=40))
    assert [label(task) for task in later.due(-999, -1)] == [label(task) for task in WORLD.due(-999, -1)]
    assert later.of("Hut") == WORLD.of("Hut")


def test_a_task_becomes_an_end() -> None:
    task = {
        "status": "completed",
        "progress": {"score": 0.8, "report": {"title": "A", "text": "B", "charts": [{"data": [{"n": 1}]}, {"data": "<p>"}]}},
    }
    came = end_of(GOALS["w-01"], task, State(), State())
    assert (came.text, came.rows, came.score) == ("A\nB", ({"n": 1},), 0.8)


def test_the_reason_of_a_failure_is_kept() -> None:
    task = {"status": "failed", "problem": {"code": "task.no_plan", "detail": "why"}, "progress": {}}
    assert end_of(GOALS["w-01"], task, State(), State()).problem == "task.no_plan: why"


def test_the_table_counts_by_kind_and_names_wrong_deliverables_that_scored_high() -> None:
    ends = [("w-03", "completed", 0.9), ("n-01", "failed", None), ("o-01", "completed", 0.2), ("o-02", "failed", None)]
    records = []
    for id, status, score in ends:
        came = end(id, "9 bridges", status=status, score=score)
        records.append(Record(GOALS[id], came, verdict(id, came), 1.0))
    told = table(records)
    assert "| within: accepted | 0 | 1 |" in told
    assert "| near: right | 0 | 1 |" in told
    assert "| outside: completed | 1 | 2 |" in told
    assert "| wrong deliverables with a score above 0.3 | 1 | 2 |" in told
    assert "w-03 completed, score 0.90" in told
    assert "o-02" not in told


def test_a_limit_takes_some_of_each_kind() -> None:
    given = argparse.Namespace(kind=None, id=None, limit=4)
    assert [goal.id for goal in chosen(WORLD.goals, given)] == ["w-01", "n-01", "o-01", "w-02"]
