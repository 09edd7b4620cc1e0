"""Where the stores are: those of a local stack, or those that the environment names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from pydantic import SecretStr
from pydantic_settings import BaseSettings

from phronesis_bus import BusSettings
from phronesis_graph.settings import GraphSettings
from phronesis_local.layout import DataDir
from phronesis_local.record import read
from phronesis_local.settings import LocalSettings
from phronesis_memory.settings import WeaviateSettings
from phronesis_postgres import PostgresSettings
from phronesis_postgres.roles import role_of

from .errors import Refused

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
            _of(PostgresSettings, variables),
            _of(GraphSettings, variables),
            _of(BusSettings, variables),
            _of(WeaviateSettings, variables),
        )


def local(data: Path | None) -> DataDir | None:
    """The data directory that is meant, or `None` where the environment names the stores."""
    settings = LocalSettings()
    if data is None and settings.postgres_dsn is not None:
        return None
    return DataDir(data or settings.data)


def running(data: DataDir | None) -> Places:
    """The places of the stack on `data`, or of a deployment where that is `None`.

    Raises:
        Refused: no stack runs there.
    """
    if data is None:
        return Places.of("the stores that the environment names", {})
    record = read(data)
    if record is None or record.supervisor.process() is None or record.state != "ready":
        raise Refused(f"no stack runs on {data.root}: start it with `phronesis up --data {data.root}`")
    return of_stack(data)


def of_stack(data: DataDir) -> Places:
    """The places of a stack that runs on `data`."""
    try:
        return Places.of(f"the stack on {data.root}", json.loads(data.operator.read_text()))
    except (OSError, ValueError) as error:
        raise Refused(f"the stack on {data.root} was started by an older version: start it again") from error


def _of(settings: type[S], variables: Mapping[str, str]) -> S:
    prefix = settings.model_config.get("env_prefix", "")
    given: dict[str, Any] = {
        name: variables[key] for name in settings.model_fields if (key := f"{prefix}{name}".upper()) in variables
    }
    return settings(**given)
