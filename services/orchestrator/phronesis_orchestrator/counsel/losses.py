"""What would lose its support without a node. The graph is not changed by asking."""

from __future__ import annotations

from phronesis_contracts.constitution.insight import WITHOUT_TOOL, Loss, WithoutNode

from .desk import Desk
from .record import Seen
from .saying import cite, joined, listed, paragraphs

_LOST = 20
"""Nodes that are asked for."""
_NAMED = 3
"""Values and visions that are named with a node that loses its way to them."""


async def losses(desk: Desk, node: Seen) -> str:
    """The answer.

    Raises:
        NotOffered: the tool for it is not at hand.
        ServiceError: it failed.
    """
    found = await desk.ask(WITHOUT_TOOL, WithoutNode(id=node.id, limit=_LOST))
    if not found.total:
        return f"Without {cite(node)} nothing would lose its support: all that is joined to it has another way up."
    many = f"{found.total} node{'s' if found.total > 1 else ''} would lose support"
    return paragraphs(
        f"Without {cite(node)}, {many}.",
        f"With no way left to any value or vision:\n{listed(map(_told, found.orphaned))}" if found.orphaned else "",
        f"With a way left, but not to all that they served:\n{listed(map(_told, found.weakened))}" if found.weakened else "",
    )


def _told(loss: Loss) -> str:
    lost = [cite(one) for one in loss.lost]
    more = [f"{len(lost) - _NAMED} more"] if len(lost) > _NAMED else []
    return f"{cite(loss.node)} ({loss.node.type})" + (f", which loses {joined([*lost[:_NAMED], *more])}" if lost else "")
