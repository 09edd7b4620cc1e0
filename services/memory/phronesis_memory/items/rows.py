"""Rows of items with their words and vectors: written and removed in one transaction, one writer for each owner at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import uuid4

import asyncpg

from phronesis_bus import Call, audit_entry
from phronesis_contracts import labels_for_row
from phronesis_contracts.deletions import ConversationDeleted, Purged
from phronesis_contracts.memory import ITEMS_FORGOTTEN, MEMORY_PURGED, Forget, Forgotten, ItemKind, ItemsForgotten
from phronesis_contracts.service import AUDITED
from phronesis_postgres import Connection, Database, write_news, write_once

from ..ports import VectorIndex
from ..values import EXPERIENCE_KINDS, Draft, VectorEntry, VectorMissing, owner_of_documents, parse_ids
from ..vectors.changes import hold_event
from ..words.analysis import Words, count_words, term_number

MOST_VERSIONS = 50
"""Former versions of one item that are kept: the newest."""
_THEIR_WORDS = """
    SELECT t AS term, count(*)::integer AS items FROM texts, unnest(terms) AS t
    WHERE item_id = ANY($1::uuid[]) GROUP BY t"""
_FORGET_WORDS = """
    UPDATE words SET items = words.items - gone.items FROM unnest($1::bigint[], $2::integer[]) AS gone (term, items)
    WHERE words.term = gone.term"""
_SHRINK = """
    UPDATE scopes SET items = scopes.items - gone.items, words = scopes.words - gone.words
    FROM (
        SELECT tenant, owner, kind, count(*) AS items, sum(length) AS words
        FROM texts WHERE item_id = ANY($1::uuid[]) GROUP BY tenant, owner, kind
    ) gone
    WHERE (scopes.tenant, scopes.owner, scopes.kind) = (gone.tenant, gone.owner, gone.kind)"""
_COUNT_WORDS = """
    INSERT INTO words (term, items) SELECT t, count(*) FROM unnest($1::bigint[]) AS t GROUP BY t
    ON CONFLICT (term) DO UPDATE SET items = words.items + excluded.items"""
_GROW = """
    INSERT INTO scopes (tenant, owner, kind, items, words) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (tenant, owner, kind)
    DO UPDATE SET items = scopes.items + excluded.items, words = scopes.words + excluded.words"""
_INSERT = """
    INSERT INTO items (tenant, owner, kind, external_id, part, family, title, body, metadata, content_hash, version,
        said_in, occurred_at, expires_at, labels, position, id)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)"""
# The empty text keeps the planner from walking all that a user has, by `items_kind`, while its statistics are old.
_LAST_PLACES = """
    SELECT said_in, max(position) AS last FROM items
    WHERE said_in = ANY($3::text[]) AND tenant || '' = $1 AND owner = $2 GROUP BY said_in"""
_UPDATE = """
    UPDATE items SET kind = $2, family = $3, title = $4, body = $5, metadata = $6, content_hash = $7, version = $8,
        occurred_at = $9, expires_at = $10, labels = $11, updated_at = now() WHERE id = $1"""
_KEEP_VERSION = """
    INSERT INTO item_versions (item_id, version, body, metadata, labels, since, until)
    SELECT id, version, body, metadata, labels, updated_at, now() FROM items WHERE id = ANY($1::uuid[])
    ON CONFLICT DO NOTHING"""
_DROP_VERSIONS = """
    DELETE FROM item_versions USING (
        SELECT item_id, version, row_number() OVER (PARTITION BY item_id ORDER BY version DESC) AS n
        FROM item_versions WHERE item_id = ANY($1::uuid[])
    ) old WHERE (item_versions.item_id, item_versions.version) = (old.item_id, old.version) AND old.n > $2"""
_TEXT = """
    INSERT INTO texts (item_id, tenant, owner, kind, family, length, terms, counts)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"""


_WAIT = """
    INSERT INTO unembedded (item_id, tenant, owner) SELECT id, $1, $2 FROM unnest($3::uuid[]) AS id
    ON CONFLICT (item_id) DO UPDATE SET due = now()"""
_WAIT_NO_MORE = "DELETE FROM unembedded WHERE item_id = ANY($1::uuid[])"


WITH_HISTORY = frozenset({ItemKind.FACT, ItemKind.NOTE, ItemKind.CONCEPT, ItemKind.MESSAGE})
"""Kinds that are kept by hand, and whose former versions can be read."""


@dataclass(frozen=True)
class WriteResult:
    """What became of one draft."""

    id: str
    status: Literal["created", "updated", "unchanged"]


async def lock_owner(connection: Connection, tenant: str, owner: str) -> None:
    """Let no other transaction write items of this owner until this one ends: counts and links stay right."""
    await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", f"memory/{tenant}/{owner}")


async def write_items(
    connection: Connection,
    vectors: VectorIndex,
    tenant: str,
    owner: str,
    version: int,
    drafts: Sequence[Draft],
    *,
    embed_later: bool = False,
) -> list[WriteResult]:
    """Store drafts, each in place of the item with its external id and part.

    What a caller's own item said before stays in its history.

    Args:
        embed_later: let changed drafts without a vector wait for theirs, in `unembedded`.

    Raises:
        VectorMissing: a changed draft has no vector, and may not wait for one.
    """
    known = await _read_known(connection, tenant, owner, drafts)
    written: list[WriteResult] = []
    new: list[tuple[str, Draft]] = []
    updated: list[tuple[str, Draft]] = []
    for draft in drafts:
        id, digest = known.get((draft.external_id, draft.part), (None, None))
        if id is not None and digest == draft.digest:
            written.append(WriteResult(id, "unchanged"))
            continue
        if draft.vector is None and not embed_later:
            raise VectorMissing
        if id is None:
            id = str(uuid4())
            new.append((id, draft))
            written.append(WriteResult(id, "created"))
        else:
            updated.append((id, draft))
            written.append(WriteResult(id, "updated"))
    changed = [*new, *updated]
    await _insert_items(connection, tenant, owner, version, new)
    await _update_items(connection, version, updated)
    await _state_sources(connection, [id for id, _ in updated], changed)
    await _index_items(connection, vectors, tenant, owner, changed)
    if waiting := [id for id, draft in changed if draft.vector is None]:
        await connection.execute(_WAIT, tenant, owner, waiting)
    return written


async def rewrite_item(
    connection: Connection, vectors: VectorIndex, tenant: str, owner: str, version: int, id: str, draft: Draft
) -> None:
    """Store a draft in place of the item with this id, whose sources stay. Its vector is made already."""
    await _update_items(connection, version, [(id, draft)])
    await _index_items(connection, vectors, tenant, owner, [(id, draft)])


async def _index_items(
    connection: Connection, vectors: VectorIndex, tenant: str, owner: str, changed: Sequence[tuple[str, Draft]]
) -> None:
    """Let items be found by the words and the vectors of their drafts."""
    await index_texts(connection, tenant, owner, changed)
    entries = [
        VectorEntry(id, tenant, owner, draft.kind, draft.vector, draft.family, draft.passages)
        for id, draft in changed
        if draft.vector is not None
    ]
    await vectors.upsert(entries, within=connection)


async def remove_items(connection: Connection, vectors: VectorIndex, tenant: str, ids: Sequence[str]) -> bool:
    """Delete items with their words and vectors; whether the vectors go with the transaction, or when they are settled."""
    if not ids:
        return True
    await _forget_texts(connection, ids)
    await connection.execute("DELETE FROM items WHERE tenant = $1 AND id = ANY($2::uuid[])", tenant, list(ids))
    return await vectors.delete(tenant, ids, within=connection)


async def _read_known(
    connection: Connection, tenant: str, owner: str, drafts: Sequence[Draft]
) -> dict[tuple[str | None, str], tuple[str, bytes]]:
    rows = await connection.fetch(
        "SELECT id, external_id, part, content_hash FROM items"
        " WHERE tenant = $1 AND owner = $2 AND external_id = ANY($3::text[])",
        tenant,
        owner,
        list({draft.external_id for draft in drafts if draft.external_id is not None}),
    )
    return {(row["external_id"], row["part"]): (str(row["id"]), row["content_hash"]) for row in rows}


async def _insert_items(
    connection: Connection, tenant: str, owner: str, version: int, new: Sequence[tuple[str, Draft]]
) -> None:
    """Insert items by the ids that they are to have; messages behind the last of their conversations."""
    conversations = list({draft.said.conversation_id for _, draft in new if draft.said.conversation_id is not None})
    found = await connection.fetch(_LAST_PLACES, tenant, owner, conversations) if conversations else []
    places = {row["said_in"]: int(row["last"]) for row in found}
    rows: list[tuple[object, ...]] = []
    for id, draft in new:
        said_in, place = draft.said.conversation_id, None
        if said_in is not None:
            place = places[said_in] = places.get(said_in, 0) + 1
        what = (draft.kind, draft.external_id, draft.part, draft.family, draft.title, draft.text, dict(draft.metadata))
        said = (said_in, draft.said.occurred_at, draft.said.expires_at, labels_for_row(draft.labels))
        rows.append((tenant, owner, *what, draft.digest, version, *said, place, id))
    if rows:
        await connection.executemany(_INSERT, rows)


async def _update_items(connection: Connection, version: int, updated: Sequence[tuple[str, Draft]]) -> None:
    """Put drafts in place of items, without their former words; of what is kept by hand the former version stays."""
    if not updated:
        return
    if kept := [id for id, draft in updated if draft.kind in WITH_HISTORY]:
        await connection.execute(_KEEP_VERSION, kept)
        await connection.execute(_DROP_VERSIONS, kept, MOST_VERSIONS)
    rows: list[tuple[object, ...]] = []
    for id, one in updated:
        what = (one.kind, one.family, one.title, one.text, dict(one.metadata))
        rows.append((id, *what, one.digest, version, one.said.occurred_at, one.said.expires_at, labels_for_row(one.labels)))
    await connection.executemany(_UPDATE, rows)
    await _forget_texts(connection, [id for id, _ in updated])
    # What comes with its vector waits for none: it would be embedded twice.
    await connection.execute(_WAIT_NO_MORE, [id for id, one in updated if one.vector is not None])


async def _state_sources(connection: Connection, stale: Sequence[str], changed: Sequence[tuple[str, Draft]]) -> None:
    if stale:
        await connection.execute("DELETE FROM sources WHERE item_id = ANY($1::uuid[])", list(stale))
    rows = [(id, source) for id, draft in changed for source in draft.sources]
    if rows:
        await connection.executemany("INSERT INTO sources (item_id, conversation_id) VALUES ($1, $2)", rows)


async def _forget_texts(connection: Connection, ids: Sequence[str]) -> None:
    if not ids:
        return
    gone = list(ids)
    words_gone = await connection.fetch(_THEIR_WORDS, gone)
    terms = [row["term"] for row in words_gone]
    await connection.execute(_SHRINK, gone)
    await connection.execute(_FORGET_WORDS, terms, [row["items"] for row in words_gone])
    await connection.execute("DELETE FROM words WHERE term = ANY($1::bigint[]) AND items <= 0", terms)
    await connection.execute("DELETE FROM texts WHERE item_id = ANY($1::uuid[])", gone)


async def index_texts(connection: Connection, tenant: str, owner: str, changed: Sequence[tuple[str, Draft]]) -> None:
    """Store the words of new texts, by item, and count them into their scopes. The connection holds the owner's lock."""
    rows: list[tuple[object, ...]] = []
    counted: list[int] = []
    sizes: dict[ItemKind, list[int]] = {}
    for id, draft in changed:
        found: Words = draft.words or count_words(draft.whole)
        terms = {term_number(tenant, owner, draft.kind, stem): count for stem, count in found.counts.items()}
        counts = bytes(min(count, 255) for count in terms.values())
        rows.append((id, tenant, owner, draft.kind, draft.family, found.length, list(terms), counts))
        counted.extend(terms)
        sizes.setdefault(draft.kind, []).append(found.length)
    for kind, lengths in sizes.items():
        await connection.execute(_GROW, tenant, owner, kind, len(lengths), sum(lengths))
    if counted:
        await connection.execute(_COUNT_WORDS, counted)
    if rows:
        await connection.executemany(_TEXT, rows)


SERVICE = "memory"
_BATCH = 500
"""Items of one event."""

_NAMED = """
    SELECT id, kind, external_id FROM items
    WHERE tenant = $1 AND owner = $2 AND (id = ANY($3::uuid[]) OR external_id = ANY($4::text[])) ORDER BY id"""
# Learnt from this conversation and from no other that is left, and the passages of its documents.
_ORPHANS = """
    SELECT id, kind, external_id FROM items WHERE tenant = $1 AND owner = $2
    AND id IN (SELECT item_id FROM sources WHERE conversation_id = $3)
    AND NOT EXISTS (SELECT FROM sources WHERE item_id = items.id AND conversation_id <> $3)
    UNION ALL SELECT id, kind, external_id FROM items WHERE tenant = $1 AND owner = $4 ORDER BY id"""
_DROP_DOCUMENTS = "DELETE FROM documents WHERE tenant = $1 AND owner = $2 AND conversation_id = $3"
# An owner of passages is of one conversation, and its name is not to outlive it.
_DROP_SCOPES = "DELETE FROM scopes WHERE tenant = $1 AND owner = ANY($2::text[]) AND items <= 0"
_DETACH = """
    DELETE FROM sources USING items WHERE sources.conversation_id = $3 AND items.id = item_id AND tenant = $1 AND owner = $2"""
_BURY = """
    INSERT INTO tombstones (tenant, owner, name) SELECT $1, $2, unnest($3::text[]) ON CONFLICT DO NOTHING RETURNING name"""
_BURY_USER = """
    INSERT INTO tombstones (tenant, owner, name) VALUES ($1, '', $2)
    ON CONFLICT (tenant, owner, name) DO UPDATE SET at = clock_timestamp()"""
_BURIED_USER = """
    SELECT true FROM tombstones
    WHERE tenant = $1 AND owner = '' AND name = $2 AND ($3::timestamptz IS NULL OR at >= $3)"""
_BURIED = "SELECT name FROM tombstones WHERE tenant = $1 AND owner = $2 AND name = ANY($3::text[])"


class ItemRemover:
    """Removes items for good."""

    def __init__(self, database: Database, vectors: VectorIndex, wake: Callable[[], None]) -> None:
        self._database, self._vectors, self._wake = database, vectors, wake

    async def forget(self, call: Call, request: Forget) -> Forgotten:
        """Remove the caller's items that are named by id or external id, once for the call's key."""
        who = call.who

        async def work(connection: Connection) -> Forgotten:
            await lock_owner(connection, who.tenant, who.user)
            ids = parse_ids(request.ids)
            rows = await connection.fetch(_NAMED, who.tenant, who.user, ids, list(request.ids))
            await self.remove(connection, who.tenant, who.user, rows)
            ids_gone = tuple(str(row["id"]) for row in rows)
            if ids_gone:
                entry = audit_entry(who, "forget", {"items": len(ids_gone), "ids": ids_gone})
                await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], entry)
            return Forgotten(count=len(ids_gone), ids=ids_gone)

        result = await write_once(self._database, call, request, Forgotten, work)
        self._wake()
        await self._vectors.settle(who.tenant, result.ids)
        return result

    async def forget_conversation(self, tenant: str, event: ConversationDeleted) -> None:
        """Remove what was learnt from a deleted conversation alone, and say so, once."""
        owner = event.user
        async with self._database.transaction(tenant) as connection:
            await lock_owner(connection, tenant, owner)
            if not await connection.fetch(_BURY, tenant, owner, [_conversation_tombstone(event.conversation_id)]):
                return
            passages = owner_of_documents(owner, event.conversation_id)
            rows = await connection.fetch(_ORPHANS, tenant, owner, event.conversation_id, passages)
            gone, complete = await self._remove(connection, tenant, owner, rows)
            await connection.execute(_DROP_DOCUMENTS, tenant, owner, event.conversation_id)
            await drop_scopes(connection, tenant, [passages])
            kept = int((await connection.execute(_DETACH, tenant, owner, event.conversation_id)).rpartition(" ")[2])
            for message in _removal_news(owner, gone, event.deletion_id):
                await write_news(connection, SERVICE, tenant, ITEMS_FORGOTTEN, message)
            report = Purged(deletion_id=event.deletion_id, removed={"items": len(rows), "sources": len(rows) + kept})
            if complete:
                await write_news(connection, SERVICE, tenant, MEMORY_PURGED, report)
            else:
                await hold_event(connection, SERVICE, tenant, MEMORY_PURGED, report, [row["id"] for row in rows])
        await self._vectors.settle(tenant, [str(row["id"]) for row in rows])
        self._wake()

    async def remove(self, connection: Connection, tenant: str, owner: str, rows: Sequence[asyncpg.Record]) -> None:
        """Remove items of an owner, whose lock the connection holds, and say so to the graph."""
        gone, _ = await self._remove(connection, tenant, owner, rows)
        for message in _removal_news(owner, gone, None):
            if message.ids:
                await write_news(connection, SERVICE, tenant, ITEMS_FORGOTTEN, message)

    async def _remove(
        self, connection: Connection, tenant: str, owner: str, rows: Sequence[asyncpg.Record]
    ) -> tuple[list[str], bool]:
        """Remove items; the ids of those that the graph knows, and whether nothing is left."""
        found = [(str(row["id"]), row["kind"], row["external_id"]) for row in rows]
        complete = await remove_items(connection, self._vectors, tenant, [id for id, _, _ in found])
        # An episode is made of news, and news may come again.
        episodes = [external for _, kind, external in found if kind == ItemKind.EPISODE and external is not None]
        await connection.execute(_BURY, tenant, owner, episodes)
        return [id for id, kind, _ in found if kind not in EXPERIENCE_KINDS], complete


async def drop_scopes(connection: Connection, tenant: str, owners: Sequence[str]) -> None:
    """Remove the counts of owners of passages that have nothing left."""
    await connection.execute(_DROP_SCOPES, tenant, list(owners))


async def add_tombstones(connection: Connection, tenant: str, owner: str, names: Sequence[str]) -> None:
    """Let late news not bring these back; the connection holds the owner's lock."""
    await connection.execute(_BURY, tenant, owner, list(names))


async def find_tombstones(
    connection: Connection, tenant: str, owner: str, conversations: Sequence[str], episodes: Sequence[str] = ()
) -> list[str]:
    """Which of these conversations and episodes (by external id) were deleted; the connection holds the owner's lock."""
    names = [*map(_conversation_tombstone, conversations), *episodes]
    if not names:
        return []
    rows = await connection.fetch(_BURIED, tenant, owner, names)
    return [row["name"].removeprefix("conversation:") for row in rows]


async def bury_user(connection: Connection, tenant: str, user: str) -> None:
    """Let what was said by a user until now not come back; no row names them for it."""
    await connection.execute(_BURY_USER, tenant, _user_tombstone(tenant, user))


async def is_buried(connection: Connection, tenant: str, user: str, said_at: datetime | None) -> bool:
    """Whether the user was erased after something was said, or at any time where that is not known."""
    return bool(await connection.fetchval(_BURIED_USER, tenant, _user_tombstone(tenant, user), said_at))


def _user_tombstone(tenant: str, user: str) -> str:
    return f"user:{hashlib.sha256(f'{tenant}/{user}'.encode()).hexdigest()}"


def _conversation_tombstone(id: str) -> str:
    return f"conversation:{id}"


def _removal_news(owner: str, ids: list[str], deletion: str | None) -> list[ItemsForgotten]:
    """The items in messages of a bounded size: one at least, so that a deletion hears of the graph in any case."""
    batches = [ids[at : at + _BATCH] for at in range(0, len(ids), _BATCH)] or [[]]
    return [
        ItemsForgotten(owner=owner, ids=tuple(batch), deletion_id=deletion, part=number, parts=len(batches))
        for number, batch in enumerate(batches, 1)
    ]
