"""The ledger: what model calls used, and the limits that stop the next one."""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BeforeValidator
from starlette.responses import Response

from phronesis_bus import Bus
from phronesis_contracts.ledger import LIMITS_GET_TOOL, LIMITS_SET_TOOL, USAGE_GET_TOOL, Limits, Part, SetLimit, UsageSums
from phronesis_gateway.answers import PROBLEMS, answers, as_json
from phronesis_gateway.calling import call
from phronesis_gateway.door import Caller, Door, IdempotencyKey, keyed, scoped
from phronesis_gateway.offers import Offers

USAGE = "/api/v1/usage"
LIMITS = "/api/v1/limits"


def _written_as_day(value: Any) -> Any:
    if isinstance(value, str) and not _DAY.fullmatch(value):
        raise ValueError("a day is wanted, as 2026-01-31")
    return value


_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
Day = Annotated[date, BeforeValidator(_written_as_day)]
"""A day as ISO 8601 writes it; no number of seconds is one."""
_Name = Annotated[str | None, Query(max_length=64)]


def router(door: Door, bus: Bus, offers: Offers) -> APIRouter:
    """The routes.

    Args:
        door: lets callers in.
        bus: the connected bus.
        offers: what each caller may call.
    """
    routes = APIRouter(route_class=keyed(door), responses=PROBLEMS, tags=["ledger"])

    @routes.get(USAGE, responses=answers(UsageSums))
    async def get_usage(
        who: Caller,
        since: Day | None = None,
        until: Day | None = None,
        by: Annotated[tuple[Part, ...], Query(max_length=5)] = ("agent", "model"),
        agent: _Name = None,
        user: _Name = None,
        turn_id: UUID | None = None,
    ) -> Response:
        """What model calls used, this month where nothing else is asked for: the caller's own, for an admin the tenant's."""
        given = {"since": since, "until": until, "by": by, "agent": agent, "user": user, "turn_id": turn_id}
        return as_json(await call(bus, offers, who, USAGE_GET_TOOL, given, None))

    @routes.get(LIMITS, responses=answers(Limits))
    async def get_limits(who: Caller) -> Response:
        """The limits that bear on the caller, for an admin all of the tenant's, with what is used of each."""
        return as_json(await call(bus, offers, who, LIMITS_GET_TOOL, {}, None))

    @routes.put(LIMITS, responses=answers(Limits))
    async def put_limit(limit: SetLimit, who: Caller, key: IdempotencyKey) -> Response:
        """Set a limit, or remove it by stating neither tokens nor usd. For admins."""
        given = limit.model_dump(exclude_none=True)
        return as_json(await call(bus, offers, who, LIMITS_SET_TOOL, given, scoped(who, key)))

    return routes
