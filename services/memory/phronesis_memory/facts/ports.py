"""What memory that forms itself needs from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from phronesis_bus import Call
from phronesis_contracts import Principal
from phronesis_contracts.deletions import ConversationDeleted, Purged
from phronesis_contracts.facts import Fact, FactList, ImportedMemory, ImportMemory, Learn, Learnt, ListFacts
from phronesis_contracts.forgetting import CopiesPurged, ForgetFor, Forgetting, ForgettingPreview

from ..domain.values import Draft
from .values import Kept, Saying

Drafts = Mapping[str, Draft]
"""Drafts by their text, complete."""


class TextMissing(Exception):
    """A fact that is held now has no vector yet; the caller makes it and tries again.

    Args:
        text: its text.
    """

    def __init__(self, text: str) -> None:
        super().__init__("a fact has no vector")
        self.text = text


class Facts(Protocol):
    """The store of facts."""

    async def learn(self, call: Call, request: Learn, sayings: Sequence[Saying], drafts: Drafts, refused: int) -> Learnt:
        """Take in what a turn taught, once for the call's key; nothing of a turn or conversation that was forgotten.

        Raises:
            TextMissing: a draft is missing.
            KeyReused: the call's key came before with other arguments.
        """
        ...

    async def take_in(
        self, call: Call, request: ImportMemory, sayings: Sequence[Saying], drafts: Drafts, result: ImportedMemory
    ) -> ImportedMemory:
        """Take in the lines of an import, all or none, once for the call's key. Raises as `learn` does."""
        ...

    async def list(self, who: Principal, request: ListFacts) -> FactList:
        """The caller's facts, the newest first."""
        ...

    async def by_items(self, who: Principal, items: Sequence[str]) -> dict[str, tuple[Kept, Fact]]:
        """The caller's held facts that stand behind these items, by item."""
        ...


class Forgettings(Protocol):
    """Forgets for good, and keeps what was reported of it."""

    async def preview(self, who: Principal, request: ForgetFor) -> ForgettingPreview:
        """What would go."""
        ...

    async def begin(self, call: Call, request: ForgetFor) -> Forgetting:
        """Remove it here, and tell the others, once for the call's key.

        Raises:
            NotFound: the caller has none of it.
            BadRequest: it is more than goes at once.
        """
        ...

    async def get(self, who: Principal, forgetting_id: str) -> Forgetting:
        """A forgetting of the caller. Raises `NotFound`."""
        ...

    async def purged(self, tenant: str, service: str, removed: Purged) -> None:
        """Enter what a service removed; what is not of a forgetting is none of ours."""
        ...

    async def copies_purged(self, tenant: str, report: CopiesPurged) -> None:
        """Remove the episodes of turns that hold no text any more, and enter what the orchestrator removed."""
        ...

    async def forget_conversation(self, tenant: str, event: ConversationDeleted) -> None:
        """Remove the facts that were learnt from a deleted conversation alone; nothing is learnt of it from here on."""
        ...
