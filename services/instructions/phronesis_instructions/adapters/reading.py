"""Reading in one statement, which sees one moment: no reader sees half of a release."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from phronesis_contracts import SYSTEM_TENANT, NotFound
from phronesis_postgres import Connection, Database

from ..domain.library import Overlay, Platform, Profile, Running, RunningArm
from ..domain.texts import Text
from .rows import migrated, text_of

_PLATFORM = """
SELECT
    (SELECT version FROM releases WHERE tenant = 'system' AND active) AS version,
    (SELECT json_agg(t) FROM (
        SELECT tag, content, avg_tokens, version, status, category FROM instruction_bundles
    ) AS t) AS bundles,
    (SELECT json_agg(t) FROM (
        SELECT tag, content, avg_tokens, version, status, tier, dependencies, use_cases, position FROM instruction_elements
    ) AS t) AS elements,
    (SELECT json_agg(t) FROM (
        SELECT agent, version, loop, stages, prompts, directives, phrases, bootstrap FROM agent_profiles
    ) AS t) AS profiles
"""
_OVERLAY = """
SELECT
    (SELECT number FROM releases WHERE tenant = $1 AND active) AS number,
    (SELECT json_agg(t) FROM release_texts AS t
        WHERE tenant = $1 AND number = (SELECT number FROM releases WHERE tenant = $1 AND active)) AS texts,
    (SELECT json_agg(t ORDER BY started_at, experiment, place) FROM (
        SELECT experiment, arm, place, weight, started_at,
            (SELECT json_object_agg(tag, content) FROM arm_texts AS a
                WHERE a.tenant = $1 AND a.experiment = arms.experiment AND a.arm = arms.arm) AS texts
        FROM experiment_arms AS arms JOIN experiments AS e ON e.tenant = arms.tenant AND e.name = arms.experiment
        WHERE arms.tenant = $1 AND e.status = 'running'
    ) AS t) AS arms
"""


async def read_platform(database: Database) -> Platform:
    """What ships, as it stands now. Its release is a row of the platform's own tenant, which no other tenant reaches."""
    async with migrated(), database.connection(SYSTEM_TENANT) as connection:
        row = await connection.fetchrow(_PLATFORM)
    assert row is not None
    texts = [text_of(one, "bundle") for one in row["bundles"] or ()]
    texts += [text_of(one, "element") for one in row["elements"] or ()]
    profiles = {one["agent"]: Profile(**{**one, "stages": tuple(one["stages"])}) for one in row["profiles"] or ()}
    return Platform(row["version"] or "0.0.0", {text.tag: text for text in texts}, profiles)


async def read_overlay(connection: Connection, tenant: str) -> Overlay:
    """A tenant's active release and running experiments, as they stand now."""
    row = await connection.fetchrow(_OVERLAY, tenant)
    assert row is not None
    return Overlay(row["number"] or 0, own_texts(row["texts"] or ()), _running(row["arms"] or ()))


async def read_release(connection: Connection, tenant: str, number: int) -> dict[str, Text]:
    """A release's own texts; those of 0 are none. Raises `NotFound`."""
    if number and not await connection.fetchval("SELECT true FROM releases WHERE tenant = $1 AND number = $2", tenant, number):
        raise NotFound("there is no such release")
    rows = await connection.fetch("SELECT * FROM release_texts WHERE tenant = $1 AND number = $2", tenant, number)
    return own_texts([dict(row) for row in rows])


def own_texts(rows: Any) -> dict[str, Text]:
    """A tenant's own texts by tag, from rows of `release_texts`."""
    return {row["tag"]: text_of(row, row["kind"], own=True) for row in rows}


def _running(rows: Any) -> tuple[Running, ...]:
    arms: dict[str, list[RunningArm]] = defaultdict(list)
    for row in rows:
        arms[row["experiment"]].append(RunningArm(row["arm"], row["weight"], row["texts"] or {}))
    return tuple(Running(name, tuple(of_it)) for name, of_it in arms.items())
