"""Sources that are forgotten with all that came of them: what is covered, found round by round; its removal; and its proof."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from phronesis_bus import Bus, Call, ask, audit_entry, erase_parked, erase_shown, serve, work_in_background
from phronesis_contracts import BadRequest, NotFound, Principal, ServiceError
from phronesis_contracts.deletions import (
    ERASE_DERIVED,
    FIND_DERIVED,
    FORGET_SOURCE,
    GET_SOURCE_FORGETTING,
    LIST_SOURCE_FORGETTINGS,
    MAX_DERIVED,
    MAX_FORGOTTEN_MEDIA,
    PREVIEW_SOURCE,
    Counts,
    DeletionState,
    Derived,
    DerivedThing,
    FindDerived,
    ForgetSource,
    ListSourceForgettings,
    OriginRef,
    PreviewSource,
    SourceForgetting,
    SourceForgettingRef,
    SourceForgettings,
    SourcePreview,
    Span,
    label_patterns,
)
from phronesis_contracts.facts import COPIES_PURGED, CopiesPurged
from phronesis_contracts.media import MEDIA_DELETE, MEDIA_GET, Media, MediaRef
from phronesis_contracts.orchestrator import PROGRESS
from phronesis_contracts.origins import TRUSTED
from phronesis_contracts.service import AUDITED
from phronesis_contracts.twin import EXPAND, Expand
from phronesis_postgres import EVERY_TENANT, Connection, Database, write_news, write_once

from ..learning.store import erase_turns
from ..turns.turn import parse_uuid

log = logging.getLogger(__name__)

SERVICE = "orchestrator"
_LEASE = 60.0
"""Seconds after which a round that another process had begun is made here: more than its questions take together."""
_QUIET = 5.0
"""Seconds between two scans that both find nothing: what was on its way when the first was made, the second one sees."""
_AGAIN = 1.0
"""Seconds until what a scan still found is forgotten again."""
_HOPS = 8
"""Times that what memory formed of turns, and the turns that were shown it, are followed in one round; the next goes on."""
_SHOWN = 200
"""Characters of what a thing says."""
_SEEDS_OF_GRAPH = 25
"""Items of one question to the graph."""
_MARGIN = timedelta(seconds=2)
"""What the clocks of two services may differ by."""

# $1 tenant, $2 user, $3 until when, $4 the turn that asks, $5 conversation, $6 media, $7 ids of what memory formed, $8 turns
# that are known from before, $9 labels. Whatever stands behind a turn that read the source may rest on it, and goes as well.
_MINE = "turns.tenant = $1 AND turns.user_id = $2 AND NOT erased AND created_at <= $3 AND turns.id IS DISTINCT FROM $4"
_CITES = """EXISTS (SELECT FROM jsonb_array_elements(
        CASE WHEN jsonb_typeof(reply -> 'sources') = 'array' THEN reply -> 'sources' END) AS s WHERE s ->> 'id' = ANY(%s))"""
_READ_IT = f"""(
    turns.request -> 'media' ?| $6::text[] OR {_CITES % "$6::text[]"}
    OR labels @> ANY($9::text[]::jsonb[])
    OR EXISTS (SELECT FROM traces, unnest($6::text[]) AS medium WHERE turn_id = turns.id AND position(medium IN record) > 0))"""
_COVERED = f"""
WITH readers AS (
    SELECT conversation_id, min(sequence) AS first FROM turns WHERE {_MINE} AND {_READ_IT} GROUP BY conversation_id
)
SELECT turns.id, status, created_at, ended_at, left(coalesce(turns.request ->> 'text', ''), {_SHOWN}) AS said
FROM turns LEFT JOIN readers ON readers.conversation_id = turns.conversation_id
WHERE {_MINE} AND (
    turns.sequence >= readers.first OR turns.conversation_id = $5 OR turns.id = ANY($8::uuid[]) OR recalled && $7::text[]
    OR {_CITES % "$7::text[]"}
    OR EXISTS (SELECT FROM traces WHERE traces.turn_id = turns.id AND memories && $7::text[]))
ORDER BY created_at, turns.id LIMIT {MAX_DERIVED + 1}"""  # noqa: S608
_AT_WORK = "SELECT id, created_at, ended_at FROM turns WHERE tenant = $1 AND id = ANY($2::uuid[])"
_LOCK = "SELECT id FROM turns WHERE id = ANY($1::uuid[]) ORDER BY id FOR UPDATE"
# Files of a conversation that goes which no turn beside refers to.
_FILES = """
    SELECT DISTINCT medium FROM turns, jsonb_array_elements_text(request -> 'media') AS of (medium)
    WHERE tenant = $1 AND user_id = $2 AND NOT erased AND conversation_id = $3 AND created_at <= $4 AND NOT EXISTS (
        SELECT FROM turns AS others WHERE others.tenant = $1 AND others.user_id = $2 AND NOT others.erased
        AND others.request -> 'media' ? medium AND (others.conversation_id <> $3 OR others.created_at > $4))
    ORDER BY medium LIMIT $5"""
_OF_TURNS = {
    "messages": "messages WHERE turn_id = ANY($1::uuid[])",
    "directives": "directives WHERE turn_id = ANY($1::uuid[])",
    "task_states": "task_states WHERE turn_id = ANY($1::uuid[])",
    "task_waits": "task_waits WHERE turn_id = ANY($1::uuid[])",
    "task_templates": "task_templates WHERE turn_id = ANY($1::uuid[])",
    "steps": "journal WHERE turn_id = ANY($1::uuid[])",
    "approvals": "approvals WHERE turn_id = ANY($1::uuid[])",
    "traces": "traces WHERE turn_id = ANY($1::uuid[]) AND record <> '{}'",
    "summaries": """conversations WHERE (summary IS NOT NULL OR focus IS NOT NULL) AND id IN (
        SELECT conversation_id FROM turns WHERE id = ANY($1::uuid[]) AND NOT erased)""",
    "turns": "turns WHERE id = ANY($1::uuid[]) AND NOT erased",
}
"""Rows that hold something of turns, by what they are."""
# The turn that asked stays as a message. What it was worked out from may hold what it was shown, and goes once it has ended.
_OF_ASKING = {
    "steps": "journal WHERE turn_id = $1",
    "traces": "traces WHERE turn_id = $1 AND record <> '{}'",
    "running": "turns WHERE id = $1 AND status IN ('queued', 'running', 'waiting')",
}
_CLEAR_ASKING = (
    "DELETE FROM journal USING turns WHERE turn_id = $1 AND turns.id = $1 AND ended_at IS NOT NULL",
    """UPDATE traces SET record = '{}', memories = '{}' FROM turns
       WHERE turn_id = $1 AND turns.id = $1 AND ended_at IS NOT NULL AND record <> '{}'""",
)
_BARE = "ARRAY['turn_id', 'media_id', 'forgetting_id', 'level', 'step', 'action']"
_NAMED_IN_AUDIT = f"""
    audit WHERE tenant = $1 AND who = $2 AND arguments - {_BARE} <> '{{}}'
    AND (arguments ->> 'turn_id' = ANY($3::text[]) OR arguments ->> 'media_id' = ANY($4::text[]))"""
_STRIP_AUDIT = f"""
    UPDATE audit SET arguments = (SELECT coalesce(jsonb_object_agg(key, value), '{{}}') FROM jsonb_each(arguments)
        WHERE key = ANY({_BARE}))
    WHERE id IN (SELECT id FROM {_NAMED_IN_AUDIT})"""  # noqa: S608

_EVERY = """id, tenant, user_id, principal, media, conversation_id, origin, asked_in, turns, linked, requested_at, before,
    after, clean_at, completed_at, digest"""
_BEGIN = """
    INSERT INTO source_forgettings (id, tenant, user_id, principal, media, conversation_id, origin, asked_in, turns, linked,
        requested_at, before)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"""
_ONE = f"SELECT {_EVERY} FROM source_forgettings WHERE tenant = $1 AND user_id = $2 AND id = $3"  # noqa: S608
_LIST = f"""
    SELECT {_EVERY} FROM source_forgettings WHERE tenant = $1 AND user_id = $2
    ORDER BY requested_at DESC, id LIMIT $3"""  # noqa: S608
_CLAIM = f"""
    UPDATE source_forgettings SET due = now() + make_interval(secs => $1) WHERE id = (
        SELECT id FROM source_forgettings WHERE completed_at IS NULL AND due <= now()
        ORDER BY due LIMIT 1 FOR UPDATE SKIP LOCKED
    ) RETURNING {_EVERY}"""  # noqa: S608
_FOUND = """
    UPDATE source_forgettings SET turns = $3, linked = $4, media = $5, before = CASE WHEN before = '{}' THEN $6 ELSE before END
    WHERE tenant = $1 AND id = $2"""
_SCANNED = "UPDATE source_forgettings SET clean_at = $3, due = now() + make_interval(secs => $4) WHERE tenant = $1 AND id = $2"
_COMPLETE = """
    UPDATE source_forgettings SET after = $3, completed_at = $4, digest = $5
    WHERE tenant = $1 AND id = $2 AND completed_at IS NULL RETURNING true"""


@dataclass(frozen=True)
class _Job:
    """A forgetting as it is stored, or as it would be."""

    who: Principal
    media: tuple[str, ...] = ()
    conversation_id: UUID | None = None
    origin: OriginRef | None = None
    asked_in: UUID | None = None
    turns: tuple[UUID, ...] = ()
    """Turns that it is known to cover, whether their texts are gone or not."""
    linked: tuple[str, ...] = ()
    """Items that the graph may know."""
    requested_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    id: UUID = field(default_factory=uuid4)
    before: Counts = field(default_factory=dict)
    after: Counts = field(default_factory=dict)
    clean_at: datetime | None = None
    completed_at: datetime | None = None
    digest: str | None = None

    def digest_at(self, at: datetime, after: Counts) -> str:
        """The SHA-256 of what the proof says, as JSON with sorted names and without spaces."""
        said = {
            "forgetting_id": str(self.id),
            "tenant": self.who.tenant,
            "user": self.who.user,
            "media": sorted(self.media),
            "conversation_id": str(self.conversation_id) if self.conversation_id else None,
            "origin": self.origin.model_dump(mode="json") if self.origin else None,
            "requested_at": self.requested_at.astimezone(UTC).isoformat(),
            "completed_at": at.astimezone(UTC).isoformat(),
            "before": self.before,
            "after": after,
        }
        return hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def told(self) -> SourceForgetting:
        return SourceForgetting(
            forgetting_id=str(self.id),
            state=DeletionState.COMPLETE if self.completed_at else DeletionState.PENDING,
            media=self.media,
            conversation_id=str(self.conversation_id) if self.conversation_id else None,
            origin=self.origin,
            requested_at=self.requested_at,
            completed_at=self.completed_at,
            before=self.before,
            after=self.after,
            digest=self.digest,
        )


@dataclass(frozen=True)
class _Turn:
    """A turn that is covered."""

    id: UUID
    said: str
    open: bool
    span: Span


@dataclass(frozen=True)
class _Covered:
    """What one round covers."""

    turns: tuple[_Turn, ...]
    derived: Derived
    media: tuple[str, ...]
    more: bool


class PostgresSourceForgettings:
    """The table `source_forgettings`, and what turns hold of a source."""

    def __init__(self, database: Database, wake: Callable[[], None]) -> None:
        self._database, self._wake = database, wake

    async def covered(self, job: _Job, ids: Sequence[str]) -> list[_Turn]:
        """The turns that read the source, those behind them, and those that were shown what was formed of them; one too many
        at most."""
        media, known = list(job.media), list(job.turns)
        by = (job.who.tenant, job.who.user, job.requested_at, job.asked_in)
        which = (*by, job.conversation_id, media, list(ids), known, label_patterns(media, job.origin))
        async with self._database.connection(job.who.tenant) as connection:
            return [_turn_from_row(row) for row in await connection.fetch(_COVERED, *which)]

    async def spans(self, job: _Job) -> dict[UUID, Span]:
        """When the turns were at work that a forgetting is known to cover; their rows outlive their texts."""
        async with self._database.connection(job.who.tenant) as connection:
            rows = await connection.fetch(_AT_WORK, job.who.tenant, list(job.turns))
        return {row["id"]: _span_from_row(row) for row in rows}

    async def files(self, job: _Job) -> list[str]:
        """The files that go with a conversation."""
        if job.conversation_id is None:
            return []
        which = (job.who.tenant, job.who.user, job.conversation_id, job.requested_at, MAX_FORGOTTEN_MEDIA)
        async with self._database.connection(job.who.tenant) as connection:
            return [row["medium"] for row in await connection.fetch(_FILES, *which)]

    async def counts(self, job: _Job, turns: Sequence[UUID]) -> dict[str, int]:
        """What this service holds of turns, and of the one that asked."""
        counts: Counter[str] = Counter()
        async with self._database.connection(job.who.tenant) as connection:
            for name, rows in _OF_TURNS.items():
                counts[name] = await connection.fetchval(f"SELECT count(*) FROM {rows}", list(turns))  # noqa: S608
            for name, rows in _OF_ASKING.items() if job.asked_in else ():
                counts[name] += await connection.fetchval(f"SELECT count(*) FROM {rows}", job.asked_in)  # noqa: S608
            named = (job.who.tenant, job.who.user, list(map(str, turns)), list(job.media))
            counts["audit_arguments"] = await connection.fetchval(f"SELECT count(*) FROM {_NAMED_IN_AUDIT}", *named)  # noqa: S608
        return {name: count for name, count in counts.items() if count}

    async def begin(self, call: Call, request: ForgetSource, job: _Job, ids: Sequence[str]) -> SourceForgetting:
        """Enter a forgetting, and remove the texts of its turns, once for the call's key.

        Raises:
            NotFound: it covers nothing.
        """

        async def work(connection: Connection) -> SourceForgetting:
            if not any(job.before.values()):
                raise NotFound("there is nothing of that to forget")
            origin = job.origin.model_dump(mode="json") if job.origin else None
            row = (job.id, job.who.tenant, job.who.user, job.who.model_dump(mode="json"), list(job.media))
            rest = (list(job.turns), list(job.linked), job.requested_at, job.before)
            await connection.execute(_BEGIN, *row, job.conversation_id, origin, job.asked_in, *rest)
            await self._erase(connection, job, job.turns, ids)
            named = {"forgetting_id": str(job.id), "files": len(job.media), "turns": len(job.turns)}
            entry = audit_entry(job.who, "source.forget", named)
            await write_news(connection, SERVICE, job.who.tenant, AUDITED[SERVICE], entry)
            return job.told()

        begun = await write_once(self._database, call, request, SourceForgetting, work)
        self._wake()
        return begun

    async def erase(self, job: _Job, ids: Sequence[str]) -> None:
        """Keep what a round found, and remove the texts of its turns. A repeat changes nothing."""
        async with self._database.transaction(job.who.tenant) as connection:
            found = (list(job.turns), list(job.linked), list(job.media), job.before)
            await connection.execute(_FOUND, job.who.tenant, job.id, *found)
            await self._erase(connection, job, job.turns, ids)
        self._wake()

    async def _erase(self, connection: Connection, job: _Job, turns: Sequence[UUID], ids: Sequence[str]) -> None:
        tenant = job.who.tenant
        # In the order in which the end of a turn takes the same locks: turns first, then their conversation.
        await connection.fetch(_LOCK, list(turns))
        removed = await erase_turns(connection, tenant, turns, [*ids, *job.media])
        if job.asked_in is not None:
            for statement in _CLEAR_ASKING:
                await connection.execute(statement, job.asked_in)
        named = (tenant, job.who.user, list(map(str, turns)), list(job.media))
        await connection.execute(_STRIP_AUDIT, *named)
        # Each copy of this service drops what it read of them.
        news = CopiesPurged(deletion_id=str(job.id), removed={name: count for name, count in removed.items() if count})
        await write_news(connection, SERVICE, tenant, COPIES_PURGED, news)

    async def get(self, who: Principal, id: str) -> _Job:
        """A forgetting of the caller. Raises `NotFound`."""
        number = parse_uuid(id, "forgetting")
        async with self._database.connection(who.tenant) as connection:
            row = await connection.fetchrow(_ONE, who.tenant, who.user, number)
        if row is None:
            raise NotFound("no such forgetting")
        return _job_from_row(row)

    async def newest(self, who: Principal, limit: int) -> list[_Job]:
        """The caller's forgettings, the newest first."""
        async with self._database.connection(who.tenant) as connection:
            return [_job_from_row(row) for row in await connection.fetch(_LIST, who.tenant, who.user, limit)]

    async def claim(self) -> _Job | None:
        """The forgetting that waits longest, for this process alone for a while; `None` where none waits."""
        async with self._database.transaction(EVERY_TENANT) as connection:
            row = await connection.fetchrow(_CLAIM, _LEASE)
        return None if row is None else _job_from_row(row)

    async def scanned(self, job: _Job, clean_at: datetime | None, seconds: float) -> None:
        """Keep when a scan first found nothing, and come again after so many seconds."""
        async with self._database.transaction(job.who.tenant) as connection:
            await connection.execute(_SCANNED, job.who.tenant, job.id, clean_at, seconds)

    async def complete(self, job: _Job, after: Counts) -> None:
        """Keep the proof, with its entry in the audit."""
        at = datetime.now(UTC)
        digest = job.digest_at(at, after)
        async with self._database.transaction(job.who.tenant) as connection:
            if await connection.fetchval(_COMPLETE, job.who.tenant, job.id, after, at, digest):
                entry = audit_entry(job.who, "source.forgotten", {"forgetting_id": str(job.id), "digest": digest})
                await write_news(connection, SERVICE, job.who.tenant, AUDITED[SERVICE], entry)
        self._wake()


def _turn_from_row(row: Any) -> _Turn:
    return _Turn(row["id"], row["said"], row["ended_at"] is None, _span_from_row(row))


def _span_from_row(row: Any) -> Span:
    return Span(begin=row["created_at"] - _MARGIN, end=(row["ended_at"] or datetime.now(UTC)) + _MARGIN)


def _job_from_row(row: Any) -> _Job:
    return _Job(
        who=Principal.model_validate({**row["principal"], "tenant": row["tenant"], "user": row["user_id"]}),
        media=tuple(row["media"]),
        conversation_id=row["conversation_id"],
        origin=OriginRef.model_validate(row["origin"]) if row["origin"] else None,
        asked_in=row["asked_in"],
        turns=tuple(row["turns"]),
        linked=tuple(row["linked"]),
        requested_at=row["requested_at"],
        id=row["id"],
        before=row["before"],
        after=row["after"],
        clean_at=row["clean_at"],
        completed_at=row["completed_at"],
        digest=row["digest"],
    )


class SourceForgetter:
    """Previews and forgets sources.

    Args:
        cancelled: called with the id of a turn that is gone, to stop it where it runs.
        dropped: called with a tenant of which turns are gone, so that nothing keeps what it read of them.
    """

    def __init__(
        self,
        bus: Bus,
        store: PostgresSourceForgettings,
        cancelled: Callable[[str], None],
        dropped: Callable[[str], None],
    ) -> None:
        self._bus, self._store = bus, store
        self._cancelled, self._dropped = cancelled, dropped
        self.wake = asyncio.Event()

    async def preview(self, call: Call, request: PreviewSource) -> SourcePreview:
        """What would go; nothing where there is no such source. Raises `BadRequest`, `Unavailable`."""
        job = await self._job(call, request)
        found = await self._cover(job)
        job = _grown(job, found)
        files = await self._files(job)
        things = [
            *(DerivedThing(kind="media", id=one.id, text=one.name) for one in files),
            *found.derived.things,
            *(DerivedThing(kind="turn", id=str(turn.id), text=turn.said) for turn in found.turns),
        ]
        return SourcePreview(
            media=job.media,
            held=await self._counts(job, found.derived, len(files)),
            detached=found.derived.detached,
            things=tuple(things[request.offset : request.offset + request.limit]),
            total=len(things),
            more=found.more,
        )

    async def forget(self, call: Call, request: ForgetSource) -> SourceForgetting:
        """Begin to forget; the texts of turns are gone at once. Raises `NotFound`, `BadRequest`, `Unavailable`."""
        job = await self._job(call, request)
        found = await self._cover(job)
        job = _grown(job, found)
        before = await self._counts(job, found.derived, len(await self._files(job)))
        begun = await self._store.begin(call, request, replace(job, before=before), found.derived.ids)
        self._stop(job, found)
        self.wake.set()
        return begun

    async def get(self, call: Call, request: SourceForgettingRef) -> SourceForgetting:
        return (await self._store.get(call.who, request.forgetting_id)).told()

    async def forgettings(self, call: Call, request: ListSourceForgettings) -> SourceForgettings:
        return SourceForgettings(forgettings=tuple(one.told() for one in await self._store.newest(call.who, request.limit)))

    async def go_on(self) -> bool:
        """Take up a forgetting for one round; whether there was one. Raises `ServiceError`."""
        job = await self._store.claim()
        if job is None:
            return False
        try:
            await self._round(job)
        except ServiceError:
            # Whoever did not answer may do so in a moment, long before the lease ends.
            await self._store.scanned(job, None, _QUIET)
            raise
        return True

    async def _round(self, job: _Job) -> None:
        found = await self._cover(job)
        job = _grown(job, found)
        if not job.before:  # a restored backup asks for it
            job = replace(job, before=await self._counts(job, found.derived, len(await self._files(job))))
        await self._store.erase(job, found.derived.ids)
        self._stop(job, found)
        done = True
        for request in await self._questions(job):
            done = (await ask(self._bus, job.who, ERASE_DERIVED, request)).done and done
        for medium in await self._files(job):
            try:
                await ask(self._bus, job.who, MEDIA_DELETE, MediaRef(media_id=medium.id))
            except NotFound:
                continue
        turns = [str(turn) for turn in job.turns]
        await erase_shown(self._bus, PROGRESS, job.who.tenant, job.who.user, turns)
        await erase_parked(self._bus, job.who.tenant, [*turns, *job.media])
        if found.more or not done:
            await self._store.scanned(job, None, 0.0)
            return
        left, now = await self._scan(job), datetime.now(UTC)
        if any(left.values()):
            log.info("the forgetting %s goes on: %s", job.id, left)
            await self._store.scanned(job, None, _AGAIN)
        elif job.clean_at is None or now - job.clean_at < timedelta(seconds=_QUIET):
            await self._store.scanned(job, job.clean_at or now, _QUIET)
        else:
            await self._store.complete(job, left)
            log.info("the forgetting %s is complete", job.id)

    async def _scan(self, job: _Job) -> Counts:
        """What is left."""
        found = await self._cover(job)
        derived = [await ask(self._bus, job.who, FIND_DERIVED, request) for request in await self._questions(job)]
        counts = await self._counts(_grown(job, found), _together([found.derived, *derived]), len(await self._files(job)))
        return counts if any(counts.values()) else {service: {} for service in job.before or counts}

    async def _job(self, call: Call, request: ForgetSource) -> _Job:
        """The source as it is to be forgotten. Raises `NotFound`, `BadRequest`."""
        stated = [request.document, request.conversation_id, request.origin]
        if sum(one is not None for one in stated) != 1:
            raise BadRequest("state either a document, a conversation_id or an origin", field="document")
        if request.origin is not None and request.origin.kind in TRUSTED:
            raise BadRequest("what you said yourself is forgotten by its facts, or with its conversation", field="origin")
        job = _Job(who=call.who, origin=request.origin, asked_in=_asked_in(call))
        if request.conversation_id is not None:
            job = replace(job, conversation_id=parse_uuid(request.conversation_id, "conversation", field="conversation_id"))
            return replace(job, media=tuple(await self._store.files(job)))
        if request.document is None:
            return job
        if (id := _uuid(request.document)) is not None:
            return replace(job, media=(str(id),))
        named = await ask(self._bus, call.who, FIND_DERIVED, FindDerived(name=request.document))
        return replace(job, media=named.media)

    async def _cover(self, job: _Job) -> _Covered:
        """Follow turns to what was formed of them, and that to the turns that were shown it, until nothing is new."""
        ids: tuple[str, ...] = ()
        derived, turns = Derived(), list[_Turn]()
        for _ in range(_HOPS):
            found = await self._store.covered(job, ids)
            turns = found[:MAX_DERIVED]
            request = _question(job, [turn.id for turn in turns], [turn.span for turn in turns])
            derived = await ask(self._bus, job.who, FIND_DERIVED, request)
            job = replace(job, media=tuple(dict.fromkeys([*job.media, *derived.media]))[:MAX_FORGOTTEN_MEDIA])
            if set(derived.ids) <= set(ids):
                return _Covered(tuple(turns), derived, job.media, len(found) > MAX_DERIVED or derived.more)
            ids = derived.ids
        return _Covered(tuple(turns), derived, job.media, more=True)

    async def _questions(self, job: _Job) -> list[FindDerived]:
        """What is asked of memory of all turns that are known by now."""
        spans = await self._store.spans(job)
        batches = [job.turns[start : start + MAX_DERIVED] for start in range(0, len(job.turns), MAX_DERIVED)] or [()]
        return [_question(job, batch, [spans[turn] for turn in batch if turn in spans]) for batch in batches]

    async def _counts(self, job: _Job, derived: Derived, files: int) -> Counts:
        counts = {
            SERVICE: await self._store.counts(job, job.turns),
            "memory": dict(derived.counts),
            "graph": await self._in_graph(job),
            "media": {"media": files} if files else {},
        }
        return counts if any(counts.values()) else {service: {} for service in counts}

    async def _files(self, job: _Job) -> list[Media]:
        """The files that are there."""
        found = []
        for id in job.media:
            try:
                found.append(await ask(self._bus, job.who, MEDIA_GET, MediaRef(media_id=id)))
            except (NotFound, BadRequest):
                continue
        return found

    async def _in_graph(self, job: _Job) -> dict[str, int]:
        """The items that the graph still knows."""
        items = 0
        for start in range(0, len(job.linked), _SEEDS_OF_GRAPH):
            seeds = job.linked[start : start + _SEEDS_OF_GRAPH]
            found = await ask(self._bus, job.who, EXPAND, Expand(ids=seeds, hops=1, limit=_SEEDS_OF_GRAPH))
            items += sum(one.hop == 0 and bool(one.type) for one in found.items)
        return {"items": items} if items else {}

    def _stop(self, job: _Job, found: _Covered) -> None:
        for turn in found.turns:
            if turn.open:
                self._cancelled(str(turn.id))
        self._dropped(job.who.tenant)


def _grown(job: _Job, found: _Covered) -> _Job:
    """The forgetting with what a round found."""
    turns = dict.fromkeys([*job.turns, *(turn.id for turn in found.turns)])
    linked = dict.fromkeys([*job.linked, *found.derived.linked])
    return replace(job, turns=tuple(turns), linked=tuple(linked), media=found.media)


def _question(job: _Job, turns: Iterable[UUID], spans: Sequence[Span]) -> FindDerived:
    return FindDerived(
        turns=tuple(map(str, turns)),
        spans=tuple(spans),
        media=job.media,
        conversation_id=str(job.conversation_id) if job.conversation_id else None,
        origin=job.origin,
    )


def _together(found: Sequence[Derived]) -> Derived:
    counts: Counter[str] = Counter()
    for one in found:
        counts |= Counter(one.counts)
    return Derived(counts=dict(counts))


def _asked_in(call: Call) -> UUID | None:
    """The turn in which a forgetting is asked for: a turn of this service asks under a key of its own."""
    return _uuid(call.key.partition("/")[0]) if call.key is not None and call.service == SERVICE else None


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


async def serve_forgetting(
    bus: Bus, database: Database, wake: Callable[[], None], cancelled: Callable[[str], None], dropped: Callable[[str], None]
) -> SourceForgetter:
    """Let sources be forgotten, and go on with those that are."""
    forgetter = SourceForgetter(bus, PostgresSourceForgettings(database, wake), cancelled, dropped)
    await serve(bus, PREVIEW_SOURCE, forgetter.preview)
    await serve(bus, FORGET_SOURCE, forgetter.forget)
    await serve(bus, GET_SOURCE_FORGETTING, forgetter.get)
    await serve(bus, LIST_SOURCE_FORGETTINGS, forgetter.forgettings)
    work_in_background(bus, "forgettings of sources", forgetter.go_on, forgetter.wake)
    return forgetter
