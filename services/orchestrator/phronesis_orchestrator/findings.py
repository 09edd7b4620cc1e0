"""What an inquiry has found so far: what was read, remembered and loaded, and what could not be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from phronesis_contracts.cypher import CypherRows, ReadCypher
from phronesis_contracts.instructions import InstructionText
from phronesis_contracts.scoped_memory import RecalledMemories

CHAIN_TAG = "business_chain_"
"""Beginning of the tags of elements that hold a chain."""


@dataclass(frozen=True)
class Read:
    """One question to the twin that was answered."""

    statement: str
    parameters: dict[str, Any]
    rows: tuple[dict[str, Any], ...]
    truncated: bool


@dataclass
class Findings:
    """Everything that an answer may rest on."""

    reads: list[Read] = field(default_factory=list)
    unanswered: int = 0
    """Questions to the twin that were refused or failed since the last one that was answered."""
    memories: list[tuple[str, int]] = field(default_factory=list)
    """Scopes that were asked, with how many snippets each gave."""
    tags: list[str] = field(default_factory=list)
    """Instructions that were loaded."""
    missing_tags: list[str] = field(default_factory=list)
    instruction_tokens: int = 0

    @property
    def rows(self) -> tuple[dict[str, Any], ...]:
        """All rows, in the order read."""
        return tuple(row for read in self.reads for row in read.rows)

    @property
    def chains(self) -> tuple[str, ...]:
        """The chains whose instructions were loaded."""
        return tuple(tag.removeprefix(CHAIN_TAG) for tag in self.tags if tag.startswith(CHAIN_TAG))

    @property
    def executed(self) -> str | None:
        """What was read with, joined with `;`; `None` where nothing was (N-066, NC-028)."""
        return "; ".join(read.statement.strip().rstrip(";") for read in self.reads) or None

    def read(self, request: ReadCypher, answer: CypherRows) -> None:
        """Note an answered question."""
        self.reads.append(Read(request.cypher_query, request.parameters, answer.rows, answer.truncated))
        self.unanswered = 0

    def recalled(self, answer: RecalledMemories) -> None:
        """Note what memory gave."""
        self.memories.append((answer.scope.value, len(answer.snippets)))

    def loaded(self, answer: InstructionText) -> None:
        """Note which instructions came."""
        self.tags.extend(answer.tags)
        self.missing_tags.extend(answer.missing)
        self.instruction_tokens += answer.tokens

    def account(self) -> str:
        """How the answer came about, from the record and not from the model."""
        scopes = ", ".join(f"{scope} ({count})" for scope, count in self.memories) or "none"
        parts = [f"Memory asked: {scopes}.", f"Instructions loaded: {', '.join(self.tags) or 'none'}."]
        if self.missing_tags:
            parts.append(f"Not there: {', '.join(self.missing_tags)}.")
        parts.append(f"Reads: {len(self.reads)}, rows: {len(self.rows)}.")
        if self.unanswered:
            parts.append(f"Reads that failed and were not repaired: {self.unanswered}.")
        return " ".join(parts)
