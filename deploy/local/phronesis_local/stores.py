"""Which stores a data directory was begun with, whether they are to be had, and how the services reach them."""

from __future__ import annotations

from . import arcadedb, neo4j, weaviate
from .environment import inherited
from .finding import Finding
from .keys import password_file
from .layout import DataDir, write_atomically
from .settings import LocalSettings, Stores


class StoresRefused(Exception):
    """A stack cannot run with these stores; the text says why, and what to do."""


def begun_with(data: DataDir) -> Stores | None:
    """The stores that hold the data; `None` where nothing has been stored yet."""
    if data.stores.exists():
        return Stores(data.stores.read_text().strip())
    return Stores.EMBEDDED if data.arcadedb.exists() else None


def hold_to(data: DataDir, settings: LocalSettings) -> None:
    """Check that the stack may run, and note its stores in the data directory.

    Raises:
        StoresRefused: the data is in other stores, or a program is missing.
    """
    before = begun_with(data)
    if before not in (None, settings.stores):
        raise StoresRefused(
            f"{data.root} was begun with the {before} stores, and would be empty with the {settings.stores} ones. Start it "
            f"with PHRONESIS_STORES={before}, or carry its data over: `phronesis backup` here, and `phronesis restore` "
            "into another directory"
        )
    if wrong := [finding for finding in look_at_programs(settings) if not finding.ok]:
        raise StoresRefused("; ".join(f"{finding.what}: {finding.found}: {finding.remedy}" for finding in wrong))
    if before is None:
        write_atomically(data.stores, f"{settings.stores}\n")


def graph_variables(data: DataDir, name: str, url: str) -> dict[str, str]:
    """How the services reach the graph store of that name."""
    variables = {"GRAPH_URL": url, "GRAPH_DIALECT": name}
    if name == neo4j.NAME:
        return variables | {
            "GRAPH_DATABASE": neo4j.DATABASE,
            "GRAPH_USER": neo4j.USER,
            "GRAPH_PASSWORD_FILE": str(password_file(data, neo4j.NAME)),
        }
    return variables | {
        "GRAPH_DATABASE": arcadedb.DATABASE,
        "GRAPH_USER": arcadedb.ROOT,
        "GRAPH_PASSWORD_FILE": str(password_file(data, f"arcadedb-{arcadedb.ROOT}")),
        "GRAPH_READ_USER": arcadedb.READER,
        "GRAPH_READ_PASSWORD_FILE": str(password_file(data, f"arcadedb-{arcadedb.READER}")),
    }


def vector_variables(data: DataDir, ports: weaviate.Ports) -> dict[str, str]:
    """How the services reach Weaviate."""
    key = str(password_file(data, weaviate.NAME))
    return {"WEAVIATE_URL": ports.url, "WEAVIATE_GRPC_URL": ports.grpc_url, "WEAVIATE_KEY_FILE": key}


def look_at_programs(settings: LocalSettings) -> list[Finding]:
    """Findings about what the production stores are run from; none with the embedded ones."""
    if settings.stores is Stores.EMBEDDED:
        return []
    found = []
    if not settings.graph_url:
        found += [_java(), _neo4j(settings)]
    if not settings.weaviate_url:
        found.append(_weaviate(settings))
    return found


def _java() -> Finding:
    program = neo4j.java(inherited())
    there = program is not None and program.exists()
    remedy = "install Java 17 or 21, or set JAVA_HOME"
    return Finding(what="Java for Neo4j", found=str(program) if there else "not installed", ok=there, remedy=remedy)


def _neo4j(settings: LocalSettings) -> Finding:
    home = settings.neo4j_home
    remedy = "set PHRONESIS_NEO4J_HOME to a folder with Neo4j's archives in `lib`, or GRAPH_URL to a server that runs"
    if home is None or not neo4j.archives(home):
        return Finding(what="Neo4j", found=f"not in {home}" if home else "not set", ok=False, remedy=remedy)
    return Finding(what="Neo4j", found=str(home))


def _weaviate(settings: LocalSettings) -> Finding:
    program = settings.weaviate
    remedy = "set PHRONESIS_WEAVIATE to the program `weaviate-server`, or WEAVIATE_URL to a server that runs"
    if program is None or not program.is_file():
        return Finding(what="Weaviate", found=f"not {program}" if program else "not set", ok=False, remedy=remedy)
    return Finding(what="Weaviate", found=str(program))
