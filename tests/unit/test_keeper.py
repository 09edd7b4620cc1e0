"""The process that keeps what the workers of a run share, and ends what a run leaves behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from phronesis_local.loopback import free_port
from tests.support.shared import ROOT, port_range, quick_folder

_RUN = """
import subprocess, sys
from tests.support.shared import Kept, folder
kept = Kept(1)
left = subprocess.Popen(["sleep", "600"], start_new_session=True)
print(left.pid, folder(), flush=True)
sys.stdin.read()
kept.end()
print(left.wait(), flush=True)
"""


def test_a_run_that_is_killed_leaves_no_process_behind() -> None:
    """Nothing of the run is there any more to stop them: the keeper hears of its end by its standard input."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", _RUN], cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as run:
        assert run.stdout is not None
        left = psutil.Process(int(run.stdout.readline().split()[0]))
        run.kill()
    psutil.wait_procs([left], timeout=60)
    assert not left.is_running() or left.status() == psutil.STATUS_ZOMBIE


def test_what_a_run_forgot_to_stop_is_ended_with_it_and_its_folder_is_gone() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", _RUN], cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as run:
        assert run.stdout is not None
        assert run.stdin is not None
        folder = run.stdout.readline().split()[1]
        assert os.path.isdir(folder)
        run.stdin.close()
        assert int(run.stdout.readline()) != 0
    assert not os.path.exists(folder)


def test_a_process_draws_its_ports_from_its_own_range() -> None:
    """Two workers that draw the same port at once would each start a server on it."""
    lowest, highest = port_range()
    drawn = [free_port() for _ in range(200)]
    assert [port for port in drawn if not lowest <= port <= highest] == []


@pytest.mark.parametrize(("name", "room", "chosen"), [("there", 1, True), ("there", 2**60, False), ("not there", 1, False)])
def test_the_shared_servers_write_into_memory_where_it_has_room(tmp_path: Path, name: str, room: int, chosen: bool) -> None:
    (tmp_path / "there").mkdir()
    memory = tmp_path / name
    assert quick_folder(memory, room) == (memory if chosen else None)
