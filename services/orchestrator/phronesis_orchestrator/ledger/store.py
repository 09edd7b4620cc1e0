"""The ledger and the limits in Postgres, and what is answered from them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

import asyncpg

from phronesis_bus import Bus, Call, audit_entry, serve
from phronesis_contracts import BadRequest, Principal
from phronesis_contracts.answers import MAX_CALLS, ModelCalled
from phronesis_contracts.ledger import (
    LIMITS_GET_TOOL,
    LIMITS_SET_TOOL,
    MAX_ROWS,
    USAGE_GET_TOOL,
    GetUsage,
    Limits,
    LimitState,
    ListLimits,
    SetLimit,
    UsageSum,
    UsageSums,
)
from phronesis_contracts.service import AUDITED
from phronesis_postgres import Connection, Database, write_news

from ..turns.store import enter_spend
from .budgets import Budgets
from .usage import ChargedTurn, LedgerEntry

SERVICE = "orchestrator"
LEARNING = "learn"
"""Purpose of the calls that are made for turns that have ended; they are in the ledger, and no part of an answer."""
MOST_LIMITS = 500
"""Limits of one tenant."""
_BEGAN = "(date_trunc(limits.period, now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC')"
_STATES = f"""
SELECT period AS window, nullif(agent, '') AS agent, nullif(user_id, '') AS user, tokens, usd, used_tokens, used_usd
FROM limits, LATERAL (
    SELECT coalesce(sum(input_tokens + output_tokens), 0)::bigint AS used_tokens, coalesce(sum(cost_usd), 0) AS used_usd
    FROM ledger WHERE ledger.tenant = limits.tenant AND ledger.at >= {_BEGAN}
    AND limits.agent IN ('', ledger.agent) AND limits.user_id IN ('', ledger.user_id)
) AS used
WHERE tenant = $1 AND ($2::text IS NULL OR limits.user_id IN ('', $2)) AND ($3::text IS NULL OR limits.agent IN ('', $3))
ORDER BY period, limits.agent, limits.user_id
"""  # noqa: S608
_SET = """
INSERT INTO limits (tenant, agent, user_id, period, tokens, usd) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (tenant, agent, user_id, period) DO UPDATE SET tokens = excluded.tokens, usd = excluded.usd, updated_at = now()
"""
_REMOVE = "DELETE FROM limits WHERE tenant = $1 AND agent = $2 AND user_id = $3 AND period = $4"
_PARTS = {"agent": "agent", "user": "user_id", "model": "model", "purpose": "purpose", "day": "(at AT TIME ZONE 'UTC')::date"}


class PostgresLedger:
    """What model calls used, and the limits on it, inside one tenant at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def spent(self, turn: ChargedTurn, spend: LedgerEntry) -> None:
        async with self._database.transaction(turn.who.tenant) as connection:
            await enter_spend(connection, turn, spend)

    async def bearing(self, who: Principal, agent: str) -> tuple[LimitState, ...]:
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(_STATES, who.tenant, who.user, agent)
        return tuple(LimitState(**dict(row)) for row in rows)

    async def usage(self, who: Principal, query: GetUsage) -> UsageSums:
        """Sums of the ledger, the dearest first."""
        today = datetime.now(UTC).date()
        since, until = query.since or today.replace(day=1), query.until or today
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(_sums(query), who.tenant, since, until, query.agent, query.user, query.turn_id)
        sums = tuple(UsageSum(**dict(row)) for row in rows[:MAX_ROWS] if row["calls"])
        return UsageSums(since=since, until=until, sums=sums, cut=len(rows) > MAX_ROWS)

    async def limits(self, who: Principal, user: str | None) -> Limits:
        """The tenant's limits, or those that bear on one user."""
        async with self._database.connection(who.tenant) as connection:
            return await _read_limits(connection, who.tenant, user)

    async def set_limit(self, call: Call, limit: SetLimit) -> Limits:
        """Set or remove a limit. The row is what was asked for, whole, so a repeat needs no key to be known by."""
        who, of = call.who, (call.who.tenant, limit.agent or "", limit.user or "", limit.window)
        async with self._database.transaction(who.tenant) as connection:
            if limit.tokens is None and limit.usd is None:
                await connection.execute(_REMOVE, *of)
            else:
                await connection.execute(_SET, *of, limit.tokens, limit.usd)
            if await connection.fetchval("SELECT count(*) FROM limits WHERE tenant = $1", who.tenant) > MOST_LIMITS:
                raise BadRequest(f"a tenant has at most {MOST_LIMITS} limits")
            entry = audit_entry(who, "limits.set", limit.model_dump(mode="json"))
            await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], entry)
            return await _read_limits(connection, who.tenant, None)

    async def calls_of(self, tenant: str, turn_id: str) -> tuple[ModelCalled, ...]:
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(
                "SELECT * FROM ledger WHERE turn_id = $1 AND tenant = $2 AND purpose <> $3 ORDER BY id LIMIT $4",
                *(UUID(turn_id), tenant, LEARNING, MAX_CALLS),
            )
        return tuple(ModelCalled(**{name: row[name] for name in ModelCalled.model_fields}) for row in rows)


async def _read_limits(connection: Connection, tenant: str, user: str | None) -> Limits:
    rows: list[asyncpg.Record] = await connection.fetch(_STATES, tenant, user, None)
    return Limits(limits=tuple(LimitState(**dict(row)) for row in rows))


def _sums(query: GetUsage) -> str:
    parts = dict.fromkeys(query.by)
    columns = "".join(f'{_PARTS[part]} AS "{part}", ' for part in parts)
    group = f"GROUP BY {', '.join(_PARTS[part] for part in parts)}" if parts else ""
    return f"""
SELECT {columns} count(*) AS calls, coalesce(sum(input_tokens), 0)::bigint AS input_tokens,
       coalesce(sum(output_tokens), 0)::bigint AS output_tokens, coalesce(sum(cached_tokens), 0)::bigint AS cached_tokens,
       coalesce(sum(reasoning_tokens), 0)::bigint AS reasoning_tokens, coalesce(sum(cost_usd), 0) AS cost_usd,
       count(*) FILTER (WHERE cost_usd IS NULL) AS unpriced
FROM ledger WHERE tenant = $1 AND at >= $2::date::timestamp AT TIME ZONE 'UTC'
    AND at < ($3::date + 1)::timestamp AT TIME ZONE 'UTC' AND ($4::text IS NULL OR agent = $4)
    AND ($5::text IS NULL OR user_id = $5) AND ($6::uuid IS NULL OR turn_id = $6)
{group} ORDER BY cost_usd DESC, input_tokens DESC LIMIT {MAX_ROWS + 1}
"""  # noqa: S608


class LedgerHandlers:
    def __init__(self, ledger: PostgresLedger, budgets: Budgets, wake: Callable[[], None]) -> None:
        self._ledger, self._budgets, self._wake = ledger, budgets, wake

    async def usage(self, call: Call, request: GetUsage) -> UsageSums:
        """Sums of the tenant for an admin, of the caller for everybody else."""
        if request.since and request.until and request.since > request.until:
            raise BadRequest("`since` is after `until`", field="since")
        mine = request if call.who.administers else request.model_copy(update={"user": call.who.user})
        return await self._ledger.usage(call.who, mine)

    async def limits(self, call: Call, request: ListLimits) -> Limits:
        """All limits for an admin, those that bear on the caller for everybody else."""
        return await self._ledger.limits(call.who, None if call.who.administers else call.who.user)

    async def set_limit(self, call: Call, request: SetLimit) -> Limits:
        """Set or remove a limit; it holds here at once, and in other processes within seconds."""
        limits = await self._ledger.set_limit(call, request)
        self._budgets.forget(call.who.tenant)
        self._wake()
        return limits


async def serve_ledger(bus: Bus, ledger: PostgresLedger, budgets: Budgets, wake: Callable[[], None]) -> None:
    handlers = LedgerHandlers(ledger, budgets, wake)
    await serve(bus, USAGE_GET_TOOL, handlers.usage)
    await serve(bus, LIMITS_GET_TOOL, handlers.limits)
    await serve(bus, LIMITS_SET_TOOL, handlers.set_limit)
