"""What the orchestrator does for memory: it learns from ended turns, and removes what is forgotten."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from uuid import UUID

from phronesis_bus import Bus, News, erase_parked, erase_shown, follow
from phronesis_contracts import KeyReused, NotFound, ServiceError
from phronesis_contracts.facts import COPIES_PURGED, LEARN, MEMORY_FORGOTTEN, CopiesPurged, Learn, MemoryForgotten, Statement
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.orchestrator import PROGRESS

from ..agents.cognition.state import RecentHistory
from ..agents.context import read_media
from ..conversations.store import SHOWN
from ..ledger.budgets import Ledger, make_entry
from ..ledger.usage import admission
from ..models.reasoner import Answer, CallFailed, Reasoner, current_call
from ..settings import LearningSettings
from ..turns.ports import Neighbours
from .statements import PURPOSE, Copies, Drawer, Drawn, EndedTurn, Streams, Unlearnt, match_statements


class BusStreams:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def erase_shown(self, tenant: str, user: str, turns: Sequence[str]) -> None:
        await erase_shown(self._bus, PROGRESS, tenant, user, turns)

    async def erase_parked(self, tenant: str, ids: Sequence[str]) -> None:
        await erase_parked(self._bus, tenant, ids)


_PARKED = 31 * 24 * 3_600.0
"""Seconds for which a message of a turn may be parked: thirty days, and a day on the way there."""


class Forgetting:
    """Follows what memory forgets. `wake`: called after a transaction that wrote news."""

    def __init__(self, copies: Copies, streams: Streams, pasts: RecentHistory, wake: Callable[[], None]) -> None:
        self._copies, self._streams, self._pasts, self._wake = copies, streams, pasts, wake

    async def on_memory_forgotten(self, news: News, event: MemoryForgotten) -> None:
        """Remove what was forgotten. A repeat erases in the streams again what the first try may not have reached."""
        await self._copies.forget(news.tenant, event)
        shown = await self._copies.erased(news.tenant, event.owner, SHOWN)
        await self._streams.erase_shown(news.tenant, event.owner, shown)
        turns = await self._copies.erased(news.tenant, event.owner, _PARKED)
        named = dict.fromkeys((*turns, *event.turns, *(id for id in (*event.ids, *event.found_by) if _is_uuid(id))))
        await self._streams.erase_parked(news.tenant, list(named))
        self._wake()

    async def on_copies_purged(self, news: News, event: CopiesPurged) -> None:
        """The rows are gone: no copy of this service keeps what it read of them."""
        self._pasts.drop(news.tenant)


def _is_uuid(text: str) -> bool:
    """Whether an id is one of ours: a name that somebody gave may stand in another's message by chance."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


log = logging.getLogger(__name__)

AGENT = "dialogue"
"""The agent whose instructions hold the prompt."""
ATTEMPTS = 5
"""Claims of a turn after which it is learnt from no more."""
LEASE = 120.0
"""Seconds that a batch has; one that failed is tried again after them."""
_READING = 30.0
"""Seconds that reading one attachment may take."""
_REST = 2.0
"""Seconds between looks at the queue where there is nothing."""


class Learner:
    """Learns from ended turns.

    Args:
        reasoner: what may draw statements.
        ledger: what a model's calls are entered in, and held to: a batch is charged to its oldest turn.
        connected: whether the bus can be reached; nothing is claimed without it.
        after: seconds after which a batch that is not full is taken all the same.
    """

    def __init__(
        self,
        turns: Unlearnt,
        neighbours: Neighbours,
        reasoner: Reasoner,
        ledger: Ledger,
        connected: Callable[[], bool],
        *,
        batch: int,
        after: float,
    ) -> None:
        self._turns, self._neighbours, self._reasoner, self._ledger = turns, neighbours, reasoner, ledger
        self._connected, self._batch, self._after = connected, batch, after
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._loop(), name="learner")

    async def stop(self) -> None:
        """Learn no more; a batch at hand is given back."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _loop(self) -> None:
        while True:
            try:
                if self._connected() and await self.once():
                    continue
            except ServiceError as error:
                log.warning("learning waits: %s", error.code)
            except Exception:
                # The loop may not end: nothing would be learnt any more.
                log.exception("learning failed")
            await asyncio.sleep(_REST)

    async def once(self) -> bool:
        """Learn from one batch; whether there was one.

        Raises:
            ServiceError: memory or the store does not answer; the batch is tried again later.
        """
        claiming = asyncio.create_task(self._turns.claim(self._batch, self._after, LEASE))
        try:
            claimed = await asyncio.shield(claiming)
            batch = [turn for turn in claimed if turn.attempts <= ATTEMPTS]
            if len(batch) < len(claimed):
                log.warning("%d turns are given up: they could not be learnt from", len(claimed) - len(batch))
            drawn = await self._drawn(batch) if batch else None
            for turn in batch:
                await self._tell(turn, None if drawn is None else drawn[turn.turn_id])
            await self._turns.learnt(claimed)
        except asyncio.CancelledError:
            await self._give_back(claiming)
            raise
        return bool(claimed)

    async def _give_back(self, claiming: asyncio.Task[list[EndedTurn]]) -> None:
        """Let another process have a batch at once: it would wait for the lease to end otherwise."""
        try:
            await self._turns.give_back(await claiming)
        except ServiceError as error:
            log.warning("a batch can be learnt from when its lease ends: %s", error.code)

    async def _drawn(self, batch: Sequence[EndedTurn]) -> dict[str, tuple[Statement, ...]] | None:
        """What a model drew, by turn; `None` where there is none, or it failed, and rules do it."""
        reasoner = self._reasoner
        if not isinstance(reasoner, Drawer):
            return None
        try:
            agent = await self._neighbours.agent(batch[0].who, AGENT)
            if PURPOSE not in agent.prompts:
                return None
            batch = [await self._with_documents(turn) for turn in batch]
            answer = await self._charged(reasoner, agent, batch)
        except CallFailed as failed:
            log.warning("the model drew nothing, rules do: %s", failed.error.code)
            return None
        except ServiceError as error:
            log.warning("no model was asked, rules draw: %s", error.code)
            return None
        return None if answer.value is None else match_statements(answer.value, batch)

    async def _with_documents(self, turn: EndedTurn) -> EndedTurn:
        """The turn with the texts of what was attached; without those that cannot be read any more."""
        found = await read_media(self._neighbours, turn.who, turn.media, None, _READING)
        return replace(turn, documents=found.documents)

    async def _charged(self, reasoner: Drawer, agent: AgentProfile, batch: Sequence[EndedTurn]) -> Answer[Drawn]:
        """Make the call within the limits, and enter what it used, whatever it gave.

        Raises:
            CallFailed: no answer came.
            ServiceError: a limit is reached (`BudgetExceeded`), or the ledger does not answer.
        """
        payer, began = batch[0], perf_counter()
        asking, admitted = current_call.set(f"{payer.turn_id}/{PURPOSE}"), admission.set(lambda: self._ledger.admit(payer))
        made: Answer[Drawn] | CallFailed
        try:
            made = await reasoner.draw(agent, batch)
        except CallFailed as failed:
            made = failed
        finally:
            admission.reset(admitted)
            current_call.reset(asking)
        if spend := make_entry(PURPOSE, made, began):
            await self._ledger.spent(payer, spend)
        if isinstance(made, CallFailed):
            raise made
        return made

    async def _tell(self, turn: EndedTurn, statements: tuple[Statement, ...] | None) -> None:
        request = Learn(
            turn_id=turn.turn_id,
            conversation_id=turn.conversation_id,
            said=turn.said if statements is None else "",
            said_at=turn.at,
            statements=statements,
        )
        try:
            await self._neighbours.ask(turn.who, LEARN, request, key=f"learn/{turn.turn_id}")
        except KeyReused:
            # An earlier try was written, and its answer lost; a model said it differently this time.
            log.info("turn %s was learnt from before", turn.turn_id)
        except NotFound as error:
            log.warning("turn %s teaches nothing: %s", turn.turn_id, error.code)


async def serve_learning(
    bus: Bus, turns: Unlearnt, forgetting: Forgetting, neighbours: Neighbours, reasoner: Reasoner, ledger: Ledger
) -> None:
    """Follow what is forgotten, and begin to learn. `reasoner`: what may draw statements."""
    settings = LearningSettings()
    await follow(bus, MEMORY_FORGOTTEN, forgetting.on_memory_forgotten, workers=1)
    await follow(bus, COPIES_PURGED, forgetting.on_copies_purged, every_copy=True)
    connected, batch, after = lambda: bus.connected, settings.learn_batch, settings.learn_after
    learner = Learner(turns, neighbours, reasoner, ledger, connected, batch=batch, after=after)
    if settings.learn:
        learner.start()
        bus.on_stop(learner.stop)
