"""Items in Postgres: storing, reading and announcing them, and walking through those of every tenant."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from phronesis_bus import Call, audit_entry
from phronesis_contracts import NotFound, labels_from_row
from phronesis_contracts.memory import KNOWLEDGE_STORED, SHARED, ItemKind, KnowledgeNode, Remember, Remembered, RememberedItem
from phronesis_contracts.orchestrator import ToolOutcome
from phronesis_contracts.service import AUDITED
from phronesis_postgres import EVERY_TENANT, Connection, Database, write_news, write_once

from ..episodes.store import write_outcomes
from ..ports import VectorIndex
from ..values import LIVE, SCOPE_PREFIX, Audience, Draft, Item, NodeState
from .links import LinkedItem, link_items, link_news, read_links, write_links
from .rows import WriteResult, find_tombstones, is_buried, lock_owner, remove_items, write_items

SERVICE = "memory"
_CONCEPTS = 5_000
"""Concepts of one owner whose titles are looked for in a text: the newest."""

_ITEMS = f"""
    SELECT id, kind, title, body, external_id, family, created_at, updated_at, metadata, labels FROM items
    WHERE tenant = $1 AND owner = ANY($2::text[]) AND kind = ANY($3::text[]) AND id = ANY($4::uuid[]) AND {LIVE}"""  # noqa: S608
_TITLES = f"""
    SELECT id, title FROM items WHERE tenant = $1 AND owner = $2 AND kind = 'concept' AND title IS NOT NULL AND {LIVE}
    ORDER BY updated_at DESC LIMIT $3"""  # noqa: S608


class PostgresKnowledge:
    def __init__(self, database: Database, vectors: VectorIndex, wake: Callable[[], None]) -> None:
        self._database, self._vectors, self._wake = database, vectors, wake

    async def digests(self, tenant: str, owner: str, external_ids: Sequence[str]) -> dict[tuple[str, str], bytes]:
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(
                "SELECT external_id, part, content_hash FROM items"
                " WHERE tenant = $1 AND owner = $2 AND external_id = ANY($3::text[])",
                tenant,
                owner,
                list(external_ids),
            )
        return {(row["external_id"], row["part"]): row["content_hash"] for row in rows}

    async def remember(self, call: Call, request: Remember, drafts: Sequence[Draft]) -> Remembered:
        async def store(connection: Connection) -> Remembered:
            return await self._remember(connection, call, request, drafts)

        result = await write_once(self._database, call, request, Remembered, store)
        self._wake()
        await self._vectors.settle(call.who.tenant, [item.id for item in result.items])
        return Remembered(
            items=tuple(
                done.model_copy(update={"external_id": item.external_id})
                for item, done in zip(request.items, result.items, strict=True)
            )
        )

    async def _remember(self, connection: Connection, call: Call, request: Remember, drafts: Sequence[Draft]) -> Remembered:
        who = call.who
        await lock_owner(connection, who.tenant, who.user)
        await _check_sources(connection, call, request)
        version = await next_version(connection)
        written = await write_items(connection, self._vectors, who.tenant, who.user, version, drafts)
        linked = await self._linked(connection, call, request, written)
        if linked:
            await write_links(connection, who.tenant, linked)
        for message in link_news(who.user, version, linked):
            await write_news(connection, SERVICE, who.tenant, KNOWLEDGE_STORED, message)
        # The names that the caller gave are content: they are not kept with the key.
        result = Remembered(items=tuple(RememberedItem(id=done.id, status=done.status) for done in written))
        changed = [item.id for item in result.items if item.status != "unchanged"]
        if changed:
            entry = audit_entry(who, "remember", {"items": len(changed), "ids": changed})
            await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], entry)
        return result

    async def _linked(
        self, connection: Connection, call: Call, request: Remember, written: Sequence[WriteResult]
    ) -> list[LinkedItem]:
        fresh = [(item, done.id) for item, done in zip(request.items, written, strict=True) if done.status != "unchanged"]
        fresh = [(item, id) for item, id in fresh if item.kind is not ItemKind.STYLE]
        if not fresh:
            return []
        named = list({link for item, _ in fresh for link in item.links})
        rows = await connection.fetch(
            "SELECT external_id, id FROM items WHERE tenant = $1 AND owner = $2 AND external_id = ANY($3::text[])",
            call.who.tenant,
            call.who.user,
            named,
        )
        targets = {row["external_id"]: str(row["id"]) for row in rows}
        titles = await connection.fetch(_TITLES, call.who.tenant, call.who.user, _CONCEPTS)
        return link_items(request, fresh, targets, {str(row["id"]): row["title"] for row in titles})

    async def record(self, tenant: str, owner: str, draft: Draft, outcomes: Sequence[ToolOutcome] = ()) -> None:
        async with self._database.transaction(tenant) as connection:
            await lock_owner(connection, tenant, owner)
            known = await connection.fetchval(
                "SELECT true FROM items WHERE tenant = $1 AND owner = $2 AND external_id = $3", tenant, owner, draft.external_id
            )
            gone = await find_tombstones(connection, tenant, owner, draft.sources, [draft.external_id or ""])
            if known or gone or await is_buried(connection, tenant, owner, draft.said.occurred_at):
                return
            [done] = await write_items(connection, self._vectors, tenant, owner, await next_version(connection), [draft])
            await write_outcomes(connection, tenant, owner, done.id, outcomes)
        await self._vectors.settle(tenant, [done.id])

    async def project(self, tenant: str, node: NodeState, drafts: Sequence[Draft]) -> None:
        async with self._database.transaction(tenant) as connection:
            await lock_owner(connection, tenant, SHARED)
            row = await connection.fetchrow("SELECT version, gone FROM nodes WHERE tenant = $1 AND key = $2", tenant, node.key)
            if row is not None and not row["gone"] and row["version"] > node.version:
                return
            written = await write_items(connection, self._vectors, tenant, SHARED, await next_version(connection), drafts)
            vanished = await connection.fetch(
                "SELECT id FROM items WHERE tenant = $1 AND owner = $2 AND external_id = $3 AND part <> ALL($4::text[])",
                tenant,
                SHARED,
                node.key,
                [draft.part for draft in drafts],
            )
            removed = [str(gone["id"]) for gone in vanished]
            await remove_items(connection, self._vectors, tenant, removed)
            await connection.execute(
                "INSERT INTO nodes (tenant, key, version, gone) VALUES ($1, $2, $3, $4)"
                " ON CONFLICT (tenant, key) DO UPDATE SET version = excluded.version, gone = excluded.gone",
                tenant,
                node.key,
                node.version,
                node.gone,
            )
        await self._vectors.settle(tenant, [item.id for item in written] + removed)

    async def passed(self, tenant: str, versions: Mapping[str, int]) -> set[str]:
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(
                "SELECT key, version FROM nodes WHERE tenant = $1 AND key = ANY($2::text[]) AND NOT gone",
                tenant,
                list(versions),
            )
        return {row["key"] for row in rows if row["version"] >= versions[row["key"]]}

    def reading(self, tenant: str) -> AbstractAsyncContextManager[None]:
        return self._database.reading(tenant)

    async def items(self, audience: Audience, ids: Sequence[str]) -> list[Item]:
        async with self._database.connection(audience.tenant) as connection:
            rows = await connection.fetch(_ITEMS, audience.tenant, list(audience.owners), list(audience.kinds), list(ids))
        return [
            Item(
                id=str(row["id"]),
                kind=ItemKind(row["kind"]),
                title=row["title"],
                text=row["body"],
                external_id=row["external_id"],
                family=row["family"],
                created_at=row["created_at"],
                updated_at=row["updated_at"],
                metadata=row["metadata"],
                labels=labels_from_row(row["labels"]),
            )
            for row in rows
        ]


async def _check_sources(connection: Connection, call: Call, request: Remember) -> None:
    named = [source for item in request.items for source in item.sources]
    gone = await find_tombstones(connection, call.who.tenant, call.who.user, named)
    for number, item in enumerate(request.items):
        if not set(gone).isdisjoint(item.sources):
            raise NotFound("a source is a conversation that was deleted", field=f"items.{number}.sources")


async def next_version(connection: Connection) -> int:
    """The version of what is written next."""
    return int(await connection.fetchval("SELECT nextval('versions')"))


LINKED_KINDS = (ItemKind.FACT, ItemKind.NOTE, ItemKind.CONCEPT)
"""The kinds that the graph knows."""

# The graph knows nothing of what is in a scope.
_COUNT = f"SELECT count(*) FROM items WHERE kind = ANY($1::text[]) AND ($2 OR NOT starts_with(owner, '{SCOPE_PREFIX}'))"  # noqa: S608
_WALK = f"""
    SELECT id, tenant, owner, kind, title, body, external_id, part, family, content_hash, version FROM items
    WHERE (tenant, owner, id) > ($1, $2, $3::uuid) AND kind = ANY($4::text[])
    AND ($6 OR NOT starts_with(owner, '{SCOPE_PREFIX}'))
    ORDER BY tenant, owner, id LIMIT $5"""  # noqa: S608
_VERSIONS = "SELECT id, version FROM items WHERE id = ANY($1::uuid[])"
_FIRST = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True)
class StoredItem:
    """An item as it stands, as the draft that it once was."""

    id: str
    tenant: str
    owner: str
    version: int
    draft: Draft


async def count_items(database: Database, kinds: Collection[ItemKind], *, scopes: bool) -> int:
    """How many items of these kinds there are, with those in scopes or without."""
    async with database.connection(EVERY_TENANT) as connection:
        return int(await connection.fetchval(_COUNT, list(kinds), scopes))


async def walk_items(
    database: Database, kinds: Collection[ItemKind], size: int, *, scopes: bool
) -> AsyncIterator[list[StoredItem]]:
    """All items of these kinds, with those in scopes or without, in batches of `size`.

    What is written meanwhile may be missing, and needs no walk.
    """
    after: tuple[str, str, str] = ("", "", _FIRST)
    while True:
        async with database.connection(EVERY_TENANT) as connection:
            rows = await connection.fetch(_WALK, *after, list(kinds), size, scopes)
        if not rows:
            return
        yield [_item_from_row(row) for row in rows]
        after = (rows[-1]["tenant"], rows[-1]["owner"], str(rows[-1]["id"]))


async def lock_unchanged(connection: Connection, batch: Sequence[StoredItem]) -> list[StoredItem]:
    """Those that are still as they were, with their owners' locks held until the transaction ends."""
    for tenant, owner in sorted({(item.tenant, item.owner) for item in batch}):
        await lock_owner(connection, tenant, owner)
    versions = {str(row["id"]): row["version"] for row in await connection.fetch(_VERSIONS, [item.id for item in batch])}
    return [item for item in batch if versions.get(item.id) == item.version]


async def find_existing(database: Database, ids: Sequence[str]) -> set[str]:
    """Which of these items there are."""
    async with database.connection(EVERY_TENANT) as connection:
        return {str(row["id"]) for row in await connection.fetch(_VERSIONS, list(ids))}


async def announce_items(database: Database, batch: Sequence[StoredItem]) -> int:
    """Announce items of one owner with their links, as if they had just been stored; how many links."""
    tenant, owner = batch[0].tenant, batch[0].owner
    async with database.transaction(tenant) as connection:
        items = await lock_unchanged(connection, batch)
        version = int(await connection.fetchval("SELECT nextval('versions')"))
        links = await read_links(connection, [item.id for item in items])
        linked = [LinkedItem(KnowledgeNode(id=i.id, type=i.draft.kind.entity_type), links.get(i.id, ())) for i in items]
        for message in link_news(owner, version, linked):
            await write_news(connection, SERVICE, tenant, KNOWLEDGE_STORED, message)
    return sum(len(item.links) for item in linked)


def _item_from_row(row: Any) -> StoredItem:
    draft = Draft(
        ItemKind(row["kind"]), row["body"], row["content_hash"], row["external_id"], row["part"], row["family"], row["title"]
    )
    return StoredItem(str(row["id"]), row["tenant"], row["owner"], row["version"], draft)
