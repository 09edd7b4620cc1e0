"""Which stores the tests run on, and how the production ones come to be: `PHRONESIS_STORES` decides, as it does for a stack.

A graph server or a vector server for a test is, in this order, the one whose address the environment has
(`PHRONESIS_TEST_NEO4J_URL`, `_USER`, `_PASSWORD_FILE`; `PHRONESIS_TEST_WEAVIATE_URL`, `_GRPC_URL`, `_KEY_FILE`); a container,
where an engine answers; or a child from the packages. Whole stacks, and tests that end a server or freeze it, take the
packages: only a child can be killed by its process id.

    python -m tests.support.production    installs the packages and prints the two paths
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from phronesis_local import arcadedb, neo4j
from phronesis_local.keys import password
from phronesis_local.layout import DataDir
from phronesis_local.parts import servers
from phronesis_local.settings import LocalSettings, Stores
from phronesis_memory.settings import WeaviateSettings
from tests.support import packages, shared
from tests.support.production_servers import Neo4jServer, OutsideNeo4j, OutsideWeaviate, WeaviateServer
from tests.support.servers import ArcadeServer, GraphServer, Login, SharedArcade, VectorServer

STORES = LocalSettings().stores
SERVERS = servers(LocalSettings())
"""The servers of a stack on these stores."""

GRAPH = neo4j.NAME if STORES is Stores.PRODUCTION else arcadedb.NAME
"""The part of a stack that is its graph store."""
GRAPH_DATABASE = neo4j.DATABASE if STORES is Stores.PRODUCTION else arcadedb.DATABASE


def graph_login(data: DataDir, user: str = arcadedb.ROOT) -> tuple[str, str]:
    """A user of a stack's graph store, with the password; Neo4j has one user alone."""
    if STORES is Stores.PRODUCTION:
        return neo4j.USER, password(data, neo4j.NAME)
    return user, password(data, f"arcadedb-{user}")


def prepare() -> None:
    """Have what the stores are run from, and tell this process and its children where it is; embedded ones bring all of it.

    A server of a test lives for minutes: the quick compiler of its JVM alone costs it less than the thorough one would save.

    Raises:
        CannotInstall: it could not be had; the text says why.
    """
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
    if STORES is Stores.PRODUCTION:
        os.environ["PHRONESIS_NEO4J_HOME"] = str(packages.neo4j_home())
        os.environ["PHRONESIS_WEAVIATE"] = str(packages.weaviate())


def graph_server(folder: Path) -> GraphServer:
    """A graph server for many tests of this worker; it is not started yet, or is the one that the run has."""
    if STORES is Stores.EMBEDDED:
        return SharedArcade(shared.ask("arcadedb"), shared.worker())
    if url := os.environ.get("PHRONESIS_TEST_NEO4J_URL"):
        password = _secret("PHRONESIS_TEST_NEO4J_PASSWORD_FILE")
        return OutsideNeo4j(url, Login(os.environ.get("PHRONESIS_TEST_NEO4J_USER", "neo4j"), password))
    from tests.support import containers  # the client of the container engine takes its time to load

    return containers.ContainerNeo4j() if containers.engine() else Neo4jServer(folder)


def own_graph_server(folder: Path) -> GraphServer:
    """A graph server that the test may kill; it is not started yet."""
    return ArcadeServer(folder) if STORES is Stores.EMBEDDED else Neo4jServer(folder)


def vector_server(folder: Path) -> VectorServer | None:
    """A vector server for many tests, not started yet; none for the embedded stores, whose vectors stand in Postgres."""
    if STORES is Stores.EMBEDDED:
        return None
    if url := os.environ.get("PHRONESIS_TEST_WEAVIATE_URL"):
        grpc_url, key_file = (os.environ[f"PHRONESIS_TEST_WEAVIATE_{name}"] for name in ("GRPC_URL", "KEY_FILE"))
        return OutsideWeaviate(WeaviateSettings(url=url, grpc_url=grpc_url, key_file=Path(key_file)))
    from tests.support import containers

    return containers.ContainerWeaviate() if containers.engine() else WeaviateServer(folder)


def _secret(variable: str) -> str:
    return Path(os.environ[variable]).read_text(encoding="utf-8").strip()


def main() -> None:
    """Install the packages and print where they are; end with a text where they could not be had."""
    try:
        print(packages.neo4j_home(), packages.weaviate(), sep="\n")
    except packages.CannotInstall as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
