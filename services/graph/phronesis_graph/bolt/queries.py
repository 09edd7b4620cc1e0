"""Running statements that the guard allowed, within limits of time, rows and bytes; values as JSON, errors in our words."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import math
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import date, datetime, time, timedelta
from typing import Any

from neo4j import Record, ResultSummary
from neo4j.exceptions import Neo4jError, TransientError
from neo4j.graph import Node, Path, Relationship
from neo4j.spatial import Point
from neo4j.time import Date, DateTime, Duration, Time

from phronesis_contracts import Busy, Conflict, Internal, ServiceError, TimedOut, TooLarge
from phronesis_contracts.knowledge_graph import FoundNode
from phronesis_contracts.twin import QueryRefused

from ..knowledge.model import HIDDEN, ID, KNOWLEDGE, RELATIONSHIP_ID, is_vector_name
from ..settings import Dialect
from ..twin.ontology import Ontology
from ..twin.ports import StatementResult
from .driver import TOO_LONG, Bolt, Transaction
from .schema import Schema

log = logging.getLogger(__name__)

_UNKNOWN_VARIABLE = re.compile(r"Variable `([A-Za-z_][A-Za-z0-9_]{0,63})` not defined")
_FORM = "syntax: the store cannot compile the query; check brackets and clauses, and that each variable is bound before its use"
_ADVICE = {
    "Statement.SyntaxError": _FORM,
    "Statement.SemanticError": _FORM,
    "Statement.ParameterMissing": "a $name of the query has no value; give each one in parameters",
    "Statement.TypeError": "an operation meets a value of another type; convert it by toString(), toInteger() or toFloat()",
    "Statement.ArithmeticError": "a calculation has no result; mind a division by zero",
    "Statement.ArgumentError": "a function got an argument that it does not take",
    "Statement.AccessMode": "the query would write, and it may only read",
    "Security.Forbidden": "the query would write, and it may only read",
}
_OTHER_ADVICE = "the store does not take the query; write it in simpler steps, with MATCH, WHERE and RETURN"


def query_timeout_error() -> TimedOut:
    """The refusal of a statement that took too long."""
    return TimedOut("the query took too long and was stopped; name labels, filter earlier, and return less")


def refuse_statement(error: Neo4jError) -> ServiceError | None:
    """The refusal of a caller's statement that failed; `None` for a passing fault, after which it may be tried again."""
    code = error.code or ""
    if "OutOfMemory" in code or "MemoryPool" in code:
        return QueryRefused("the query needs too much memory; filter earlier, collect less, and return less")
    if code.startswith(TOO_LONG):
        return query_timeout_error()
    if isinstance(error, TransientError):
        return None
    log.error("a statement of a caller failed in the store: %s", code, stack_info=True)
    if code == "Neo.ClientError.Schema.ConstraintValidationFailed":
        return Conflict("another node has the same value where values have to be unique; change it, or use that node")
    if not code.startswith("Neo.ClientError."):
        return Internal("the graph store failed in itself; if it does so again, tell who runs it")
    if found := _UNKNOWN_VARIABLE.search(error.message or ""):
        return QueryRefused(f"syntax: the variable {found[1]} is not defined where it is used", field="cypher_query")
    return QueryRefused(_ADVICE.get(code.removeprefix("Neo.ClientError."), _OTHER_ADVICE), field="cypher_query")


_OF_THE_TWIN = HIDDEN | {"hash", "version"}


class Values:
    """Values for one tenant. `adopted`: ids of nodes that came before they had one, by the store's own ids."""

    def __init__(self, ontology: Ontology, tenant: str, adopted: Mapping[str, str] | None = None) -> None:
        self._labels = ontology.nodes.keys()
        self._tenant = tenant
        self._adopted = adopted or {}

    def row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row by the names that its statement returns, without embeddings.

        Raises `Internal`: it holds a node that is not the tenant's, or the platform's own: the guard failed.
        """
        return {name: self.plain(value) for name, value in row.items() if not is_vector_name(name)}

    def node(self, node: Node) -> FoundNode:
        id = self._adopted.get(node.element_id) or str(node.get("key")).removeprefix(f"{self._tenant}/")
        knowledge = KNOWLEDGE in node.labels or node.element_id in self._adopted
        if node.get("tenant") != self._tenant or not (knowledge or node.labels & self._labels):
            log.error("a statement gave a node that its caller may not see")
            raise Internal("the answer was withheld")
        hidden = HIDDEN | {ID} if knowledge else _OF_THE_TWIN
        return FoundNode(
            id=id, labels=tuple(sorted(node.labels - {KNOWLEDGE})), properties=self._properties(node.items(), hidden)
        )

    def plain(self, value: Any) -> Any:
        match value:
            case None | bool() | int() | str():
                return value
            case float():
                return value if math.isfinite(value) else None
            case Node() | Relationship() | Path():
                return self._entity(value)
            case Mapping():
                return self._properties(value.items(), _hidden_keys(value))
            case Duration() | Point():  # both are tuples
                return _plain_value(value)
            case list() | tuple() | set() | frozenset():
                return [self.plain(member) for member in value]
        return _plain_value(value)

    def _entity(self, value: Node | Relationship | Path) -> dict[str, Any]:
        match value:
            case Node():
                return self.node(value).model_dump(mode="json")
            case Relationship():
                shown = self._properties(value.items(), HIDDEN | {RELATIONSHIP_ID})
                return {"id": value.get(RELATIONSHIP_ID), "type": value.type, "properties": shown}
        return {
            "nodes": [self._entity(node) for node in value.nodes],
            "relationships": [self._entity(relationship) for relationship in value.relationships],
        }

    def _properties(self, items: Iterable[tuple[str, Any]], hidden: frozenset[str]) -> dict[str, Any]:
        return {name: self.plain(value) for name, value in items if name not in hidden and not is_vector_name(name)}


def _hidden_keys(value: Mapping[str, Any]) -> frozenset[str]:
    """What to leave out of a map: it may be all properties of a node, as `properties()` gives them."""
    if not {"tenant", "key"} <= value.keys():
        return frozenset()
    return HIDDEN if ID in value else _OF_THE_TWIN


def _plain_value(value: object) -> Any:
    match value:
        case Date() | Time() | DateTime() | Duration():
            return value.iso_format()
        case date() | datetime() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Point():
            return {"srid": value.srid, "coordinates": list(value)}
        case bytes() | bytearray():
            return base64.b64encode(value).decode()
    return None  # a vector, or a kind of value that this version does not know


MOST_BYTES = 480_000
"""Of the rows of one answer; a message takes 512 KiB."""
_AT_ONCE = 8
"""Statements of callers that run at once in this process: fewer than there are connections, so that the rest goes on."""
_WAIT = 2.0
"""Seconds that a statement waits for its turn."""


class BoltQueries:
    """Runs statements of callers. `dialect`: whether the store can explain a statement before it runs."""

    def __init__(self, bolt: Bolt, schema: Schema, ontology: Ontology, dialect: Dialect) -> None:
        self._bolt, self._schema, self._ontology = bolt, schema, ontology
        self._explains = dialect is Dialect.NEO4J
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def ready(self) -> None:
        await self._schema.declared()

    async def read(self, tenant: str, statement: str, parameters: Mapping[str, Any], most: int) -> StatementResult:
        async def work(transaction: Transaction) -> StatementResult:
            if self._explains:
                await _explain(transaction, statement, parameters)
            rows = RowCollector(Values(self._ontology, tenant), most)
            await run_statement(transaction, statement, parameters, rows.take)
            return rows.found()

        async with self.place():
            try:
                return await self._bolt.ask(work)
            except TimedOut as error:
                raise query_timeout_error() from error

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """One of the places for statements of callers, for the length of a block. Raises `Busy`: none came free in time."""
        try:
            async with asyncio.timeout(_WAIT):
                await self._places.acquire()
        except TimeoutError as error:
            raise Busy("too many queries run at this moment", retry_after=1) from error
        try:
            yield
        finally:
            self._places.release()


class RowCollector:
    """Rows of an answer, until there are enough."""

    def __init__(self, values: Values, most: int) -> None:
        self._values, self._most = values, most
        self._rows: list[dict[str, Any]] = []
        self._bytes = 0
        self._truncated = False

    def take(self, record: Record) -> bool:
        """Keep a record, and whether another one may come. Raises `TooLarge`: it is the first one, and fits into no answer."""
        row = self._values.row(dict(record))
        size = len(json.dumps(row, ensure_ascii=False).encode())
        if not self._rows and size > MOST_BYTES:
            raise TooLarge("one row is larger than an answer may be; return fewer properties")
        self._truncated = len(self._rows) >= self._most or self._bytes + size > MOST_BYTES
        if not self._truncated:
            self._rows.append(row)
            self._bytes += size + 1
        return not self._truncated

    def found(self) -> StatementResult:
        return StatementResult(tuple(self._rows), self._truncated)


async def run_statement(
    transaction: Transaction, statement: str, parameters: Mapping[str, Any], take: Callable[[Record], bool]
) -> ResultSummary:
    """Run a caller's statement. Raises `QueryRefused` (see its detail), `TimedOut`, `Neo4jError` (a passing fault)."""
    try:
        return await transaction.taken(statement, dict(parameters), take)
    except Neo4jError as error:
        if (refusal := refuse_statement(error)) is None:
            raise
        raise refusal from error
    except (OverflowError, TypeError, ValueError) as error:
        raise QueryRefused("a parameter holds a value that the store does not take", field="parameters") from error


async def _explain(transaction: Transaction, statement: str, parameters: Mapping[str, Any]) -> None:
    """Let the store compile the statement: what it does not understand, or takes for a write, is not run."""
    summary = await run_statement(transaction, f"EXPLAIN {statement}", parameters, lambda record: True)
    if summary.query_type != "r":
        raise QueryRefused("the query would write, and it may only read", field="cypher_query")
