from __future__ import annotations

import logging

import pytest
from neo4j.exceptions import Neo4jError

from phronesis_contracts import Conflict, Internal, TimedOut
from phronesis_contracts.twin import QueryRefused
from phronesis_graph.bolt.queries import refuse_statement
from tests.support.cases import for_each
from tests.support.logs import logged


def failure(code: str, text: str = "the name Ann is in this text") -> Neo4jError:
    return Neo4jError._hydrate_neo4j(code=code, message=text)


@pytest.mark.req("K-068", "K-069", "N-147", "NC-071")
@for_each(
    ("code", "kind", "word"),
    [
        ("Neo.ClientError.Statement.SyntaxError", QueryRefused, "syntax"),
        ("Neo.ClientError.Statement.ParameterMissing", QueryRefused, "parameters"),
        ("Neo.ClientError.Statement.TypeError", QueryRefused, "type"),
        ("Neo.ClientError.Statement.ArithmeticError", QueryRefused, "zero"),
        ("Neo.ClientError.Statement.AccessMode", QueryRefused, "only read"),
        ("Neo.ClientError.Security.Forbidden", QueryRefused, "only read"),
        ("Neo.ClientError.Statement.Unheard", QueryRefused, "simpler"),
        ("Neo.ClientError.Schema.ConstraintValidationFailed", Conflict, "unique"),
        ("Neo.ClientError.Transaction.TransactionTimedOut", TimedOut, "too long"),
        ("Neo.TransientError.General.OutOfMemoryError", QueryRefused, "memory"),
        ("Neo.TransientError.General.MemoryPoolOutOfMemoryError", QueryRefused, "memory"),
        ("Neo.DatabaseError.General.UnknownError", Internal, "in itself"),
    ],
)
def test_each_fault_of_a_statement_is_told_in_words_of_ours(code: str, kind: type[Exception], word: str) -> None:
    found = refuse_statement(failure(code))
    assert type(found) is kind
    assert word in str(found)
    assert "Ann" not in str(found)


@pytest.mark.req("K-068", "K-072")
def test_a_passing_fault_is_none_of_the_statements() -> None:
    assert refuse_statement(failure("Neo.TransientError.Transaction.DeadlockDetected")) is None


@pytest.mark.req("K-038", "K-070")
def test_a_variable_that_is_not_defined_is_named() -> None:
    found = refuse_statement(
        failure("Neo.ClientError.Statement.SyntaxError", "Variable `m` not defined (line 1) MATCH (n {a: 'Ann'})")
    )
    assert str(found) == "syntax: the variable m is not defined where it is used"


@pytest.mark.req("K-071", "N-147")
def test_the_log_has_the_code_and_the_way_there_and_no_text_of_the_store(caplog: pytest.LogCaptureFixture) -> None:
    refuse_statement(failure("Neo.ClientError.Statement.SyntaxError"))
    [record] = logged(caplog, "graph")
    assert (record.levelno, record.message) == (
        logging.ERROR,
        "a statement of a caller failed in the store: Neo.ClientError.Statement.SyntaxError",
    )
    assert record.stack_info
    assert "Ann" not in caplog.text
