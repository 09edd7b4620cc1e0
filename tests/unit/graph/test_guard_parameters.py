from __future__ import annotations

from typing import Any

import pytest

from phronesis_contracts.twin import QueryRefused
from phronesis_graph.guard import Guard
from tests.guard.values import LIMITS, NAMES_REFUSED, REFUSED, TAKEN
from tests.support.cases import for_each

STATEMENT = "MATCH (n:EntityProject) WHERE n.id = $value RETURN n.id"


def check(guard: Guard, **parameters: Any) -> None:
    guard.check(STATEMENT, parameters, "acme")


@pytest.mark.req("N-129", "K-090")
@for_each("value", TAKEN)
def test_a_value_is_data_and_stays_as_it_is(guard: Guard, value: Any) -> None:
    allowed = guard.check(STATEMENT, {"value": value}, "acme")
    assert allowed.parameters == {"value": value, "phronesis_tenant": "acme"}


@for_each("value", REFUSED)
def test_a_value_that_no_store_takes_or_that_is_too_large_is_refused(guard: Guard, value: Any) -> None:
    with pytest.raises(QueryRefused, match="Violation: parameter: "):
        check(guard, value=value)


@pytest.mark.parametrize("name", NAMES_REFUSED)
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


@pytest.mark.parametrize(("value", "taken"), LIMITS)
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
