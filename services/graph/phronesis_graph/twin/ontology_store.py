"""Ontologies of tenants in the store: every version as its file, one of them active; and what a new one no longer fits."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from zlib import crc32

from phronesis_bus import Call, News, Sendable
from phronesis_contracts import Conflict, NotFound
from phronesis_contracts.ontology import MAX_VERSIONS, Misfit, OntologyChanged, OntologyVersion

from ..bolt.driver import Bolt, Row, Transaction
from ..bolt.schema import ONTOLOGIES, Schema
from ..bolt.writes import Turns, take_turn, write_news
from .active import ActiveOntology, activate
from .ontology import NodeType, Ontology
from .ontology_changes import Checks, Lost, is_blocking, levels_of, misfit_of
from .ontology_file import parse

MAX_ACTIVE = 100
"""Ontologies kept ready in this process."""
FRESH = 30.0
"""Seconds after which the active version is looked up anew: news of a change may be lost."""
PACKAGED = 0

_ACTIVE = f"MATCH (o:{ONTOLOGIES} {{key: $key}}) RETURN o.active AS active"
_VERSIONS = (
    f"MATCH (o:{ONTOLOGIES}) WHERE o.key > $after AND o.key < $before AND o.version IS NOT NULL "
    "RETURN o.version AS version, o.name AS name, o.at AS at, o.by AS by ORDER BY version DESC"
)
_TEXT = f"MATCH (o:{ONTOLOGIES} {{key: $key}}) RETURN o.text AS text"
_TEXTS = (
    f"MATCH (o:{ONTOLOGIES}) WHERE o.key > $after AND ($before IS NULL OR o.key < $before) AND o.text IS NOT NULL "
    "RETURN o.text AS text"
)
_KEEP = f"CREATE (o:{ONTOLOGIES}) SET o = $row"
_SET_ACTIVE = f"MERGE (o:{ONTOLOGIES} {{key: $key}}) SET o.active = $active"
_DROP = f"MATCH (o:{ONTOLOGIES} {{key: $key}}) DELETE o"


class StaleOntology(Conflict):
    """Another version became active while a write was prepared."""

    code = "graph.stale_ontology"


def _version_key(tenant: str, version: int) -> str:
    return f"{tenant}/{version:08d}"


def _active_key(tenant: str) -> str:
    return f"{tenant}/active"


def _bounds(tenant: str) -> Row:
    # `0` is the character after `/`.
    return {"after": f"{tenant}/", "before": f"{tenant}0"}


async def _read_active(transaction: Transaction, tenant: str) -> int:
    rows = await transaction.rows(_ACTIVE, key=_active_key(tenant))
    return int(rows[0]["active"]) if rows else PACKAGED


async def check_version(transaction: Transaction, tenant: str, ontology: Ontology) -> None:
    """Hold a write against the version that it was prepared by. Raises `StaleOntology`: another one is active."""
    if await _read_active(transaction, tenant) != ontology.version:
        raise StaleOntology("the ontology was changed at this moment; try again")


async def stored_ontologies(bolt: Bolt, tenant: str | None = None) -> list[Ontology]:
    """Every version that the store holds of a tenant's ontology, or of all. It names what nodes may be there."""
    bounds: Row = {"after": "", "before": None} if tenant is None else _bounds(tenant)

    async def work(transaction: Transaction) -> list[Row]:
        return await transaction.rows(_TEXTS, **bounds)

    return [parse(row["text"]) for row in await bolt.read(work)]


@dataclass(frozen=True)
class NewVersion:
    """What a write of a version holds beside its file."""

    name: str
    by: str
    news: Callable[[int], Sequence[Sendable]]
    """Its event and its audit entry, by its number."""


class BoltOntologies:
    """The `Ontologies` over Bolt."""

    def __init__(self, bolt: Bolt, schema: Schema, packaged: ActiveOntology) -> None:
        self._bolt, self._schema, self._packaged = bolt, schema, packaged
        self._numbers: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._ready: OrderedDict[tuple[str, int], ActiveOntology] = OrderedDict()
        self._changes = 0
        self._locks = tuple(asyncio.Lock() for _ in range(16))
        self._turns = Turns()

    async def of(self, tenant: str) -> ActiveOntology:
        kept = self._numbers.get(tenant)
        if kept is None or time.monotonic() - kept[1] > FRESH:
            async with self._locks[crc32(tenant.encode()) % len(self._locks)]:
                number = await self._look_up(tenant)
        else:
            number = kept[0]
        return await self.version(tenant, number)

    async def version(self, tenant: str, number: int) -> ActiveOntology:
        """One version, active or not. Raises `NotFound`: the tenant keeps no such version."""
        if number == PACKAGED:
            return self._packaged
        key = (tenant, number)
        if key in self._ready:
            self._ready.move_to_end(key)
            return self._ready[key]
        await self._schema.declared()

        async def work(transaction: Transaction) -> list[Row]:
            return await transaction.rows(_TEXT, key=_version_key(tenant, number))

        rows = await self._bolt.read(work)
        if not rows:
            raise NotFound("the tenant keeps no such version of its ontology", field="version")
        text = rows[0]["text"]
        made = activate(replace(parse(text), version=number), text, str(number))
        self._ready[key] = made
        while len(self._ready) > MAX_ACTIVE:
            self._ready.popitem(last=False)
        return made

    async def versions(self, tenant: str) -> list[OntologyVersion]:
        """All versions that the tenant keeps, the newest first and the packaged one last."""
        await self._schema.declared()

        async def work(transaction: Transaction) -> tuple[int, list[Row]]:
            return await _read_active(transaction, tenant), await transaction.rows(_VERSIONS, **_bounds(tenant))

        active, rows = await self._bolt.read(work)
        own = [
            OntologyVersion(
                version=row["version"],
                name=row["name"],
                active=row["version"] == active,
                at=datetime.fromtimestamp(row["at"], UTC),
                by=row["by"],
            )
            for row in rows
        ]
        return [*own, OntologyVersion(version=PACKAGED, name=self._packaged.ontology.name, active=active == PACKAGED)]

    async def publish(self, call: Call, text: str, before: Ontology, new: NewVersion) -> int:
        """Keep a file as the next version, and make it the active one.

        Args:
            before: the ontology that the new one was compared with.

        Returns:
            Its number.

        Raises:
            StaleOntology: another version has become active since.
        """
        await self._schema.declared()
        tenant = call.who.tenant

        async def work(transaction: Transaction) -> int:
            await take_turn(transaction, tenant)
            await check_version(transaction, tenant, before)
            kept = [row["version"] for row in await transaction.rows(_VERSIONS, **_bounds(tenant))]
            number = max(kept, default=PACKAGED) + 1
            row = {
                "key": _version_key(tenant, number),
                "version": number,
                "name": new.name,
                "text": text,
                "at": time.time(),
                "by": new.by,
            }
            await transaction.rows(_KEEP, row=row)
            for old in sorted(kept)[: max(0, len(kept) + 1 - MAX_VERSIONS)]:
                await transaction.rows(_DROP, key=_version_key(tenant, old))
            await self._make_active(transaction, tenant, number, new)
            return number

        async with self._turns.of(tenant):
            number = await self._bolt.write(work)
        self.forget(tenant)
        return number

    async def roll_back(self, call: Call, number: int, before: Ontology, new: NewVersion) -> None:
        """Make a version that is kept the active one; raises as `publish` does, and `NotFound`: it is kept no longer."""
        await self._schema.declared()
        tenant = call.who.tenant

        async def work(transaction: Transaction) -> None:
            await take_turn(transaction, tenant)
            await check_version(transaction, tenant, before)
            if number != PACKAGED and not await transaction.rows(_TEXT, key=_version_key(tenant, number)):
                raise NotFound("the tenant keeps no such version of its ontology", field="version")
            await self._make_active(transaction, tenant, number, new)

        async with self._turns.of(tenant):
            await self._bolt.write(work)
        self.forget(tenant)

    async def on_ontology_changed(self, news: News, event: OntologyChanged) -> None:
        """The active version of a tenant changed: it is looked up anew."""
        self.forget(news.tenant)

    def forget(self, tenant: str) -> None:
        """Look the active version of a tenant up anew."""
        self._changes += 1
        self._numbers.pop(tenant, None)

    async def _look_up(self, tenant: str) -> int:
        await self._schema.declared()
        changes = self._changes

        async def work(transaction: Transaction) -> int:
            return await _read_active(transaction, tenant)

        number = await self._bolt.read(work)
        if changes == self._changes:  # else it may be older than the change
            self._numbers[tenant] = (number, time.monotonic())
            self._numbers.move_to_end(tenant)
            while len(self._numbers) > 10 * MAX_ACTIVE:
                self._numbers.popitem(last=False)
        return number

    async def _make_active(self, transaction: Transaction, tenant: str, number: int, new: NewVersion) -> None:
        await transaction.rows(_SET_ACTIVE, key=_active_key(tenant), active=number)
        await write_news(transaction, new.news(number))


_PAGE = 2_000
"""Nodes read at once."""
MOST_MISFITS = 200
_UNDECLARED = "no longer declared: they stay in the store, and are found again once the type is declared again"
_UNJOINED = "no longer declared between these types: they stay in the store, and no query walks them"


class BoltMisfits:
    """Reads a tenant's nodes page by page, in the order of their keys."""

    def __init__(self, bolt: Bolt) -> None:
        self._bolt = bolt

    async def of(self, tenant: str, checks: Checks) -> tuple[Misfit, ...]:
        """What does not fit, at most `MOST_MISFITS` of them; those that block come first. Raises `Unavailable`, `TimedOut`."""
        found: list[Misfit] = []
        for type in checks.gone:
            if count := await self._count(f"MATCH (n:`{type}`) WHERE {_INSIDE} RETURN count(n) AS found", tenant, type):
                found.append(Misfit(type=type, count=count, because=_UNDECLARED))
        for kind in checks.types:
            found += await self._of_type(tenant, kind)
        for lost in checks.lost:
            if count := await self._count(_lost_statement(lost), tenant, lost.type):
                found.append(Misfit(type=lost.type, relationship=lost.relationship, count=count, because=_UNJOINED))
        return tuple(sorted(found, key=lambda misfit: not misfit.blocking)[:MOST_MISFITS])

    async def _of_type(self, tenant: str, kind: NodeType) -> Iterator[Misfit]:
        counts: Counter[tuple[str | None, str, bool]] = Counter()
        columns = "".join(f", n.`{name}`" for name in kind.properties)
        statement = (
            f"MATCH (n:`{kind.name}`) WHERE {_INSIDE} RETURN [n.key, n.level{columns}] AS values ORDER BY n.key LIMIT {_PAGE}"
        )
        bounds, levels = _key_range(tenant, kind.name), levels_of(kind)
        while rows := await self._rows(statement, bounds):
            for row in rows:
                _, level, *values = row["values"]
                if level not in levels:
                    counts[None, f"they stand at {level}, which the type has not", False] += 1
                for declared, value in zip(kind.properties.values(), values, strict=True):
                    if value is not None and (why := misfit_of(declared, value)) is not None:
                        counts[declared.name, why, is_blocking(declared, value)] += 1
            bounds = {**bounds, "after": rows[-1]["values"][0]}
        return (
            Misfit(type=kind.name, property=name, count=count, because=why, blocking=blocking)
            for (name, why, blocking), count in counts.items()
        )

    async def _count(self, statement: str, tenant: str, type: str) -> int:
        [row] = await self._rows(statement, _key_range(tenant, type))
        return int(row["found"])

    async def _rows(self, statement: str, parameters: Row) -> list[Row]:
        return await self._bolt.read(lambda transaction: transaction.rows(statement, **parameters))


_INSIDE = "n.key > $after AND n.key < $before AND n.tenant = $tenant"


def _key_range(tenant: str, type: str) -> Row:
    # `0` is the character after `/`: between these two are the keys of the tenant's nodes of the type.
    return {"tenant": tenant, "after": f"{tenant}/{type}/", "before": f"{tenant}/{type}0"}


def _lost_statement(lost: Lost) -> str:
    return f"MATCH (n:`{lost.type}`)-[r:`{lost.relationship}`]->() WHERE {_INSIDE} RETURN count(r) AS found"
