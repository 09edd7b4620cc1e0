"""The links between items, as rows: what the news said of them, for a graph that has to be made again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from phronesis_contracts.memory import KnowledgeLink
from phronesis_postgres import Connection

from ..domain.linking import Linked

_FORGET = "DELETE FROM links WHERE source = ANY($1::uuid[])"
_KEEP = """
    INSERT INTO links (tenant, source, target, type)
    SELECT $1, * FROM unnest($2::uuid[], $3::uuid[], $4::text[]) ON CONFLICT DO NOTHING"""
_OF = "SELECT source, target, type FROM links WHERE source = ANY($1::uuid[])"


async def keep_links(connection: Connection, tenant: str, linked: Sequence[Linked]) -> None:
    """Make the links of these items what `linked` says, in the transaction of their news."""
    links = [link for item in linked for link in item.links]
    await connection.execute(_FORGET, [item.node.id for item in linked])
    if links:
        sources, targets = [link.source for link in links], [link.target for link in links]
        await connection.execute(_KEEP, tenant, sources, targets, [link.type for link in links])


async def kept_links(connection: Connection, ids: Sequence[str]) -> dict[str, tuple[KnowledgeLink, ...]]:
    """The links of items, by their source."""
    found: defaultdict[str, list[KnowledgeLink]] = defaultdict(list)
    for row in await connection.fetch(_OF, list(ids)):
        source = str(row["source"])
        found[source].append(KnowledgeLink(source=source, target=str(row["target"]), type=row["type"]))
    return {source: tuple(links) for source, links in found.items()}
