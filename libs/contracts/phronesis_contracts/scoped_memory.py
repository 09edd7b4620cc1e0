"""Contracts of memories by scope: what an agent may recall for a caller, and what a maestro keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

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


RECALLED: Mapping[Role, frozenset[Scope]] = {
    Role.NOOR: frozenset({Scope.PERSONAL, Scope.DEPARTMENTAL, Scope.MINISTRY, Scope.GLOBAL}),
    Role.MAESTRO: frozenset(Scope),
    Role.ADMIN: frozenset(Scope),
}
"""What each role may recall (N-084, N-223); a role that is not here, nothing."""


class RecallMemory(Message):
    """A question to one scope."""

    model_config = ConfigDict(extra="forbid")

    scope: str
    """A scope that the caller's role may recall. It is no enumeration: a barred one and an unknown one are two refusals."""
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
    """The caller's own for `personal`, `departmental` and `ministry`; the tenant's for the others."""
    key: str = Field(min_length=1, max_length=200)
    """Its name in that scope."""
    content: str = Field(min_length=1, max_length=20_000)
    confidence: float = Field(default=1.0, ge=0.0, le=1.0)
    """How sure whoever keeps it is."""


class KeptMemory(Message):
    """What became of it."""

    id: str
    status: Literal["created", "updated", "unchanged"]


class ForgetMemory(Message):
    """One memory of a scope to remove for good."""

    model_config = ConfigDict(extra="forbid")

    scope: Scope
    key: str = Field(min_length=1, max_length=200)


class ForgottenMemory(Message):
    """What was removed."""

    id: str | None = None
    """Of the memory; `None` where there was none with that key."""


@dataclass(frozen=True)
class RecallTool(Tool[RecallMemory, RecalledMemories]):
    """The tool that recalls, as models in several roles see it."""

    def function(self, role: Role = Role.NOOR) -> dict[str, Any]:
        """The tool as a model's function, with the scopes that a model in this role may name.

        Args:
            role: the caller's. For `noor` there is no `global`, which it gets as a fallback alone (N-079, NC-034).
        """
        function = super().function()
        named = RECALLED.get(role, frozenset()) - ({Scope.GLOBAL} if role is Role.NOOR else set())
        function["parameters"]["properties"]["scope"]["enum"] = [str(scope) for scope in Scope if scope in named]
        return function


RECALL_MEMORY = Rpc("memory.v1.scoped.recall", RecallMemory, RecalledMemories)
KEEP_MEMORY = Rpc("memory.v1.scoped.keep", KeepMemory, KeptMemory, timeout=10.0)
FORGET_MEMORY = Rpc("memory.v1.scoped.forget", ForgetMemory, ForgottenMemory, timeout=10.0)

RECALL_MEMORY_TOOL = RecallTool(
    "recall_memory",
    "Step 0, remember: find memories by meaning in one scope: personal, departmental or ministry. Reads only; what is kept for"
    " the executive circle, and secrets, are barred.",
    RECALL_MEMORY,
    roles=frozenset(RECALLED),
)
KEEP_MEMORY_TOOL = Tool(
    "keep_memory",
    "Keep a memory in a scope; the same key again replaces it.",
    KEEP_MEMORY,
    risk=Risk.MEDIUM,
    roles=frozenset({Role.MAESTRO, Role.ADMIN}),
)
FORGET_MEMORY_TOOL = Tool(
    "forget_memory",
    "Remove a memory from a scope for good, by its key.",
    FORGET_MEMORY,
    risk=Risk.MEDIUM,
    roles=frozenset({Role.MAESTRO, Role.ADMIN}),
    irreversible=True,
)
