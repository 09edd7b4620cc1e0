"""An event loop in which time, chance and order come from one seed, and processes that can be killed and paused."""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import os
import random
import sys
import time
from asyncio import Handle, TimerHandle
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any

EPOCH = 1_800_000_000.0
"""Seconds since the epoch at which every run begins."""


class Process:
    """One process: its tasks run in order, one at a time, while it is neither paused nor dead.

    Args:
        name: unique in a run.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.paused = False
        self.clock_error = 0.0
        """Seconds by which its wall clock is ahead."""
        self.queue: deque[Handle] = deque()
        self.context = contextvars.Context()
        self.context.run(process_at_hand.set, self)

    def __repr__(self) -> str:
        return f"<{self.name}>"


process_at_hand: contextvars.ContextVar[Process] = contextvars.ContextVar("process_at_hand")


class Stuck(Exception):
    """Nothing is left to run, or the run went on for longer than it may."""


class SimulatedLoop(asyncio.AbstractEventLoop):
    """Runs one handle at a time: of a process that is chosen by the seed, the first one that it has.

    The order of tasks inside a process is the one that asyncio keeps; the order between processes is anybody's.
    """

    def __init__(self, seed: int, limit: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.steps = 0
        self._limit = limit
        self._timers: list[tuple[float, int, TimerHandle]] = []
        self._timer = 0
        self.world = Process("world")
        self._runnable: list[Process] = []
        self._tasks: list[asyncio.Task[Any]] = []
        """Kept to the end of a run: a killed process's coroutines may not be closed before, which runs their `finally`."""
        self.halted = False
        """Set to end the run at once."""
        self.errors: list[dict[str, Any]] = []

    # What asyncio's tasks, futures and primitives ask of a loop.

    def time(self) -> float:
        return self.now

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Coroutine[Any, Any, Any],
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> asyncio.Task[Any]:
        context = contextvars.copy_context() if context is None else context
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name, context=context)
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # a killed process ends no task
        self._tasks.append(task)
        return task

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None) -> Handle:
        handle = Handle(callback, args, self, context)
        self._add(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> TimerHandle:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> TimerHandle:
        handle = TimerHandle(when, callback, args, self, context)
        self._timer += 1
        heapq.heappush(self._timers, (when, self._timer, handle))
        return handle

    def _timer_handle_cancelled(self, handle: TimerHandle) -> None:
        pass

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.errors.append(context)

    # The scheduler.

    def _add(self, handle: Handle) -> None:
        process = handle._context.get(process_at_hand, self.world)  # type: ignore[attr-defined]
        if not process.alive:
            return
        if not process.queue and not process.paused:
            self._runnable.append(process)
        process.queue.append(handle)

    def kill(self, process: Process) -> None:
        """End a process between two of its steps: nothing of it runs any more, not even what would clear up."""
        process.alive = False
        process.queue.clear()
        if process in self._runnable:
            self._runnable.remove(process)

    def pause(self, process: Process, seconds: float) -> None:
        """Let a process stand still, with its timers: they are all late when it goes on."""
        if process.paused or not process.alive:
            return
        process.paused = True
        if process in self._runnable:
            self._runnable.remove(process)
        self.call_later(seconds, self._go_on, process, context=self.world.context.copy())

    def _go_on(self, process: Process) -> None:
        process.paused = False
        if process.queue and process.alive:
            self._runnable.append(process)

    def run(self, main: Coroutine[Any, Any, None], until: float) -> None:
        """Run `main` in the world's process to its end. Raises `Stuck`, and whatever `main` or a callback raises."""
        asyncio._set_running_loop(self)
        try:
            task = self.create_task(main, context=self.world.context.copy())
            while not task.done() and not self.halted and not self.errors:
                self._step(until)
            if self.errors:
                raise self.errors[0].get("exception") or RuntimeError(self.errors[0]["message"])
            if task.done():
                task.result()
        finally:
            asyncio._set_running_loop(None)

    def close_all(self) -> None:
        """Close what killed processes left, when nothing is looked at any more."""
        asyncio._set_running_loop(self)
        try:
            for task in self._tasks:
                if not task.done():
                    with suppress(BaseException):
                        task.get_coro().close()  # type: ignore[union-attr]
        finally:
            asyncio._set_running_loop(None)
        self._tasks.clear()
        self._timers.clear()
        self._runnable.clear()

    def _step(self, until: float) -> None:
        timers, runnable = self._timers, self._runnable
        if not runnable:
            if not timers:
                raise Stuck("nothing is left to run")
            self.now = max(self.now, timers[0][0])
            if self.now > until:
                raise Stuck("the run takes too long")
        while timers and timers[0][0] <= self.now:
            handle = heapq.heappop(timers)[2]
            if not handle._cancelled:  # type: ignore[attr-defined]
                self._add(handle)
        if not runnable:
            return
        self.steps += 1
        if self.steps > self._limit:
            raise Stuck("the run takes too many steps")
        at = int(self.random.random() * len(runnable)) if len(runnable) > 1 else 0
        process = runnable[at]
        handle = process.queue.popleft()
        if not process.queue:
            runnable[at] = runnable[-1]
            runnable.pop()
        if not handle._cancelled:  # type: ignore[attr-defined]
            handle._run()


@contextmanager
def seeded(loop: SimulatedLoop) -> Iterator[None]:
    """For a block, clocks and chance of the whole interpreter are the loop's: `time`, `random`, and what UUIDs are made of."""
    chance = random.Random(loop.random.random())
    state, real = random.getstate(), (time.time, time.monotonic, time.perf_counter, os.urandom, sys.unraisablehook)

    def wall() -> float:
        process = process_at_hand.get(None)
        return EPOCH + loop.now + (process.clock_error if process is not None else 0.0)

    random.seed(chance.random())
    time.time, time.monotonic, time.perf_counter = wall, loop.time, loop.time
    os.urandom = chance.randbytes
    sys.unraisablehook = lambda _: None  # coroutines of killed processes that are closed at the end
    try:
        yield
    finally:
        time.time, time.monotonic, time.perf_counter, os.urandom, sys.unraisablehook = real
        random.setstate(state)
