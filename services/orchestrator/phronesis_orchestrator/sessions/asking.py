"""Asking again: what failed by the way may succeed at once, and half a second decides whether a session is whole (O-248)."""

from __future__ import annotations

from phronesis_contracts import Principal, Rpc, ServiceError
from phronesis_contracts.messages import In, Out_

from .ports import Ask


async def twice(ask: Ask, who: Principal, rpc: Rpc[In, Out_], request: In, limit: float) -> Out_:
    """The answer, asked for once more where the first try failed and the question is not to blame.

    Args:
        ask: asks the owner.
        who: the caller.
        rpc: the contract, of something that is read.
        request: the question.
        limit: seconds that each try may take.

    Raises:
        ServiceError: what the second try failed with, or the first one where a repeat would change nothing.
    """
    try:
        return await ask(who, rpc, request, limit)
    except ServiceError as error:
        if error.status < 500:
            raise
    return await ask(who, rpc, request, limit)
