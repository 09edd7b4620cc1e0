"""A rolling restart, with small programs in place of services: its order, its patience, and where it stops."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from phronesis_local.layout import DataDir, Restart, write_atomically
from phronesis_local.processes import Program
from phronesis_local.supervisor import RestartRequest, Rolling, Supervisor, plan_restart
from phronesis_local.up import REFUSED, restart
from tests.support.bus import eventually

pytestmark = pytest.mark.verify

THERE = ("gateway", "gateway-2", "memory", "memory-2", "graph", "graph-2")
_STAYS, _ENDS = "import time; time.sleep(600)", "raise SystemExit(3)"


class Stage:
    """Parts under a supervisor, and the restarts that they go through."""

    def __init__(self, folder: Path) -> None:
        self.data = DataDir(folder)
        self.data.create()
        self.supervisor = Supervisor(self.data, lambda: None)
        self.broken: set[str] = set()
        self.schemas: list[Sequence[str]] = []
        self.told = Restart(id="")
        self.lowest = len(THERE)
        """The least number of parts that were up when somebody looked."""
        self._rolling = Rolling(self.data, THERE, self.supervisor, self.program, self._bring, self._tell)

    def program(self, name: str) -> Program:
        """A process that stays, or ends at once where it is broken."""

        async def ready() -> bool:
            up = sum(part.record.state == "up" for part in self.supervisor.parts.values())
            self.lowest = min(self.lowest, up + 1)  # with the one that asks
            return name not in self.broken

        script = _ENDS if name in self.broken else _STAYS
        return Program(name, [sys.executable, "-c", script], self.data.log(name), {}, ready)

    async def _bring(self, parts: Sequence[str]) -> None:
        self.schemas.append(parts)

    def _tell(self, told: Restart) -> None:
        self.told = told

    def pids(self) -> dict[str, int | None]:
        """The process of each part."""
        return {name: part.child.pid for name, part in self.supervisor.parts.items()}

    async def restarted(self, *parts: str) -> Restart:
        """What is told in the end of a restart of these parts."""
        write_atomically(self.data.restart, RestartRequest(id="-".join(parts), parts=parts).model_dump_json())
        await eventually(lambda: self.told.id == "-".join(parts) and self.told.state != "running")
        return self.told

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """All parts up, and restarts taken up, for the length of a block."""
        for name in THERE:
            self.supervisor.keep(self.program(name))
        await self.supervisor.up(*THERE)
        self.lowest = len(THERE)
        rolling = asyncio.create_task(self._rolling.stay())
        try:
            yield
        finally:
            rolling.cancel()
            await asyncio.gather(rolling, return_exceptions=True)
            await self.supervisor.stop(*THERE)


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        ((), ("graph", "graph-2", "memory", "memory-2", "gateway", "gateway-2")),
        (("gateway", "memory-2"), ("memory-2", "gateway", "gateway-2")),
    ],
)
def test_whoever_is_asked_comes_before_who_asks(names: tuple[str, ...], parts: tuple[str, ...]) -> None:
    assert plan_restart(names, THERE) == parts


def test_what_does_not_run_cannot_be_restarted() -> None:
    with pytest.raises(LookupError, match="memory-3: no such service or part"):
        plan_restart(("memory-3",), THERE)


def test_where_nothing_runs_a_restart_is_refused(tmp_path: Path) -> None:
    assert restart(DataDir(tmp_path), ()) == REFUSED


async def test_one_process_after_the_other_is_replaced(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    async with stage.running():
        before = stage.pids()
        told = await stage.restarted("memory", "memory-2", "graph")
        after = stage.pids()
    assert told.state == "done"
    assert {name for name in THERE if after[name] != before[name]} == {"memory", "memory-2", "graph"}
    assert stage.schemas == [("memory", "memory-2", "graph")]
    assert stage.lowest >= len(THERE) - 1
    assert [line.split()[3] for line in told.lines[1:-1]] == ["memory", "memory-2", "graph"]


async def test_a_process_that_does_not_come_up_ends_the_restart_and_the_rest_runs_on(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    async with stage.running():
        before = stage.pids()
        stage.broken = {"graph-2"}
        told = await stage.restarted("graph", "graph-2", "memory")
        assert (told.state, "graph-2 ended with code 3" in told.lines[-1]) == ("failed", True)
        assert {name for name in THERE if stage.pids()[name] == before[name]} == {"gateway", "gateway-2", "memory", "memory-2"}
        stage.broken = set()
        assert (await stage.restarted("graph-2", "memory")).state == "done"
        assert None not in stage.pids().values()
