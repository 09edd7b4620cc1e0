"""Every call to a model, a store or the broker has a limit of time where it is made, and none is left to a default."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMITS: dict[str, frozenset[str]] = {
    "AsyncClient": frozenset({"timeout"}),
    "AsyncGroq": frozenset({"timeout"}),
    "create": frozenset({"timeout"}),
    "connect": frozenset({"connect_timeout"}),
    "create_pool": frozenset({"timeout", "command_timeout"}),
    "acquire": frozenset({"timeout"}),
    "driver": frozenset({"connection_timeout", "connection_acquisition_timeout"}),
    "begin_transaction": frozenset({"timeout"}),
    "unit_of_work": frozenset({"timeout"}),
    "AdditionalConfig": frozenset({"timeout"}),
    "request": frozenset({"timeout"}),
    "psycopg.connect": frozenset({"connect_timeout"}),
}
"""By the name of a call the arguments that bound it."""
RECEIVERS = {
    "request": ("bus", "nats", "client"),
    "connect": ("client",),
    "acquire": ("_pool",),
    "driver": ("AsyncGraphDatabase",),
    "create": ("completions", "transcriptions", "with_streaming_response"),
}
"""Names of others' methods too: on these objects alone they are meant."""


@cache
def calls() -> tuple[tuple[str, str, frozenset[str]], ...]:
    """Each call of services and their libraries that has to be bounded: place, name, and the arguments that bound it."""
    return tuple(_calls())


def _calls() -> Iterator[tuple[str, str, frozenset[str]]]:
    for path in sorted([*ROOT.glob("services/*/phronesis*/**/*.py"), *ROOT.glob("libs/[bp]*/phronesis*/**/*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.keywords and (name := _bounded(node.func)):
                given = frozenset(one.arg for one in node.keywords if one.arg)
                yield f"{path.relative_to(ROOT)}:{node.lineno}", name, given


def _bounded(called: ast.expr) -> str:
    whole = ast.unparse(called)
    receiver, _, name = whole.rpartition(".")
    if whole == "psycopg.connect":
        return whole
    meant = name in LIMITS and (name not in RECEIVERS or receiver.rpartition(".")[2] in RECEIVERS[name])
    return name if meant else ""


@pytest.mark.req("V-174")
def test_no_call_is_left_without_a_limit_of_time() -> None:
    assert [(place, name) for place, name, given in calls() if not given >= LIMITS[name]] == []


def test_calls_of_every_kind_are_found() -> None:
    found = {name for _, name, _ in calls()}
    assert found == set(LIMITS)
