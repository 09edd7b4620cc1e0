"""Figures of guardrails in words."""

from __future__ import annotations

import pytest

from evals.guardrails import judge_here, rule, summary

HALF = {
    "guardrails": [{"id": "a", "title": "Safe barn", "trigger": "open fire in the barn", "severity": "block"}],
    "writes": [
        {"id": "1", "how": "plain", "violates": ["a"], "type": "task", "fields": {"title": "An open fire in the barn"}},
        {"id": "2", "how": "negated", "violates": [], "type": "task", "fields": {"title": "No open fire in the barn"}},
    ],
}


async def test_each_write_is_held_against_every_guardrail() -> None:
    assert await judge_here(HALF) == {"1": {"a"}, "2": set()}


def test_a_violation_counts_where_its_own_guardrail_goes_off_and_a_false_stop_where_any_does() -> None:
    lines = summary(HALF, {"1": {"b"}, "2": {"b"}})
    assert [line.split(" (")[0] for line in lines if "(" in line] == ["violations stopped: 0.000", "false stops: 1.000"]
    assert lines[-1] == "  negated: 1 of 1"


def test_a_guardrail_without_a_trigger_is_refused() -> None:
    with pytest.raises(ValueError, match="a has no trigger"):
        rule({"id": "a", "title": "Vague"})
