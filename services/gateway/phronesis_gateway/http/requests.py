"""What callers send: JSON without its loose ends, and bodies in camelCase or snake_case."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Annotated, Any, NoReturn, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    StrictBool,
    model_validator,
)
from pydantic.alias_generators import to_camel

from phronesis_bus import LONGEST_DAYS
from phronesis_contracts import WRITTEN_AS_NUMBER, BadRequest, Role, Token
from phronesis_contracts.orchestrator import MAX_ATTACHMENTS, MAX_REMARK, MAX_TEXT, TurnStatus
from phronesis_contracts.principal import Agents, default_agents, translate_old_role

MAX_DEPTH = 32
"""Arrays and objects inside each other."""
_INT64 = 2**63


def parse_json(data: bytes) -> Any:
    """The value in `data`.

    Raises:
        BadRequest: it is no UTF-8 or no JSON; an object has a key twice; a number is NaN, infinite or beyond 64 bits; a
            text holds NUL or half a surrogate pair; it is nested deeper than `MAX_DEPTH`. The detail never quotes it.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRequest(f"the body is not UTF-8 at byte {error.start}") from error
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique_members,
            parse_constant=_refuse_constant,
            parse_float=_finite_number,
            parse_int=_int64,
        )
    except json.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON at character {error.pos}") from error
    except RecursionError as error:
        raise _too_deep() from error
    # Only escapes can bring in what the decoder did not see, and only brackets depth: most bodies need no walk.
    escapes = "\\u" in text
    if escapes or text.count("[") + text.count("{") > MAX_DEPTH:
        _check_values(value, texts=escapes)
    return value


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise BadRequest("an object of the body has a key twice")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise BadRequest("a number of the body is not finite")


def _finite_number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise BadRequest("a number of the body is not finite")
    return number


def _int64(text: str) -> int:
    if len(text) > 20 or not -_INT64 <= (number := int(text)) < _INT64:
        raise BadRequest("a number of the body is beyond 64 bits")
    return number


def _check_values(value: Any, *, texts: bool) -> None:
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH + 1):
        inner: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                if texts:
                    for key in one:
                        _check_text(key)
                inner.extend(one.values())
            elif isinstance(one, list):
                inner.extend(one)
            elif texts and isinstance(one, str):
                _check_text(one)
        if not inner:
            return
        level = inner
    raise _too_deep()


def _check_text(text: str) -> None:
    if "\x00" in text:
        raise BadRequest("a text of the body holds NUL")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadRequest("a text of the body holds half a surrogate pair") from error


def _too_deep() -> BadRequest:
    return BadRequest(f"the body is nested deeper than {MAX_DEPTH}")


class Given(BaseModel):
    """Base of every body that a caller sends. A field that is not known is a fault, not a wish that nobody hears."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


def only_one_of(one: str, other: str, kind: str = "string") -> dict[str, Any]:
    """The schema of a body that states the first of two fields, of this type, and not the other."""
    return {"required": [one], "properties": {one: {"type": kind}, other: {"type": "null"}}}


def require_field(name: str, format: str | None = None) -> dict[str, Any]:
    """The schema of a body that states a field, and not as null. `format`: of the text in it."""
    form = {"type": "string", "format": format} if format else {"not": {"type": "null"}}
    return {"required": [name], "properties": {name: form}}


class MediaGiven(Given):
    """One medium of a message: an upload by its id, or a public address to fetch."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [only_one_of("mediaId", "url"), only_one_of("url", "mediaId")]})

    media_id: str | None = Field(default=None, min_length=1, max_length=64)
    """Id of an upload, as `/api/v1/media` gave it."""
    url: str | None = Field(default=None, min_length=1, max_length=2_048, json_schema_extra={"format": "public-address"})
    """A public address to fetch the file from."""

    @model_validator(mode="after")
    def _one(self) -> MediaGiven:
        if (self.media_id is None) == (self.url is None):
            raise ValueError("give either mediaId or url")
        return self


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


_TEXT: dict[str, Any] = {
    "required": ["currentMessageText"],
    "properties": {"currentMessageText": {"type": "string", "format": "not-blank"}},
}
_MEDIA: dict[str, Any] = {"required": ["currentMessageMedia"], "properties": {"currentMessageMedia": {"minItems": 1}}}


class MessageGiven(Given):
    """A message to an agent."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [_TEXT, _MEDIA]})

    conversation_id: str | None = Field(default=None, min_length=1, max_length=64)
    """The conversation to go on with; a new one is begun without it."""
    current_message_text: str | None = Field(default=None, max_length=MAX_TEXT)
    """What to say, up to 100,000 characters; may be left out where media are sent."""
    current_message_media: Annotated[tuple[MediaGiven, ...], BeforeValidator(_as_list), Field(max_length=MAX_ATTACHMENTS)] = ()
    """Files to look at, 16 at most; a single object is taken as a list of one."""
    agent: str = Field(default="dialogue", min_length=1, max_length=64, json_schema_extra={"format": "agent"})
    """The agent to say it to, one of those that `/api/v1/agents` lists."""

    @property
    def empty(self) -> bool:
        return not (self.current_message_text or "").strip() and not self.current_message_media

    @property
    def fingerprint(self) -> str:
        """Hash of the message as it was sent, before addresses became ids of media."""
        canonical = json.dumps(self.model_dump(mode="json", exclude_unset=True), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


class _KeyRights(Given):
    """Hears a role of the version before, too: one word for a member and the agent that it may act as."""

    _old_role: str | None = PrivateAttr(default=None)

    @model_validator(mode="wrap")
    @classmethod
    def _translate(cls, stated: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        translated = translate_old_role(stated)
        made = read(translated)
        if translated is not stated:
            made._old_role = str(stated["role"])
        return made

    @property
    def deprecation(self) -> str | None:
        """What to say to whoever used a role of the version before."""
        if self._old_role is None:
            return None
        return f"role {self._old_role} is deprecated; use role member with agents [{self._old_role}]"


ToolGiven = Annotated[str, Field(min_length=1, max_length=64, json_schema_extra={"format": "tool-name"})]
MAX_TOOLS = 32


class KeyGiven(_KeyRights):
    """A key to make. Its tenant is the maker's own where none is stated."""

    tenant: Token | None = None
    """The tenant whose data it opens; the maker's own where it is left out."""
    user: Token
    """The user whom its requests act for."""
    role: Role = Role.MEMBER
    """What its requests may do: `owner`, `admin`, `member` or `reader`."""
    agents: Agents = Field(default_factory=default_agents)
    """Agents that its requests may act as; `noor` where it is left out. An owner and an administrator need none."""
    department: str | None = Field(default=None, min_length=1, max_length=200)
    """The user's department, whose shared memory it opens."""
    ministry: str | None = Field(default=None, min_length=1, max_length=200)
    """The user's ministry, whose shared memory it opens."""
    scopes: tuple[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_:.-]{0,63}$")], ...] = Field(default=(), max_length=16)
    """Up to 16: `operator` and `act_for_users` give more than the role; `phronesis:read` and `phronesis:write` narrow the key
    to what they name."""
    tools: Annotated[tuple[ToolGiven, ...], Field(min_length=1, max_length=MAX_TOOLS)] | None = None
    """The only tools that it may call, 32 at most: the key opens nothing else then. Left out, its role and agents say what it
    may do."""
    days: Annotated[int, Field(ge=1, le=3_660), WRITTEN_AS_NUMBER] | None = None
    """Days after which it ends, 1 to 3,660; where it is left out it is good until it is revoked."""


class BusKeyGiven(_KeyRights):
    """A key of the bus to make, for an outside system. It acts for one user, and its role and agents are the whole of its
    rights."""

    tenant: Token
    """The tenant whose data it opens."""
    user: Token
    """The user whom its messages act for."""
    role: Role = Role.MEMBER
    """What its messages may do: `owner`, `admin`, `member` or `reader`."""
    agents: Agents = Field(default_factory=default_agents)
    """Agents that its messages may act as; `noor` where it is left out. An owner and an administrator need none."""
    department: str | None = Field(default=None, min_length=1, max_length=200)
    """The user's department, whose shared memory it opens."""
    ministry: str | None = Field(default=None, min_length=1, max_length=200)
    """The user's ministry, whose shared memory it opens."""
    days: Annotated[int, Field(ge=1, le=LONGEST_DAYS), WRITTEN_AS_NUMBER] = 90
    """Days that it is good for, 1 to 366."""


class ProfileGiven(Given):
    """What shall be known of the caller."""

    profile: dict[str, Any]
    """The profile to put in the place of the one there is; of a merge patch the members to replace, and with null those to
    remove."""


class FeedbackGiven(Given):
    """What you think of an answer."""

    helpful: StrictBool
    """Whether it was of help."""
    remark: str = Field(default="", max_length=MAX_REMARK)
    """What you say about it, up to 1,000 characters."""


class ReplayGiven(Given):
    """How to run a turn again."""

    with_instructions: Annotated[int, Field(ge=0, le=2**31 - 1), WRITTEN_AS_NUMBER] | None = None
    """Number of the tenant's release to run it with; 0 is the platform's own texts, and nothing the texts it had."""


class AcceptedTurn(BaseModel):
    """A turn whose row is committed: it will end exactly once."""

    turn_id: str
    """Id of the turn, to look it up and to watch it by."""
    conversation_id: str
    """The conversation; name it in the next message to go on with it."""
    status: TurnStatus
    """Where the turn was when this was answered."""
