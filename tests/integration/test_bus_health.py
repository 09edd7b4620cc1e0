"""What the platform that runs a process hears of it, on the port of its metrics."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import httpx

from phronesis_local.loopback import free_port
from tests.support.bus import broker, connected, eventually, restarted
from tests.support.servers import NatsServer


async def test_a_process_can_be_asked_while_it_is_wired_and_has_the_broker(tmp_path: Path) -> None:
    async with broker(tmp_path) as server, connected(server, "memory") as (bus,):
        assert not bus.ready
        bus.up.set()
        assert bus.ready
        await server.kill()
        await eventually(lambda: not bus.ready)
        await restarted(server)
        await eventually(lambda: bus.ready)
        await bus.stop()
        assert not bus.ready


async def test_the_declaring_program_is_ready_when_it_has_declared_and_lives_on_without_the_broker(tmp_path: Path) -> None:
    port = free_port()
    async with broker(tmp_path) as server:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "phronesis_bus.declare"), env={**os.environ, **variables(server, port)}
        )
        try:
            await eventually(lambda: answers(port, "ready", 200))
            await server.kill()
            await eventually(lambda: answers(port, "ready", 503))
            assert await answers(port, "live", 200)
        finally:
            process.terminate()
            await process.wait()


async def test_a_service_that_still_waits_for_its_broker_stops_when_it_is_told_to(tmp_path: Path) -> None:
    absent = {"BUS_URL": f"nats://127.0.0.1:{free_port()}", "MEDIA_SCRATCH": str(tmp_path)}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "phronesis_media"), env={**os.environ, **absent}, stderr=PIPE
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(30):
            while b"broker" not in await process.stderr.readline():
                pass
            process.terminate()
            await process.communicate()
        assert process.returncode == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()


def variables(server: NatsServer, port: int) -> dict[str, str]:
    settings = server.settings("declare")
    return {
        "BUS_URL": settings.url,
        "BUS_PASSWORD_FILE": str(settings.password_file),
        "BUS_SIGNING_KEY_FILE": str(settings.signing_key_file),
        "BUS_TRUST_DIR": str(settings.trust_dir),
        "BUS_METRICS_LISTEN": f"127.0.0.1:{port}",
    }


async def answers(port: int, what: str, status: int) -> bool:
    async with httpx.AsyncClient() as client:
        try:
            return (await client.get(f"http://127.0.0.1:{port}/health/{what}")).status_code == status
        except httpx.TransportError:
            return False
