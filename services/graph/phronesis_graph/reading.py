"""What the graph service does with a statement that reads the twin."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from phronesis_bus import Call
from phronesis_contracts import ServiceError
from phronesis_contracts.cypher import READ_CYPHER_TOOL, CypherRows, QueryRefused, ReadCypher
from phronesis_contracts.principal import Principal

from .querying import Check, Queries, blanked

log = logging.getLogger(__name__)

MOST_ROWS = 500
Refuse = Callable[[Principal, str, dict[str, object], ServiceError], Awaitable[None]]
"""Enters a refusal in the audit trail: who was refused, which tool, with which arguments, and why."""


class Reading:
    """One method for the one message."""

    def __init__(self, check: Check, queries: Queries, refuse: Refuse) -> None:
        self._check = check
        self._queries = queries
        self._refuse = refuse

    async def read_cypher(self, call: Call, request: ReadCypher) -> CypherRows:
        """Read the twin of the caller's tenant with one statement, once the guard has let it through.

        Raises:
            QueryRefused: the guard or the store does not take it; the detail names the rule, and what to write instead.
            TimedOut: it took too long.
            TooLarge: a single row is larger than an answer may be.
            Busy: too many run already.
            Unavailable: the store is down.
        """
        await self._queries.ready()
        tenant, text = call.who.tenant, blanked(request.cypher_query)
        # Whom a query is about by this name, no caller chooses (NC-067).
        parameters = {**request.parameters, "user_id": call.who.user}
        try:
            allowed = await asyncio.to_thread(self._check, request.cypher_query, parameters, tenant)
            for warning in allowed.warnings:
                log.warning("a reading query could be better: %s; %s", warning, text)
            found = await self._queries.read(tenant, allowed.statement, allowed.parameters, MOST_ROWS)
        except QueryRefused as error:
            log.error("a reading query was refused: %s; %s", error.detail, text)
            await self._refuse(call.who, READ_CYPHER_TOOL.name, {"cypher_query": text, "parameters": request.parameters}, error)
            raise
        log.info("a reading query gave %d rows", len(found.rows))
        return CypherRows(rows=found.rows, truncated=found.truncated, warnings=allowed.warnings)
