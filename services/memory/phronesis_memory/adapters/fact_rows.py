"""Facts as rows: read with their sources, and written as a decision says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

import asyncpg

from phronesis_contracts.facts import Fact, FactKind, FactSource, Origin
from phronesis_postgres import Connection

from ..facts.values import Evidence, Kept

COLUMNS = """id, slot, value, kind, subject, predicate, object, body, negated, valid_from, valid_to, superseded_by, ended_at,
    item_id, recorded_at"""
_SOURCES = """
    SELECT fact_id, source, said_at, origin, confidence, turn_id, conversation_id FROM fact_sources
    WHERE fact_id = ANY($1::uuid[]) ORDER BY said_at, source"""
_UPSERT = """
    INSERT INTO facts (id, tenant, owner, slot, value, kind, subject, predicate, object, body, negated, valid_from, valid_to,
        superseded_by, ended_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
    ON CONFLICT (id) DO UPDATE SET valid_from = excluded.valid_from, valid_to = excluded.valid_to,
        superseded_by = excluded.superseded_by, ended_at = excluded.ended_at"""
_STATE = """
    INSERT INTO fact_sources (fact_id, source, said_at, origin, confidence, turn_id, conversation_id)
    VALUES ($1, $2, $3, $4, $5, $6, $7)"""


async def kept(connection: Connection, rows: Iterable[asyncpg.Record]) -> list[Kept]:
    """The facts of rows, with their sources, in the order of the rows."""
    found = list(rows)
    said: dict[UUID, list[Evidence]] = {row["id"]: [] for row in found}
    for one in await connection.fetch(_SOURCES, list(said)):
        said[one["fact_id"]].append(
            Evidence(
                one["source"], one["said_at"], Origin(one["origin"]), one["confidence"], one["turn_id"], one["conversation_id"]
            )
        )
    return [_kept(row, said[row["id"]]) for row in found]


def _kept(row: asyncpg.Record, evidence: Sequence[Evidence]) -> Kept:
    return Kept(
        id=str(row["id"]),
        slot=row["slot"],
        value=row["value"],
        kind=FactKind(row["kind"]),
        subject=row["subject"],
        predicate=row["predicate"],
        object=row["object"],
        text=row["body"],
        negated=row["negated"],
        valid_from=row["valid_from"],
        evidence=tuple(evidence),
        valid_to=row["valid_to"],
        superseded_by=str(row["superseded_by"]) if row["superseded_by"] else None,
        ended_at=row["ended_at"],
    )


def shown(fact: Kept, row: asyncpg.Record) -> Fact:
    """A fact as its owner sees it."""
    return Fact(
        id=fact.id,
        kind=fact.kind,
        subject=fact.subject,
        predicate=fact.predicate,
        object=fact.object,
        text=fact.text,
        negated=fact.negated,
        held=fact.held,
        valid_from=fact.valid_from,
        valid_to=fact.valid_to,
        recorded_at=row["recorded_at"],
        superseded_by=fact.superseded_by,
        confidence=fact.confidence,
        trust=fact.trust,
        origin=fact.best,
        sources=tuple(
            FactSource(turn_id=one.turn_id, conversation_id=one.conversation_id, origin=one.origin, said_at=one.said_at)
            for one in fact.evidence[-_MOST:]
        ),
    )


_MOST = 20
"""Sources that a fact is shown with: the newest."""


async def replace_slot(connection: Connection, tenant: str, owner: str, before: Sequence[Kept], after: Sequence[Kept]) -> None:
    """Make the rows of one slot what a decision says; only what differs is written."""
    old = {fact.id: fact for fact in before}
    left = {fact.id for fact in after}
    await connection.execute("DELETE FROM facts WHERE id = ANY($1::uuid[])", [id for id in old if id not in left])
    changed = [fact for fact in after if old.get(fact.id) != fact]
    # What ends comes first: of a slot one value is held at a time.
    for fact in sorted(changed, key=lambda fact: fact.held):
        await connection.execute(_UPSERT, *_row(tenant, owner, fact))
    where = {one.source: fact.id for fact in before for one in fact.evidence}
    moved = [(fact.id, one) for fact in after for one in fact.evidence if where.get(one.source) != fact.id]
    gone = [one.source for _, one in moved]
    await connection.execute(
        "DELETE FROM fact_sources WHERE fact_id = ANY($1::uuid[]) AND source = ANY($2::text[])", list(old), gone
    )
    await connection.executemany(
        _STATE,
        [(id, o.source, o.said_at, o.origin, o.confidence, o.turn_id, o.conversation_id) for id, o in moved],
    )


def _row(tenant: str, owner: str, fact: Kept) -> tuple[object, ...]:
    return (
        fact.id,
        tenant,
        owner,
        fact.slot,
        fact.value,
        fact.kind,
        fact.subject,
        fact.predicate,
        fact.object,
        fact.text,
        fact.negated,
        fact.valid_from,
        fact.valid_to,
        fact.superseded_by,
        fact.ended_at,
    )
