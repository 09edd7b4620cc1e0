"""Refusals made while serving: whose a request is before anybody works on it, and what is entered of a refusal."""

from __future__ import annotations

import json
from typing import Any

from nats.aio.msg import Msg

from phronesis_contracts import Forbidden, Principal, Rpc, Tool, Unauthorized, Unavailable

from . import envelope
from .connection import Bus
from .streams import refused


def verified(bus: Bus, msg: Msg) -> Principal | None:
    """Whose a request is; `None` where its token is not believed."""
    try:
        return bus.verifier.principal(envelope.header(msg.headers, envelope.PRINCIPAL))
    except (Unauthorized, Unavailable):
        return None


def foreign(who: Principal, msg: Msg) -> bool:
    """Whether the subject is another tenant's than the principal."""
    return who.tenant != msg.subject.split(".", 2)[1]


def another_tenants() -> Forbidden:
    """The refusal of such a request."""
    return Forbidden("the subject is another tenant's")


async def audit(bus: Bus, contract: Rpc[Any, Any] | Tool[Any, Any], who: Principal, msg: Msg, error: Forbidden) -> None:
    """Enter a refusal that was made here: of a tool, or of another tenant's subject. Others are their owner's to enter."""
    if foreign(who, msg):
        await refused(bus, who, msg.subject.split(".", 2)[2], {"subject": msg.subject}, error)
    elif isinstance(contract, Tool):
        await refused(bus, who, contract.name, _arguments(msg.data), error)


def _arguments(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
