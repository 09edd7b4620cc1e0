"""The parts of a stack on one data directory: which stores, servers and services, where, with which environment."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict

from . import arcadedb, model, nats, neo4j, postgres, weaviate
from .keys import SIGNERS, admission_key_file, password, password_file, role_password_file, signing_key_file
from .layout import DataDir, inherited_environment, part_environment, write_atomically
from .loopback import LOOPBACK, free_port, is_free
from .nats import DECLARER, OPERATOR
from .processes import Program
from .settings import DEFAULT_PORT, LocalSettings, Model, Stores


class Finding(BaseModel):
    """One thing that was looked at."""

    model_config = ConfigDict(frozen=True)

    what: str
    found: str
    ok: bool = True
    remedy: str = ""


class StoresRefused(Exception):
    """A stack cannot run with these stores; the text says why, and what to do."""


def recorded_stores(data: DataDir) -> Stores | None:
    """The stores that hold the data; `None` where nothing has been stored yet."""
    if data.stores.exists():
        return Stores(data.stores.read_text().strip())
    return Stores.EMBEDDED if data.arcadedb.exists() else None


def check_stores(data: DataDir, settings: LocalSettings) -> None:
    """Check that the stack may run, and note its stores in the data directory.

    Raises:
        StoresRefused: the data is in other stores, or a program is missing.
    """
    before = recorded_stores(data)
    if before not in (None, settings.stores):
        raise StoresRefused(
            f"{data.root} was begun with the {before} stores, and would be empty with the {settings.stores} ones. Start it "
            f"with PHRONESIS_STORES={before}, or carry its data over: `phronesis backup` here, and `phronesis restore` "
            "into another directory"
        )
    if wrong := [finding for finding in examine_programs(settings) if not finding.ok]:
        raise StoresRefused("; ".join(f"{finding.what}: {finding.found}: {finding.remedy}" for finding in wrong))
    if before is None:
        write_atomically(data.stores, f"{settings.stores}\n")


def graph_variables(data: DataDir, name: str, url: str) -> dict[str, str]:
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
    key = str(password_file(data, weaviate.NAME))
    return {"WEAVIATE_URL": ports.url, "WEAVIATE_GRPC_URL": ports.grpc_url, "WEAVIATE_KEY_FILE": key}


def examine_programs(settings: LocalSettings) -> list[Finding]:
    """Findings about what the production stores and the local model are run from; none without them."""
    found = [_model(settings)] if settings.model is Model.LOCAL else []
    if settings.stores is Stores.EMBEDDED:
        return found
    if not settings.graph_url:
        found += [_java(), _neo4j(settings)]
    if not settings.weaviate_url:
        found.append(_weaviate(settings))
    return found


def model_python(settings: LocalSettings) -> Path:
    """The Python that serves the local model."""
    return settings.model_python or model.default_python()


def _model(settings: LocalSettings) -> Finding:
    python = model_python(settings)
    there = model.find(python)
    remedy = "run `make model`, or install `phronesis-local[model]`; PHRONESIS_MODEL_PYTHON names another Python that has it"
    found = f"llama-cpp-python {there[0]}, {there[1].name}" if there else f"not in {python}"
    return Finding(what="local model", found=found, ok=there is not None, remedy=remedy)


def _java() -> Finding:
    program = neo4j.java(inherited_environment())
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


SERVERS = (nats.NAME, postgres.NAME, arcadedb.NAME)
"""The servers of a stack with the embedded stores."""
PRODUCTION_SERVERS = (nats.NAME, postgres.NAME, neo4j.NAME, weaviate.NAME)
EVERY_SERVER = (*SERVERS, neo4j.NAME, weaviate.NAME, model.NAME)
GATEWAY = "gateway"
SERVICES = (GATEWAY, "orchestrator", "memory", "instructions", "graph", "media")
OWNERS = (GATEWAY, "orchestrator", "memory", "instructions")
"""Services with a schema in Postgres."""
Answers = Callable[[str], Awaitable[bool | None]]
"""Whether the service's process that is the part of that name answers; `None` when that cannot be told."""


def copies(service: str, replicas: int) -> list[str]:
    """The parts that run `service`: `memory`, `memory-2`, ..."""
    return [service, *(f"{service}-{number}" for number in range(2, replicas + 1))]


def service_of(part: str) -> str:
    return part.partition("-")[0]


class PortTaken(Exception):
    """The port that was asked for is somebody else's."""


@dataclass(frozen=True)
class Addresses:
    """Where everything is, for as long as this supervisor lives."""

    gateway: int
    nats: int
    arcadedb: arcadedb.Ports
    neo4j: int
    weaviate: weaviate.Ports
    model: int
    more_gateways: tuple[int, ...] = ()
    """Ports of the second gateway and those after it."""

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.gateway}"


def servers(settings: LocalSettings) -> tuple[str, ...]:
    """The servers of a stack with these settings."""
    stores = PRODUCTION_SERVERS if settings.stores is Stores.PRODUCTION else SERVERS
    return (*stores, model.NAME) if settings.model is Model.LOCAL else stores


def addresses(settings: LocalSettings) -> Addresses:
    """Free ports for everything. Raises `PortTaken`: the gateway's port was chosen by the caller and is not free."""
    if settings.port and not is_free(settings.port):
        raise PortTaken(f"port {settings.port} is in use")
    default = DEFAULT_PORT if settings.port is None and is_free(DEFAULT_PORT) else None
    gateway = settings.port or default or free_port()
    graph = arcadedb.Ports(free_port(), free_port())
    more = tuple(free_port() for _ in range(settings.replicas - 1))
    return Addresses(gateway, free_port(), graph, free_port(), weaviate.Ports.free(), free_port(), more)


class Parts:
    """Makes the programs of a stack. `settings`: which servers are others'."""

    def __init__(self, data: DataDir, settings: LocalSettings, where: Addresses) -> None:
        self._data = data
        self._settings = settings
        self._where = where
        self._graph = neo4j.NAME if settings.stores is Stores.PRODUCTION else arcadedb.NAME
        self.outside = tuple(
            name
            for name, address in (
                (nats.NAME, settings.bus_url),
                (postgres.NAME, settings.postgres_dsn),
                (self._graph, settings.graph_url),
                (weaviate.NAME, settings.weaviate_url),
            )
            if address
        )
        """Servers that are not ours to start."""

    @property
    def bus_url(self) -> str:
        return self._settings.bus_url or f"nats://{LOOPBACK}:{self._where.nats}"

    @property
    def graph_url(self) -> str:
        port = self._where.neo4j if self._graph == neo4j.NAME else self._where.arcadedb.bolt
        return self._settings.graph_url or f"bolt://{LOOPBACK}:{port}"

    def port(self, name: str) -> int | None:
        ports = self._gateways | {
            nats.NAME: self._where.nats,
            arcadedb.NAME: self._where.arcadedb.bolt,
            neo4j.NAME: self._where.neo4j,
            weaviate.NAME: self._where.weaviate.http,
            model.NAME: self._where.model,
        }
        return None if name in self.outside else ports.get(name)

    @property
    def _gateways(self) -> dict[str, int]:
        ports = (self._where.gateway, *self._where.more_gateways)
        return dict(zip(copies(GATEWAY, len(ports)), ports, strict=True))

    def server(self, name: str) -> Program:
        data, log, environment = self._data, self._data.log(name), part_environment(self._data, name, {})
        if name == nats.NAME:
            passwords = {user: password(data, user) for user in (*SERVICES, DECLARER, OPERATOR)}
            return nats.program(data.nats, self._where.nats, passwords, admission_key_file(data), log, environment)
        if name == postgres.NAME:
            # each process of a service has a pool of its own
            return postgres.program(data.postgres, log, environment, connections=60 + 40 * self._settings.replicas)
        if name == neo4j.NAME:
            home, secret = self._settings.neo4j_home or Path(), password(data, neo4j.NAME)
            return neo4j.program(home, data.neo4j, self._where.neo4j, secret, log, environment)
        if name == weaviate.NAME:
            binary, secret = self._settings.weaviate or Path(), password(data, weaviate.NAME)
            return weaviate.program(binary, data.weaviate, self._where.weaviate, secret, log, environment)
        if name == model.NAME:
            return model.program(model_python(self._settings), self._where.model, log, environment)
        passwords = {user: password(data, f"arcadedb-{user}") for user in (arcadedb.ROOT, arcadedb.READER)}
        return arcadedb.program(data.arcadedb, self._where.arcadedb, passwords, log, environment)

    def service(self, name: str, answers: Answers) -> Program:
        async def ready() -> bool | None:
            return await answers(name)

        command = [sys.executable, "-m", f"phronesis_{service_of(name)}"]
        environment = part_environment(self._data, name, self._of_service(name))
        return Program(name, command, self._data.log(name), environment, ready, stop_within=15, ready_within=45)

    def migration(self, services: Sequence[str]) -> Program:
        async def ready() -> None:
            """It is done when it has ended."""

        owners = [name for name in OWNERS if name in map(service_of, services) and _has_migrations(name)]
        command = [sys.executable, "-m", "phronesis_postgres.migrate", *owners]
        environment = part_environment(self._data, "migrate", self._migrating(owners))
        return Program("migrate", command, self._data.log("migrate"), environment, ready, ready_within=120)

    def bus_variables(self, name: str) -> dict[str, str]:
        variables = {"BUS_URL": self.bus_url, "BUS_TRUST_DIR": str(self._data.trust)}
        if nats.NAME not in self.outside:
            variables["BUS_PASSWORD_FILE"] = str(password_file(self._data, name))
        if name in SIGNERS:
            variables["BUS_SIGNING_KEY_FILE"] = str(signing_key_file(self._data, name))
        if name == DECLARER and nats.NAME not in self.outside:
            variables["BUS_SIGNING_KEY_FILE"] = str(admission_key_file(self._data))
        return variables

    def of_operator(self) -> dict[str, str]:
        variables = self.bus_variables(OPERATOR) | self._stores()
        if postgres.NAME not in self.outside:
            variables["POSTGRES_DSN"] = postgres.dsn(self._data.postgres)
        return variables

    def _of_service(self, name: str) -> dict[str, str]:
        variables = self.bus_variables(service_of(name)) | self._stores()
        if service_of(name) in OWNERS:
            variables |= self._role(service_of(name))
        if self._settings.model is Model.LOCAL:
            variables |= model.variables(service_of(name), model_python(self._settings), self._where.model)
        if name in self._gateways:
            variables |= {
                "GATEWAY_HOST": self._settings.host,
                "GATEWAY_PORT": str(self._gateways[name]),
                "GATEWAY_BOOTSTRAP_KEY_FILE": str(self._data.key),
            }
            if len(self._gateways) == 1:  # there is no other one to send requests to
                variables["GATEWAY_STOP_NOTICE"] = inherited_environment().get("GATEWAY_STOP_NOTICE", "0")
        return variables

    def _role(self, name: str) -> dict[str, str]:
        """How a service reaches its schema. The embedded server asks nobody on its socket for a password."""
        if self._settings.postgres_dsn is None:
            return {"POSTGRES_DSN": postgres.dsn(self._data.postgres, role=postgres.role_name(name))}
        address = urlsplit(self._settings.postgres_dsn.get_secret_value())
        place = f"{postgres.role_name(name)}@{address.netloc.rpartition('@')[2]}"
        return {
            "POSTGRES_DSN": urlunsplit(address._replace(netloc=place)),
            "POSTGRES_PASSWORD_FILE": str(role_password_file(self._data, name)),
        }

    def _migrating(self, owners: Sequence[str]) -> dict[str, str]:
        """How the schemas' owner, who was given from outside where the server was, reaches the database."""
        if self._settings.postgres_dsn is None:
            return {"POSTGRES_DSN": postgres.dsn(self._data.postgres)}
        for name in owners:
            role_password_file(self._data, name)
        return {"POSTGRES_ROLES_DIR": str(self._data.roles)}

    def _stores(self) -> dict[str, str]:
        variables: dict[str, str] = {}
        if self._graph not in self.outside:
            variables |= graph_variables(self._data, self._graph, self.graph_url)
        if self._settings.stores is Stores.PRODUCTION and weaviate.NAME not in self.outside:
            variables |= vector_variables(self._data, self._where.weaviate)
        return variables


def _has_migrations(service: str) -> bool:
    spec = importlib.util.find_spec(f"phronesis_{service}")
    return spec is not None and spec.origin is not None and (Path(spec.origin).parent / "migrations").is_dir()
