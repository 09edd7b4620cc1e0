"""`phronesis up` and `phronesis restart`: the life of a supervisor, a rolling restart, and what a person sees of both."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from stat import S_ISREG
from uuid import uuid4

from rich.console import Console
from rich.status import Status

from .layout import AlreadyRunning, DataDir, StackRecord, State, inherited_environment, read_record, write_atomically
from .parts import SERVICES, PortTaken, StoresRefused, check_stores, service_of
from .processes import ChildFailed, read_since, rotate
from .settings import LocalSettings
from .stack import Stack, end_leftovers
from .supervisor import RestartRequest, plan_restart

_WORDS: dict[State, str] = {
    "up": "up",
    "recovering": "recovers its data, which takes its time",
    "down": "DOWN",
    "stopped": "stopped",
    "outside": "another's, not started here",
}


class _Console(Console):
    """One whose reader may go away: then nothing is printed any more, and the stack runs on."""

    def on_broken_pipe(self) -> None:
        self.quiet = True


class Progress:
    """Prints what changed from one record to the next."""

    def __init__(self) -> None:
        console = self._console = _Console()
        self._seen: dict[str, tuple[State, int]] = {}
        self._began = time.monotonic()
        self._spinner: Status | None = console.status("starting") if console.is_terminal else None
        if self._spinner is not None:
            self._spinner.start()

    def show(self, record: StackRecord) -> None:
        for name, part in record.parts.items():
            now = (part.state, part.restarts)
            if self._seen.get(name) == now or part.state not in _WORDS:
                continue
            self._seen[name] = now
            took = f"  {part.seconds:5.1f} s" if part.state == "up" and part.seconds is not None else ""
            why = f": {part.reason.splitlines()[0]}" if part.state == "down" and part.reason else ""
            again = f" (start {part.restarts + 1})" if part.restarts else ""
            self.line(f"  {name:<15}{_WORDS[part.state]}{again}{took}{why}")
        waiting = [name for name, part in record.parts.items() if part.state in ("waiting", "starting", "recovering")]
        if self._spinner is not None:
            self._spinner.update(f"{record.state}: {', '.join(waiting) or 'the last checks'}")

    def line(self, text: str) -> None:
        try:
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)
        except OSError:  # the terminal is gone
            self._console.quiet = True

    def tell_key(self, data: DataDir, *, piped: bool = False) -> None:
        """Say where the owner's key is, and show it where it is not kept: at a terminal, and with `piped` through a pipe."""
        shown = self._console.is_terminal or (piped and not S_ISREG(os.fstat(sys.stdout.fileno()).st_mode))
        self.line("your key (kept in the data directory, file `key`)" + (f": {data.key.read_text().strip()}" if shown else ""))

    def done(self) -> None:
        if self._spinner is not None:
            self._spinner.stop()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began


OK, FAILED, REFUSED = 0, 1, 2
_DETACHED_START = 240.0
_FILES = 65_536


def up(settings: LocalSettings, parts: Sequence[str] = ()) -> int:
    """Run a stack until a signal ends it.

    Returns:
        The exit code: 0 after an ordered end, 1 after a failure, 2 when it already runs, its port is taken, or its
        stores are not to be had or not those that it was begun with.
    """
    data = DataDir(settings.data)
    progress = Progress()
    try:
        os.umask(0o077)  # what the parts write is nobody else's
        data.create()
        _raise_file_limit()
        with data.locked():
            data.strike_keys()
            check_stores(data, settings)
            rotate(data.log("supervisor"))
            logging.basicConfig(filename=data.log("supervisor"), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
            if left := end_leftovers(data):
                progress.line(f"ended {left} processes that an earlier run left behind")
            return asyncio.run(_run_stack(data, settings, progress, parts))
    except AlreadyRunning:
        progress.line(_running(data))
        return REFUSED
    except PortTaken as error:
        progress.line(f"{error}; choose another with --port")
        return REFUSED
    except StoresRefused as error:
        progress.line(f"{error}")
        return REFUSED
    except OSError as error:
        progress.line(f"cannot work in {data.root}: {error}")
        return FAILED
    finally:
        progress.done()


async def _run_stack(data: DataDir, settings: LocalSettings, progress: Progress, parts: Sequence[str]) -> int:
    stack = Stack(data, settings, progress.show, parts)
    asked = asyncio.Event()
    _handle_signals(asked, stack)
    asking = asyncio.create_task(asked.wait())
    failure: ChildFailed | None = None
    try:
        starting = asyncio.create_task(stack.start())
        await asyncio.wait({starting, asking}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            await asyncio.wait({starting})
            return OK
        _welcome(stack, data, progress, complete=starting.result())
        staying = asyncio.create_task(stack.stay())
        await asyncio.wait({staying, asking}, return_when=asyncio.FIRST_COMPLETED)
        if staying.done():
            staying.result()
        staying.cancel()
        await asyncio.wait({staying})  # a restart that is under way ends before its parts are stopped
        return OK
    except ChildFailed as error:
        failure = error
        return FAILED
    finally:
        asking.cancel()
        await stack.stop()
        progress.line(f"stopped, because {failure}" if failure else "stopped")


def _handle_signals(asked: asyncio.Event, stack: Stack) -> None:
    def on_signal() -> None:
        if asked.is_set():
            stack.kill()  # asked twice: somebody is in a hurry
        asked.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)


def _raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _welcome(stack: Stack, data: DataDir, progress: Progress, *, complete: bool) -> None:
    progress.done()
    record = stack.record
    progress.line(f"ready in {record.ready_seconds} s: {record.url}")
    if not complete:
        progress.line(f"something is not ready yet; {record.url}/health/ready names it")
    if stack.new_key:
        progress.tell_key(data)


def up_detached(settings: LocalSettings) -> int:
    """Start a supervisor that outlives this process, and wait until its stack is ready.

    Returns:
        The exit code: 0 when it is ready, 1 after a failure, 2 when `up` would be refused.
    """
    data = DataDir(settings.data)
    progress = Progress()
    data.create()
    with suppress(AlreadyRunning), data.locked():
        data.strike_keys()  # before the supervisor has the file open
    fresh = not data.key.exists()
    output = data.log("up")
    rotate(output)
    output.touch()
    before = output.stat().st_size
    command = [sys.executable, "-m", "phronesis_local", "up", "--data", str(data.root)]
    if settings.port is not None:
        command += ["--port", str(settings.port)]
    command += ["--stores", settings.stores, "--replicas", str(settings.replicas), "--model", settings.model]
    with output.open("ab") as file:
        supervisor = subprocess.Popen(
            command,
            env=inherited_environment(),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        code = _await_ready(data, supervisor, progress)
    except KeyboardInterrupt:
        supervisor.terminate()
        supervisor.wait()
        return FAILED
    finally:
        progress.done()
    if code is None:
        record = read_record(data)
        progress.line(f"ready in {progress.seconds:.1f} s: {record.url if record else ''}")
        if fresh:
            progress.tell_key(data, piped=True)
        return OK
    progress.line(read_since(output, before))
    return code or FAILED


def _await_ready(data: DataDir, supervisor: subprocess.Popen[bytes], progress: Progress) -> int | None:
    limit = time.monotonic() + _DETACHED_START
    while supervisor.poll() is None:
        record = read_record(data)
        if record is not None and record.supervisor.pid == supervisor.pid:
            progress.show(record)
            if record.state == "ready":
                return None
            if any(part.state == "recovering" for part in record.parts.values()):
                limit = time.monotonic() + _DETACHED_START  # a store may take as long as its data needs
        if time.monotonic() > limit:
            supervisor.terminate()
        time.sleep(0.1)
    return supervisor.returncode


def _running(data: DataDir) -> str:
    record = read_record(data)
    if record is None:
        return f"a stack is being started or stopped on {data.root} by another process"
    return f"a stack already runs on {data.root}: process {record.supervisor.pid}, {record.url}"


_TAKEN_UP = 30.0
"""Seconds in which the supervisor has to take up what it was asked."""
_RESTART_LOOK = 0.1


def restart(data: DataDir, names: Sequence[str]) -> int:
    """Have services restarted one process after the other, and print what is done.

    Args:
        names: services or parts; none for all.

    Returns:
        The exit code: 0 when all came up, 1 when one did not and the rest was left as it was, 2 when nothing was begun.
    """
    progress = Progress()
    progress.done()
    record = read_record(data)
    if record is None or record.supervisor.process() is None:
        progress.line(f"nothing runs on {data.root}")
        return REFUSED
    if data.restart.exists() or (record.restart is not None and record.restart.state == "running"):
        progress.line("a restart is under way already")
        return REFUSED
    try:
        parts = plan_restart(names, [part for part in record.parts if service_of(part) in SERVICES])
    except LookupError as error:
        progress.line(str(error))
        return REFUSED
    asked = RestartRequest(id=uuid4().hex, parts=parts)
    write_atomically(data.restart, asked.model_dump_json())
    return _follow_restart(data, record, asked.id, progress)


def _follow_restart(data: DataDir, before: StackRecord, id: str, progress: Progress) -> int:
    shown, limit = 0, time.monotonic() + _TAKEN_UP
    while True:
        record = read_record(data)
        told = record.restart if record and record.restart and record.restart.id == id else None
        for line in told.lines[shown:] if told else ():
            progress.line(line)
        shown = len(told.lines) if told else shown
        if told and told.state != "running":
            return OK if told.state == "done" else FAILED
        if before.supervisor.process() is None or record is None or record.state == "stopping":
            progress.line("the stack was stopped")
            return FAILED
        if told is None and time.monotonic() > limit:
            data.restart.unlink(missing_ok=True)
            progress.line("the supervisor does not take it up; it may be of an older version: use down and up")
            return FAILED
        time.sleep(_RESTART_LOOK)
