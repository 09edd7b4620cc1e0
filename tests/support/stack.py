"""An embedded stack in a folder of its own, run by a supervisor process as `phronesis up` runs it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import psutil

from phronesis_bus import BusSettings
from phronesis_local import postgres
from phronesis_local.keys import password_file
from phronesis_local.layout import DataDir, PartRecord, StackRecord, inherited_environment, marked_processes, read_record
from phronesis_local.loopback import LOOPBACK
from phronesis_local.settings import Stores
from phronesis_local.stack import stop_stack
from tests.support.production import SERVERS, STORES
from tests.support.shared import ROOT, port_range

_RUN = """
import sys
from pathlib import Path
from phronesis_local.settings import LocalSettings
from phronesis_local.up import up
from tests.support.shared import keep_ports_apart
keep_ports_apart(int(sys.argv[2]), int(sys.argv[3]))
sys.exit(up(LocalSettings().model_copy(update={"data": Path(sys.argv[1]), "port": 0}), sys.argv[4:]))
"""


OFTEN = {"GATEWAY_REQUESTS_PER_SECOND": "500", "GATEWAY_BURST": "1000"}
"""A test asks faster than a person."""
UNHURRIED = {"ORCHESTRATOR_RECALL_LIMIT": "10", "ORCHESTRATOR_STRATEGY_HOLDOUT": "0", **OFTEN}
"""A turn of a test waits for memory: a machine busy with other tests takes longer than a person should wait."""
if STORES is Stores.PRODUCTION:  # the first statements of a fresh Neo4j take seconds to plan and compile
    UNHURRIED |= {"GRAPH_READ_TIMEOUT": "20"}


class RunningStack:
    """A supervisor process and what it runs.

    Args:
        folder: the data directory.
        parts: the parts to run; the servers alone by default.
        environment: more variables.
    """

    def __init__(self, folder: Path, parts: Sequence[str] = SERVERS, environment: dict[str, str] | None = None) -> None:
        self.data = DataDir(folder)
        self._parts = parts
        self._environment = inherited_environment() | UNHURRIED | (environment or {})
        self.supervisor: subprocess.Popen[str] | None = None

    def launch(self) -> subprocess.Popen[str]:
        """Start a supervisor and return at once."""
        command = [sys.executable, "-c", _RUN, str(self.data.root), *map(str, port_range()), *self._parts]
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    async def start(self) -> None:
        """Start a supervisor and return when its stack is ready."""
        self.supervisor = self.launch()
        await self.until(lambda record: record.state == "ready" and record.supervisor.pid == self.pid)

    @property
    def pid(self) -> int:
        """The supervisor's process id."""
        assert self.supervisor is not None
        return self.supervisor.pid

    def part(self, name: str) -> PartRecord:
        """What the record says of a part."""
        record = read_record(self.data)
        assert record is not None
        return record.parts[name]

    def process(self, name: str) -> psutil.Process:
        """The running process of a part."""
        found = self.part(name).process
        process = found.process() if found else None
        assert process is not None
        return process

    def bus_settings(self, user: str) -> BusSettings:
        """How one of the broker's users connects, without a key to sign with."""
        url = f"nats://{LOOPBACK}:{self.part('nats').port}"
        return BusSettings(url=url, password_file=password_file(self.data, user), trust_dir=self.data.trust)

    async def until(self, state: Callable[[StackRecord], bool], within: float = 150.0) -> StackRecord:
        """The record, as soon as `state` holds of it."""
        async with asyncio.timeout(within):
            while True:
                record = read_record(self.data)
                if record is not None and state(record):
                    return record
                if self.supervisor is not None and self.supervisor.poll() is not None:
                    raise AssertionError(f"the supervisor ended: {self.supervisor.communicate()[0]}")
                await asyncio.sleep(0.05)

    def left(self) -> list[psutil.Process]:
        """Every process of this stack that runs, the supervisor aside."""
        return [process for _, process in marked_processes(self.data)] + postgres.workers(self.data.postgres)

    def end(self) -> str:
        """End the stack as `phronesis down` does; what the supervisor printed."""
        stop_stack(self.data)
        return self.supervisor.communicate(timeout=20)[0] if self.supervisor else ""


@asynccontextmanager
async def running(
    folder: Path, parts: Sequence[str] = SERVERS, environment: dict[str, str] | None = None
) -> AsyncIterator[RunningStack]:
    """A stack for the length of a block."""
    stack = RunningStack(folder, parts, environment)
    try:
        await stack.start()
        yield stack
    finally:
        await asyncio.to_thread(stack.end)
