"""Where the SDK finds its stack when nothing is stated."""

from __future__ import annotations

from pathlib import Path

from pydantic_settings import BaseSettings, SettingsConfigDict


class ClientSettings(BaseSettings):
    """Settings of the SDK, from the environment."""

    model_config = SettingsConfigDict(env_prefix="PHRONESIS_", frozen=True, env_ignore_empty=True, extra="ignore")

    url: str | None = None
    """Address of a gateway (`PHRONESIS_URL`)."""
    key: str | None = None
    """A key of that gateway (`PHRONESIS_KEY`)."""
    data: Path | None = None
    """Data directory of a local stack (`PHRONESIS_DATA`); `~/.phronesis` when absent."""
