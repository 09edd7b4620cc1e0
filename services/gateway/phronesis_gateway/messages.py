"""What callers send, as they may spell it: camelCase or snake_case (D-C08)."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from phronesis_bus import LONGEST_DAYS
from phronesis_contracts import WRITTEN_AS_NUMBER, Role, Token
from phronesis_contracts.orchestrator import MAX_ATTACHMENTS, MAX_TEXT, TurnStatus


class Given(BaseModel):
    """Base of every body that a caller sends. A field that is not known is a fault, not a wish that nobody hears."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


def _only(one: str, other: str) -> dict[str, Any]:
    return {"required": [one], "properties": {one: {"type": "string"}, other: {"type": "null"}}}


class MediaGiven(Given):
    """One medium of a message: an upload by its id, or a public address to fetch."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [_only("mediaId", "url"), _only("url", "mediaId")]})

    media_id: str | None = Field(default=None, min_length=1, max_length=64)
    url: str | None = Field(default=None, min_length=1, max_length=2_048, json_schema_extra={"format": "public-address"})

    @model_validator(mode="after")
    def _one(self) -> MediaGiven:
        if (self.media_id is None) == (self.url is None):
            raise ValueError("give either mediaId or url")
        return self


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


_TEXT: dict[str, Any] = {
    "required": ["currentMessageText"],
    "properties": {"currentMessageText": {"type": "string", "format": "not-blank"}},
}
_MEDIA: dict[str, Any] = {"required": ["currentMessageMedia"], "properties": {"currentMessageMedia": {"minItems": 1}}}


class MessageGiven(Given):
    """A message to an agent (D-014)."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [_TEXT, _MEDIA]})

    conversation_id: str | None = Field(default=None, min_length=1, max_length=64)
    current_message_text: str | None = Field(default=None, max_length=MAX_TEXT)
    current_message_media: Annotated[tuple[MediaGiven, ...], BeforeValidator(_listed), Field(max_length=MAX_ATTACHMENTS)] = ()
    """A single object is taken as a list of one (D-C02)."""
    agent: str = Field(default="dialogue", min_length=1, max_length=64, json_schema_extra={"format": "agent"})

    @property
    def empty(self) -> bool:
        """Whether it has neither text nor media (D-015)."""
        return not (self.current_message_text or "").strip() and not self.current_message_media

    @property
    def fingerprint(self) -> str:
        """Hash of the message as it was sent, before addresses became ids of media."""
        canonical = json.dumps(self.model_dump(mode="json", exclude_unset=True), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


class KeyGiven(Given):
    """A key to make. Its tenant is the maker's own where none is stated."""

    tenant: Token | None = None
    user: Token
    role: Role = Role.NOOR
    department: str | None = Field(default=None, min_length=1, max_length=200)
    ministry: str | None = Field(default=None, min_length=1, max_length=200)
    scopes: tuple[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_:.-]{0,63}$")], ...] = Field(default=(), max_length=16)


class BusKeyGiven(Given):
    """A key of the bus to make, for an outside system. It acts for one user, and its role is the whole of its rights."""

    tenant: Token
    user: Token
    role: Role = Role.NOOR
    department: str | None = Field(default=None, min_length=1, max_length=200)
    ministry: str | None = Field(default=None, min_length=1, max_length=200)
    days: int = Field(default=90, ge=1, le=LONGEST_DAYS)
    """How long it is good."""


class ProfileGiven(Given):
    """What shall be known of the caller."""

    profile: dict[str, Any]


class ReplayGiven(Given):
    """How to run a turn again."""

    with_instructions: Annotated[int, Field(ge=0, le=2**31 - 1), WRITTEN_AS_NUMBER] | None = None
    """Number of the tenant's release to run it with; 0 is the platform's own texts, and nothing the texts it had."""


class AcceptedTurn(BaseModel):
    """A turn whose row is committed: it will end exactly once."""

    turn_id: str
    conversation_id: str
    status: TurnStatus
