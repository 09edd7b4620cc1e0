from __future__ import annotations

from typing import Any

import pytest

from phronesis.contracts.cypher import QueryRefused
from phronesis.graph.guard import Guard

STATEMENT = "MATCH (n:EntityProject) WHERE n.id = $value RETURN n.id"


def check(guard: Guard, **parameters: Any) -> None:
    guard.check(STATEMENT, parameters, "acme")


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.req("N-129", "K-090")
@pytest.mark.parametrize(
    "value", ["x' OR 1=1", "'}) DETACH DELETE n //", "L1 L2 L3", "", "ünïcode", 0, -(2**63), 1.5, None, True, ["a"], {"a": [1]}]
)
def test_a_value_is_data_and_stays_as_it_is(guard: Guard, value: Any) -> None:
    allowed = guard.check(STATEMENT, {"value": value}, "acme")
    assert allowed.parameters == {"value": value, "phronesis_tenant": "acme"}


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        -float("inf"),
        2**63,
        -(2**63) - 1,
        "\ud800",
        "a\0b",
        "x" * 100_001,
        ["x" * 60_000, "y" * 60_000],
        list(range(2_001)),
        {str(i): i for i in range(2_001)},
        {str(i): [i] * 20 for i in range(101)},
        nested(6),
        {1: 2},
        {"a": {"b": float("nan")}},
        object(),
        b"bytes",
        {1, 2},
    ],
)
def test_a_value_that_no_store_takes_or_that_is_too_large_is_refused(guard: Guard, value: Any) -> None:
    with pytest.raises(QueryRefused, match="Violation: parameter: "):
        check(guard, value=value)


@pytest.mark.parametrize("name", ["phronesis_tenant", "PHRONESIS_TENANT", "phronesis_1", "a b", "", "ünï", "a-b", "`a`"])
def test_a_name_of_the_guards_own_or_an_odd_one_is_refused(guard: Guard, name: str) -> None:
    with pytest.raises(QueryRefused, match="Violation: parameter: "):
        check(guard, **{"value": 1, name: "B"})


def test_at_most_fifty_parameters_are_taken(guard: Guard) -> None:
    with pytest.raises(QueryRefused, match="Violation: parameter: "):
        check(guard, value=1, **{f"p{i}": i for i in range(50)})
    check(guard, value=1, **{f"p{i}": i for i in range(49)})


def test_a_parameter_without_a_value_is_named(guard: Guard) -> None:
    with pytest.raises(QueryRefused, match=r"\$value has no value"):
        check(guard)


@pytest.mark.parametrize(
    ("value", "taken"),
    [(0, True), (500, True), (501, False), (-1, False), (True, False), ("5", False), (5.0, False), (None, False)],
)
def test_a_parameter_behind_limit_is_a_whole_number_within_bounds(guard: Guard, value: Any, taken: bool) -> None:
    statement = "MATCH (n:EntityProject) RETURN n.id LIMIT $limit"
    if taken:
        assert guard.check(statement, {"limit": value}, "acme").statement.endswith("LIMIT $limit")
    else:
        with pytest.raises(QueryRefused, match="Violation: limit: "):
            guard.check(statement, {"limit": value}, "acme")


def test_the_tenant_of_each_call_is_its_own_though_the_verdict_is_kept(guard: Guard) -> None:
    one, other = (guard.check(STATEMENT, {"value": 1}, tenant) for tenant in ("acme", "umbrella"))
    assert one.statement == other.statement
    assert (one.parameters["phronesis_tenant"], other.parameters["phronesis_tenant"]) == ("acme", "umbrella")
