"""Settings of the instructions service."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class InstructionsSettings(BaseSettings):
    """Settings with the prefix `INSTRUCTIONS_`."""

    model_config = SettingsConfigDict(env_prefix="INSTRUCTIONS_", frozen=True)

    cache_seconds: float = Field(default=5.0, ge=0)
    """Seconds that a profile is served from memory; a release by another copy is seen after them at the latest."""
    retry_seconds: float = Field(default=1.0, gt=0)
    """Seconds between tries to load the content while the database is away."""
