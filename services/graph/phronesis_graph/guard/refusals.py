"""Why a statement is refused: the rules by name, in the order in which they are told."""

from __future__ import annotations

from enum import StrEnum

from phronesis_contracts.twin import QueryRefused

PREFIX = "MCP Constraint Violation:"


class Rule(StrEnum):
    """The rules of the guard. Where a statement breaks several, the first one here is told."""

    TEXT = "text"
    SIZE = "size"
    SYNTAX = "syntax"
    PAGING = "paging"
    LEVEL = "level"
    EMBEDDING = "embedding"
    WRITING = "writing"
    TENANT = "tenant"
    CLAUSE = "clause"
    PROCEDURE = "procedure"
    FUNCTION = "function"
    LABEL = "label"
    RELATIONSHIP = "relationship"
    PATTERN = "pattern"
    DEPTH = "depth"
    PROPERTY = "property"
    VARIABLE = "variable"
    GROWTH = "growth"
    REGEX = "regex"
    LIMIT = "limit"
    PARAMETER = "parameter"
    UNAVAILABLE = "unavailable"


ORDER = tuple(Rule)


def refusal(rule: Rule, advice: str) -> QueryRefused:
    """The error of a broken rule; `advice` says what is wrong and what to write instead."""
    return QueryRefused(f"{PREFIX} {rule}: {advice}", field="cypher_query" if rule is not Rule.PARAMETER else "parameters")


PAGING = (
    "SKIP and OFFSET are not taken; page by key: WHERE n.id > $last_seen_id ... ORDER BY n.id LIMIT 30"
    " (keyset paging, last_seen_id is the last id of the page before)"
)
SLICES = "do not page through a collected list; page by key: WHERE n.id > $last_seen_id ... ORDER BY n.id LIMIT 30 (keyset)"
LEVELS = (
    "one query follows the same-level rule: it names one of the levels L1, L2 and L3 only, except across PARENT_OF and the"
    " relationships that join levels; fix one end's level and return the other end's level as data"
)
LEVEL_FORM = "compare a level by = or IN with 'L1', 'L2', 'L3' or a parameter, or with another node's level"
EMBEDDINGS = (
    "embeddings are not read, and neither are whole nodes, relationships, paths or all their properties; return the"
    " properties you need (n.id, n.name), and use recall_memory to find by meaning"
)
READ_ONLY = "this tool is read-only; write MATCH ... RETURN"
