"""Settings of the orchestrator."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from .models.limits import PROFILES, Limits, ModelProfile, OptionalCall, ProfileDefaults, Purpose, call_limits

Seconds = Annotated[float, Field(gt=0, le=3_600)]
Tokens = Annotated[int, Field(ge=16, le=100_000)]
Tries = Annotated[int, Field(ge=1, le=10)]
S = TypeVar("S", bound=BaseSettings)


def with_profile(settings: S, profile: ModelProfile) -> S:
    """Settings whose limits that nobody set are those of a profile."""
    if profile is ModelProfile.HOSTED:
        return settings
    known = PROFILES[profile]
    follows = {
        "turn_limit": known.turn_limit,
        "preflight_limit": known.seconds["preflight"],
        "reflection_limit": known.seconds["reflect"],
    }
    left_out = {
        name: value
        for name, value in follows.items()
        if name in type(settings).model_fields and name not in settings.model_fields_set
    }
    return settings.model_copy(update=left_out)


class OrchestratorSettings(BaseSettings):
    """Settings with the prefix `ORCHESTRATOR_`."""

    model_config = SettingsConfigDict(env_prefix="ORCHESTRATOR_", env_ignore_empty=True, frozen=True, populate_by_name=True)

    slots: int = 32
    """Turns that one worker runs side by side."""
    task_slots: int = Field(default=8, ge=1)
    """How many of the slots background tasks may take; the others are for people's turns."""
    lease: float = 15.0
    """Seconds that a claim lasts without being renewed."""
    idle_claims: int = 5
    """Claims in a row that added nothing to a turn's journal, after which the next one parks it."""
    expiry: float = 900.0
    """Seconds from acceptance after which a turn that has not ended fails."""
    open_turns: int = 1000
    """Turns of one tenant that may be open at once; one more is refused as busy."""
    retry_first: float = Field(default=0.5, gt=0)
    """Seconds that a turn waits at most when a service or store did not answer; doubled each time until it does."""
    retry_longest: float = Field(default=15.0, gt=0)
    """Seconds that any such wait takes at most."""
    breaker_failures: int = Field(default=5, ge=1)
    """Failures in a row after which a service is not asked, and turns that wait for it are not tried."""
    breaker_rest: float = Field(default=3.0, gt=0)
    """Seconds after which one call finds out whether it answers again."""
    turn_limit: float = Field(default=60.0, gt=0)
    """Seconds that one attempt at a turn may take; with the model profile `local` 840 where it is not set."""
    media_limit: float = 30.0
    """Seconds that reading one attachment may take."""
    retrieval_limit: float = 3.0
    """Seconds that retrieval may take."""
    memory_tokens: int = 2000
    """Greatest size of the retrieved context, in tokens."""


class ModelSettings(BaseSettings):
    """Settings of the language model, with the same prefix."""

    model_config = SettingsConfigDict(env_prefix="ORCHESTRATOR_", env_ignore_empty=True, frozen=True, populate_by_name=True)

    groq_api_key: SecretStr | None = Field(default=None, validation_alias="GROQ_API_KEY")
    """Key for Groq; with neither this nor `model_url`, the `extractive` reasoner answers."""
    model_url: str | None = None
    """Address of an OpenAI-compatible endpoint, or of one that speaks Groq's API when a Groq key is set."""
    model_key: SecretStr | None = None
    """Key for `model_url`."""
    model: str = "openai/gpt-oss-120b"
    """Model of the final call, and of the tiers `sonnet` and `quality`."""
    light_model: str = "openai/gpt-oss-20b"
    """Model of the router call, and of the tiers `flash` and `haiku`."""
    agent_models: tuple[str, ...] = ()
    """Further models of the same endpoint that tenants' own agents may name, as a JSON list."""
    context_tokens: int = Field(default=16_000, ge=2_000)
    """Tokens that a prompt and its answer may have together; at most what the model holds, and less is quicker and cheaper."""
    model_profile: ModelProfile = ModelProfile.HOSTED
    """`hosted`, or `local` for a model on a machine of one's own: limits of minutes, short answers, one call at a time."""
    model_seconds: dict[Purpose, Seconds] = Field(default_factory=dict)
    """Seconds that the calls of a purpose may take with all tries, as JSON: `{"router": 20, "final": 60}`."""
    model_output_tokens: dict[Purpose, Tokens] = Field(default_factory=dict)
    """Tokens that a model may write, by purpose as JSON; never more than a quarter of the context."""
    model_tries: dict[Purpose, Tries] = Field(default_factory=dict)
    """Tries of a call, by purpose as JSON."""
    model_concurrency: int | None = Field(default=None, ge=1, le=1_000)
    """Calls that the endpoint is asked at once; 100, or 1 with the profile `local`."""
    model_optional_calls: frozenset[OptionalCall] | None = None
    """Calls that turns can do without and that are made, as a JSON list of `intent`, `preflight`, `reflect`, `summarise`,
    `learn` and `understand` (with `formulate` behind it); all of them, or `understand` alone with the profile `local`."""
    model_reserve: float | None = Field(default=None, ge=0)
    """Seconds of a turn's time that model calls leave for the rules to answer in; 5, or 30 with the profile `local`."""
    model_probe_lifetime: float = Field(default=3_600.0, gt=0)
    """Seconds after which it is found out anew what an endpoint can do."""

    @property
    def defaults(self) -> ProfileDefaults:
        """What the profile sets."""
        return PROFILES[self.model_profile]

    @property
    def limits(self) -> Limits:
        """The limits of every purpose."""
        return call_limits(
            self.model_profile,
            self.light_model,
            self.model,
            self.context_tokens,
            self.model_seconds,
            self.model_output_tokens,
            self.model_tries,
        )

    @property
    def calls_at_once(self) -> int:
        """Calls that the endpoint is asked at once."""
        return self.defaults.concurrency if self.model_concurrency is None else self.model_concurrency

    @property
    def optional_calls(self) -> frozenset[OptionalCall]:
        """Optional calls that are made."""
        return self.defaults.optional if self.model_optional_calls is None else self.model_optional_calls

    @property
    def rules_reserve(self) -> float:
        """Seconds of a turn's time that are left for the rules."""
        return self.defaults.reserve if self.model_reserve is None else self.model_reserve


class LearningSettings(BaseSettings):
    """Settings of learning from ended turns, with the same prefix."""

    model_config = SettingsConfigDict(env_prefix="ORCHESTRATOR_", env_ignore_empty=True, frozen=True, populate_by_name=True)

    learn: bool = True
    """Whether ended turns are learnt from."""
    learn_batch: int = Field(default=8, ge=1, le=32)
    """Turns of a user that one call of a model takes."""
    learn_after: float = Field(default=10.0, ge=0)
    """Seconds after which a batch that is not full is taken all the same."""


class CalendarSettings(BaseSettings):
    """Settings of users' calendars, with the same prefix."""

    model_config = SettingsConfigDict(env_prefix="ORCHESTRATOR_", env_ignore_empty=True, frozen=True, populate_by_name=True)

    calendar_key: SecretStr | None = Field(default=None, min_length=16)
    """Key that the passwords of users' calendars are encrypted with; without it none is kept, and who gives one is refused."""
    calendar_readers: int = Field(default=2, ge=1)
    """Processes that take users' calendars apart, side by side."""


class CognitionSettings(BaseSettings):
    """Settings of the stages around a turn's work, with the same prefix."""

    model_config = SettingsConfigDict(env_prefix="ORCHESTRATOR_", env_ignore_empty=True, frozen=True, populate_by_name=True)

    preflight_limit: float = Field(default=3.0, gt=0)
    """Seconds that looking ahead may add to a turn of a deep tier; with the model profile `local` 180 where it is not set."""
    task_look_ahead: bool = False
    """Whether a background task of an agent with the stage `preflight` looks ahead before it is planned: one more call of the
    light model, which has not been shown to pay. Turns of a deep tier look ahead whatever stands here."""
    recall_limit: float = Field(default=0.25, gt=0)
    """Seconds that memory has to tell of earlier turns, all its parts side by side."""
    reflection_limit: float = Field(default=8.0, gt=0)
    """Seconds that looking back at a text for others may take; with the model profile `local` 180 where it is not set."""
    plan_tokens: int = Field(default=1_500, ge=100)
    """Tokens of what was thought about a message that a prompt may hold."""
    strategies: int = Field(default=2, ge=0, le=10)
    """Approaches of earlier tasks that a task or a turn is shown at most; 0 for none, which are then not asked for."""
    strategy_holdout: float = Field(default=0.2, ge=0, le=1)
    """Share of goals, 0 to 1, whose tasks do without the approaches that were found, to measure what these are worth."""
    strong_context: int = Field(default=500, ge=1)
    """Characters of recalled text from which on the context is called strong."""
    sentence_openers: bool = True
    """Whether the first word of a sentence counts as a name where past turns are weighed."""


class OutsideSettings(BaseSettings):
    """Settings of outside MCP servers, with the same prefix."""

    model_config = SettingsConfigDict(env_prefix="ORCHESTRATOR_", env_ignore_empty=True, frozen=True, populate_by_name=True)

    outside_commands: bool = False
    """Whether administrators may register commands as outside MCP servers; they run here, with the rights of this service."""
