"""The settings of experience."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

_UNRELATED = 0.6
"""The cosine below which goals are taken for unrelated where the model states no line of its own (V-133)."""


class ExperienceSettings(BaseSettings):
    """Settings with the prefix `EXPERIENCE_`."""

    model_config = SettingsConfigDict(env_prefix="EXPERIENCE_", frozen=True)

    similarity_floor: float | None = Field(default=None, ge=-1, le=1)
    """Cosine below which a strategy's goal is unrelated (V-133); by default the model's own line (D-079), else 0.6."""
    query_seconds: float = Field(default=3.0, gt=0)
    """Seconds that one `memory_query` may take before it says that the memory is unavailable."""

    def floor(self, of_model: float | None) -> float:
        """The cosine below which a strategy's goal is unrelated.

        Args:
            of_model: the model's own line, if it has one.
        """
        if self.similarity_floor is not None:
            return self.similarity_floor
        return _UNRELATED if of_model is None else of_model
