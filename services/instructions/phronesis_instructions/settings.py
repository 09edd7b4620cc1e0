"""Settings of the instructions service."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class InstructionsSettings(BaseSettings):
    """Settings with the prefix `INSTRUCTIONS_`."""

    model_config = SettingsConfigDict(env_prefix="INSTRUCTIONS_", frozen=True)

    cache_seconds: float = Field(default=60.0, ge=0)
    """Seconds that texts are served from memory; news of a release drops them at once, and after these they are read anew."""
    retry_seconds: float = Field(default=1.0, gt=0)
    """Seconds between tries to load the content while the database is away."""
