"""A tool: a contract with a face. From this one value come the model's function, the REST route, MCP and the audit entry."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Generic

from .messages import In, Out_, Rpc
from .principal import EVERYONE, Role


class Risk(IntEnum):
    """The one scale of risk (read < low < medium < high)."""

    READ = 0
    LOW = 1
    MEDIUM = 2
    HIGH = 3


@dataclass(frozen=True)
class Tool(Generic[In, Out_]):
    """A contract that models, people and outside systems may call by name."""

    name: str
    description: str
    rpc: Rpc[In, Out_]
    risk: Risk = field(default=Risk.READ, kw_only=True)
    roles: frozenset[Role] = field(default=EVERYONE, kw_only=True)
    irreversible: bool = field(default=False, kw_only=True)

    def function(self) -> dict[str, Any]:
        """The tool as a model's function: name, description and JSON schema of the input."""
        return {"name": self.name, "description": self.description, "parameters": self.rpc.input.model_json_schema()}
