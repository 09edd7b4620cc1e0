"""Cursors: a place in an order that does not change, as one opaque word."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

from phronesis_contracts import BadRequest


def cursor(kind: str, *place: str) -> str:
    """The word for a place.

    Args:
        kind: which order it is a place in.
        place: what the last entry that was told is sorted by.
    """
    told = json.dumps([kind, *place], ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(told.encode()).decode().rstrip("=")


def place(given: str, kinds: Mapping[str, int]) -> tuple[str, ...]:
    """The kind of a cursor and its place. Whatever it names, nothing of another tenant is told for it.

    Args:
        given: the cursor.
        kinds: the kinds that there may be, and of how many texts a place of each is made.

    Raises:
        BadRequest: it is no cursor of these kinds.
    """
    try:
        told = json.loads(base64.b64decode(given + "=" * (-len(given) % 4), altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        told = None
    match told:
        case [str(kind), *texts] if kinds.get(kind) == len(texts) and all(isinstance(text, str) for text in texts):
            return (kind, *texts)
    raise BadRequest("this is no cursor of this list; take `nextCursor` of the page before", field="cursor")
