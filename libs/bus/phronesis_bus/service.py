"""The life of one service process: its logs, its port for metrics and health, and what every service answers alike."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from typing import TextIO

import uvloop
from prometheus_client import CONTENT_TYPE_LATEST

from phronesis_contracts import Nothing, ServiceError
from phronesis_contracts.service import HEALTH, SPANS, Health, Spans, TraceRef

from .connection import LOST, Bus, connect
from .envelope import Call
from .metrics import CONNECTED, Metrics
from .rpc import serve
from .settings import BusSettings
from .tracing import VERSION, conversation, correlation, trace_id, traceparent, turn, user

FIGURES = ("tool", "arguments", "outcome", "tokens", "nodes", "cached", "milliseconds")
"""Fields of its own that a line may have, by the `extra` of the call that writes it."""
_CAUSES = 10
_FRAMES = 60


def configure_logging(service: str, level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Send the standard library's loggers through one JSON formatter. `stream`: where to; standard error by default."""

    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_JsonFormatter(service))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for noisy in ("httpx", "neo4j", "nats"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


class _JsonFormatter(logging.Formatter):
    """A line of JSON for each record, with what its turn and its trace are called."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            "service": self._service,
            "correlation_id": correlation.get(),
            "trace_id": trace_id(traceparent()),
            "turn_id": turn.get(),
            "conversation_id": conversation.get(),
            "user_id": user.get(),
        }
        found = {name: value for name, value in line.items() if value}
        found |= {name: vars(record)[name] for name in FIGURES if name in vars(record)}
        if record.exc_info and record.exc_info[1] is not None:
            found["exception"] = _describe_exception(record.exc_info[1])
        return json.dumps(found, default=repr)


def _describe_exception(raised: BaseException) -> str:
    lines: list[str] = []
    error: BaseException | None = raised
    for _ in range(_CAUSES):
        if error is None:
            break
        code = getattr(error, "code", None) or getattr(error, "sqlstate", None)
        lines.append(f"{type(error).__module__}.{type(error).__qualname__}" + (f" ({code})" if isinstance(code, str) else ""))
        frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
        lines += [f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(lines)


log = logging.getLogger(__name__)

_LARGEST_HEAD = 8_192
"""Bytes of a request that are read."""
_REQUEST_SECONDS = 5.0
"""Seconds that one request may take."""
_MOST_REQUESTS = 8


@asynccontextmanager
async def serve_metrics(metrics: Metrics, listen: str, ready: Callable[[], bool]) -> AsyncIterator[int]:
    """Answer `GET /metrics`, `/health/live` and `/health/ready` for the length of a block.

    Args:
        listen: host and port; port 0 takes a free one.
        ready: whether the process can be asked now; `/health/ready` is a 503 where it cannot.

    Returns:
        The port.

    Raises:
        OSError: the address cannot be had.
    """
    open_now: set[asyncio.StreamWriter] = set()

    async def received(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(open_now) >= _MOST_REQUESTS:
            writer.close()
            return
        open_now.add(writer)
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(await _answer_http(metrics, ready, head))
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError) as error:
            log.debug("a reading of the metrics broke off: %s", type(error).__name__)
        finally:
            open_now.discard(writer)
            writer.close()

    host, _, port = listen.rpartition(":")
    server = await asyncio.start_server(received, host.strip("[]"), int(port), limit=_LARGEST_HEAD)
    try:
        bound = int(server.sockets[0].getsockname()[1])
        log.info("metrics at %s:%d/metrics", host, bound)
        yield bound
    finally:
        server.close()


@asynccontextmanager
async def expose_metrics(bus: Bus) -> AsyncIterator[None]:
    """The metrics and the health of a connected process on the port that is set, where one is, for the length of a block."""
    async with AsyncExitStack() as opened:
        if bus.settings.metrics_listen is not None:
            bus.tracing.metrics.watch(CONNECTED, lambda: float(bus.connected))
            await opened.enter_async_context(serve_metrics(bus.tracing.metrics, bus.settings.metrics_listen, lambda: bus.ready))
        yield


async def _answer_http(metrics: Metrics, ready: Callable[[], bool], head: bytes) -> bytes:
    method, _, rest = head.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0]
    match method, path:
        case b"GET", b"/metrics":
            return _http_response("200 OK", await metrics.text(), CONTENT_TYPE_LATEST)
        case b"GET", b"/health/live":
            return _http_response("200 OK", b"live\n")
        case b"GET", b"/health/ready":
            return (
                _http_response("200 OK", b"ready\n") if ready() else _http_response("503 Service Unavailable", b"not ready\n")
            )
    return _http_response("404 Not Found", b"")


def _http_response(status: str, body: bytes, kind: str = "text/plain") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


Ping = Callable[[], Awaitable[None]]


async def health(
    service: str,
    pings: dict[str, Ping],
    *,
    limit: float = 1.0,
    offers: tuple[str, ...] = (),
    breakers: Mapping[str, str] | None = None,
) -> Health:
    """Run the pings side by side; each has `limit` seconds and raises where its dependency is down."""

    async def up(ping: Ping) -> bool:
        try:
            async with asyncio.timeout(limit):
                await ping()
        except Exception as error:
            log.warning("a dependency of %s is down: %s", service, type(error).__name__)
            return False
        return True

    results = await asyncio.gather(*(up(ping) for ping in pings.values()))
    down = tuple(name for name, ok in zip(pings, results, strict=True) if not ok)
    return Health(service=service, version=VERSION, ready=not down, down=down, offers=offers, breakers=dict(breakers or {}))


async def serve_basics(
    bus: Bus,
    pings: dict[str, Ping],
    offers: Callable[[], tuple[str, ...]] = tuple,
    breakers: Callable[[], Mapping[str, str]] = dict,
) -> None:
    """Answer for the service's health and for the spans it remembers: each copy for itself, where all are asked.

    Args:
        pings: by dependency what raises where it is down.
        offers: gives what the service can do, where that depends on its surroundings.
        breakers: gives the services that it does not ask as always, with the state of each.
    """

    async def on_health(call: Call, request: Nothing) -> Health:
        return await health(bus.name, pings, offers=offers(), breakers=breakers())

    async def on_spans(call: Call, request: TraceRef) -> Spans:
        return bus.tracing.recent.of(request)

    await serve(bus, HEALTH[bus.name], on_health, every_copy=True)
    await serve(bus, SPANS[bus.name], on_spans, every_copy=True)


def run(name: str, start: Callable[[Bus], AbstractAsyncContextManager[None]]) -> None:
    """Run a service until SIGTERM or SIGINT: stores open, broker starts; broker drains, stores close.

    Args:
        start: opens the stores and wires the handlers; closes the stores at its end.

    Raises:
        SystemExit: the connection to the broker ended for good; whoever supervises the process starts it again.
    """
    configure_logging(name)
    if not uvloop.run(_life(name, start)):
        raise SystemExit(LOST)


async def _life(name: str, start: Callable[[Bus], AbstractAsyncContextManager[None]]) -> bool:
    stop_requested, up = asyncio.Event(), asyncio.Event()
    work = asyncio.create_task(_serve(name, start, stop_requested, up))

    def stop() -> None:
        stop_requested.set()
        if not up.is_set():
            work.cancel()  # it waits for the broker or a store, perhaps for ever

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    with contextlib.suppress(asyncio.CancelledError):
        await work
    return stop_requested.is_set()


async def _serve(
    name: str, start: Callable[[Bus], AbstractAsyncContextManager[None]], stop_requested: asyncio.Event, up: asyncio.Event
) -> None:
    async with connect(name, BusSettings()) as bus, expose_metrics(bus), start(bus):
        bus.up.set()
        up.set()
        log.info("%s is up", name)
        ends = [asyncio.create_task(event.wait()) for event in (stop_requested, bus.lost)]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
        log.info("%s stops", name)
        await bus.stop()


_REST = 5.0
"""Seconds between looks at what waits, where nobody says that something does."""


def work_in_background(bus: Bus, what: str, step: Callable[[], Awaitable[bool]], wake: asyncio.Event) -> None:
    """Do batch after batch until the bus stops; a batch at hand is then done again by somebody else.

    Args:
        what: what is worked on, for the log.
        step: does one batch, and says whether there was one.
        wake: set when something waits.
    """

    async def work() -> None:
        while True:
            wake.clear()
            try:
                if await step():
                    continue
            except ServiceError as error:
                log.warning("%s wait: %s", what, error.code)
            except Exception:
                # The loop may not end: nothing more would be done.
                log.exception("%s could not be worked on", what)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_REST):
                    await wake.wait()

    task = asyncio.create_task(work(), name=f"work on {what}")

    async def stop() -> None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    bus.on_stop(stop)
