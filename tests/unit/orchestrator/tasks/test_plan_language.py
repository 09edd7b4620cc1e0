"""The language of plans: what draws on earlier results is checked before anything runs, and filled in when a step is made."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from phronesis_contracts.catalog import TOOLS
from phronesis_orchestrator.tasks.ports import (
    BadPlan,
    NoValue,
    Plan,
    Step,
    When,
    check_plan,
    fill_placeholders,
    find_placeholders,
    holds,
    rename_steps,
)

SURVEY, TASK, FOUND, GOALS = "survey_twin", "task.create.v1", "find_entities", "goal.search.v1"


def of(id: str, path: str = "@") -> dict[str, Any]:
    return {"$of": id, "path": path}


def item(path: str = "@") -> dict[str, Any]:
    return {"$item": path}


def made(**fields: Any) -> Step:
    return Step.model_validate({"id": "b", "description": "d", "wave": 2, **fields})


LOOK = Step(id="a", description="d", tool=SURVEY, arguments={"type": "Ship", "measure": "list"}, wave=1)
ASK = Step(id="a", description="d", question="Which tasks are overdue?", wave=1)


def checked(*steps: Step) -> Plan:
    return check_plan(Plan(steps=steps), tuple(TOOLS), contracts=TOOLS)


@pytest.mark.parametrize(
    "step",
    [
        made(tool=SURVEY, arguments={"type": of("a", "rows[0].type")}),
        made(tool=SURVEY, arguments={"type": of("a", "rows[?value > `3`] | [0].name")}),
        made(tool=SURVEY, arguments={"type": "Ship", "limit": of("a", "total")}),
        made(tool=SURVEY, arguments={"type": "Ship", "limit": of("a", "length(rows)")}),
        made(tool=SURVEY, arguments={"type": "Ship", "where": [{"property": "id", "op": "in", "value": of("a", "rows[].id")}]}),
        made(tool=SURVEY, arguments={"type": 'The {"$of": "a", "path": "total"} ships'}),
        made(tool=SURVEY, arguments={"type": "Ship"}, when={"of": "a", "path": "total", "is": "more_than", "value": 3}),
        made(tool=SURVEY, arguments={"type": item("name")}, each={"of": "a", "path": "rows"}),
        made(question='What is {"$item": "name"} owned by?', each={"of": "a", "path": "rows[:5]", "limit": 5}),
    ],
    ids=lambda step: json.dumps(step.model_dump(mode="json", exclude_defaults=True))[40:120],
)
def test_a_plan_may_draw_on_what_a_tool_will_give(step: Step) -> None:
    assert checked(LOOK, step).steps[1].depends == ("a",)


@pytest.mark.parametrize(
    "step",
    [
        made(tool=TASK, arguments={"title": item("title")}, each={"of": "a", "path": "items"}),
        made(tool=TASK, arguments={"title": 'Look at {"$item": "title"}'}, each={"of": "a", "path": "items[?type == 'task']"}),
        made(tool=TASK, arguments={"title": of("a", "text")}, when={"of": "a", "path": "empty", "is": "equals", "value": True}),
        made(tool=TASK, arguments={"title": of("a", "items[0].anything_that_is_read")}),
    ],
    ids=["a list of things", "a text of parts", "a condition", "a property of a thing"],
)
def test_a_plan_may_draw_on_the_answer_to_a_question(step: Step) -> None:
    assert checked(ASK, step)


@pytest.mark.parametrize(
    ("step", "named"),
    [
        (made(tool=SURVEY, arguments={"type": of("a", "nothing.here")}), r"b, arguments\.type: .*nothing"),
        (made(tool=SURVEY, arguments={"type": of("a", "rows[0")}), r"b, arguments\.type: .*no JMESPath"),
        (made(tool=SURVEY, arguments={"type": of("a", "shout(total)")}), r"b, arguments\.type: .*shout"),
        (made(tool=SURVEY, arguments={"type": of("a", "total")}), r"b, arguments\.type: .*not of type 'string'"),
        (made(tool=SURVEY, arguments={"type": of("a", "rows")}), r"b, arguments\.type"),
        (made(tool=SURVEY, arguments={"type": 'All {"$of": "a", "path": "rows"}'}), r"b, arguments\.type: .*text"),
        (made(tool=SURVEY, arguments={"type": "Ship", "limit": of("a", "statement")}), r"b, arguments\.limit"),
        (made(tool=SURVEY, arguments={"type": "Ship", "colour": "red"}), r"b, arguments: survey_twin has no colour"),
        (made(tool=SURVEY, arguments={}), r"b, arguments\.type: Field required"),
        (made(tool=SURVEY, arguments={"limit": of("a", "total")}), r"b, arguments: 'type' is a required property"),
        (made(tool=SURVEY, arguments={"type": "Ship", "measure": "guess"}), r"b, arguments\.measure"),
        (made(tool=SURVEY, arguments={"type": item("name")}), r"b, arguments\.type: there is no item"),
        (made(tool=SURVEY, arguments={"type": "Ship"}, each={"of": "a", "path": "total"}), r"b, each: .*no list"),
        (made(tool=SURVEY, arguments={"type": "Ship"}, each={"of": "a", "path": "lines"}), r"b, each: .*lines"),
        (made(tool=SURVEY, arguments={"type": "Ship"}, when={"of": "a", "path": "x", "is": "empty"}), r"b, when: .*'x'"),
        (
            made(tool=SURVEY, arguments={"type": "Ship"}, when={"of": "a", "path": "statement", "is": "more_than", "value": 1}),
            r"b, when: more_than",
        ),
        (
            made(tool=SURVEY, arguments={"type": "Ship"}, when={"of": "a", "path": "total", "is": "more_than", "value": "1"}),
            r"b, when: more_than",
        ),
        (made(tool=SURVEY, arguments={"type": of("nowhere")}), r"b depends on a step that there is not"),
        (made(tool=SURVEY, arguments={"type": {"$of": "a", "at": "total"}}), r"b: .* is no placeholder"),
        (made(tool=SURVEY, arguments={"type": {"$item": 3}}), r"b: .* is no placeholder"),
        (made(question='Who owns {"$of": "a", "path"?'), r"b: a placeholder in a text cannot be read"),
        (made(tool=SURVEY, question="Which?", arguments={"type": "Ship"}), r"b has both"),
        (made(each={"of": "a", "path": "rows"}), r"b, each"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_what_cannot_come_out_right_is_refused_by_step_and_field_before_anything_runs(step: Step, named: str) -> None:
    with pytest.raises(BadPlan, match=named):
        checked(LOOK, step)


def test_steps_that_draw_on_each_other_in_a_circle_are_refused() -> None:
    one = made(id="a", tool=SURVEY, arguments={"type": of("b", "statement")})
    with pytest.raises(BadPlan, match="wait for each other"):
        checked(one, made(tool=SURVEY, arguments={"type": of("a", "statement")}))


def test_a_step_drawn_from_stands_in_an_earlier_wave() -> None:
    with pytest.raises(BadPlan, match="no later"):
        checked(LOOK, made(tool=SURVEY, arguments={"type": of("a", "statement")}, wave=1))


def test_what_a_step_that_is_repeated_gives_is_a_list_of_results() -> None:
    many = made(id="many", tool=SURVEY, arguments={"type": item("name")}, each={"of": "a", "path": "rows"})
    last = made(id="last", tool=SURVEY, arguments={"type": "Ship", "limit": of("many", "sum(items[].total)")}, wave=3)
    assert checked(LOOK, many, last)
    with pytest.raises(BadPlan, match=r"last, arguments\.limit"):
        checked(LOOK, many, last.model_copy(update={"arguments": {"type": "Ship", "limit": of("many", "total")}}))


def test_no_step_is_called_like_a_call_of_another() -> None:
    many = made(id="many", tool=SURVEY, arguments={"type": item("name")}, each={"of": "a", "path": "rows"})
    with pytest.raises(BadPlan, match="called like"):
        checked(LOOK, many, made(id="many.2", tool=SURVEY, arguments={"type": "Ship"}))
    taken = {"many", *(f"many.{n}" for n in range(1, 26))}
    assert rename_steps(Plan(steps=(made(id="many", tool=SURVEY),)), taken).steps[0].id == "many.26"


def test_a_new_tail_may_draw_on_what_is_done() -> None:
    tail = Plan(steps=(made(tool=SURVEY, arguments={"type": of("a", "statement")}, wave=1),))
    assert check_plan(tail, (SURVEY,), [LOOK], contracts=TOOLS).steps[0].depends == ("a",)
    with pytest.raises(BadPlan, match=r"arguments\.type"):
        check_plan(tail, (SURVEY,), [LOOK.model_copy(update={"question": "Who?", "tool": None})], contracts=TOOLS)


def test_a_renamed_step_is_found_by_those_that_draw_on_it() -> None:
    ship = {"type": of("a", "statement"), "note": 'See {"$of": "a", "path": "total"}'}
    more = {"each": {"of": "a", "path": "rows"}, "when": {"of": "a", "is": "not_empty"}}
    found = rename_steps(Plan(steps=(LOOK, made(tool=SURVEY, arguments=ship, **more))), ["a"]).steps[1]
    assert found.each is not None
    assert found.when is not None
    assert (found.each.of, found.when.of) == ("a.2", "a.2")
    assert {one.of for _, one, _ in find_placeholders(found.arguments)} == {"a.2"}


# Filling in

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=15,
)
names = st.text(st.characters(codec="ascii", categories=["Ll"]), min_size=1, max_size=8)


def is_plain(value: Any) -> bool:
    return not any(True for _ in find_placeholders(value))


plain_values = json_values.filter(lambda value: _without_fault(value))


def _without_fault(value: Any) -> bool:
    try:
        return is_plain(value)
    except BadPlan:
        return False


@given(plain_values)
def test_a_value_without_placeholders_stays_as_it_is(value: Any) -> None:
    assert fill_placeholders(value, {}) == value


@given(names, json_values.filter(lambda value: value is not None), st.lists(names, max_size=3))
def test_a_placeholder_gives_exactly_what_stands_at_its_path(id: str, value: Any, within: list[str]) -> None:
    holding = value
    for name in reversed(within):
        holding = {name: holding}
    path = ".".join(within) or "@"
    assert fill_placeholders({"x": [of(id, path)]}, {id: holding}) == {"x": [value]}
    assert fill_placeholders([item(path)], {}, holding) == [value]


@given(json_values)
def test_what_a_result_holds_is_never_taken_for_a_placeholder(value: Any) -> None:
    """A text that was read may look like one, and would then reach into other results."""
    sly = {"secret": of("b", "@"), "said": '{"$of": "b", "path": "@"}', "more": value}
    assert fill_placeholders(of("a"), {"a": sly, "b": "hidden"}) == sly
    assert fill_placeholders('{"$of": "a", "path": "said"}', {"a": sly, "b": "hidden"}) == sly["said"]


@given(st.text(max_size=30).filter(_without_fault), st.text(max_size=30).filter(_without_fault), st.text(max_size=20))
def test_a_text_keeps_what_stands_around_a_placeholder(before: str, after: str, value: str) -> None:
    text = f"{before}{json.dumps(of('a'))}{after}"
    assert fill_placeholders(text, {"a": value}) == f"{before}{value}{after}"


@pytest.mark.parametrize(
    ("value", "text"), [(3, "3"), (True, "true"), (["x", "y"], "x, y"), ([1, 2.5], "1, 2.5"), ("", "")], ids=str
)
def test_numbers_and_lists_stand_in_a_text_as_they_are_written(value: Any, text: str) -> None:
    assert fill_placeholders('[{"$item": "@"}]', {}, value) == f"[{text}]"


@pytest.mark.parametrize(
    "value",
    [of("a", "gone"), of("no"), of("a", "rows[9]"), of("a", "sum(rows)"), of("a", "rows[::0]"), 'x {"$of":"a","path":"@"}'],
    ids=["no field", "no result", "no item", "wrong type", "no slice", "no text"],
)
def test_a_path_that_gives_nothing_says_so(value: Any) -> None:
    with pytest.raises(NoValue):
        fill_placeholders({"x": value}, {"a": {"rows": ["x", "y"]}})


@pytest.mark.parametrize(
    "path",
    [
        "|".join(["[@,@][]"] * 60),
        "|".join(["{a:@,b:@}"] * 45),
        "|".join(["[@,{a:@}]"] * 40),
        "join('',[@,@])" + "|join('',[@,@])" * 30,
        "!" * 480,
    ],
    ids=["lists", "objects", "mixed", "texts", "negations"],
)
def test_a_path_that_would_give_far_more_than_it_is_given_is_refused_at_once(path: str) -> None:
    began = time.monotonic()
    with pytest.raises(NoValue):
        fill_placeholders({"x": {"$item": path}}, {}, "x")
    with pytest.raises(BadPlan, match=r"arguments\.type"):
        checked(LOOK, made(tool=SURVEY, arguments={"type": of("a", path)}))
    assert time.monotonic() - began < 2


@given(st.text(max_size=40), json_values)
def test_whatever_a_path_is_it_gives_a_value_or_says_that_it_gives_none(path: str, value: Any) -> None:
    try:
        fill_placeholders({"$item": path}, {}, value)
    except (BadPlan, NoValue):
        pass


@pytest.mark.parametrize(
    ("test", "value", "found", "expected"),
    [
        ("empty", None, [], True),
        ("empty", None, None, True),
        ("empty", None, 0, False),
        ("not_empty", None, {"x": 1}, True),
        ("not_empty", None, "", False),
        ("equals", 1, 1.0, True),
        ("equals", 1, True, False),
        ("equals", "Red", "Red", True),
        ("more_than", 3, 4, True),
        ("more_than", 3, 3, False),
        ("more_than", 3, None, False),
        ("more_than", 3, True, False),
        ("more_than", 3, "4", False),
    ],
    ids=str,
)
def test_a_condition_holds_where_the_value_is_so(test: str, value: Any, found: Any, expected: bool) -> None:
    when = When.model_validate({"of": "a", "path": "x", "is": test, "value": value})
    assert holds(when, {"a": {"x": found}}) is expected


def test_a_condition_reads_back_as_it_was_written() -> None:
    stated = {"of": "a", "path": "x", "is": "equals", "value": [1]}
    assert When.model_validate(stated).model_dump(mode="json") == stated


# Whatever a model writes

anything = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 200) | st.sampled_from(["a", "b", SURVEY, TASK, "@", "rows[0].id", "x", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("$of $item path of is value type limit where title x".split()), inner, max_size=4)
    ),
    max_leaves=12,
)
step_like = st.fixed_dictionaries(
    {"id": st.sampled_from(["a", "b", "c", "a.1", ""]), "description": st.just("d"), "wave": st.integers(0, 4)},
    optional={
        "tool": st.sampled_from([SURVEY, TASK, FOUND, "rm"]) | st.none(),
        "question": st.sampled_from(["Who?", 'Who is {"$item": "@"}?', '{"$of": "a", "path": "x"}', '{"$of"']) | st.none(),
        "arguments": st.dictionaries(st.sampled_from(["type", "limit", "where", "title", "x"]), anything, max_size=3),
        "each": anything | st.fixed_dictionaries({"of": st.sampled_from(["a", "b"]), "path": st.text(max_size=8)}),
        "when": anything
        | st.fixed_dictionaries(
            {"of": st.sampled_from(["a", "b"]), "is": st.sampled_from(["empty", "equals", "more_than"]), "value": anything}
        ),
        "depends": st.lists(st.sampled_from(["a", "b", "c"]), max_size=2),
    },
)


@given(st.lists(step_like, max_size=4))
def test_whatever_a_plan_holds_it_is_sound_or_refused_and_never_breaks_the_check(steps: list[dict[str, Any]]) -> None:
    try:
        plan = Plan.model_validate({"steps": steps})
    except ValidationError:
        return
    try:
        sound = check_plan(plan, (SURVEY, TASK, FOUND), contracts=TOOLS)
    except BadPlan:
        return
    assert check_plan(sound, (SURVEY, TASK, FOUND), contracts=TOOLS) == sound


@given(json_values)
def test_arbitrary_json_is_no_plan_or_is_checked_like_any(value: Any) -> None:
    try:
        check_plan(Plan.model_validate({"steps": value}), tuple(TOOLS), contracts=TOOLS)
    except (ValidationError, BadPlan):
        pass
