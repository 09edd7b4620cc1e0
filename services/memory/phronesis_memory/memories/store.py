"""Memories in Postgres: stored, read, filtered, corrected, and what they said before."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import asyncpg

from phronesis_bus import Call, audit_entry
from phronesis_contracts import BadRequest, NotFound, Principal, labels_from_row
from phronesis_contracts.memories import (
    AddedMemories,
    AddedMemory,
    AddMemories,
    ListMemories,
    Memory,
    MemoryFilter,
    MemoryPage,
    MemoryVersion,
    Metadata,
    UpdateMemory,
)
from phronesis_contracts.memory import ItemKind
from phronesis_contracts.service import AUDITED
from phronesis_postgres import EVERY_TENANT, Connection, Database, write_news, write_once

from ..items.rows import find_tombstones, lock_owner, rewrite_item, write_items
from ..items.store import SERVICE, next_version
from ..ports import VectorIndex
from ..values import (
    LIVE,
    Audience,
    Draft,
    Vector,
    VectorEntry,
    VectorMissing,
    parse_ids,
    shorten,
    tell_claim,
)

MOST_FILTERED = 5_000
"""Memories that a filter leaves to a search at most: the newest."""
METADATA_OF_ANSWER = 400_000
"""Bytes of metadata in one answer of several memories; the broker's limit leaves room for their texts too."""

_AT = "coalesce(occurred_at, created_at)"
_COLUMNS = f"""id, external_id, kind, title, body, said_in, position, {_AT} AS at, created_at, updated_at, metadata, expires_at,
    labels, starts_with(family, 'fact/') AS of_fact"""
_INSIDE = f"tenant = $1 AND owner = ANY($2::text[]) AND kind = ANY($3::text[]) AND {LIVE}"
_FILTERED = f"""{_INSIDE} AND ($4::text IS NULL OR said_in = $4) AND ($5::timestamptz IS NULL OR {_AT} >= $5)
    AND ($6::timestamptz IS NULL OR {_AT} < $6) AND metadata @> $7 AND ($8::timestamptz IS NULL OR created_at <= $8)"""
_IDS = f"SELECT id FROM items WHERE {_FILTERED} ORDER BY {_AT} DESC, id DESC LIMIT {MOST_FILTERED}"  # noqa: S608
_PAGE = f"""
    SELECT {_COLUMNS} FROM items WHERE {_FILTERED} AND ($9::timestamptz IS NULL OR ({_AT}, id) < ($9, $10::uuid))
    ORDER BY {_AT} DESC, id DESC LIMIT $11"""  # noqa: S608
_READ = f"SELECT {_COLUMNS} FROM items WHERE {_INSIDE} AND id = ANY($4::uuid[])"  # noqa: S608
_NAMED = f"""
    SELECT {_COLUMNS} FROM items WHERE {_INSIDE} AND (id = ANY($4::uuid[]) OR external_id = $5)
    ORDER BY (external_id = $5) DESC NULLS LAST LIMIT 1"""  # noqa: S608
_DIGESTS = """
    SELECT external_id, part, content_hash FROM items WHERE tenant = $1 AND owner = $2 AND external_id = ANY($3::text[])"""
# The empty text keeps the planner from walking all that a user has, by `items_kind`, while its statistics are old.
_BESIDE = f"""
    WITH one AS MATERIALIZED (
        SELECT id, said_in, position FROM items WHERE id = ANY($3::uuid[]) AND tenant || '' = $1 AND owner = ANY($2::text[])
    ), near AS MATERIALIZED (
        SELECT id, said_in, step, position + step AS place FROM one, unnest($4::int[]) AS step
    )
    SELECT near.id, near.step, other.id AS beside, left(other.body, 1000) ~ '[?？؟]' AS asks
    FROM near JOIN items other ON (other.said_in, other.position) = (near.said_in, near.place)
    WHERE other.tenant || '' = $1 AND other.owner = ANY($2::text[]) AND {LIVE}"""  # noqa: S608
_AS_OF = """
    SELECT DISTINCT ON (item_id) item_id, body, metadata, labels FROM item_versions
    WHERE item_id = ANY($1::uuid[]) AND since <= $2 AND until > $2 ORDER BY item_id, version"""
_WAITING = (
    "SELECT count(*) FROM (SELECT FROM unembedded WHERE tenant = $1 AND ($2::text IS NULL OR owner = $2) LIMIT $3) AS waiting"
)
# Tenants in turn, so that one with much to embed lets the others in; of a tenant any owner, however much each has.
_CLAIM = """
    UPDATE unembedded SET due = now() + make_interval(secs => $2) WHERE item_id IN (
        SELECT item_id FROM unembedded WHERE due <= now() AND (tenant, owner) = (
            SELECT tenant, owner FROM unembedded WHERE due <= now() AND tenant = (
                (SELECT tenant FROM unembedded WHERE due <= now() AND tenant > $1 ORDER BY tenant LIMIT 1)
                UNION ALL (SELECT tenant FROM unembedded WHERE due <= now() ORDER BY tenant LIMIT 1) LIMIT 1
            ) GROUP BY tenant, owner ORDER BY random() LIMIT 1
        ) ORDER BY due LIMIT $3 FOR UPDATE SKIP LOCKED
    ) RETURNING tenant, owner, item_id"""
_TO_EMBED = "SELECT id, kind, title, body, content_hash FROM items WHERE tenant = $1 AND owner = $2 AND id = ANY($3::uuid[])"
_UNCHANGED = """
    SELECT given.id FROM unnest($3::uuid[], $4::bytea[]) AS given (id, digest)
    JOIN items ON items.id = given.id AND content_hash = digest WHERE tenant = $1 AND owner = $2"""
_EMBEDDED = """
    DELETE FROM unembedded USING unnest($3::uuid[], $4::bytea[]) AS given (id, digest)
    JOIN items ON items.id = given.id AND content_hash = digest
    WHERE item_id = given.id AND unembedded.tenant = $1 AND unembedded.owner = $2"""
_EXPIRE = "UPDATE items SET expires_at = $4 WHERE tenant = $1 AND owner = $2 AND id = $3::text::uuid"
_VERSIONS = "SELECT body, metadata, labels, since, until FROM item_versions WHERE item_id = $1 ORDER BY version DESC"


LEASE = 60.0
"""Seconds after which memories that another process was to embed are embedded here."""


@dataclass(frozen=True)
class Waiting:
    """Memories of one owner that have no vectors yet, by their ids, as they stood when they were read."""

    tenant: str
    owner: str
    drafts: Mapping[str, Draft]


@dataclass(frozen=True)
class Beside:
    """A message, and one that stands near it in its conversation."""

    id: str
    step: int
    """How many places after it the other stands; below 0, before it; 0 where it is the message itself."""
    other: str
    asks: bool
    """Whether the other asks something."""


@dataclass(frozen=True)
class Stored:
    """A memory as it stands, with the title of its item: of a message its speaker, of a concept its name."""

    memory: Memory
    title: str | None


class PostgresMemories:
    def __init__(self, database: Database, vectors: VectorIndex, wake: Callable[[], None]) -> None:
        self._database, self._vectors, self._wake = database, vectors, wake

    async def add(
        self, call: Call, request: AddMemories, drafts: Sequence[Draft], *, embed_later: bool = False
    ) -> AddedMemories:
        """Store the caller's memories, once for the call's key.

        Args:
            embed_later: let those without vectors wait for theirs.

        Raises:
            VectorMissing: a changed draft has no vector, and may not wait for one.
            NotFound: the conversation was deleted.
        """
        who = call.who

        async def store(connection: Connection) -> AddedMemories:
            await lock_owner(connection, who.tenant, who.user)
            named = [request.conversation_id] if request.conversation_id else []
            if await find_tombstones(connection, who.tenant, who.user, named):
                raise NotFound("this conversation was deleted", field="conversation_id")
            version = await next_version(connection)
            into = (connection, self._vectors, who.tenant, who.user, version)
            written = await write_items(*into, drafts, embed_later=embed_later)
            changed = [one.id for one in written if one.status != "unchanged"]
            if changed:
                entry = audit_entry(who, "memory.add", {"items": len(changed), "ids": changed})
                await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], entry)
            return AddedMemories(memories=tuple(AddedMemory(id=one.id, status=one.status) for one in written))

        result = await write_once(self._database, call, request, AddedMemories, store)
        self._wake()
        await self._vectors.settle(who.tenant, [one.id for one in result.memories])
        return AddedMemories(
            memories=tuple(
                done.model_copy(update={"external_id": one.external_id})
                for one, done in zip(request.memories, result.memories, strict=True)
            )
        )

    async def waiting(self, tenant: str, most: int, owner: str | None = None) -> int:
        """How many memories of a tenant, or of one owner, wait for their vectors; at most `most` are counted."""
        async with self._database.connection(tenant) as connection:
            return int(await connection.fetchval(_WAITING, tenant, owner, most))

    async def claim(self, after: str, most: int) -> Waiting | None:
        """Memories to embed of an owner of the next tenant, for this process alone for a minute; `None` where none wait."""
        async with self._database.transaction(EVERY_TENANT) as connection:
            rows = await connection.fetch(_CLAIM, after, LEASE, most)
        if not rows:
            return None
        tenant, owner = rows[0]["tenant"], rows[0]["owner"]
        async with self._database.connection(tenant) as connection:
            found = await connection.fetch(_TO_EMBED, tenant, owner, [row["item_id"] for row in rows])
        drafts = {
            str(row["id"]): Draft(ItemKind(row["kind"]), row["body"], row["content_hash"], title=row["title"]) for row in found
        }
        return Waiting(tenant, owner, drafts)

    async def embedded(self, waiting: Waiting, vectors: Sequence[tuple[Vector, tuple[Vector, ...]]]) -> None:
        """Store the vectors of memories; one that was changed meanwhile waits on, and one that is gone gets none."""
        made = dict(zip(waiting.drafts, vectors, strict=True))
        digests = [draft.digest for draft in waiting.drafts.values()]
        async with self._database.transaction(waiting.tenant) as connection:
            await lock_owner(connection, waiting.tenant, waiting.owner)
            rows = await connection.fetch(_UNCHANGED, waiting.tenant, waiting.owner, list(made), digests)
            done = [str(row["id"]) for row in rows]
            entries = [
                VectorEntry(id, waiting.tenant, waiting.owner, waiting.drafts[id].kind, made[id][0], passages=made[id][1])
                for id in done
            ]
            await self._vectors.upsert(entries, within=connection)
        await self._vectors.settle(waiting.tenant, done)
        # They wait until a search by meaning finds them, also where the index is another store.
        async with self._database.transaction(waiting.tenant) as connection:
            await connection.execute(_EMBEDDED, waiting.tenant, waiting.owner, list(made), digests)

    async def digests(self, tenant: str, owner: str, external_ids: Sequence[str]) -> dict[tuple[str, str], bytes]:
        """The hashes of those of an owner's items that have one of these external ids, by external id and part."""
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_DIGESTS, tenant, owner, list(external_ids))
        return {(row["external_id"], row["part"]): row["content_hash"] for row in rows}

    async def matching(self, audience: Audience, wanted: MemoryFilter, as_of: datetime | None) -> list[str]:
        """The ids of the newest memories that a filter leaves: `MOST_FILTERED` at most."""
        async with self._database.connection(audience.tenant) as connection:
            rows = await connection.fetch(_IDS, *_filter(audience, wanted, as_of))
        return [str(row["id"]) for row in rows]

    def reading(self, tenant: str) -> AbstractAsyncContextManager[None]:
        """Let the reads of a search share a transaction."""
        return self._database.reading(tenant)

    async def beside(self, audience: Audience, ids: Sequence[str], steps: Sequence[int]) -> list[Beside]:
        """The messages at these steps from each of some in its conversation: -1 is the one before it, 1 the one after it."""
        async with self._database.connection(audience.tenant) as connection:
            rows = await connection.fetch(_BESIDE, audience.tenant, list(audience.owners), list(ids), list(steps))
        return [Beside(str(row["id"]), row["step"], str(row["beside"]), row["asks"]) for row in rows]

    async def read(self, audience: Audience, ids: Sequence[str], as_of: datetime | None = None) -> dict[str, Memory]:
        """Those of `ids` that the audience holds, as they are or as they were at a moment."""
        async with self._database.connection(audience.tenant) as connection:
            rows = await connection.fetch(_READ, *_audience(audience), list(ids))
            former = await connection.fetch(_AS_OF, list(ids), as_of) if as_of is not None else []
        found = {str(row["id"]): _memory(row, len(rows)) for row in rows}
        for row in former:
            if (memory := found.get(str(row["item_id"]))) is not None:
                said = {"text": shorten(row["body"], len(rows)), "metadata": _plain(row["metadata"])}
                update = {**said, "labels": labels_from_row(row["labels"])}
                found[memory.id] = memory.model_copy(update=update)
        return found

    async def get(self, audience: Audience, id: str) -> Stored:
        """One memory by its id or external id. Raises `NotFound`."""
        async with self._database.connection(audience.tenant) as connection:
            return await self._get(connection, audience, id)

    async def _get(self, connection: Connection, audience: Audience, id: str) -> Stored:
        row = await connection.fetchrow(_NAMED, *_audience(audience), parse_ids([id]), id)
        if row is None:
            raise NotFound("there is no such memory", field="id")
        return Stored(_memory(row), row["title"])

    async def list(self, audience: Audience, request: ListMemories) -> MemoryPage:
        """A page of memories, the newest first. Raises `BadRequest`: the cursor is none of `next`."""
        at, after = _read_cursor(request.cursor) if request.cursor else (None, None)
        async with self._database.connection(audience.tenant) as connection:
            rows = await connection.fetch(_PAGE, *_filter(audience, request, None), at, after, request.limit + 1)
        page = fit([_memory(row, request.limit) for row in rows[: request.limit]])
        more = len(rows) > len(page)
        return MemoryPage(memories=tuple(page), next=f"{page[-1].occurred_at.isoformat()} {page[-1].id}" if more else None)

    async def update(self, call: Call, audience: Audience, request: UpdateMemory, draft: Draft | None) -> Memory:
        """Store a draft in place of a memory, and when it is to be forgotten, once for the call's key.

        Args:
            draft: `None` where neither text nor metadata are to change.

        Raises:
            NotFound: there is none with this id.
            VectorMissing: the draft has no vector, or the memory is no longer the one that it was made from.
        """
        who = call.who

        async def store(connection: Connection) -> Memory:
            await lock_owner(connection, who.tenant, who.user)
            stored = await self._get(connection, audience, request.id)
            changed = await self._rewrite(connection, who, stored.memory, request, draft)
            expires_at = _new_expiry(stored.memory, request)
            if changed or expires_at != stored.memory.expires_at:
                await connection.execute(_EXPIRE, who.tenant, who.user, stored.memory.id, expires_at)
                entry = audit_entry(who, "memory.update", {"id": stored.memory.id})
                await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], entry)
            # The text is content: it is not kept with the key.
            return (await self._get(connection, audience, stored.memory.id)).memory.model_copy(update=_UNTOLD)

        done = await write_once(self._database, call, request, Memory, store)
        self._wake()
        await self._vectors.settle(who.tenant, [done.id])
        return (await self.get(audience, done.id)).memory

    async def _rewrite(
        self, connection: Connection, who: Principal, stored: Memory, request: UpdateMemory, draft: Draft | None
    ) -> bool:
        """Store a draft in place of a memory; whether that changes what it says. Raises `VectorMissing`."""
        if draft is None:
            return False
        if draft.vector is None or (request.text is None and draft.text != stored.text):
            raise VectorMissing
        if (draft.text, dict(draft.metadata)) == (stored.text, stored.metadata):
            return False
        version = await next_version(connection)
        await rewrite_item(connection, self._vectors, who.tenant, who.user, version, stored.id, draft)
        return True

    async def versions(self, tenant: str, id: str) -> tuple[MemoryVersion, ...]:
        """What a memory said before, the newest first."""
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_VERSIONS, parse_ids([id])[0])
        return tuple(
            MemoryVersion(
                text=shorten(row["body"], len(rows)),
                metadata=_plain(row["metadata"]),
                since=row["since"],
                until=row["until"],
                labels=labels_from_row(row["labels"]),
            )
            for row in rows
        )


def _new_expiry(stored: Memory, request: UpdateMemory) -> datetime | None:
    if request.expires_at is None:
        return stored.expires_at
    return None if request.expires_at == "never" else request.expires_at


_UNTOLD: Mapping[str, Any] = {"text": "", "metadata": {}, "speaker": None, "external_id": None}


def _audience(audience: Audience) -> tuple[str, list[str], list[ItemKind]]:
    return audience.tenant, list(audience.owners), list(audience.kinds)


def _filter(audience: Audience, wanted: MemoryFilter, as_of: datetime | None) -> tuple[object, ...]:
    return (*_audience(audience), wanted.conversation_id, wanted.since, wanted.until, wanted.metadata, as_of)


def _read_cursor(cursor: str) -> tuple[datetime, str]:
    at, _, id = cursor.partition(" ")
    try:
        return datetime.fromisoformat(at), str(parse_ids([id])[0])
    except (ValueError, IndexError):
        raise BadRequest("not the `next` of a page", field="cursor") from None


def _memory(row: asyncpg.Record, beside: int = 1) -> Memory:
    said, labels = row["kind"] == ItemKind.MESSAGE, labels_from_row(row["labels"])
    return Memory(
        id=str(row["id"]),
        external_id=row["external_id"],
        kind=ItemKind(row["kind"]),
        text=shorten(tell_claim(row["body"], labels) if row["of_fact"] else row["body"], beside),
        speaker=row["title"] if said else None,
        conversation_id=row["said_in"],
        position=row["position"],
        occurred_at=row["at"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        metadata=_plain(row["metadata"]),
        expires_at=row["expires_at"],
        labels=labels,
    )


Fitting = TypeVar("Fitting", bound=Memory)


def fit(memories: Sequence[Fitting]) -> list[Fitting]:
    """The first of some memories, one at least, whose metadata one answer has room for beside their texts."""
    kept: list[Fitting] = []
    left = METADATA_OF_ANSWER
    for one in memories:
        left -= len(json.dumps(one.metadata, ensure_ascii=False).encode())
        if kept and left < 0:
            break
        kept.append(one)
    return kept


def _plain(metadata: Mapping[str, Any]) -> Metadata:
    """The metadata of an item; what is more than a plain value, as `remember` takes it too, is told as JSON."""
    return {
        name: value if isinstance(value, str | int | float | bool | None) else json.dumps(value, ensure_ascii=False)
        for name, value in metadata.items()
    }


def own(who: Principal, kinds: Sequence[ItemKind] = ()) -> Audience:
    """What the caller may read by id, correct and delete: their own items, of some kinds or all, and no facts that formed."""
    return Audience(who.tenant, (who.user,), tuple(kinds) or SEARCHED)


SEARCHED = (ItemKind.FACT, ItemKind.NOTE, ItemKind.CONCEPT, ItemKind.MESSAGE, ItemKind.EPISODE)
"""The kinds that are found."""
