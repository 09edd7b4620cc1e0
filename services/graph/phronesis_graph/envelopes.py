"""What an envelope says of a failure: which argument, what is wrong, and what to do next."""

from __future__ import annotations

from phronesis_contracts import (
    BadRequest,
    Conflict,
    KeyReused,
    NotFound,
    ServiceError,
    TimedOut,
    TooLarge,
    Unavailable,
)
from phronesis_contracts.cypher import QueryRefused

_ADVICE: tuple[tuple[type[ServiceError], str], ...] = (
    (QueryRefused, "Change the statement and call again."),
    (TooLarge, "Ask for less and call again."),
    (BadRequest, "Correct the argument and call again."),
    (NotFound, "Find ids with search_nodes."),
    (KeyReused, "Use a key of its own for each call."),
    (Conflict, "Look at the present state and call again."),
    (Unavailable, "The database is unavailable at this moment: repeat the same call later, a write with the same key."),
    (TimedOut, "Narrow the call and repeat it, a write with the same key."),
)
_OTHERWISE = "A repeat will hardly help: tell who runs the platform."


def told(error: ServiceError) -> str:
    """The message of an envelope. It holds no text of the store: an error's detail never does."""
    advice = next((text for kind, text in _ADVICE if isinstance(error, kind)), _OTHERWISE)
    where = f"{error.field}: " if error.field else ""
    return f"{where}{error.detail.rstrip('.')}. {advice}"
