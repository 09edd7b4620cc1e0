"""Where Postgres is."""

from __future__ import annotations

from pathlib import Path

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class PostgresSettings(BaseSettings):
    """Settings with the prefix `POSTGRES_`."""

    model_config = SettingsConfigDict(env_prefix="POSTGRES_", frozen=True)

    dsn: SecretStr = SecretStr("postgresql://postgres@127.0.0.1:5432/postgres")
    """Address of the database; each service keeps to its own schema in it."""
    password_file: Path | None = None
    """File with the password of the address's role; without one it is the address that has it, or none is needed."""
    roles_dir: Path | None = None
    """For migrating alone: a folder with `<service>.password`, which the services' roles are given. Without it their logins
    are somebody else's to set, or need no password."""
    pool_size: int = 10
    """Connections of one service at most."""
    command_timeout: float = 10.0
    """Seconds that one statement may take."""

    def password(self) -> str | None:
        return self.password_file.read_text(encoding="utf-8").strip() if self.password_file else None
