"""Settings of the orchestrator."""

from __future__ import annotations

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class OrchestratorSettings(BaseSettings):
    """Settings with the prefix `ORCHESTRATOR_`."""

    model_config = SettingsConfigDict(env_prefix="ORCHESTRATOR_", env_ignore_empty=True, frozen=True, populate_by_name=True)

    slots: int = 32
    """Turns that one worker runs side by side."""
    lease: float = 15.0
    """Seconds that a claim lasts without being renewed (DESIGN 4.2)."""
    idle_claims: int = 5
    """Claims in a row that added nothing to a turn's journal, after which the next one parks it."""
    expiry: float = 900.0
    """Seconds from acceptance after which a turn that has not ended fails."""
    open_turns: int = 1000
    """Turns of one tenant that may be open at once; one more is refused as busy."""
    turn_limit: float = 60.0
    """Seconds that one attempt at a turn may take (D-147)."""
    media_limit: float = 30.0
    """Seconds that reading one attachment may take (D-147)."""
    retrieval_limit: float = 3.0
    """Seconds that retrieval may take (D-147)."""
    memory_tokens: int = 2000
    """Greatest size of the retrieved context, in tokens."""
    context_tokens: int = Field(default=16_000, ge=8_000)
    """Tokens that a prompt and its answer may have together; at most what the model holds, and less is quicker and cheaper."""
    groq_api_key: SecretStr | None = Field(default=None, validation_alias="GROQ_API_KEY")
    """Key for Groq; with neither this nor `model_url`, the `extractive` reasoner answers."""
    model_url: str | None = None
    """Address of an OpenAI-compatible endpoint, or of one that speaks Groq's API when a Groq key is set."""
    model_key: SecretStr | None = None
    """Key for `model_url`."""
    model: str = "openai/gpt-oss-120b"
    """Model of the final call."""
    light_model: str = "openai/gpt-oss-20b"
    """Model of the router call."""


class CalendarSettings(BaseSettings):
    """Settings of users' calendars, with the same prefix."""

    model_config = SettingsConfigDict(env_prefix="ORCHESTRATOR_", env_ignore_empty=True, frozen=True, populate_by_name=True)

    calendar_key: SecretStr | None = Field(default=None, min_length=16)
    """Key that the passwords of users' calendars are encrypted with; without it none is kept, and who gives one is refused."""
    calendar_readers: int = Field(default=2, ge=1)
    """Processes that take users' calendars apart, side by side."""


class OutsideSettings(BaseSettings):
    """Settings of outside MCP servers, with the same prefix."""

    model_config = SettingsConfigDict(env_prefix="ORCHESTRATOR_", env_ignore_empty=True, frozen=True, populate_by_name=True)

    outside_commands: bool = False
    """Whether administrators may register commands as outside MCP servers; they run here, with the rights of this service."""
