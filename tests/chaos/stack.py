"""A whole embedded stack for a chaos run, seen from outside: started by the command, killed by process id."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from time import monotonic

import psutil

from phronesis_local import layout, postgres
from phronesis_local.layout import DataDir
from tests.support.stack import OFTEN

SERVICES = ("gateway", "orchestrator", "memory", "instructions", "graph", "media")
READERS = "readers"
"""The processes of media that read what is attached; media itself lives on when they are killed."""
_BUSY = 0.05
"""Seconds of processor time after which a process of media has surely begun to read."""


class ChaosStack:
    """A stack in a folder of its own, with the model replaced by a scripted one."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.data = DataDir(folder)
        self._environment = os.environ | OFTEN | environment

    async def up(self) -> None:
        await self._command("up", "--detach", "--port", "0")

    async def down(self) -> None:
        await self._command("down")

    @property
    def url(self) -> str:
        return self.data.url.read_text().strip()

    @property
    def key(self) -> str:
        return self.data.key.read_text().strip()

    @property
    def dsn(self) -> str:
        return postgres.dsn(self.data.postgres)

    @property
    def supervisor(self) -> int:
        """Process id of the supervisor."""
        found = layout.read_record(self.data)
        assert found is not None
        return found.supervisor.pid

    def pid(self, name: str) -> int:
        """Process id of a part, as the stack's own record has it."""
        found = layout.read_record(self.data)
        process = found.parts[name].process if found else None
        if process is None:
            raise LookupError(f"{name} does not run")
        return process.pid

    def port(self, name: str) -> int:
        """The port that a server listens on."""
        found = layout.read_record(self.data)
        assert found is not None
        port = found.parts[name].port
        assert port is not None
        return port

    def kill(self, name: str) -> int:
        """Kill a part with -9, with all that it started; its process id."""
        pid = self.pid("media" if name == READERS else name)
        try:
            group = psutil.Process(pid).children(recursive=True)
            if name != READERS:
                group.insert(0, psutil.Process(pid))
        except psutil.NoSuchProcess:
            return pid
        for process in group:
            try:
                process.send_signal(signal.SIGKILL)
            except psutil.NoSuchProcess:
                continue
        return pid

    async def reading(self, limit: float) -> bool:
        """Wait until a process of media works on something; whether one does within the limit."""
        before: dict[int, float] = self._spent()
        end = monotonic() + limit
        while monotonic() < end:
            if any(spent - before.get(pid, 0.0) > _BUSY for pid, spent in self._spent().items()):
                return True
            await asyncio.sleep(0.02)
        return False

    def _spent(self) -> dict[int, float]:
        """Seconds of processor time that each process of media has used to read."""
        spent = {}
        try:
            for child in psutil.Process(self.pid("media")).children():
                spent[child.pid] = child.cpu_times().user
        except (psutil.NoSuchProcess, LookupError):
            return {}
        return spent

    async def again(self, name: str, killed: int, limit: float) -> bool:
        """Wait until the supervisor has started the part anew; media starts its readers itself, when it needs them."""
        if name == READERS:
            return True
        end = monotonic() + limit
        while monotonic() < end:
            try:
                if self.pid(name) != killed:
                    return True
            except LookupError:
                pass
            await asyncio.sleep(0.05)
        return False

    async def _command(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "phronesis_local", *arguments, "--data", str(self.data.root)]
        process = await asyncio.create_subprocess_exec(
            *command, env=self._environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        out, _ = await asyncio.wait_for(process.communicate(), 240)
        if process.returncode != 0:
            raise AssertionError(f"{' '.join(arguments)} ended with {process.returncode}: {out.decode()[-2000:]}")
