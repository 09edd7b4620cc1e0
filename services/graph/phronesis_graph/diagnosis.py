"""Finding gaps: what the questions need to know of the graph is asked for together, then each is judged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from phronesis_contracts.twin import Diagnosed, Gap, GapQuestion

from .chains import Walk, Walks
from .gaps import Asked, Case, Direction, Reached, Thing, Tie, Tied, cases
from .ontology import Ontology
from .ports import ReasoningStore
from .verdicts import Standing, of_chain, of_node, of_tie, unknown


class Diagnosis:
    """Answers gap questions of one tenant from the graph alone."""

    def __init__(self, ontology: Ontology, walks: Walks, store: ReasoningStore, tenant: str) -> None:
        self._ontology = ontology
        self._walks = walks
        self._store = store
        self._tenant = tenant

    async def of(self, questions: Sequence[GapQuestion]) -> Diagnosed:
        """The gaps that there are.

        However many questions there are, the graph is asked four times at most: where the nodes are, which pairs are joined,
        how far the chains come, and what there is of their next steps in other years and on other levels.

        Raises:
            BadRequest: a question that does not fit the ontology.
            Unavailable: the store is down.
            TimedOut: it did not answer in time.
        """
        checked = cases(self._ontology, self._walks, questions)
        standing = await self._store.standing(self._tenant, {thing for case in checked for thing in case.things})
        known = [case for case in checked if not unknown(case, standing)]
        found = {case.id: of_node(case, standing) for case in known if case.tie is None}
        walked = [case for case in known if case.walk is not None and found[case.id] is None]
        found |= await self._of_ties([case for case in known if case.tie is not None], standing)
        found |= await self._of_chains(walked)
        gaps = tuple(gap for case in known if (gap := found[case.id]) is not None)
        strangers = tuple(case.id for case in checked if case.id not in found)
        return Diagnosed(gaps=gaps, asked=len(questions), unknown=strangers)

    async def _of_ties(self, asked: Sequence[Case], standing: Standing) -> dict[str, Gap | None]:
        wanted: dict[Tie, list[Asked]] = defaultdict(list)
        for case in asked:
            assert case.tie is not None
            other = case.question.other
            wanted[case.tie].append(Asked(case.id, case.question.node.id, other.id if other else None))
        ties = await self._ties(wanted)
        return {case.id: of_tie(case, standing, ties[case.id]) for case in asked}

    async def _of_chains(self, asked: Sequence[Case]) -> dict[str, Gap | None]:
        by_walk: dict[Walk, list[Case]] = defaultdict(list)
        for case in asked:
            assert case.walk is not None
            by_walk[case.walk].append(case)
        # A node that has gone since it was looked up is stood at and not left.
        reached = {case.id: Reached(0, (case.question.node.key,)) for case in asked}
        reached |= await self._store.reached(self._tenant, by_walk) if asked else {}
        ties = await self._ties(_next_steps(asked, reached))
        return {case.id: of_chain(case, reached[case.id], ties[case.id]) for case in asked}

    async def _ties(self, wanted: dict[Tie, list[Asked]]) -> dict[str, list[Tied]]:
        found: dict[str, list[Tied]] = defaultdict(list)
        for tied in await self._store.ties(self._tenant, wanted) if wanted else ():
            found[tied.question].append(tied)
        return found


def _next_steps(asked: Sequence[Case], reached: dict[str, Reached]) -> dict[Tie, list[Asked]]:
    """Whether the step that a walk does not get beyond is there in other years, or leads to other levels."""
    wanted: dict[Tie, list[Asked]] = defaultdict(list)
    for case in asked:
        assert case.walk is not None
        how_far = reached[case.id]
        if how_far.hops == len(case.walk.hops):
            continue
        hop = case.walk.hops[how_far.hops]
        for type, id in map(_thing, how_far.last):
            wanted[Tie(type, hop.names, hop.targets, Direction.OUT)].append(Asked(case.id, id))
    return wanted


def _thing(key: str) -> Thing:
    type, rest = key.split("/", 1)
    return type, rest.rsplit("/", 1)[0]
