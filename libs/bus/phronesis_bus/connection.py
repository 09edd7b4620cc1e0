"""One process's connection to the broker, which reconnects for ever; the keys that were revoked, read from their stream."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import json
import logging
import os
import socket
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NatsTimeout

from phronesis_contracts import Principal, ServiceError, TimedOut, Unavailable

from . import envelope
from .client import Application, BrokerClient, UntrustedBroker, tls_failure
from .client import make_tls_options as tls_options
from .fairness import Rates
from .principals import Revoked, Signer, Verifier
from .settings import BusSettings, FairnessSettings
from .topology import REVOKED
from .tracing import Tracing, correlation

_NO_MESSAGE = 10037


async def read_message(bus: Bus, stream: str, subject: str, after: int) -> dict[str, Any] | None:
    """The first message on `subject` behind the sequence `after`, as the broker's API gives it; `None` where there is none.

    Raises:
        Unavailable: the broker is away or has no such stream.
        TimedOut: it did not answer in time.
    """
    if not bus.connected:
        raise Unavailable("the broker is away", retry_after=1)
    wanted = json.dumps({"seq": after + 1, "next_by_subj": subject}).encode()
    try:
        reply = await bus.request(f"$JS.API.STREAM.MSG.GET.{stream}", wanted, timeout=envelope.remaining(3.0))
        answer = json.loads(reply.data)
    except NoRespondersError as error:
        raise Unavailable(f"there is no stream {stream}", retry_after=1) from error
    except (NatsTimeout, TimeoutError) as error:
        raise TimedOut("the broker did not answer in time") from error
    except (NatsError, OSError, ValueError) as error:
        raise Unavailable("the broker did not answer", retry_after=1) from error
    if problem := answer.get("error"):
        if problem.get("err_code") == _NO_MESSAGE:
            return None
        raise Unavailable(f"there is no stream {stream}", retry_after=1)
    found: dict[str, Any] = answer["message"]
    return found


log = logging.getLogger(__name__)

REVOCATION_SUBJECT = "revoked"
_FIRST_READ = 2.0
"""Seconds that a process waits for the first reading before it goes on; until it is done outside systems are told to wait."""
_READ_AGAIN = 1.0
_READ_EVERY = 300.0
"""Seconds between readings: one that was missed by ear is found then."""


class Revocations:
    """Keeps a bus's list of revoked keys."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._tried = asyncio.Event()
        self._again = asyncio.Event()

    async def start(self) -> None:
        # What is revoked between reading and hearing would be missed: the subscription stands first.
        await self._bus.hear(f"{REVOCATION_SUBJECT}.*", self._heard)
        self._bus.on_reconnect(self._again.set)
        task = asyncio.create_task(self._keep(), name="revocations")

        async def stop() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        self._bus.on_stop(stop)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_READ):
                await self._tried.wait()

    async def _heard(self, msg: Msg) -> None:
        self._bus.revoked.add(msg.subject.partition(".")[2])

    async def _keep(self) -> None:
        while True:
            self._again.clear()
            wait = _READ_EVERY
            try:
                await self._read()
            except ServiceError as error:
                log.warning("which keys are revoked could not be read: %s", error.code)
                wait = _READ_AGAIN
            except Exception:
                # This loop may not end: the list would grow old with nobody to notice.
                log.exception("which keys are revoked could not be read")
                wait = _READ_AGAIN
            self._tried.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._again.wait()

    async def _read(self) -> None:
        sequence = 0
        while (message := await read_message(self._bus, REVOKED, f"{REVOCATION_SUBJECT}.*", sequence)) is not None:
            self._bus.revoked.add(str(message["subject"]).partition(".")[2])
            sequence = int(message["seq"])
        self._bus.revoked.known = True


INBOX = "_INBOX"
"""Prefix of the platform's own reply subjects; each service has its own below it."""
LOST = 70
"""Exit code of a process that lost the broker for good, or whose event loop stood still."""
_DRAIN = 10.0


def process_name(pid: int) -> str:
    """How a process of this machine is told from all others."""
    return f"{socket.gethostname()}-{pid}"


class Bus:
    """A connected process. `ask`, `serve`, `tell`, `follow` and `take` work on it; `connect()` makes one."""

    def __init__(self, name: str, settings: BusSettings, client: Client) -> None:
        self.name = name
        self.process = process_name(os.getpid())
        """Which of a service's running copies this is."""
        self.settings = settings
        self.nats = client
        self.application = Application(client)
        self.tracing = Tracing(name)
        self.signer = Signer.load(name, settings.signing_key_file) if settings.signing_key_file else None
        self.revoked = Revoked()
        self.verifier = Verifier.load(settings.trust_dir, self.revoked, name) if settings.trust_dir else Verifier({})
        self.fairness = FairnessSettings()
        self.rates = Rates(self.fairness.key_rate, self.fairness.key_burst)
        """How often the keys of external systems may ask this process."""
        self.up = asyncio.Event()
        """Set when the process has wired all that it answers."""
        self.stopping = asyncio.Event()
        self.lost = asyncio.Event()
        """Set when the connection ended for good, which the library does on some errors of the server: start again."""
        self._wakers: list[Callable[[], None]] = []
        self._closers: list[Callable[[], Awaitable[None]]] = []

    @property
    def connected(self) -> bool:
        return bool(self.nats.is_connected)

    @property
    def ready(self) -> bool:
        """Whether the process can be asked: it is up, does not stop, and has the broker."""
        return self.up.is_set() and not self.stopping.is_set() and self.connected

    def token(self, who: Principal, audience: str | None = None) -> str:
        """A signed token with which this service acts for `who`; answers come to the service, wherever `who` hears its own.

        Args:
            audience: the service that it is shown to, in the request at hand; any may believe it where none is named.

        Raises:
            RuntimeError: this service has no signing key, so it may ask nobody.
        """
        if self.signer is None:
            raise RuntimeError(f"{self.name} has no signing key")
        whom = who if who.inbox is None else who.model_copy(update={"inbox": None})
        return self.signer.token(whom, audience, correlation.get())

    def on_stop(self, close: Callable[[], Awaitable[None]]) -> None:
        """Run `close` when the bus stops, last registered first, before the connection is drained."""
        self._closers.append(close)

    def on_reconnect(self, wake: Callable[[], None]) -> None:
        self._wakers.append(wake)

    def reconnected(self) -> None:
        for wake in self._wakers:
            wake()

    async def ping(self) -> None:
        if not self.connected:  # the library's flush returns at once while it reconnects
            raise Unavailable("the broker is away")
        try:
            await self.nats.flush(timeout=1)
        except (NatsError, TimeoutError, OSError) as error:
            raise Unavailable("the broker does not answer") from error

    async def request(self, subject: str, body: bytes, *, timeout: float, headers: dict[str, str] | None = None) -> Msg:
        """The answer to a message, with the library's own errors.

        A task that is cancelled in the moment its answer comes is cancelled: up to Python 3.11 `asyncio.wait_for`, with
        which the library waits, gives the answer and forgets the cancellation.
        """
        task = asyncio.current_task()
        before = task.cancelling() if task else 0
        try:
            return await self.nats.request(subject, body, timeout=timeout, headers=headers)
        finally:
            if task and task.cancelling() > before:
                raise asyncio.CancelledError

    async def hear(self, subject: str, handler: Callable[[Msg], Awaitable[None]], *, queue: str = "") -> None:
        """Hand each message on `subject` to `handler`, one after the other, until the bus stops. The broker knows of it when
        this returns; a handler's error is logged."""
        subscription = await self.application.hear(subject, handler, queue)
        await self.settled()
        self.on_stop(lambda: self.drain(subscription))

    async def settled(self) -> None:
        """Wait until the broker knows the subscriptions made so far; one that is away learns of them when it is found."""
        try:
            # The library writes a flush's ping before what waits to be written: the second one comes behind all of it.
            await self.nats.flush(timeout=1)
            await self.nats.flush(timeout=1)
        except (NatsError, TimeoutError, OSError):
            log.warning("the broker is away; it learns of the subscriptions when it is found again")

    async def drain(self, *subscriptions: Subscription) -> None:
        """Take nothing more from these subscriptions; what has come already is handled."""
        if not self.connected:
            return
        try:
            async with asyncio.timeout(2):
                await asyncio.gather(*(subscription.drain() for subscription in subscriptions))
        except (NatsError, TimeoutError, OSError):
            log.warning("the broker went away while subscriptions were ended")

    async def stop(self) -> None:
        """Hand back what was not begun, let running handlers end, send what is buffered, close. A second call does nothing."""
        if self.stopping.is_set():
            return
        self.stopping.set()
        try:
            await self._drained()
        finally:  # whoever is cancelled meanwhile leaves no connection that knocks for ever
            try:
                async with asyncio.timeout(3):
                    await self.nats.close()
            except (NatsError, TimeoutError, OSError):
                log.warning("the connection did not close in order")

    async def _drained(self) -> None:
        for close in reversed(self._closers):
            try:
                async with asyncio.timeout(_DRAIN):
                    await close()
            except Exception:
                log.exception("a part of the bus did not stop in order")
        try:
            if self.nats.is_connected:
                await self.nats.flush(timeout=2)
        except (NatsError, TimeoutError, OSError):
            log.warning("the broker did not take the last messages")


@asynccontextmanager
async def connect(name: str, settings: BusSettings, *, user: str | None = None) -> AsyncIterator[Bus]:
    """A connected bus for the length of a block.

    Args:
        name: the service's name; its reply subjects stand below `_INBOX.<name>`.
        user: NATS user, the service's name by default.

    Raises:
        UntrustedBroker: the first connection fails for a reason of TLS; any other reason is waited out.
    """
    client = BrokerClient()
    bus = Bus(name, settings, client)
    found = False

    async def on_error(error: Exception) -> None:
        log.warning("broker: %s", error or type(error).__name__)
        if not found and (reason := tls_failure(error)) is not None:
            raise reason from error

    async def on_disconnect() -> None:
        if not bus.stopping.is_set():
            log.warning("broker lost")

    async def on_reconnect() -> None:
        log.info("broker found again")
        bus.reconnected()

    async def on_closed() -> None:
        if not bus.stopping.is_set():
            log.error("the connection to the broker ended for good")
            bus.lost.set()

    password = settings.password()
    options = tls_options(settings)
    if password is not None:
        options |= {"user": user or name, "password": password.get_secret_value()}
    try:
        await client.connect(
            settings.url.split(","),
            name=f"phronesis-{name}",
            error_cb=on_error,
            disconnected_cb=on_disconnect,
            reconnected_cb=on_reconnect,
            closed_cb=on_closed,
            inbox_prefix=f"{INBOX}.{name}",
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.25,  # type: ignore[arg-type]  # the library sleeps for it, a float is as good
            connect_timeout=2,
            ping_interval=5,
            max_outstanding_pings=2,
            pending_size=8 * 1024 * 1024,
            **options,
        )
    except (UntrustedBroker, asyncio.CancelledError):
        bus.stopping.set()
        await client.close()
        raise
    found = True
    await bus.application.connect()
    watchdog = _Watchdog(asyncio.get_running_loop(), settings.stall_limit)
    watchdog.start()
    try:
        if settings.trust_dir is not None:
            await Revocations(bus).start()
        yield bus
    finally:
        await bus.stop()
        await bus.tracing.close()
        watchdog.stop()


class _Watchdog(threading.Thread):
    """Ends the process when its event loop has not run for long: a stalled service looks alive to everybody else.

    It counts its own seconds, so that a process that was paused as a whole is not taken for a stalled one.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, limit: float) -> None:
        super().__init__(name="loop-watchdog", daemon=True)
        self._loop = loop
        self._limit = limit
        self._done = threading.Event()
        self._ticked = threading.Event()

    def stop(self) -> None:
        self._done.set()

    def run(self) -> None:
        missed = 0.0
        while not self._done.wait(1.0):
            if self._ticked.is_set():
                missed = 0.0
                self._ticked.clear()
            else:
                missed += 1.0
            if missed > self._limit:
                print(f"the event loop stood still for {self._limit:.0f} s", file=sys.stderr)
                faulthandler.dump_traceback()
                os._exit(LOST)
            try:
                self._loop.call_soon_threadsafe(self._ticked.set)
            except RuntimeError:
                return
