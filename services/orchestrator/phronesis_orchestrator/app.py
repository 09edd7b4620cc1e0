"""All that the orchestrator does, in one place."""

from __future__ import annotations

from functools import partial

from phronesis_bus import Bus, Relay, follow, serve, serve_basics, show, take
from phronesis_bus.service import Ping
from phronesis_contracts import Principal
from phronesis_contracts.instructions import RELEASED
from phronesis_contracts.media import MEDIA_PURGED
from phronesis_contracts.memory import MEMORY_PURGED
from phronesis_contracts.orchestrator import (
    CONVERSATION_DELETE,
    CONVERSATION_FIND,
    CONVERSATION_GET,
    CONVERSATION_LIST,
    DELETION_GET,
    PROGRESS,
    TURN,
    TURN_CANCEL,
    TURN_GET_TOOL,
    TURN_LIST,
    TURN_RETRY,
    TurnProgress,
)
from phronesis_contracts.service import AUDITED, KEY_REVOKED
from phronesis_contracts.twin import GRAPH_PURGED

from .agents.cognition.state import Cognition
from .approvals.handlers import serve_approvals
from .learning.handlers import BusStreams, Forgetting, serve_learning
from .ledger.books import Budgets, Ledger
from .ledger.handlers import serve_ledger
from .metrics import CANCELLED, RUNNING, SLOTS
from .models.reasoner import Reasoner
from .outside_tools.handlers import serve_outside
from .sessions.calendar import CalendarReader, Seal
from .sessions.handlers import serve_sessions
from .settings import OrchestratorSettings
from .stores import Stores
from .tasks.background import Background
from .tasks.handlers import serve_tasks
from .tasks.store import RememberedStrategies
from .traces.handlers import TraceHandlers, build_replay_runner, serve_traces
from .traces.recorder import build_record_keeper
from .turns.handlers import TurnHandlers
from .turns.neighbours import BusNeighbours
from .turns.run import TurnRunner
from .turns.turn import Claim
from .turns.worker import Worker

_INTAKE = 8


async def build(
    bus: Bus,
    settings: OrchestratorSettings,
    stores: Stores,
    relay: Relay,
    reasoner: Reasoner,
    pings: dict[str, Ping],
    seal: Seal,
    reader: CalendarReader,
    cognition: Cognition | None = None,
    *,
    commands: bool = False,
) -> None:
    """Wire the orchestrator.

    Args:
        bus: the connected bus.
        settings: the service's settings.
        stores: where everything is kept.
        relay: sends the news that the stores commit.
        reasoner: who thinks.
        pings: what has to answer for the service to be ready.
        seal: encrypts secrets of users and outside servers.
        reader: takes calendars apart.
        cognition: the stages around a turn's work; without experience where it is left out.
        commands: whether outside servers may be commands that run here.
    """
    neighbours, turns, conversations, records = BusNeighbours(bus), stores.turns, stores.conversations, stores.records
    cognition = cognition or Cognition()

    async def progress(who: Principal, line: TurnProgress) -> None:
        await show(bus, who, PROGRESS, line.turn_id, line)

    async def show_claim(claim: Claim, line: TurnProgress) -> None:
        await progress(claim.who, line)

    budgets = Budgets(records)
    books = Ledger(records, budgets)
    runner = TurnRunner(
        turns=turns,
        journal=stores.journal,
        conversations=conversations,
        neighbours=neighbours,
        reasoner=reasoner,
        settings=settings,
        tracing=bus.tracing,
        show=show_claim,
        ended=relay.wake,
        books=books,
        keep=build_record_keeper(records),
        approvals=turns,
        cognition=cognition,
        background=Background(stores.tasks, RememberedStrategies(neighbours)),
    )
    worker = Worker(bus.process, turns, runner.run, lambda: bus.connected, settings.slots, settings.lease, settings.task_slots)

    def cancelled(turn_id: str) -> None:
        bus.tracing.metrics.count(CANCELLED)
        worker.cancel(turn_id)

    def resumed() -> None:
        worker.wake()
        relay.wake()

    bus.tracing.metrics.watch(RUNNING, lambda: float(worker.running))
    bus.tracing.metrics.set(SLOTS, settings.slots)
    handlers = TurnHandlers(
        turns,
        conversations,
        records,
        neighbours,
        settings,
        progress,
        accepted=worker.wake,
        cancelled=cancelled,
        released=neighbours.forget_agents,
    )
    await take(bus, TURN, handlers.turn, workers=_INTAKE)
    await serve(bus, TURN_GET_TOOL, handlers.get)
    await serve(bus, TURN_LIST, handlers.list)
    await serve(bus, TURN_CANCEL, handlers.cancel)
    await serve(bus, TURN_RETRY, handlers.retry)
    await serve(bus, CONVERSATION_GET, handlers.conversation)
    await serve(bus, CONVERSATION_LIST, handlers.conversations)
    await serve(bus, CONVERSATION_FIND, handlers.find_conversation)
    await serve(bus, CONVERSATION_DELETE, handlers.delete_conversation)
    await serve(bus, DELETION_GET, handlers.deletion)
    await follow(bus, MEMORY_PURGED, partial(handlers.on_purged, service="memory"), workers=1)
    await follow(bus, GRAPH_PURGED, partial(handlers.on_purged, service="graph"), workers=1)
    await follow(bus, MEDIA_PURGED, partial(handlers.on_purged, service="media"), workers=1)
    await follow(bus, KEY_REVOKED, handlers.on_key_revoked, workers=1)
    await follow(bus, RELEASED, handlers.on_released, every_copy=True)
    for service, event in AUDITED.items():
        await follow(bus, event, partial(handlers.on_audited, service=service), workers=1)
    await serve_tasks(bus, stores.tasks, handlers)
    await serve_approvals(bus, turns, progress, resumed)
    await serve_ledger(bus, records, budgets, relay.wake)
    await serve_traces(
        bus, TraceHandlers(records, records, neighbours, build_replay_runner(reasoner, settings, bus.tracing, books))
    )
    await serve_sessions(bus, neighbours, stores.calendars, seal, reader, relay.wake)
    forgetting = Forgetting(stores.copies, BusStreams(bus), cognition.pasts, relay.wake)
    await serve_learning(bus, stores.unlearnt, forgetting, neighbours, reasoner, books)
    await serve_outside(bus, neighbours, stores.servers, seal, commands, relay.wake)
    await serve_basics(bus, pings)
    relay.start()
    worker.start()
    bus.on_stop(worker.stop)
