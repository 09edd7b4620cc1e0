from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from phronesis_contracts import Internal
from phronesis_graph.bolt.schema import Schema
from phronesis_graph.settings import Dialect
from phronesis_graph.twin.ontology_file import load


class Store:
    """A store that notes the statements it ran, and waits before each until it may."""

    def __init__(self, orphans: list[str]) -> None:
        self.orphans = orphans
        self.ran: list[str] = []
        self.may = asyncio.Event()

    async def write(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        await self.may.wait()
        return await work(self)

    async def rows(self, statement: str, **parameters: object) -> list[dict[str, str]]:
        self.ran.append(statement)
        return [{"name": name} for name in self.orphans] if statement.startswith("SHOW INDEXES") else []


async def test_a_caller_that_gives_up_does_not_end_the_declaration() -> None:
    store = Store([])
    schema = Schema(store, load(), Dialect.ARCADEDB)  # type: ignore[arg-type]  # all that it uses
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await schema.declared()
    store.may.set()
    await schema.declared()
    assert store.ran
    assert len(store.ran) == len(set(store.ran))


async def test_an_index_that_an_interrupted_declaration_left_is_dropped_before_the_next_one() -> None:
    store = Store(["entityproject_key"])
    store.may.set()
    await Schema(store, load(), Dialect.NEO4J).declared()  # type: ignore[arg-type]  # all that it uses
    assert store.ran[1] == "DROP INDEX entityproject_key IF EXISTS"
    assert all(statement.startswith("CREATE ") for statement in store.ran[2:])


class Meeting(Store):
    """A store where another process made the same thing first, `times` times."""

    def __init__(self, times: int) -> None:
        super().__init__([])
        self.times = times
        self.may.set()

    async def rows(self, statement: str, **parameters: object) -> list[dict[str, str]]:
        if self.times and statement.startswith("CREATE (n0"):
            self.times -= 1
            raise Internal("the graph store did not take a statement")
        return await super().rows(statement, **parameters)


async def test_a_declaration_that_met_another_process_is_made_again() -> None:
    store = Meeting(2)
    await Schema(store, load(), Dialect.ARCADEDB).declared()  # type: ignore[arg-type]  # all that it uses
    assert len(store.ran) == len(set(store.ran))
    assert any(statement.startswith("CREATE (n0") for statement in store.ran)
