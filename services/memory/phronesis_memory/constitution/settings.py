"""The settings of the searches of the constitutional graph."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class RetrievalSettings(BaseSettings):
    """Settings with the prefix `MEMORY_RETRIEVAL_`."""

    model_config = SettingsConfigDict(env_prefix="MEMORY_RETRIEVAL_", frozen=True)

    log_days: float = Field(default=30.0, gt=0)
    """Days that the log of searches and their ratings are kept."""
    log_words: bool = False
    """Whether the log keeps the words of questions; their hash alone stands in it without."""
