"""Neo4j and Weaviate for the tests: as children of the test, or as servers that somebody else runs."""

from __future__ import annotations

import secrets
from pathlib import Path
from urllib.parse import urlsplit

from phronesis_graph.settings import Dialect
from phronesis_local import neo4j, weaviate
from phronesis_local.layout import inherited_environment
from phronesis_local.loopback import LOOPBACK, free_port, speaks_bolt
from phronesis_local.processes import Child
from phronesis_memory.settings import WeaviateSettings
from tests.support import packages
from tests.support.bus import eventually
from tests.support.servers import Login, OwnServer

_ANSWERS_WITHIN = 120.0
"""Seconds in which a server that somebody else runs has to answer."""


class Neo4jServer(OwnServer):
    """A Neo4j of the test's own, from the packages. In Community every user may do all, so none only reads."""

    database = neo4j.DATABASE
    dialect = Dialect.NEO4J
    reader: Login | None = None

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.url = f"bolt://{LOOPBACK}:{self.port}"
        self.root = Login(neo4j.USER, secrets.token_hex(8))
        home, log = packages.neo4j_home(), folder / "log.txt"
        self._child = Child(neo4j.program(home, folder, self.port, self.root.password, log, inherited_environment()))


class OutsideNeo4j:
    """A Neo4j that somebody else runs, and goes on running.

    Args:
        url: its Bolt address, on this machine.
        login: a user that may do all.
    """

    database = neo4j.DATABASE
    dialect = Dialect.NEO4J
    reader: Login | None = None

    def __init__(self, url: str, login: Login) -> None:
        self.url = url
        self.port = urlsplit(url).port or 7687
        self.root = login

    async def start(self) -> None:
        """Return when it answers."""
        await eventually(lambda: speaks_bolt(self.port), within=_ANSWERS_WITHIN)

    async def kill(self) -> None:
        """Refuse: it is not ours."""
        raise RuntimeError("this Neo4j is somebody else's")

    async def stop(self) -> None:
        """Leave it as it is."""


class WeaviateServer(OwnServer):
    """A Weaviate of the test's own, from the packages."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.key, self.ports = secrets.token_hex(8), weaviate.Ports.free()
        self.url, self.grpc_url = self.ports.url, self.ports.grpc_url
        log, key_file = (folder.with_name(f"{folder.name}.{end}") for end in ("log", "key"))
        key_file.write_text(self.key)
        self.settings = WeaviateSettings(url=self.url, grpc_url=self.grpc_url, key_file=key_file)
        self._child = Child(weaviate.program(packages.weaviate(), folder, self.ports, self.key, log, inherited_environment()))


class OutsideWeaviate:
    """A Weaviate that somebody else runs, and goes on running.

    Args:
        settings: its addresses, on this machine, and a key that may do all.
    """

    def __init__(self, settings: WeaviateSettings) -> None:
        self.settings = settings

    async def start(self) -> None:
        """Return when it answers."""
        await eventually(lambda: weaviate.answers(urlsplit(self.settings.url or "").port or 80), within=_ANSWERS_WITHIN)

    async def kill(self) -> None:
        """Refuse: it is not ours."""
        raise RuntimeError("this Weaviate is somebody else's")

    async def stop(self) -> None:
        """Leave it as it is."""
