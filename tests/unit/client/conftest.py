"""Fixtures of the client's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from phronesis import Client
from tests.support.fake_gateway import KEY, FakeGateway, Server, running


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
