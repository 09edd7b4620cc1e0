"""`phronesis up`: the life of a supervisor, from its lock to its last child; or, detached, the start of one."""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from .child import ChildFailed
from .cleanup import end_leftovers
from .environment import inherited
from .layout import AlreadyRunning, DataDir
from .logfile import rotated, since
from .parts import PortTaken
from .progress import Progress
from .record import read
from .settings import LocalSettings
from .stack import Stack
from .stores import StoresRefused, hold_to

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
        data.create()
        _many_files()
        with data.locked():
            hold_to(data, settings)
            rotated(data.log("supervisor"))
            logging.basicConfig(filename=data.log("supervisor"), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
            if left := end_leftovers(data):
                progress.line(f"ended {left} processes that an earlier run left behind")
            return asyncio.run(_life(data, settings, progress, parts))
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


async def _life(data: DataDir, settings: LocalSettings, progress: Progress, parts: Sequence[str]) -> int:
    stack = Stack(data, settings, progress.show, parts)
    asked = asyncio.Event()
    _on_signals(asked, stack)
    asking = asyncio.create_task(asked.wait())
    failure: ChildFailed | None = None
    try:
        starting = asyncio.create_task(stack.start())
        await asyncio.wait({starting, asking}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            await asyncio.wait({starting})
            return OK
        _welcome(stack, progress, complete=starting.result())
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


def _on_signals(asked: asyncio.Event, stack: Stack) -> None:
    def on_signal() -> None:
        if asked.is_set():
            stack.kill()  # asked twice: somebody is in a hurry
        asked.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)


def _many_files() -> None:
    """Let this process and its children open as many files as the system allows them: each connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _welcome(stack: Stack, progress: Progress, *, complete: bool) -> None:
    progress.done()
    record = stack.record
    progress.line(f"ready in {record.ready_seconds} s: {record.url}")
    if not complete:
        progress.line(f"something is not ready yet; {record.url}/health/ready names it")
    if stack.new_key:
        progress.line(f"your key (kept in the data directory, file `key`): {stack.new_key}")


def up_detached(settings: LocalSettings) -> int:
    """Start a supervisor that outlives this process, and wait until its stack is ready.

    Returns:
        The exit code: 0 when it is ready, 1 after a failure, 2 when `up` would be refused.
    """
    data = DataDir(settings.data)
    progress = Progress()
    data.create()
    fresh = not data.key.exists()
    output = data.log("up")
    rotated(output)
    output.touch()
    before = output.stat().st_size
    command = [sys.executable, "-m", "phronesis_local", "up", "--data", str(data.root)]
    if settings.port is not None:
        command += ["--port", str(settings.port)]
    command += ["--stores", settings.stores, "--replicas", str(settings.replicas)]
    with output.open("ab") as file:
        supervisor = subprocess.Popen(
            command, env=inherited(), stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
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
        record = read(data)
        progress.line(f"ready in {progress.seconds:.1f} s: {record.url if record else ''}")
        if fresh:
            progress.line(f"your key (kept in the data directory, file `key`): {data.key.read_text()}")
        return OK
    progress.line(since(output, before))
    return code or FAILED


def _await_ready(data: DataDir, supervisor: subprocess.Popen[bytes], progress: Progress) -> int | None:
    """The supervisor's exit code, or `None` when its stack is ready and it lives on."""
    limit = time.monotonic() + _DETACHED_START
    while supervisor.poll() is None:
        record = read(data)
        if record is not None and record.supervisor.pid == supervisor.pid:
            progress.show(record)
            if record.state == "ready":
                return None
        if time.monotonic() > limit:
            supervisor.terminate()
        time.sleep(0.1)
    return supervisor.returncode


def _running(data: DataDir) -> str:
    record = read(data)
    if record is None:
        return f"a stack is being started or stopped on {data.root} by another process"
    return f"a stack already runs on {data.root}: process {record.supervisor.pid}, {record.url}"
