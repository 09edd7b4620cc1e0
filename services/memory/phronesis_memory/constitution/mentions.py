"""A node in few words."""

from __future__ import annotations

from phronesis_contracts.constitution.values import ConstitutionNode, Mention


def mention(node: ConstitutionNode) -> Mention:
    """The node as other nodes' answers name it."""
    return Mention(id=node.id, type=node.type, title=node.title, status=node.status)
