"""Contracts of reading the twin by query: one guarded statement of a model or a caller."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field

from .errors import BadRequest
from .messages import Message, Rpc
from .principal import Role
from .tools import Tool


class QueryRefused(BadRequest):
    """The query is not one that may be read with; the detail names the rule, and what to write instead."""

    code = "graph.query_refused"


class ReadCypher(Message):
    """One question to the twin."""

    model_config = ConfigDict(extra="forbid")

    cypher_query: str = Field(min_length=1, max_length=8_000)
    """One reading statement."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Values for its `$names`, for instance year, level or last_seen_id."""


class CypherRows(Message):
    """What it read."""

    rows: tuple[dict[str, Any], ...]
    truncated: bool = False
    """Whether there were more rows, or more bytes, than one answer takes."""
    warnings: tuple[str, ...] = ()
    """What was allowed and could be written better."""


READ_CYPHER = Rpc("graph.v1.cypher.read", ReadCypher, CypherRows, timeout=15.0)
READ_CYPHER_TOOL = Tool(
    "read_neo4j_cypher",
    "Step 3, recall: read the twin with one Cypher statement. Page by key (WHERE n.id > $last_seen_id ORDER BY n.id LIMIT 30),"
    " join nodes of one level only, never read embeddings, and return id and name or aggregates; count before listing.",
    READ_CYPHER,
    roles=frozenset({Role.NOOR, Role.MAESTRO, Role.ADMIN}),
)
