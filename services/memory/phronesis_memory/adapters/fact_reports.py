"""What is kept of a forgetting: which services have reported, and what they removed."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from phronesis_contracts import NotFound, Principal
from phronesis_contracts.deletions import DeletionState, Purged
from phronesis_contracts.forgetting import Forgetting
from phronesis_postgres import Connection

_REPORTERS = {"graph", "orchestrator"}
"""Services that report what they removed, beside this one."""
_REPORTED = """
    UPDATE forgettings SET removed = removed || jsonb_build_object($3::text, $4::jsonb),
        completed_at = CASE WHEN (removed || jsonb_build_object($3::text, $4::jsonb)) ?& $5::text[]
            THEN coalesce(completed_at, now()) END
    WHERE id = $1 AND tenant = $2 AND NOT removed ? $3"""


async def enter(connection: Connection, tenant: str, service: str, report: Purged) -> None:
    """Enter what a service removed, once; the last report that is waited for completes the forgetting."""
    id, removed = UUID(report.deletion_id), dict(report.removed)
    await connection.execute(_REPORTED, id, tenant, service, removed, sorted(_REPORTERS))


async def read(connection: Connection, who: Principal, id: UUID) -> Forgetting:
    """A forgetting of the caller. Raises `NotFound`."""
    row: Any = await connection.fetchrow(
        "SELECT * FROM forgettings WHERE id = $1 AND tenant = $2 AND owner = $3", id, who.tenant, who.user
    )
    if row is None:
        raise NotFound("no such forgetting")
    return Forgetting(
        forgetting_id=str(row["id"]),
        state=DeletionState.COMPLETE if row["completed_at"] else DeletionState.PENDING,
        requested_at=row["requested_at"],
        completed_at=row["completed_at"],
        removed=row["removed"],
    )
