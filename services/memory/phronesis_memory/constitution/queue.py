"""The queue of nodes to be embedded, and the scheduled runs that put nodes on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from phronesis_contracts import SYSTEM_TENANT
from phronesis_contracts.constitution import search
from phronesis_contracts.constitution.maintenance import ScheduledRun
from phronesis_contracts.constitution.registry import Tier
from phronesis_contracts.orchestrator import Audited
from phronesis_contracts.service import AUDITED
from phronesis_postgres import EVERY_TENANT, Connection, Database, write_news

from ..values import Vector
from ..vectors.format import StoredModel, to_halfvec
from .nodes import RecordState
from .pgvector import PgNodeVectors
from .store import lock_records

_SUNDAY = 6


@dataclass(frozen=True)
class RecurringRun:
    """One run that comes again and again."""

    name: str
    tiers: tuple[Tier, ...]
    text: str
    """When, in words; the times are UTC."""
    hour: int
    on: Callable[[datetime], bool]
    """Whether it is on a day."""
    again: bool = False
    """Whether also nodes whose vectors fit are embedded, to see whether they drifted."""

    def after(self, now: datetime) -> datetime:
        at = now.astimezone(UTC).replace(hour=self.hour, minute=0, second=0, microsecond=0)
        while at <= now or not self.on(at):
            at += timedelta(days=1)
        return at


def _daily(at: datetime) -> bool:
    return True


def _weekly(at: datetime) -> bool:
    return at.weekday() == _SUNDAY


def _monthly(at: datetime) -> bool:
    return at.day == 1


NIGHTLY = RecurringRun("nightly", (Tier.P3,), "every day at 02:00", 2, _daily)
WEEKLY = RecurringRun("weekly", (Tier.P4,), "on Sundays at 03:00", 3, _weekly)
DRIFT_WEEKLY = RecurringRun("drift weekly", (Tier.P0, Tier.P1), "on Sundays at 04:00", 4, _weekly, again=True)
DRIFT_MONTHLY = RecurringRun("drift monthly", (Tier.P2, Tier.P3, Tier.P4), "on the first at 05:00", 5, _monthly, again=True)


def select_runs(*, drift: bool) -> tuple[RecurringRun, ...]:
    """The runs that are wanted: the batches, and where `drift` says so, those that look for it."""
    return (NIGHTLY, WEEKLY, *((DRIFT_WEEKLY, DRIFT_MONTHLY) if drift else ()))


SERVICE = "memory"
_LEASE = timedelta(seconds=120)
"""How long others leave a node to whoever took it; one whose process was killed comes again then."""

_TAKE = """
    UPDATE constitution_nodes n SET due = $3, attempts = least(n.attempts + 1, 100) FROM (
        SELECT tenant, node_id FROM constitution_nodes WHERE due <= $1 ORDER BY tier, due LIMIT $2 FOR UPDATE SKIP LOCKED
    ) taken WHERE (n.tenant, n.node_id) = (taken.tenant, taken.node_id)
    RETURNING n.tenant, n.node_id, n.type, n.tier, n.body, n.text_hash, n.attempts, n.due"""
_STORE = """
    INSERT INTO constitution_vectors AS v (tenant, node_id, type, layer, lifecycle, topic, model, dimension, embedding)
    SELECT n.tenant, n.node_id, n.type, n.layer, n.lifecycle, n.topic, $5, $6, given.vector::halfvec
    FROM unnest($2::text[], $3::text[], $4::text[]) AS given (id, hash, vector)
    JOIN constitution_nodes n ON n.tenant = $1 AND n.node_id = given.id AND n.text_hash = given.hash
    ON CONFLICT (tenant, node_id) DO UPDATE SET type = excluded.type, layer = excluded.layer,
        lifecycle = excluded.lifecycle, topic = excluded.topic, model = excluded.model, dimension = excluded.dimension,
        embedding = excluded.embedding
    RETURNING node_id"""
# Only vectors of one model, and of texts that are known, can be compared.
_DRIFT = """
    SELECT v.node_id, v.embedding <=> given.vector::halfvec AS drift
    FROM unnest($2::text[], $3::text[]) AS given (id, vector)
    JOIN constitution_vectors v ON v.tenant = $1 AND v.node_id = given.id AND (v.model, v.dimension) = ($4, $5)
    JOIN constitution_nodes n ON (n.tenant, n.node_id) = (v.tenant, v.node_id) AND n.embedded_hash IS NOT NULL"""
_STORED = """
    UPDATE constitution_nodes SET state = 'current', attempts = 0, problem = NULL, model = $3, dimension = $4,
        embedded_hash = text_hash, embedded_at = $5
    WHERE tenant = $1 AND node_id = ANY($2::text[])"""
_DRIFTED = """
    WITH given AS (
        SELECT w.tenant, w.node_id, w.born, w.version, w.drift AS former, moved.drift
        FROM unnest($2::text[], $3::real[]) AS moved (id, drift)
        JOIN constitution_nodes n ON n.tenant = $1 AND n.node_id = moved.id
        JOIN constitution_versions w ON (w.tenant, w.node_id, w.born, w.version) = ($1, n.node_id, n.born, n.version)
    )
    UPDATE constitution_versions v SET drift = given.drift FROM given
    WHERE (v.tenant, v.node_id, v.born, v.version) = (given.tenant, given.node_id, given.born, given.version)
    RETURNING v.node_id, v.type, v.version, given.drift, given.former"""
_DONE = """
    UPDATE constitution_nodes SET due = NULL
    WHERE tenant = $1 AND node_id = ANY($2::text[]) AND due = $3 AND state = 'current'"""
_BACK = """
    UPDATE constitution_nodes SET due = $3, attempts = greatest(attempts - 1, 0)
    WHERE tenant = $1 AND node_id = ANY($2::text[]) AND due = $4"""
_FAILED = """
    UPDATE constitution_nodes SET state = $4, due = $5, attempts = $6, problem = $7
    WHERE tenant = $1 AND node_id = $2 AND text_hash = $3 AND due = $8"""
_SAME = """
    INSERT INTO constitution_pairs (tenant, one_id, other_id, cosine)
    SELECT $1, least($2, other), greatest($2, other), cosine FROM unnest($3::text[], $4::real[]) AS given (other, cosine)
    JOIN constitution_nodes n ON n.tenant = $1 AND n.node_id = other
    WHERE EXISTS (SELECT FROM constitution_nodes WHERE tenant = $1 AND node_id = $2)
    ON CONFLICT (tenant, one_id, other_id) DO UPDATE SET cosine = excluded.cosine"""
_UNPAIR = "DELETE FROM constitution_pairs WHERE tenant = $1 AND (one_id = $2 OR other_id = $2)"
_HURRYING = """
    SELECT node_id FROM constitution_nodes
    WHERE tenant = $1 AND state = 'pending' AND tier <= $2 AND ($3::text[] IS NULL OR node_id = ANY($3))"""
_CALLED = """
    UPDATE constitution_nodes SET due = $2, attempts = 0
    WHERE tier = ANY($1::int[]) AND body <> '' AND due IS NULL AND (state = 'pending' OR $3)"""
_RENEW = """
    UPDATE constitution_nodes SET state = 'pending', due = $1, attempts = 0, problem = NULL WHERE body <> ''"""
_LEFT = "SELECT count(*) FROM constitution_nodes WHERE due IS NOT NULL AND state = 'pending'"
_OF_ANOTHER = "SELECT EXISTS (SELECT FROM constitution_vectors WHERE (model, dimension) <> ($1, $2))"
_FORGET_OTHERS = "DELETE FROM constitution_vectors WHERE (model, dimension) <> ($1, $2)"


@dataclass(frozen=True)
class DueNode:
    """A node that was taken from the queue."""

    tenant: str
    id: str
    type: str
    tier: Tier
    body: str
    text_hash: str
    attempts: int
    """With this one."""
    leased_until: datetime


class NodeQueue:
    """Takes nodes that are due, the higher tiers first, and writes what became of them."""

    def __init__(
        self, database: Database, index: PgNodeVectors, model: str, dimension: int, wake: Callable[[], None] = lambda: None
    ) -> None:
        self._database, self._index, self._wake = database, index, wake
        self._of = (model, dimension)
        self._agreement = StoredModel(database, model, dimension)

    async def take(self, now: datetime, most: int) -> list[DueNode]:
        """Nodes that are due, of whatever tenant, for nobody else until their lease ends."""
        async with self._database.transaction(EVERY_TENANT) as connection:
            rows = await connection.fetch(_TAKE, now, most, now + _LEASE)
        return [
            DueNode(
                row["tenant"],
                row["node_id"],
                row["type"],
                Tier(row["tier"]),
                row["body"],
                row["text_hash"],
                row["attempts"],
                row["due"],
            )
            for row in rows
        ]

    async def give_back(self, taken: Sequence[DueNode], when: datetime) -> None:
        """Nodes that were taken at a time and are not done are due for whoever comes first."""
        for tenant in sorted({due.tenant for due in taken}):
            async with self._database.transaction(tenant) as connection:
                await lock_records(connection, tenant)  # whoever writes records locks several, and so does this
                ids = [due.id for due in taken if due.tenant == tenant]
                await connection.execute(_BACK, tenant, ids, when, when + _LEASE)

    async def store(self, tenant: str, made: Sequence[tuple[DueNode, Vector]], now: datetime) -> list[str]:
        """Store vectors of texts still the same, with drift and news; the nodes that have one. Raises `EmbeddingMismatch`."""
        ids, hashes = [due.id for due, _ in made], [due.text_hash for due, _ in made]
        vectors = [to_halfvec(vector) for _, vector in made]
        async with self._database.transaction(tenant) as connection:
            await lock_records(connection, tenant)
            await self._agreement.claim(connection)
            moved = {row["node_id"]: row["drift"] for row in await connection.fetch(_DRIFT, tenant, ids, vectors, *self._of)}
            rows = await connection.fetch(_STORE, tenant, ids, hashes, vectors, *self._of)
            stored = [row["node_id"] for row in rows]
            await connection.execute(_STORED, tenant, stored, *self._of, now)
            await self._tell_drift(connection, tenant, {id: moved[id] for id in stored if id in moved})
            await self._index.note(connection, tenant, stored)
        if moved:
            self._wake()
        return stored

    async def pair(self, tenant: str, id: str, near: Sequence[tuple[str, float]]) -> None:
        """Write down the near-duplicates of a node, in place of those that it had."""
        async with self._database.transaction(tenant) as connection:
            await lock_records(connection, tenant)
            await connection.execute(_UNPAIR, tenant, id)
            await connection.execute(_SAME, tenant, id, [other for other, _ in near], [cosine for _, cosine in near])

    async def done(self, tenant: str, ids: Sequence[str], taken: datetime) -> None:
        async with self._database.transaction(tenant) as connection:
            await lock_records(connection, tenant)  # whoever writes records locks several, and so does this
            await connection.execute(_DONE, tenant, list(ids), taken + _LEASE)

    async def fail(self, due: DueNode, state: RecordState) -> None:
        """Write down that an attempt failed, unless the node was ordered anew meanwhile: the order stands then."""
        async with self._database.transaction(due.tenant) as connection:
            await lock_records(connection, due.tenant)  # whoever writes the record now would put back the lease that it read
            said = (state.state, state.due, state.attempts, state.problem)
            await connection.execute(_FAILED, due.tenant, due.id, due.text_hash, *said, due.leased_until)

    async def hurrying(self, tenant: str, ids: Sequence[str] | None = None) -> list[str]:
        """Nodes that are to be embedded at once and are not yet, of all or of some."""
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_HURRYING, tenant, int(Tier.P2), None if ids is None else list(ids))
        return [row["node_id"] for row in rows]

    async def call(self, connection: Connection, tiers: Sequence[Tier], now: datetime, *, again: bool) -> None:
        """In the transaction of a scheduled run: put nodes of these tiers on the queue, those that wait or all."""
        await connection.execute(_CALLED, [int(tier) for tier in tiers], now, again)

    async def renew(self, now: datetime) -> bool:
        """Put every node of every tenant on the queue, and forget another model's vectors; whether there were any."""
        async with self._database.transaction(EVERY_TENANT) as connection:
            others = bool(await connection.fetchval(_OF_ANOTHER, *self._of))
            await connection.execute(_FORGET_OTHERS, *self._of)
            await connection.execute(_RENEW, now)
        return others

    async def left(self) -> int:
        async with self._database.connection(EVERY_TENANT) as connection:
            return int(await connection.fetchval(_LEFT))

    async def _tell_drift(self, connection: Connection, tenant: str, moved: dict[str, float]) -> None:
        if not moved:
            return
        for row in await connection.fetch(_DRIFTED, tenant, list(moved), list(moved.values())):
            if row["drift"] > search.DRIFT_DISTANCE and not (row["former"] or 0.0) > search.DRIFT_DISTANCE:
                found = {"id": row["node_id"], "type": row["type"], "version": row["version"], "drift": row["drift"]}
                # a run at night acts for nobody, so the service stands for whoever did it
                entry = Audited(who=SERVICE, role="service", action="drift.found", outcome="done", arguments=found)
                await write_news(connection, SERVICE, tenant, AUDITED[SERVICE], entry)


_PUT = "INSERT INTO constitution_schedule (name, next_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING"
_NEXT = "SELECT name, next_at, last_at FROM constitution_schedule"
_DUE = "SELECT name FROM constitution_schedule WHERE name = $1 AND next_at <= $2 FOR UPDATE SKIP LOCKED"
_RAN = "UPDATE constitution_schedule SET next_at = $2, last_at = $3 WHERE name = $1"


class NodeSchedule:
    """Puts the nodes of a run on the queue when its time has come. One that was missed is made up for, once."""

    def __init__(self, database: Database, queue: NodeQueue, runs: Sequence[RecurringRun]) -> None:
        self._database, self._queue, self._runs = database, queue, runs
        self._earliest: datetime | None = None

    async def look(self, now: datetime) -> None:
        """Begin the runs that are due. Raises `Unavailable`."""
        if self._earliest is not None and now < self._earliest:
            return
        async with self._database.transaction(EVERY_TENANT) as connection:
            for run in self._runs:
                await connection.execute(_PUT, run.name, run.after(now))
                if await connection.fetchval(_DUE, run.name, now) is not None:
                    await self._queue.call(connection, run.tiers, now, again=run.again)
                    await connection.execute(_RAN, run.name, run.after(now), now)
            rows = await connection.fetch(_NEXT)
        names = {run.name for run in self._runs}
        self._earliest = min((row["next_at"] for row in rows if row["name"] in names), default=None)

    async def told(self) -> tuple[ScheduledRun, ...]:
        async with self._database.connection(SYSTEM_TENANT) as connection:
            rows = {row["name"]: row for row in await connection.fetch(_NEXT)}
        return tuple(
            ScheduledRun(
                name=run.name,
                tiers=tuple(tier.name for tier in run.tiers),
                schedule=run.text,
                next_at=rows[run.name]["next_at"] if run.name in rows else None,
                last_at=rows[run.name]["last_at"] if run.name in rows else None,
            )
            for run in self._runs
        )
