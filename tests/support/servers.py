"""Real servers for the tests: the embedded ones, each on a free port with its files in a temporary folder."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg
from pydantic import SecretStr

from phronesis_bus import BusSettings, connect
from phronesis_bus.declare import USER as DECLARE
from phronesis_bus.declare import declare
from phronesis_bus.recording import USER as OPERATOR
from phronesis_contracts.service import SERVICES
from phronesis_graph.settings import Dialect
from phronesis_local import arcadedb, nats, postgres
from phronesis_local.keys import SIGNERS, admission_key_file, password, password_file, signing_key_file
from phronesis_local.layout import DataDir, inherited_environment
from phronesis_local.loopback import LOOPBACK, free_port
from phronesis_local.processes import Child, Program
from phronesis_memory.settings import WeaviateSettings
from phronesis_postgres import PostgresSettings
from phronesis_postgres.migrate import migrate
from phronesis_postgres.roles import role_of

_MIGRATING = 7_420_912
_FORGETFUL = [part for name in ("fsync", "full_page_writes") for part in ("-c", f"{name}=off")]


class NatsServer:
    """A NATS server with the platform's users and permissions, and its streams declared."""

    def __init__(self, folder: Path) -> None:
        self._data = DataDir(folder)
        self._data.create()
        self.port = free_port()
        self.url = f"nats://{LOOPBACK}:{self.port}"
        passwords = {name: password(self._data, name) for name in (*SERVICES, DECLARE, OPERATOR)}
        for name in SIGNERS:
            signing_key_file(self._data, name)
        admission, log = admission_key_file(self._data), self._data.log("nats")
        self._child = Child(nats.program(self._data.nats, self.port, passwords, admission, log, inherited_environment()))

    def settings(self, name: str) -> BusSettings:
        """How the service `name` connects; messages come again quickly, so that tests need not wait."""
        keys = {DECLARE: admission_key_file} | {signer: partial(signing_key_file, service=signer) for signer in SIGNERS}
        return BusSettings(
            url=self.url,
            password_file=password_file(self._data, name),
            signing_key_file=keys[name](self._data) if name in keys else None,
            trust_dir=self._data.trust,
            redelivery_delay=0.05,
            redelivery_limit=4,
            ack_wait=3,
        )

    async def start(self) -> None:
        """Start it on its port and its store, and declare the streams."""
        await self._child.start()
        await self._child.wait_ready()
        await self.declare()

    async def declare(self) -> None:
        """Declare every stream and consumer that is missing."""
        async with connect(DECLARE, self.settings(DECLARE)) as bus:
            await declare(bus)

    async def kill(self) -> None:
        """End it at once."""
        self._child.kill()

    async def stop(self) -> None:
        """Stop it in order."""
        await self._child.stop()


class OwnServer:
    """A server that is a child of the test."""

    _child: Child

    @property
    def pid(self) -> int | None:
        """Its process id while it runs."""
        return self._child.pid

    async def start(self) -> None:
        """Start it on its own address and its data, and return when it answers."""
        await self._child.start()
        await self._child.wait_ready()

    async def kill(self) -> None:
        """End it at once."""
        self._child.kill()

    async def stop(self) -> None:
        """Stop it in order."""
        await self._child.stop()


class PostgresServer(OwnServer):
    """A Postgres with pgvector.

    Args:
        folder: its data, its log and its socket. Who knows the folder reaches the server, whichever process started it.
        connections: sessions at most.
        outlives: whether its data has to outlive a crash. Without that, a test's own database is made in a tenth of the time.
    """

    def __init__(self, folder: Path, connections: int = 100, *, outlives: bool = True) -> None:
        self._folder = folder
        run = postgres.program(folder, folder / "log", inherited_environment(), connections)
        self._child = Child(run if outlives else replace(run, command=[*run.command, *_FORGETFUL]))
        self.dsn = self.dsn_of("postgres")
        self._templates: set[str] = set()

    def dsn_of(self, database: str, role: str = "postgres") -> str:
        """Address of one of its databases, for a role; by default for who may do all."""
        return postgres.dsn(self._folder, database, role)

    def owner(self, where: PostgresSettings) -> PostgresSettings:
        """The same database for who may do all, whatever the tables' policies say."""
        database = urlsplit(where.dsn.get_secret_value()).path.removeprefix("/")
        return PostgresSettings(dsn=SecretStr(self.dsn_of(database)))

    @asynccontextmanager
    async def session(self, where: PostgresSettings, schema: str = "public") -> AsyncIterator[asyncpg.Connection]:
        """A session of the owner on the same database, with the tables of `schema` at hand."""
        settings = {"search_path": f"{schema},public"}
        connection = await asyncpg.connect(self.owner(where).dsn.get_secret_value(), server_settings=settings)
        try:
            yield connection
        finally:
            await connection.close()

    @asynccontextmanager
    async def fresh_schema(self, service: str, *others: str) -> AsyncIterator[PostgresSettings]:
        """A database of its own with the migrated schemas of services, as the first one's role reaches it, for a block."""
        name = f"test_{uuid4().hex}"
        template = await self._template(service, *others)
        # A copy of a database does not have the privileges on it.
        await self._execute(
            f'CREATE DATABASE "{name}" TEMPLATE "{template}"', f'REVOKE CREATE, TEMPORARY ON DATABASE "{name}" FROM PUBLIC'
        )
        try:
            yield PostgresSettings(dsn=SecretStr(self.dsn_of(name, role_of(service))))
        finally:
            await self._execute(f'DROP DATABASE "{name}" WITH (FORCE)')

    async def _template(self, *services: str) -> str:
        name = "_".join(("template", *services))
        if name in self._templates:
            return name
        connection = await asyncpg.connect(self.dsn)
        try:
            # One at a time, of all processes that share the server; the end of the session lets go of it.
            await connection.execute("SELECT pg_advisory_lock($1)", _MIGRATING)
            if not await connection.fetchval("SELECT true FROM pg_database WHERE datname = $1", name):
                await connection.execute(f'DROP DATABASE IF EXISTS "{name}_new"')
                await connection.execute(f'CREATE DATABASE "{name}_new"')
                fresh = PostgresSettings(dsn=SecretStr(self.dsn_of(f"{name}_new")))
                await asyncio.to_thread(migrate, fresh, list(services))
                await connection.execute(f'ALTER DATABASE "{name}_new" RENAME TO "{name}"')
        finally:
            await connection.close()
        self._templates.add(name)
        return name

    async def _execute(self, *statements: str) -> None:
        connection = await asyncpg.connect(self.dsn)
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()


@dataclass(frozen=True)
class Login:
    """A user of the graph store."""

    user: str
    password: str


class VectorServer(Protocol):
    """A Weaviate, whoever runs it."""

    settings: WeaviateSettings
    """How the memory service reaches it."""

    async def start(self) -> None:
        """Return when it answers."""
        ...

    async def kill(self) -> None:
        """End it at once; its data stays."""
        ...

    async def stop(self) -> None:
        """Stop it in order."""
        ...


class GraphServer(Protocol):
    """A graph store of the tests, whichever it is."""

    url: str
    """Its Bolt address."""
    port: int
    """Its Bolt port on the loopback interface."""
    database: str
    dialect: Dialect
    root: Login
    """A user that may do all."""
    reader: Login | None
    """A user that may only read, where the store knows such users."""

    async def start(self) -> None:
        """Start it on its ports and its data, and return when it answers."""

    async def kill(self) -> None:
        """End it at once."""

    async def stop(self) -> None:
        """Stop it in order."""


class ArcadeServer(OwnServer):
    """An ArcadeDB that speaks Bolt, with a user that may do all and one that may only read records.

    Args:
        folder: its configuration, its databases and its log.
        databases: the databases that it has; the one that a stack uses by default.
    """

    database = arcadedb.DATABASE
    dialect = Dialect.ARCADEDB

    def __init__(self, folder: Path, databases: Sequence[str] = (arcadedb.DATABASE,)) -> None:
        self.ports = arcadedb.Ports(bolt=free_port(), http=free_port())
        self.port = self.ports.bolt
        self.url = f"bolt://{LOOPBACK}:{self.port}"
        self.root = Login(arcadedb.ROOT, secrets.token_hex(8))
        reader = Login(arcadedb.READER, secrets.token_hex(8))
        self.reader: Login | None = reader
        passwords = {login.user: login.password for login in (self.root, reader)}
        run = arcadedb.program(folder, self.ports, passwords, folder / "log.txt", inherited_environment())
        self._child = Child(_with_databases(run, folder, databases))


def _with_databases(run: Program, folder: Path, databases: Sequence[str]) -> Program:
    """The same server with several databases, of which the user that may only read reads each."""
    only, all_of_them = f"{arcadedb.DATABASE}[{arcadedb.ROOT}]", ";".join(f"{name}[{arcadedb.ROOT}]" for name in databases)

    async def prepare() -> None:
        await run.prepare()
        users = folder / "config" / "server-users.jsonl"
        users.write_text(users.read_text().replace(f'{{"{arcadedb.DATABASE}":', '{"*":'))

    if list(databases) == [arcadedb.DATABASE]:
        return run
    return replace(run, command=[part.replace(only, all_of_them) for part in run.command], prepare=prepare)


class SharedArcade:
    """A worker's own database of the ArcadeDB that all workers of a run share; who started it stops it.

    Args:
        told: how the server is reached, as the run's keeper says.
        worker: the number of the worker.
    """

    dialect = Dialect.ARCADEDB

    def __init__(self, told: dict[str, Any], worker: int) -> None:
        self.port: int = told["bolt"]
        self.url = f"bolt://{LOOPBACK}:{self.port}"
        self.database: str = told["databases"][worker]
        root, reader = (Login(*login) for login in told["logins"])
        self.root = root
        self.reader: Login | None = reader

    async def start(self) -> None:
        """It runs."""

    async def kill(self) -> None:
        """Refuse: other workers use it too."""
        raise RuntimeError("this ArcadeDB is all workers'; take `production.own_graph_server`")

    async def stop(self) -> None:
        """Leave it as it is."""
