"""What the stages of every turn share in a process: settings, memory, recent history, and measures."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Protocol

from phronesis_bus import Kind, Metric, Tracing
from phronesis_contracts import UNKNOWN, Principal, ServiceError, merge_labels

from ...conversations.history import WINDOW, Past, PastTurn, reply_for_models
from ...conversations.summary import Scoring
from ...settings import CognitionSettings
from ...traces.record import MeasuredOutcome, measure
from ...turns.ports import Conversations
from ...turns.turn import Claim, Completed
from .thought import KnownStrategy, PastEpisode, StyleExample, ToolRecord

PLANNING = "planning"
MEMORY_QUERY = "memory_query"
REASONING = "reasoning"
PREFLIGHT = "preflight"
STRATEGIES = "strategies"
HISTORY = "history"
CAPABILITIES = (PLANNING, MEMORY_QUERY, REASONING, PREFLIGHT, STRATEGIES, HISTORY)
"""Planning of background tasks, the memory tool, the reasoning context, the look ahead, strategies, weighted history."""
COGNITION = Metric(
    "phronesis_cognition_seconds",
    Kind.HISTOGRAM,
    "Time that each capability adds to a turn (V-010).",
    ("capability", "outcome"),
    (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10),
)


def measure_capability(tracing: Tracing, name: str) -> AbstractContextManager[MeasuredOutcome]:
    """A span for one capability, and its time. `tracing`: where they go. `name`: one of `CAPABILITIES`."""
    return measure(tracing, COGNITION, f"cognition {name}", name)


def measure_tool(tracing: Tracing, tool: str) -> AbstractContextManager[MeasuredOutcome | None]:
    """The same for a tool that is a capability; nothing for any other tool."""
    return measure_capability(tracing, MEMORY_QUERY) if tool == MEMORY_QUERY else nullcontext()


class Experience(Protocol):
    """The caller's earlier turns. Each method raises a `ServiceError` where memory does not answer."""

    async def recall_episodes(self, who: Principal, query: str, limit: int) -> tuple[PastEpisode, ...]:
        """Earlier turns that are like the message, best first."""

    async def tool_statistics(self, who: Principal, tools: tuple[str, ...]) -> tuple[ToolRecord, ...]:
        """How often each of these tools worked."""

    async def recall_strategies(
        self, who: Principal, query: str, limit: int, agent: str, tools: tuple[str, ...]
    ) -> tuple[KnownStrategy, ...]:
        """Ways of working that went well for something like the message, best first.

        Args:
            agent: who will use them.
            tools: those at hand; what needs another one is not told.
        """

    async def style_examples(self, who: Principal, query: str, limit: int) -> tuple[StyleExample, ...]:
        """How the person writes texts like the one that is wanted."""


class NoExperience:
    """A memory that knows of no earlier turn."""

    async def recall_episodes(self, who: Principal, query: str, limit: int) -> tuple[PastEpisode, ...]:
        return ()

    async def tool_statistics(self, who: Principal, tools: tuple[str, ...]) -> tuple[ToolRecord, ...]:
        return ()

    async def recall_strategies(
        self, who: Principal, query: str, limit: int, agent: str, tools: tuple[str, ...]
    ) -> tuple[KnownStrategy, ...]:
        return ()

    async def style_examples(self, who: Principal, query: str, limit: int) -> tuple[StyleExample, ...]:
        return ()


_RECORDS_FRESH = 60.0
"""Seconds for which the records of a person's tools are good: they are an estimate of many calls."""
_PEOPLE = 1_000
"""People whose records are kept at most."""


class ToolRecordCache:
    """The records of tools that were asked for in the last minute; a flash turn has these and asks for none."""

    def __init__(self) -> None:
        self._of: OrderedDict[tuple[str, str], tuple[float, tuple[ToolRecord, ...]]] = OrderedDict()

    def get(self, who: Principal) -> tuple[ToolRecord, ...] | None:
        """A person's records; `None` where there are no fresh ones."""
        kept = self._of.get((who.tenant, who.user))
        return kept[1] if kept is not None and time.monotonic() - kept[0] < _RECORDS_FRESH else None

    def put(self, who: Principal, records: tuple[ToolRecord, ...]) -> None:
        """Keep a person's records."""
        self._of[who.tenant, who.user] = (time.monotonic(), records)
        self._of.move_to_end((who.tenant, who.user))
        if len(self._of) > _PEOPLE:
            self._of.popitem(last=False)


log = logging.getLogger(__name__)

_CONVERSATIONS = 256
"""Conversations that are kept at most; the one that was longest not spoken in goes first."""
_FRESH = 300.0
"""Seconds for which one is kept."""
_TEXT = 2_000
"""Characters of a message that are kept."""


@dataclass(frozen=True)
class _CachedPast:
    past: Past
    at: float


class RecentHistory:
    """What was last read and said, by tenant and conversation. The store is asked first; this stands in for it alone."""

    def __init__(self) -> None:
        self._of: OrderedDict[tuple[str, str], _CachedPast] = OrderedDict()
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
        if kept is None or not isinstance(end, Completed) or end.reply.tool_calls:
            return
        window = kept.past.window
        seq = window[-1].seq + 2 if window else 1
        said = PastTurn(seq, end.user_text, reply_for_models(end.reply), end.attached)
        focus, labels = end.focus or kept.past.focus, merge_labels(kept.past.labels, end.labels or UNKNOWN)
        self._put(key, replace(kept.past, directive=end.directive, focus=focus, window=(*window, said), labels=labels))

    def _put(self, key: tuple[str, str], past: Past) -> None:
        window = tuple(_short(turn) for turn in past.window[-WINDOW:])
        kept = tuple(_short(turn) for turn in past.kept)
        self._of[key] = _CachedPast(replace(past, window=window, kept=kept, aged=()), time.monotonic())
        self._of.move_to_end(key)
        if len(self._of) > _CONVERSATIONS:
            self._of.popitem(last=False)


def _short(turn: PastTurn) -> PastTurn:
    return replace(turn, user=turn.user[:_TEXT], reply=turn.reply[:_TEXT])


@dataclass(frozen=True)
class Cognition:
    """One of it for a process."""

    settings: CognitionSettings = field(default_factory=CognitionSettings)
    experience: Experience = field(default_factory=NoExperience)
    records: ToolRecordCache = field(default_factory=ToolRecordCache)
    pasts: RecentHistory = field(default_factory=RecentHistory)

    @property
    def scoring(self) -> Scoring:
        """How much a past turn matters, by the settings."""
        return Scoring(openers=self.settings.sentence_openers)
