"""The worker: claims turns from Postgres, runs them side by side, keeps their leases, gives back what it cannot finish."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from phronesis_contracts import ServiceError

from .execution import JournalAway
from .ports import TurnStore
from .turn import Claim, LostClaim

log = logging.getLogger(__name__)

SWEEP = 1.0
"""Seconds after which the queue is looked at though nothing announced a turn."""
_RETRY = 1.0
_WAITS = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Seconds before each try to give a claim back."""


class Worker:
    """Runs turns.

    Args:
        name: this worker's name, unique among all.
        turns: the queue.
        run: runs one claimed turn to its end.
        connected: whether the bus can be reached; a worker without it claims nothing.
        slots: turns side by side.
        lease: seconds that a claim lasts.
        task_slots: how many of the slots background tasks may take, so that a person's turn finds one; all if not stated.
    """

    def __init__(
        self,
        name: str,
        turns: TurnStore,
        run: Callable[[Claim], Awaitable[None]],
        connected: Callable[[], bool],
        slots: int,
        lease: float,
        task_slots: int | None = None,
    ) -> None:
        self._name = name
        self._turns = turns
        self._run_turn = run
        self._connected = connected
        self._slots = slots
        self._lease = lease
        self._task_slots = slots if task_slots is None else task_slots
        self._wake = asyncio.Event()
        self._running: dict[asyncio.Task[None], Claim] = {}
        self._loops: list[asyncio.Task[None]] = []
        self._stopping = False

    @property
    def running(self) -> int:
        """Turns that run here at this moment."""
        return len(self._running)

    @property
    def _free_for_tasks(self) -> int:
        taken = sum(1 for claim in self._running.values() if claim.request.task is not None)
        return max(0, self._task_slots - taken)

    def start(self) -> None:
        """Begin to claim."""
        self._loops = [asyncio.create_task(self._claim_loop()), asyncio.create_task(self._lease_loop())]

    def wake(self) -> None:
        """Say that there may be a turn to claim."""
        self._wake.set()

    def cancel(self, turn_id: str) -> None:
        """Stop a turn that was cancelled, if it runs here; elsewhere the next look at its lease stops it."""
        for task, claim in self._running.items():
            if claim.turn_id == turn_id:
                task.cancel()

    async def stop(self) -> None:
        """Claim nothing more, stop what runs and give it back at once."""
        self._stopping = True
        for task in [*self._loops, *self._running]:
            task.cancel()
        await asyncio.gather(*self._loops, *self._running, return_exceptions=True)

    async def _claim_loop(self) -> None:
        while True:
            self._wake.clear()
            free = self._slots - len(self._running)
            claims: list[Claim] = []
            if free > 0 and self._connected():
                try:
                    claims = await self._turns.claim(self._name, free, self._lease, self._free_for_tasks)
                except ServiceError as error:
                    log.warning("no turn could be claimed: %s", error.code)
                    await asyncio.sleep(_RETRY)
                except Exception:
                    # The loop may not end: turns would wait with nobody to take them.
                    log.exception("claiming failed")
                    await asyncio.sleep(_RETRY)
            for claim in claims:
                task = asyncio.create_task(self._run(claim), name=f"turn-{claim.turn_id}")
                self._running[task] = claim
                task.add_done_callback(self._ended)
            if not claims:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(SWEEP):
                        await self._wake.wait()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        self._wake.set()

    async def _run(self, claim: Claim) -> None:
        try:
            await self._run_turn(claim)
        except LostClaim:
            log.info("turn %s is no longer this worker's", claim.turn_id)
        except asyncio.CancelledError:
            if self._stopping:
                await self._give_back(claim, 0, counts=False)
        except Exception as error:
            if isinstance(error, (ServiceError, JournalAway)):
                log.warning("turn %s stopped: %r", claim.turn_id, error)
            else:
                log.exception("turn %s failed", claim.turn_id)
            await self._give_back(claim, _RETRY * claim.idle_claims, counts=True)

    async def _give_back(self, claim: Claim, delay: float, *, counts: bool) -> None:
        """Give a claim up; while the store is away, again and again until the lease runs out anyway."""
        for wait in _WAITS:
            await asyncio.sleep(wait)
            try:
                await self._turns.give_back(claim, delay, counts=counts)
                return
            except ServiceError as error:
                log.warning("turn %s could not be given back yet: %s", claim.turn_id, error.code)

    async def _lease_loop(self) -> None:
        while True:
            await asyncio.sleep(self._lease / 3)
            running = dict(self._running)
            if not running:
                continue
            try:
                mine = await self._turns.renew(self._name, list(running.values()), self._lease)
            except ServiceError as error:
                log.warning("leases could not be renewed: %s", error.code)
                continue
            except Exception:
                # The loop may not end: every lease would run out under work that goes on.
                log.exception("renewing failed")
                continue
            for task, claim in running.items():
                if claim.turn_id not in mine:
                    task.cancel()
