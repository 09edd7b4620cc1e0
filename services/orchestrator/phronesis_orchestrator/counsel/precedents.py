"""Which decisions like one that is described paid off, and which rules it would touch."""

from __future__ import annotations

from phronesis_contracts.constitution.search import PRECEDENT_SEARCH_TOOL, PrecedentSearch, Supported

from .desk import Desk
from .saying import cite, joined, listed, paragraphs

_DECISIONS = 6
"""Decisions that are looked at."""


async def precedents(desk: Desk, described: str) -> str:
    """The answer.

    Args:
        desk: the tools of the turn.
        described: the decision at hand, in words.

    Raises:
        NotOffered: the tool for it is not at hand.
        ServiceError: it failed.
    """
    found = await desk.ask(PRECEDENT_SEARCH_TOOL, PrecedentSearch(query=described, limit=_DECISIONS))
    if not found.results:
        return "The graph holds no decision like that one."
    good = [one for one in found.results if (roi(one) or 0) > 0]
    bad = [one for one in found.results if (value := roi(one)) is not None and value <= 0]
    open_ones = [one for one in found.results if roi(one) is None]
    many = len(found.results)
    head = (
        f"Of {many} past decisions like that one, {len(good)} paid off."
        if many > 1
        else (
            "There is one past decision like that one, and it paid off."
            if good
            else "There is one past decision like that one."
        )
    )
    return paragraphs(
        head,
        f"Paid off:\n{listed(map(_told, good))}" if good else "",
        f"Did not pay off:\n{listed(map(_told, bad))}" if bad else "",
        f"No return is recorded:\n{listed(map(_told, open_ones))}" if open_ones else "",
    )


def roi(one: Supported) -> float | None:
    """The total return of a decision; `None` where none is recorded."""
    value = (one.node.model_extra or {}).get("roi")
    total = value.get("total") if isinstance(value, dict) else value
    return float(total) if isinstance(total, int | float) and not isinstance(total, bool) else None


def _told(one: Supported) -> str:
    value, decided = roi(one), (one.node.model_extra or {}).get("decidedAt")
    said = [f"return {value:g}"] if value is not None else []
    said += [f"decided {str(decided)[:10]}"] if decided else []
    came = [cite(mention) for mention in one.linked]
    details = f" ({', '.join(said)})" if said else ""
    return f"{cite(one.node)}{details}" + (f"; it led to {joined(came)}" if came else "")
