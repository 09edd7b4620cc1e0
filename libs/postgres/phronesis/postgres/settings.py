"""Where Postgres is."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class PostgresSettings(BaseSettings):
    """Settings with the prefix `POSTGRES_`."""

    model_config = SettingsConfigDict(env_prefix="POSTGRES_", frozen=True)

    dsn: SecretStr = SecretStr("postgresql://postgres@127.0.0.1:5432/postgres")
    """Address of the database; each service keeps to its own schema in it."""
    password_file: Path | None = None
    """File with the password of that address's user, which then stands in no variable."""
    pool_size: int = 10
    """Connections of one service at most."""
    command_timeout: float = 10.0
    """Seconds that one statement may take."""

    def address(self) -> str:
        """The address with the password: that of the file where one is set, else what stands in the address itself.

        Raises:
            OSError: the file cannot be read.
        """
        dsn = self.dsn.get_secret_value()
        if self.password_file is None:
            return dsn
        parts = urlsplit(dsn)
        user, _, hosts = parts.netloc.rpartition("@")
        password = quote(self.password_file.read_text(encoding="utf-8").strip(), safe="")
        return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}:{password}@{hosts}"))
