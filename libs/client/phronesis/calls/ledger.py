"""The ledger, and turns run again."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from phronesis.request import Request
from phronesis_contracts.ledger import Limits, Part, SetLimit, UsageSums, Window
from phronesis_contracts.orchestrator import Turn
from phronesis_contracts.traces import Replayed

from .parts import checked, segment

_REPLAY = 90.0
"""Seconds that a replay may take: a whole turn."""


def explain_turn(turn_id: str) -> Request[Turn]:
    """A turn with the whole trace of its answer in `trace`."""
    path = f"/api/v1/turns/{segment(turn_id, 'turn_id')}"
    return Request("GET", path, Turn.model_validate, params={"include": "trace"}, reads=True)


def replay_turn(turn_id: str, with_instructions: int | None = None) -> Request[Replayed]:
    """Run an ended turn again on its recorded tool results, and compare. Its model calls are paid for.

    Args:
        turn_id: a turn of the caller.
        with_instructions: number of the tenant's release to run it with; the texts that it had where it is left out.

    Raises:
        NotReplayable: it cannot be run again; the text says why.
    """
    path = f"/api/v1/turns/{segment(turn_id, 'turn_id')}/replay"
    stated = {} if with_instructions is None else {"with_instructions": with_instructions}
    return Request("POST", path, Replayed.model_validate, json=stated, timeout=_REPLAY)


def get_usage(
    since: date | None = None,
    until: date | None = None,
    by: Iterable[Part] = ("agent", "model"),
    agent: str | None = None,
    user: str | None = None,
    turn_id: str | None = None,
) -> Request[UsageSums]:
    """What model calls used, this month by default: the caller's own, for an admin the tenant's.

    Args:
        since: the first day, in UTC.
        until: the last day.
        by: what the sums are apart by.
        agent: only this agent's.
        user: only this user's.
        turn_id: only this turn's.
    """
    given = {"since": since.isoformat() if since else None, "until": until.isoformat() if until else None}
    params = {"agent": agent, "user": user, "turn_id": turn_id, **given}
    stated = {name: value for name, value in params.items() if value is not None}
    return Request("GET", "/api/v1/usage", UsageSums.model_validate, params={**stated, "by": list(by)}, reads=True)


def get_limits() -> Request[Limits]:
    """The limits that bear on the caller, for an admin all of the tenant's."""
    return Request("GET", "/api/v1/limits", Limits.model_validate, reads=True)


def set_limit(
    window: Window, tokens: int | None = None, usd: float | None = None, agent: str | None = None, user: str | None = None
) -> Request[Limits]:
    """Set a limit; it is removed where neither tokens nor US dollars are stated. For admins."""
    limit = checked(SetLimit, {"window": window, "tokens": tokens, "usd": usd, "agent": agent, "user": user})
    return Request("PUT", "/api/v1/limits", Limits.model_validate, json=limit.model_dump(mode="json", exclude_none=True))
