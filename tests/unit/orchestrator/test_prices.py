"""What a turn costs: by the list, and not at all where the list does not know."""

from __future__ import annotations

import pytest

from phronesis_orchestrator.ledger.books import price_call, sum_costs
from phronesis_orchestrator.ledger.usage import CallUsage

MILLION = 1_000_000


def test_a_call_costs_what_its_tokens_cost() -> None:
    spent = CallUsage(model_calls=1, input_tokens=2 * MILLION, output_tokens=MILLION)
    assert price_call("groq", "openai/gpt-oss-120b", spent) == pytest.approx(2 * 0.15 + 0.60)


def test_cached_input_has_a_price_of_its_own() -> None:
    spent = CallUsage(model_calls=1, input_tokens=MILLION, cached_tokens=MILLION)
    assert price_call("groq", "openai/gpt-oss-120b", spent) == pytest.approx(0.075)


def test_cached_input_without_a_price_of_its_own_costs_what_other_input_does() -> None:
    spent = CallUsage(model_calls=1, input_tokens=MILLION, cached_tokens=MILLION)
    assert price_call("groq", "llama-3.1-8b-instant", spent) == pytest.approx(0.05)


@pytest.mark.parametrize(("provider", "model"), [("groq", "somebody/else"), ("openai", "openai/gpt-oss-120b")])
def test_a_model_that_is_not_listed_has_no_cost(provider: str, model: str) -> None:
    assert price_call(provider, model, CallUsage(model_calls=1, input_tokens=MILLION)) is None


@pytest.mark.parametrize(("costs", "total"), [([], None), ([0.25, 0.5], 0.75), ([0.25, None], None), ([0.0], 0.0)])
def test_a_turn_has_a_cost_where_that_of_each_call_is_known(costs: list[float | None], total: float | None) -> None:
    assert sum_costs(costs) == total
