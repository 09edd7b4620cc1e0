"""The newest turns of the conversations at hand, for the time in which the store cannot be read (V-017, V-T10)."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from dataclasses import dataclass, replace

from phronesis_contracts import ServiceError

from ..domain import Claim, Completed
from ..history import WINDOW, Past, PastTurn
from ..ports import Conversations

log = logging.getLogger(__name__)

_CONVERSATIONS = 256
"""Conversations that are kept at most; the one that was longest not spoken in goes first."""
_FRESH = 300.0
"""Seconds for which one is kept."""
_TEXT = 2_000
"""Characters of a message that are kept."""


@dataclass(frozen=True)
class _Kept:
    past: Past
    at: float


class RecentPasts:
    """What was last read and said, by tenant and conversation. The store is asked first; this stands in for it alone."""

    def __init__(self) -> None:
        self._of: OrderedDict[tuple[str, str], _Kept] = OrderedDict()
        self._dropped = 0

    async def read(self, conversations: Conversations, tenant: str, conversation_id: str) -> Past:
        """The past of a conversation: from the store, else what was kept of it, marked as stale.

        Raises:
            ServiceError: the store did not answer, and nothing was kept.
        """
        key, dropped = (tenant, conversation_id), self._dropped
        try:
            past = await conversations.recent(tenant, conversation_id)
        except ServiceError as error:
            kept = self._of.get(key)
            if kept is None or time.monotonic() - kept.at > _FRESH:
                raise
            log.warning("the history is an older one: %s", error.code)
            return replace(kept.past, stale=True)
        if dropped == self._dropped:
            self._put(key, past)
        return past

    def drop(self, tenant: str) -> None:
        """Keep nothing of a tenant, nor what is being read: something was forgotten."""
        self._dropped += 1
        for key in [key for key in self._of if key[0] == tenant]:
            del self._of[key]

    def note(self, claim: Claim, end: object) -> None:
        """Add a turn that ended well, if its conversation is kept."""
        key = (claim.who.tenant, claim.conversation_id)
        kept = self._of.get(key)
        if kept is None or not isinstance(end, Completed):
            return
        window = kept.past.window
        seq = window[-1].seq + 2 if window else 1
        said = PastTurn(seq, end.user_text, end.reply.user_response)
        self._put(key, replace(kept.past, directive=end.directive, window=(*window, said)))

    def _put(self, key: tuple[str, str], past: Past) -> None:
        window = tuple(_short(turn) for turn in past.window[-WINDOW:])
        kept = tuple(_short(turn) for turn in past.kept)
        self._of[key] = _Kept(replace(past, window=window, kept=kept, aged=()), time.monotonic())
        self._of.move_to_end(key)
        if len(self._of) > _CONVERSATIONS:
            self._of.popitem(last=False)


def _short(turn: PastTurn) -> PastTurn:
    return PastTurn(turn.seq, turn.user[:_TEXT], turn.reply[:_TEXT])
