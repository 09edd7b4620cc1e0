"""What a message contract is: a subject, what goes in, what comes out. Contracts are values; nothing here sends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict

MAX_BYTES = 512 * 1024
"""Default greatest size of a message body, in bytes; larger things go by the Object Store."""


def _written_as_number(value: Any) -> Any:
    if isinstance(value, bool | str | bytes):
        raise ValueError("a number is wanted")
    return value


WRITTEN_AS_NUMBER = BeforeValidator(_written_as_number)
"""Behind the bounds of a number that people state: 5 and 5.0 are taken, and neither "5" nor true."""


class Message(BaseModel):
    """Base of every body on the bus. Readers ignore fields they do not know; inside v1 only optional ones are added."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


In = TypeVar("In", bound=Message)
Out_ = TypeVar("Out_", bound=Message)


@dataclass(frozen=True)
class _Contract(Generic[In]):
    subject: str
    """`<service>.v<N>.<what>`, without kind and tenant."""
    input: type[In]
    max_bytes: int = field(default=MAX_BYTES, kw_only=True)

    @property
    def service(self) -> str:
        return self.subject.split(".", 1)[0]


@dataclass(frozen=True)
class Rpc(_Contract[In], Generic[In, Out_]):
    """A question with one typed answer, by core request and reply."""

    output: type[Out_]
    timeout: float = field(default=5.0, kw_only=True)
    """Seconds that an answer may take when the caller states no shorter deadline."""

    def on(self, tenant: str) -> str:
        """The subject to ask on for `tenant`; `*` for the server's subscription."""
        return f"rpc.{tenant}.{self.subject}"

    def on_each(self, tenant: str) -> str:
        """The subject on which every running copy of the owner answers, for what each process alone knows."""
        return f"{self.on(tenant)}.each"


@dataclass(frozen=True)
class Job(_Contract[In]):
    """Work that one worker takes from a JetStream work queue."""

    backlog: int = field(default=1000, kw_only=True)
    """Messages that may wait for each tenant; a full queue refuses, it does not forget."""

    def on(self, tenant: str) -> str:
        """The subject to publish on for `tenant`."""
        return f"job.{tenant}.{self.subject}"

    def from_outside(self, tenant: str, user: str) -> str:
        """The subject that an outside system which acts for `user` publishes on; nothing answers there."""
        return f"job.{tenant}.{self.subject}.{user}"

    @property
    def durable(self) -> str:
        """Name of the durable consumer that its owner takes it from."""
        return f"{self.service}-{self.subject.replace('.', '-')}"


@dataclass(frozen=True)
class Event(_Contract[In]):
    """News of a committed change, at least once to each follower."""

    followers: tuple[str, ...] = field(default=(), kw_only=True)
    """Services that hold a durable consumer of it."""
    hearers: tuple[str, ...] = field(default=(), kw_only=True)
    """Services of which each running copy hears it, with no promise: for dropping caches."""

    def on(self, tenant: str) -> str:
        """The subject to publish on for `tenant`."""
        return f"evt.{tenant}.{self.subject}"

    def durable(self, follower: str) -> str:
        """Name of the follower's durable consumer."""
        return f"{follower}-{self.subject.replace('.', '-')}"


@dataclass(frozen=True)
class Out(_Contract[In]):
    """Progress of a turn for whoever watches it, kept an hour."""

    def on(self, tenant: str, user: str, turn: str) -> str:
        """The subject of one turn's progress."""
        return f"out.{tenant}.{self.subject}.{user}.{turn}"


class Nothing(Message):
    """No input, or no output."""
