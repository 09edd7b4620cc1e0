"""The tables of experiments and of what came of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import phronesis_tokens as tokens
from phronesis_bus import Call, audited
from phronesis_contracts import Conflict, NotFound
from phronesis_contracts.experiments import ArmInfo, Experiment, ExperimentRef, OutcomeRecorded, RecordOutcome, StartExperiment
from phronesis_contracts.instructions import RELEASED, Released
from phronesis_contracts.releases import Unpublishable
from phronesis_contracts.service import AUDITED
from phronesis_postgres import Connection, Database, write_news, write_once

from ..domain.intervals import Sample
from ..domain.library import Library
from ..domain.publishing import arm_faults
from .reading import read_overlay, read_platform

_LOCK = 7_420_913
_RUNNING_MOST, _METRICS_MOST = 20, 20
"""Running experiments of a tenant, and metrics of an experiment."""
_START = "INSERT INTO experiments (tenant, name) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING true"
_STOP = "UPDATE experiments SET status = 'stopped', stopped_at = now() WHERE tenant = $1 AND name = $2 AND status = 'running'"
_LIST = """
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
    """Experiments by tenant."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def start(self, call: Call, request: StartExperiment) -> Experiment:
        """Write an experiment with its arms, its news and its audit entry, in one transaction."""

        platform = await read_platform(self._database)

        async def write(connection: Connection) -> Experiment:
            tenant = call.who.tenant
            await connection.execute("SELECT pg_advisory_xact_lock($1, hashtext($2))", _LOCK, tenant)
            library = Library(platform, await read_overlay(connection, tenant))
            _check(library, request)
            if not await connection.fetchval(_START, tenant, request.name):
                raise Conflict("there is an experiment of this name already")
            await _write_arms(connection, tenant, request)
            await _tell(connection, call, "start_experiment", library, request.name, _tags(request))
            return await _one(connection, tenant, request.name)

        return await write_once(self._database, call, request, Experiment, write)

    async def stop(self, call: Call, name: str) -> Experiment:
        """End an experiment, with its news and its audit entry, in one transaction."""

        platform = await read_platform(self._database)

        async def write(connection: Connection) -> Experiment:
            tenant = call.who.tenant
            before = await _one(connection, tenant, name)
            if await connection.execute(_STOP, tenant, name) == "UPDATE 1":
                library = Library(platform, await read_overlay(connection, tenant))
                tags = sorted({tag for arm in before.arms for tag in arm.tags})
                await _tell(connection, call, "stop_experiment", library, name, tags)
            return await _one(connection, tenant, name)

        return await write_once(self._database, call, ExperimentRef(name=name), Experiment, write)

    async def experiments(self, tenant: str) -> tuple[Experiment, ...]:
        """The newest first."""
        async with self._database.connection(tenant) as connection:
            return tuple(_experiment(row) for row in await connection.fetch(_LIST, tenant, None))

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
                entry = audited(call.who, "record_outcome", {**request.model_dump(mode="json"), "arms": arms})
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


def _check(library: Library, request: StartExperiment) -> None:
    faults = [fault for arm in request.arms for fault in arm_faults(library, arm.name, arm.texts)]
    if len({arm.name for arm in request.arms}) < len(request.arms):
        faults.append("two arms have one name")
    if not _tags(request):
        faults.append("no arm has a text of its own")
    if faults:
        raise Unpublishable("; ".join(faults))
    if len(library.overlay.experiments) >= _RUNNING_MOST:
        raise Conflict(f"at most {_RUNNING_MOST} experiments run together")
    for other in library.overlay.experiments:
        if shared := sorted(other.tags() & set(_tags(request))):
            raise Conflict(f"the experiment {other.name} tells {', '.join(shared)} otherwise already")


def _tags(request: StartExperiment) -> list[str]:
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


async def _one(connection: Connection, tenant: str, name: str) -> Experiment:
    row = await connection.fetchrow(_LIST, tenant, name)
    if row is None:
        raise NotFound("there is no such experiment")
    return _experiment(row)


def _experiment(row: Any) -> Experiment:
    return Experiment(
        name=row["name"],
        status=row["status"],
        arms=tuple(ArmInfo.model_validate(arm) for arm in row["arms"]),
        started_at=row["started_at"],
        stopped_at=row["stopped_at"],
    )


async def _tell(connection: Connection, call: Call, action: str, library: Library, name: str, tags: list[str]) -> None:
    tenant = call.who.tenant
    await write_news(connection, "instructions", tenant, RELEASED, Released(tags=tuple(tags), version=library.release))
    entry = audited(call.who, action, {"experiment": name, "tags": tags})
    await write_news(connection, "instructions", tenant, AUDITED["instructions"], entry)
