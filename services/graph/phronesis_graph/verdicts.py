"""What is a gap, and which: the ontology's four definitions over what the graph holds. Where several fit, the first counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from phronesis_contracts.graph import Level
from phronesis_contracts.twin import Gap, GapType

from .gaps import Case, Reached, Thing, Tied

Standing = Mapping[Thing, Mapping[int, Level]]
"""The years in which each thing is there, and on which level."""


def unknown(case: Case, standing: Standing) -> bool:
    """Whether a node that is asked about is there in no year."""
    return not all(standing.get(thing) for thing in case.things)


def of_node(case: Case, standing: Standing) -> Gap | None:
    """The gap of the node itself: it is there in other years only, or on another level."""
    return _absent(case, standing) or _elsewhere(case, standing)


def of_tie(case: Case, standing: Standing, ties: Sequence[Tied]) -> Gap | None:
    """The gap of a pair, or of a node and one of its relationships."""
    fitting = [tied for tied in ties if _fits(case, tied)]
    if any(tied.year == case.year for tied in fitting):
        return None
    return (
        _absent(case, standing)
        or _another_year(case, case.step, fitting)
        or _elsewhere(case, standing)
        or _another_level(case, case.step, [tied for tied in ties if tied.year == case.year])
        or _gap(case, GapType.DIRECT, case.step, _unjoined(case), case.question.node.key)
    )


def of_chain(case: Case, reached: Reached, ties: Sequence[Tied]) -> Gap | None:
    """The gap of a chain that begins at a node which is there; `ties` are those of its next step from where it stops."""
    assert case.walk is not None
    if reached.hops == len(case.walk.hops):
        return None
    step = case.walk.hops[reached.hops].text
    others = [tied for tied in ties if _fits(case, tied) and tied.year != case.year]
    last = min(reached.last)
    more = f" and {len(reached.last) - 1} more" if len(reached.last) > 1 else ""
    because = (
        f"From {case.question.node.key} the chain takes {reached.hops} of {len(case.walk.hops)} steps in {case.year} at "
        f"{case.level} and stops at {last}{more}."
    )
    return (
        _another_year(case, step, others, reached.last)
        or _another_level(case, step, [tied for tied in ties if tied.year == case.year], reached.last)
        or _gap(case, GapType.CHAIN, step, because, last)
    )


def _fits(case: Case, tied: Tied) -> bool:
    free = case.tie is not None and case.tie.free
    return tied.level is case.level and (free or tied.other_level is case.level)


def _absent(case: Case, standing: Standing) -> Gap | None:
    for thing in case.things:
        if case.year not in standing[thing]:
            years = _listed(standing[thing])
            because = f"{_key(thing, case.year)} is not there; {thing[0]}/{thing[1]} is in {years}."
            return _gap(case, GapType.TEMPORAL, _key(thing, case.year), because, _before(case, thing))
    return None


def _elsewhere(case: Case, standing: Standing) -> Gap | None:
    # The other end of a relationship that may join levels can stand anywhere.
    things = case.things[:1] if case.tie is not None and case.tie.free else case.things
    for thing in things:
        level = standing[thing].get(case.year)
        if level is not None and level is not case.level:
            because = f"{_key(thing, case.year)} stands at {level}, not at {case.level}."
            return _gap(case, GapType.LEVEL, _key(thing, case.year), because, _before(case, thing))
    return None


def _another_year(case: Case, step: str, ties: Iterable[Tied], last: Sequence[str] = ()) -> Gap | None:
    found = list(ties)
    if not found:
        return None
    at = _first(case, found, last)
    years = _listed(tied.year for tied in found)
    return _gap(case, GapType.TEMPORAL, step, f"In {years} {at} has this at {case.level}, in {case.year} it has not.", at)


def _another_level(case: Case, step: str, ties: Iterable[Tied], last: Sequence[str] = ()) -> Gap | None:
    found = [tied for tied in ties if not _fits(case, tied)]
    if not found:
        return None
    at = _first(case, found, last)
    levels = _listed(tied.other_level if tied.level is case.level else tied.level for tied in found)
    return _gap(case, GapType.LEVEL, step, f"In {case.year} {at} has this at {levels}, not at {case.level}.", at)


def _first(case: Case, ties: Iterable[Tied], last: Sequence[str]) -> str:
    """Of the nodes that a walk stops at, the first one that has the tie."""
    things = {f"{tied.type}/{tied.id}" for tied in ties}
    return min((key for key in last if key.rsplit("/", 1)[0] in things), default=case.question.node.key)


def _unjoined(case: Case) -> str:
    node, other = case.question.node, case.question.other
    if other is None:
        return f"{node.key} is there at {case.level} and has none."
    return f"{node.key} and {other.key} are both there and not joined."


def _gap(case: Case, type: GapType, step: str, because: str, last: str | None) -> Gap:
    node, other = case.question.node, case.question.other
    return Gap(
        question=case.id,
        type=type,
        year=case.year,
        level=case.level,
        chain=case.question.chain,
        pair=None if other is None else (node.key, other.key),
        last_node=last,
        missing_step=step,
        because=because,
    )


def _before(case: Case, thing: Thing) -> str | None:
    return None if thing == case.things[0] else case.question.node.key


def _key(thing: Thing, year: int) -> str:
    return f"{thing[0]}/{thing[1]}/{year}"


def _listed(values: Iterable[object]) -> str:
    return ", ".join(sorted({str(value) for value in values}))
