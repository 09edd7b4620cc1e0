"""What was formed of turns, of documents, of a conversation or of an origin: found by ids and labels, and erased in steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from phronesis_bus import Call, audit_entry
from phronesis_contracts import BadRequest, Principal
from phronesis_contracts.deletions import (
    MAX_FORGOTTEN_MEDIA,
    Derived,
    DerivedThing,
    FindDerived,
    PartErased,
    label_patterns,
)
from phronesis_contracts.media import ORIGIN_OF
from phronesis_contracts.memory import ITEMS_FORGOTTEN, ItemKind, ItemsForgotten, Scope
from phronesis_contracts.service import AUDITED
from phronesis_postgres import Connection, Database, write_news

from ..items.rows import add_tombstones, drop_scopes, lock_owner, remove_items
from ..ports import VectorIndex
from ..values import EXPERIENCE_KINDS, is_storable, owner_of_documents, owner_of_facts, owner_of_scope
from .forgetting import turn_tombstones

SERVICE = "memory"
BATCH = 500
"""Facts, and items of each kind, that one answer lists and one step erases."""
_SHOWN = 200
"""Characters of what a thing says."""
_BRIEF = f"left(body, {_SHOWN}) AS said"
_KIND_OF = {origin: kind for kind, origin in ORIGIN_OF.items()}
"""Kinds of files, by the origins that they are."""

# What the user said stands by itself, unless the conversation is what goes.
_COVERED = """coalesce(one.origin <> 'user' AND (one.turn_id = ANY($3::text[]) OR one.labels @> ANY($5::text[]::jsonb[]))
        OR one.conversation_id = $4, false)"""
_FACTS = f"""
    SELECT id, item_id, kind, {_BRIEF}, NOT EXISTS (
        SELECT FROM fact_sources AS one WHERE one.fact_id = facts.id AND NOT {_COVERED}) AS gone
    FROM facts WHERE tenant = $1 AND owner = $2
    AND EXISTS (SELECT FROM fact_sources AS one WHERE one.fact_id = facts.id AND {_COVERED})
    ORDER BY recorded_at DESC, id LIMIT $6"""  # noqa: S608
_DETACH = f"""
    DELETE FROM fact_sources AS one USING facts WHERE facts.id = one.fact_id AND facts.tenant = $1 AND facts.owner = $2
    AND facts.id = ANY($6::uuid[]) AND {_COVERED}"""  # noqa: S608
_DROP_FACTS = "DELETE FROM facts WHERE tenant = $1 AND owner = $2 AND id = ANY($3::uuid[])"
# What took the place of another is gone: the other stays as it was, ended.
_ENDED = """
    UPDATE facts SET ended_at = valid_to, superseded_by = NULL
    WHERE tenant = $1 AND owner = $2 AND superseded_by = ANY($3::uuid[]) AND NOT id = ANY($3::uuid[])"""
# The keys of what a turn writes begin with its id, and the results hold the ids of what was written.
_WRITTEN = """
    SELECT DISTINCT jsonb_path_query(result, '$.**.id') #>> '{}' AS id FROM writes
    WHERE tenant = $1 AND service = 'orchestrator' AND turn = ANY($2::text[])"""
_KINDS_KEPT = "kind NOT IN ('episode', 'strategy', 'passage', 'node')"
_ITEMS = f"""
    SELECT id, owner, kind, external_id, {_BRIEF} FROM items WHERE tenant = $1 AND owner = $2 AND {_KINDS_KEPT} AND (
        id::text = ANY($3::text[]) OR labels @> ANY($5::text[]::jsonb[]) OR (
            id IN (SELECT item_id FROM sources WHERE conversation_id = $4)
            AND NOT EXISTS (SELECT FROM sources AS other WHERE other.item_id = items.id AND other.conversation_id <> $4)))
    ORDER BY id LIMIT $6"""  # noqa: S608
_LEFT_BY_TURNS = f"""
    SELECT id, owner, kind, external_id, {_BRIEF} FROM items
    WHERE tenant = $1 AND owner = $2 AND kind IN ('episode', 'strategy') AND (
        external_id = ANY($3::text[]) OR labels @> ANY($5::text[]::jsonb[])
        OR id IN (SELECT item_id FROM sources WHERE conversation_id = $4))
    ORDER BY id LIMIT $6"""  # noqa: S608
_DETACH_ITEMS = """
    DELETE FROM sources USING items WHERE sources.conversation_id = $3 AND items.id = item_id AND tenant = $1 AND owner = $2"""
_DOCUMENTS = """
    SELECT conversation_id, media_id, name FROM documents
    WHERE tenant = $1 AND owner = $2 AND (media_id = ANY($3::text[]) OR conversation_id = $4) ORDER BY kept_at LIMIT $5"""
_PASSAGES = "SELECT id FROM items WHERE tenant = $1 AND owner = ANY($2::text[]) AND external_id = ANY($3::text[]) ORDER BY id"
_DROP_DOCUMENTS = """
    DELETE FROM documents USING unnest($3::text[], $4::text[]) AS gone (conversation, media)
    WHERE tenant = $1 AND owner = $2 AND conversation_id = conversation AND media_id = media"""
_NAMED = "SELECT DISTINCT media_id FROM documents WHERE tenant = $1 AND owner = $2 AND lower(name) = lower($3) LIMIT $4"
_OF_KIND = "SELECT DISTINCT media_id FROM documents WHERE tenant = $1 AND owner = $2 AND kind = $3 ORDER BY media_id LIMIT $4"
_SEARCHES = """
    FROM constitution_retrievals WHERE tenant = $1 AND actor = $2
    AND EXISTS (SELECT FROM unnest($3::timestamptz[], $4::timestamptz[]) AS at_work (b, e) WHERE at BETWEEN b AND e)"""
# Of the whole tenant: which items they were of is known no more.
_UNSETTLED = "SELECT count(*) FROM vector_changes WHERE tenant = $1 AND embedding IS NULL"
_ENTER = "SELECT set_config('phronesis.room', $1, true)"


@dataclass(frozen=True)
class _Found:
    """What is there."""

    media: list[str]
    facts: list[Any]
    items: list[Any]
    """Memories that were kept, in any room of the user's."""
    left: list[Any]
    """Episodes and strategies."""
    documents: list[Any]
    passages: list[str]
    searches: int
    unsettled: int

    @property
    def gone(self) -> list[Any]:
        """The facts that rest on nothing else."""
        return [row for row in self.facts if row["gone"]]

    @property
    def behind(self) -> list[str]:
        """The items by which those facts are found."""
        return [str(row["item_id"]) for row in self.gone if row["item_id"] is not None]

    @property
    def rows(self) -> list[str]:
        """The ids of all items."""
        return [*self.behind, *(str(row["id"]) for row in (*self.items, *self.left)), *self.passages]

    @property
    def detached(self) -> int:
        return len(self.facts) - len(self.gone)

    @property
    def more(self) -> bool:
        return max(len(self.facts), len(self.items), len(self.left), len(self.documents)) > BATCH

    def counts(self) -> dict[str, int]:
        """How many of what."""
        kinds = [*("notes" if row["kind"] == "note" else "facts" for row in self.gone)]
        kinds += ["strategies" if row["kind"] == ItemKind.STRATEGY else "episodes" for row in self.left]
        counts = {kind: kinds.count(kind) for kind in ("facts", "notes", "episodes", "strategies")}
        counts |= {"sources": self.detached, "memories": len(self.items), "documents": len(self.documents)}
        counts |= {"passages": len(self.passages), "vectors": len(self.rows) + self.unsettled, "searches": self.searches}
        return {name: count for name, count in counts.items() if count}

    def things(self) -> list[DerivedThing]:
        """Each thing, as its user is shown it."""
        named = [("note" if row["kind"] == "note" else "fact", row["id"], row["said"]) for row in self.gone]
        named += [("memory", row["id"], row["said"]) for row in self.items]
        named += [(row["kind"], row["id"], row["said"]) for row in self.left]
        named += [("document", row["media_id"], row["name"]) for row in self.documents]
        return [DerivedThing(kind=kind, id=str(id), text=said) for kind, id, said in named]

    def ids(self) -> list[str]:
        """The ids under which anything of it may be cited; of a document that is the file's."""
        cited = [str(row["id"]) for row in self.gone]
        cited += [row["external_id"] for row in self.items if row["external_id"]]
        rows = [*self.behind, *(str(row["id"]) for row in (*self.items, *self.left))]
        return list(dict.fromkeys([*cited, *rows, *self.media]))

    def linked(self) -> list[str]:
        """The ids of items that the graph may know."""
        return [str(row["id"]) for row in self.items if row["kind"] not in EXPERIENCE_KINDS]


class DerivedHandlers:
    """Finds and erases. Each call is one bounded step, and may be repeated."""

    def __init__(self, database: Database, vectors: VectorIndex, wake: Callable[[], None]) -> None:
        self._database, self._vectors, self._wake = database, vectors, wake

    async def find(self, call: Call, request: FindDerived) -> Derived:
        """What there is, up to `BATCH` of a kind. Raises `BadRequest`."""
        _check(request)
        async with self._database.connection(call.who.tenant) as connection:
            found = await _find(connection, call.who, request)
        return Derived(
            ids=tuple(found.ids()),
            linked=tuple(found.linked()),
            media=tuple(found.media),
            counts=found.counts(),
            detached=found.detached,
            things=tuple(found.things()),
            more=found.more,
        )

    async def erase(self, call: Call, request: FindDerived) -> PartErased:
        """Erase some of it, and let late news of the turns bring nothing back. Raises `BadRequest`."""
        _check(request)
        who = call.who
        async with self._database.transaction(who.tenant) as connection:
            for owner in (who.user, owner_of_facts(who.user), *_rooms(who)):
                await lock_owner(connection, who.tenant, owner)
            await add_tombstones(connection, who.tenant, who.user, turn_tombstones(request.turns))
            found = await _find(connection, who, request)
            await self._remove(connection, who, request, found)
            if counts := found.counts():
                entry = audit_entry(who, "derived.erase", counts)
                await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], entry)
        self._wake()
        await self._vectors.settle(who.tenant, found.rows)
        return PartErased(removed=found.counts(), done=not found.more)

    async def _remove(self, connection: Connection, who: Principal, request: FindDerived, found: _Found) -> None:
        tenant, owner = who.tenant, who.user
        turns, conversation = list(request.turns), request.conversation_id
        labelled = label_patterns(found.media, request.origin)
        gone, kept = [row["id"] for row in found.gone], [row["id"] for row in found.facts if not row["gone"]]
        await connection.execute(_DETACH, tenant, owner, turns, conversation, labelled, kept)
        await connection.execute(_ENDED, tenant, owner, gone)
        await connection.execute(_DROP_FACTS, tenant, owner, gone)
        for room in {row["owner"] for row in found.items} - {owner}:
            await connection.execute(_ENTER, room)
            await remove_items(connection, self._vectors, tenant, [str(r["id"]) for r in found.items if r["owner"] == room])
        rooms_gone = {str(row["id"]) for row in found.items if row["owner"] != owner}
        await remove_items(connection, self._vectors, tenant, [id for id in found.rows if id not in rooms_gone])
        if conversation is not None:
            await connection.execute(_DETACH_ITEMS, tenant, owner, conversation)
        places, media = [row["conversation_id"] for row in found.documents], [row["media_id"] for row in found.documents]
        await connection.execute(_DROP_DOCUMENTS, tenant, owner, places, media)
        await drop_scopes(connection, tenant, [owner_of_documents(owner, one) for one in places])
        episodes = [row["external_id"] for row in found.left if row["kind"] == ItemKind.EPISODE and row["external_id"]]
        await add_tombstones(connection, tenant, owner, episodes)
        await connection.execute(f"DELETE {_SEARCHES}", tenant, owner, *_times(request))
        for start in range(0, len(found.linked()), BATCH):
            news = ItemsForgotten(owner=owner, ids=tuple(found.linked()[start : start + BATCH]))
            await write_news(connection, SERVICE, tenant, ITEMS_FORGOTTEN, news)


async def _find(connection: Connection, who: Principal, request: FindDerived) -> _Found:
    tenant, owner = who.tenant, who.user
    media, turns, conversation = await _find_media(connection, who, request), list(request.turns), request.conversation_id
    rest = (conversation, label_patterns(media, request.origin), BATCH + 1)
    facts = await connection.fetch(_FACTS, tenant, owner, turns, *rest)
    written = [row["id"] for row in await connection.fetch(_WRITTEN, tenant, turns)]
    items = await connection.fetch(_ITEMS, tenant, owner, written, *rest)
    own = owner_of_scope(who, Scope.PERSONAL)
    for room in _rooms(who):
        await connection.execute(_ENTER, room)
        items += await connection.fetch(_ITEMS, tenant, room, written, *(rest if room == own else (None, [], BATCH + 1)))
    names = [f"{kind}:{turn}" for turn in turns for kind in ("turn", "strategy")]
    left = await connection.fetch(_LEFT_BY_TURNS, tenant, owner, names, *rest)
    documents = await connection.fetch(_DOCUMENTS, tenant, owner, media, conversation, BATCH + 1)
    places = list({owner_of_documents(owner, row["conversation_id"]) for row in documents})
    rows = await connection.fetch(_PASSAGES, tenant, places, list({row["media_id"] for row in documents}))
    searches = await connection.fetchval(f"SELECT count(*) {_SEARCHES}", tenant, owner, *_times(request))
    unsettled = await connection.fetchval(_UNSETTLED, tenant)
    return _Found(media, facts, items, left, documents, [str(row["id"]) for row in rows], searches, unsettled)


async def _find_media(connection: Connection, who: Principal, request: FindDerived) -> list[str]:
    """The files that are part of the source."""
    found = list(request.media)
    if request.name is not None:
        rows = await connection.fetch(_NAMED, who.tenant, who.user, request.name, MAX_FORGOTTEN_MEDIA)
        found += [row["media_id"] for row in rows]
    if request.origin is not None and (kind := _KIND_OF.get(request.origin.kind)) is not None:
        rows = await connection.fetch(_OF_KIND, who.tenant, who.user, kind, MAX_FORGOTTEN_MEDIA)
        found += [row["media_id"] for row in rows] if not request.origin.id else [request.origin.id]
    return list(dict.fromkeys(found))[:MAX_FORGOTTEN_MEDIA]


def _rooms(who: Principal) -> list[str]:
    """The owners of the memories of scopes that the caller has."""
    return sorted({owner for scope in Scope if (owner := owner_of_scope(who, scope)) is not None})


def _times(request: FindDerived) -> tuple[Sequence[Any], Sequence[Any]]:
    return [one.begin for one in request.spans], [one.end for one in request.spans]


def _check(request: FindDerived) -> None:
    if not is_storable(request.model_dump(mode="json")):
        raise BadRequest("no NUL characters", field="name")
