"""What nodes carry beside their texts: a long history of reviews in the foundation, little elsewhere.

The foundation of the system that the list describes cost 44,000 tokens for 45 nodes, two thirds of it in these bags (O-011,
O-134); a made-up one has to be as heavy to show what leaving them out saves.
"""

from __future__ import annotations

from datetime import date, timedelta
from random import Random
from typing import Any

from phronesis_contracts.constitution.kinds import Layer

from .themes import Theme
from .wording import Wording

_REVIEWS = 11
"""Of each node of the foundation, in each of two bags."""
_PERSON = {"hours": "36 a week", "answers": "short first, then the evidence", "language": "plain"}


def bags(type: str, layer: Layer, theme: Theme, wording: Wording, random: Random, as_of: date) -> dict[str, Any]:
    """`metadata` and `provenance` of a node, and for some types `properties`."""
    tags = [theme.topic, random.choice(theme.words["thing"])]
    origin = random.choice(("workshop", "minutes", "field book", "mail", "interview", "import"))
    made: dict[str, Any] = {"metadata": {"tags": tags}, "provenance": {"origin": origin}}
    if type in ("human", "ai"):
        made["properties"] = dict(_PERSON)
    if layer is Layer.FOUNDATION:
        made["properties"] = made.get("properties", {}) | {"reviews": _reviews(wording, random, as_of)}
        made["metadata"]["discussions"] = _reviews(wording, random, as_of)
    return made


def _reviews(wording: Wording, random: Random, as_of: date) -> list[dict[str, str]]:
    days = sorted(random.sample(range(30, 2_000), _REVIEWS), reverse=True)
    return [{"on": (as_of - timedelta(days=day)).isoformat(), "said": wording.review()} for day in days]
