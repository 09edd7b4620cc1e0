"""What the broker itself refuses, with the users and permissions that are made from the contracts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from nats.aio.client import Client
from nats.errors import Error as NatsError

from phronesis_bus import Bus
from phronesis_contracts.catalog import ASKS
from phronesis_contracts.orchestrator import PROGRESS, TURN
from phronesis_contracts.service import SERVICES
from tests.support.bus import connected, eventually
from tests.support.servers import NatsServer


async def refused(bus: Bus, what: str) -> None:
    """Wait until the broker has refused something of `bus` that has to do with `what`."""
    await eventually(lambda: what in str(bus.nats.last_error or "").lower(), within=3)


@pytest.fixture
async def bus(server: NatsServer, request: pytest.FixtureRequest) -> AsyncIterator[Bus]:
    async with connected(server, request.param) as (bus,):
        yield bus


@pytest.fixture
async def server(nats_server: NatsServer) -> NatsServer:
    return nats_server


@pytest.mark.parametrize("bus", SERVICES, indirect=True)
@pytest.mark.parametrize(
    "subject",
    [
        "evt.acme.{other}.v1.changed",
        "$JS.API.STREAM.DELETE.JOB",
        "$JS.API.STREAM.CREATE.MINE",
        "$JS.API.STREAM.PURGE.EVT",
        "$JS.API.CONSUMER.MSG.NEXT.EVT.{other}-x",
        "$JS.API.CONSUMER.DURABLE.CREATE.JOB.mine",
        "parked.{other}-x",
        "$SYS.REQ.SERVER.PING",
    ],
)
async def test_a_service_cannot_publish_what_is_anothers(bus: Bus, subject: str) -> None:
    other = "graph" if bus.name != "graph" else "memory"
    await bus.nats.publish(subject.format(other=other), b"{}")
    await refused(bus, "permissions violation for publish")


@pytest.mark.parametrize("bus", [name for name in SERVICES if name != "gateway"], indirect=True)
async def test_only_the_gateway_tells_turns(bus: Bus) -> None:
    await bus.nats.publish(TURN.on("acme"), b"{}")
    await refused(bus, "permissions violation for publish")


@pytest.mark.parametrize("bus", SERVICES, indirect=True)
async def test_a_service_can_ask_along_the_arrows_alone(bus: Bus) -> None:
    for other in SERVICES:
        if other in ASKS[bus.name]:
            continue
        bus.nats._err = None
        await bus.nats.publish(f"rpc.acme.{other}.v1.health", b"{}")
        await refused(bus, "permissions violation for publish")


@pytest.mark.parametrize("bus", SERVICES, indirect=True)
@pytest.mark.parametrize(
    ("subject", "queue"),
    [
        ("_INBOX.>", ""),
        ("_INBOX.>", "q"),
        (">", ""),
        ("rpc.>", ""),
        ("rpc.*.{other}.>", "{other}"),
        ("job.>", ""),
        ("evt.>", ""),
        ("$JS.API.>", ""),
        ("$O.>", ""),
    ],
)
async def test_a_service_cannot_hear_what_is_anothers(bus: Bus, subject: str, queue: str) -> None:
    other = "graph" if bus.name != "graph" else "memory"
    await bus.nats.subscribe(subject.format(other=other), queue=queue.format(other=other))
    await refused(bus, "permissions violation for subscription")


async def test_only_the_gateway_hears_progress(server: NatsServer) -> None:
    for name in SERVICES:
        async with connected(server, name) as (bus,):
            await bus.nats.subscribe(PROGRESS.on("*", "*", "*"))
            if name == "gateway":
                await bus.ping()
                assert bus.nats.last_error is None
            else:
                await refused(bus, "permissions violation for subscription")


async def test_a_user_without_the_right_password_is_not_let_in(server: NatsServer) -> None:
    wrong = server.settings("memory").model_copy(update={"password_file": server.settings("graph").password_file})
    password = wrong.password()
    assert password is not None
    client = Client()
    with pytest.raises((NatsError, asyncio.TimeoutError)):
        await client.connect(wrong.url, user="memory", password=password.get_secret_value(), allow_reconnect=False)
