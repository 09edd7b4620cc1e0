"""The links between one owner's items, and the news that carries them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from phronesis_contracts import BadRequest
from phronesis_contracts.memory import KnowledgeLink, KnowledgeNode, KnowledgeStored, Remember, RememberItem

from .mentions import Titles

_NODES = 100
_LINKS = 1_000
"""Links of one message, so that it stays well below the greatest size of an event."""


@dataclass(frozen=True)
class Linked:
    """A stored item with its links."""

    node: KnowledgeNode
    links: tuple[KnowledgeLink, ...]


def links_of(
    request: Remember, fresh: Sequence[tuple[RememberItem, str]], targets: Mapping[str, str], concepts: Mapping[str, str]
) -> list[Linked]:
    """The links of items that were just stored.

    Args:
        request: where the items came from.
        fresh: the items that are new or changed, with their ids.
        targets: id by external id, of the owner's items that are named as links.
        concepts: title by id, of the owner's concepts.

    Raises:
        BadRequest: a link names no item of the owner.
    """
    titles = Titles(concepts)
    linked: list[Linked] = []
    for item, id in fresh:
        related: dict[str, None] = {}
        for external_id in item.links:
            target = targets.get(external_id)
            if target is None:
                place = request.items.index(item)
                raise BadRequest("a link names no item of the caller", field=f"items.{place}.links")
            related.setdefault(target)
        named = titles.named_in(f"{item.title or ''}\n{item.text}")
        links = [KnowledgeLink(source=id, target=t, type="RELATED_TO") for t in related if t != id]
        links += [KnowledgeLink(source=id, target=t, type="MENTIONS") for t in named if t != id]
        linked.append(Linked(KnowledgeNode(id=id, type=item.kind.entity_type), tuple(links)))
    return linked


def news_of(owner: str, version: int, linked: Sequence[Linked]) -> Iterator[KnowledgeStored]:
    """The items as messages of a bounded size; an item and its links are always in one message."""
    nodes: list[KnowledgeNode] = []
    links: list[KnowledgeLink] = []
    for item in linked:
        if nodes and (len(nodes) >= _NODES or len(links) + len(item.links) > _LINKS):
            yield KnowledgeStored(owner=owner, version=version, nodes=tuple(nodes), links=tuple(links))
            nodes, links = [], []
        nodes.append(item.node)
        links.extend(item.links)
    if nodes:
        yield KnowledgeStored(owner=owner, version=version, nodes=tuple(nodes), links=tuple(links))
