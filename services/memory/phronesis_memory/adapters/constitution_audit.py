"""Entries of the audit trail for what is done to the constitutional graph's vectors and backups (O-347)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phronesis_bus import audited
from phronesis_contracts import Principal
from phronesis_contracts.service import AUDITED
from phronesis_postgres import Database, write_news

SERVICE = "memory"


class KeepingAudit:
    """Writes entries.

    Args:
        database: the schema.
        wake: called after a transaction that wrote news.
    """

    def __init__(self, database: Database, wake: Callable[[], None]) -> None:
        self._database = database
        self._wake = wake

    async def enter(self, who: Principal, action: str, arguments: dict[str, Any]) -> None:
        """Enter that `who` did something. Raises `Unavailable`."""
        async with self._database.transaction(who.tenant) as connection:
            await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], audited(who, action, arguments))
        self._wake()
