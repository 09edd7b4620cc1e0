"""One run of the turn core under one seed: its processes, what they are wired of, and what becomes of it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, cast

from phronesis_bus import Bus, Call, Relay, follow, take
from phronesis_bus.settings import BusSettings
from phronesis_contracts import Principal, Rpc, ServiceError, TimedOut, Unavailable
from phronesis_contracts.instructions import AGENT_GET
from phronesis_contracts.orchestrator import TURN, TURN_ENDED
from phronesis_orchestrator.agents.loops import LOOPS
from phronesis_orchestrator.approvals.handlers import ApprovalHandlers, start_sweep
from phronesis_orchestrator.approvals.store import PostgresApprovals
from phronesis_orchestrator.conversations.store import PostgresConversations
from phronesis_orchestrator.models.reasoner import Reasoner
from phronesis_orchestrator.settings import OrchestratorSettings
from phronesis_orchestrator.turns import ports
from phronesis_orchestrator.turns.handlers import TurnHandlers
from phronesis_orchestrator.turns.ports import BusNeighbours, ServiceBreakers, progress_on
from phronesis_orchestrator.turns.run import Patience, TurnServices, Worker
from phronesis_orchestrator.turns.store import PostgresJournal, PostgresTurns
from phronesis_postgres import PostgresOutbox

from .agent import AGENT, Agent, Keep, Kept, Owner, SimulatedRunner
from .broker import Broker, Client, Network
from .clients import Clients
from .faults import Faults
from .loop import EPOCH, Process, SimulatedLoop, seeded
from .monitor import Monitor
from .options import AT_LATEST, CALM, EXPIRY, IDLE_CLAIMS, LEASE, STEPS, Options, draw_options
from .postgres import Server
from .stand_ins import NoReasoner, NoTracing, SimulatedBus, SimulatedWire
from .statements import STATEMENTS, open_database


@dataclass(eq=False)
class Orchestrator:
    """One life of an orchestrator's process."""

    process: Process
    client: Client
    handlers: TurnHandlers | None = None
    approvals: ApprovalHandlers | None = None
    bus: SimulatedBus | None = None


class World:
    """Everything of one run.

    Args:
        log: takes a line for all that happens; lines are only made where somebody reads them.
    """

    def __init__(self, loop: SimulatedLoop, options: Options, log: Callable[[str], None] | None = None) -> None:
        self.loop, self.options, self._log = loop, options, log
        self.network = Network(loop, options.lost, options.doubled, options.slow)
        broker, database, store = Process("broker"), Process("postgres"), Process("postgres-memory")
        self.broker = Broker(loop, self.network, broker, ack_wait=5.0)
        self.wires = {process: SimulatedWire(loop, process) for process in (database, store)}
        self.servers = {
            process: Server(STATEMENTS, lambda at=process: EPOCH + loop.now + at.clock_error, wire)  # type: ignore[misc]
            for process, wire in self.wires.items()
        }
        self.database, self.store = self.servers.values()
        self.database_process, self.store_process = self.servers
        self.settings = OrchestratorSettings.model_construct(
            slots=options.slots,
            task_slots=1,
            lease=LEASE,
            idle_claims=IDLE_CLAIMS,
            expiry=EXPIRY,
            open_turns=30,
            turn_limit=25.0,
        )
        self.bus_settings = BusSettings(ack_wait=5.0, redelivery_delay=0.5, redelivery_limit=8)
        self.monitor = Monitor(self, IDLE_CLAIMS, LEASE)
        self.database.committed.append(self.monitor.check_commit)
        self.store.committed.append(self.monitor.check_effects)
        self.orchestrators: list[Orchestrator] = []
        self.owners: list[tuple[Process, Owner]] = []
        self._lives = 0
        self.stopped: set[str] = set()
        """Names of processes that were stopped in order."""
        self.restless = True
        """Whether things still go wrong."""
        self.digest = hashlib.sha256()
        self.counts: dict[str, int] = {}
        self.faults, self.clients = Faults(self), Clients(self)
        self.broker.shown = self.clients.hear

    def tell(self, what: str, *about: object) -> None:
        """Note something that happened; the notes of two runs of one seed are the same."""
        self.counts[what] = self.counts.get(what, 0) + 1
        line = f"{self.loop.now:9.4f} {what} {' '.join(map(str, about))}"
        self.digest.update(line.encode())
        if self._log is not None:
            self._log(line)

    def think_seconds(self) -> float:
        drawn = self.loop.random.random()
        return drawn * 0.2 if drawn < 0.8 else drawn * 4

    async def run(self) -> None:
        options = self.options
        for number in range(options.orchestrators):
            self.start_orchestrator(number)
        for number in range(2):
            self.start_owner(number)
        clients = [
            asyncio.create_task(self.clients.converse(f"t{user % 2}", f"u{user}", conversation))
            for user in range(options.users)
            for conversation in range(options.conversations)
        ]
        faults = asyncio.create_task(self.faults.go_wrong())
        self._set_breaks(options.database_breaks)
        await asyncio.sleep(CALM)
        await faults
        self.restless = False
        self._set_breaks(0.0)
        self.network.lost = self.network.doubled = self.network.slow = 0.0
        self.options.owner_fails = 0.0
        self.tell("calm")
        await asyncio.gather(*clients)
        while not self.monitor.settled():  # noqa: ASYNC110  # what is waited for is several things, and time is free
            await asyncio.sleep(0.5)
        self.monitor.check_end()

    def spawn(self, work: Coroutine[Any, Any, object]) -> None:
        """Let something happen beside the rest; an error in it is one of the simulation."""

        def ended(task: asyncio.Task[object]) -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                self.monitor.break_off(f"the simulation itself failed: {error!r}")

        asyncio.create_task(work).add_done_callback(ended)

    def alive(self) -> list[Orchestrator]:
        return [life for life in self.orchestrators if life.process.alive]

    def _set_breaks(self, breaks: float) -> None:
        for wire in self.wires.values():
            wire.breaks = breaks

    # Processes.

    def start_orchestrator(self, number: int) -> None:
        self._lives += 1
        process = Process(f"orchestrator-{number}.{self._lives}")
        life = Orchestrator(process, Client(self.broker, process))
        self.orchestrators.append(life)
        self._start(process, self._serve(life))

    def start_owner(self, number: int) -> None:
        self._lives += 1
        process = Process(f"memory-{number}.{self._lives}")
        owner = Owner(open_database(self.store, process), self)
        self.owners.append((process, owner))
        self._start(process, self._follow(process, owner))

    def _start(self, process: Process, main: Any) -> None:
        self.loop.create_task(main, name=process.name, context=process.context.copy())

    async def _serve(self, life: Orchestrator) -> None:
        """What the service's own `build` wires for turns."""
        bus = life.bus = SimulatedBus("orchestrator", life.client, self.bus_settings)
        database = open_database(self.database, life.process)
        turns, approvals = PostgresTurns(database), PostgresApprovals(database)
        relay, progress = Relay(bus, PostgresOutbox(database)), progress_on(bus)
        breakers = ServiceBreakers(rest=1.0)
        neighbours = BusNeighbours(bus, breakers=breakers)
        services = TurnServices(
            turns=turns,
            journal=PostgresJournal(database),
            conversations=PostgresConversations(database),
            neighbours=neighbours,
            reasoner=cast(Reasoner, NoReasoner()),
            settings=self.settings,
            tracing=cast(Any, NoTracing()),
            show=progress,
            ended=relay.wake,
            approvals=approvals,
        )
        patience = Patience(progress, 0.5, 4.0, breakers.away)
        worker = Worker(bus, turns, SimulatedRunner(services).run, self.settings.slots, LEASE, patience)

        def resumed() -> None:
            worker.wake()
            relay.wake()

        life.handlers = TurnHandlers(
            turns, neighbours, self.settings, progress, worker.wake, worker.cancel, lambda: None, slots=worker
        )
        life.approvals = ApprovalHandlers(approvals, resumed)
        await take(bus, TURN, life.handlers.turn, workers=2)
        start_sweep(bus, "approvals", lambda: approvals.expire(10), resumed, 2.0)
        relay.start()
        worker.start()
        bus.on_stop(worker.stop)

    async def _follow(self, process: Process, owner: Owner) -> None:
        bus = SimulatedBus("memory", Client(self.broker, process), self.bus_settings)
        await follow(bus, TURN_ENDED, owner.on_turn_ended, workers=1)

    def kill(self, process: Process) -> None:
        """End a process at once. The databases see their connections end a little later, or much later."""
        self.loop.kill(process)
        for client in self.broker.clients:
            if client.process is process:
                self.broker.forget(client)
        drawn = self.loop.random.random()
        for of, server in self.servers.items():
            self.loop.call_later(drawn * 0.05 if drawn < 0.8 else drawn * 8, server.close_all, process, context=of.context)

    async def ask(
        self,
        bus: Bus,
        who: Principal,
        rpc: Rpc[Any, Any],
        request: Any,
        *,
        timeout: float | None = None,
        key: str | None = None,
    ) -> Any:
        """In place of the bus library's `ask`: a question to another service, and its answer, either of which may be lost."""
        if not bus.connected:
            raise Unavailable("the broker is away", retry_after=1)
        if rpc is AGENT_GET:
            await asyncio.sleep(self.network.delay())
            if self.loop.random.random() < self.options.owner_fails:
                raise TimedOut("no answer in time")
            return AGENT
        return await self._ask_owner(Call(who, "orchestrator", key), request)

    async def _ask_owner(self, call: Call, request: Keep) -> Kept:
        """Ask the service that keeps what turns write. Raises `Unavailable` and `TimedOut`."""
        chance = self.loop.random
        ready = [found for found in self.owners if found[0].alive]
        if not ready or not self.broker.up:
            raise Unavailable("nobody answers", retry_after=1)
        answer = self.loop.create_future()
        process, owner = chance.choice(ready)

        async def work() -> None:
            try:
                given: Kept | ServiceError = await owner.keep(call, request)
            except ServiceError as error:
                given = error
            if not answer.done() and chance.random() >= self.options.owner_fails:
                self.loop.call_later(self.network.delay(), _set, answer, given)

        if chance.random() >= self.options.owner_fails:
            delay = self.network.delay()
            self.loop.call_later(delay, lambda: self._start(process, work()), context=process.context)
        try:
            async with asyncio.timeout(3):
                given = await answer
        except TimeoutError as error:
            raise TimedOut("no answer in time") from error
        if isinstance(given, ServiceError):
            raise given
        return cast(Kept, given)


def _set(answer: asyncio.Future[Any], given: object) -> None:
    if not answer.done():
        answer.set_result(given)


@dataclass
class Outcome:
    """What became of one seed."""

    seed: int
    violation: str | None
    steps: int
    seconds: float
    """Virtual seconds that it took."""
    digest: str
    options: str
    counts: dict[str, int]


def run_seed(seed: int, log: Callable[[str], None] | None = None) -> Outcome:
    """Run one seed to its end, or to the first thing that may not be."""
    loop = SimulatedLoop(seed, STEPS)
    options = draw_options(loop)
    told = str(options)
    router, ask = LOOPS["router"], ports.ask
    with seeded(loop):
        world = World(loop, options, log)
        LOOPS["router"], ports.ask = Agent(world).run, world.ask
        violation: str | None = None
        try:
            loop.run(world.run(), AT_LATEST)
        except Exception as error:
            violation = f"{type(error).__name__}: {error}; {world.monitor.unended()}"
        finally:
            LOOPS["router"], ports.ask = router, ask
        violation = world.monitor.violation or violation
        outcome = Outcome(seed, violation, loop.steps, loop.now, world.digest.hexdigest()[:16], told, world.counts)
        loop.close_all()
    return outcome
