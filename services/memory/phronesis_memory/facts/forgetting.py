"""Forgetting for good in Postgres: what it covers, its removal, and the reports of other services."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import asyncpg

from phronesis_bus import Call, audit_entry
from phronesis_contracts import BadRequest, NotFound, Principal
from phronesis_contracts import facts as contract
from phronesis_contracts.deletions import ConversationDeleted, DeletionState, Purged
from phronesis_contracts.memory import ITEMS_FORGOTTEN, ItemsForgotten
from phronesis_contracts.service import AUDITED
from phronesis_postgres import EVERY_TENANT, Connection, Database, write_news, write_once

from ..items.rows import add_tombstones, lock_owner, remove_items
from ..ports import VectorIndex
from ..values import owner_of_facts, parse_ids
from ..vectors.changes import hold_event
from .predicates import normalize
from .store import COLUMNS, fact_for_owner, fact_tombstone, facts_from_rows

_REPORTERS = {"graph", "orchestrator"}
"""Services that report what they removed, beside this one."""
_REPORTED = """
    UPDATE forgettings SET removed = removed || jsonb_build_object($3::text, $4::jsonb),
        completed_at = CASE WHEN (removed || jsonb_build_object($3::text, $4::jsonb)) ?& $5::text[]
            THEN coalesce(completed_at, now()) END
    WHERE id = $1 AND tenant = $2 AND NOT removed ? $3"""


async def enter_report(connection: Connection, tenant: str, service: str, report: Purged) -> None:
    """Enter what a service removed, once; the last report that is waited for completes the forgetting."""
    id, removed = UUID(report.deletion_id), dict(report.removed)
    await connection.execute(_REPORTED, id, tenant, service, removed, sorted(_REPORTERS))


async def read_forgetting(connection: Connection, who: Principal, id: UUID) -> contract.Forgetting:
    """A forgetting of the caller. Raises `NotFound`."""
    row: Any = await connection.fetchrow(
        "SELECT * FROM forgettings WHERE id = $1 AND tenant = $2 AND owner = $3", id, who.tenant, who.user
    )
    if row is None:
        raise NotFound("no such forgetting")
    return contract.Forgetting(
        forgetting_id=str(row["id"]),
        state=DeletionState.COMPLETE if row["completed_at"] else DeletionState.PENDING,
        requested_at=row["requested_at"],
        completed_at=row["completed_at"],
        removed=row["removed"],
    )


_FACTS = """
    SELECT id FROM facts WHERE tenant = $1 AND owner = $2 AND (
        id = ANY($3::uuid[]) OR lower(subject) = $4 OR (
            id IN (SELECT fact_id FROM fact_sources WHERE conversation_id = $5)
            AND NOT EXISTS (SELECT FROM fact_sources AS other WHERE other.fact_id = facts.id
                AND other.conversation_id IS DISTINCT FROM $5)))
    ORDER BY id LIMIT $6"""
_ITEMS = """
    SELECT id, external_id FROM items WHERE tenant = $1 AND owner = $2 AND kind <> 'episode' AND (
        id = ANY($3::uuid[]) OR external_id = ANY($4::text[]) OR (
            id IN (SELECT item_id FROM sources WHERE conversation_id = $5)
            AND NOT EXISTS (SELECT FROM sources AS other WHERE other.item_id = items.id
                AND other.conversation_id <> $5)))
    ORDER BY id LIMIT $6"""
_BEHIND = """
    SELECT items.id FROM items JOIN facts ON facts.item_id = items.id AND facts.tenant = items.tenant
    WHERE facts.id = ANY($1::uuid[])"""
_TURNS = """
    SELECT DISTINCT turn_id FROM fact_sources WHERE turn_id IS NOT NULL AND (
        fact_id = ANY($1::uuid[]) OR (conversation_id = $2 AND fact_id IN (
            SELECT id FROM facts WHERE tenant = $3 AND owner = $4)))
    ORDER BY turn_id"""
_EPISODES = """
    SELECT id, external_id FROM items
    WHERE tenant = $1 AND owner = $2 AND kind = 'episode' AND (
        external_id = ANY($3::text[]) OR id IN (SELECT item_id FROM sources WHERE conversation_id = $4))
    ORDER BY id"""
_SOURCES = "SELECT count(*) FROM fact_sources WHERE fact_id = ANY($1::uuid[])"


@dataclass(frozen=True)
class Targets:
    """What goes here."""

    facts: list[UUID]
    behind: list[str]
    """Items by which the held ones of the facts are found."""
    items: list[UUID]
    cited: list[str]
    """The items as replies name them."""
    turns: list[str]
    episodes: dict[str, str]
    """Ids of the items of those turns, and of the conversation, by their external ids."""
    conversation: str | None
    sources: int

    @property
    def empty(self) -> bool:
        """Whether there is nothing to forget."""
        return not (self.facts or self.items)

    @property
    def counts(self) -> dict[str, int]:
        """How many of what."""
        rows = len(self.behind) + len(self.items) + len(self.episodes)
        return {
            "facts": len(self.facts),
            "sources": self.sources,
            "items": len(self.items),
            "episodes": len(self.episodes),
            "vectors": rows,
        }

    @property
    def buried(self) -> list[str]:
        """Names of what late news may not bring back."""
        return sorted({*turn_tombstones(self.turns), *self.episodes})


async def find_targets(connection: Connection, tenant: str, owner: str, request: contract.ForgetFor) -> Targets:
    """What a request covers of an owner's. Raises `BadRequest`: it is more than goes at once."""
    ids = parse_ids(request.ids)
    subject = normalize(request.subject) if request.subject is not None else None
    facts = await connection.fetch(_FACTS, tenant, owner, ids, subject, request.conversation_id, contract.MOST + 1)
    items = await connection.fetch(_ITEMS, tenant, owner, ids, list(request.ids), request.conversation_id, contract.MOST + 1)
    if max(len(facts), len(items)) > contract.MOST:
        raise BadRequest(f"more than {contract.MOST} at once: forget a part of it first")
    return await _with_turns(connection, tenant, owner, [row["id"] for row in facts], items, request.conversation_id, turns=())


async def find_targets_again(connection: Connection, row: asyncpg.Record) -> Targets:
    """What is there once more of a forgetting."""
    tenant, owner, ids = row["tenant"], row["owner"], parse_ids(row["ids"])
    facts = await connection.fetch(_FACTS, tenant, owner, ids, None, row["conversation_id"], len(ids) + contract.MOST)
    items = await connection.fetch(_ITEMS, tenant, owner, ids, row["ids"], row["conversation_id"], len(ids) + contract.MOST)
    kept = [one["id"] for one in facts]
    return await _with_turns(connection, tenant, owner, kept, items, row["conversation_id"], turns=row["turns"])


async def _with_turns(
    connection: Connection,
    tenant: str,
    owner: str,
    facts: list[UUID],
    items: Sequence[asyncpg.Record],
    conversation: str | None,
    *,
    turns: Sequence[str],
) -> Targets:
    said = [row["turn_id"] for row in await connection.fetch(_TURNS, facts, conversation, tenant, owner)]
    every = sorted({*said, *turns})
    episodes = await connection.fetch(_EPISODES, tenant, owner, [f"turn:{turn}" for turn in every], conversation)
    return Targets(
        facts=facts,
        behind=[str(row["id"]) for row in await connection.fetch(_BEHIND, facts)],
        items=[row["id"] for row in items],
        cited=[name for row in items for name in (str(row["id"]), row["external_id"]) if name],
        turns=every[: contract.MOST],
        episodes={row["external_id"]: str(row["id"]) for row in episodes},
        conversation=conversation,
        sources=int(await connection.fetchval(_SOURCES, facts)),
    )


def turn_tombstones(turns: Iterable[str]) -> list[str]:
    """The names under which nothing of these turns comes back: no episode, and no fact."""
    return [name for turn in turns for name in (f"turn:{turn}", fact_tombstone("turn", turn))]


async def find_episodes(connection: Connection, tenant: str, owner: str, turns: Sequence[str]) -> list[str]:
    """Ids of the items that these turns left as episodes."""
    rows = await connection.fetch(_EPISODES, tenant, owner, [f"turn:{turn}" for turn in turns], None)
    return [str(row["id"]) for row in rows]


SERVICE = "memory"
_SHOWN = 50

# What took the place of another is gone: the other stays as it was, ended.
_ENDED = """
    UPDATE facts SET ended_at = valid_to, superseded_by = NULL
    WHERE tenant = $1 AND owner = $2 AND superseded_by = ANY($3::uuid[]) AND NOT id = ANY($3::uuid[])"""
_DETACH = """
    DELETE FROM fact_sources USING facts
    WHERE facts.id = fact_id AND tenant = $1 AND owner = $2 AND conversation_id = $3"""
_BEGUN = """
    INSERT INTO forgettings (id, tenant, owner, ids, turns, conversation_id, removed) VALUES ($1, $2, $3, $4, $5, $6, $7)"""
_OWNER = "SELECT owner FROM forgettings WHERE id = $1 AND tenant = $2"
_NEWEST = f"SELECT {COLUMNS} FROM facts WHERE id = ANY($1::uuid[]) ORDER BY recorded_at DESC, id LIMIT $2"  # noqa: S608


class PostgresForgettings:
    """Forgets for good, in the tables of facts and items, and records what was reported of it."""

    def __init__(self, database: Database, vectors: VectorIndex, wake: Callable[[], None]) -> None:
        self._database, self._vectors, self._wake = database, vectors, wake

    async def preview(self, who: Principal, request: contract.ForgetFor) -> contract.ForgettingPreview:
        """What would be removed."""
        async with self._database.connection(who.tenant) as connection:
            found = await find_targets(connection, who.tenant, who.user, request)
            rows = await connection.fetch(_NEWEST, found.facts, _SHOWN)
            facts = await facts_from_rows(connection, rows)
        shown_facts = tuple(fact_for_owner(fact, row) for fact, row in zip(facts, rows, strict=True))
        return contract.ForgettingPreview(facts=shown_facts, turns=tuple(found.turns), removed=found.counts)

    async def begin(self, call: Call, request: contract.ForgetFor) -> contract.Forgetting:
        """Remove it here, and tell the others, once for the call's key. Raises `NotFound`, `BadRequest` (too much at once)."""
        who, touched = call.who, list[str]()

        async def work(connection: Connection) -> contract.Forgetting:
            await _lock_owners(connection, who.tenant, who.user)
            found = await find_targets(connection, who.tenant, who.user, request)
            if found.empty:
                raise NotFound("there is nothing of that to forget")
            id = uuid4()
            removed = {SERVICE: found.counts}
            ids = [*map(str, found.facts), *found.cited]
            row = (id, who.tenant, who.user, ids, found.turns, request.conversation_id, removed)
            await connection.execute(_BEGUN, *row)
            touched.extend(await self._remove(connection, who.tenant, who.user, str(id), found))
            entry = {"forgetting_id": str(id), "facts": len(found.facts), "items": len(found.items)}
            await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], audit_entry(who, "memory.forget", entry))
            return await read_forgetting(connection, who, id)

        result = await write_once(self._database, call, request, contract.Forgetting, work)
        self._wake()
        await self._vectors.settle(who.tenant, touched)
        return result

    async def _remove(self, connection: Connection, tenant: str, owner: str, id: str, found: Targets) -> list[str]:
        gone = [*found.behind, *map(str, found.items), *found.episodes.values()]
        await connection.execute(_ENDED, tenant, owner, found.facts)
        await connection.execute(
            "DELETE FROM facts WHERE tenant = $1 AND owner = $2 AND id = ANY($3::uuid[])", tenant, owner, found.facts
        )
        if found.conversation is not None:
            await connection.execute(_DETACH, tenant, owner, found.conversation)
        settled = await remove_items(connection, self._vectors, tenant, gone)
        await add_tombstones(connection, tenant, owner, found.buried)
        linked = ItemsForgotten(owner=owner, ids=tuple(map(str, found.items)), deletion_id=id)
        await write_news(connection, SERVICE, tenant, ITEMS_FORGOTTEN, linked)
        told = contract.MemoryForgotten(
            forgetting_id=id,
            owner=owner,
            ids=(*map(str, found.facts), *found.cited),
            turns=tuple(found.turns),
            found_by=tuple(found.behind[: contract.MOST]),
        )
        if settled:
            await write_news(connection, SERVICE, tenant, contract.MEMORY_FORGOTTEN, told)
        else:
            await hold_event(connection, SERVICE, tenant, contract.MEMORY_FORGOTTEN, told, gone)
        return gone

    async def get(self, who: Principal, forgetting_id: str) -> contract.Forgetting:
        """A forgetting of the caller. Raises `NotFound`."""
        try:
            id = UUID(forgetting_id)
        except ValueError:
            raise NotFound("no such forgetting") from None
        async with self._database.connection(who.tenant) as connection:
            return await read_forgetting(connection, who, id)

    async def purged(self, tenant: str, service: str, removed: Purged) -> None:
        """Enter what a service removed; a report on anything but a forgetting is ignored."""
        async with self._database.transaction(tenant) as connection:
            await enter_report(connection, tenant, service, removed)

    async def copies_purged(self, tenant: str, report: contract.CopiesPurged) -> None:
        """Remove the episodes of turns that hold no text any more, and enter what the orchestrator removed."""
        gone: list[str] = []
        async with self._database.transaction(tenant) as connection:
            owner = await connection.fetchval(_OWNER, UUID(report.deletion_id), tenant)
            if owner is None:
                return
            await _lock_owners(connection, tenant, owner)
            gone = await find_episodes(connection, tenant, owner, report.turns)
            await remove_items(connection, self._vectors, tenant, gone)
            await add_tombstones(connection, tenant, owner, turn_tombstones(report.turns))
            await enter_report(connection, tenant, "orchestrator", report)
        await self._vectors.settle(tenant, gone)

    async def forget_conversation(self, tenant: str, event: ConversationDeleted) -> None:
        """Remove the facts that were learnt from a deleted conversation alone; nothing is learnt of it from here on."""
        request = contract.ForgetFor(conversation_id=event.conversation_id)
        async with self._database.transaction(tenant) as connection:
            await _lock_owners(connection, tenant, event.user)
            await add_tombstones(connection, tenant, event.user, [fact_tombstone("conversation", event.conversation_id)])
            found = await find_targets(connection, tenant, event.user, request)
            await connection.execute(_ENDED, tenant, event.user, found.facts)
            await connection.execute("DELETE FROM facts WHERE tenant = $1 AND id = ANY($2::uuid[])", tenant, found.facts)
            await connection.execute(_DETACH, tenant, event.user, event.conversation_id)
            await remove_items(connection, self._vectors, tenant, found.behind)
        await self._vectors.settle(tenant, found.behind)

    async def repeat(self) -> int:
        """Forget again what a restored backup brought back; how many forgettings that were."""
        async with self._database.connection(EVERY_TENANT) as connection:
            rows = await connection.fetch("SELECT * FROM forgettings WHERE again ORDER BY requested_at")
        for row in rows:
            await self._repeat(row)
        if rows:
            self._wake()
        return len(rows)

    async def _repeat(self, row: asyncpg.Record) -> None:
        async with self._database.transaction(row["tenant"]) as connection:
            await _lock_owners(connection, row["tenant"], row["owner"])
            found = await find_targets_again(connection, row)
            gone = await self._remove(connection, row["tenant"], row["owner"], str(row["id"]), found)
            await connection.execute("UPDATE forgettings SET again = false WHERE id = $1", row["id"])
        await self._vectors.settle(row["tenant"], gone)


async def _lock_owners(connection: Connection, tenant: str, owner: str) -> None:
    await lock_owner(connection, tenant, owner)
    await lock_owner(connection, tenant, owner_of_facts(owner))
