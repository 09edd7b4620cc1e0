from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic
from typing import Any, cast

import pytest
from neo4j import AsyncDriver
from neo4j.exceptions import Neo4jError

from phronesis_contracts import Internal, Unavailable
from phronesis_graph.bolt.driver import Bolt, Transaction
from phronesis_graph.settings import GraphSettings


class Driver:
    """A driver whose writes fail as often as it is told."""

    def __init__(self, code: str, times: int) -> None:
        self.error = Neo4jError._hydrate_neo4j(code=code, message="x")
        self.left = times
        self.at: list[float] = []
        self.opened = self.closed = 0

    def session(self, **settings: Any) -> Driver:
        self.opened += 1
        return self

    async def __aenter__(self) -> Driver:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.closed += 1

    async def execute_write(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        self.at.append(monotonic())
        if self.left:
            self.left -= 1
            raise self.error
        return await work(None)


async def write(driver: Driver) -> str:
    async def work(transaction: Transaction) -> str:
        return "done"

    store = cast(AsyncDriver, driver)
    return await Bolt(store, store, GraphSettings(write_timeout=60)).write(work)


@pytest.mark.req("K-072", "K-083", "T-019", "KC-019")
async def test_a_passing_fault_is_tried_again_with_growing_pauses() -> None:
    driver = Driver("Neo.TransientError.Transaction.DeadlockDetected", 4)
    assert await write(driver) == "done"
    pauses = [after - before for before, after in zip(driver.at, driver.at[1:], strict=False)]
    assert (len(driver.at), pauses[3] > pauses[0]) == (5, True)
    assert driver.opened == driver.closed == 5


@pytest.mark.req("K-072", "K-083")
async def test_a_fault_that_does_not_pass_ends_after_eight_tries() -> None:
    driver = Driver("Neo.TransientError.Transaction.DeadlockDetected", 100)
    with pytest.raises(Unavailable):
        await write(driver)
    assert (len(driver.at), driver.opened, driver.closed) == (8, 8, 8)


@pytest.mark.req("K-073")
async def test_a_callers_fault_is_tried_once() -> None:
    driver = Driver("Neo.ClientError.Statement.SyntaxError", 100)
    with pytest.raises(Internal):
        await write(driver)
    assert len(driver.at) == 1


async def test_what_filled_the_stores_memory_is_tried_once() -> None:
    driver = Driver("Neo.TransientError.General.MemoryPoolOutOfMemoryError", 100)
    with pytest.raises(Unavailable):
        await write(driver)
    assert len(driver.at) == 1


@pytest.mark.req("K-079", "K-080", "KC-026", "KC-025")
@pytest.mark.parametrize("url", ["bolt://localhost:7687", "neo4j+s://twin.example:7687", "bolt+s://twin.example:7687"])
async def test_addresses_with_and_without_tls_are_taken_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str
) -> None:
    (tmp_path / "password").write_text("long and unknown")
    given = {"URL": url, "USER": "writer", "PASSWORD_FILE": str(tmp_path / "password"), "DATABASE": "other"}
    for name, value in given.items():
        monkeypatch.setenv(f"GRAPH_{name}", value)
    settings = GraphSettings()
    assert (settings.url, settings.user, settings.database) == (url, "writer", "other")
    async with Bolt.open(settings):
        pass  # a driver connects when it is used


@pytest.mark.req("K-081", "K-087")
@pytest.mark.parametrize("password", ["", " \n", "neo4j", "writer"])
def test_a_password_that_is_none_is_refused_at_the_start(tmp_path: Path, password: str) -> None:
    (tmp_path / "password").write_text(password)
    with pytest.raises(ValueError, match="the password of writer"):
        GraphSettings(user="writer", password_file=tmp_path / "password").login()


@pytest.mark.req("K-082", "K-083")
async def test_fifty_calls_are_fifty_sessions_of_one_driver() -> None:
    driver = Driver("", 0)
    store = cast(AsyncDriver, driver)
    bolt = Bolt(store, store, GraphSettings())

    async def work(transaction: Transaction) -> str:
        return "done"

    assert {await bolt.write(work) for _ in range(50)} == {"done"}
    assert (driver.opened, driver.closed) == (50, 50)


@pytest.mark.req("K-078", "K-082", "KC-027")
async def test_the_store_is_reached_by_one_driver_of_its_makers_for_each_of_the_two_users(tmp_path: Path) -> None:
    async with Bolt.open(GraphSettings()) as bolt:
        drivers = {id(driver): driver for driver in vars(bolt).values() if isinstance(driver, AsyncDriver)}
        assert 1 <= len(drivers) <= 2
