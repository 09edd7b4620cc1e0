"""The stores that the orchestrator needs, together."""

from __future__ import annotations

from dataclasses import dataclass

from .learning.ports import Copies, Unlearnt
from .outside.ports import Servers
from .ports import Journal, KeptConversations, Records, TurnStore
from .sessions.ports import Calendars
from .tasks.serving import KeptTasks


@dataclass(frozen=True)
class Stores:
    """One of each, all over the same database: what is committed by one is seen by the others."""

    turns: TurnStore
    journal: Journal
    conversations: KeptConversations
    records: Records
    tasks: KeptTasks
    calendars: Calendars
    servers: Servers
    unlearnt: Unlearnt
    copies: Copies
