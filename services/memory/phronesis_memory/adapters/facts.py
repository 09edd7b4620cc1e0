"""Facts in Postgres, and the items by which the held ones are found: their words and vectors are as those of every item."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

from phronesis_bus import Call, audited
from phronesis_contracts import Principal
from phronesis_contracts.facts import Fact, FactList, ImportedMemory, ImportMemory, Learn, Learnt, LearntFact, ListFacts
from phronesis_contracts.service import AUDITED
from phronesis_postgres import Connection, Database, write_news, write_once

from ..domain.rooms import owner_of_facts
from ..facts.deciding import Decided, decide
from ..facts.ports import Drafts, TextMissing
from ..facts.slots import plain, slot_of
from ..facts.values import Kept, Saying
from ..ports import VectorIndex
from .fact_rows import COLUMNS, kept, replace_slot, shown
from .writing import lock, remove, write

SERVICE = "memory"
_OF_SLOT = f"SELECT {COLUMNS} FROM facts WHERE tenant = $1 AND owner = $2 AND slot = $3"  # noqa: S608
_BEHIND = f"""
    SELECT {COLUMNS} FROM facts
    WHERE tenant = $1 AND owner = $2 AND item_id = ANY($3::uuid[]) AND valid_to IS NULL"""  # noqa: S608
_LISTED = """
    FROM facts WHERE tenant = $1 AND owner = $2 AND ($3::text IS NULL OR lower(subject) = $3)
    AND ($4::text IS NULL OR kind = $4) AND ($5 OR valid_to IS NULL)"""
_PAGE = f"SELECT {COLUMNS} {_LISTED} ORDER BY recorded_at DESC, valid_from DESC, id LIMIT $6 OFFSET $7"
_ITEMS = "SELECT item_id FROM facts WHERE id = ANY($1::uuid[]) AND item_id IS NOT NULL"


@dataclass
class _Work:
    """One write of facts: its transaction, and what it touched."""

    connection: Connection
    who: Principal
    drafts: Drafts
    touched: list[str]
    """Items whose vectors changed."""


class PostgresFacts:
    """`Facts` on the tables `facts` and `items`.

    Args:
        database: the schema.
        vectors: the index of the items' vectors.
        wake: called after a transaction that wrote news.
    """

    def __init__(self, database: Database, vectors: VectorIndex, wake: Callable[[], None]) -> None:
        self._database = database
        self._vectors = vectors
        self._wake = wake

    async def learn(self, call: Call, request: Learn, sayings: Sequence[Saying], drafts: Drafts, refused: int) -> Learnt:
        """See `Facts`."""
        touched: list[str] = []

        async def work(connection: Connection) -> Learnt:
            await lock(connection, call.who.tenant, owner_of_facts(call.who.user))
            names = [forgotten_name("turn", request.turn_id), forgotten_name("conversation", request.conversation_id)]
            if await _forgotten(connection, call.who, names):
                return Learnt()
            done = await self._take(_Work(connection, call.who, drafts, touched), sayings)
            if done:
                entry = {"turn_id": request.turn_id, "facts": [one.told for one in done]}
                await write_news(
                    connection, SERVICE, call.who.tenant, AUDITED[SERVICE], audited(call.who, "facts.learn", entry)
                )
            told = tuple(LearntFact(id=one.told, status=one.status) for one in done)
            return Learnt(facts=told, superseded=sum(len(one.superseded) for one in done), refused=refused)

        result = await write_once(self._database, call, request, Learnt, work)
        await self._settled(call.who, touched)
        return result

    async def take_in(
        self, call: Call, request: ImportMemory, sayings: Sequence[Saying], drafts: Drafts, result: ImportedMemory
    ) -> ImportedMemory:
        """See `Facts`."""
        touched: list[str] = []

        async def work(connection: Connection) -> ImportedMemory:
            await lock(connection, call.who.tenant, owner_of_facts(call.who.user))
            done = await self._take(_Work(connection, call.who, drafts, touched), sayings)
            entry = audited(call.who, "facts.import", {"lines": result.lines, "facts": len(done)})
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

    async def _take(self, work: _Work, sayings: Sequence[Saying]) -> list[Decided]:
        done: list[Decided] = []
        for saying in sayings:
            slot, _ = slot_of(saying.statement)
            rows = await work.connection.fetch(_OF_SLOT, work.who.tenant, work.who.user, slot)
            known = await kept(work.connection, rows)
            decided = decide(known, saying, lambda: str(uuid4()))
            await replace_slot(work.connection, work.who.tenant, work.who.user, known, decided.facts)
            await self._index(work, known, decided)
            done.append(decided)
        return done

    async def _index(self, work: _Work, known: Sequence[Kept], decided: Decided) -> None:
        """Let the fact that is held be found, and what is not held no longer."""
        connection, tenant = work.connection, work.who.tenant
        ids = [*decided.superseded, *({fact.id for fact in known} - {fact.id for fact in decided.facts})]
        gone = [str(row["item_id"]) for row in await connection.fetch(_ITEMS, ids)]
        await remove(connection, self._vectors, tenant, gone)
        work.touched.extend(gone)
        held = {fact.id for fact in known if fact.held}
        for fact in decided.facts:
            if fact.held and fact.id not in held:
                work.touched.append(await self._found_by(work, fact))

    async def _found_by(self, work: _Work, fact: Kept) -> str:
        draft = work.drafts.get(fact.text)
        if draft is None:
            raise TextMissing(fact.text)
        since = fact.valid_from.isoformat()
        whose = {"origin": fact.best, "trust": fact.trust, "since": since}
        ready = replace(draft, external_id=fact.id, family=f"fact/{fact.id}", metadata=whose)
        connection, who = work.connection, work.who
        version = int(await connection.fetchval("SELECT nextval('versions')"))
        room = owner_of_facts(who.user)
        [done] = await write(connection, self._vectors, who.tenant, room, version, [ready])
        await connection.execute("UPDATE facts SET item_id = $2 WHERE id = $1", fact.id, done.id)
        return done.id

    async def list(self, who: Principal, request: ListFacts) -> FactList:
        """See `Facts`."""
        subject = plain(request.subject) if request.subject is not None else None
        asked = (who.tenant, who.user, subject, request.kind, request.superseded)
        async with self._database.connection(who.tenant) as connection:
            total = int(await connection.fetchval(f"SELECT count(*) {_LISTED}", *asked))
            rows = await connection.fetch(_PAGE, *asked, request.limit, request.offset)
            facts = await kept(connection, rows)
        return FactList(facts=tuple(shown(fact, row) for fact, row in zip(facts, rows, strict=True)), total=total)

    async def by_items(self, who: Principal, items: Sequence[str]) -> dict[str, tuple[Kept, Fact]]:
        """See `Facts`."""
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(_BEHIND, who.tenant, who.user, list(items))
            facts = await kept(connection, rows)
        return {str(row["item_id"]): (fact, shown(fact, row)) for fact, row in zip(facts, rows, strict=True)}


def forgotten_name(what: str, id: str) -> str:
    """The name that a turn or a conversation has among what nothing is learnt from any more."""
    return f"facts:{what}:{id}"


async def _forgotten(connection: Connection, who: Principal, names: list[str]) -> bool:
    return bool(
        await connection.fetchval(
            "SELECT true FROM tombstones WHERE tenant = $1 AND owner = $2 AND name = ANY($3::text[]) LIMIT 1",
            who.tenant,
            who.user,
            names,
        )
    )
