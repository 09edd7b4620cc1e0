"""Writing items with their words and vectors, in one transaction, one writer for each owner at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from phronesis_contracts.memory import ItemKind
from phronesis_postgres import Connection

from ..domain.analysis import Words, term, words
from ..domain.values import Draft, VectorEntry, VectorMissing
from ..ports import VectorIndex

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
    INSERT INTO items (tenant, owner, kind, external_id, part, family, title, body, metadata, content_hash, version)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING id"""
_UPDATE = """
    UPDATE items SET kind = $2, family = $3, title = $4, body = $5, metadata = $6, content_hash = $7, version = $8,
        updated_at = now() WHERE id = $1"""
_TEXT = """
    INSERT INTO texts (item_id, tenant, owner, kind, family, length, terms, counts)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"""


@dataclass(frozen=True)
class Written:
    """What became of one draft."""

    id: str
    status: Literal["created", "updated", "unchanged"]


async def lock(connection: Connection, tenant: str, owner: str) -> None:
    """Let no other transaction write items of this owner until this one ends: counts and links stay right."""
    await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", f"memory/{tenant}/{owner}")


async def write(
    connection: Connection, vectors: VectorIndex, tenant: str, owner: str, version: int, drafts: Sequence[Draft]
) -> list[Written]:
    """Store drafts, each in place of the item with its external id and part.

    Args:
        connection: in a transaction that holds the owner's lock.
        vectors: the index of their vectors.
        tenant: the tenant.
        owner: the user, or `SHARED`.
        version: version of what is written.
        drafts: what to write.

    Raises:
        VectorMissing: a draft that is new or changed has no vector.
    """
    known = await _known(connection, tenant, owner, drafts)
    written: list[Written] = []
    changed: list[tuple[str, Draft]] = []
    stale: list[str] = []
    for draft in drafts:
        id, digest = known.get((draft.external_id, draft.part), (None, None))
        if id is not None and digest == draft.digest:
            written.append(Written(id, "unchanged"))
            continue
        if draft.vector is None:
            raise VectorMissing
        if id is None:
            id = await _insert(connection, tenant, owner, version, draft)
            written.append(Written(id, "created"))
        else:
            stale.append(id)
            await _update(connection, id, version, draft)
            written.append(Written(id, "updated"))
        changed.append((id, draft))
    await _forget_texts(connection, stale)
    await _state_sources(connection, stale, changed)
    await index_texts(connection, tenant, owner, changed)
    entries = [
        VectorEntry(id, tenant, owner, draft.kind, draft.vector, draft.family, draft.passages)
        for id, draft in changed
        if draft.vector is not None
    ]
    await vectors.upsert(entries, within=connection)
    return written


async def remove(connection: Connection, vectors: VectorIndex, tenant: str, ids: Sequence[str]) -> bool:
    """Delete items with their words and vectors; whether the vectors go with the transaction, or when they are settled."""
    if not ids:
        return True
    await _forget_texts(connection, ids)
    await connection.execute("DELETE FROM items WHERE tenant = $1 AND id = ANY($2::uuid[])", tenant, list(ids))
    return await vectors.delete(tenant, ids, within=connection)


async def _known(
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


async def _insert(connection: Connection, tenant: str, owner: str, version: int, draft: Draft) -> str:
    id = await connection.fetchval(
        _INSERT,
        tenant,
        owner,
        draft.kind,
        draft.external_id,
        draft.part,
        draft.family,
        draft.title,
        draft.text,
        dict(draft.metadata),
        draft.digest,
        version,
    )
    return str(id)


async def _update(connection: Connection, id: str, version: int, draft: Draft) -> None:
    await connection.execute(
        _UPDATE, id, draft.kind, draft.family, draft.title, draft.text, dict(draft.metadata), draft.digest, version
    )


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
        found: Words = draft.words or words(draft.whole)
        terms = {term(tenant, owner, draft.kind, stem): count for stem, count in found.counts.items()}
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
