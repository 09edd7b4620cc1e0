"""What a store says of a caller's statement, in words of ours that help to repair it. The store's own text stays here."""

from __future__ import annotations

import logging
import re

from neo4j.exceptions import Neo4jError, TransientError

from phronesis_contracts import Conflict, Internal, ServiceError, TimedOut
from phronesis_contracts.cypher import QueryRefused

from .translating import TOO_LONG

log = logging.getLogger(__name__)

_UNKNOWN_VARIABLE = re.compile(r"Variable `([A-Za-z_][A-Za-z0-9_]{0,63})` not defined")
_FORM = "syntax: the store cannot compile the query; check brackets and clauses, and that each variable is bound before its use"
_SAID = {
    "Statement.SyntaxError": _FORM,
    "Statement.SemanticError": _FORM,
    "Statement.ParameterMissing": "a $name of the query has no value; give each one in parameters",
    "Statement.TypeError": "an operation meets a value of another type; convert it by toString(), toInteger() or toFloat()",
    "Statement.ArithmeticError": "a calculation has no result; mind a division by zero",
    "Statement.ArgumentError": "a function got an argument that it does not take",
    "Statement.AccessMode": "the query would write, and it may only read",
    "Security.Forbidden": "the query would write, and it may only read",
}
_OTHER = "the store does not take the query; write it in simpler steps, with MATCH, WHERE and RETURN"


def too_slow() -> TimedOut:
    """The refusal of a statement that took too long."""
    return TimedOut("the query took too long and was stopped; name labels, filter earlier, and return less")


def complaint(error: Neo4jError) -> ServiceError | None:
    """The refusal of a caller's statement that failed; `None` for a passing fault, after which it may be tried again."""
    code = error.code or ""
    if "OutOfMemory" in code or "MemoryPool" in code:
        return QueryRefused("the query needs too much memory; filter earlier, collect less, and return less")
    if code.startswith(TOO_LONG):
        return too_slow()
    if isinstance(error, TransientError):
        return None
    log.error("a statement of a caller failed in the store: %s", code, stack_info=True)
    if code == "Neo.ClientError.Schema.ConstraintValidationFailed":
        return Conflict("another node has the same value where values have to be unique; change it, or use that node")
    if not code.startswith("Neo.ClientError."):
        return Internal("the graph store failed in itself; if it does so again, tell who runs it")
    if found := _UNKNOWN_VARIABLE.search(error.message or ""):
        return QueryRefused(f"syntax: the variable {found[1]} is not defined where it is used", field="cypher_query")
    return QueryRefused(_SAID.get(code.removeprefix("Neo.ClientError."), _OTHER), field="cypher_query")
