"""The gateway as a process of its own, and what becomes of requests when it stops or loses the broker."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from phronesis_gateway.auth.keys import new_secret
from phronesis_local.loopback import free_port
from phronesis_postgres import PostgresSettings
from tests.support.bus import broker, eventually, restarted
from tests.support.gateway import gateway, scripted_orchestrator
from tests.support.scripted_orchestrator import ScriptedOrchestrator
from tests.support.servers import NatsServer

MESSAGES = "/api/v1/conversations/messages"


@asynccontextmanager
async def process(nats: NatsServer, database: PostgresSettings, port: int, **more: str) -> AsyncIterator[Process]:
    """`python -m phronesis_gateway` on `port`, for the length of a block."""
    bus = nats.settings("gateway")
    environment = {
        "BUS_URL": bus.url,
        "BUS_PASSWORD_FILE": str(bus.password_file),
        "BUS_SIGNING_KEY_FILE": str(bus.signing_key_file),
        "BUS_TRUST_DIR": str(bus.trust_dir),
        "POSTGRES_DSN": database.dsn.get_secret_value(),
        "GATEWAY_PORT": str(port),
        **more,
    }
    running = await asyncio.create_subprocess_exec(sys.executable, "-m", "phronesis_gateway", env=environment, stderr=PIPE)
    try:
        yield running
    finally:
        with contextlib.suppress(ProcessLookupError):
            running.kill()
        await running.communicate()


async def test_a_port_that_is_taken_ends_the_process_with_a_reason(nats_server: NatsServer, database: PostgresSettings) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        async with process(nats_server, database, port) as running:
            _, said = await asyncio.wait_for(running.communicate(), 60)
    assert running.returncode == 1
    assert f"the gateway cannot listen on 127.0.0.1:{port}: Address already in use" in said.decode()
    assert "Traceback" not in said.decode()


@pytest.mark.verify
async def test_a_gateway_that_stops_ends_its_streams_and_its_waiting_requests_in_order(
    nats_server: NatsServer, database: PostgresSettings, orchestrator: ScriptedOrchestrator, tmp_path: Path
) -> None:
    secret, port = new_secret(), free_port()
    (tmp_path / "key").write_text(secret)
    orchestrator.slow.add("wait for me")
    bearer = {"Authorization": f"Bearer {secret}"}
    key = {"GATEWAY_BOOTSTRAP_KEY_FILE": str(tmp_path / "key")}
    base = f"http://127.0.0.1:{port}"
    async with process(nats_server, database, port, **key) as running, httpx.AsyncClient(base_url=base, timeout=20) as http:

        async def open_to_me() -> bool:
            try:
                return (await http.get("/api/v1/tools", headers=bearer)).status_code == 200
            except httpx.TransportError:
                return False

        await eventually(open_to_me, within=20)
        body = {"currentMessageText": "wait for me"}
        waiting = asyncio.create_task(http.post(MESSAGES, json=body, headers=bearer))
        turn = await orchestrator.arrived(text="wait for me")
        async with http.stream("GET", f"/api/v1/turns/{turn}/events", headers=bearer) as response:
            lines = response.aiter_lines()
            while not (await anext(lines)).startswith("event: accepted"):
                pass
            running.send_signal(signal.SIGTERM)
            rest = [line async for line in lines if line]
        answer = await waiting
        assert (answer.status_code, answer.json()["turn_id"]) == (202, turn)
        assert rest[-1].startswith("retry: ")
        _, said = await asyncio.wait_for(running.communicate(), 10)
    assert running.returncode == 0, said.decode()
    assert "Traceback" not in said.decode()


async def test_a_gateway_that_is_told_to_stop_is_not_ready_and_still_answers_for_a_while(
    nats_server: NatsServer, database: PostgresSettings, orchestrator: ScriptedOrchestrator
) -> None:
    """A load balancer that has not noticed yet sends new connections: each is answered, and told that it is the last."""
    port = free_port()
    async with process(nats_server, database, port) as running:

        async def asked() -> tuple[int, object, str | None] | None:
            try:
                async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=5) as http:
                    answer = await http.get("/health/ready")
            except httpx.TransportError:
                return None
            return answer.status_code, answer.json()["down"], answer.headers.get("connection")

        await eventually(lambda: _is(asked, (503, ["memory", "instructions", "graph", "media"], None)), within=20)
        running.send_signal(signal.SIGTERM)
        await eventually(lambda: _is(asked, (503, ["gateway"], "close")), within=5)
        await eventually(lambda: _is(asked, None), within=10)
        _, said = await asyncio.wait_for(running.communicate(), 10)
    assert running.returncode == 0, said.decode()


async def _is(asked: Callable[[], Awaitable[object]], wanted: object) -> bool:
    return await asked() == wanted


async def test_a_file_that_holds_no_key_ends_the_process(
    nats_server: NatsServer, database: PostgresSettings, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("not a key")
    key = {"GATEWAY_BOOTSTRAP_KEY_FILE": str(tmp_path / "key")}
    async with process(nats_server, database, free_port(), **key) as running:
        _, said = await asyncio.wait_for(running.communicate(), 60)
    assert (running.returncode, "the file with the first key holds no key" in said.decode()) == (1, True)


async def test_without_the_broker_requests_are_refused_at_once_and_it_comes_back_by_itself(
    database: PostgresSettings, tmp_path: Path
) -> None:
    async with (
        broker(tmp_path) as server,
        scripted_orchestrator(server),
        gateway(server, database, wait=10) as running,
    ):
        ann = await running.holder()

        async def status() -> tuple[int, str]:
            answer = await running.http.post(MESSAGES, json={"currentMessageText": "hi"}, headers=ann.headers, timeout=3)
            return answer.status_code, answer.json().get("code", "")

        assert await status() == (200, "")
        await server.kill()
        await eventually(lambda: not running.bus.connected)
        assert await status() == (503, "unavailable")
        ready = await running.http.get("/health/ready")
        assert (ready.status_code, ready.json()) == (503, {"ready": False, "down": ["gateway.bus"]})
        await restarted(server)
        await eventually(lambda: running.bus.connected)
        await server.declare()

        async def answered() -> bool:
            return (await status())[0] == 200

        await eventually(answered, within=20)
