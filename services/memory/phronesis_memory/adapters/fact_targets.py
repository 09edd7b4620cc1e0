"""What a forgetting covers: facts, items, and the turns in which they were said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

import asyncpg

from phronesis_contracts import BadRequest
from phronesis_contracts.forgetting import MOST, ForgetFor
from phronesis_postgres import Connection

from ..facts.slots import plain
from .facts import forgotten_name

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
        return sorted({*turn_names(self.turns), *self.episodes})


async def targets(connection: Connection, tenant: str, owner: str, request: ForgetFor) -> Targets:
    """What a request covers of an owner's.

    Raises:
        BadRequest: it is more than goes at once.
    """
    ids = [id for id in map(_uuid, request.ids) if id is not None]
    subject = plain(request.subject) if request.subject is not None else None
    facts = await connection.fetch(_FACTS, tenant, owner, ids, subject, request.conversation_id, MOST + 1)
    items = await connection.fetch(_ITEMS, tenant, owner, ids, list(request.ids), request.conversation_id, MOST + 1)
    if max(len(facts), len(items)) > MOST:
        raise BadRequest(f"more than {MOST} at once: forget a part of it first")
    return await _with_turns(connection, tenant, owner, [row["id"] for row in facts], items, request.conversation_id, turns=())


async def again(connection: Connection, row: asyncpg.Record) -> Targets:
    """What is there once more of a forgetting."""
    tenant, owner, ids = row["tenant"], row["owner"], [id for id in map(_uuid, row["ids"]) if id is not None]
    facts = await connection.fetch(_FACTS, tenant, owner, ids, None, row["conversation_id"], len(ids) + MOST)
    items = await connection.fetch(_ITEMS, tenant, owner, ids, row["ids"], row["conversation_id"], len(ids) + MOST)
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
        turns=every[:MOST],
        episodes={row["external_id"]: str(row["id"]) for row in episodes},
        conversation=conversation,
        sources=int(await connection.fetchval(_SOURCES, facts)),
    )


def turn_names(turns: Iterable[str]) -> list[str]:
    """The names under which nothing of these turns comes back: no episode, and no fact."""
    return [name for turn in turns for name in (f"turn:{turn}", forgotten_name("turn", turn))]


async def episodes_of(connection: Connection, tenant: str, owner: str, turns: Sequence[str]) -> list[str]:
    """Ids of the items that these turns left as episodes."""
    rows = await connection.fetch(_EPISODES, tenant, owner, [f"turn:{turn}" for turn in turns], None)
    return [str(row["id"]) for row in rows]


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
