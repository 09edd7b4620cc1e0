"""Refusals of the gateway's own, entered in the audit trail."""

from __future__ import annotations

import logging
from typing import Any

from phronesis_bus import Bus, announce, audited
from phronesis_contracts import Principal, ServiceError
from phronesis_contracts.service import AUDITED

log = logging.getLogger(__name__)


async def refused(bus: Bus, who: Principal, action: str, arguments: dict[str, Any], error: ServiceError) -> None:
    """Enter that `who` was refused `action`. A trail that cannot be reached changes nothing about the refusal."""
    entry = audited(who, action, arguments, code=error.code)
    try:
        await announce(bus, who.tenant, AUDITED[bus.name], entry)
    except ServiceError as failure:
        log.error("a refusal could not be audited: %s", failure.code)
