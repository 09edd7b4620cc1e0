"""Contracts of memories by scope: what an agent may recall for a caller, and what a maestro keeps."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import ConfigDict, Field

from .messages import Message, Rpc
from .principal import Role
from .tools import Risk, Tool


class Scope(StrEnum):
    """Whose a memory is (N-084)."""

    PERSONAL = "personal"
    DEPARTMENTAL = "departmental"
    MINISTRY = "ministry"
    GLOBAL = "global"
    CSUITE = "csuite"
    SECRETS = "secrets"


class RecallMemory(Message):
    """A question to one scope."""

    model_config = ConfigDict(extra="forbid")

    scope: str
    """`personal`, `departmental` or `ministry`; a maestro also `global`, `csuite` and `secrets`."""
    query_summary: str = Field(min_length=1, max_length=4_000)
    """What is looked for, in plain words."""
    limit: int = Field(default=5, ge=1, le=50, strict=True)
    """Snippets at most."""


class Snippet(Message):
    """One memory found."""

    key: str
    content: str
    confidence: float
    """0 to 1: how sure whoever kept it was."""
    score: float
    """Cosine to the question."""


class RecalledMemories(Message):
    """Snippets, best first."""

    snippets: tuple[Snippet, ...]
    scope: Scope
    """Where they come from: `global` where a department had none (N-097)."""
    degraded: tuple[str, ...] = ()


class KeepMemory(Message):
    """One memory to keep in a scope; the same key again replaces it."""

    model_config = ConfigDict(extra="forbid")

    scope: Scope
    key: str = Field(min_length=1, max_length=200)
    content: str = Field(min_length=1, max_length=20_000)
    confidence: float = Field(default=1.0, ge=0.0, le=1.0)


class KeptMemory(Message):
    """What became of it."""

    id: str
    status: Literal["created", "updated", "unchanged"]


RECALL_MEMORY = Rpc("memory.v1.scoped.recall", RecallMemory, RecalledMemories)
KEEP_MEMORY = Rpc("memory.v1.scoped.keep", KeepMemory, KeptMemory, timeout=10.0)

RECALL_MEMORY_TOOL = Tool(
    "recall_memory",
    "Step 0, remember: find memories by meaning in one scope: personal, departmental or ministry. Reads only; what is kept for"
    " the executive circle, and secrets, are barred.",
    RECALL_MEMORY,
    roles=frozenset({Role.NOOR, Role.MAESTRO, Role.ADMIN}),
)
KEEP_MEMORY_TOOL = Tool(
    "keep_memory",
    "Keep a memory in a scope; the same key again replaces it.",
    KEEP_MEMORY,
    risk=Risk.MEDIUM,
    roles=frozenset({Role.MAESTRO, Role.ADMIN}),
)
