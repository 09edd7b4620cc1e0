"""A first use of each statement of a walk, before anybody waits for its answer."""

from __future__ import annotations

from ..constitution.whole import Whole
from . import constitution_walks
from .bolt import Bolt, Transaction
from .knowledge import LOOK_UP, STEP
from .reasoning import BoltReasoning

_NOBODY = {"keys": ["-"], "tenant": "-", "owners": ["-"]}
_NOWHERE = {"lifecycles": ["-"], "names": ["-"], "limit": 1}


async def warm(bolt: Bolt, reasoner: BoltReasoning, whole: Whole) -> None:
    """Let the store plan what a walk and the start of a session ask.

    A Neo4j that has just started takes a second and more to plan its first statements, which is longer than a turn waits
    for the graph.

    Raises:
        Unavailable: the store is down.
        TimedOut: it did not answer in time; what it has planned by then, it keeps.
    """

    async def work(transaction: Transaction) -> None:
        await transaction.rows(LOOK_UP, **_NOBODY)
        for statement in STEP.values():
            await transaction.rows(statement, limit=1, **_NOBODY)
        for statement in constitution_walks.STATEMENTS:
            await transaction.rows(statement, **_NOBODY, **_NOWHERE)

    await bolt.read(work)
    await whole.warm()
    await reasoner.warm()
