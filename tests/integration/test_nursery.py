"""The nursery, with small programs in place of services: what a forked process is, how its end is told, what outlives it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from phronesis_local.layout import DataDir, marked_processes, part_environment, read_record
from phronesis_local.nursery import NURSERY, Nursery
from phronesis_local.processes import Child, ChildFailed, Program, is_running
from tests.support.bus import eventually
from tests.support.stack import RunningStack, running

pytestmark = [pytest.mark.verify, pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux alone")]

_TELLS = """
import gc, json, os, random, signal, sys, threading
print(json.dumps({
    "name": __name__,
    "argv": sys.argv,
    "environment": dict(os.environ),
    "leads": os.getsid(0) == os.getpgid(0) == os.getpid(),
    "signals": [signal.getsignal(n) for n in (signal.SIGCHLD, signal.SIGTERM)],
    "stdin": sys.stdin.read(),
    "threads": threading.active_count(),
    "collects": gc.isenabled(),
    "random": random.random(),
    "shared": "phronesis_bus" in sys.modules,
}))
"""
_SMALL = ("nats", "media")
"""A stack with one service, which needs no store."""
_STAYS = "import time\nprint('stays', flush=True)\ntime.sleep(600)\n"
_ENDS = "raise SystemExit(3)\n"
_FAILS = "raise ValueError('so it is')\n"
_LEAVES = "import subprocess, sys\nprint(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']).pid)\n"


class Place:
    """A nursery, and modules that it can fork."""

    def __init__(self, folder: Path) -> None:
        self.data = DataDir(folder / "data")
        self.data.create()
        self._modules = folder / "modules"
        self._modules.mkdir()
        self.path = {"PYTHONPATH": str(self._modules)}
        self.nursery = Nursery(part_environment(self.data, NURSERY, self.path), self.data.log(NURSERY))
        self.children: list[Child] = []

    def module(self, name: str, text: str) -> Path:
        file = self._modules / f"{name}.py"
        file.write_text(text)
        return file

    async def child(self, name: str, text: str, *arguments: str, **environment: str) -> Child:
        """A started process that runs `text`."""
        self.module(name, text)
        given = part_environment(self.data, name, self.path | environment)

        async def ready() -> bool:
            return "stays" in self.data.log(name).read_text()

        child = Child(
            Program(name, [sys.executable, "-m", name, *arguments], self.data.log(name), given, ready), self.nursery.fork
        )
        self.children.append(child)
        await child.start()
        return child

    async def told(self, name: str, *arguments: str, **environment: str) -> dict[str, object]:
        """What a process tells of itself."""
        child = await self.child(name, _TELLS, *arguments, **environment)
        await child.wait_end()
        told: dict[str, object] = json.loads(self.data.log(name).read_text())
        return told

    def parent(self, child: Child) -> int:
        assert child.process is not None
        return child.process.ppid()


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Place]:
    """A place, and no process of it after the block."""
    place = Place(folder)
    try:
        yield place
    finally:
        for child in place.children:
            child.kill()
        place.nursery.close()
    await eventually(lambda: marked_processes(place.data) == [])


async def test_a_forked_process_is_what_an_executed_one_would_be(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        told = await place.told("first", "--to", "it", MINE="1")
        other = await place.told("second")
        file = place.module("first", _TELLS)
    assert told | {"random": 0} == {
        "name": "__main__",
        "argv": [str(file), "--to", "it"],
        "environment": part_environment(place.data, "first", place.path | {"MINE": "1"}),
        "leads": True,
        "signals": [signal.SIG_DFL, signal.SIG_DFL],
        "stdin": "",
        "threads": 1,
        "collects": True,
        "random": 0,
        "shared": True,
    }
    assert other["environment"] == part_environment(place.data, "second", place.path)
    assert other["random"] != told["random"]


async def test_a_forked_process_is_seen_from_outside_with_its_own_command_and_environment(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        child = await place.child("stays", _STAYS, MINE="1")
        process = child.process
        assert process is not None
        assert process.ppid() == place.nursery.pid
        assert process.environ() == part_environment(place.data, "stays", place.path | {"MINE": "1"})
        assert [part for part in process.cmdline() if part] == [sys.executable, "-m", "stays"]
        found = {(name, each.pid) for name, each in marked_processes(place.data)}
        assert found == {(NURSERY, place.nursery.pid), ("stays", process.pid)}


async def test_a_program_with_a_search_path_of_its_own_is_executed_with_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        path = os.pathsep.join((str(tmp_path / "elsewhere"), place.path["PYTHONPATH"]))
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "sitecustomize.py").write_text("import os\nos.environ['PATCHED'] = 'yes'\n")
        told = await place.told("patched", PYTHONPATH=path)
    assert told["environment"] == part_environment(place.data, "patched", {"PYTHONPATH": path}) | {"PATCHED": "yes"}


async def test_the_nursery_has_one_thread(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        await place.child("stays", _STAYS)
        assert psutil.Process(place.nursery.pid).num_threads() == 1


@pytest.mark.parametrize(("text", "code"), [(_ENDS, 3), (_FAILS, 1)])
async def test_what_a_process_ended_with_is_told_with_the_end_of_its_own_log(tmp_path: Path, text: str, code: int) -> None:
    async with opened(tmp_path) as place:
        child = await place.child("ends", text)
        with pytest.raises(ChildFailed, match=f"ends ended with code {code}"):
            await child.wait_ready()
        assert child.exit_code == code
        assert ("ValueError: so it is" in place.data.log("ends").read_text()) == (text == _FAILS)
        assert place.data.log(NURSERY).read_text() == ""


async def test_a_killed_process_is_told_as_killed_and_is_forked_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        child = await place.child("stays", _STAYS)
        await child.wait_ready()
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        await eventually(lambda: child.pid is None)
        await child.start()
        assert child.exit_code == -signal.SIGKILL
        assert place.parent(child) == place.nursery.pid


async def test_a_process_stops_when_it_is_asked(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        child = await place.child("stays", _STAYS)
        await child.stop()
        assert child.exit_code == -signal.SIGTERM


async def test_what_a_process_leaves_in_its_group_ends_with_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        child = await place.child("leaves", _LEAVES)
        await child.wait_end()
        left = int(place.data.log("leaves").read_text())
        await eventually(lambda: not (psutil.pid_exists(left) and is_running(psutil.Process(left))))


async def test_a_killed_nursery_is_replaced_and_what_it_forked_runs_on(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        old = await place.child("old", _STAYS)
        before, pid = place.nursery.pid, old.pid
        assert before is not None
        os.kill(before, signal.SIGKILL)
        await eventually(lambda: place.nursery.pid is None)
        new = await place.child("new", _STAYS)
        assert (old.pid, place.parent(new) == place.nursery.pid) == (pid, True)
        process = old.process
        old.kill()
        assert process is not None
        assert (old.exit_code, is_running(process)) == (None, False)


async def test_what_has_changed_on_the_disk_is_imported_anew_and_ends_are_still_told(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        place.module("yaml", "VALUE = 1\n")  # in the place of one that the nursery imports
        program = "import yaml\nprint('stays', yaml.VALUE, flush=True)\nimport time\ntime.sleep(600)\n"
        first = await place.child("first", program)
        await first.wait_ready()
        pid = place.nursery.pid
        place.module("yaml", "VALUE = 22\n")
        second = await place.child("second", program)
        await second.wait_ready()
        assert [place.data.log(name).read_text() for name in ("first", "second")] == ["stays 1\n", "stays 22\n"]
        assert [place.nursery.pid, place.parent(first), place.parent(second)] == [pid, pid, pid]
        first.kill()
        assert first.exit_code == -signal.SIGKILL


async def test_more_orders_than_a_socket_holds_are_all_carried_out(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        large = {"LARGE": "x" * 16_000}
        children = await asyncio.gather(*(place.child(f"stays{number}", _STAYS, **large) for number in range(30)))
        assert {place.parent(child) for child in children} == {place.nursery.pid}


async def test_what_does_not_fit_into_the_room_for_an_environment_is_executed(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        child = await place.child("stays", _STAYS, **{f"LARGE{number}": "x" * 60_000 for number in range(2)})
        assert place.parent(child) == os.getpid()


async def test_another_python_is_executed(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        program = Program("other", ["sleep", "600"], place.data.log("other"), dict(os.environ), asyncio.Event().wait)
        child = Child(program, place.nursery.fork)
        place.children.append(child)
        await child.start()
        assert (place.parent(child), place.nursery.pid) == (os.getpid(), None)


async def test_where_there_can_be_no_nursery_processes_are_executed(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        place.module("phronesis_bus", "raise SystemExit('it cannot be imported')\n")
        child = await place.child("stays", _STAYS)
        await child.wait_ready()
        assert (place.parent(child), place.nursery.pid) == (os.getpid(), None)


async def test_a_process_whose_start_was_given_up_does_not_stay(tmp_path: Path) -> None:
    async with opened(tmp_path) as place:
        starting = asyncio.create_task(place.child("stays", _STAYS))
        await eventually(lambda: place.nursery.pid is not None)
        starting.cancel()
        await asyncio.wait({starting})
        await place.told("next")  # orders are carried out in their order
        await eventually(lambda: [name for name, _ in marked_processes(place.data)] == [NURSERY])


async def test_a_killed_service_of_a_stack_is_forked_again_and_answers(tmp_path: Path) -> None:
    async with running(tmp_path, _SMALL) as stack:
        before = stack.process("media")
        nursery = _nursery(stack)
        assert before.ppid() == nursery.pid
        before.kill()
        await stack.until(lambda now: now.parts["media"].state == "up" and now.parts["media"].restarts == 1)
        assert stack.process("media").ppid() == nursery.pid


async def test_services_of_a_stack_outlive_their_nursery_and_the_next_one_is_forked_by_a_new_one(tmp_path: Path) -> None:
    async with running(tmp_path, _SMALL) as stack:
        before, nursery = stack.process("media"), _nursery(stack)
        nursery.kill()
        await stack.until(lambda now: now.parts["media"].state == "up")
        assert (stack.process("media"), stack.part("media").restarts) == (before, 0)
        before.kill()
        await stack.until(lambda now: now.parts["media"].state == "up" and now.parts["media"].restarts == 1)
        assert (stack.process("media").ppid() == _nursery(stack).pid, _nursery(stack) == nursery) == (True, False)


async def test_a_start_ends_the_forked_services_of_a_killed_supervisor(tmp_path: Path) -> None:
    async with running(tmp_path, _SMALL) as stack:
        assert stack.supervisor is not None
        before, nursery = stack.process("media"), _nursery(stack)
        stack.supervisor.kill()
        await eventually(lambda: not is_running(nursery))
        assert is_running(before)
        await stack.start()
        assert (is_running(before), stack.process("media").ppid()) == (False, _nursery(stack).pid)
    assert stack.left() == []


async def test_a_signal_while_the_nursery_imports_leaves_nothing(tmp_path: Path) -> None:
    stack = RunningStack(tmp_path, _SMALL)
    stack.supervisor = stack.launch()
    await stack.until(lambda now: now.nursery is not None)
    stack.supervisor.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(stack.supervisor.wait, 30) == 0
    assert stack.left() == []


def _nursery(stack: RunningStack) -> psutil.Process:
    """The nursery of a stack that runs."""
    record = read_record(stack.data)
    process = record.nursery.process() if record and record.nursery else None
    assert process is not None
    return process
