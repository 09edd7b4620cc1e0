"""Where the graph store is."""

from __future__ import annotations

from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


class Dialect(StrEnum):
    """Which store answers; both take the same Cypher, and differ in how their schema is declared."""

    ARCADEDB = "arcadedb"
    NEO4J = "neo4j"


class GraphSettings(BaseSettings):
    """Settings with the prefix `GRAPH_`. Files, not variables, hold what is secret."""

    model_config = SettingsConfigDict(env_prefix="GRAPH_", frozen=True)

    url: str = "bolt://127.0.0.1:7687"
    """Bolt address of the store: `bolt+s://` or `neo4j+s://` but on this machine, or by a name without a dot."""
    user: str = "root"
    """User that writes."""
    password_file: Path | None = None
    """File with that user's password; without one the store is used without a login."""
    read_user: str | None = None
    """User for questions, who should have no right to write; the writing user by default."""
    read_password_file: Path | None = None
    """File with the reading user's password."""
    database: str = "twin"
    """Database on the store."""
    dialect: Dialect = Dialect.ARCADEDB
    """`arcadedb` or `neo4j`."""
    read_timeout: float = 5.0
    """Seconds that one question to the store may take."""
    write_timeout: float = 25.0
    """Seconds that one write may take, all its tries together."""
    query_timeout: float = 10.0
    """Seconds that a statement of a caller may take."""
    pool_size: int = 20
    """Connections at most, for each of the two users."""

    @model_validator(mode="after")
    def _reader_has_password(self) -> GraphSettings:
        if (self.read_user is None) != (self.read_password_file is None):
            raise ValueError("GRAPH_READ_USER and GRAPH_READ_PASSWORD_FILE go together")
        return self

    @model_validator(mode="after")
    def _in_the_clear_at_home_alone(self) -> GraphSettings:
        place = urlsplit(self.url)
        if place.scheme in ("bolt", "neo4j") and not _near(place.hostname or ""):
            raise ValueError("GRAPH_URL reaches another network in the clear: use bolt+s:// or neo4j+s://")
        return self

    def login(self) -> tuple[str, SecretStr] | None:
        """User and password for writes. Raises `ValueError`: the password is none."""
        return _login(self.user, self.password_file)

    def read_login(self) -> tuple[str, SecretStr] | None:
        """User and password for questions; `None` where no reading user is set."""
        return _login(self.read_user, self.read_password_file) if self.read_user else None


def _near(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return "." not in host  # a name of a container network, or of a cluster's own namespace


def _login(user: str, file: Path | None) -> tuple[str, SecretStr] | None:
    if file is None:
        return None
    password = file.read_text(encoding="utf-8").strip()
    if password in ("", user, "neo4j"):
        raise ValueError(f"the password of {user} is empty, or the one that everybody knows")
    return user, SecretStr(password)
