"""A stack of which some processes run the version before this one.

python -m tests.support.mixed DATA TREE    the supervisor: two of each service; the parts that DATA/previous names run TREE
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from phronesis_local import layout, stack
from phronesis_local.layout import DataDir, write_atomically
from phronesis_local.parts import SERVICES, Answers, Parts, copies, service_of
from phronesis_local.processes import Program
from phronesis_local.settings import LocalSettings
from phronesis_local.up import up
from tests.chaos.stack import ChaosStack

from .previous import previous_module, previous_python
from .stack import RunningStack

REPLICAS = 2
PARTS = tuple(part for service in SERVICES for part in copies(service, REPLICAS))
_NAMES = "previous"


class MixedParts(Parts):
    """Programs of this version, and of the one before it where a file says so."""

    tree: Path
    data: DataDir

    def service(self, name: str, answers: Answers) -> Program:
        """A process of a service, of the version that its part is to have from now on."""
        program = super().service(name, answers)
        if name not in json.loads((self.data.root / _NAMES).read_text()):
            return program
        return _previous(program, self.tree)


def _previous(program: Program, tree: Path) -> Program:
    """The program in the version before: it may not answer by process yet, so its own log says when it is up."""
    began = 0

    async def prepare() -> None:
        nonlocal began
        began = program.log.stat().st_size if program.log.exists() else 0

    async def ready() -> bool:
        text = program.log.read_bytes()
        return f"{service_of(program.name)} is up".encode() in text[began if began <= len(text) else 0 :]

    command = [str(previous_python(tree)), "-m", previous_module(tree, service_of(program.name))]
    return replace(program, command=command, ready=ready, prepare=prepare)


class MixedStack(ChaosStack):
    """Two processes of each service under one supervisor.

    Args:
        folder: the data directory.
        tree: the version before this one.
        environment: more variables.
    """

    def __init__(self, folder: Path, tree: Path, environment: dict[str, str]) -> None:
        super().__init__(folder, environment)
        self._tree = tree
        self._running = RunningStack(folder, environment=environment)

    def plan(self, previous: Iterable[str]) -> None:
        """These parts run the version before from their next start on, and all others this one."""
        self.data.create()
        write_atomically(self.data.root / _NAMES, json.dumps(sorted(previous)))

    async def up(self) -> None:
        """Start, and return when all parts work."""
        command = [sys.executable, "-m", "tests.support.mixed", str(self.data.root), str(self._tree)]
        with (self.data.root / "mixed.log").open("ab") as log:
            self._running.supervisor = subprocess.Popen(
                command, env=self._environment, stdout=log, stderr=log, text=True, start_new_session=True
            )
        await self._running.until(lambda now: now.state == "ready" and now.supervisor.pid == self._running.pid, 240)

    async def down(self) -> None:
        """Stop everything."""
        await asyncio.to_thread(self._running.end)

    def previous(self) -> set[str]:
        """The parts whose running process has the code of the version before."""
        python = str(previous_python(self._tree))
        return {part for part in PARTS if self._running.process(part).cmdline()[0] == python}

    def starts(self) -> int:
        """How often a process had to be started because it had ended by itself, or was killed."""
        return sum(self._running.part(part).restarts for part in PARTS)

    async def restart(self, *names: str) -> list[str]:
        """Restart by the command; the lines that it printed.

        Raises:
            AssertionError: it says that it failed.
        """
        command = [sys.executable, "-m", "phronesis", "restart", *names, "--data", str(self.data.root)]
        process = await asyncio.create_subprocess_exec(
            *command, env=self._environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        said, _ = await process.communicate()
        assert process.returncode == 0, said.decode()
        return said.decode().splitlines()

    def record(self) -> layout.StackRecord:
        """What the supervisor tells."""
        found = layout.read_record(self.data)
        assert found is not None
        return found


if __name__ == "__main__":
    MixedParts.data, MixedParts.tree = DataDir(Path(sys.argv[1])), Path(sys.argv[2])
    vars(stack)["Parts"] = MixedParts
    sys.exit(up(LocalSettings().model_copy(update={"data": Path(sys.argv[1]), "port": 0, "replicas": REPLICAS})))
