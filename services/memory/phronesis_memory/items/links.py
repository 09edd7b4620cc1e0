"""The links between one owner's items: found, kept as rows, and carried by news to the graph."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from phronesis_contracts import BadRequest
from phronesis_contracts.memory import KnowledgeLink, KnowledgeNode, KnowledgeStored, Remember, RememberItem
from phronesis_postgres import Connection

_WORD = re.compile(r"[^\W_]+")
MAX_MENTIONS = 50
"""Concepts of one item at most."""


class Titles:
    """The titles of an owner's concepts, to be looked for in texts word by word."""

    def __init__(self, titles: Mapping[str, str]) -> None:
        self._ids: dict[tuple[str, ...], list[str]] = {}
        for id, title in titles.items():
            if key := _title_words(title):
                self._ids.setdefault(key, []).append(id)
        self._lengths = sorted({len(key) for key in self._ids})

    def named_in(self, text: str) -> list[str]:
        """Ids of the concepts whose title stands in `text` as whole words, in order of appearance."""
        words = _title_words(text)
        found: dict[str, None] = {}
        for start in range(len(words)):
            for length in self._lengths:
                for id in self._ids.get(words[start : start + length], ()):
                    found.setdefault(id)
            if len(found) >= MAX_MENTIONS:
                break
        return list(found)[:MAX_MENTIONS]


def _title_words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


_NODES = 100
_LINKS = 1_000
"""Links of one message, so that it stays well below the greatest size of an event."""


@dataclass(frozen=True)
class LinkedItem:
    node: KnowledgeNode
    links: tuple[KnowledgeLink, ...]


def link_items(
    request: Remember, fresh: Sequence[tuple[RememberItem, str]], targets: Mapping[str, str], concepts: Mapping[str, str]
) -> list[LinkedItem]:
    """The links of items that were just stored.

    Args:
        fresh: the items that are new or changed, with their ids.
        targets: id by external id, of the owner's items that are named as links.
        concepts: title by id, of the owner's concepts.

    Raises:
        BadRequest: a link names no item of the owner.
    """
    titles = Titles(concepts)
    linked: list[LinkedItem] = []
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
        linked.append(LinkedItem(KnowledgeNode(id=id, type=item.kind.entity_type), tuple(links)))
    return linked


def link_news(owner: str, version: int, linked: Sequence[LinkedItem]) -> Iterator[KnowledgeStored]:
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


_FORGET = "DELETE FROM links WHERE source = ANY($1::uuid[])"
_KEEP = """
    INSERT INTO links (tenant, source, target, type)
    SELECT $1, * FROM unnest($2::uuid[], $3::uuid[], $4::text[]) ON CONFLICT DO NOTHING"""
_OF = "SELECT source, target, type FROM links WHERE source = ANY($1::uuid[])"


async def write_links(connection: Connection, tenant: str, linked: Sequence[LinkedItem]) -> None:
    """Make the links of these items what `linked` says, in the transaction of their news."""
    links = [link for item in linked for link in item.links]
    await connection.execute(_FORGET, [item.node.id for item in linked])
    if links:
        sources, targets = [link.source for link in links], [link.target for link in links]
        await connection.execute(_KEEP, tenant, sources, targets, [link.type for link in links])


async def read_links(connection: Connection, ids: Sequence[str]) -> dict[str, tuple[KnowledgeLink, ...]]:
    found: defaultdict[str, list[KnowledgeLink]] = defaultdict(list)
    for row in await connection.fetch(_OF, list(ids)):
        source = str(row["source"])
        found[source].append(KnowledgeLink(source=source, target=str(row["target"]), type=row["type"]))
    return {source: tuple(links) for source, links in found.items()}
