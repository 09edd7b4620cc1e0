"""Outside systems: what one gets to come in with, and what it may do once it is in."""

from __future__ import annotations

from dataclasses import dataclass

from phronesis_contracts import Principal
from phronesis_contracts.catalog import JOBS, OUTS, TOOLS

from . import envelope
from .connection import INBOX, Bus
from .publishing import publish
from .revocation import SUBJECT as REVOKED_SUBJECT

LONGEST_DAYS = 366
"""Days that an outside system's key is good for at most; for longer than that nobody has to remember that it was revoked."""
OUTSIDE = f"{INBOX}.out"
"""Outside systems hear their answers below this, each below its own key's id."""


@dataclass(frozen=True)
class Credentials:
    """What an outside system comes in with."""

    user: str
    """Its user at the broker."""
    password: str
    """Its password there, which no service ever sees."""
    token: str
    """Its principal, which stands in each of its messages."""
    inbox: str
    """Where it hears answers: the prefix of its reply subjects."""


def credentials(bus: Bus, who: Principal, seconds: float) -> Credentials:
    """Sign for an outside system, for so many seconds.

    Args:
        bus: the bus of the service that signs.
        who: for whom it acts; `key` names its key, by which it is revoked.
        seconds: how long they are good.

    Raises:
        RuntimeError: this service has no signing key.
    """
    if bus.signer is None or who.key is None:
        raise RuntimeError(f"{bus.name} cannot sign for an outside system")
    who = who.model_copy(update={"inbox": f"{OUTSIDE}.{who.key}"})
    return Credentials(
        user=who.key or "",
        password=bus.signer.login(who, seconds),
        token=bus.signer.long_lived(who, seconds),
        inbox=who.inbox or "",
    )


async def revoke(bus: Bus, key: str) -> None:
    """Let every process refuse the tokens of an outside system's key. A repeat changes nothing.

    Raises:
        Unavailable: the broker is away, or has no stream for it.
    """
    await publish(bus, f"{REVOKED_SUBJECT}.{key}", b"", envelope.headers(bus.name))


def publishes(who: Principal) -> list[str]:
    """Subjects that an outside system may publish to: its user's turns, and the tools that its role may use."""
    return [job.from_outside(who.tenant, who.user) for job in JOBS] + [
        tool.rpc.on(who.tenant) for tool in TOOLS.values() if who.role in tool.roles
    ]


def subscribes(who: Principal) -> list[str]:
    """Subjects that an outside system may subscribe to: the progress of its user's turns, and its own answers."""
    return [*(out.on(who.tenant, who.user, ">") for out in OUTS), f"{who.inbox}.>"]
