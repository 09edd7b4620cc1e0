"""Durable messages.

`tell` and `take` for jobs, `announce` and `follow` for events, `show` and `Watch` for progress; audit entries, erasing, and
buckets for what is larger than a message.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import uuid4

from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.errors import BucketNotFoundError, NotFoundError, ObjectDeletedError, ObjectNotFoundError
from nats.js.object_store import ObjectStore
from opentelemetry.trace import Span, SpanKind

from phronesis_contracts import (
    BadRequest,
    Event,
    Forbidden,
    Job,
    Message,
    NotFound,
    Out,
    Principal,
    ServiceError,
    TooLarge,
    Unavailable,
)
from phronesis_contracts.orchestrator import Audited
from phronesis_contracts.service import AUDITED

from . import envelope
from .connection import Bus, read_message
from .delivery import Work, pull
from .envelope import Call, News
from .outbox import publish
from .topology import JOB_STREAMS

_SECRET = ("key", "token", "secret", "password", "authorization", "credential")
_LONGEST = 200
_MOST = 20


def audit_entry(who: Principal, action: str, arguments: dict[str, Any], *, code: str | None = None) -> Audited:
    """The entry for one write, or, with a `code`, for one refusal."""
    return Audited(
        who=who.user,
        role=who.rights,
        action=action,
        outcome="done" if code is None else "refused",
        code=code,
        acted_by=who.acted_by,
        arguments=mask(arguments),
    )


def mask(value: Any, name: str = "", *, longest: int = _LONGEST, most: int = _MOST) -> Any:
    """`value` with secrets masked, and cut.

    Args:
        longest: characters of a text that are kept.
        most: members of an object or a list that are kept.
    """
    if any(word in name.lower() for word in _SECRET) and not _counts_tokens(name, value):
        return "***"
    match value:
        case dict():
            return {str(k): mask(v, str(k), longest=longest, most=most) for k, v in list(value.items())[:most]}
        case list() | tuple():
            return [mask(v, longest=longest, most=most) for v in value[:most]]
        case str() if len(value) > longest:
            return f"{value[:longest]}… ({len(value)} characters)"
        case _:
            return value


def _counts_tokens(name: str, value: object) -> bool:
    """Whether this is a number of a model's tokens, as limits and budgets have it, and no token of somebody's."""
    return isinstance(value, int | float) and name.lower().endswith("tokens")


log = logging.getLogger(__name__)

M = TypeVar("M", bound=Message)


async def tell(bus: Bus, who: Principal, job: Job[M], message: M) -> None:
    """Put work on a job queue, on behalf of `who`; it is stored when this returns.

    Raises:
        Busy: the tenant's queue is full.
        Unavailable: the broker is away or has no such queue.
    """
    with _producer_span(bus, "tell", job):
        headers = envelope.headers(bus.name) | {envelope.PRINCIPAL: bus.token(who, job.service)}
        await publish(bus, job.on(who.tenant), _encode_body(job, message), headers)


async def announce(bus: Bus, tenant: str, event: Event[M], message: M, *, id: str | None = None) -> None:
    """Publish news; it is stored when this returns. Changes of a store go through its outbox, not through here."""
    with _producer_span(bus, "announce", event):
        headers = envelope.headers(bus.name) | {envelope.MESSAGE_ID: f"{tenant}.{event.subject}.{id or uuid4()}"}
        await publish(bus, event.on(tenant), _encode_body(event, message), headers)


def _producer_span(bus: Bus, operation: str, contract: Job[Any] | Event[Any]) -> AbstractContextManager[Span]:
    return bus.tracing.span(
        f"{operation} {contract.subject}",
        kind=SpanKind.PRODUCER,
        messaging__system="nats",
        messaging__destination__name=contract.on("*"),
        messaging__operation__name=operation,
        messaging__operation__type="send",
    )


async def record_refusal(bus: Bus, who: Principal, action: str, arguments: dict[str, Any], error: ServiceError) -> None:
    """Enter in the audit trail that `who` was refused `action`. A trail that is away changes nothing about the refusal."""
    try:
        await announce(bus, who.tenant, AUDITED[bus.name], audit_entry(who, action, arguments, code=error.code))
    except ServiceError:
        log.exception("a refusal could not be audited")


async def show(bus: Bus, who: Principal, out: Out[M], turn: str, message: M) -> None:
    """Show a turn's progress to whoever watches. It is a hint: when the broker is away it is dropped."""
    try:
        await bus.nats.publish(out.on(who.tenant, who.user, turn), envelope.encode(message), headers=envelope.headers(bus.name))
    except NatsError:
        log.warning("progress of a turn could not be shown")


def _encode_body(contract: Job[Any] | Event[Any], message: Message) -> bytes:
    body = envelope.encode(message)
    if len(body) > contract.max_bytes:
        raise TooLarge(f"a message to {contract.subject} is over {contract.max_bytes} bytes")
    return body


async def take(bus: Bus, job: Job[M], handler: Callable[[Call, M], Awaitable[None]], *, workers: int = 4) -> None:
    """Take jobs, and acknowledge each after its handler: the platform's own and those of outside systems, up to `workers` of
    each side by side.

    A job without a good principal, or that does not parse, is handed to nobody: it is terminated and logged. One with
    another tenant's principal is audited.
    """

    def opened(msg: Msg) -> Work:
        stored = msg.metadata.timestamp.timestamp()
        who = envelope.read_principal(bus.verifier, msg.headers, at=stored)
        if who.tenant != msg.subject.split(".", 2)[1]:
            log.warning("a job on %s is another tenant's", msg.subject)
            foreign = Forbidden("the subject is another tenant's")
            return lambda: record_refusal(bus, who, job.subject, {"subject": msg.subject}, foreign)
        message = envelope.decode(job.input, msg.data, job.max_bytes)
        return lambda: handler(Call(who, envelope.sender(who, msg.headers)), message)

    for stream in JOB_STREAMS:
        await pull(bus, stream, job.durable, f"take {job.subject}", opened, workers)


async def follow(
    bus: Bus, event: Event[M], handler: Callable[[News, M], Awaitable[None]], *, workers: int = 4, every_copy: bool = False
) -> None:
    """Follow an event, at least once, up to `workers` messages side by side. The handler must bear a repeat.

    Args:
        every_copy: each running copy of the service hears it, and what is said while a copy is away is not repeated to
            it: for dropping caches, which must also expire by themselves.
    """

    def opened(msg: Msg) -> Work:
        id = envelope.header(msg.headers, envelope.MESSAGE_ID)
        if id is None or envelope.header(msg.headers, envelope.SERVICE) != event.service:
            raise Forbidden("an event without its envelope")
        deliveries = 1 if every_copy else msg.metadata.num_delivered
        news = News(msg.subject.split(".", 2)[1], id, deliveries)
        message = envelope.decode(event.input, msg.data, event.max_bytes)
        return lambda: handler(news, message)

    if every_copy:
        await _hear(bus, event, opened)
    else:
        await pull(bus, "EVT", event.durable(bus.name), f"follow {event.subject}", opened, workers)


async def _hear(bus: Bus, event: Event[Any], opened: Callable[[Msg], Work]) -> None:
    async def received(msg: Msg) -> None:
        await opened(msg)()

    await bus.hear(event.on("*"), received)


_UNHEARD = 256
"""Messages that a listener keeps for its owner; older ones are dropped, and can be read from the stream."""


@dataclass(frozen=True)
class ShownMessage(Generic[M]):
    message: M
    correlation: str | None = None
    """Correlation id of the work that showed it."""
    sequence: int = 0
    """Position in the stream; 0 for a message that was heard and not read."""


class Listener(Generic[M]):
    """What is shown of one turn from now on. Hints: what is said while the broker is away is not heard."""

    def __init__(self) -> None:
        self._heard: deque[ShownMessage[M]] = deque(maxlen=_UNHEARD)
        self._something = asyncio.Event()
        self.closed = False
        """Whether the process stops: nothing more will be heard."""

    async def next(self, seconds: float) -> ShownMessage[M] | None:
        """The next message, or `None` when none came within `seconds`, or the listener was closed."""
        if not self._heard and not self.closed and seconds > 0:
            self._something.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._something.wait()
            except TimeoutError:
                return None
        return self._heard.popleft() if self._heard else None

    def add(self, shown: ShownMessage[M]) -> None:
        self._heard.append(shown)
        self._something.set()

    def close(self) -> None:
        self.closed = True
        self._something.set()


class Watch(Generic[M]):
    """All that is shown on one contract, handed to whoever watches a turn.

    Args:
        bus: the connected bus; its service must be allowed to watch.
    """

    def __init__(self, bus: Bus, out: Out[M]) -> None:
        self._bus = bus
        self._out = out
        self._listeners: dict[str, list[Listener[M]]] = {}
        self._closed = False

    async def start(self) -> None:
        await self._bus.hear(self._out.on("*", "*", "*"), self._received)

    def close(self) -> None:
        self._closed = True
        for listeners in self._listeners.values():
            for listener in listeners:
                listener.close()

    @contextmanager
    def turn(self, who: Principal, turn: str) -> Iterator[Listener[M]]:
        """Hear a turn of `who` for the length of a block. Another user's messages have another subject."""
        subject = self._out.on(who.tenant, who.user, turn)
        listener: Listener[M] = Listener()
        listener.closed = self._closed
        self._listeners.setdefault(subject, []).append(listener)
        try:
            yield listener
        finally:
            listeners = self._listeners[subject]
            listeners.remove(listener)
            if not listeners:
                del self._listeners[subject]

    async def after(self, who: Principal, turn: str, sequence: int) -> ShownMessage[M] | None:
        """The first stored message of a turn behind `sequence`, or `None` when there is none (any more, or yet).

        Raises:
            Unavailable: the broker is away or has no such stream.
            TimedOut: it did not answer in time.
        """
        found = await read_message(self._bus, "OUT", self._out.on(who.tenant, who.user, turn), sequence)
        if found is None:
            return None
        message = envelope.decode(self._out.input, base64.b64decode(found.get("data", "")), self._out.max_bytes)
        return ShownMessage(message, sequence=int(found["seq"]))

    async def _received(self, msg: Msg) -> None:
        listeners = self._listeners.get(msg.subject)
        if not listeners:
            return
        try:
            message = envelope.decode(self._out.input, msg.data, self._out.max_bytes)
        except BadRequest:
            log.warning("what was shown on %s does not parse", self._out.subject)
            return
        shown = ShownMessage(message, envelope.header(msg.headers, envelope.CORRELATION))
        for listener in listeners:
            listener.add(shown)


_ANSWER = 5.0
_GONE = {10037, 10057}
"""The server's numbers for a message, or a sequence, that is not there."""
_NO_ADDRESS = 3
"""Tokens of a parked message's former subject that have to be there: its kind, the tenant and the rest."""


async def erase_shown(bus: Bus, out: Out[Any], tenant: str, user: str, turns: Iterable[str]) -> int:
    """Erase what was shown of a user's turns; how many lines that were. The service must be allowed to.

    Raises:
        Unavailable: the broker is away, or does not erase.
    """
    gone = 0
    for turn in turns:
        answer = await _api(bus, "STREAM.PURGE.OUT", {"filter": out.on(tenant, user, turn)})
        gone += int(answer.get("purged", 0))
    return gone


async def erase_parked(bus: Bus, tenant: str, ids: Iterable[str]) -> int:
    """Erase a tenant's parked messages that name one of these ids as a whole text; how many that were.

    The stream is read through: what is parked is the exception, and nothing else says what a message holds.

    Raises:
        Unavailable: the broker is away, or does not erase.
        TimedOut: it did not answer in time.
    """
    fields = [json.dumps(id).encode() for id in ids]
    gone = sequence = 0
    while fields and (found := await read_message(bus, "PARKED", "parked.>", sequence)) is not None:
        sequence = int(found["seq"])
        body = base64.b64decode(found.get("data", ""))
        if _tenant(found) == tenant and any(field in body for field in fields):
            await _api(bus, "STREAM.MSG.DELETE.PARKED", {"seq": sequence})
            gone += 1
    return gone


def _tenant(found: dict[str, Any]) -> str | None:
    """Whose a parked message is: it says on which subject it was sent."""
    for line in base64.b64decode(found.get("hdrs", "")).decode(errors="replace").splitlines():
        name, _, value = line.partition(":")
        parts = value.strip().split(".", 2)
        if name.strip().casefold() == envelope.PARKED_FROM.casefold() and len(parts) == _NO_ADDRESS:
            return parts[1]
    return None


async def _api(bus: Bus, what: str, body: dict[str, Any]) -> dict[str, Any]:
    if not bus.connected:
        raise Unavailable("the broker is away", retry_after=1)
    try:
        reply = await bus.request(f"$JS.API.{what}", json.dumps(body).encode(), timeout=_ANSWER)
        answer: dict[str, Any] = json.loads(reply.data)
    except (NatsError, TimeoutError, OSError, ValueError) as error:
        raise Unavailable("the broker did not erase", retry_after=1) from error
    problem = answer.get("error")
    if problem and problem.get("err_code") not in _GONE:
        raise Unavailable("the broker refused to erase", retry_after=1)
    return answer


T = TypeVar("T")
_OBJECT = 30.0
"""Seconds that one object may take: the library waits for each piece of it, and for a lost one without an end."""


class Blobs:
    """A bucket of the NATS Object Store: the way for what is larger than a message."""

    def __init__(self, bus: Bus, bucket: str) -> None:
        self._bus = bus
        self._bucket = bucket
        self._open: ObjectStore | None = None

    async def put(self, name: str, data: bytes) -> None:
        store = await self._store()
        await _translate_errors(store.put(name, io.BytesIO(data)))

    async def get(self, name: str) -> bytes:
        """The bytes under `name`. Raises `NotFound`: there are none."""
        store = await self._store()
        found = await _translate_errors(store.get(name))
        return found.data or b""

    async def delete(self, name: str) -> None:
        store = await self._store()
        try:
            await _translate_errors(store.delete(name))
        except NotFound:
            return

    async def names(self) -> list[str]:
        store = await self._store()

        async def listed() -> list[str]:
            try:
                return [str(info.name) for info in await store.list(ignore_deletes=True)]
            except NotFoundError:  # the library's word for an empty bucket
                return []

        return await _translate_errors(listed())

    async def _store(self) -> ObjectStore:
        if not self._bus.connected:
            raise Unavailable("the broker is away", retry_after=1)
        if self._open is None:
            self._open = await _translate_errors(self._bus.nats.jetstream(timeout=10).object_store(self._bucket))
        return self._open


async def _translate_errors(work: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(_OBJECT):
            return await work
    except (ObjectNotFoundError, ObjectDeletedError) as error:
        raise NotFound("no such object") from error
    except BucketNotFoundError as error:
        raise Unavailable("the bucket is not there yet", retry_after=1) from error
    except (NatsError, TimeoutError, OSError) as error:
        raise Unavailable("the object store does not answer", retry_after=1) from error
