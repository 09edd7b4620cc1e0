"""The commands `up --detach`, `status`, `doctor` and `down` on a whole stack: three servers, six services."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from phronesis_local.layout import read_record
from phronesis_local.loopback import http_status
from phronesis_local.parts import SERVICES
from tests.support.production import SERVERS
from tests.support.stack import RunningStack

pytestmark = [pytest.mark.verify, pytest.mark.stores, pytest.mark.timeout(180)]


def _command(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "phronesis_local", *arguments, "--data", str(data)]
    return subprocess.run(command, capture_output=True, text=True, timeout=150)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data directory of a stack that the command has started."""
    folder = tmp_path_factory.mktemp("whole")
    started = _command(folder, "up", "--detach", "--port", "0")
    assert started.returncode == 0, started.stdout + started.stderr
    assert (folder / "key").read_text() in started.stdout
    assert (folder / "url").read_text() in started.stdout
    yield folder
    _command(folder, "down")


def test_every_part_is_up(folder: Path) -> None:
    said = _command(folder, "status", "--json")
    assert said.returncode == 0
    states = {part["name"]: part["state"] for part in json.loads(said.stdout)["parts"]}
    assert states == dict.fromkeys(("supervisor", *SERVERS, *SERVICES), "up")


def test_the_doctor_finds_nothing_wrong(folder: Path) -> None:
    said = _command(folder, "doctor", "--json")
    assert [finding for finding in json.loads(said.stdout) if not finding["ok"]] == []
    assert said.returncode == 0


def test_a_second_start_is_refused(folder: Path) -> None:
    said = _command(folder, "up", "--detach")
    assert said.returncode == 2
    assert (folder / "url").read_text() in said.stdout


async def test_the_gateway_answers_where_the_directory_says(folder: Path) -> None:
    port = int((folder / "url").read_text().rsplit(":", 1)[1])
    assert await http_status(port, "/health/ready") == 200


@pytest.mark.parametrize(
    "name", [name if name in ("graph", "memory") else pytest.param(name, marks=pytest.mark.any_store) for name in SERVICES]
)
async def test_a_killed_service_comes_back(folder: Path, name: str) -> None:
    stack = RunningStack(folder)
    before = stack.part(name)
    stack.process(name).kill()
    record = await stack.until(lambda now: now.parts[name].state == "up" and now.parts[name].restarts == before.restarts + 1)
    assert record.parts[name].port == before.port
    assert record.parts[name].process != before.process


async def test_down_leaves_no_process(folder: Path) -> None:
    stack = RunningStack(folder)
    record = read_record(stack.data)
    assert record is not None
    said = await asyncio.to_thread(_command, folder, "down")
    assert (said.returncode, said.stdout) == (0, "stopped\n")
    assert stack.left() == []
    assert record.supervisor.process() is None
    assert (await asyncio.to_thread(_command, folder, "status")).returncode == 1
