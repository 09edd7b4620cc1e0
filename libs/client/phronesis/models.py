"""What the gateway answers that no service's contract states: keys, tools, readiness, traces, events of a turn."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field, model_validator

from phronesis_contracts import Agent, Message, Role
from phronesis_contracts.orchestrator import TurnStatus
from phronesis_contracts.principal import translate_old_role
from phronesis_contracts.service import Span


class TurnEvent(Message):
    """One server-sent event of a turn."""

    id: str = ""
    """Position in the stream; `events(after=id)` goes on behind it."""
    kind: str
    """`accepted`, `phase`, `ended`, `text` (part `k` of `n` of the reply's text) or `done` (with the whole turn).

    Of an analyst's turn `executive_summary` and `analysis` (the whole answer) in the place of `text`.
    """
    data: dict[str, Any] = Field(default_factory=dict)

    @property
    def last(self) -> bool:
        return self.kind == "done"


class Accepted(Message):
    """A turn that was accepted: its row is committed, it will end exactly once."""

    turn_id: str
    conversation_id: str
    status: TurnStatus = TurnStatus.QUEUED


class Trace(Message):
    """Every span of a turn that its services still remember."""

    turn_id: str
    trace_id: str | None = None
    spans: tuple[Span, ...] = ()
    missing: tuple[str, ...] = ()
    """Services that did not answer."""


class KeyInfo(Message):
    """A key of the gateway, without its secret."""

    id: str
    tenant: str
    user: str
    role: Role
    agents: tuple[Agent, ...] = ()
    """Agents that it may act as; empty for owners and administrators, who may act as all."""
    department: str | None = None
    ministry: str | None = None
    scopes: tuple[str, ...] = ()
    prefix: str = ""
    """The secret's first characters, to tell keys apart."""
    created_at: datetime | None = None
    revoked_at: datetime | None = None
    bus: bool = False
    """Whether it opens the bus, and not the gateway."""
    expires_at: datetime | None = None
    """When it ends by itself."""
    tools: tuple[str, ...] | None = None
    """The only tools that it may call, and all that it opens; `None` where its role and agents say what it may do."""

    @model_validator(mode="before")
    @classmethod
    def _translate(cls, stated: Any) -> Any:
        # A stack of the version before answers with its own words.
        return translate_old_role(stated)


class NewKey(KeyInfo):
    """A key just made; its secret is shown this once."""

    key: str


class NewBusKey(KeyInfo):
    """A key of the bus just made; what an outside system comes in with is shown this once."""

    servers: tuple[str, ...]
    """Where the broker is, as the platform itself reaches it."""
    nats_user: str
    nats_password: str
    token: str
    """Goes with each message, in the header `Phronesis-Principal`."""
    inbox: str
    """Prefix of the subjects on which answers are heard."""


class ToolInfo(Message):
    """A tool that this caller may call."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """JSON schema of the input."""
    result: dict[str, Any] = Field(default_factory=dict)
    """JSON schema of the output."""
    risk: str = ""
    """`read`, `low`, `medium` or `high`."""
    irreversible: bool = False


class Readiness(Message):
    """Whether the stack can take turns, and what is down if not."""

    ready: bool
    down: tuple[str, ...] = ()
