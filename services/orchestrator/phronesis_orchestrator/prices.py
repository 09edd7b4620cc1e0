"""What calls to a model cost, by the list that comes with the package."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

from phronesis_contracts import Message

from .reasoner import Spent


class Price(Message):
    """US dollars for a million tokens of one model."""

    input: float
    output: float
    cached: float | None = None
    """Input that the provider read from its cache; what other input costs where it is not stated."""


@cache
def _prices() -> dict[str, dict[str, Price]]:
    listed = tomllib.loads((files(__package__) / "prices.toml").read_text())
    return {name: {model: Price(**price) for model, price in models.items()} for name, models in listed.items()}


def cost(provider: str, model: str, spent: Spent) -> float | None:
    """What calls to one model cost, in US dollars; `None` where its price is not known.

    Args:
        provider: `groq`, or another name of the list.
        model: the model's name there.
        spent: the tokens of the calls.
    """
    price = _prices().get(provider, {}).get(model)
    if price is None:
        return None
    cached = min(spent.cached_tokens, spent.input_tokens)
    read = price.input if price.cached is None else price.cached
    return ((spent.input_tokens - cached) * price.input + cached * read + spent.output_tokens * price.output) / 1_000_000


def together(costs: list[float | None]) -> float | None:
    """Several costs; `None` where one of them is not known, or there is none."""
    known = [each for each in costs if each is not None]
    return round(sum(known), 9) if costs and len(known) == len(costs) else None
