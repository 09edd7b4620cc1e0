"""The wiring of the orchestrator: its stores over one Postgres, its handlers, its worker and its relay."""

from __future__ import annotations

from dataclasses import dataclass

from phronesis_bus import Bus, Relay, follow, serve, serve_basics, take
from phronesis_bus.service import Ping
from phronesis_contracts.deletions import FORGET_SOURCE, PREVIEW_SOURCE
from phronesis_contracts.instructions import RELEASED
from phronesis_contracts.ontology import ONTOLOGY_CHANGED
from phronesis_contracts.orchestrator import TURN, TURN_CANCEL, TURN_GET_TOOL, TURN_LIST, TURN_RATE, TURN_RETRY
from phronesis_contracts.service import KEY_REVOKED
from phronesis_contracts.twin import NODE_CHANGED
from phronesis_postgres import Database

from .agents.cognition.state import Cognition
from .approvals.handlers import PolicyCache, serve_approvals, serve_policies
from .approvals.store import PostgresApprovals, PostgresPolicies
from .conversations.forgetting import serve_forgetting
from .conversations.handlers import ConversationHandlers, serve_conversations, serve_erasing
from .conversations.store import PostgresConversations
from .learning.handlers import BusStreams, Forgetting, serve_learning
from .learning.statements import Copies, Unlearnt
from .learning.store import PostgresCopies, PostgresUnlearnt
from .ledger.budgets import Budgets
from .ledger.store import PostgresLedger, serve_ledger
from .metrics import CANCELLED, RUNNING, SLOTS
from .models.handlers import serve_agents, serve_models
from .models.limits import ModelProfile
from .models.reasoner import Reasoner
from .outside_tools.handlers import serve_outside
from .outside_tools.ports import Servers
from .outside_tools.store import PostgresServers
from .sessions.calendar import CalendarReader, Calendars, Seal
from .sessions.handlers import serve_sessions
from .sessions.store import PostgresCalendars
from .settings import ModelSettings, OrchestratorSettings
from .tasks.background import Background, TaskQueries, serve_tasks
from .tasks.schedules import PostgresSchedules, serve_schedules
from .tasks.store import PostgresTasks, PostgresWaits, RememberedStrategies
from .traces.handlers import TraceHandlers, build_replay_runner, serve_traces
from .traces.store import PostgresTraces
from .turns.handlers import TurnHandlers
from .turns.ports import BusNeighbours, ServiceBreakers, progress_on
from .turns.run import Patience, TurnRunner, TurnServices, Worker
from .turns.store import PostgresJournal, PostgresTurns
from .understanding.reader import Vocabularies


@dataclass(frozen=True)
class Stores:
    """One of each, all over the same database: what is committed by one is seen by the others."""

    database: Database
    turns: PostgresTurns
    journal: PostgresJournal
    approvals: PostgresApprovals
    policies: PostgresPolicies
    conversations: PostgresConversations
    ledger: PostgresLedger
    traces: PostgresTraces
    tasks: TaskQueries
    schedules: PostgresSchedules
    waits: PostgresWaits
    calendars: Calendars
    servers: Servers
    unlearnt: Unlearnt
    copies: Copies


def open_stores(database: Database) -> Stores:
    return Stores(
        database=database,
        turns=PostgresTurns(database),
        journal=PostgresJournal(database),
        approvals=PostgresApprovals(database),
        policies=PostgresPolicies(database),
        conversations=PostgresConversations(database),
        ledger=PostgresLedger(database),
        traces=PostgresTraces(database),
        tasks=PostgresTasks(database),
        schedules=PostgresSchedules(database),
        waits=PostgresWaits(database),
        calendars=PostgresCalendars(database),
        servers=PostgresServers(database),
        unlearnt=PostgresUnlearnt(database),
        copies=PostgresCopies(database),
    )


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
    of_models: ModelSettings | None = None,
) -> None:
    """Wire the orchestrator.

    Args:
        stores: all its stores.
        seal: encrypts secrets of users and outside servers.
        cognition: the stages around a turn's work; without experience where it is left out.
        commands: whether outside servers may be commands that run here.
        of_models: the settings of the language model.
    """
    of_models = of_models or ModelSettings()
    breakers = ServiceBreakers(settings.breaker_failures, settings.breaker_rest)
    breakers.watch(bus.tracing.metrics)
    neighbours = BusNeighbours(bus, of_models.optional_calls, breakers)
    turns, progress = stores.turns, progress_on(bus)
    cognition = cognition or Cognition()

    budgets, policies = Budgets(stores.ledger), PolicyCache(stores.policies.in_force)
    vocabularies = Vocabularies(neighbours)
    strategies = RememberedStrategies(neighbours)
    services = TurnServices(
        turns=turns,
        journal=stores.journal,
        conversations=stores.conversations,
        neighbours=neighbours,
        reasoner=reasoner,
        settings=settings,
        tracing=bus.tracing,
        show=progress,
        ended=relay.wake,
        ledger=budgets,
        approvals=stores.approvals,
        load_policy=policies.load,
        cognition=cognition,
        vocabularies=vocabularies,
        background=Background(
            stores.tasks, strategies, stores.waits, rules_alone=of_models.model_profile is ModelProfile.LOCAL
        ),
    )
    patience = Patience(progress, settings.retry_first, settings.retry_longest, breakers.away)
    worker = Worker(bus, turns, TurnRunner(services).run, settings.slots, settings.lease, patience, settings.task_slots)

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
        neighbours,
        settings,
        progress,
        accepted=worker.wake,
        cancelled=cancelled,
        released=neighbours.forget_agents,
        reasoner=reasoner,
        slots=worker,
    )
    await take(bus, TURN, handlers.turn, workers=_INTAKE)
    await serve(bus, TURN_GET_TOOL, handlers.get)
    await serve(bus, TURN_LIST, handlers.list)
    await serve(bus, TURN_RATE, handlers.rate)
    await serve(bus, TURN_CANCEL, handlers.cancel)
    await serve(bus, TURN_RETRY, handlers.retry)
    await follow(bus, KEY_REVOKED, handlers.on_key_revoked, workers=1)
    await follow(bus, RELEASED, handlers.on_released, every_copy=True)
    await follow(bus, NODE_CHANGED, vocabularies.on_node_changed, every_copy=True)
    await follow(bus, ONTOLOGY_CHANGED, vocabularies.on_ontology_changed, every_copy=True)
    await serve_conversations(bus, ConversationHandlers(stores.conversations, progress, cancelled, BusStreams(bus)))
    await serve_erasing(bus, stores.database, cancelled, cognition.pasts.drop)
    forgetter = await serve_forgetting(bus, stores.database, relay.wake, cancelled, cognition.pasts.drop)
    neighbours.inside(PREVIEW_SOURCE, forgetter.preview)
    neighbours.inside(FORGET_SOURCE, forgetter.forget)
    await serve_tasks(bus, stores.tasks, handlers, strategies, relay.wake, stores.waits, resumed)
    await serve_schedules(bus, stores.schedules, stores.waits, neighbours, settings.expiry, settings.open_turns, resumed)
    await serve_approvals(bus, stores.approvals, resumed)
    await serve_policies(bus, stores.policies, policies, relay.wake)
    await serve_ledger(bus, stores.ledger, budgets, relay.wake)
    await serve_models(bus, reasoner, of_models)
    await serve_agents(bus, neighbours, reasoner)
    replay = build_replay_runner(reasoner, settings, bus.tracing, budgets, vocabularies, policies.load)
    await serve_traces(bus, TraceHandlers(stores.traces, stores.ledger, neighbours, replay))
    own_model = of_models.groq_api_key is not None or of_models.model_url is not None
    model_window = of_models.context_tokens if own_model else None
    await serve_sessions(bus, neighbours, stores.calendars, seal, reader, relay.wake, model_window)
    forgetting = Forgetting(stores.copies, BusStreams(bus), cognition.pasts, relay.wake)
    await serve_learning(bus, stores.unlearnt, forgetting, neighbours, reasoner, budgets)
    await serve_outside(bus, neighbours, stores.servers, seal, commands, relay.wake)
    await serve_basics(bus, pings, breakers=breakers.states)
    relay.start()
    worker.start()
    bus.on_stop(worker.stop)
