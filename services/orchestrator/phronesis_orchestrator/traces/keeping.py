"""Keeping the record of a turn; an answer without one is better than none."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from phronesis_contracts import ServiceError

from ..domain import Claim
from .ports import TraceStore
from .record import Record

log = logging.getLogger(__name__)

Keep = Callable[[Claim, Record], Awaitable[None]]


def keeping(traces: TraceStore) -> Keep:
    """Keeps records in the store; one that cannot be kept is logged, and the turn ends without."""

    async def keep(claim: Claim, record: Record) -> None:
        try:
            await traces.keep_record(claim, record.kept(), record.profile)
        except ServiceError as error:
            log.warning("the record of turn %s could not be kept: %s", claim.turn_id, error.code)

    return keep


async def unkept(claim: Claim, record: Record) -> None:
    """Keep nothing: the record is the caller's."""
