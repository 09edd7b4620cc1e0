"""Fixtures of the client's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
import typer.main

from phronesis import Client
from tests.support.fake_gateway import KEY, FakeGateway, Server, running


@pytest.fixture(scope="session", autouse=True)
def _commands_made_once() -> Iterator[None]:
    """The command's tree of eighty commands is the same for each call: making it takes longer than most calls."""
    main: Any = typer.main
    made: Callable[..., Any] = main.get_command
    main.get_command = cache(made)
    yield
    main.get_command = made


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The server on which the fake gateways of all these tests answer."""
    with running() as server:
        yield server


@pytest.fixture
def gateway(server: Server) -> FakeGateway:
    """A fake gateway of this test's own."""
    return server.fresh()


@pytest.fixture
def client(gateway: FakeGateway) -> Iterator[Client]:
    """A client of it."""
    with Client(gateway.url, KEY) as client:
        yield client
