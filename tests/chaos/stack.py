"""A whole embedded stack for a chaos run, seen from outside: started by the command, killed by process id."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from time import monotonic

import psutil

from phronesis.local import postgres, record
from phronesis.local.layout import DataDir

SERVICES = ("gateway", "orchestrator", "memory", "instructions", "graph", "media")
SERVERS = ("nats", "postgres", "arcadedb")


class ChaosStack:
    """A stack in a folder of its own, with the model replaced by a scripted one."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.data = DataDir(folder)
        self._environment = os.environ | environment

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
        found = record.read(self.data)
        assert found is not None
        return found.supervisor.pid

    def pid(self, name: str) -> int:
        """Process id of a part, as the stack's own record has it."""
        found = record.read(self.data)
        process = found.parts[name].process if found else None
        if process is None:
            raise LookupError(f"{name} does not run")
        return process.pid

    def port(self, name: str) -> int:
        """The port that a server listens on."""
        found = record.read(self.data)
        assert found is not None
        port = found.parts[name].port
        assert port is not None
        return port

    def kill(self, name: str) -> int:
        """Kill a part with -9, with all that it started; its process id."""
        pid = self.pid(name)
        try:
            group = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        except psutil.NoSuchProcess:
            return pid
        for process in group:
            try:
                process.send_signal(signal.SIGKILL)
            except psutil.NoSuchProcess:
                continue
        return pid

    async def again(self, name: str, killed: int, limit: float) -> bool:
        """Wait until the supervisor has started the part anew."""
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
        command = [sys.executable, "-m", "phronesis.local", *arguments, "--data", str(self.data.root)]
        process = await asyncio.create_subprocess_exec(
            *command, env=self._environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        out, _ = await asyncio.wait_for(process.communicate(), 120)
        if process.returncode != 0:
            raise AssertionError(f"{' '.join(arguments)} ended with {process.returncode}: {out.decode()[-2000:]}")
