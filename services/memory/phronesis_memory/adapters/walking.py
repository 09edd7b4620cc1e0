"""All items of all tenants, owner by owner, for what is made of them anew."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from phronesis_contracts.memory import KNOWLEDGE_STORED, ItemKind, KnowledgeNode
from phronesis_postgres import EVERY_TENANT, Connection, Database, write_news

from ..domain.linking import Linked, news_of
from ..domain.rooms import ROOM
from ..domain.values import Draft
from .links import kept_links
from .writing import lock

SERVICE = "memory"
LINKED = (ItemKind.FACT, ItemKind.NOTE, ItemKind.CONCEPT)
"""The kinds that the graph knows."""

# What is in a room is nothing that the graph knows.
_COUNT = f"SELECT count(*) FROM items WHERE kind = ANY($1::text[]) AND ($2 OR NOT starts_with(owner, '{ROOM}'))"  # noqa: S608
_WALK = f"""
    SELECT id, tenant, owner, kind, title, body, external_id, part, family, content_hash, version FROM items
    WHERE (tenant, owner, id) > ($1, $2, $3::uuid) AND kind = ANY($4::text[]) AND ($6 OR NOT starts_with(owner, '{ROOM}'))
    ORDER BY tenant, owner, id LIMIT $5"""  # noqa: S608
_VERSIONS = "SELECT id, version FROM items WHERE id = ANY($1::uuid[])"
_FIRST = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True)
class Stored:
    """An item as it stands, as the draft that it once was."""

    id: str
    tenant: str
    owner: str
    version: int
    draft: Draft


async def count(database: Database, kinds: Collection[ItemKind], *, rooms: bool) -> int:
    """How many items of these kinds there are, with those in rooms or without."""
    async with database.connection(EVERY_TENANT) as connection:
        return int(await connection.fetchval(_COUNT, list(kinds), rooms))


async def walk(database: Database, kinds: Collection[ItemKind], size: int, *, rooms: bool) -> AsyncIterator[list[Stored]]:
    """All items of these kinds, with those in rooms or without, in batches of `size`.

    What is written meanwhile may be missing, and needs no walk.
    """
    after: tuple[str, str, str] = ("", "", _FIRST)
    while True:
        async with database.connection(EVERY_TENANT) as connection:
            rows = await connection.fetch(_WALK, *after, list(kinds), size, rooms)
        if not rows:
            return
        yield [_stored(row) for row in rows]
        after = (rows[-1]["tenant"], rows[-1]["owner"], str(rows[-1]["id"]))


async def held(connection: Connection, batch: Sequence[Stored]) -> list[Stored]:
    """Those that are still as they were, with their owners' locks held until the transaction ends."""
    for tenant, owner in sorted({(item.tenant, item.owner) for item in batch}):
        await lock(connection, tenant, owner)
    versions = {str(row["id"]): row["version"] for row in await connection.fetch(_VERSIONS, [item.id for item in batch])}
    return [item for item in batch if versions.get(item.id) == item.version]


async def existing(database: Database, ids: Sequence[str]) -> set[str]:
    """Which of these items there are."""
    async with database.connection(EVERY_TENANT) as connection:
        return {str(row["id"]) for row in await connection.fetch(_VERSIONS, list(ids))}


async def announce(database: Database, batch: Sequence[Stored]) -> int:
    """Announce items of one owner with their links, as if they had just been stored; how many links."""
    tenant, owner = batch[0].tenant, batch[0].owner
    async with database.transaction(tenant) as connection:
        items = await held(connection, batch)
        version = int(await connection.fetchval("SELECT nextval('versions')"))
        links = await kept_links(connection, [item.id for item in items])
        linked = [Linked(KnowledgeNode(id=i.id, type=i.draft.kind.entity_type), links.get(i.id, ())) for i in items]
        for message in news_of(owner, version, linked):
            await write_news(connection, SERVICE, tenant, KNOWLEDGE_STORED, message)
    return sum(len(item.links) for item in linked)


def _stored(row: Any) -> Stored:
    draft = Draft(
        ItemKind(row["kind"]),
        row["body"],
        row["content_hash"],
        row["external_id"],
        row["part"],
        row["family"],
        row["title"],
    )
    return Stored(str(row["id"]), row["tenant"], row["owner"], row["version"], draft)
