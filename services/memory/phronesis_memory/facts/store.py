"""Facts in Postgres: read with their sources, written as a decision says, with the items by which the held ones are found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID, uuid4

import asyncpg

from phronesis_bus import Call, audit_entry
from phronesis_contracts import Principal, labels_for_row, labels_from_row
from phronesis_contracts.facts import (
    Fact,
    FactKind,
    FactList,
    FactSource,
    ImportedMemory,
    ImportMemory,
    Learn,
    Learnt,
    LearntFact,
    ListFacts,
    Origin,
    ReplacedFact,
)
from phronesis_contracts.service import AUDITED
from phronesis_postgres import Connection, Database, write_news, write_once

from ..items.drafts import hash_content
from ..items.rows import is_buried, lock_owner, remove_items, write_items
from ..ports import VectorIndex
from ..values import owner_of_facts, tell_claim
from .decision import Assertion, Decision, DraftsByText, Evidence, StoredFact, TextMissing, decide
from .predicates import normalize, slot_of

COLUMNS = """id, slot, value, kind, subject, predicate, object, body, negated, valid_from, valid_to, superseded_by, ended_at,
    item_id, recorded_at, labels"""
_SOURCES = """
    SELECT fact_id, source, said_at, origin, confidence, turn_id, conversation_id, labels FROM fact_sources
    WHERE fact_id = ANY($1::uuid[]) ORDER BY said_at, source"""
_UPSERT = """
    INSERT INTO facts (id, tenant, owner, slot, value, kind, subject, predicate, object, body, negated, valid_from, valid_to,
        superseded_by, ended_at, labels)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
    ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, subject = excluded.subject, predicate = excluded.predicate,
        object = excluded.object, body = excluded.body, labels = excluded.labels,
        valid_from = excluded.valid_from, valid_to = excluded.valid_to,
        superseded_by = excluded.superseded_by, ended_at = excluded.ended_at"""
_STATE = """
    INSERT INTO fact_sources (fact_id, source, said_at, origin, confidence, turn_id, conversation_id, labels)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"""


async def facts_from_rows(connection: Connection, rows: Iterable[asyncpg.Record]) -> list[StoredFact]:
    """The facts of rows, with their sources, in the order of the rows."""
    found = list(rows)
    said: dict[UUID, list[Evidence]] = {row["id"]: [] for row in found}
    for one in await connection.fetch(_SOURCES, list(said)):
        said[one["fact_id"]].append(
            Evidence(
                one["source"],
                one["said_at"],
                Origin(one["origin"]),
                one["confidence"],
                one["turn_id"],
                one["conversation_id"],
                labels_from_row(one["labels"]),
            )
        )
    return [_fact_from_row(row, said[row["id"]]) for row in found]


def _fact_from_row(row: asyncpg.Record, evidence: Sequence[Evidence]) -> StoredFact:
    return StoredFact(
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
        worded=labels_from_row(row["labels"]),
    )


def fact_for_owner(fact: StoredFact, row: asyncpg.Record) -> Fact:
    """A fact as its owner sees it."""
    return Fact(
        id=fact.id,
        kind=fact.kind,
        subject=fact.subject,
        predicate=fact.predicate,
        object=fact.object,
        text=tell_claim(fact.text, fact.labels),
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
        labels=fact.labels,
    )


_MOST = 20
"""Sources that a fact is shown with: the newest."""


async def replace_slot(
    connection: Connection, tenant: str, owner: str, before: Sequence[StoredFact], after: Sequence[StoredFact]
) -> None:
    """Make the rows of one slot what a decision says; only what differs is written."""
    old = {fact.id: fact for fact in before}
    left = {fact.id for fact in after}
    await connection.execute("DELETE FROM facts WHERE id = ANY($1::uuid[])", [id for id in old if id not in left])
    changed = [fact for fact in after if old.get(fact.id) != fact]
    # What ends comes first: of a slot one value is held at a time.
    for fact in sorted(changed, key=lambda fact: fact.held):
        await connection.execute(_UPSERT, *_to_row(tenant, owner, fact))
    where = {one.source: fact.id for fact in before for one in fact.evidence}
    moved = [(fact.id, one) for fact in after for one in fact.evidence if where.get(one.source) != fact.id]
    gone = [one.source for _, one in moved]
    await connection.execute(
        "DELETE FROM fact_sources WHERE fact_id = ANY($1::uuid[]) AND source = ANY($2::text[])", list(old), gone
    )
    await connection.executemany(
        _STATE,
        [
            (id, o.source, o.said_at, o.origin, o.confidence, o.turn_id, o.conversation_id, labels_for_row(o.labels))
            for id, o in moved
        ],
    )


def _to_row(tenant: str, owner: str, fact: StoredFact) -> tuple[object, ...]:
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
        labels_for_row(fact.worded),
    )


SERVICE = "memory"
_OF_SLOT = f"SELECT {COLUMNS} FROM facts WHERE tenant = $1 AND owner = $2 AND slot = $3"  # noqa: S608
_BEHIND = f"""
    SELECT {COLUMNS} FROM facts
    WHERE tenant = $1 AND owner = $2 AND item_id = ANY($3::uuid[]) AND valid_to IS NULL"""  # noqa: S608
_LISTED = """
    FROM facts WHERE tenant = $1 AND owner = $2 AND ($3::text IS NULL OR lower(subject) = $3)
    AND ($4::text = kind OR $4 IS NULL AND kind <> 'note') AND ($5 OR valid_to IS NULL)"""
_PAGE = f"SELECT {COLUMNS} {_LISTED} ORDER BY recorded_at DESC, valid_from DESC, id LIMIT $6 OFFSET $7"
_RECENT = 50
"""Facts among which a correction looks for what it corrects."""
_OF_TURN = f"""
    SELECT {COLUMNS} FROM facts WHERE tenant = $1 AND owner = $2
    AND id IN (SELECT fact_id FROM fact_sources WHERE turn_id = $3) ORDER BY valid_from, id"""  # noqa: S608
_TOLD = f"""
    SELECT {COLUMNS} FROM facts WHERE tenant = $1 AND owner = $2
    AND (id = ANY($3::uuid[]) OR superseded_by = ANY($3::uuid[])) ORDER BY valid_from, id"""  # noqa: S608
_SAID = f"""
    SELECT {COLUMNS}, (
        SELECT max(said_at) FROM fact_sources WHERE fact_id = facts.id AND conversation_id = $3 AND said_at < $4
    ) AS said FROM facts WHERE tenant = $1 AND owner = $2 AND valid_to IS NULL
    ORDER BY said DESC NULLS LAST, valid_from DESC, id LIMIT $5"""  # noqa: S608
_AT = "(($AT::timestamptz IS NULL AND valid_to IS NULL) OR (valid_from <= $AT AND (valid_to IS NULL OR valid_to > $AT)))"
_ABOUT = f"""
    SELECT {COLUMNS} FROM facts WHERE tenant = $1 AND owner = $2
    AND ($3::text[] IS NULL OR lower(subject) = ANY($3)) AND ($4::text[] IS NULL OR lower(predicate) = ANY($4)
        OR lower(predicate) LIKE ANY($5::text[])) AND {_AT.replace("$AT", "$6")} ORDER BY valid_from DESC, id LIMIT $7"""  # noqa: S608
_WITH_WORDS = f"""
    SELECT {COLUMNS} FROM facts WHERE tenant = $1 AND owner = $2 AND (body ILIKE ANY($3::text[]))
    AND {_AT.replace("$AT", "$4")} ORDER BY valid_from DESC, id LIMIT $5"""  # noqa: S608
_ITEMS = "SELECT item_id FROM facts WHERE id = ANY($1::uuid[]) AND item_id IS NOT NULL"


def _unsaid(sayings: Sequence[Assertion], before: Sequence[StoredFact], turn_id: str) -> list[Assertion]:
    """What a turn states beyond what was learnt of it before, under numbers that are not taken."""
    known = {(fact.slot, fact.value) for fact in before}
    taken = sum(one.turn_id == turn_id for fact in before for one in fact.evidence)
    if not taken:
        return list(sayings)
    left = [one for one in sayings if slot_of(one.statement) not in known]
    return [
        replace(one, evidence=replace(one.evidence, source=f"turn:{turn_id}/{taken + number}"))
        for number, one in enumerate(left)
    ]


@dataclass
class _FactWrite:
    """One write of facts: its transaction, and what it touched."""

    connection: Connection
    who: Principal
    drafts: DraftsByText
    touched: list[str]
    """Items whose vectors changed."""


class PostgresFacts:
    """`Facts` on the tables `facts` and `items`."""

    def __init__(self, database: Database, vectors: VectorIndex, wake: Callable[[], None]) -> None:
        self._database, self._vectors, self._wake = database, vectors, wake

    async def learn(
        self,
        call: Call,
        request: Learn,
        sayings: Sequence[Assertion],
        drafts: DraftsByText,
        refused: int,
        words: Callable[[StoredFact], str],
    ) -> Learnt:
        """Take in what a turn states, once: what was learnt of it before is left out.

        Args:
            words: makes a sentence to the user of a fact.
        """
        touched: list[str] = []

        async def work(connection: Connection) -> Learnt:
            await lock_owner(connection, call.who.tenant, owner_of_facts(call.who.user))
            names = [fact_tombstone("turn", request.turn_id), fact_tombstone("conversation", request.conversation_id)]
            buried = await is_buried(connection, call.who.tenant, call.who.user, request.said_at)
            if buried or await _is_forgotten(connection, call.who, names):
                return Learnt()
            before = await self._of_turn(connection, call.who, request.turn_id)
            if before and request.statements is None:
                return Learnt(facts=tuple(LearntFact(id=one.id, status="confirmed") for one in before), refused=refused)
            new = _unsaid(sayings, before, request.turn_id)
            done = await self._take(_FactWrite(connection, call.who, drafts, touched), new)
            if done:
                entry = {"turn_id": request.turn_id, "facts": [one.told for one in done]}
                await write_news(
                    connection, SERVICE, call.who.tenant, AUDITED[SERVICE], audit_entry(call.who, "facts.learn", entry)
                )
            told = tuple(LearntFact(id=one.told, status=one.status) for one in done)
            return Learnt(facts=told, superseded=sum(len(one.superseded) for one in done), refused=refused)

        result = await write_once(self._database, call, request, Learnt, work)
        await self._settled(call.who, touched)
        return await self._in_words(call.who, result, words)

    async def _in_words(self, who: Principal, learnt: Learnt, words: Callable[[StoredFact], str]) -> Learnt:
        """Add the facts' words, which no stored result may hold: what is forgotten has to be gone there too."""
        ids = [UUID(one.id) for one in learnt.facts]
        if not ids:
            return learnt
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(_TOLD, who.tenant, who.user, ids)
            facts = await facts_from_rows(connection, rows)
        by_id = {fact.id: fact for fact in facts}
        told = []
        for one in learnt.facts:
            if (fact := by_id.get(one.id)) is None:
                told.append(one)
                continue
            gone = [
                old for old in facts if one.status == "added" and old.superseded_by == one.id and old.valid_to != old.valid_from
            ]
            replaced = tuple(ReplacedFact(id=old.id, text=tell_claim(old.text, old.labels), words=words(old)) for old in gone)
            text = tell_claim(fact.text, fact.labels)
            told.append(one.model_copy(update={"text": text, "words": words(fact), "replaced": replaced}))
        return learnt.model_copy(update={"facts": tuple(told)})

    async def take_in(
        self, call: Call, request: ImportMemory, sayings: Sequence[Assertion], drafts: DraftsByText, result: ImportedMemory
    ) -> ImportedMemory:
        touched: list[str] = []

        async def work(connection: Connection) -> ImportedMemory:
            await lock_owner(connection, call.who.tenant, owner_of_facts(call.who.user))
            done = await self._take(_FactWrite(connection, call.who, drafts, touched), sayings)
            entry = audit_entry(call.who, "facts.import", {"lines": result.lines, "facts": len(done)})
            await write_news(connection, SERVICE, call.who.tenant, AUDITED[SERVICE], entry)
            counts = {
                "added": sum(one.status != "confirmed" for one in done),
                "confirmed": sum(one.status == "confirmed" for one in done),
                "superseded": sum(len(one.superseded) for one in done),
            }
            return result.model_copy(update=counts)

        imported = await write_once(self._database, call, request, ImportedMemory, work)
        await self._settled(call.who, touched)
        return imported

    async def _settled(self, who: Principal, touched: list[str]) -> None:
        self._wake()
        await self._vectors.settle(who.tenant, touched)

    async def _take(self, work: _FactWrite, sayings: Sequence[Assertion]) -> list[Decision]:
        done: list[Decision] = []
        for saying in sayings:
            slot, _ = slot_of(saying.statement)
            rows = await work.connection.fetch(_OF_SLOT, work.who.tenant, work.who.user, slot)
            known = await facts_from_rows(work.connection, rows)
            decided = decide(known, saying, lambda: str(uuid4()))
            await replace_slot(work.connection, work.who.tenant, work.who.user, known, decided.facts)
            await self._index(work, known, decided)
            done.append(decided)
        return done

    async def _index(self, work: _FactWrite, known: Sequence[StoredFact], decided: Decision) -> None:
        connection, tenant = work.connection, work.who.tenant
        ids = [*decided.superseded, *({fact.id for fact in known} - {fact.id for fact in decided.facts})]
        gone = [str(row["item_id"]) for row in await connection.fetch(_ITEMS, ids)]
        await remove_items(connection, self._vectors, tenant, gone)
        work.touched.extend(gone)
        held = {fact.id: (fact.text, fact.labels) for fact in known if fact.held}
        for fact in decided.facts:
            if fact.held and held.get(fact.id) != (fact.text, fact.labels):
                work.touched.append(await self._found_by(work, fact))

    async def _found_by(self, work: _FactWrite, fact: StoredFact) -> str:
        draft = work.drafts.get(fact.text)
        if draft is None:
            raise TextMissing(fact.text)
        since = fact.valid_from.isoformat()
        whose = {"origin": fact.best, "trust": fact.trust, "since": since}
        ready = replace(
            draft,
            digest=hash_content([fact.text], fact.labels),
            external_id=fact.id,
            family=f"fact/{fact.id}",
            metadata=whose,
            labels=fact.labels,
        )
        connection, who = work.connection, work.who
        version = int(await connection.fetchval("SELECT nextval('versions')"))
        owner = owner_of_facts(who.user)
        [done] = await write_items(connection, self._vectors, who.tenant, owner, version, [ready])
        await connection.execute("UPDATE facts SET item_id = $2 WHERE id = $1", fact.id, done.id)
        return done.id

    async def _of_turn(self, connection: Connection, who: Principal, turn_id: str) -> list[StoredFact]:
        rows = await connection.fetch(_OF_TURN, who.tenant, who.user, turn_id)
        return await facts_from_rows(connection, rows)

    async def said_in(self, who: Principal, conversation_id: str, before: datetime) -> list[StoredFact]:
        """Held facts that were said in a conversation before a time, those said last first; then the user's newest others."""
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(_SAID, who.tenant, who.user, conversation_id, before, _RECENT)
            return await facts_from_rows(connection, rows)

    async def find(
        self,
        who: Principal,
        subjects: Sequence[str],
        predicates: Sequence[str],
        at: datetime | None,
        limit: int,
        endings: Sequence[str] = (),
    ) -> list[tuple[StoredFact, Fact]]:
        """Facts about any of these subjects, held now or `at` a time, the newest first.

        Args:
            subjects: without capitals; none stands for every subject.
            predicates: without capitals; none stands for every predicate.
            endings: what other predicates may end in.
        """
        like = [f"%{escape_like(one)}" for one in endings]
        asked = (who.tenant, who.user, list(subjects) or None, list(predicates) or None, like, at, limit)
        return await self._found(who, _ABOUT, asked)

    async def find_words(
        self, who: Principal, words: Sequence[str], at: datetime | None, limit: int
    ) -> list[tuple[StoredFact, Fact]]:
        """Facts whose text holds one of these words, as they begin, held now or `at` a time, the newest first."""
        patterns = [f"%{escape_like(word.removesuffix('i'))}%" for word in words]
        return await self._found(who, _WITH_WORDS, (who.tenant, who.user, patterns, at, limit))

    async def _found(self, who: Principal, statement: str, asked: Sequence[object]) -> list[tuple[StoredFact, Fact]]:
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(statement, *asked)
            facts = await facts_from_rows(connection, rows)
        return [(fact, fact_for_owner(fact, row)) for fact, row in zip(facts, rows, strict=True)]

    async def list(self, who: Principal, request: ListFacts) -> FactList:
        subject = normalize(request.subject) if request.subject is not None else None
        asked = (who.tenant, who.user, subject, request.kind, request.superseded)
        async with self._database.connection(who.tenant) as connection:
            total = int(await connection.fetchval(f"SELECT count(*) {_LISTED}", *asked))
            rows = await connection.fetch(_PAGE, *asked, request.limit, request.offset)
            facts = await facts_from_rows(connection, rows)
        return FactList(facts=tuple(fact_for_owner(fact, row) for fact, row in zip(facts, rows, strict=True)), total=total)

    async def by_items(self, who: Principal, items: Sequence[str]) -> dict[str, tuple[StoredFact, Fact]]:
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(_BEHIND, who.tenant, who.user, list(items))
            facts = await facts_from_rows(connection, rows)
        return {str(row["item_id"]): (fact, fact_for_owner(fact, row)) for fact, row in zip(facts, rows, strict=True)}


def escape_like(text: str) -> str:
    """A text as it stands in a pattern of LIKE."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def fact_tombstone(what: str, id: str) -> str:
    """The name that a turn or a conversation has among what nothing is learnt from any more."""
    return f"facts:{what}:{id}"


async def _is_forgotten(connection: Connection, who: Principal, names: list[str]) -> bool:
    return bool(
        await connection.fetchval(
            "SELECT true FROM tombstones WHERE tenant = $1 AND owner = $2 AND name = ANY($3::text[]) LIMIT 1",
            who.tenant,
            who.user,
            names,
        )
    )
