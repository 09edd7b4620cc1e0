"""One run of the turn core under one seed: its processes, the people who use it, what goes wrong, and what has to hold."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any, cast

from nats.aio.client import Client as NatsClient
from opentelemetry.trace import INVALID_SPAN, Span
from pydantic import BaseModel

from phronesis_bus import Bus, Call, News, Relay, follow, take
from phronesis_bus.envelope import PRINCIPAL, SERVICE, encode
from phronesis_bus.metrics import Metrics
from phronesis_bus.settings import BusSettings
from phronesis_contracts import KeyReused, Message, Principal, Risk, Rpc, ServiceError, TimedOut, Unavailable
from phronesis_contracts.approvals import AnswerApproval, ApprovalStatus, Decision
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.orchestrator import TURN, TURN_ENDED, Directive, SubmitTurn, TurnEndedNews, TurnProgress, TurnRef
from phronesis_contracts.orchestrator import turn_id as make_turn_id
from phronesis_orchestrator.agents.context import MediaText
from phronesis_orchestrator.agents.loops import LOOPS, LoopAnswer
from phronesis_orchestrator.approvals.handlers import ApprovalHandlers, start_sweep
from phronesis_orchestrator.approvals.policy import Ruling, Verdict, Waiting, missing_approval, request_approval
from phronesis_orchestrator.approvals.store import PostgresApprovals
from phronesis_orchestrator.conversations.history import Past
from phronesis_orchestrator.conversations.store import PostgresConversations
from phronesis_orchestrator.models.reasoner import Answer, Reasoner, TurnContext
from phronesis_orchestrator.settings import OrchestratorSettings
from phronesis_orchestrator.traces.record import TurnRecord
from phronesis_orchestrator.turns.execution import RecordingNeighbours, Steps, TurnRun, await_store
from phronesis_orchestrator.turns.handlers import TurnHandlers
from phronesis_orchestrator.turns.ports import Neighbours, progress_on
from phronesis_orchestrator.turns.run import TurnRunner, TurnServices, Worker
from phronesis_orchestrator.turns.store import PostgresJournal, PostgresTurns
from phronesis_orchestrator.turns.turn import Claim, Completed, Failed, new_conversation_id
from phronesis_postgres import Connection, Database, PostgresOutbox, write_once

from .broker import Broker, Client, Network
from .loop import EPOCH, Process, SimulatedLoop, seeded
from .monitor import Monitor
from .postgres import Change, Server, Transaction, Wire
from .statements import STATEMENTS, open_database, statement

LEASE = 3.0
IDLE_CLAIMS = 3
EXPIRY = 60.0
APPROVAL = 12.0
"""Seconds that an approval waits for its answer."""
CALM = 20.0
"""Seconds at the end of which nothing goes wrong any more."""
AT_LATEST = 400.0
"""Seconds at which everything has to have ended."""
STEPS = 150_000


# What a run is made of, and how much of each thing goes wrong in it.


@dataclass
class Options:
    """What the seed decides ahead of a run. Each kind of fault is left out of most runs, so that the others are seen by
    themselves, and is frequent in the ones that have it.
    """

    orchestrators: int = 2
    users: int = 2
    conversations: int = 3
    turns: int = 3
    """Turns of a conversation at most."""
    slots: int = 2
    lost: float = 0.0
    doubled: float = 0.0
    slow: float = 0.0
    database_breaks: float = 0.0
    """How likely the connection to the database breaks at a statement, before it or behind it."""
    owner_fails: float = 0.0
    """How likely a question to a neighbour is lost, or its answer."""
    kills: int = 0
    stops: int = 0
    """Processes that are stopped in order, and begun again."""
    pauses: int = 0
    jumps: int = 0
    """Jumps of clocks: the database's, or a process's."""
    outages: int = 0
    """Outages of a database or the broker."""
    cuts: int = 0
    """Times that one process cannot reach the broker."""
    cancels: float = 0.0
    repeats: float = 0.0
    """How likely a client sends its turn twice at once, or the same key again with another text."""

    def __str__(self) -> str:
        told = {of.name: getattr(self, of.name) for of in fields(self)}
        return ", ".join(f"{name} {value:.3g}" for name, value in told.items() if value)


def draw_options(loop: SimulatedLoop) -> Options:
    chance = loop.random

    def some(most: float) -> float:
        return chance.random() * most if chance.random() < 0.5 else 0.0

    def few(most: int) -> int:
        return chance.randint(1, most) if chance.random() < 0.5 else 0

    return Options(
        orchestrators=chance.choice((1, 2, 2, 3)),
        users=chance.randint(1, 2),
        conversations=chance.randint(1, 3),
        turns=chance.randint(1, 3),
        slots=chance.choice((1, 2, 4)),
        lost=some(0.1),
        doubled=some(0.2),
        slow=some(0.1),
        database_breaks=some(0.08),
        owner_fails=some(0.2),
        kills=few(4),
        stops=few(2),
        pauses=few(6),
        jumps=few(3),
        outages=few(2),
        cuts=few(2),
        cancels=some(0.4),
        repeats=some(0.6),
    )


class SimulatedWire(Wire):
    """The way to a server that is a process of its own, with what goes wrong on it."""

    def __init__(self, loop: SimulatedLoop, process: Process) -> None:
        self._loop, self._process = loop, process
        self.breaks = 0.0
        self.down = False

    def _later(self, delay: float, callback: Callable[..., None], *args: Any) -> None:
        self._loop.call_later(delay, callback, *args, context=self._process.context)

    def deliver(self, callback: Callable[..., None], *args: Any) -> None:
        drawn = self._loop.random.random()
        self._later(0.0005 + drawn * 0.002 if drawn < 0.97 else drawn * 0.3, callback, *args)

    def rest(self, callback: Callable[..., None], *args: Any) -> None:
        self._later(self._loop.random.random() * 0.02, callback, *args)

    def wake(self, callback: Callable[..., None], *args: Any) -> None:
        self._later(0.0001, callback, *args)

    def loses(self, when: str) -> bool:
        return bool(self.breaks) and self._loop.random.random() < self.breaks / 2

    def skips(self) -> bool:
        return self._loop.random.random() < 0.5

    def refuses(self) -> bool:
        return self.down


class NoMetrics:
    def count(self, *_: Any, **__: Any) -> None: ...

    observe = set = watch = probe = count


class NoTracing:
    """Tracing that tells nothing, and takes no time."""

    exports = False
    metrics = cast(Metrics, NoMetrics())

    @contextmanager
    def span(self, name: str, **_: Any) -> Iterator[Span]:
        yield INVALID_SPAN


class TrustingVerifier:
    """A principal's token is the principal: signatures are not what is simulated."""

    def __init__(self) -> None:
        self._known: dict[str, Principal] = {}

    def principal(self, token: str, *, at: float | None = None) -> Principal:
        found = self._known.get(token)
        if found is None:
            found = self._known[token] = Principal.model_validate_json(token)
        return found


class SimulatedBus(Bus):
    """The library's bus on the model of the broker."""

    def __init__(self, name: str, client: Client, settings: BusSettings) -> None:
        self.name = name
        self.process = client.process.name
        self.settings = settings
        self.nats = cast(NatsClient, client)
        self.tracing = cast(Any, NoTracing())
        self.verifier = cast(Any, TrustingVerifier())
        self.up, self.stopping, self.lost = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._wakers, self._closers = [], []
        client.reconnected = self.reconnected


# The service that owns what turns write, and the agent that works on them.


class Keep(Message):
    text: str


class Kept(Message):
    id: int


KEEP = Rpc("memory.v1.simulation.keep", Keep, Kept)
_EFFECT = "INSERT INTO effects (tenant, key, text) VALUES ($1, $2, $3) RETURNING id"


@statement(_EFFECT)
def write_effect(at: Transaction, tenant: str, key: str, text: str) -> dict[str, Any]:
    id = at.server.next_id()
    at.insert("effects", (id,), {"id": id, "tenant": tenant, "key": key, "text": text})
    return {"id": id}


class Owner:
    """A service that keeps what turns write, each write once for its key, and follows what became of turns."""

    def __init__(self, database: Database, world: World) -> None:
        self._database, self._world = database, world

    async def keep(self, call: Call, request: Keep) -> Kept:
        async def write(connection: Connection) -> Kept:
            row = await connection.fetchrow(_EFFECT, call.who.tenant, call.key, request.text)
            assert row is not None
            return Kept(id=row["id"])

        return await write_once(self._database, call, request, Kept, write)

    async def on_turn_ended(self, news: News, event: TurnEndedNews) -> None:
        self._world.monitor.check_news(news.id, event)
        who = Principal(tenant=news.tenant, user=event.user)
        await self.keep(Call(who, "news", news.id), Keep(text="ended"))
        self._world.monitor.hear_end(event)


class SimulatedNeighbours:
    """The services that a turn asks, across a network that loses questions and answers."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def agent(self, who: Principal, name: str) -> AgentProfile:
        return AGENT

    async def ask(self, who: Principal, rpc: Rpc[Any, Any], request: Message, *, key: str | None = None) -> Any:
        assert rpc is KEEP
        return await self._world.ask_owner(Call(who, "orchestrator", key), cast(Keep, request))


class Made(BaseModel):
    text: str


AGENT = AgentProfile.model_construct(name="dialogue", stages=(), loop="router", arms={})


def plan_steps(text: str) -> str:
    """The steps of a turn, a letter for each: a model call, a write, a call to an outside system, one that needs approval."""
    return text.partition(" ")[0]


class Agent:
    """The loop that works on turns: it does what the message says, by the steps that production's agents take."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def run(self, running: TurnRun, reasoner: Reasoner, turn: TurnContext) -> LoopAnswer:
        await asyncio.sleep(self._world.think_seconds())
        for at, kind in enumerate(plan_steps(running.claim.request.text)):
            await self._take_step(running, kind, f"{kind}{at}")
        await asyncio.sleep(self._world.think_seconds())
        return LoopAnswer(f"answer to {running.claim.request.text}", Directive.FOCUSED_ANALYST, "because", None)

    async def _take_step(self, running: TurnRun, kind: str, name: str) -> None:
        world, claim = self._world, running.claim
        match kind:
            case "m":

                async def think() -> Answer[Made]:
                    world.monitor.begin_call(claim, name)
                    await asyncio.sleep(world.think_seconds())
                    return Answer(Made(text=name))

                await running.steps.made(name, Made, think)
            case "o":

                async def call() -> dict[str, Any]:
                    world.monitor.begin_call(claim, name, once=True)
                    await asyncio.sleep(world.think_seconds())
                    return {"answer": "done"}

                await running.steps.called(name, "outside", call, again=False, changes=True)
            case "w" | "a":

                async def write() -> dict[str, Any]:
                    problem = await self._refusal(running, name) if kind == "a" else None
                    world.monitor.begin_call(claim, name)
                    if problem is not None:
                        return {"problem": problem.body()}
                    return await self._write(running, name)

                await running.steps.called(name, "keep", write, changes=True)

    async def _write(self, running: TurnRun, name: str) -> dict[str, Any]:
        claim = running.claim
        try:
            kept = await running.neighbours.ask(claim.who, KEEP, Keep(text=name), key=f"{claim.turn_id}/{name}")
        except ServiceError as error:
            return {"problem": error.body()}
        return {"answer": kept.model_dump()}

    async def _refusal(self, running: TurnRun, name: str) -> ServiceError | None:
        verdict = Verdict(Ruling.ASK, "keep", "keep", Risk.MEDIUM, False)
        question = request_approval(running.claim.turn_id, name, verdict, Keep(text=name), seconds=APPROVAL)
        assert running.approvals is not None
        found = await await_store(running.approvals.answered(running.claim, question.approval_id))
        if found is None or found.status is ApprovalStatus.PENDING:
            raise Waiting(question)
        return None if found.status is ApprovalStatus.GRANTED else missing_approval(found)


class SimulatedRunner(TurnRunner):
    """The runner, without the stages that read what a turn is answered from: they write nothing."""

    async def _run_stages(self, claim: Claim, record: TurnRecord, tools: list[Any]) -> Completed | Failed:
        services, request = self._services, claim.request
        running = TurnRun(
            claim,
            Steps(services.journal, claim, services.tracing, services.ledger),
            services.tracing,
            RecordingNeighbours(services.neighbours, record),
            services.settings,
            services.show,
            [],
            tools=tools,
            approvals=services.approvals,
            record=record,
        )
        turn = TurnContext(None, {}, (), Directive.FOCUSED_ANALYST, request.text, request.text)
        return await self._run_loop(running, turn, Past(), MediaText("", (), 0))


# A run.


@dataclass(eq=False)
class Orchestrator:
    """One life of an orchestrator's process."""

    process: Process
    client: Client
    handlers: TurnHandlers | None = None
    approvals: ApprovalHandlers | None = None
    bus: SimulatedBus | None = None


@dataclass
class Submitted:
    """A turn that a client has sent."""

    id: str
    who: Principal
    text: str
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    answer: TurnProgress | None = None
    """`accepted` or `refused`, as it was heard first."""
    conversation: str | None = None


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
        self.broker.shown = self._hear
        self.wires = {process: SimulatedWire(loop, process) for process in (database, store)}
        self.servers = {
            process: Server(STATEMENTS, lambda at=process: EPOCH + loop.now + at.clock_error, wire)  # type: ignore[misc]
            for process, wire in self.wires.items()
        }
        self.database, self.store = self.servers.values()
        self._database_process, self._store_process = self.servers
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
        self.database.committed.append(self._strike)
        self.store.committed.append(self.monitor.check_effects)
        self.orchestrators: list[Orchestrator] = []
        self.owners: list[tuple[Process, Owner]] = []
        self._lives = 0
        self._aimed: dict[Process, tuple[int, Callable[[], None]]] = {}
        """Commits of a process until something happens to it."""
        self.submitted: dict[str, Submitted] = {}
        self.stopped: set[str] = set()
        """Names of processes that were stopped in order."""
        self.restless = True
        """Whether things still go wrong."""
        self.digest = hashlib.sha256()
        self.counts: dict[str, int] = {}

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
            asyncio.create_task(self._converse(f"t{user % 2}", f"u{user}", conversation))
            for user in range(options.users)
            for conversation in range(options.conversations)
        ]
        faults = asyncio.create_task(self._go_wrong())
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
        neighbours = cast(Neighbours, SimulatedNeighbours(self))
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
        worker = Worker(bus, turns, SimulatedRunner(services).run, self.settings.slots, LEASE)

        def resumed() -> None:
            worker.wake()
            relay.wake()

        life.handlers = TurnHandlers(turns, neighbours, self.settings, progress, worker.wake, worker.cancel, lambda: None)
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

    # What goes wrong.

    async def _go_wrong(self) -> None:
        options, chance = self.options, self.loop.random
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
            await asyncio.sleep(max(0.0, at - self.loop.now))
            running.append(asyncio.create_task(fault()))
        await asyncio.gather(*running)

    def _alive(self) -> list[Orchestrator]:
        return [life for life in self.orchestrators if life.process.alive]

    def _strike(self, by: object, changes: list[Change]) -> None:
        if isinstance(by, Process) and by in self._aimed:
            left, deed = self._aimed[by]
            if left > 1:
                self._aimed[by] = left - 1, deed
            else:
                del self._aimed[by]
                deed()

    def _aim(self, process: Process, deed: Callable[[], None]) -> None:
        """Let something happen to a process now, or, which is worse for it, before it hears of a commit of its own."""
        if self.loop.random.random() < 0.3:
            deed()
        else:
            self._aimed[process] = self.loop.random.randint(1, 5), deed

    async def _kill(self) -> None:
        chance = self.loop.random
        if chance.random() < 0.25 and self.owners:
            process, _ = chance.choice(self.owners)
            self.tell("kill", process.name)
            self.kill(process)
            self.owners = [found for found in self.owners if found[0] is not process]
            await asyncio.sleep(chance.random() * 3)
            self.start_owner(int(process.name[len("memory-") :].partition(".")[0]))
        elif alive := self._alive():
            life = chance.choice(alive)

            def kill() -> None:
                if life.process.alive:
                    self.tell("kill", life.process.name)
                    self.kill(life.process)
                    self._restart(life)

            self._aim(life.process, kill)

    def _restart(self, life: Orchestrator) -> None:
        self.orchestrators.remove(life)
        number = int(life.process.name[len("orchestrator-") :].partition(".")[0])
        seconds = self.loop.random.random() * 4
        self.loop.call_later(seconds, self.start_orchestrator, number, context=self.loop.world.context.copy())

    async def _stop(self) -> None:
        if alive := self._alive():
            life = self.loop.random.choice(alive)
            if life.bus is None or life.bus.stopping.is_set():
                return
            self.tell("stop", life.process.name)
            self.stopped.add(life.process.name)
            ending = self.loop.create_task(life.bus.stop(), context=life.process.context.copy())
            await asyncio.wait([ending], timeout=10)
            if life.process.alive:
                self.kill(life.process)
                self._restart(life)

    async def _pause(self) -> None:
        if alive := self._alive():
            life, chance = self.loop.random.choice(alive), self.loop.random
            seconds = LEASE * (chance.random() * 0.5 if chance.random() < 0.3 else 0.8 + chance.random() * 1.5)

            def pause() -> None:
                self.tell("pause", life.process.name, f"{seconds:.2f}")
                self.loop.pause(life.process, seconds)

            self._aim(life.process, pause)

    async def _jump(self) -> None:
        chance = self.loop.random
        processes = [self._database_process, *(life.process for life in self._alive())]
        process, seconds = chance.choice(processes), (chance.random() - 0.5) * 4 * LEASE
        self.tell("jump", process.name, f"{seconds:.2f}")
        process.clock_error += seconds

    async def _outage(self) -> None:
        chance = self.loop.random
        which, seconds = chance.randint(0, 2), chance.random() * 6
        if which == 2:
            self.tell("outage", "broker", f"{seconds:.2f}")
            self.broker.go_down()
            await asyncio.sleep(seconds)
            self.broker.come_up()
            return
        process = (self._database_process, self._store_process)[which]
        self.tell("outage", process.name, f"{seconds:.2f}")
        self.wires[process].down = True
        self.servers[process].close_all()
        await asyncio.sleep(seconds)
        self.wires[process].down = False

    async def _cut(self) -> None:
        if alive := self._alive():
            life, seconds = self.loop.random.choice(alive), self.loop.random.random() * 6
            self.tell("cut", life.process.name, f"{seconds:.2f}")
            self.broker.cut(life.client, seconds)
            await asyncio.sleep(seconds)

    # Clients.

    async def _converse(self, tenant: str, user: str, number: int) -> None:
        """One person's conversation: its first turn, and the others behind it as soon as that one is accepted."""
        chance, options = self.loop.random, self.options
        who = Principal(tenant=tenant, user=user)
        await asyncio.sleep(chance.random() * 4)
        first = await self._submit(who, f"{number}/0", None)
        if first is None or first.kind != "accepted":
            return
        following = []
        for turn in range(1, chance.randint(1, options.turns)):
            await asyncio.sleep(chance.random() * 2 if chance.random() < 0.5 else 0)
            following.append(asyncio.create_task(self._submit(who, f"{number}/{turn}", first.conversation_id)))
        await asyncio.gather(*following)

    async def _submit(self, who: Principal, key: str, conversation: str | None) -> TurnProgress | None:
        """Send a turn until somebody says `accepted` or `refused`."""
        chance, options = self.loop.random, self.options
        steps = "".join(chance.choices("mwoa", (6, 5, 2, 2), k=chance.randint(1, 4)))
        request = SubmitTurn(idempotency_key=key, conversation_id=conversation, text=f"{steps} {key}")
        id = make_turn_id(who.tenant, who.user, key)
        submitted = self.submitted[id] = Submitted(id, who, request.text)
        while not submitted.heard.is_set():
            self._publish(who, request)
            if self.restless and options.repeats and chance.random() < options.repeats:
                self._publish(who, request)
                if chance.random() < 0.3:
                    self._publish(who, request.model_copy(update={"text": f"m another {key}"}))
            try:
                async with asyncio.timeout(1 + chance.random() * 2):
                    await submitted.heard.wait()
            except TimeoutError:
                continue
        if self.restless and chance.random() < options.cancels:
            asyncio.create_task(self._cancel(who, id, chance.random() * 3))  # noqa: RUF006
        return submitted.answer

    def _publish(self, who: Principal, request: SubmitTurn) -> None:
        headers = {SERVICE: "gateway", PRINCIPAL: who.model_dump_json()}
        for _ in range(self.network.times()):
            if self.broker.up:
                self.broker.later(self.network.delay(), self.broker.store, TURN.on(who.tenant), encode(request), headers)

    def _hear(self, subject: str, data: bytes) -> None:
        line = TurnProgress.model_validate_json(data)
        submitted = self.submitted.get(line.turn_id)
        if submitted is None:
            self.monitor.break_off(f"progress of a turn that nobody sent: {line.turn_id}")
            return
        self.tell(line.kind, line.turn_id[:8])
        if line.kind in ("accepted", "refused"):
            self.monitor.hear_intake(line)
            # Of two messages with one key and different texts either is the turn; the other is refused.
            if not submitted.heard.is_set():
                if line.problem is not None and line.problem.code == KeyReused.code:
                    line = TurnProgress(
                        turn_id=line.turn_id, kind="accepted", conversation_id=new_conversation_id(line.turn_id)
                    )
                submitted.answer, submitted.conversation = line, line.conversation_id
                submitted.heard.set()
        elif line.kind == "waiting":
            asyncio.create_task(self._answer(submitted, line.detail["approval_id"]))  # noqa: RUF006

    async def _cancel(self, who: Principal, turn: str, wait: float) -> None:
        await asyncio.sleep(wait)

        async def cancel(life: Orchestrator) -> None:
            assert life.handlers is not None
            await life.handlers.cancel(Call(who, "gateway"), TurnRef(turn_id=turn))

        await self._ask_orchestrator(cancel)

    async def _answer(self, submitted: Submitted, approval: str) -> None:
        chance = self.loop.random
        if chance.random() < 0.2:
            return  # it runs out
        await asyncio.sleep(chance.random() * 6)
        decision = Decision.APPROVE if chance.random() < 0.7 else Decision.REFUSE

        async def answer(life: Orchestrator) -> None:
            assert life.approvals is not None
            await life.approvals.answer(Call(submitted.who, "gateway"), AnswerApproval(approval_id=approval, decision=decision))

        if submitted.conversation is not None and self.restless and chance.random() < 0.6:
            key = f"beside {approval[:6]}"
            if make_turn_id(submitted.who.tenant, submitted.who.user, key) not in self.submitted:
                asyncio.create_task(self._submit(submitted.who, key, submitted.conversation))  # noqa: RUF006
                await asyncio.sleep(chance.random() * 0.008)
        await self._ask_orchestrator(answer)

    async def _ask_orchestrator(self, question: Callable[[Orchestrator], Awaitable[None]]) -> None:
        """Ask until there is an answer, whatever it is."""
        while True:
            ready = [life for life in self._alive() if life.handlers is not None and life.client.is_connected]
            if ready:
                life = self.loop.random.choice(ready)
                asked = self.loop.create_task(_outcome(question(life)), context=life.process.context.copy())
                done, _ = await asyncio.wait([asked], timeout=3)
                if done and asked.result() and self.loop.random.random() >= self.network.lost:
                    return
            await asyncio.sleep(1)

    async def ask_owner(self, call: Call, request: Keep) -> Kept:
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


async def _outcome(question: Awaitable[None]) -> bool:
    """Whether there is an answer; what is away for a while is asked again."""
    try:
        await question
    except (Unavailable, TimedOut):
        return False
    except ServiceError:
        return True
    return True


class NoReasoner:
    """No turn of a run asks a model but by the steps of its agent."""

    name = "simulated"


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
    router = LOOPS["router"]
    with seeded(loop):
        world = World(loop, options, log)
        LOOPS["router"] = Agent(world).run
        violation: str | None = None
        try:
            loop.run(world.run(), AT_LATEST)
        except Exception as error:
            violation = f"{type(error).__name__}: {error}; {world.monitor.unended()}"
        finally:
            LOOPS["router"] = router
        violation = world.monitor.violation or violation
        for failed in loop.errors:
            violation = violation or f"a callback failed: {failed.get('exception')!r}"
        outcome = Outcome(seed, violation, loop.steps, loop.now, world.digest.hexdigest()[:16], told, world.counts)
        loop.close_all()
    return outcome
