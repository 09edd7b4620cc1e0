"""The tables of tenants' releases, of experiments and what came of them, and of exposures.

Who is in which arm, decided once.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import phronesis_tokens as tokens
from phronesis_bus import Call, audit_entry
from phronesis_contracts import Conflict, NotFound, Principal
from phronesis_contracts.experiments import (
    EXPOSED,
    ArmInfo,
    Experiment,
    ExperimentRef,
    Exposed,
    OutcomeRecorded,
    RecordOutcome,
    StartExperiment,
)
from phronesis_contracts.instructions import (
    RELEASED,
    Publication,
    PublishInstructions,
    Released,
    ReleaseInfo,
    RollbackInstructions,
    Unpublishable,
)
from phronesis_contracts.service import AUDITED
from phronesis_postgres import WRITES_OF_USER, Connection, Database, write_news, write_once

from ..library.store import read_overlay, read_platform, read_release
from ..library.texts import Library, Overlay, Platform, Running, Text
from .experiments import Sample, Standing, choose_arm
from .publication import apply_publication, arm_faults, compare_texts, library_faults

_LOCK = 7_420_913
_KEPT = 100
"""A tenant's releases that are kept."""
_LIST_RELEASES = """
SELECT number, active, note, published_by, created_at,
    (SELECT count(*) FROM release_texts AS t WHERE t.tenant = r.tenant AND t.number = r.number) AS texts
FROM releases AS r WHERE tenant = $1 ORDER BY number DESC LIMIT 100
"""
_TEXT = """
INSERT INTO release_texts (tenant, number, tag, kind, content, version, status, avg_tokens, tier, category, dependencies,
    use_cases, position)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
"""
_PRUNE = "DELETE FROM releases WHERE tenant = $1 AND number <= $2 AND NOT active"


class PostgresReleases:
    """Releases of each tenant: all of its own texts, copied for each, so that one is read and taken back whole."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def publish(self, call: Call, request: PublishInstructions) -> Publication:
        """Write a release and make it active, with its news and its audit entry, in one transaction."""

        platform = await read_platform(self._database)

        async def write(connection: Connection) -> Publication:
            library = await _lock_overlay(connection, platform, call.who.tenant)
            own = apply_publication(library, request.texts)
            number = 1 + await _highest(connection, call.who.tenant)
            await _insert(connection, call, number, own, request.note)
            await _activate(connection, call.who.tenant, number)
            await connection.execute(_PRUNE, call.who.tenant, number - _KEPT)
            done = _publication(library, number, own)
            await _announce_release(connection, call, "publish_instructions", done)
            return done

        return await write_once(self._database, call, request, Publication, write)

    async def rollback(self, call: Call, request: RollbackInstructions) -> Publication:
        """Make an earlier release active, with its news and its audit entry, in one transaction."""

        platform = await read_platform(self._database)

        async def write(connection: Connection) -> Publication:
            tenant = call.who.tenant
            library = await _lock_overlay(connection, platform, tenant)
            active = library.overlay.number
            number = await _previous_number(connection, tenant, active) if request.to is None else request.to
            if number == active:
                raise Conflict("this release is active already")
            own = await read_release(connection, tenant, number)
            if faults := library_faults(Library(library.platform, Overlay(number, own))):
                raise Conflict(f"the release does not fit what ships now: {'; '.join(faults)}")
            await _activate(connection, tenant, number)
            done = _publication(library, number, own)
            await _announce_release(connection, call, "rollback_instructions", done)
            return done

        return await write_once(self._database, call, request, Publication, write)

    async def releases(self, tenant: str) -> tuple[ReleaseInfo, ...]:
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_LIST_RELEASES, tenant)
        return tuple(
            ReleaseInfo(
                number=row["number"],
                active=row["active"],
                texts=row["texts"],
                note=row["note"],
                by=row["published_by"],
                created_at=row["created_at"],
            )
            for row in rows
        )

    async def texts(self, tenant: str, number: int) -> Mapping[str, Text]:
        async with self._database.connection(tenant) as connection:
            return await read_release(connection, tenant, number)


async def _lock_overlay(connection: Connection, platform: Platform, tenant: str) -> Library:
    """The tenant's texts now; nobody else publishes for it until the transaction ends."""
    await connection.execute("SELECT pg_advisory_xact_lock($1, hashtext($2))", _LOCK, tenant)
    return Library(platform, await read_overlay(connection, tenant))


async def _highest(connection: Connection, tenant: str) -> int:
    return int(await connection.fetchval("SELECT coalesce(max(number), 0) FROM releases WHERE tenant = $1", tenant))


async def _previous_number(connection: Connection, tenant: str, active: int) -> int:
    if not active:
        raise Conflict("there is no release to go back from: the platform's own texts are active")
    before = "SELECT coalesce(max(number), 0) FROM releases WHERE tenant = $1 AND number < $2"
    return int(await connection.fetchval(before, tenant, active))


async def _insert(connection: Connection, call: Call, number: int, own: Mapping[str, Text], note: str) -> None:
    tenant = call.who.tenant
    await connection.execute(
        "INSERT INTO releases (tenant, number, note, published_by, tags) VALUES ($1, $2, $3, $4, $5)",
        *(tenant, number, note, call.who.user, sorted(own)),
    )
    rows = [
        (
            *(tenant, number, text.tag, text.kind, text.content, text.version, text.status, text.tokens),
            *(text.tier, text.category, list(text.dependencies), list(text.use_cases), text.position),
        )
        for text in own.values()
    ]
    await connection.executemany(_TEXT, rows)


async def _activate(connection: Connection, tenant: str, number: int) -> None:
    await connection.execute("UPDATE releases SET active = false WHERE tenant = $1 AND active", tenant)
    await connection.execute("UPDATE releases SET active = true WHERE tenant = $1 AND number = $2", tenant, number)


def _publication(library: Library, number: int, own: Mapping[str, Text]) -> Publication:
    after = Library(library.platform, Overlay(number, own))
    return Publication(release=after.release, number=number, changes=compare_texts(library.all(), after.all()))


async def _announce_release(connection: Connection, call: Call, action: str, done: Publication) -> None:
    tags, tenant = [change.tag for change in done.changes], call.who.tenant
    news = Released(tags=tuple(tags), version=done.release)
    await write_news(connection, "instructions", tenant, RELEASED, news)
    entry = audit_entry(call.who, action, {"release": done.release, "tags": tags})
    await write_news(connection, "instructions", tenant, AUDITED["instructions"], entry)


_REMEMBERED = 50_000
"""Users whose arms are kept in memory at most, over all experiments."""
_RUNNING = "SELECT true FROM experiments WHERE tenant = $1 AND name = $2 AND status = 'running' FOR UPDATE"
_ARMS = "SELECT arm, weight, users FROM experiment_arms WHERE tenant = $1 AND experiment = $2 ORDER BY place"
_OF_USER = {
    "outcomes": "outcomes WHERE tenant = $1 AND user_id = $2",
    "exposures": "exposures WHERE tenant = $1 AND user_id = $2",
    "writes": WRITES_OF_USER,
}
"""Rows that name a user, by what they are."""
_KNOWN = "SELECT experiment, arm FROM exposures WHERE tenant = $1 AND user_id = $2 AND experiment = ANY($3)"
_FRESH = "INSERT INTO exposures (tenant, experiment, user_id, arm) VALUES ($1, $2, $3, $4)"
_COUNT = "UPDATE experiment_arms SET users = users + 1 WHERE tenant = $1 AND experiment = $2 AND arm = $3"


class PostgresExposures:
    """Arms by user. `announce`: called after a first exposure, whose news stands in the outbox."""

    def __init__(self, database: Database, announce: Callable[[], None]) -> None:
        self._database = database
        self._announce = announce
        self._remembered: OrderedDict[tuple[str, str, str], str] = OrderedDict()

    async def arms(self, who: Principal, experiments: Sequence[Running]) -> dict[str, str]:
        """The arm of a user in each experiment. What was decided once never changes, so it is asked for once."""
        found = {one.name: arm for one in experiments if (arm := self._remembered.get((who.tenant, one.name, who.user)))}
        unknown = [one.name for one in experiments if one.name not in found]
        if not unknown:
            return found
        known = await self._known(who, unknown)
        fresh = [name for name in unknown if name not in known]
        if fresh:
            known |= await self._put(who, sorted(fresh))
            self._announce()
        for name, arm in known.items():
            self._remembered[(who.tenant, name, who.user)] = arm
        while len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)
        return {one.name: arm for one in experiments if (arm := (found | known).get(one.name))}

    async def held(self, who: Principal) -> dict[str, int]:
        """How many rows are held of a user, by what they are."""
        async with self._database.connection(who.tenant) as connection:
            return {
                name: int(await connection.fetchval(f"SELECT count(*) FROM {rows}", who.tenant, who.user))  # noqa: S608
                for name, rows in _OF_USER.items()
            }

    async def erase(self, who: Principal) -> dict[str, int]:
        """Erase in which arms a user was, and what came of it; how many rows that were. The arms' sums stay."""
        removed: dict[str, int] = {}
        async with self._database.transaction(who.tenant) as connection:
            for name, rows in _OF_USER.items():
                done = await connection.execute(f"DELETE FROM {rows}", who.tenant, who.user)  # noqa: S608
                removed[name] = int(done.rpartition(" ")[2])
        for key in [key for key in self._remembered if (key[0], key[2]) == (who.tenant, who.user)]:
            del self._remembered[key]
        return removed

    async def _known(self, who: Principal, names: list[str]) -> dict[str, str]:
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(_KNOWN, who.tenant, who.user, names)
        return {row["experiment"]: row["arm"] for row in rows}

    async def _put(self, who: Principal, names: list[str]) -> dict[str, str]:
        found = {}
        async with self._database.transaction(who.tenant) as connection:
            for name in names:  # in one order for all, so that no two wait for one another
                arm = await _decide_arm(connection, who, name)
                if arm is not None:
                    found[name] = arm
        return found


async def _decide_arm(connection: Connection, who: Principal, experiment: str) -> str | None:
    """Put a user into an arm, unless another copy just did; `None` where the experiment was stopped."""
    if not await connection.fetchval(_RUNNING, who.tenant, experiment):
        return None
    if known := await connection.fetch(_KNOWN, who.tenant, who.user, [experiment]):
        return str(known[0]["arm"])
    arms = [Standing(row["arm"], row["weight"], row["users"]) for row in await connection.fetch(_ARMS, who.tenant, experiment)]
    arm = choose_arm(experiment, who.tenant, who.user, arms)
    await connection.execute(_FRESH, who.tenant, experiment, who.user, arm)
    await connection.execute(_COUNT, who.tenant, experiment, arm)
    news = Exposed(experiment=experiment, user=who.user, arm=arm)
    await write_news(connection, "instructions", who.tenant, EXPOSED, news)
    return arm


_RUNNING_MOST, _METRICS_MOST = 20, 20
"""Running experiments of a tenant, and metrics of an experiment."""
_START = "INSERT INTO experiments (tenant, name) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING true"
_STOP = "UPDATE experiments SET status = 'stopped', stopped_at = now() WHERE tenant = $1 AND name = $2 AND status = 'running'"
_LIST_EXPERIMENTS = """
SELECT name, status, started_at, stopped_at, (
    SELECT json_agg(json_build_object('name', arm, 'weight', weight, 'users', users, 'tags', (
        SELECT coalesce(json_agg(tag ORDER BY tag), '[]') FROM arm_texts AS t
        WHERE t.tenant = a.tenant AND t.experiment = a.experiment AND t.arm = a.arm)) ORDER BY place)
    FROM experiment_arms AS a WHERE a.tenant = e.tenant AND a.experiment = e.name) AS arms
FROM experiments AS e WHERE tenant = $1 AND ($2::text IS NULL OR name = $2) ORDER BY started_at DESC, name LIMIT 200
"""
_IN = """
SELECT x.experiment, x.arm FROM exposures AS x JOIN experiments AS e ON e.tenant = x.tenant AND e.name = x.experiment
WHERE x.tenant = $1 AND x.user_id = $2 AND e.status = 'running' AND ($3::text IS NULL OR x.experiment = $3)
ORDER BY x.experiment FOR UPDATE OF e
"""
_OUTCOME = """
INSERT INTO outcomes AS known (tenant, experiment, user_id, metric, count, total) VALUES ($1, $2, $3, $4, 1, $5)
ON CONFLICT (tenant, experiment, user_id, metric) DO UPDATE SET count = known.count + 1, total = known.total + excluded.total
"""
_METRICS = "SELECT count(DISTINCT metric) FROM outcomes WHERE tenant = $1 AND experiment = $2 AND metric <> $3"
_SAMPLES = """
SELECT o.metric, x.arm, count(*) AS users, sum(o.total / o.count) AS total, sum((o.total / o.count) ^ 2) AS squares,
    bool_and(o.total / o.count IN (0, 1)) AS "binary"
FROM outcomes AS o JOIN exposures AS x USING (tenant, experiment, user_id)
WHERE o.tenant = $1 AND o.experiment = $2 GROUP BY o.metric, x.arm
"""


class PostgresExperiments:
    """Experiments by tenant. Every method raises `Unavailable` while the store is down."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def start(self, call: Call, request: StartExperiment) -> Experiment:
        """Start an experiment.

        Raises:
            Unpublishable: with every fault of the arms' texts.
            Conflict: the name is taken, or a running experiment tells one of these texts otherwise, or too many are running.
        """
        platform = await read_platform(self._database)

        async def write(connection: Connection) -> Experiment:
            tenant = call.who.tenant
            await connection.execute("SELECT pg_advisory_xact_lock($1, hashtext($2))", _LOCK, tenant)
            library = Library(platform, await read_overlay(connection, tenant))
            _check_arms(library, request)
            if not await connection.fetchval(_START, tenant, request.name):
                raise Conflict("there is an experiment of this name already")
            await _write_arms(connection, tenant, request)
            await _announce_experiment(connection, call, "start_experiment", library, request.name, _experiment_tags(request))
            return await _read_experiment(connection, tenant, request.name)

        return await write_once(self._database, call, request, Experiment, write)

    async def stop(self, call: Call, name: str) -> Experiment:
        """Stop an experiment; one that is stopped stays as it is. Raises `NotFound` where the tenant has none of this name."""
        platform = await read_platform(self._database)

        async def write(connection: Connection) -> Experiment:
            tenant = call.who.tenant
            before = await _read_experiment(connection, tenant, name)
            if await connection.execute(_STOP, tenant, name) == "UPDATE 1":
                library = Library(platform, await read_overlay(connection, tenant))
                tags = sorted({tag for arm in before.arms for tag in arm.tags})
                await _announce_experiment(connection, call, "stop_experiment", library, name, tags)
            return await _read_experiment(connection, tenant, name)

        return await write_once(self._database, call, ExperimentRef(name=name), Experiment, write)

    async def experiments(self, tenant: str) -> tuple[Experiment, ...]:
        async with self._database.connection(tenant) as connection:
            return tuple(_experiment_from_row(row) for row in await connection.fetch(_LIST_EXPERIMENTS, tenant, None))

    async def record(self, call: Call, request: RecordOutcome) -> OutcomeRecorded:
        """Add to what a user's outcomes come to; a repeat with the same key adds nothing."""

        async def write(connection: Connection) -> OutcomeRecorded:
            tenant, arms = call.who.tenant, {}
            for row in await connection.fetch(_IN, tenant, request.user, request.experiment):
                if await connection.fetchval(_METRICS, tenant, row["experiment"], request.metric) >= _METRICS_MOST:
                    raise Conflict(f"an experiment has at most {_METRICS_MOST} metrics")
                await connection.execute(_OUTCOME, tenant, row["experiment"], request.user, request.metric, request.value)
                arms[row["experiment"]] = row["arm"]
            if arms:
                entry = audit_entry(call.who, "record_outcome", {**request.model_dump(mode="json"), "arms": arms})
                await write_news(connection, "instructions", tenant, AUDITED["instructions"], entry)
            return OutcomeRecorded(arms=arms)

        return await write_once(self._database, call, request, OutcomeRecorded, write)

    async def samples(self, tenant: str, name: str) -> Mapping[str, Mapping[str, Sample]]:
        """By metric and arm, one value for each user: the mean of its outcomes."""
        found: dict[str, dict[str, Sample]] = defaultdict(dict)
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_SAMPLES, tenant, name)
        for row in rows:
            found[row["metric"]][row["arm"]] = Sample(row["users"], row["total"], row["squares"], row["binary"])
        return found


def _check_arms(library: Library, request: StartExperiment) -> None:
    faults = [fault for arm in request.arms for fault in arm_faults(library, arm.name, arm.texts)]
    if len({arm.name for arm in request.arms}) < len(request.arms):
        faults.append("two arms have one name")
    if not _experiment_tags(request):
        faults.append("no arm has a text of its own")
    if faults:
        raise Unpublishable("; ".join(faults))
    if len(library.overlay.experiments) >= _RUNNING_MOST:
        raise Conflict(f"at most {_RUNNING_MOST} experiments run together")
    for other in library.overlay.experiments:
        if shared := sorted(other.tags() & set(_experiment_tags(request))):
            raise Conflict(f"the experiment {other.name} tells {', '.join(shared)} otherwise already")


def _experiment_tags(request: StartExperiment) -> list[str]:
    return sorted({tag for arm in request.arms for tag in arm.texts})


async def _write_arms(connection: Connection, tenant: str, request: StartExperiment) -> None:
    await connection.executemany(
        "INSERT INTO experiment_arms (tenant, experiment, arm, place, weight) VALUES ($1, $2, $3, $4, $5)",
        [(tenant, request.name, arm.name, place, arm.weight) for place, arm in enumerate(request.arms)],
    )
    await connection.executemany(
        "INSERT INTO arm_texts (tenant, experiment, arm, tag, content, avg_tokens) VALUES ($1, $2, $3, $4, $5, $6)",
        [
            (tenant, request.name, arm.name, tag, content, tokens.count(content))
            for arm in request.arms
            for tag, content in arm.texts.items()
        ],
    )


async def _read_experiment(connection: Connection, tenant: str, name: str) -> Experiment:
    row = await connection.fetchrow(_LIST_EXPERIMENTS, tenant, name)
    if row is None:
        raise NotFound("there is no such experiment")
    return _experiment_from_row(row)


def _experiment_from_row(row: Any) -> Experiment:
    return Experiment(
        name=row["name"],
        status=row["status"],
        arms=tuple(ArmInfo.model_validate(arm) for arm in row["arms"]),
        started_at=row["started_at"],
        stopped_at=row["stopped_at"],
    )


async def _announce_experiment(
    connection: Connection, call: Call, action: str, library: Library, name: str, tags: list[str]
) -> None:
    tenant = call.who.tenant
    await write_news(connection, "instructions", tenant, RELEASED, Released(tags=tuple(tags), version=library.release))
    entry = audit_entry(call.who, action, {"experiment": name, "tags": tags})
    await write_news(connection, "instructions", tenant, AUDITED["instructions"], entry)
