"""What stands in for parts that are not simulated, and the ways to the models."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from nats.aio.client import Client as NatsClient
from opentelemetry.trace import INVALID_SPAN, Span

from phronesis_bus import Bus
from phronesis_bus.metrics import Metrics
from phronesis_bus.settings import BusSettings
from phronesis_contracts import Principal

from .broker import Client
from .loop import Process, SimulatedLoop
from .postgres import Wire


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

    def principal(self, token: str, *, at: float | None = None, request: str | None = None) -> Principal:
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


class NoReasoner:
    """No turn of a run asks a model but by the steps of its agent."""

    name = "simulated"
