"""Insights with what they rest on, and decisions with what came of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from phronesis_contracts import BadRequest, Principal
from phronesis_contracts.constitution.search import Supported
from phronesis_contracts.constitution.values import ConstitutionNode, Mention

from .fitting import shown
from .meaning import Meaning, Near
from .ports import Chosen

INSIGHTS = frozenset({"insight", "pattern"})
DECISIONS = frozenset({"decision"})
_NEAREST = 20
"""Decisions among which the return decides (O-281)."""


@dataclass(frozen=True)
class Precedents:
    """What a precedent has to have."""

    floor: float
    min_roi: float | None
    start: str | None
    limit: int


class Supports:
    """Finds nodes by meaning and by a figure of theirs, and what they are linked to."""

    def __init__(self, meaning: Meaning) -> None:
        self._meaning = meaning

    async def insights(self, who: Principal, question: str, floor: float, sure: float, top_k: int) -> list[Supported]:
        """The nearest insights and patterns that are sure enough, the surest first, with their evidence (O-271 to O-273)."""
        vector = await self._meaning.question(who.tenant, question)
        near = await self._meaning.near(
            who, vector, Chosen(types=INSIGHTS), floor, top_k, lambda node: figure(node, "confidence") >= sure
        )
        best = sorted(near, key=lambda one: (-figure(one.node, "confidence"), -one.score))
        linked = await self._ends(who, best, "SUPPORTED_BY", ("evidence",), ())
        return [_supported(one, linked) for one in best]

    async def precedents(self, who: Principal, question: str, by: Precedents) -> list[Supported]:
        """Of the nearest decisions those with a return of the least or more, the best return first (O-281, O-282).

        Those without a return come last, and are left out only where a least return is given (C-71).
        """
        vector = await self._meaning.question(who.tenant, question)
        near = await self._meaning.near(
            who,
            vector,
            Chosen(types=DECISIONS),
            by.floor,
            max(_NEAREST, by.limit),
            lambda node: _pays(node, by.min_roi) and _since(node, by.start),
        )
        best = sorted(near, key=_by_return)[: by.limit]
        linked = await self._ends(who, best, "LEADS_TO", ("task", "metric"), ("done", "active"))
        return [_supported(one, linked) for one in best]

    async def _ends(
        self, who: Principal, found: Sequence[Near], relationship: str, types: Sequence[str], statuses: Sequence[str]
    ) -> dict[str, tuple[Mention, ...]]:
        if not found:
            return {}
        return await self._meaning.structure.ends(who, [one.node.id for one in found], relationship, types, statuses)


def figure(node: ConstitutionNode, name: str) -> float:
    """A number of a node; 0 where it has none."""
    value = (node.model_extra or {}).get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def return_of(node: ConstitutionNode) -> float | None:
    """What a decision paid off (`roi.total`), where that is known."""
    roi = (node.model_extra or {}).get("roi")
    total = roi.get("total") if isinstance(roi, Mapping) else roi
    return float(total) if isinstance(total, int | float) else None


def day_or_time(given: str | None, field: str) -> str | None:
    """A date in the form that the graph keeps dates in, so that the order of texts is that of time.

    Args:
        given: ISO 8601, a day or a time; a time without a zone is UTC.
        field: its name, for the error.

    Raises:
        BadRequest: it is neither.
    """
    if given is None:
        return None
    try:
        if len(given) <= len("2026-11-22"):
            return date.fromisoformat(given).isoformat()
        when = datetime.fromisoformat(given)
    except ValueError as error:
        raise BadRequest("a day or a time in ISO 8601", field=field) from error
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _pays(node: ConstitutionNode, least: float | None) -> bool:
    found = return_of(node)
    return least is None or (found is not None and found >= least)


def _since(node: ConstitutionNode, start: str | None) -> bool:
    decided = (node.model_extra or {}).get("decidedAt")
    # A day without a time counts with the whole of it: 2026-01-01 is not before 2026-01-01T09:00.
    return start is None or (isinstance(decided, str) and decided >= start[: len(decided)])


def _by_return(one: Near) -> tuple[bool, float, float, str]:
    found = return_of(one.node)
    return found is None, -(found or 0.0), -one.score, one.node.id


def _supported(one: Near, linked: Mapping[str, tuple[Mention, ...]]) -> Supported:
    return Supported(node=shown(one.node), score=one.score, linked=linked.get(one.node.id, ()))
