"""What is known of a conversation: its newest turns word for word, the weighty ones before them, and a summary of the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from phronesis_contracts import Label, Message
from phronesis_contracts.orchestrator import Directive, Reply

from ..understanding.plan import NO_FOCUS, Focus

WINDOW = 10
"""Newest turns that a prompt holds word for word."""
KEPT = 5
"""Older turns that it also holds word for word: the most important ones."""
PRUNE_AFTER = 15
"""Turns up to which a conversation stands word for word as a whole."""
STEP = 10
"""Turns that leave the window before the stored summary is carried on: one write, and with a model one call, for so many."""
AGED = 40
"""Turns beyond the window that one turn reads at most; a longer gap is worked off by the turns that follow."""
MAX_CHARS = 16_000
"""Characters of a past message that are read: more could not stand in a prompt, where no message takes a third of it."""


@dataclass(frozen=True)
class PastMessage:
    role: str
    text: str
    seq: int | None = None
    """Its number, where messages between it and the next were left out."""
    attached: tuple[str, ...] = ()
    """Names of the files that were attached to it."""


@dataclass(frozen=True)
class PastTurn:
    """What the user said and what was answered."""

    seq: int
    """Number of the turn's first message."""
    user: str
    """What the user typed, without the text of what was attached."""
    reply: str
    attached: tuple[str, ...] = ()
    """Names of the files that were attached."""

    def messages(self, *, numbered: bool = False) -> Iterator[PastMessage]:
        """Its two messages, without those that say nothing; with their numbers if so asked."""
        if self.user or self.attached:
            yield PastMessage("user", self.user, self.seq if numbered else None, self.attached)
        if self.reply:
            yield PastMessage("assistant", self.reply, self.seq + 1 if numbered else None)


_ATTACHMENT = re.compile(r"(?:^|(?<=\n))\[(?:document|image|audio): ([^\n]{1,300})\]$", re.M)


def split_attached(text: str, typed: str | None = None) -> tuple[str, tuple[str, ...]]:
    """A message that was stored with the text of its attachments: what its user typed, and the names of the attachments.

    Args:
        typed: what the user typed, where that is known; else all up to the first label of an attachment.
    """
    if typed is not None:
        return typed, tuple(match[1] for match in _ATTACHMENT.finditer(text, len(typed)))
    first = _ATTACHMENT.search(text)
    if first is None:
        return text, ()
    return text[: first.start()].rstrip(), tuple(match[1] for match in _ATTACHMENT.finditer(text, first.start()))


def reply_for_models(reply: Reply) -> str:
    """What later turns may see of a reply: nothing where the final call failed, since a model would say it again."""
    return "" if "final" in reply.degraded else reply.user_response


class Note(Message):
    """One sentence of an older turn."""

    seq: int
    role: str
    text: str
    weight: float


class Summary(Message):
    """What is left of the turns before the window."""

    through: int = 0
    """Number of the last message that it covers."""
    kept: tuple[int, ...] = ()
    """Numbers of the turns that are kept word for word."""
    text: str = ""
    """What a language model made of the turns up to `text_through`; empty where none was asked."""
    text_through: int = 0
    notes: tuple[Note, ...] = ()
    """What rules made of the turns that `text` does not cover."""


NO_SUMMARY = Summary()


@dataclass(frozen=True)
class Past:
    """A conversation as it is read for a turn."""

    directive: Directive = Directive.SUPPORTIVE_COMPANION
    summary: Summary = NO_SUMMARY
    kept: tuple[PastTurn, ...] = ()
    """The turns that the summary keeps word for word."""
    aged: tuple[PastTurn, ...] = ()
    """Turns that have left the window and that the stored summary does not cover yet, oldest first."""
    window: tuple[PastTurn, ...] = ()
    stale: bool = False
    """Whether the store did not answer, and this is what was kept of an earlier reading."""
    focus: Focus = NO_FOCUS
    """What was last spoken of."""
    labels: tuple[Label, ...] = ()
    """Where the texts come from that its replies, and so its history and its summary, may rest on."""
