"""Which news of the constitution touches which part of a session's context (C-83)."""

from __future__ import annotations

from phronesis_contracts.constitution.kinds import Layer
from phronesis_contracts.constitution.relationships import PARENTS
from phronesis_contracts.constitution.writes import ConstitutionChanged, LinkNews, NodeNews, Operation

_WORK = frozenset({"status", "duedate", "efforthours"})
"""Fields of a task that change a workload's figures."""
_SHOWN = frozenset({"title", "status"})
"""Fields of a parent that are told with its child."""


def touches_foundation(news: ConstitutionChanged) -> bool:
    """Whether the foundation changed: one of its nodes, or a relationship between two of them."""
    return any(node.layer is Layer.FOUNDATION for node in news.nodes) or any(
        set(link.layers) == {Layer.FOUNDATION} for link in news.relationships
    )


def touches_vision(news: ConstitutionChanged, parents: frozenset[str]) -> bool:
    """Whether the vision changed: one of its nodes, what it rests on, or how a parent in another layer is shown.

    Args:
        news: what changed.
        parents: ids of the nodes that are told as parents.
    """
    return any(_vision_node(node, parents) for node in news.nodes) or any(_parentage(link) for link in news.relationships)


def touches_work(news: ConstitutionChanged) -> bool:
    """Whether the figures of what is due changed."""
    return any(node.type == "task" and _changed(node, _WORK) for node in news.nodes)


def _vision_node(node: NodeNews, parents: frozenset[str]) -> bool:
    if node.layer is Layer.VISION:
        return True
    if node.operation is Operation.CREATE or not _changed(node, _SHOWN):
        return False
    # one that came back into force is told as a parent again, and was not among them until now
    return node.id in parents or (node.layer is Layer.FOUNDATION and _changed(node, frozenset({"status"})))


def _parentage(link: LinkNews) -> bool:
    return link.type in PARENTS and link.layers[:1] == (Layer.VISION,)


def _changed(node: NodeNews, fields: frozenset[str]) -> bool:
    """Whether one of these fields changed; news that names none may be of any."""
    if node.operation is not Operation.UPDATE or not node.changed:
        return True
    return any(name.replace("_", "").lower() in fields for name in node.changed)
