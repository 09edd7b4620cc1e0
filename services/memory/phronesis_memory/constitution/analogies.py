"""Past successes that are like a goal, and what was done for them (O-397)."""

from __future__ import annotations

from phronesis_contracts import NotFound, Principal
from phronesis_contracts.constitution.insight import Analogy
from phronesis_contracts.constitution.values import Mention

from .fitting import shown
from .matrix import gathered
from .meaning import Meaning
from .outcomes import Ended, ended
from .ports import Chosen
from .supporting import goals_of

_STRATEGIES = 2_000
GOALS = frozenset({"goal"})


class Analogies:
    """Finds analogies."""

    def __init__(self, meaning: Meaning) -> None:
        self._meaning = meaning

    async def find(self, who: Principal, id: str, limit: int) -> list[Analogy]:
        """The achieved goals that are most like a goal, each with its strategies.

        Raises:
            NotFound: there is no such goal, or it has no vector yet.
        """
        asked = await gathered(self._meaning.vectors, who.tenant, Chosen(types=GOALS, lifecycle=None, ids=frozenset({id})))
        if not asked.ids:
            raise NotFound("there is no goal with this id, or it is not embedded yet", field="id")
        chosen = Chosen(types=GOALS, lifecycle=None)
        reached = await self._meaning.near(
            who, asked.points[0], chosen, 0.0, limit, lambda node: node.id != id and ended(node) is Ended.ACHIEVED
        )
        done = await self._strategies(who) if reached else {}
        return [Analogy(node=shown(one.node), score=one.score, strategies=tuple(done.get(one.node.id, ()))) for one in reached]

    async def _strategies(self, who: Principal) -> dict[str, list[Mention]]:
        """By goal the strategies that were for it, archived ones too."""
        chosen = Chosen(types=frozenset({"strategy"}), lifecycle=None)
        ids = (await gathered(self._meaning.vectors, who.tenant, chosen, _STRATEGIES)).ids
        served = await goals_of(self._meaning.structure, who, ids)
        nodes = await self._meaning.structure.nodes(who, sorted(served)) if served else {}
        found: dict[str, list[Mention]] = {}
        for id, goals in sorted(served.items()):
            for goal in goals if id in nodes else ():
                mention = Mention(
                    id=id, type="strategy", title=nodes[id].title, status=nodes[id].status, relationship=goal.relationship
                )
                found.setdefault(goal.id, []).append(mention)
        return found
