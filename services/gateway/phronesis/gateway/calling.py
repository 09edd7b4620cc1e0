"""Calling a tool: the one path of every face of the gateway."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError

from phronesis.bus import Bus, ask
from phronesis.contracts import Forbidden, Principal, Tool

from .audit import refused
from .problems import invalid
from .scopes import needed, require


async def call(bus: Bus, who: Principal, tool: Tool[Any, Any], given: dict[str, Any], key: str | None) -> BaseModel:
    """Ask a tool's owner.

    Args:
        bus: the connected bus.
        who: the caller.
        tool: the tool.
        given: its input, as the caller sent it.
        key: idempotency key of a write, as its owner gets it.

    Raises:
        Forbidden: the caller's role may not use it, or the caller is narrowed to less; either is audited.
        BadRequest: the input breaks the tool's schema.
        ServiceError: what the owner answered.
    """
    try:
        if who.role not in tool.roles:
            raise Forbidden(f"role {who.role} may not use {tool.name}")
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
