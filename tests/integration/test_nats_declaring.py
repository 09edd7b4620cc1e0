"""The program that declares, as a process against the broker of a deployment."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from nats.errors import Error as NatsError

from phronesis_bus import Bus, connect
from phronesis_bus.declare import declare
from phronesis_bus.topology import consumers, streams
from phronesis_local.layout import inherited_environment
from phronesis_local.loopback import LOOPBACK, free_port
from tests.support.bus import eventually, jetstream
from tests.support.nats_deployment import DeployedNats, deployed

NAMES = {config["name"] for config in streams()}
pytestmark = pytest.mark.verify
DURABLES = {config["durable_name"] for _, config in consumers(1)}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[DeployedNats]:
    async with deployed(tmp_path) as server:
        yield server


@asynccontextmanager
async def program(server: DeployedNats, *arguments: str, **variables: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """The program, run with the secrets of its own user alone."""
    stated = {
        "BUS_URL": server.url,
        "BUS_PASSWORD_FILE": str(server.secrets / "nats-declare.password"),
        "BUS_SIGNING_KEY_FILE": str(server.secrets / "admission.pem"),
        "BUS_TRUST_DIR": str(server.secrets / "trust"),
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "phronesis_bus.declare", *arguments),
        env=inherited_environment() | stated | variables,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@asynccontextmanager
async def looking(server: DeployedNats) -> AsyncIterator[Bus]:
    """Somebody who may see what is declared."""
    settings = server.settings("declare").model_copy(update={"signing_key_file": None, "trust_dir": None})
    async with connect("declare", settings) as bus:
        yield bus


async def all_declared(bus: Bus) -> bool:
    """Whether every stream stands open, and every consumer."""
    try:
        found = (await jetstream(bus, "STREAM.LIST"))["streams"]
        lists = [await jetstream(bus, f"CONSUMER.LIST.{name}") for name in ("JOB", "OUTSIDE", "EVT")]
    except (NatsError, TimeoutError, KeyError, TypeError):
        return False
    opened = {stream["config"]["name"] for stream in found if stream["config"]["max_msg_size"] == -1}
    return (opened, {one["name"] for page in lists for one in page["consumers"] or ()}) == (NAMES, DURABLES)


async def test_once_declares_everything_and_ends_well(server: DeployedNats) -> None:
    async with program(server, "--once") as process, asyncio.timeout(50):
        assert await process.wait() == 0
    async with looking(server) as bus:
        assert await all_declared(bus)


async def test_what_stands_as_it_should_is_not_touched(server: DeployedNats) -> None:
    await server.declare()
    async with looking(server) as bus:
        before = await jetstream(bus, "INFO")
        await declare(bus)
        after = await jetstream(bus, "INFO")
    assert after["streams"] == before["streams"] == len(NAMES)
    questions = after["api"]["total"] - before["api"]["total"] - 1
    assert questions == len(NAMES) + len(consumers(1)), "how each is, and no more"


async def test_what_was_changed_by_hand_is_as_it_should_be_again(server: DeployedNats) -> None:
    await server.declare()
    async with looking(server) as bus:
        config = (await jetstream(bus, "STREAM.INFO.OUT"))["config"]
        await bus.request("$JS.API.STREAM.UPDATE.OUT", json.dumps(config | {"max_age": 10**9}).encode(), timeout=5)
        await server.declare()
        assert (await jetstream(bus, "STREAM.INFO.OUT"))["config"]["max_age"] == config["max_age"]


async def test_a_broker_that_comes_back_empty_has_its_streams_within_seconds(server: DeployedNats) -> None:
    async with program(server), looking(server) as bus:
        await eventually(lambda: all_declared(bus))
        await server.kill()
        shutil.rmtree(server.store)
        await server.bare()
        await eventually(lambda: all_declared(bus), within=15)


async def test_what_is_deleted_by_hand_is_back_within_seconds(server: DeployedNats) -> None:
    async with program(server), looking(server) as bus:
        await eventually(lambda: all_declared(bus))
        assert (await jetstream(bus, "STREAM.DELETE.PARKED"))["success"]
        assert (await jetstream(bus, f"CONSUMER.DELETE.EVT.{min(d for s, d in _durables() if s == 'EVT')}"))["success"]
        await eventually(lambda: all_declared(bus), within=20)


async def test_it_stays_shows_that_it_lives_and_ends_in_order_when_told(server: DeployedNats) -> None:
    port = free_port()

    async def lives() -> bool:
        try:
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
        except OSError:
            return False
        writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        answer = await reader.read()
        writer.close()
        return answer.startswith(b"HTTP/1.1 200") and b"connected 1.0" in answer

    async with program(server, BUS_METRICS_LISTEN=f"{LOOPBACK}:{port}") as process:
        await eventually(lives)
        process.terminate()
        async with asyncio.timeout(20):
            assert await process.wait() == 0


@pytest.mark.parametrize(("arguments", "code"), [((), 0), (("--once",), 143)])
async def test_it_waits_for_a_broker_and_ends_when_told_while_it_waits(
    server: DeployedNats, arguments: tuple[str, ...], code: int
) -> None:
    await server.kill()
    async with program(server, *arguments) as process, asyncio.timeout(50):
        assert process.stderr is not None
        assert b"broker" in await process.stderr.readline()
        process.terminate()
        assert await process.wait() == code


async def test_a_refusal_is_said_and_ends_the_one_run_with_an_error(server: DeployedNats) -> None:
    async with program(server, "--once", BUS_REPLICAS="3") as process, asyncio.timeout(50):
        assert process.stderr is not None
        said = await process.stderr.read()
        assert await process.wait() == 1
    assert b"could not declare: STREAM.CREATE.JOB" in said
    assert b"Traceback" not in said


def _durables() -> list[tuple[str, str]]:
    return [(stream, config["durable_name"]) for stream, config in consumers(1)]
