"""A supervisor leaves a store to recover its data for as long as it comes on, and ends one that hangs."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from phronesis_local import supervisor as supervising
from phronesis_local.layout import DataDir
from phronesis_local.processes import Child, ChildFailed, Program
from phronesis_local.supervisor import SupervisedPart, Supervisor
from tests.support.bus import eventually

pytestmark = pytest.mark.verify

_WITHIN = 2.5
_RECOVERS = """
import pathlib, sys, time
for part in range(14):
    print("recovered part", part, flush=True)
    time.sleep(0.5)
pathlib.Path(sys.argv[1]).touch()
time.sleep(600)
"""
_HANGS = """
import time
print("recovering", flush=True)
time.sleep(600)
"""
_STALLS_WHEN_TOLD = """
import pathlib, sys, time
ready, stall, talk = map(pathlib.Path, sys.argv[1:])
ready.touch()
while True:
    if stall.exists():
        ready.unlink(missing_ok=True)
    if talk.exists():
        print("recovered a part", flush=True)
    time.sleep(0.1)
"""


@pytest.fixture
def data(tmp_path: Path) -> DataDir:
    data = DataDir(tmp_path)
    data.create()
    return data


@pytest.fixture
async def supervisor(data: DataDir) -> AsyncIterator[Supervisor]:
    supervisor = Supervisor(data, lambda: None)
    yield supervisor
    await supervisor.stop(*supervisor.parts)


def store(data: DataDir, script: str, *files: Path, recovers: bool = True) -> Program:
    """A store that is ready while the first of the files is there."""
    ready = (files or (data.root / "ready",))[0]

    async def is_ready() -> bool:
        return ready.exists()

    command = [sys.executable, "-c", script, *map(str, files or (ready,))]
    return Program("store", command, data.log("store"), {}, is_ready, ready_within=_WITHIN, recovers=recovers)


async def test_a_store_whose_log_goes_on_is_left_to_recover_beyond_its_time(data: DataDir, supervisor: Supervisor) -> None:
    began = time.monotonic()
    part = supervisor.keep(store(data, _RECOVERS))
    await eventually(lambda: part.record.state == "recovering", within=20)
    pid = part.child.pid
    async with asyncio.timeout(60):
        await supervisor.up("store")
    assert (part.record.state, part.child.pid, part.record.restarts) == ("up", pid, 0)
    assert time.monotonic() - began > 2 * _WITHIN


async def test_a_store_that_says_nothing_more_hangs_and_is_ended(data: DataDir) -> None:
    child = Child(store(data, _HANGS))
    await child.start()
    try:
        async with asyncio.timeout(30):
            with pytest.raises(ChildFailed, match="not ready in time\nrecovering"):
                await child.wait_ready()
    finally:
        child.kill()


async def test_a_program_that_has_nothing_to_recover_has_its_time_whatever_it_says(data: DataDir) -> None:
    child = Child(store(data, _RECOVERS, recovers=False))
    await child.start()
    try:
        async with asyncio.timeout(6):
            with pytest.raises(ChildFailed, match="not ready in time"):
                await child.wait_ready()
    finally:
        child.kill()


async def test_a_running_store_that_stops_answering_is_left_while_it_recovers_and_started_again_when_it_hangs(
    data: DataDir, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervising, "_SILENT", 2.0)
    monkeypatch.setattr(supervising, "_LOOK", 0.2)
    ready, stall, talk = (data.root / name for name in ("ready", "stall", "talk"))
    part: SupervisedPart = supervisor.keep(store(data, _STALLS_WHEN_TOLD, ready, stall, talk))
    await supervisor.up("store")
    pid = part.child.pid
    talk.touch()
    stall.touch()
    await eventually(lambda: part.record.state == "recovering", within=20)
    assert (part.child.pid, part.record.restarts) == (pid, 0)
    talk.unlink()
    stall.unlink()
    await eventually(lambda: part.record.restarts == 1, within=20)
    assert part.child.pid != pid


async def test_a_store_that_answers_is_not_asked_whether_it_recovers(
    data: DataDir, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervising, "_LOOK", 0.1)
    seen: list[str] = []

    async def is_ready() -> bool:
        seen.append("ready")
        return True

    async def says_it_recovers() -> bool:
        seen.append("asked")
        return False

    program = replace(store(data, _HANGS), ready=is_ready, says_it_recovers=says_it_recovers)
    part = supervisor.keep(program)
    await eventually(lambda: len(seen) >= 6, within=20)
    assert (part.record.state, set(seen)) == ("up", {"ready"})
