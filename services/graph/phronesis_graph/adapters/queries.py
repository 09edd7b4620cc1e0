"""Statements that the guard let through, run in the store within limits of time, of rows and of bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from neo4j import Record, ResultSummary
from neo4j.exceptions import Neo4jError

from phronesis_contracts import Busy, TimedOut, TooLarge
from phronesis_contracts.cypher import QueryRefused

from ..ontology import Ontology
from ..querying import Found
from ..settings import Dialect
from .bolt import Bolt, Transaction
from .complaints import complaint, too_slow
from .schema import Schema
from .values import Values

MOST_BYTES = 480_000
"""Of the rows of one answer; a message takes 512 KiB."""
_AT_ONCE = 8
"""Statements of callers that run at once in this process: fewer than there are connections, so that the rest goes on."""
_WAIT = 2.0
"""Seconds that a statement waits for its turn."""


class BoltQueries:
    """Runs statements of callers.

    Args:
        bolt: the store.
        schema: tells whether the store has been there.
        ontology: what nodes of the twin look like.
        dialect: whether the store can explain a statement before it runs.
    """

    def __init__(self, bolt: Bolt, schema: Schema, ontology: Ontology, dialect: Dialect) -> None:
        self._bolt = bolt
        self._schema = schema
        self._ontology = ontology
        self._explains = dialect is Dialect.NEO4J
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def ready(self) -> None:
        """Return when the store has been there; see the port."""
        await self._schema.declared()

    async def read(self, tenant: str, statement: str, parameters: Mapping[str, Any], most: int) -> Found:
        """Run a reading statement; see the port."""

        async def work(transaction: Transaction) -> Found:
            if self._explains:
                await _explained(transaction, statement, parameters)
            rows = Rows(Values(self._ontology, tenant), most)
            await run(transaction, statement, parameters, rows.take)
            return rows.found()

        async with self.place():
            try:
                return await self._bolt.ask(work)
            except TimedOut as error:
                raise too_slow() from error

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """One of the places for statements of callers, for the length of a block.

        Raises:
            Busy: none came free in time.
        """
        try:
            async with asyncio.timeout(_WAIT):
                await self._places.acquire()
        except TimeoutError as error:
            raise Busy("too many queries run at this moment", retry_after=1) from error
        try:
            yield
        finally:
            self._places.release()


class Rows:
    """Rows of an answer, until there are enough."""

    def __init__(self, values: Values, most: int) -> None:
        self._values = values
        self._most = most
        self._rows: list[dict[str, Any]] = []
        self._bytes = 0
        self._truncated = False

    def take(self, record: Record) -> bool:
        """Keep a record, and whether another one may come.

        Raises:
            TooLarge: it is the first one, and fits into no answer.
        """
        row = self._values.row(dict(record))
        size = len(json.dumps(row, ensure_ascii=False).encode())
        if not self._rows and size > MOST_BYTES:
            raise TooLarge("one row is larger than an answer may be; return fewer properties")
        self._truncated = len(self._rows) >= self._most or self._bytes + size > MOST_BYTES
        if not self._truncated:
            self._rows.append(row)
            self._bytes += size + 1
        return not self._truncated

    def found(self) -> Found:
        """What was kept."""
        return Found(tuple(self._rows), self._truncated)


async def run(
    transaction: Transaction, statement: str, parameters: Mapping[str, Any], take: Callable[[Record], bool]
) -> ResultSummary:
    """Run a statement of a caller's.

    Raises:
        QueryRefused: the store does not take it; the detail helps to repair it.
        TimedOut: it took too long.
        Neo4jError: a passing fault.
    """
    try:
        return await transaction.taken(statement, dict(parameters), take)
    except Neo4jError as error:
        if (refusal := complaint(error)) is None:
            raise
        raise refusal from error
    except (OverflowError, TypeError, ValueError) as error:
        raise QueryRefused("a parameter holds a value that the store does not take", field="parameters") from error


async def _explained(transaction: Transaction, statement: str, parameters: Mapping[str, Any]) -> None:
    """Let the store compile the statement: what it does not understand, or takes for a write, is not run."""
    summary = await run(transaction, f"EXPLAIN {statement}", parameters, lambda record: True)
    if summary.query_type != "r":
        raise QueryRefused("the query would write, and it may only read", field="cypher_query")
