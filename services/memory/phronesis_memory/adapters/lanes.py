"""One worker thread with two lanes: what is urgent goes before everything that waits."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from phronesis_contracts import Busy, Unavailable

T = TypeVar("T")
_WAITING = 512
"""Pieces of work that may wait in one lane."""

_Work = tuple[Callable[[], Any], "asyncio.Future[Any]"]


class Lanes:
    """Runs functions one at a time in a thread of its own. `open()` makes one."""

    def __init__(self) -> None:
        self._urgent: deque[_Work] = deque()
        self._bulk: deque[_Work] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embedder")
        self._wake = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator[Lanes]:
        """The lanes for the length of a block; what still waits at its end fails."""
        lanes = cls()
        task = asyncio.create_task(lanes._run(), name="embedder")
        try:
            yield lanes
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            for _, future in (*lanes._urgent, *lanes._bulk):
                if not future.done():
                    future.set_exception(Unavailable("the embedder stops"))
            lanes._thread.shutdown(wait=True)

    async def do(self, function: Callable[[], T], *, urgent: bool = False) -> T:
        """The result of `function`, run after at most one other where it is urgent.

        Raises:
            Busy: too much waits already.
        """
        lane = self._urgent if urgent else self._bulk
        if len(lane) >= _WAITING:
            raise Busy("the embedder has too much to do", retry_after=1)
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        lane.append((function, future))
        self._wake.set()
        return await future

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._wake.wait()
            lane = self._urgent or self._bulk
            if not lane:
                self._wake.clear()
                continue
            function, future = lane.popleft()
            if future.done():  # its caller has gone
                continue
            try:
                result = await loop.run_in_executor(self._thread, function)
            except Exception as error:
                if not future.done():
                    future.set_exception(error)
            else:
                if not future.done():
                    future.set_result(result)
