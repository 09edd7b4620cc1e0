"""What machines ask: whether every service is up, metrics, and what this is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel
from starlette.responses import PlainTextResponse, Response

from phronesis_bus import VERSION, Bus, Kind, Metric, Tracing, ask, health
from phronesis_contracts import SYSTEM_TENANT, Nothing, Principal, Role, ServiceError
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.service import HEALTH, SERVICES

from ..auth.authentication import OpenStreams
from .responses import json_response, route_responses

LIMIT = 1.5
"""Seconds that a service has to answer."""
KEPT = 1.0
"""Seconds that an answer is good for, so that being asked often costs nothing."""
_WHO = Principal(tenant=SYSTEM_TENANT, user="gateway", role=Role.ADMIN)


class Readiness:
    def __init__(self, bus: Bus, pings: dict[str, Callable[[], Awaitable[None]]]) -> None:
        self._bus = bus
        self._pings = pings
        self._asking = asyncio.Lock()
        self._down: tuple[str, ...] = ()
        self._known_until = 0.0
        self.stopping = False

    async def down(self) -> tuple[str, ...]:
        """What is down: `<service>` where one does not answer, `<service>.<dependency>` where it says so itself."""
        if self.stopping or self._bus.stopping.is_set():
            return ("gateway",)
        async with self._asking:
            if time.monotonic() >= self._known_until:
                self._down = await self._ask_all()
                self._known_until = time.monotonic() + KEPT
            return self._down

    async def _ask_all(self) -> tuple[str, ...]:
        own = await health("gateway", self._pings)
        down = [f"gateway.{name}" for name in own.down]
        if not self._bus.connected:
            # Without the broker nothing is known of the others.
            return tuple(down)
        with self._bus.tracing.span("readiness"):
            answers = await asyncio.gather(*(self._ask(name) for name in SERVICES if name != "gateway"))
        return (*down, *(name for answer in answers for name in answer))

    async def _ask(self, service: str) -> tuple[str, ...]:
        try:
            answer = await ask(self._bus, _WHO, HEALTH[service], Nothing(), timeout=LIMIT)
        except ServiceError:
            return (service,)
        return tuple(f"{service}.{name}" for name in answer.down) or (() if answer.ready else (service,))


_TENANTS = 100
"""Tenants that are counted by name."""
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 65)


REQUESTS = Metric("gateway_requests", Kind.COUNTER, "Requests answered.", ("method", "route", "status"))
REQUEST_SECONDS = Metric("gateway_request_seconds", Kind.HISTOGRAM, "Time to the answer's end.", ("method", "route"), _SECONDS)
MCP_SECONDS = Metric(
    "gateway_mcp_seconds",
    Kind.HISTOGRAM,
    "Time of MCP requests, by what came of them.",
    ("method", "tool", "outcome"),
    _SECONDS,
)
REFUSED = Metric(
    "gateway_refused",
    Kind.COUNTER,
    "Requests over a limit: of the `user`, the `program`, the `tenant`, or of those answered `at_once`."
    " After a hundred tenants the others are counted as `other`.",
    ("limit", "tenant"),
)
IN_FLIGHT = Metric("gateway_in_flight", Kind.GAUGE, "Requests that are being answered.")
OPEN_STREAMS = Metric("gateway_open_streams", Kind.GAUGE, "Event streams that are open.")


class Metrics:
    """The gateway's figures, among those of its process.

    Args:
        tracing: the process's; two gateways in one test do not share their counts.
    """

    def __init__(self, streams: OpenStreams, tracing: Tracing) -> None:
        self._metrics = tracing.metrics
        self._in_flight = 0
        self._tenants: set[str] = set()
        self._metrics.watch(IN_FLIGHT, lambda: float(self._in_flight))
        self._metrics.watch(OPEN_STREAMS, lambda: float(streams.open))

    def began(self) -> None:
        self._in_flight += 1

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request that began, and is answered.

        Args:
            method: the HTTP method; unknown ones are counted as one.
            route: the route's template, so that ids make no series of their own.
            seconds: time from the request's head to the answer's end.
        """
        self._in_flight -= 1
        self._metrics.count(REQUESTS, method, route, str(status))
        self._metrics.observe(REQUEST_SECONDS, seconds, method, route)

    def refused(self, limit: str, tenant: str) -> None:
        """Count one request that is over a limit."""
        if len(self._tenants) < _TENANTS:
            self._tenants.add(tenant)
        self._metrics.count(REFUSED, limit, tenant if tenant in self._tenants else "other")

    def mcp(self, method: str, tool: str, outcome: str, seconds: float) -> None:
        """Count one MCP request.

        Args:
            method: the MCP method; unknown ones are counted as one.
            tool: the tool that was called, empty for none.
            outcome: `ok`, `tool_error`, `error`, or the code of an error of the protocol.
        """
        self._metrics.observe(MCP_SECONDS, seconds, method, tool, outcome)

    async def text(self) -> bytes:
        return await self._metrics.text()


class Alive(BaseModel):
    """The process answers."""

    alive: bool = True
    """Always true: a process that is not alive answers nothing."""


class Ready(BaseModel):
    """Whether the stack can work, and what is down."""

    ready: bool
    """Whether the stack can work."""
    down: tuple[str, ...]
    """What does not answer: a service, or `service.dependency`; empty where all does."""


class Info(BaseModel):
    """What this is."""

    name: str = "phronesis"
    """The product's name."""
    version: str = VERSION
    """Version of the gateway."""
    revision: str | None
    """The commit that it was built from; absent where the operator did not state it."""
    architecture: str = "3.4"
    """Version of the analysts' control loop."""
    matrix: str = "4.0.0"
    """Version of the analysts' instructions as they ship; an editor may have released others since."""
    api: tuple[str, ...] = ("v1",)
    """The versions of the API that it serves."""
    features: tuple[str, ...] = ("messages", "chat", "turns", "events", "tickets", "media", "tools", "mcp", "keys", "traces")
    """What it offers, by name."""
    tools: tuple[str, ...] = tuple(sorted(TOOLS))
    """Every tool of the catalog, by name; which of them a key may call `/api/v1/tools` lists."""


def operations_router(readiness: Readiness, metrics: Metrics, revision: str | None) -> APIRouter:
    routes = APIRouter(tags=["operations"])
    info = Info(revision=revision)

    @routes.get("/health/live", responses=route_responses(Alive))
    async def get_liveness() -> Response:
        """Check that the process answers.

        It asks nobody else, so it says nothing of the services behind.
        """
        return json_response(Alive())

    @routes.get("/health/ready", responses=route_responses(Ready) | route_responses(Ready, 503))
    async def get_readiness() -> Response:
        """Check that the stack can work.

        503 names what is down: a service, or a service's dependency.
        """
        down = await readiness.down()
        return json_response(Ready(ready=not down, down=down), 503 if down else 200, {"Retry-After": "1"} if down else None)

    @routes.get("/metrics", response_class=PlainTextResponse, responses={200: {"description": "Counts, for Prometheus."}})
    async def get_metrics() -> Response:
        """Get the metrics.

        What the gateway's process counted, in the text format of Prometheus.
        """
        return Response(await metrics.text(), media_type=CONTENT_TYPE_LATEST)

    @routes.get("/info", responses=route_responses(Info))
    async def get_info() -> Response:
        """Get the version and what is offered.

        For clients that want to know what they talk to.
        """
        return json_response(info)

    return routes
