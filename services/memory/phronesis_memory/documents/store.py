"""Documents in Postgres: their rows, and their passages as items."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import asyncpg

from phronesis_bus import Call
from phronesis_contracts import BadRequest, NotFound, Principal, labels_for_row
from phronesis_contracts.documents import KeepDocument, KeptDocument
from phronesis_contracts.media import MediaKind, label_medium
from phronesis_contracts.memory import ItemKind
from phronesis_postgres import EVERY_TENANT, Connection, Database, write_once

from ..items.rows import find_tombstones, index_texts, lock_owner
from ..items.store import next_version
from ..ports import VectorIndex
from ..values import Draft, Vector, VectorEntry, owner_of_documents
from ..words.analysis import Words
from .passages import Passage

LEASE = 60.0
"""Seconds after which passages that somebody else was to embed are embedded here."""
_DOCUMENT = """
    SELECT * FROM documents WHERE tenant = $1 AND owner = $2 AND conversation_id = $3 AND media_id = $4"""
_OF_CONVERSATION = (
    "SELECT * FROM documents WHERE tenant = $1 AND owner = $2 AND conversation_id = $3 ORDER BY kept_at, media_id"
)
_INSERT = """
    INSERT INTO items (id, tenant, owner, kind, external_id, part, family, title, body, metadata, content_hash, version,
        labels)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"""
_UPSERT = """
    INSERT INTO documents (tenant, owner, conversation_id, media_id, name, kind, passages, characters, length, pages, limits)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    ON CONFLICT (tenant, owner, conversation_id, media_id) DO UPDATE SET passages = excluded.passages,
        characters = excluded.characters, limits = excluded.limits
    RETURNING *"""
# Tenants in turn, so that one with much to embed lets the others in.
_CLAIM = """
    UPDATE documents SET due = now() + make_interval(secs => $1) WHERE (tenant, owner, conversation_id, media_id) IN (
        SELECT tenant, owner, conversation_id, media_id FROM documents
        WHERE embedded < passages AND due <= now() AND tenant = (
            (SELECT tenant FROM documents WHERE embedded < passages AND due <= now() AND tenant > $2 ORDER BY tenant LIMIT 1)
            UNION ALL (SELECT tenant FROM documents WHERE embedded < passages AND due <= now() ORDER BY tenant LIMIT 1) LIMIT 1
        ) ORDER BY due LIMIT 1 FOR UPDATE SKIP LOCKED
    ) RETURNING tenant, owner, conversation_id, media_id, embedded"""
_WAITING = """
    SELECT id, title, body FROM items WHERE tenant = $1 AND owner = $2 AND external_id = $3 AND part >= $4
    ORDER BY part LIMIT $5"""
_EMBEDDED = """
    UPDATE documents SET embedded = greatest(embedded, $5), due = now()
    WHERE tenant = $1 AND owner = $2 AND conversation_id = $3 AND media_id = $4"""
_THERE = "SELECT id FROM items WHERE tenant = $1 AND owner = $2 AND id = ANY($3::uuid[])"
_PASSAGES = """
    SELECT id, external_id, title, body, metadata FROM items
    WHERE tenant = $1 AND owner = $2 AND kind = 'passage' AND id = ANY($3::uuid[])"""

_WHOLE = """
    SELECT id, external_id, title, body, metadata FROM items
    WHERE tenant = $1 AND owner = $2 AND kind = 'passage' AND external_id = ANY($3) ORDER BY external_id, part LIMIT $4"""


@dataclass(frozen=True)
class StoredPassage:
    """A passage as it is stored."""

    id: str
    media_id: str
    text: str
    heading: str | None
    place: dict[str, Any]
    """`position`, `start`, `end`, and `page` or `sheet` where they are known."""


@dataclass(frozen=True)
class Waiting:
    """Passages of one document that have no vector yet."""

    tenant: str
    owner: str
    conversation_id: str
    media_id: str
    first: int
    """Position of the first."""
    ids: tuple[str, ...]
    texts: tuple[str, ...]


class PostgresDocuments:
    """Documents on the tables `documents` and `items`."""

    def __init__(self, database: Database, vectors: VectorIndex) -> None:
        self._database, self._vectors = database, vectors

    async def get(self, who: Principal, conversation_id: str, media_id: str) -> KeptDocument | None:
        """What is kept of a document, if anything."""
        async with self._database.connection(who.tenant) as connection:
            row = await connection.fetchrow(_DOCUMENT, who.tenant, who.user, conversation_id, media_id)
        return None if row is None else _kept(row)

    async def list(self, who: Principal, conversation_id: str) -> tuple[KeptDocument, ...]:
        """The documents of a conversation, in the order in which they were attached."""
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(_OF_CONVERSATION, who.tenant, who.user, conversation_id)
        return tuple(_kept(row) for row in rows)

    async def keep(
        self, call: Call, request: KeepDocument, passages: Sequence[Passage], counted: Sequence[Words], most: int
    ) -> KeptDocument:
        """Keep a slice, once.

        Args:
            counted: the words of the passages.
            most: passages that one conversation may have.

        Raises:
            BadRequest: what stands before the slice is not kept.
            NotFound: the conversation was deleted.
        """
        who, conversation = call.who, request.conversation_id

        async def work(connection: Connection) -> KeptDocument:
            await lock_owner(connection, who.tenant, who.user)
            if await find_tombstones(connection, who.tenant, who.user, [conversation]):
                raise NotFound("the conversation was deleted", field="conversation_id")
            rows = await connection.fetch(_OF_CONVERSATION, who.tenant, who.user, conversation)
            row = next((one for one in rows if one["media_id"] == request.media_id), None)
            there = row["characters"] if row is not None else 0
            if row is not None and (request.offset < there or "passages" in row["limits"]):
                return _receipt(row)
            if request.offset > there:
                raise BadRequest(f"only {there} characters of it are kept so far", field="offset")
            room = most - sum(one["passages"] for one in rows)
            fit = list(passages)[: max(0, room)]
            first = row["passages"] if row is not None else 0
            await self._insert(connection, who, request, first, fit, counted)
            limits = list(dict.fromkeys([*request.limits, *(["passages"] if len(fit) < len(passages) else [])]))
            end = request.offset + len(request.text) if len(fit) == len(passages) else (fit[-1].end if fit else there)
            written = await connection.fetchrow(
                _UPSERT,
                who.tenant,
                who.user,
                conversation,
                request.media_id,
                request.name,
                request.kind,
                first + len(fit),
                end,
                request.length,
                request.pages,
                limits,
            )
            assert written is not None
            return _receipt(written)

        done = await write_once(self._database, call, request, KeptDocument, work)
        return await self.get(who, conversation, request.media_id) or done

    async def _insert(
        self,
        connection: Connection,
        who: Principal,
        request: KeepDocument,
        first: int,
        passages: Sequence[Passage],
        counted: Sequence[Words],
    ) -> None:
        owner = owner_of_documents(who.user, request.conversation_id)
        version = await next_version(connection)
        labels = labels_for_row([label_medium(request.kind, request.media_id, request.name)])
        rows: list[tuple[object, ...]] = []
        drafts: list[tuple[str, Draft]] = []
        for number, (one, words) in enumerate(zip(passages, counted, strict=False), first):
            id = str(uuid4())
            place: dict[str, Any] = {"position": number, "start": one.start, "end": one.end}
            place |= {name: value for name, value in (("page", one.page), ("sheet", one.sheet)) if value is not None}
            digest = hashlib.sha256(one.text.encode()).digest()
            part, family = f"{number:06d}", f"document/{request.media_id}"
            rows.append(
                (
                    UUID(id),
                    who.tenant,
                    owner,
                    ItemKind.PASSAGE,
                    request.media_id,
                    part,
                    family,
                    one.heading,
                    one.text,
                    place,
                    digest,
                    version,
                    labels,
                )
            )
            draft = Draft(ItemKind.PASSAGE, one.text, digest, request.media_id, part, family, one.heading, words=words)
            drafts.append((id, draft))
        await connection.executemany(_INSERT, rows)
        await index_texts(connection, who.tenant, owner, drafts)

    async def passages(self, who: Principal, conversation_id: str, ids: Sequence[str]) -> dict[str, StoredPassage]:
        """Passages by their ids."""
        owner = owner_of_documents(who.user, conversation_id)
        async with self._database.connection(who.tenant) as connection:
            return _by_id(await connection.fetch(_PASSAGES, who.tenant, owner, list(ids)))

    async def whole(self, who: Principal, conversation_id: str, media: Sequence[str], most: int) -> dict[str, StoredPassage]:
        """The first passages of documents, by their ids, in order."""
        owner = owner_of_documents(who.user, conversation_id)
        async with self._database.connection(who.tenant) as connection:
            return _by_id(await connection.fetch(_WHOLE, who.tenant, owner, list(media), most))

    async def claim(self, after: str, most: int) -> Waiting | None:
        """Passages of the document of the next tenant after `after` that has waited longest, for this process alone for a
        minute; `None` where none waits.
        """
        async with self._database.transaction(EVERY_TENANT) as connection:
            row = await connection.fetchrow(_CLAIM, LEASE, after)
        if row is None:
            return None
        owner = owner_of_documents(row["owner"], row["conversation_id"])
        async with self._database.connection(row["tenant"]) as connection:
            part = f"{row['embedded']:06d}"
            found = await connection.fetch(_WAITING, row["tenant"], owner, row["media_id"], part, most)
        texts = tuple(f"{one['title']}. {one['body']}" if one["title"] else one["body"] for one in found)
        return Waiting(
            row["tenant"],
            row["owner"],
            row["conversation_id"],
            row["media_id"],
            row["embedded"],
            tuple(str(one["id"]) for one in found),
            texts,
        )

    async def embedded(self, waiting: Waiting, vectors: Sequence[Vector]) -> None:
        """Store the vectors of passages; of those that are gone meanwhile none is stored."""
        owner = owner_of_documents(waiting.owner, waiting.conversation_id)
        async with self._database.transaction(waiting.tenant) as connection:
            await lock_owner(connection, waiting.tenant, waiting.owner)
            rows = await connection.fetch(_THERE, waiting.tenant, owner, list(waiting.ids))
            there = {str(row["id"]) for row in rows}
            entries = [
                VectorEntry(id, waiting.tenant, owner, ItemKind.PASSAGE, vector, f"document/{waiting.media_id}")
                for id, vector in zip(waiting.ids, vectors, strict=True)
                if id in there
            ]
            if entries:
                await self._vectors.upsert(entries, within=connection)
            named = (waiting.tenant, waiting.owner, waiting.conversation_id, waiting.media_id)
            await connection.execute(_EMBEDDED, *named, waiting.first + len(waiting.ids))
        await self._vectors.settle(waiting.tenant, [entry.id for entry in entries])


def _by_id(rows: Sequence[asyncpg.Record]) -> dict[str, StoredPassage]:
    return {
        str(row["id"]): StoredPassage(str(row["id"]), row["external_id"], row["body"], row["title"], row["metadata"])
        for row in rows
    }


def _kept(row: asyncpg.Record) -> KeptDocument:
    return KeptDocument(
        media_id=row["media_id"],
        name=row["name"],
        kind=MediaKind(row["kind"]),
        passages=row["passages"],
        characters=row["characters"],
        length=row["length"],
        complete=row["characters"] >= row["length"] and not row["limits"],
        searched_by_meaning=row["embedded"] >= row["passages"],
        pages=row["pages"],
        limits=tuple(row["limits"]),
    )


def _receipt(row: asyncpg.Record) -> KeptDocument:
    """What the result of a write is kept as: without the file's name, which a forgetting has to reach."""
    return _kept(row).model_copy(update={"name": ""})
