"""The provisional text of a reply, as progress of its turn."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from phronesis_contracts.orchestrator import TurnProgress

from .turn import Claim

STAGE = "live"
"""The stage of a profile whose replies may be shown while they are written."""
_PIECE = 80
"""Characters from which on a piece is shown at once."""
_EVERY = 0.15
"""Seconds after which a shorter one is."""
_MOST = 50_000
"""Characters of provisional text of one attempt; a longer reply comes with the turn's end alone."""


class LiveText:
    """Shows the text of one turn's reply. Each piece says its attempt and where in the text it stands.

    Args:
        progress: where lines of progress go.
    """

    def __init__(self, claim: Claim, progress: Callable[[Claim, TurnProgress], Awaitable[None]]) -> None:
        self._claim, self._progress = claim, progress
        self._offset = 0
        self._kept = ""
        self._shown_at = 0.0

    async def add(self, text: str) -> None:
        if self._offset + len(self._kept) + len(text) > _MOST:
            return
        self._kept += text
        if len(self._kept) >= _PIECE or time.monotonic() - self._shown_at >= _EVERY:
            await self.flush()

    async def flush(self) -> None:
        if not self._kept:
            return
        text, self._kept, self._shown_at = self._kept, "", time.monotonic()
        await self._progress(self._claim, self._line("live", offset=self._offset, text=text))
        self._offset += len(text)

    async def restart(self) -> None:
        self._kept = ""
        if self._offset:
            self._offset = 0
            await self._progress(self._claim, self._line("restart"))

    def _line(self, kind: str, offset: int | None = None, text: str | None = None) -> TurnProgress:
        claim = self._claim
        return TurnProgress(
            turn_id=claim.turn_id,
            kind=kind,
            conversation_id=claim.conversation_id,
            attempt=claim.attempts,
            offset=offset,
            text=text,
        )
