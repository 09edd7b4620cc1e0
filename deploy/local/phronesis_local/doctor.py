"""What `phronesis doctor` looks at: the installation, and the stack if it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from . import arcadedb, nats, neo4j, postgres, weaviate
from .bolt import speaks_bolt
from .broker import DECLARER, bus_settings
from .environment import marked
from .finding import Finding
from .http import status_of
from .installation import look_at_installation
from .keys import password, password_file
from .layout import DataDir
from .parts import GATEWAY
from .ports import LOOPBACK, is_free
from .record import StackRecord, read
from .settings import DEFAULT_PORT, LocalSettings
from .stores import begun_with, look_at_programs

_SLOW = 60.0
_RESTLESS = 5


def look(data: DataDir, settings: LocalSettings) -> list[Finding]:
    """Everything that can be looked at from outside."""
    record = read(data)
    settings = settings.model_copy(update={"stores": begun_with(data) or settings.stores})
    found = [*look_at_installation(data), *look_at_programs(settings)]
    if record is None or record.supervisor.process() is None:
        return [*found, *_at_rest(data)]
    return [*found, *_parts(data, record), *asyncio.run(_running(data, record))]


def _at_rest(data: DataDir) -> list[Finding]:
    left = len(marked(data)) + len(postgres.workers(data.postgres))
    remedy = "phronesis down"
    found = f"{left} processes of a stack without a supervisor" if left else "not running, and nothing left behind"
    taken = "" if is_free(DEFAULT_PORT) else f"port {DEFAULT_PORT} is in use: another free one will be taken"
    return [
        Finding(what="stack", found=found, ok=not left, remedy=remedy),
        Finding(what="port", found=taken or f"{DEFAULT_PORT} is free"),
    ]


def _parts(data: DataDir, record: StackRecord) -> list[Finding]:
    found = []
    for name, part in record.parts.items():
        said = f"{part.state}, {part.restarts} restarts"
        well = part.state in ("up", "outside") and part.restarts < _RESTLESS
        found.append(Finding(what=name, found=said, ok=well, remedy=f"read {data.log(name)}"))
    if record.ready_seconds is not None:
        found.append(
            Finding(
                what="time to ready",
                found=f"{record.ready_seconds} s",
                ok=record.ready_seconds < _SLOW,
                remedy="look for other programs that keep the processors or the disk busy",
            )
        )
    return found


async def _running(data: DataDir, record: StackRecord) -> list[Finding]:
    checks: list[Awaitable[Finding]] = []
    ports = {name: part.port for name, part in record.parts.items() if part.state != "outside"}
    if port := ports.get(nats.NAME):
        checks.append(_answers(data, nats.NAME, nats.answers(port, password(data, DECLARER))))
        checks.append(_parked(data, f"nats://{LOOPBACK}:{port}"))
    if postgres.NAME in ports:
        checks.append(_answers(data, postgres.NAME, postgres.answers(data.postgres)))
    for name in (arcadedb.NAME, neo4j.NAME):
        if port := ports.get(name):
            checks.append(_answers(data, name, speaks_bolt(port)))
    if port := ports.get(weaviate.NAME):
        checks.append(_answers(data, weaviate.NAME, weaviate.answers(port)))
    if port := ports.get(GATEWAY):
        checks.append(_gateway(port, record.url))
    return list(await asyncio.gather(*checks))


async def _answers(data: DataDir, name: str, asking: Awaitable[bool]) -> Finding:
    well = await asking
    found = "answers" if well else "does not answer"
    return Finding(what=f"{name} server", found=found, ok=well, remedy=f"read {data.log(name)}; the supervisor restarts it")


async def _gateway(port: int, url: str) -> Finding:
    status = await status_of(port, "/health/ready")
    found = "everything is ready" if status == 200 else f"answers {status}" if status else "does not answer"
    return Finding(what="readiness", found=found, ok=status == 200, remedy=f"{url}/health/ready names what is down")


async def _parked(data: DataDir, url: str) -> Finding:
    from phronesis_bus import connect
    from phronesis_bus.declare import parked
    from phronesis_contracts import Unavailable

    what = "parked messages"
    settings = bus_settings({"BUS_URL": url, "BUS_PASSWORD_FILE": str(password_file(data, DECLARER))})
    try:
        async with asyncio.timeout(5), connect(DECLARER, settings) as bus:
            count = await parked(bus)
    except (Unavailable, OSError, TimeoutError):
        return Finding(what=what, found="could not be counted", ok=False, remedy=f"read {data.log(nats.NAME)}")
    remedy = "the logs of the services name them and why; each header `Phronesis-Parked-Reason` says it too"
    return Finding(what=what, found=str(count), ok=count == 0, remedy=remedy)
