"""Finding gaps.

What the questions need to know of the graph is asked for together, then each is judged by the ontology's four definitions;
where several fit, the first counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from phronesis_contracts.twin import Diagnosed, Gap, GapQuestion, GapType, Level

from .chains import Walk, Walks
from .gaps import ChainReach, Direction, FoundTie, GapCase, NodeId, Tie, TieQuestion, check_questions
from .ontology import Ontology
from .ports import ReasoningStore

Standing = Mapping[NodeId, Mapping[int, Level]]
"""The years in which each thing is there, and on which level."""


def is_unknown(case: GapCase, standing: Standing) -> bool:
    """Whether a node that is asked about is there in no year."""
    return not all(standing.get(thing) for thing in case.things)


def judge_node(case: GapCase, standing: Standing) -> Gap | None:
    """The gap of the node itself: it is there in other years only, or on another level."""
    return _judge_absence(case, standing) or _judge_other_places(case, standing)


def judge_tie(case: GapCase, standing: Standing, ties: Sequence[FoundTie]) -> Gap | None:
    """The gap of a pair, or of a node and one of its relationships."""
    fitting = [tied for tied in ties if _fits(case, tied)]
    if any(tied.year == case.year for tied in fitting):
        return None
    return (
        _judge_absence(case, standing)
        or _judge_other_years(case, case.step, fitting)
        or _judge_other_places(case, standing)
        or _judge_other_levels(case, case.step, [tied for tied in ties if tied.year == case.year])
        or _gap(case, GapType.DIRECT, case.step, _missing_step(case), case.question.node.key)
    )


def judge_chain(case: GapCase, reached: ChainReach, ties: Sequence[FoundTie]) -> Gap | None:
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
        _judge_other_years(case, step, others, reached.last)
        or _judge_other_levels(case, step, [tied for tied in ties if tied.year == case.year], reached.last)
        or _gap(case, GapType.CHAIN, step, because, last)
    )


def _fits(case: GapCase, tied: FoundTie) -> bool:
    free = case.tie is not None and case.tie.free
    return tied.level is case.level and (free or tied.other_level is case.level)


def _judge_absence(case: GapCase, standing: Standing) -> Gap | None:
    for thing in case.things:
        if case.year not in standing[thing]:
            years = _join_values(standing[thing])
            because = f"{_node_key(thing, case.year)} is not there; {thing[0]}/{thing[1]} is in {years}."
            return _gap(case, GapType.TEMPORAL, _node_key(thing, case.year), because, _key_before(case, thing))
    return None


def _judge_other_places(case: GapCase, standing: Standing) -> Gap | None:
    # The other end of a relationship that may join levels can stand anywhere.
    things = case.things[:1] if case.tie is not None and case.tie.free else case.things
    for thing in things:
        level = standing[thing].get(case.year)
        if level is not None and level is not case.level:
            because = f"{_node_key(thing, case.year)} stands at {level}, not at {case.level}."
            return _gap(case, GapType.LEVEL, _node_key(thing, case.year), because, _key_before(case, thing))
    return None


def _judge_other_years(case: GapCase, step: str, ties: Iterable[FoundTie], last: Sequence[str] = ()) -> Gap | None:
    found = list(ties)
    if not found:
        return None
    at = _first_with_tie(case, found, last)
    years = _join_values(tied.year for tied in found)
    return _gap(case, GapType.TEMPORAL, step, f"In {years} {at} has this at {case.level}, in {case.year} it has not.", at)


def _judge_other_levels(case: GapCase, step: str, ties: Iterable[FoundTie], last: Sequence[str] = ()) -> Gap | None:
    found = [tied for tied in ties if not _fits(case, tied)]
    if not found:
        return None
    at = _first_with_tie(case, found, last)
    levels = _join_values(tied.other_level if tied.level is case.level else tied.level for tied in found)
    return _gap(case, GapType.LEVEL, step, f"In {case.year} {at} has this at {levels}, not at {case.level}.", at)


def _first_with_tie(case: GapCase, ties: Iterable[FoundTie], last: Sequence[str]) -> str:
    things = {f"{tied.type}/{tied.id}" for tied in ties}
    return min((key for key in last if key.rsplit("/", 1)[0] in things), default=case.question.node.key)


def _missing_step(case: GapCase) -> str:
    node, other = case.question.node, case.question.other
    if other is None:
        return f"{node.key} is there at {case.level} and has none."
    return f"{node.key} and {other.key} are both there and not joined."


def _gap(case: GapCase, type: GapType, step: str, because: str, last: str | None) -> Gap:
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


def _key_before(case: GapCase, thing: NodeId) -> str | None:
    return None if thing == case.things[0] else case.question.node.key


def _node_key(thing: NodeId, year: int) -> str:
    return f"{thing[0]}/{thing[1]}/{year}"


def _join_values(values: Iterable[object]) -> str:
    return ", ".join(sorted({str(value) for value in values}))


class Diagnosis:
    """Answers gap questions of one tenant from the graph alone."""

    def __init__(self, ontology: Ontology, walks: Walks, store: ReasoningStore, tenant: str) -> None:
        self._ontology, self._walks = ontology, walks
        self._store, self._tenant = store, tenant

    async def of(self, questions: Sequence[GapQuestion]) -> Diagnosed:
        """The gaps that there are.

        However many questions there are, the graph is asked four times at most: where the nodes are, which pairs are joined,
        how far the chains come, and what there is of their next steps in other years and on other levels. Raises `BadRequest`
        (a question that does not fit the ontology), `Unavailable` (the store is down), `TimedOut` (it did not answer in time).
        """
        checked = check_questions(self._ontology, self._walks, questions)
        standing = await self._store.standing(self._tenant, {thing for case in checked for thing in case.things})
        known = [case for case in checked if not is_unknown(case, standing)]
        found = {case.id: judge_node(case, standing) for case in known if case.tie is None}
        walked = [case for case in known if case.walk is not None and found[case.id] is None]
        found |= await self._of_ties([case for case in known if case.tie is not None], standing)
        found |= await self._of_chains(walked)
        gaps = tuple(gap for case in known if (gap := found[case.id]) is not None)
        strangers = tuple(case.id for case in checked if case.id not in found)
        return Diagnosed(gaps=gaps, asked=len(questions), unknown=strangers)

    async def _of_ties(self, asked: Sequence[GapCase], standing: Standing) -> dict[str, Gap | None]:
        wanted: dict[Tie, list[TieQuestion]] = defaultdict(list)
        for case in asked:
            assert case.tie is not None
            other = case.question.other
            wanted[case.tie].append(TieQuestion(case.id, case.question.node.id, other.id if other else None))
        ties = await self._ties(wanted)
        return {case.id: judge_tie(case, standing, ties[case.id]) for case in asked}

    async def _of_chains(self, asked: Sequence[GapCase]) -> dict[str, Gap | None]:
        by_walk: dict[Walk, list[GapCase]] = defaultdict(list)
        for case in asked:
            assert case.walk is not None
            by_walk[case.walk].append(case)
        # A node that has gone since it was looked up is stood at and not left.
        reached = {case.id: ChainReach(0, (case.question.node.key,)) for case in asked}
        reached |= await self._store.reached(self._tenant, by_walk) if asked else {}
        ties = await self._ties(_ties_of_next_steps(asked, reached))
        return {case.id: judge_chain(case, reached[case.id], ties[case.id]) for case in asked}

    async def _ties(self, wanted: dict[Tie, list[TieQuestion]]) -> dict[str, list[FoundTie]]:
        found: dict[str, list[FoundTie]] = defaultdict(list)
        for tied in await self._store.ties(self._tenant, wanted) if wanted else ():
            found[tied.question].append(tied)
        return found


def _ties_of_next_steps(asked: Sequence[GapCase], reached: dict[str, ChainReach]) -> dict[Tie, list[TieQuestion]]:
    """Whether the step that a walk does not get beyond is there in other years, or leads to other levels."""
    wanted: dict[Tie, list[TieQuestion]] = defaultdict(list)
    for case in asked:
        assert case.walk is not None
        how_far = reached[case.id]
        if how_far.hops == len(case.walk.hops):
            continue
        hop = case.walk.hops[how_far.hops]
        for type, id in map(_id_of_key, how_far.last):
            wanted[Tie(type, hop.names, hop.targets, Direction.OUT)].append(TieQuestion(case.id, id))
    return wanted


def _id_of_key(key: str) -> NodeId:
    type, rest = key.split("/", 1)
    return type, rest.rsplit("/", 1)[0]
