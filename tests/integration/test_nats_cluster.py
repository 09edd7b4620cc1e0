"""Three brokers with the files of a deployment: what one of them stored is not lost with it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from nats.errors import Error as NatsError

from phronesis_bus import Bus, BusSettings, Call, connect, take, tell
from phronesis_bus.declare import DeclarationError, declare
from phronesis_bus.secrets import make
from phronesis_contracts import ServiceError
from phronesis_contracts.orchestrator import TURN, SubmitTurn
from phronesis_local.loopback import LOOPBACK, free_port
from tests.support.bus import eventually, jetstream, somebody
from tests.support.certificates import Authority
from tests.support.nats_deployment import DeployedNats

pytestmark = pytest.mark.verify


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[dict[str, DeployedNats]]:
    """Three servers by name, which know each other by their certificates."""
    make(folder / "secrets")
    authority = Authority(folder / "authority")
    ports = {f"nats-{number}": free_port() for number in range(3)}
    routes = ",".join(f"nats://{LOOPBACK}:{port}" for port in ports.values())
    async with AsyncExitStack() as stack:
        servers = {}
        for name, port in ports.items():
            flags = ["--name", name, "--cluster", f"nats://{LOOPBACK}:{port}", "--routes", routes]
            server = DeployedNats(folder / name, folder / "secrets", "cluster.conf", authority, flags=flags)
            servers[name] = server
            await server._child.start()
            stack.push_async_callback(server.kill)
        for server in servers.values():
            await server._child.wait_ready()
        yield servers


def settings(servers: dict[str, DeployedNats], name: str) -> BusSettings:
    """How a service connects to all of them, whichever is up."""
    one = next(iter(servers.values())).settings(name)
    return one.model_copy(update={"url": ",".join(server.url for server in servers.values()), "replicas": 3})


async def declared(bus: Bus) -> bool:
    try:
        await declare(bus)
    except (DeclarationError, NatsError, TimeoutError, OSError):
        return False  # the servers have not found each other yet
    return True


async def test_turns_go_on_when_the_server_that_leads_their_stream_dies(tmp_path: Path) -> None:
    async with (
        cluster(tmp_path) as servers,
        connect("declare", settings(servers, "declare")) as admin,
        connect("gateway", settings(servers, "gateway")) as gateway,
        connect("orchestrator", settings(servers, "orchestrator")) as orchestrator,
    ):
        await eventually(lambda: declared(admin))
        found = await jetstream(admin, "STREAM.INFO.JOB")
        assert (found["config"]["num_replicas"], len(found["cluster"]["replicas"])) == (3, 2)
        turns: list[str] = []

        async def on_turn(call: Call, turn: SubmitTurn) -> None:
            turns.append(turn.text)

        async def told(text: str) -> bool:
            try:
                await tell(gateway, somebody(), TURN, SubmitTurn(idempotency_key=text, text=text))
            except ServiceError:
                return False  # nobody leads the stream for a moment
            return True

        await eventually(lambda: told("before"))
        await servers[found["cluster"]["leader"]].kill()
        await eventually(lambda: told("after"))
        await take(orchestrator, TURN, on_turn)
        await eventually(lambda: {"before", "after"} <= set(turns))


async def test_a_stranger_is_not_one_of_the_cluster(tmp_path: Path) -> None:
    """Its certificate is another authority's, whatever else it knows."""
    async with cluster(tmp_path) as servers:
        first = next(iter(servers.values()))
        flags = first._child.program.command[-2:]
        stranger = DeployedNats(
            tmp_path / "stranger",
            first.secrets,
            "cluster.conf",
            Authority(tmp_path / "another"),
            flags=["--name", "nats-3", "--cluster", f"nats://{LOOPBACK}:{free_port()}", *flags],
        )
        await stranger._child.start()
        try:
            await eventually(lambda: b"TLS route handshake error" in (tmp_path / "stranger" / "log").read_bytes())
            assert json.loads((await stranger.http("/routez")).partition(b"\r\n\r\n")[2])["num_routes"] == 0
        finally:
            await stranger.kill()
