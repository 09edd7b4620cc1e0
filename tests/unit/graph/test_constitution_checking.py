"""What is written to the constitutional graph, held against its registry."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_contracts.constitution.registry import TYPES, Kind, NodeType, Property, TaskStatus
from phronesis_contracts.constitution.writes import CREATE, UPDATE, RegistryRefused, UpdateAnyNode
from phronesis_graph.constitution.records import normalize_value
from phronesis_graph.constitution.validation import changed_fields, find_type, merge_content, node_fields
from tests.support.cases import for_each
from tests.support.constitution_writes import declared

EVERY = list(TYPES.values())
kinds = st.sampled_from(EVERY)


def refused(kind: NodeType, before: dict[str, Any], **given_: Any) -> RegistryRefused:
    with pytest.raises(RegistryRefused) as caught:
        merge_content(kind, before, given_)
    return caught.value


@pytest.mark.req("O-026", "O-062", "O-065")
@for_each("kind", EVERY)
def test_a_title_alone_makes_a_node_of_any_type_in_its_first_status(kind: NodeType) -> None:
    assert merge_content(kind, {}, {"title": "x"}) == {"title": "x", "status": "todo" if kind.name == "task" else "active"}


@pytest.mark.req("O-062", "O-063", "C-08")
@for_each("kind", EVERY)
def test_what_a_type_declares_stands_beside_the_title_and_the_rest_in_the_bag(kind: NodeType) -> None:
    content = merge_content(kind, {}, {"title": "x", **declared(kind), "colour": "green", "metadata": {"a": [1]}})
    assert content == {
        "title": "x",
        "status": kind.statuses[0],
        **declared(kind),
        "properties": {"colour": "green"},
        "metadata": {"a": [1]},
    }


@pytest.mark.req("O-066")
@for_each("kind", EVERY)
def test_each_type_takes_its_own_statuses_and_no_other(kind: NodeType) -> None:
    for status in kind.statuses:
        assert merge_content(kind, {}, {"title": "x", "status": str(status)})["status"] == status
    wrong = refused(kind, {}, title="x", status="finished")
    assert wrong.field == "status"
    if kind.name != "task":
        assert refused(kind, {}, title="x", status=TaskStatus.DONE.value).field == "status"


@pytest.mark.req("O-065")
def test_a_misspelt_status_is_told_the_nearest_one() -> None:
    assert "did you mean archived?" in refused(TYPES["goal"], {}, title="x", status="archive").detail
    assert merge_content(TYPES["task"], {}, {"title": "x", "status": "In Progress"})["status"] == "in_progress"


@pytest.mark.req("O-107")
@for_each(
    ("kind", "value"),
    [
        (Kind.TEXT, 3),
        (Kind.TEXT, "x" * 20_001),
        (Kind.TEXTS, "one"),
        (Kind.TEXTS, [1]),
        (Kind.TEXTS, ["x"] * 101),
        *((kind, wrong) for kind in (Kind.NUMBER, Kind.SHARE, Kind.HOURS, Kind.ROI) for wrong in ("3", True, float("nan"))),
        (Kind.NUMBER, 10**400),
        (Kind.SHARE, 1.01),
        (Kind.SHARE, -0.01),
        (Kind.HOURS, -1),
        *((Kind.PRIORITY, wrong) for wrong in (0, 6, 2.5, "urgent", True, [], "")),
        *((Kind.DATE, wrong) for wrong in ("", "soon", "2026-02-30", "2026-13-01", 20261122, "0001-01-01T00:00:00+12:00")),
        (Kind.ROI, {}),
        (Kind.ROI, {"total": "much"}),
        (Kind.ROI, {"total": 1, "expected": 2}),
    ],
)
def test_a_value_that_is_not_of_its_kind_is_refused_by_its_field(kind: Kind, value: object) -> None:
    with pytest.raises(RegistryRefused) as caught:
        normalize_value(Property("it", kind), value)
    assert caught.value.field == "it"


@pytest.mark.req("O-067", "O-107")
@pytest.mark.parametrize(
    ("given_", "kept"),
    [
        ("2026-11-22", "2026-11-22"),
        ("20261122", "2026-11-22"),
        (" 2026-11-22 ", "2026-11-22"),
        ("2026-11-22T10:00", "2026-11-22T10:00:00.000000Z"),
        ("2026-11-22T10:00:00+02:00", "2026-11-22T08:00:00.000000Z"),
        ("2026-11-22 10:00:00.5Z", "2026-11-22T10:00:00.500000Z"),
    ],
)
def test_a_date_has_one_form_whatever_it_was_written_as(given_: str, kept: str) -> None:
    assert normalize_value(Property("it", Kind.DATE), given_) == kept


zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
times = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=zones)


@pytest.mark.req("O-067")
@given(times, times)
def test_the_order_of_times_as_texts_is_the_order_of_time(one: datetime, other: datetime) -> None:
    first, second = (str(normalize_value(Property("it", Kind.DATE), when.isoformat())) for when in (one, other))
    assert (first < second, first == second) == (one < other, one == other)


@pytest.mark.req("O-048", "C-61")
def test_a_priority_in_words_is_a_number() -> None:
    assert [
        normalize_value(Property("it", Kind.PRIORITY), word) for word in ("low", "Medium", "high", " critical ", "1", 5)
    ] == [*(2, 3, 4, 5, 1, 5)]


@pytest.mark.req("O-047")
def test_a_return_is_its_total_however_it_is_given() -> None:
    assert [normalize_value(Property("roi", Kind.ROI), roi) for roi in (3, 2.5, {"total": -1})] == [
        *({"total": 3.0}, {"total": 2.5}, {"total": -1.0})
    ]


@pytest.mark.req("O-014", "O-015")
@given(kinds, kinds)
def test_a_layer_or_type_of_another_is_refused_and_its_own_is_nothing_new(kind: NodeType, other: NodeType) -> None:
    for name, own, wrong in (("type", kind.name, other.name), ("layer", kind.layer.value, other.layer.value)):
        assert merge_content(kind, {}, {"title": "x", name: own.upper()}) == merge_content(kind, {}, {"title": "x"})
        if wrong != own:
            assert refused(kind, {}, title="x", **{name: wrong}).field == name


@pytest.mark.req("O-063", "C-09")
@pytest.mark.parametrize("name", ["embedding", "embeddingUpdatedAt", "createdAt", "updated_at", "tenant", "key", "lifecycle"])
def test_what_the_service_keeps_cannot_be_given(name: str) -> None:
    assert "the service's own" in refused(TYPES["note"], {}, title="x", **{name: "x"}).detail


@pytest.mark.req("O-107")
@pytest.mark.parametrize("title", [None, "", "   "])
def test_a_title_cannot_be_taken_away(title: str | None) -> None:
    assert refused(TYPES["goal"], {"title": "x"}, title=title).field == "title"


def test_null_removes_and_what_is_not_named_stays() -> None:
    before = merge_content(
        TYPES["goal"], {}, {"title": "x", "summary": "s", "deadline": "2026-11-22", "properties": {"a": 1, "b": 2}}
    )
    after = merge_content(TYPES["goal"], before, {"summary": None, "deadline": None, "properties": {"a": None}})
    assert after == {"title": "x", "status": "active", "properties": {"b": 2}}
    assert merge_content(TYPES["goal"], after, {"properties": None, "status": None}) == {"title": "x", "status": "active"}


def test_a_declared_name_in_the_bag_is_the_typed_property_and_a_spelling_with_underscores_too() -> None:
    content = merge_content(TYPES["task"], {}, {"title": "x", "properties": {"effortHours": 3}, "due_date": "2026-11-22"})
    assert content == {"title": "x", "status": "todo", "effortHours": 3.0, "dueDate": "2026-11-22"}


@pytest.mark.req("O-348")
def test_the_services_own_words_of_provenance_are_nobody_elses() -> None:
    before = {"title": "x", "provenance": {"actor": "ann", "source": "gateway", "from": "a talk"}}
    given_ = {"provenance": {"actor": "bob", "from": "a book"}}
    assert merge_content(TYPES["note"], before, given_)["provenance"] == {"actor": "ann", "source": "gateway", "from": "a book"}
    assert merge_content(TYPES["note"], before, {"provenance": None})["provenance"] == {"actor": "ann", "source": "gateway"}


@pytest.mark.parametrize(
    "bag", [{f"p{n}": n for n in range(45)}, {"x" * 65: 1}, {" ": 1}, {"a": {"b": [float("inf")]}}, "text", [1]]
)
def test_a_bag_is_bounded_and_holds_what_json_holds(bag: Any) -> None:
    assert (refused(TYPES["note"], {}, title="x", metadata=bag).field or "").startswith("metadata")


def test_a_node_is_bounded_in_all() -> None:
    long = {name: "x" * 20_000 for name in ("summary", "description", "content")}
    assert "60000 characters" in refused(TYPES["note"], {}, title="x", **long).detail


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.req("O-117")
@given(kinds, st.dictionaries(st.text(min_size=1, max_size=20), values, max_size=6))
def test_whatever_is_given_is_kept_whole_or_refused_by_a_field_and_the_same_again_changes_nothing(
    kind: NodeType, more: dict[str, Any]
) -> None:
    given_ = {**more, "title": "x"}
    try:
        content = merge_content(kind, {}, given_)
    except RegistryRefused as error:
        field = error.field
    else:
        field = None
    if field is not None:
        return
    json.dumps(content)
    assert changed_fields(content, merge_content(kind, content, given_)) == ()
    assert merge_content(kind, {}, content) == content


@pytest.mark.req("O-117")
def test_what_differs_is_told_by_name() -> None:
    before = {"title": "x", "effortHours": 3.0, "properties": {"a": 1, "b": 2}}
    after = {"title": "y", "properties": {"b": 2, "a": 1}, "summary": "s"}
    assert changed_fields(before, after) == ("title", "summary", "effortHours")
    assert changed_fields({"properties": {"a": True}}, {"properties": {"a": 1}}) == ("properties",)


@pytest.mark.req("O-026", "C-07")
@pytest.mark.parametrize(("given_", "name"), [("keyresult", "keyResult"), ("AI", "ai"), ("TIMEBLOCK", "timeBlock")])
def test_a_type_is_found_in_whatever_case(given_: str, name: str) -> None:
    assert find_type(given_).name == name


def test_a_misspelt_type_is_told_the_nearest_one() -> None:
    for given_, hint in (("guardrial", "did you mean guardrail?"), ("zzzz", "schema.inventory.v1 lists")):
        with pytest.raises(RegistryRefused) as caught:
            find_type(given_)
        assert hint in caught.value.detail


@for_each("kind", EVERY)
def test_an_update_says_on_the_wire_what_was_given_and_nothing_else(kind: NodeType) -> None:
    model = UPDATE[kind.name].rpc.input
    for given_ in ({"id": "a"}, {"id": "a", "summary": None}, {"id": "a", **declared(kind), "colour": None}):
        assert json.loads(model.model_validate(given_).model_dump_json()) == given_
    request = CREATE[kind.name].rpc.input.model_validate({"title": "x", "requestId": "r", "layer": "mind"})
    assert node_fields(request.model_dump(by_alias=True)) == {"title": "x", "layer": "mind"}
    anything = UpdateAnyNode.model_validate({"id": "a", "fields": {"priority": None}})
    assert json.loads(anything.model_dump_json()) == {"id": "a", "fields": {"priority": None}}
