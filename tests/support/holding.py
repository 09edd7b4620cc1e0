"""Work that stands still in the middle: the journal, or another table, takes one row once the test lets it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from tests.support.bus import eventually

_LOCK = 7_305_118
_HOLD = f"""
CREATE OR REPLACE FUNCTION orchestrator.held_by_a_test() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_advisory_xact_lock_shared({_LOCK}); RETURN NEW; END $$;
GRANT EXECUTE ON FUNCTION orchestrator.held_by_a_test() TO PUBLIC;
CREATE TRIGGER held_by_a_test BEFORE INSERT OR UPDATE ON orchestrator.{{table}}
FOR EACH ROW WHEN (NEW.{{column}}::text = '{{value}}') EXECUTE FUNCTION orchestrator.held_by_a_test();
"""
_WAITS = "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = $1 AND NOT granted)"


class Hold:
    """One step that is held.

    Args:
        connection: of the owner of the database.
    """

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self._held = True

    async def reached(self) -> None:
        """Return when a task stands at the step."""

        async def waits() -> bool:
            return bool(await self._connection.fetchval(_WAITS, _LOCK))

        await eventually(waits, 90)

    async def release(self) -> None:
        """Let it go on."""
        if self._held:
            self._held = False
            await self._connection.execute("SELECT pg_advisory_unlock($1)", _LOCK)


@asynccontextmanager
async def held(dsn: str, value: str, table: str = "journal", column: str = "step") -> AsyncIterator[Hold]:
    """Hold every task at one step of its journal, or whoever writes such a row, until released or the block ends.

    Args:
        dsn: of the database, as its owner.
        value: the journal's name of the step, or what the row has in its column.
        table: of the orchestrator.
        column: of the table.
    """
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
        await connection.execute(_HOLD.format(table=table, column=column, value=value))
        hold = Hold(connection)
        try:
            yield hold
        finally:
            await hold.release()
            await connection.execute(f"DROP TRIGGER held_by_a_test ON orchestrator.{table}")
            await connection.execute("DROP FUNCTION orchestrator.held_by_a_test()")
    finally:
        await connection.close()
