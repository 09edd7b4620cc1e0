"""The embedded stack with a proxy in every connection between a service and what it stands on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from phronesis_local import postgres
from phronesis_local.layout import DataDir
from phronesis_local.loopback import LOOPBACK
from phronesis_local.parts import OWNERS, SERVICES, Answers, Parts
from phronesis_local.processes import Program
from phronesis_local.settings import LocalSettings
from phronesis_local.stack import Stack
from phronesis_postgres.roles import role_of
from tests.faults.embedding_server import DIMENSION, FLOOR, embedding_server
from tests.support.groq_server import GroqServer, groq_server
from tests.support.people import Town, town
from tests.support.production import GRAPH
from tests.support.tcp_proxy import TcpProxy, tcp_proxy

_SOCKET = ".s.PGSQL.5432"


@dataclass(frozen=True)
class FaultStack:
    """A running stack: the model, its users, and the proxies by the name of their connection."""

    model: GroqServer
    people: Town
    links: Mapping[str, TcpProxy]


class _Parts(Parts):
    """Parts whose services are told other addresses."""

    told: Mapping[str, Mapping[str, str]] = {}

    def service(self, name: str, answers: Answers) -> Program:
        """See `Parts`."""
        program = super().service(name, answers)
        return replace(program, environment={**program.environment, **self.told[name]})


@asynccontextmanager
async def fault_stack(folder: Path, environment: Mapping[str, str] | None = None) -> AsyncIterator[FaultStack]:
    """A stack with its data in `folder` and more variables for its services, for the length of a block."""
    data = DataDir(folder)
    data.create()
    settings = LocalSettings().model_copy(update={"data": folder, "port": 0})
    stack = Stack(data, settings, lambda record: None)
    stack._parts = parts = _Parts(data, settings, stack._parts._where)
    async with AsyncExitStack() as opened:
        model = await opened.enter_async_context(groq_server())
        embedder = await opened.enter_async_context(embedding_server())
        targets: dict[str, tuple[str, int] | Path] = {
            **{f"{name} to Postgres": postgres.socket_folder(data.postgres) / _SOCKET for name in OWNERS},
            **{f"{name} to NATS": (LOOPBACK, parts._where.nats) for name in SERVICES},
            "graph to its store": (LOOPBACK, parts.port(GRAPH) or 0),
            "memory to the embedding service": (LOOPBACK, embedder),
            "orchestrator to the model": (LOOPBACK, model.port),
        }
        links = {name: await opened.enter_async_context(tcp_proxy(target)) for name, target in targets.items()}
        parts.told = {name: {**(environment or {}), **_told(name, links)} for name in SERVICES}
        opened.push_async_callback(stack.stop)
        await stack.start()
        keeping = asyncio.create_task(stack.stay())
        opened.callback(keeping.cancel)
        people = await opened.enter_async_context(town(stack.record.url, data.key.read_text().strip()))
        await people.ready()
        yield FaultStack(model, people, links)


def _told(name: str, links: Mapping[str, TcpProxy]) -> dict[str, str]:
    told = {"BUS_URL": f"nats://{LOOPBACK}:{links[f'{name} to NATS'].port}"}
    if name in OWNERS:
        told["POSTGRES_DSN"] = f"postgresql://{role_of(name)}@{LOOPBACK}:{links[f'{name} to Postgres'].port}/postgres"
    if name == "graph":
        told["GRAPH_URL"] = f"bolt://{LOOPBACK}:{links['graph to its store'].port}"
    if name == "memory":
        told["MEMORY_EMBEDDING_URL"] = f"http://{LOOPBACK}:{links['memory to the embedding service'].port}/v1"
        told |= {"MEMORY_EMBEDDING_DIMENSION": str(DIMENSION), "MEMORY_SIMILARITY_FLOOR": str(FLOOR)}
        told["MEMORY_QUERY_CACHE_SECONDS"] = "0"
    if name == "orchestrator":
        told["GROQ_API_KEY"] = "gsk-scripted"
        told["ORCHESTRATOR_MODEL_URL"] = f"http://{LOOPBACK}:{links['orchestrator to the model'].port}"
    return told
