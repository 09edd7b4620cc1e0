"""Waiting for a turn's end while telling how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable

from phronesis.sync import Client
from phronesis_contracts import ServiceError, TimedOut, TurnEnded
from phronesis_contracts.orchestrator import Problem, Reply, Turn

LONGEST_TURN = 16 * 60.0
"""Seconds to wait for an end: a turn expires after 15 minutes (DESIGN 4)."""
_LOOK_AGAIN = 1.0


def reply_of(client: Client, turn_id: str, progress: Callable[[str], None]) -> Reply:
    """The reply of a turn, once it has ended.

    Args:
        client: the stack.
        turn_id: an accepted turn.
        progress: told of each phase as the turn reaches it.

    Raises:
        ServiceError: the turn ended without a reply: the problem it ended with.
    """
    try:
        for event in client.turns.events(turn_id):
            if event.kind in ("accepted", "phase"):
                progress(str(event.data.get("phase") or event.kind))
            elif event.kind == "waiting":
                asked = event.data.get("detail", {})
                progress(f"waiting for you ({asked.get('reason')}): phronesis approvals show {asked.get('approval_id')}")
    except ServiceError as exc:
        if 400 <= exc.status < 500:
            raise
        progress(f"events are lost ({exc.code}), looking for the end")
    return _reply(_ended(client, turn_id))


def _ended(client: Client, turn_id: str) -> Turn:
    deadline = time.monotonic() + LONGEST_TURN
    while not (turn := client.turns.get(turn_id)).status.ended:
        if time.monotonic() > deadline:
            raise TimedOut(f"turn {turn_id} has not ended; look again with `phronesis turns show {turn_id}`")
        time.sleep(_LOOK_AGAIN)
    return turn


def _reply(turn: Turn) -> Reply:
    if turn.reply is not None:
        return turn.reply
    problem = turn.problem or Problem(code=TurnEnded.code, status=TurnEnded.status, detail="it ended without a reply")
    error = ServiceError.from_body(problem.model_dump())
    error.detail = f"turn {turn.turn_id} {turn.status}: {error.detail}"
    raise error
