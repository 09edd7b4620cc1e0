"""A model of NATS with JetStream, and of the client of it that the bus library works on.

What it keeps of the real one: messages that are stored once for each id inside a window, pull requests that a broker forgets
when it goes away, a message that comes again when it was not acknowledged in time, acknowledgements that are lost, and
deliveries that come late, twice, in another order or, on core subjects, never.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from nats.aio.msg import Msg
from nats.errors import ConnectionClosedError
from nats.errors import TimeoutError as NatsTimeout

from phronesis_bus.topology import consumers, streams
from phronesis_contracts.orchestrator import TURN, TURN_ENDED

from .loop import Process, SimulatedLoop

Received = Callable[[Msg], Awaitable[None]]
_WINDOWS = {stream["name"]: stream.get("duplicate_window", 120e9) / 1e9 for stream in streams()}
_USED = {TURN.durable, TURN_ENDED.durable("memory")}
_CONSUMERS = [found for found in consumers(30.0) if found[1]["durable_name"] in _USED]
_NEXT = "$JS.API.CONSUMER.MSG.NEXT."
_ACK = "$JS.ACK."


@dataclass
class Network:
    """How messages travel: the seed decides all of it.

    Args:
        lost: how likely a message is lost, and `doubled`, that it comes twice.
        slow: how likely it takes long, up to `longest` seconds.
    """

    loop: SimulatedLoop
    lost: float = 0.0
    doubled: float = 0.0
    slow: float = 0.0
    longest: float = 1.0

    def delay(self) -> float:
        chance = self.loop.random
        if self.slow and chance.random() < self.slow:
            return chance.random() * self.longest
        return 0.0005 + chance.random() * 0.003

    def times(self) -> int:
        """How often a message comes."""
        if not (self.lost or self.doubled):
            return 1
        drawn = self.loop.random.random()
        return 0 if drawn < self.lost else 2 if drawn < self.lost + self.doubled else 1


@dataclass(eq=False)
class Stored:
    subject: str
    data: bytes
    headers: dict[str, str]
    at: float


@dataclass(eq=False)
class Pull:
    client: Client
    inbox: str
    until: float


@dataclass(eq=False)
class Consumer:
    """A durable consumer of a stream."""

    stream: str
    name: str
    subject: list[str]
    ack_wait: float
    ready: deque[int] = field(default_factory=deque)
    """Numbers of messages to deliver, first those that come again."""
    delivered: dict[int, int] = field(default_factory=dict)
    """How often each was delivered that is not done."""
    deadlines: dict[int, float] = field(default_factory=dict)
    pulls: deque[Pull] = field(default_factory=deque)

    def takes(self, subject: str) -> bool:
        tokens = subject.split(".")
        return len(tokens) == len(self.subject) and all(a in ("*", b) for a, b in zip(self.subject, tokens, strict=True))


class Subscription:
    """What a client hears on one subject."""

    def __init__(self, client: Client, subject: str, received: Received) -> None:
        self._client, self.subject, self.received = client, subject, received

    async def drain(self) -> None:
        self._client.subscriptions.pop(self.subject, None)


class Client:
    """A client of the broker, as the bus library uses it."""

    def __init__(self, broker: Broker, process: Process) -> None:
        self._broker, self.process = broker, process
        self.cut = False
        """Whether the broker cannot be reached from here."""
        self.reconnected: Callable[[], None] = lambda: None
        self.subscriptions: dict[str, Subscription] = {}
        broker.clients.append(self)

    @property
    def is_connected(self) -> bool:
        return self._broker.up and not self.cut

    @property
    def hears(self) -> bool:
        return self.is_connected and self.process.alive

    async def publish(self, subject: str, payload: bytes = b"", reply: str = "", headers: dict[str, str] | None = None) -> None:
        """Send; the message may be lost. What is sent while the broker is away waits in a buffer that is lost here."""
        if self.is_connected:
            self._broker.send(self, subject, payload, reply, headers or {})

    async def request(self, subject: str, payload: bytes, timeout: float, headers: dict[str, str] | None = None) -> Msg:
        if not self.is_connected:
            raise ConnectionClosedError
        answer = asyncio.get_running_loop().create_future()
        self._broker.send(self, subject, payload, "", headers or {}, answer)
        try:
            async with asyncio.timeout(timeout):
                message: Msg = await answer
                return message
        except TimeoutError as error:
            raise NatsTimeout from error

    async def subscribe(self, subject: str, cb: Received) -> Subscription:
        subscription = self.subscriptions[subject] = Subscription(self, subject, cb)
        return subscription

    async def flush(self, timeout: float = 1) -> None:
        """Nothing waits to be written."""

    async def close(self) -> None:
        self.cut = True


class Broker:
    """The broker with its streams and consumers, as the platform declares them.

    Args:
        process: what its own time passes in.
    """

    def __init__(self, loop: SimulatedLoop, network: Network, process: Process, ack_wait: float) -> None:
        self._loop, self._network, self._process = loop, network, process
        self.up = True
        self.clients: list[Client] = []
        self.stored: dict[str, list[Stored]] = {stream: [] for stream in _WINDOWS}
        self._ids: dict[tuple[str, str], float] = {}
        self._consumers = {
            (stream, of["durable_name"]): Consumer(stream, of["durable_name"], of["filter_subject"].split("."), ack_wait)
            for stream, of in _CONSUMERS
        }
        self.shown: Callable[[str, bytes], None] = lambda subject, data: None
        """Called with each line of progress that gets through."""

    def later(self, delay: float, callback: Callable[..., Any], *args: Any) -> None:
        self._loop.call_later(delay, callback, *args, context=self._process.context)

    def go_down(self) -> None:
        """Stop: what is stored stays, and all that is under way is lost."""
        self.up = False
        for consumer in self._consumers.values():
            consumer.pulls.clear()

    def come_up(self) -> None:
        self.up = True
        for client in self.clients:
            if client.process.alive and not client.cut:
                self._reconnect(client)

    def cut(self, client: Client, seconds: float) -> None:
        """Take the broker away from one client for a while."""
        if client.cut:
            return
        client.cut = True
        self.forget(client)
        self.later(seconds, self._mend, client)

    def _mend(self, client: Client) -> None:
        client.cut = False
        if self.up and client.process.alive:
            self._reconnect(client)

    def _reconnect(self, client: Client) -> None:
        self._loop.call_later(self._network.delay(), client.reconnected, context=client.process.context.copy())

    def forget(self, client: Client) -> None:
        """A client is gone: nothing is delivered to it."""
        for consumer in self._consumers.values():
            consumer.pulls = deque(pull for pull in consumer.pulls if pull.client is not client)

    def send(
        self,
        client: Client,
        subject: str,
        data: bytes,
        reply: str,
        headers: dict[str, str],
        answer: asyncio.Future[Msg] | None = None,
    ) -> None:
        """Take a message from a client, after the time that it takes to come, once, twice or never."""
        for _ in range(self._network.times()):
            self.later(self._network.delay(), self._take, client, subject, data, reply, headers, answer)

    def _take(
        self,
        client: Client,
        subject: str,
        data: bytes,
        reply: str,
        headers: dict[str, str],
        answer: asyncio.Future[Msg] | None,
    ) -> None:
        if not self.up:
            return
        if subject.startswith(_ACK):
            self._take_ack(subject, data)
        elif subject.startswith(_NEXT):
            stream, name = subject.removeprefix(_NEXT).split(".")
            consumer = self._consumers[stream, name]
            until = self._loop.now + json.loads(data)["expires"] / 1e9
            consumer.pulls.append(Pull(client, reply, until))
            self._deliver(consumer)
        elif subject.startswith("out."):
            self.later(self._network.delay(), self.shown, subject, data)
        else:
            stored = self.store(subject, data, headers)
            if answer is not None and self._network.times():
                self.later(self._network.delay(), self._answer, client, answer, stored)

    def _answer(self, client: Client, answer: asyncio.Future[Msg], stored: bool) -> None:
        if client.hears and not answer.done():
            body = json.dumps({"stream": "", "seq": 1, "duplicate": not stored}).encode()
            answer.set_result(Msg(_client=None, subject="", reply="", data=body, headers=None))  # type: ignore[arg-type]

    def store(self, subject: str, data: bytes, headers: dict[str, str]) -> bool:
        """Store a message; `False` where one with its id is there already."""
        stream = {"job": "JOB", "evt": "EVT", "parked": "PARKED"}[subject.partition(".")[0]]
        if id := headers.get("Nats-Msg-Id"):
            known = self._ids.get((stream, id))
            if known is not None and self._loop.now - known < _WINDOWS[stream]:
                return False
            self._ids[stream, id] = self._loop.now
        messages = self.stored[stream]
        messages.append(Stored(subject, data, headers, self._loop.now))
        for consumer in self._consumers.values():
            if consumer.stream == stream and consumer.takes(subject):
                consumer.ready.append(len(messages))
                self._deliver(consumer)
        return True

    def _deliver(self, consumer: Consumer) -> None:
        while consumer.ready and consumer.pulls:
            pull = consumer.pulls.popleft()
            if pull.until < self._loop.now or not pull.client.hears:
                continue
            number = consumer.ready.popleft()
            message = self.stored[consumer.stream][number - 1]
            tries = consumer.delivered[number] = consumer.delivered.get(number, 0) + 1
            consumer.deadlines[number] = self._loop.now + consumer.ack_wait
            self.later(consumer.ack_wait, self._overdue, consumer, number)
            ack = f"{_ACK}{consumer.stream}.{consumer.name}.{tries}.{number}.{number}.{int(message.at * 1e9)}.0"
            for _ in range(self._network.times()):
                self.later(self._network.delay(), self._hand_over, pull, message, ack)

    def _hand_over(self, pull: Pull, message: Stored, ack: str) -> None:
        client = pull.client
        subscription = client.subscriptions.get(pull.inbox)
        if not client.hears or subscription is None:
            return
        msg = Msg(_client=client, subject=message.subject, reply=ack, data=message.data, headers=message.headers)  # type: ignore[arg-type]
        self._loop.create_task(subscription.received(msg), context=client.process.context.copy())  # type: ignore[arg-type]

    def _overdue(self, consumer: Consumer, number: int) -> None:
        deadline = consumer.deadlines.get(number)
        if deadline is None:
            return
        if deadline > self._loop.now + 1e-9:
            self.later(deadline - self._loop.now, self._overdue, consumer, number)
            return
        self._again(consumer, number)

    def _again(self, consumer: Consumer, number: int) -> None:
        if number in consumer.delivered and number not in consumer.ready:
            consumer.deadlines.pop(number, None)
            consumer.ready.appendleft(number)
            self._deliver(consumer)

    def _take_ack(self, subject: str, data: bytes) -> None:
        _, _, stream, name, tries, number_text, *_ = subject.split(".")
        consumer, number = self._consumers[stream, name], int(number_text)
        if number not in consumer.delivered:
            return
        if data.startswith(b"+WPI"):
            if number in consumer.deadlines:
                consumer.deadlines[number] = self._loop.now + consumer.ack_wait
        elif data.startswith(b"-NAK"):
            if int(tries) == consumer.delivered[number]:
                delay = json.loads(data[4:] or b"{}").get("delay", 0) / 1e9
                consumer.deadlines.pop(number, None)
                self.later(delay, self._again, consumer, number)
        else:  # acknowledged, or terminated
            del consumer.delivered[number]
            consumer.deadlines.pop(number, None)
            if number in consumer.ready:
                consumer.ready.remove(number)

    def holds(self, stream: str, id: str) -> bool:
        """Whether a message with this id was ever stored."""
        return (stream, id) in self._ids

    @property
    def unacknowledged(self) -> int:
        """Messages that some consumer is not done with."""
        return sum(len(consumer.delivered) + len(consumer.ready) for consumer in self._consumers.values())
