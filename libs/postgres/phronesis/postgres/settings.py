"""Where Postgres is."""

from __future__ import annotations

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class PostgresSettings(BaseSettings):
    """Settings with the prefix `POSTGRES_`."""

    model_config = SettingsConfigDict(env_prefix="POSTGRES_", frozen=True)

    dsn: SecretStr = SecretStr("postgresql://postgres@127.0.0.1:5432/postgres")
    """Address of the database; each service keeps to its own schema in it."""
    pool_size: int = 10
    """Connections of one service at most."""
    command_timeout: float = 10.0
    """Seconds that one statement may take."""
