"""Where the stores are: those of a local stack, started for it, or those that the environment names."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from pydantic import SecretStr
from pydantic_settings import BaseSettings

from phronesis_bus import BusSettings
from phronesis_graph.settings import GraphSettings
from phronesis_local.layout import AlreadyRunning, DataDir, StackRecord, read_record
from phronesis_local.parts import StoresRefused, check_stores, servers
from phronesis_local.processes import ChildFailed
from phronesis_local.settings import LocalSettings
from phronesis_local.stack import Stack, end_leftovers
from phronesis_memory.settings import WeaviateSettings
from phronesis_postgres import PostgresSettings
from phronesis_postgres.roles import role_of

from .reporting import Failed, Refused

S = TypeVar("S", bound=BaseSettings)


@dataclass(frozen=True)
class Places:
    """The addresses of all stores, and as whom to go there."""

    name: str
    """What a person calls them."""
    postgres: PostgresSettings
    graph: GraphSettings
    bus: BusSettings
    weaviate: WeaviateSettings

    @property
    def memory(self) -> PostgresSettings:
        """The database as the memory service's own role, whom the tables' policies bind."""
        address = urlsplit(self.postgres.dsn.get_secret_value())
        query = "&".join(part for part in (address.query, f"role={role_of('memory')}") if part)
        return self.postgres.model_copy(update={"dsn": SecretStr(urlunsplit(address._replace(query=query)))})

    @classmethod
    def of(cls, name: str, variables: Mapping[str, str]) -> Places:
        """The places in `variables`; what they leave out is in the environment."""
        return cls(
            name,
            _with_variables(PostgresSettings, variables),
            _with_variables(GraphSettings, variables),
            _with_variables(BusSettings, variables),
            _with_variables(WeaviateSettings, variables),
        )


def local_data(data: Path | None) -> DataDir | None:
    """The data directory that is meant, or `None` where the environment names the stores."""
    settings = LocalSettings()
    if data is None and settings.postgres_dsn is not None:
        return None
    return DataDir(data or settings.data)


def find_places(data: DataDir | None) -> Places:
    """The places of the stack on `data`, or of a deployment where that is `None`. Raises `Refused`: no stack runs there."""
    if data is None:
        return Places.of("the stores that the environment names", {})
    record = read_record(data)
    if record is None or record.supervisor.process() is None or record.state != "ready":
        raise Refused(f"no stack runs on {data.root}: start it with `phronesis up --data {data.root}`")
    return stack_places(data)


def stack_places(data: DataDir) -> Places:
    """The places of a stack that runs on `data`."""
    try:
        return Places.of(f"the stack on {data.root}", json.loads(data.operator.read_text()))
    except (OSError, ValueError) as error:
        raise Refused(f"the stack on {data.root} was started by an older version: start it again") from error


def _with_variables(settings: type[S], variables: Mapping[str, str]) -> S:
    prefix = settings.model_config.get("env_prefix", "")
    given: dict[str, Any] = {
        name: variables[key] for name in settings.model_fields if (key := f"{prefix}{name}".upper()) in variables
    }
    return settings(**given)


@asynccontextmanager
async def open_idle_stores(data: DataDir | None) -> AsyncIterator[Places]:
    """Stores on which no service runs: servers started for it on a data directory, or a deployment's, which run.

    Raises:
        Refused: a stack runs on the directory.
        Failed: a server does not start.
    """
    if data is None:
        yield find_places(None)
        return
    data.create()
    try:
        with data.locked():
            check_stores(data, LocalSettings())
            end_leftovers(data)
            async with _servers(data) as places:
                yield places
    except StoresRefused as error:
        raise Refused(str(error)) from error
    except AlreadyRunning as error:
        raise Refused(f"a stack runs on {data.root}: stop it with `phronesis down --data {data.root}`") from error


@asynccontextmanager
async def _servers(data: DataDir) -> AsyncIterator[Places]:
    settings = LocalSettings().model_copy(update={"data": data.root, "port": 0})
    stack = Stack(data, settings, _ignore_progress, servers(settings))
    try:
        await stack.start()
        yield stack_places(data)
    except ChildFailed as error:
        raise Failed(f"a server of the stack did not start: {error}") from error
    finally:
        await stack.stop()


def _ignore_progress(record: StackRecord) -> None:
    """Nobody watches the servers come up: what is done with them is told."""
