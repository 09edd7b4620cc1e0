"""Which strategies there are for a goal that is named in words."""

from __future__ import annotations

from phronesis_contracts import NotFound
from phronesis_contracts.constitution.paths import Step
from phronesis_contracts.constitution.search import GOAL_SEARCH_TOOL, GoalSearch, HybridHit

from .desk import Desk
from .saying import chain, cite, listed, paragraphs


async def strategies(desk: Desk, described: str) -> str:
    """The answer.

    Args:
        desk: the tools of the turn.
        described: the goal, in words.

    Raises:
        NotOffered: the tool for it is not at hand.
        ServiceError: it failed, other than by finding no goal.
    """
    try:
        found = await desk.ask(GOAL_SEARCH_TOOL, GoalSearch(query=described))
    except NotFound as error:
        return f"{error.detail[:1].upper()}{error.detail[1:]}. Ask with the words of its title."
    if not found.found.results:
        return f"For the goal {cite(found.goal)} the graph holds no strategy."
    begins = Step(node_id=found.goal.id, type=found.goal.type, title=found.goal.title)
    return paragraphs(f"For the goal {cite(found.goal)}:", listed(_told(hit, begins) for hit in found.found.results))


def _told(hit: HybridHit, begins: Step) -> str:
    steps = [step for step in hit.path or () if step.node_id != begins.node_id]
    way = f": {chain([begins, *steps])}" if steps else ", which is like it in meaning and not joined to it"
    return f"{cite(hit.node)}{way}"
