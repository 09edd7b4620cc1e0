"""Kills of processes while it is their turn in a rolling restart."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress

from phronesis_local.supervisor import plan_restart
from tests.support.mixed import PARTS, MixedStack

_LOOK = 0.02
_LATER = 0.3
"""Seconds at most between the beginning of a stop or a start and the kill."""


class Killer:
    """Kills processes with -9: every other one while it is stopped, the others when they have just been started anew.

    Args:
        stack: whose processes.
        names: what is restarted.
        parts: which of them to kill, each once.
        dice: decides how long a process had to stop.
    """

    def __init__(self, stack: MixedStack, names: Sequence[str], parts: Sequence[str], dice: random.Random) -> None:
        self._stack = stack
        self._order = plan_restart(names, [part for part in stack.record().parts if part in PARTS])
        self._left = {part: ("stopping", "starting")[number % 2] for number, part in enumerate(parts)}
        self._before = {part: stack.pid(part) for part in parts}
        self._dice = dice
        self.killed: list[str] = []

    async def run(self) -> None:
        """Wait for each one's turn."""
        while self._left:
            told = self._stack.record()
            if told.restart is not None and told.restart.state == "running":
                done = sum(" is up again " in line for line in told.restart.lines)
                part = self._order[min(done, len(self._order) - 1)]
                process = told.parts[part].process
                fresh = process is not None and process.pid != self._before.get(part)
                if process is not None and part in self._left and fresh == (self._left[part] == "starting"):
                    await self._kill(part)
            await asyncio.sleep(_LOOK)

    async def _kill(self, part: str) -> None:
        way = self._left.pop(part)
        await asyncio.sleep(self._dice.uniform(0, _LATER))
        with suppress(LookupError):
            self._stack.kill(part)
            self.killed.append(f"{part} {way}")
