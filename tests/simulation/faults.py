"""What goes wrong in a run, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from .loop import Process
from .options import CALM, LEASE
from .postgres import Change

if TYPE_CHECKING:
    from .world import Orchestrator, World


class Faults:
    """Lets things go wrong in a world, as its options say."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._aimed: dict[Process, tuple[int, Callable[[], None]]] = {}
        """Commits of a process until something happens to it."""
        world.database.committed.append(self.strike)

    async def go_wrong(self) -> None:
        options, chance = self._world.options, self._world.loop.random
        planned = [
            (chance.random() * (CALM - 1), fault)
            for fault, times in (
                (self._kill, options.kills),
                (self._stop, options.stops),
                (self._pause, options.pauses),
                (self._jump, options.jumps),
                (self._outage, options.outages),
                (self._cut, options.cuts),
            )
            for _ in range(times)
        ]
        running = []
        for at, fault in sorted(planned, key=lambda plan: plan[0]):
            await asyncio.sleep(max(0.0, at - self._world.loop.now))
            running.append(asyncio.create_task(fault()))
        await asyncio.gather(*running)

    def strike(self, by: object, changes: list[Change]) -> None:
        if isinstance(by, Process) and by in self._aimed:
            left, deed = self._aimed[by]
            if left > 1:
                self._aimed[by] = left - 1, deed
            else:
                del self._aimed[by]
                deed()

    def _aim(self, process: Process, deed: Callable[[], None]) -> None:
        """Let something happen to a process now, or, which is worse for it, before it hears of a commit of its own."""
        if self._world.loop.random.random() < 0.3:
            deed()
        else:
            self._aimed[process] = self._world.loop.random.randint(1, 5), deed

    async def _kill(self) -> None:
        chance = self._world.loop.random
        if chance.random() < 0.25 and self._world.owners:
            process, _ = chance.choice(self._world.owners)
            self._world.tell("kill", process.name)
            self._world.kill(process)
            self._world.owners = [found for found in self._world.owners if found[0] is not process]
            await asyncio.sleep(chance.random() * 3)
            self._world.start_owner(int(process.name[len("memory-") :].partition(".")[0]))
        elif alive := self._world.alive():
            life = chance.choice(alive)

            def kill() -> None:
                if life.process.alive:
                    self._world.tell("kill", life.process.name)
                    self._world.kill(life.process)
                    self._restart(life)

            self._aim(life.process, kill)

    def _restart(self, life: Orchestrator) -> None:
        self._world.orchestrators.remove(life)
        number = int(life.process.name[len("orchestrator-") :].partition(".")[0])
        seconds = self._world.loop.random.random() * 4
        self._world.loop.call_later(
            seconds, self._world.start_orchestrator, number, context=self._world.loop.world.context.copy()
        )

    async def _stop(self) -> None:
        if alive := self._world.alive():
            life = self._world.loop.random.choice(alive)
            if life.bus is None or life.bus.stopping.is_set():
                return
            self._world.tell("stop", life.process.name)
            self._world.stopped.add(life.process.name)
            ending = self._world.loop.create_task(life.bus.stop(), context=life.process.context.copy())
            await asyncio.wait([ending], timeout=10)
            if life.process.alive:
                self._world.kill(life.process)
                self._restart(life)

    async def _pause(self) -> None:
        if alive := self._world.alive():
            life, chance = self._world.loop.random.choice(alive), self._world.loop.random
            seconds = LEASE * (chance.random() * 0.5 if chance.random() < 0.3 else 0.8 + chance.random() * 1.5)

            def pause() -> None:
                self._world.tell("pause", life.process.name, f"{seconds:.2f}")
                self._world.loop.pause(life.process, seconds)

            self._aim(life.process, pause)

    async def _jump(self) -> None:
        chance = self._world.loop.random
        processes = [self._world.database_process, *(life.process for life in self._world.alive())]
        process, seconds = chance.choice(processes), (chance.random() - 0.5) * 4 * LEASE
        self._world.tell("jump", process.name, f"{seconds:.2f}")
        process.clock_error += seconds

    async def _outage(self) -> None:
        chance = self._world.loop.random
        which, seconds = chance.randint(0, 2), chance.random() * 6
        if which == 2:
            self._world.tell("outage", "broker", f"{seconds:.2f}")
            self._world.broker.go_down()
            await asyncio.sleep(seconds)
            self._world.broker.come_up()
            return
        process = (self._world.database_process, self._world.store_process)[which]
        self._world.tell("outage", process.name, f"{seconds:.2f}")
        self._world.wires[process].down = True
        self._world.servers[process].close_all()
        await asyncio.sleep(seconds)
        self._world.wires[process].down = False

    async def _cut(self) -> None:
        if alive := self._world.alive():
            life, seconds = self._world.loop.random.choice(alive), self._world.loop.random.random() * 6
            self._world.tell("cut", life.process.name, f"{seconds:.2f}")
            self._world.broker.cut(life.client, seconds)
            await asyncio.sleep(seconds)
