"""The checkers of strangers' goals: what is right passes in any usual form, and what is wrong does not."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from itertools import permutations
from typing import Any

import pytest
import yaml

from evals.strangers import (
    KINDS,
    SETS,
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
    main,
    ordered,
    readings,
    shows,
    table,
    truthful,
)

TODAY = date(2026, 6, 1)
WORLDS = {name: World(SETS / name, TODAY) for name in ("strangers", "newcomers", "arrivals", "callers")}
WORLD = WORLDS["strangers"]
GOALS = {goal.id: goal for goal in WORLD.goals}
WRITTEN = {name: yaml.safe_load((SETS / name / "deliverables.yaml").read_text("utf-8")) for name in WORLDS}

each_world = pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)


def each_goal(wanted: Callable[[Goal], bool]) -> pytest.MarkDecorator:
    """One test for each goal of every set that is wanted."""
    found = {f"{name} {goal.id}": (world, goal) for name, world in WORLDS.items() for goal in world.goals if wanted(goal)}
    return pytest.mark.parametrize(("world", "goal"), found.values(), ids=found)


def each_deliverable(kind: str) -> pytest.MarkDecorator:
    """One test for each written deliverable of every set, `right` or `wrong`."""
    found = [(name, one) for name, written in WRITTEN.items() for one in written[kind]]
    return pytest.mark.parametrize(("name", "one"), found, ids=[f"{name} {one['id']} {one['form']}" for name, one in found])


def names(world: World) -> list[str]:
    return [label(row) for rows in (*world.tables.values(), world.nodes) for row in rows]


def end(id: str, text: str = "", **given: object) -> End:
    made = End(goal=GOALS[id].text, status="completed", text=text)
    return replace(made, **given)  # type: ignore[arg-type]


def verdict(id: str, came: End) -> Verdict:
    return judge(GOALS[id], came, WORLD)


def found(name: str, id: str) -> tuple[World, Goal]:
    """The world of a set, and a goal of it."""
    return WORLDS[name], next(goal for goal in WORLDS[name].goals if goal.id == id)


def delivered(name: str, one: dict[str, str]) -> Verdict:
    world, goal = found(name, one["id"])
    return judge(goal, End(goal.text, "completed", text=one["text"]), world)


def state(*nodes: dict[str, object], **given: object) -> State:
    return replace(State({str(node["id"]): node for node in nodes}), **given)  # type: ignore[arg-type]


@each_deliverable("right")
def test_what_is_true_is_accepted_in_any_form(name: str, one: dict[str, str]) -> None:
    assert delivered(name, one) == Verdict(True)


@each_deliverable("wrong")
def test_what_is_false_or_missing_is_not_accepted(name: str, one: dict[str, str]) -> None:
    assert not delivered(name, one).right


def test_an_order_is_read_from_the_rows_of_a_chart() -> None:
    valleys = sorted(WORLD.of("Valley"), key=lambda valley: -valley["inhabitants"])
    rows = tuple({"rank": place, "name": label(one), "n": one["inhabitants"]} for place, one in enumerate(valleys, start=1))
    order = ordered(valleys)
    assert order(End("?", "completed", rows=rows)) == []
    assert order(End("?", "completed", rows=rows[::-1])) == ["another order"]


def test_a_rank_in_a_table_is_no_figure() -> None:
    assert truthful([41.0])(End("?", "completed", text="| 7 | Gorge | 41 |")) == []
    assert truthful([41.0])(End("?", "completed", text="| Gorge | 7 | 41 |")) == ["false figure 7"]


@each_goal(lambda goal: bool(goal.expect or goal.half))
def test_an_empty_deliverable_is_right_for_no_goal(world: World, goal: Goal) -> None:
    assert not judge(goal, End(goal.text, "completed"), world).right


@each_goal(lambda goal: "created" in goal.expect or "listed" in goal.expect)
def test_all_that_there_is_is_no_answer(world: World, goal: Goal) -> None:
    lines = [" | ".join(str(value) for value in row.values()) for rows in (*world.tables.values(), world.nodes) for row in rows]
    assert not judge(goal, End(goal.text, "completed", text="\n".join(lines)), world).right


@each_goal(lambda goal: bool(goal.expect or goal.half))
def test_every_expression_stands_for_a_check(world: World, goal: Goal) -> None:
    for expression in filter(None, (goal.expect, goal.half)):
        assert world.check(expression)(End(goal.text, "completed"))


@each_world
def test_what_is_right_for_one_goal_is_right_for_no_other(world: World) -> None:
    name = next(name for name, one in WORLDS.items() if one is world)
    checks = [(goal, world.check(goal.expect)) for goal in world.goals if goal.expect]
    assert not [
        (one["id"], goal.id)
        for one in WRITTEN[name]["right"]
        for goal, check in checks
        if goal.id != one["id"] and not check(End(goal.text, "completed", text=one["text"]))
    ]


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
    valleys = ", ".join(label(one) for one in WORLD.of("Valley"))
    assert judged(goal, text=f"{valleys}. I cannot sing a song.") == Verdict(True)
    assert not judged(goal, text=f"{valleys}. Here is the song.").right
    assert not judged(goal, text=valleys).right


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


@each_world
def test_there_are_twenty_goals_of_each_kind(world: World) -> None:
    assert [sum(goal.kind == kind for goal in world.goals) for kind in KINDS] == [20, 20, 20]
    assert len({goal.id for goal in world.goals}) == 60


def test_no_goal_is_in_two_sets() -> None:
    texts = [goal.text.casefold() for world in WORLDS.values() for goal in world.goals]
    assert len(texts) == len(set(texts))


@each_world
def test_what_is_near_names_what_is_nearest_and_what_is_outside_expects_nothing(world: World) -> None:
    assert all(goal.nearest for goal in world.goals if goal.kind == "near")
    assert all(bool(goal.half) == bool(goal.unable) for goal in world.goals)
    assert not any(goal.expect or goal.half or goal.nearest for goal in world.goals if goal.kind == "outside")


@each_world
def test_no_name_of_the_world_is_a_part_of_another_or_has_a_digit(world: World) -> None:
    assert not [pair for pair in permutations(names(world), 2) if pair[0].casefold() in pair[1].casefold()]
    assert not [name for name in names(world) if any(sign.isdigit() for sign in name)]


@each_world
def test_what_the_world_links_to_is_there(world: World) -> None:
    ids = {node["id"] for node in world.nodes}
    assert all({start, end} <= ids for start, _, end in world.links)
    for link, ends in world.ontology["relationships"].items():
        starts = [row for kind in ends["from"] for row in world.of(kind)]
        assert {row[link] for row in starts} <= {label(row) for kind in ends["to"] for row in world.of(kind)}


@each_world
def test_every_cell_is_what_the_ontology_declares(world: World) -> None:
    kinds = {"number": int | float, "date": date, "string": str}
    for kind, rows in world.tables.items():
        for name, declared in world.ontology["nodes"][kind]["properties"].items():
            known = [row[name] for row in rows if row[name] is not None]
            assert all(isinstance(value, kinds[declared["type"]]) for value in known)
            assert set(known) <= set(declared.get("enum", known))


@pytest.mark.parametrize(
    ("world", "kind", "none"),
    [
        (WORLDS["newcomers"], "Supplier", {"trade": "fishmonger"}),
        (WORLDS["arrivals"], "Bus", {"drive": "hydrogen"}),
        (WORLDS["callers"], "Bell", {"alloy": "silver"}),
    ],
    ids=["newcomers", "arrivals", "callers"],
)
def test_two_people_share_a_first_name_and_a_category_has_no_entry(world: World, kind: str, none: dict[str, str]) -> None:
    first = [label(one).split()[0] for one in world.of("human")]
    assert len(first) == len(set(first)) + 1
    assert world.of(kind)
    assert not world.of(kind, **none)


@each_world
def test_days_of_the_constitution_move_to_today_and_those_of_the_tables_do_not(world: World) -> None:
    name = next(name for name, one in WORLDS.items() if one is world)
    later = World(SETS / name, TODAY + timedelta(days=40))
    assert [label(task) for task in later.due(-999, -1)] == [label(task) for task in world.due(-999, -1)]
    assert later.tables == world.tables


BROKEN = ("Dragon", "Snow White", "Bubbles")
ELECTRIC = ("Bumblebee", "Marigold", "Silver Fern")
TESTED = ("Duchess", "Old Mabel", "Kestrel", "Badger")
UNSEEN = ("Priory Tower", "Grammar Tower", "Quarry Tower", "Woolpack Tower")
BELLLESS = ("Gorsedd House", "Llanfair Town")


@pytest.mark.parametrize(
    ("name", "id", "nodes"),
    [
        ("newcomers", "w-08", [{"type": "task", "title": f"Get a quote for the repair of {name}"} for name in BROKEN]),
        ("newcomers", "w-09", [{**BENCH, "title": "Wash the curtains of the dining hall", "dueDate": "2027-09-17"}]),
        (
            "newcomers",
            "w-10",
            [{"type": "decision", "title": "Serve tap water in jugs", "reasoning": "Bottles fill the bins and the fridges."}],
        ),
        (
            "newcomers",
            "n-12",
            [{"type": "task", "title": f"Invite the inspector to {name}"} for name in ("Brinkholm Kitchen", "Tannery Kitchen")],
        ),
        (
            "arrivals",
            "w-10",
            [
                {
                    "type": "task",
                    "title": "Wax the floor of the waiting room",
                    "dueDate": "2027-05-03",
                    "priority": 3,
                    "effortHours": 4,
                }
            ],
        ),
        (
            "arrivals",
            "w-12",
            [
                {
                    "type": "decision",
                    "title": "Sell tickets in the bakeries",
                    "reasoning": "The machines are out of order every other week.",
                }
            ],
        ),
        ("arrivals", "w-13", [{"type": "task", "title": f"Measure the battery of {name}"} for name in ELECTRIC]),
        ("arrivals", "n-14", [{"type": "task", "title": f"Take {name} to the test station"} for name in TESTED]),
        ("callers", "w-09", [{**BENCH, "title": "Oil the hinges of the pit doors", "dueDate": "2027-02-22"}]),
        (
            "callers",
            "w-13",
            [{"type": "decision", "title": "Close the gallery on Mondays", "reasoning": "Hardly anybody comes on that day."}],
        ),
        ("callers", "w-14", [{"type": "task", "title": f"Inspect the bell frame of {name}"} for name in UNSEEN]),
        (
            "callers",
            "n-11",
            [{**BENCH, "title": "Polish the brass plates", "dueDate": "2027-03-08", "owner": "Wendelin Strasser"}],
        ),
        ("callers", "n-14", [{"type": "task", "title": f"Send our catalogue to {name}"} for name in BELLLESS]),
    ],
)
def test_a_write_is_accepted_whole_and_not_with_one_less_or_more(name: str, id: str, nodes: list[dict[str, object]]) -> None:
    world, goal = found(name, id)
    made = [{**node, "id": f"new-{at}"} for at, node in enumerate(nodes)]
    more: dict[str, object] = {"id": "new-more", "type": "task", "title": "Mend the bench"}

    def right(*there: dict[str, object]) -> bool:
        return judge(goal, End(goal.text, "completed", after=state(*there)), world).right

    assert right(*made)
    assert not right(*made[1:])
    assert not right(*made, more)


@pytest.mark.parametrize(
    ("name", "id", "fields"),
    [
        ("arrivals", "w-08", {"ta-roster": {"dueDate": "2027-01-09"}}),
        ("arrivals", "w-09", {"ta-lost": {"status": "done"}}),
        (
            "arrivals",
            "n-13",
            {
                "ta-wipers": {"dueDate": "2026-06-01"},
                "ta-tacho": {"dueDate": "2026-06-08"},
                "ta-leaflet": {"dueDate": "2026-06-11"},
                "ta-benches": {"dueDate": "2026-06-13"},
            },
        ),
        ("arrivals", "n-15", {"ta-charger": {"status": "done"}}),
        ("callers", "w-10", {"ta-guides": {"status": "done"}}),
        ("callers", "w-11", {"ta-loan": {"dueDate": "2027-01-18"}}),
        ("callers", "n-13", {"ta-posters": {"dueDate": "2026-06-11"}, "ta-guides": {"dueDate": "2026-06-29"}}),
    ],
)
def test_a_change_is_accepted_whole_and_not_with_one_less_or_more(
    name: str, id: str, fields: dict[str, dict[str, object]]
) -> None:
    world, goal = found(name, id)
    before = {task["id"]: dict(task) for task in world.of("task")}
    another = next(one for one in before if one not in fields)
    project = world.of("project")[0]["id"]

    def right(*altered: tuple[str, dict[str, object]], links: frozenset[tuple[str, str, str]] = frozenset()) -> bool:
        after = {**before, **{one: {**before[one], **new, "revision": 2} for one, new in altered}}
        return judge(goal, End(goal.text, "completed", before=State(before), after=State(after, links)), world).right

    assert right(*fields.items())
    assert not right(*list(fields.items())[1:])
    assert not right(*fields.items(), (another, {"priority": 9}))
    assert not right(*((one, {**new, "owner": "Agnes Thorley"}) for one, new in fields.items()))
    assert not right(*fields.items(), links=frozenset({(next(iter(fields)), "PART_OF", project)}))


def test_a_decision_without_its_votes_is_a_half() -> None:
    world, goal = found("callers", "n-18")
    made = {"id": "x", "type": "decision", "title": "Lend the small crane to the shipyard", "decidedAt": "2026-05-04"}

    def right(text: str, *nodes: dict[str, object]) -> bool:
        return judge(goal, End(goal.text, "completed", text=text, after=state(*nodes)), world).right

    assert right("Recorded. The votes could not be noted.", made)
    assert not right("Recorded.", made)
    assert not right("Recorded. The votes could not be noted.", {**made, "decidedAt": "2026-04-05"})
    assert not right("The votes could not be noted.")


@pytest.mark.parametrize(
    ("name", "id", "told", "other"),
    [
        (
            "newcomers",
            "w-11",
            "The caretaker of the moor school has the alarm code.",
            "The caretaker of the moor school has a dog.",
        ),
        ("arrivals", "w-11", "Our tyre dealer is shut on Wednesdays.", "Our tyre dealer is shut on Mondays."),
        ("callers", "w-12", "The carter who brings the loam takes cash only.", "The carter who brings the loam is late."),
    ],
)
def test_what_is_to_be_remembered_has_to_be_said(name: str, id: str, told: str, other: str) -> None:
    world, goal = found(name, id)

    def right(text: str) -> bool:
        return judge(goal, End(goal.text, "completed", after=State(memories={"m": text})), world).right

    assert right(told)
    assert not right(other)


def test_a_set_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--set", "nobody"])
    assert "nobody: no such set" in capsys.readouterr().err


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
