"""Stored nodes that a new ontology no longer fits, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from phronesis_contracts.ontology import Misfit

from ..bolt.driver import Bolt, Row
from .ontology import NodeType
from .ontology_changes import Checks, Lost, is_blocking, levels_of, misfit_of

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
        bounds, levels = _bounds(tenant, kind.name), levels_of(kind)
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
        [row] = await self._rows(statement, _bounds(tenant, type))
        return int(row["found"])

    async def _rows(self, statement: str, parameters: Row) -> list[Row]:
        return await self._bolt.read(lambda transaction: transaction.rows(statement, **parameters))


_INSIDE = "n.key > $after AND n.key < $before AND n.tenant = $tenant"


def _bounds(tenant: str, type: str) -> Row:
    # `0` is the character after `/`: between these two are the keys of the tenant's nodes of the type.
    return {"tenant": tenant, "after": f"{tenant}/{type}/", "before": f"{tenant}/{type}0"}


def _lost_statement(lost: Lost) -> str:
    return f"MATCH (n:`{lost.type}`)-[r:`{lost.relationship}`]->() WHERE {_INSIDE} RETURN count(r) AS found"
