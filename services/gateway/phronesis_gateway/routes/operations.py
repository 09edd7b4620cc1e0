"""What machines ask: health, metrics, and what this is."""

from __future__ import annotations

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel
from starlette.responses import Response

from phronesis_bus import VERSION
from phronesis_contracts.catalog import TOOLS
from phronesis_gateway.answers import answers, as_json
from phronesis_gateway.metrics import Metrics
from phronesis_gateway.readiness import Readiness


class Alive(BaseModel):
    """The process answers."""

    alive: bool = True


class Ready(BaseModel):
    """Whether the stack can work, and what is down."""

    ready: bool
    down: tuple[str, ...]


class Info(BaseModel):
    """What this is."""

    name: str = "phronesis"
    version: str = VERSION
    revision: str | None
    architecture: str = "3.4"
    """Of the analysts' control loop (N-001)."""
    matrix: str = "4.0.0"
    """Of the analysts' instructions as they ship (N-001); an editor may have released others since."""
    api: tuple[str, ...] = ("v1",)
    features: tuple[str, ...] = ("messages", "chat", "turns", "events", "tickets", "media", "tools", "mcp", "keys", "traces")
    tools: tuple[str, ...] = tuple(sorted(TOOLS))


def router(readiness: Readiness, metrics: Metrics, revision: str | None) -> APIRouter:
    """The routes.

    Args:
        readiness: finds out what is down.
        metrics: what was counted.
        revision: revision of the source.
    """
    routes = APIRouter(tags=["operations"])
    info = Info(revision=revision)

    @routes.get("/health/live", responses=answers(Alive))
    async def live() -> Response:
        """Whether the process answers; it asks nobody else."""
        return as_json(Alive())

    @routes.get("/health/ready", responses=answers(Ready) | answers(Ready, 503))
    async def ready() -> Response:
        """Whether the stack can work. What is down is named: a service, or a service's dependency."""
        down = await readiness.down()
        return as_json(Ready(ready=not down, down=down), 503 if down else 200, {"Retry-After": "1"} if down else None)

    @routes.get("/metrics", responses={200: {"description": "Counts, for Prometheus.", "content": {"text/plain": {}}}})
    async def counted() -> Response:
        """What the gateway's process counted."""
        return Response(await metrics.text(), media_type=CONTENT_TYPE_LATEST)

    @routes.get("/info", responses=answers(Info))
    async def what() -> Response:
        """What this is."""
        return as_json(info)

    return routes
