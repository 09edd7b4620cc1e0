"""Which nodes cannot both be followed."""

from __future__ import annotations

import re

from phronesis_contracts.constitution.insight import CONTRADICTIONS_TOOL, Contradiction, FindContradictions

from .desk import Desk
from .saying import cite, listed, paragraphs

_TYPES = ("goal", "value", "principle", "guardrail", "vision", "strategy")


async def contradictions(desk: Desk, text: str) -> str:
    """The answer, of the types that the question names; of all that guide, where it names none.

    Raises:
        NotOffered: the tool for it is not at hand.
        ServiceError: it failed.
    """
    types = types_in(text)
    asked = FindContradictions(types=types) if types else FindContradictions()
    found = await desk.ask(CONTRADICTIONS_TOOL, asked)
    what = f"{types[0]}s" if len(types) == 1 else "nodes"
    if not found.pairs:
        return (
            f"I found no {what} that contradict each other: none are marked so, and none that speak of the same want opposites."
        )
    head = (
        f"One pair of {what} contradicts itself"
        if len(found.pairs) == 1
        else f"{len(found.pairs)} pairs of {what} contradict each other"
    )
    return paragraphs(f"{head}:", listed(map(_told, found.pairs)))


def types_in(text: str) -> tuple[str, ...]:
    """The node types that a question names."""
    said = set(re.findall(r"[a-z]+", text.casefold()))
    return tuple(name for name in _TYPES if {name, f"{name}s", f"{name[:-1]}ies"} & said)


def _told(pair: Contradiction) -> str:
    return f"{cite(pair.one)} and {cite(pair.other)}: {pair.because}"
