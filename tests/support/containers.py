"""Neo4j and Weaviate as containers, where a container engine answers."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from functools import cache
from pathlib import Path

from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient

from phronesis_local import neo4j, weaviate
from phronesis_local.loopback import LOOPBACK, free_port
from phronesis_memory.settings import WeaviateSettings
from tests.support.packages import NEO4J_VERSION, WEAVIATE_VERSION
from tests.support.production_servers import OutsideNeo4j, OutsideWeaviate
from tests.support.servers import Login

_NEO4J = f"neo4j:{NEO4J_VERSION}-community"
_WEAVIATE = f"cr.weaviate.io/semitechnologies/weaviate:{WEAVIATE_VERSION}"
_BOLT, _HTTP, _GRPC = 7687, 8080, 50051


@cache
def engine() -> bool:
    """Whether a container engine answers."""
    try:
        return bool(DockerClient().client.ping())
    except Exception:  # each way of having no engine has an error of its own
        return False


class ContainerNeo4j(OutsideNeo4j):
    """A Neo4j in a container, on a port that stays the same when it is started again."""

    def __init__(self) -> None:
        super().__init__(f"bolt://{LOOPBACK}:{free_port()}", Login(neo4j.USER, secrets.token_hex(8)))
        container = DockerContainer(_NEO4J).with_bind_ports(_BOLT, self.port)
        settings = {
            "NEO4J_AUTH": f"{self.root.user}/{self.root.password}",
            "NEO4J_server_memory_heap_max__size": "1g",
            "NEO4J_server_memory_pagecache_size": "256m",
            "NEO4J_dbms_usage__report_enabled": "false",
        }
        self._container = _Container(container.with_envs(**settings))

    async def start(self) -> None:
        """Start it, and return when it answers."""
        await self._container.start()
        await super().start()

    async def kill(self) -> None:
        """End it at once; its data stays."""
        await self._container.kill()

    async def stop(self) -> None:
        """Remove it with its data."""
        await self._container.remove()


class ContainerWeaviate(OutsideWeaviate):
    """A Weaviate in a container, with the settings of the one that runs beside a local stack."""

    def __init__(self) -> None:
        http, grpc, key = free_port(), free_port(), secrets.token_hex(8)
        key_file = Path(tempfile.mkstemp(suffix=".key")[1])
        key_file.write_text(key)
        super().__init__(
            WeaviateSettings(url=f"http://{LOOPBACK}:{http}", grpc_url=f"http://{LOOPBACK}:{grpc}", key_file=key_file)
        )
        container = DockerContainer(_WEAVIATE).with_bind_ports(_HTTP, http).with_bind_ports(_GRPC, grpc)
        inside = weaviate.Ports(http=_HTTP, grpc=_GRPC, gossip=7946, data=7947, raft=8300)
        settings = weaviate.settings_of(Path("/var/lib/weaviate"), inside, key)
        self._container = _Container(container.with_envs(**settings))

    async def start(self) -> None:
        """Start it, and return when it answers."""
        await self._container.start()
        await super().start()

    async def kill(self) -> None:
        """End it at once; its data stays."""
        await self._container.kill()

    async def stop(self) -> None:
        """Remove it with its data."""
        await self._container.remove()


class _Container:
    """One container: made at its first start, the same one at each later start."""

    def __init__(self, container: DockerContainer) -> None:
        self._container = container
        self._made = False

    async def start(self) -> None:
        if self._made:
            await asyncio.to_thread(self._container.get_wrapped_container().start)
        else:
            await asyncio.to_thread(self._container.start)
            self._made = True

    async def kill(self) -> None:
        await asyncio.to_thread(self._container.get_wrapped_container().kill)

    async def remove(self) -> None:
        if self._made:
            await asyncio.to_thread(self._container.stop)
