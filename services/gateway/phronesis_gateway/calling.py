"""Calling a tool: the one path of every face of the gateway."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError

from phronesis_bus import Bus, ask
from phronesis_contracts import Forbidden, Principal, Tool

from .audit import refused
from .offers import Offers
from .problems import invalid
from .scopes import needed, require


async def call(
    bus: Bus, offers: Offers, who: Principal, tool: Tool[Any, Any], given: dict[str, Any], key: str | None
) -> BaseModel:
    """Ask a tool's owner.

    Args:
        bus: the connected bus.
        offers: what each caller may call.
        who: the caller.
        tool: the tool.
        given: its input, as the caller sent it.
        key: idempotency key of a write, as its owner gets it.

    Raises:
        Forbidden: the caller's role or its agent may not use it, or the caller is narrowed to less; each is audited.
        Retired: nobody may use it any more.
        BadRequest: the input breaks the tool's schema.
        ServiceError: what the owner answered.
    """
    try:
        await offers.require(who, tool)
        require(who, needed(tool))
    except Forbidden as error:
        await refused(bus, who, tool.name, given, error)
        raise
    try:
        request = tool.rpc.input.model_validate(given)
    except ValidationError as fault:
        raise invalid(fault.errors(include_url=False, include_context=False, include_input=False)) from fault
    answer: BaseModel = await ask(bus, who, tool.rpc, request, key=key)
    return answer
