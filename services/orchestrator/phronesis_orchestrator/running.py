"""A turn in the hands of a loop: its journalled steps, its neighbours, and what it shows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.trace import SpanKind

from phronesis_bus.tracing import Tracing
from phronesis_contracts.memory import AugmentedMemoryContext
from phronesis_contracts.orchestrator import ToolOutcome, TurnProgress

from .cognition.stages import Cognition
from .domain import Claim
from .measures import INSTRUCTION_TOKENS, STAGE
from .policy.waiting import Asking
from .ports import Neighbours
from .settings import OrchestratorSettings
from .steps import Steps
from .timing import Outcome, timed
from .traces.record import Record

Show = Callable[[Claim, TurnProgress], Awaitable[None]]


@dataclass
class Running:
    """A turn in the hands of a loop."""

    claim: Claim
    steps: Steps
    tracing: Tracing
    neighbours: Neighbours
    settings: OrchestratorSettings
    progress: Show
    degraded: list[str]
    instruction_tokens: int = 0
    """Tokens of the instructions that tools loaded (N-227)."""
    tools: list[ToolOutcome] = field(default_factory=list)
    """What came of the tool calls so far (V-136)."""
    tier: str | None = None
    """The tier that the message was given (V-012)."""
    approvals: Asking | None = None
    """Where people are asked; nobody can be where there is none."""
    record: Record = field(default_factory=Record)
    """How the answer comes about."""
    cognition: Cognition = field(default_factory=Cognition)

    def phase(self, name: str) -> AbstractContextManager[Outcome]:
        """A span for one phase (D-009), its time (D-148), and its place in the record."""
        return self.record.staged(name, timed(self.tracing, STAGE, f"phase {name}", name.partition(" ")[2]))

    def degrade(self, part: str) -> None:
        """Mark the reply: it was made without `part`."""
        if part not in self.degraded:
            self.degraded.append(part)

    def instructions(self, tokens: int) -> None:
        """Count tokens of instructions that were loaded (N-227)."""
        self.instruction_tokens += tokens
        if tokens:
            self.tracing.metrics.observe(INSTRUCTION_TOKENS, tokens, self.claim.agent)

    async def show(self, phase: str, **detail: Any) -> None:
        """Show that a phase is done (D-131)."""
        self.record.note(detail)
        line = TurnProgress(
            turn_id=self.claim.turn_id,
            kind="phase",
            conversation_id=self.claim.conversation_id,
            phase=phase,
            detail=detail,
        )
        await self.progress(self.claim, line)

    async def retrieve(self, phrases: tuple[str, ...]) -> AugmentedMemoryContext:
        """Hybrid retrieval within its limit of time and size."""
        settings = self.settings
        named = {"gen_ai.operation.name": "retrieval", "gen_ai.data_source.id": "knowledge"}
        with self.tracing.span("retrieval knowledge", kind=SpanKind.CLIENT, **named):
            return await self.neighbours.retrieve(self.claim.who, phrases, settings.memory_tokens, settings.retrieval_limit)
