"""The tables of tenants' own releases."""

from __future__ import annotations

from collections.abc import Mapping

from phronesis_bus import Call, audited
from phronesis_contracts import Conflict
from phronesis_contracts.instructions import RELEASED, Released
from phronesis_contracts.releases import Publication, PublishInstructions, ReleaseInfo, RollbackInstructions
from phronesis_contracts.service import AUDITED
from phronesis_postgres import Connection, Database, write_news, write_once

from ..domain.library import Library, Overlay, Platform
from ..domain.publishing import differences, published, whole
from ..domain.texts import Text
from .reading import read_overlay, read_platform, read_release

_LOCK = 7_420_913
_KEPT = 100
"""A tenant's releases that are kept."""
_LIST = """
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
            library = await _locked(connection, platform, call.who.tenant)
            own = published(library, request.texts)
            number = 1 + await _highest(connection, call.who.tenant)
            await _insert(connection, call, number, own, request.note)
            await _activate(connection, call.who.tenant, number)
            await connection.execute(_PRUNE, call.who.tenant, number - _KEPT)
            done = _publication(library, number, own)
            await _tell(connection, call, "publish_instructions", done)
            return done

        return await write_once(self._database, call, request, Publication, write)

    async def rollback(self, call: Call, request: RollbackInstructions) -> Publication:
        """Make an earlier release active, with its news and its audit entry, in one transaction."""

        platform = await read_platform(self._database)

        async def write(connection: Connection) -> Publication:
            tenant = call.who.tenant
            library = await _locked(connection, platform, tenant)
            active = library.overlay.number
            number = await _before(connection, tenant, active) if request.to is None else request.to
            if number == active:
                raise Conflict("this release is active already")
            own = await read_release(connection, tenant, number)
            if faults := whole(Library(library.platform, Overlay(number, own))):
                raise Conflict(f"the release does not fit what ships now: {'; '.join(faults)}")
            await _activate(connection, tenant, number)
            done = _publication(library, number, own)
            await _tell(connection, call, "rollback_instructions", done)
            return done

        return await write_once(self._database, call, request, Publication, write)

    async def releases(self, tenant: str) -> tuple[ReleaseInfo, ...]:
        """The newest first."""
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_LIST, tenant)
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
        """A release's own texts."""
        async with self._database.connection(tenant) as connection:
            return await read_release(connection, tenant, number)


async def _locked(connection: Connection, platform: Platform, tenant: str) -> Library:
    """The tenant's texts now; nobody else publishes for it until the transaction ends."""
    await connection.execute("SELECT pg_advisory_xact_lock($1, hashtext($2))", _LOCK, tenant)
    return Library(platform, await read_overlay(connection, tenant))


async def _highest(connection: Connection, tenant: str) -> int:
    return int(await connection.fetchval("SELECT coalesce(max(number), 0) FROM releases WHERE tenant = $1", tenant))


async def _before(connection: Connection, tenant: str, active: int) -> int:
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
    return Publication(release=after.release, number=number, changes=differences(library.all(), after.all()))


async def _tell(connection: Connection, call: Call, action: str, done: Publication) -> None:
    tags, tenant = [change.tag for change in done.changes], call.who.tenant
    news = Released(tags=tuple(tags), version=done.release)
    await write_news(connection, "instructions", tenant, RELEASED, news)
    entry = audited(call.who, action, {"release": done.release, "tags": tags})
    await write_news(connection, "instructions", tenant, AUDITED["instructions"], entry)
