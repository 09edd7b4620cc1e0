"""The tools that an agent is offered: which, how the model sees them, and what arguments they take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from phronesis_contracts import Message, Principal, Role, Tool
from phronesis_contracts.cypher import READ_CYPHER_TOOL, ReadCypher
from phronesis_contracts.episodes import MEMORY_QUERY_TOOL
from phronesis_contracts.faces import legal
from phronesis_contracts.instructions import RETRIEVE_INSTRUCTIONS_TOOL, AgentProfile
from phronesis_contracts.scoped_memory import KEEP_MEMORY_TOOL, RECALL_MEMORY_TOOL, RecallMemory, Scope

NONE: Mapping[str, Tool[Any, Any]] = MappingProxyType({})
KEEPS = "keep"
"""The stage of agents that may also write memories (NC-093)."""
RECORDS = "gaps"
"""The stage of agents that answer from records: they keep their order of calls, whatever their allow-list adds to it."""
_OPEN = (Scope.PERSONAL, Scope.DEPARTMENTAL, Scope.MINISTRY)
"""Scopes that a model may name (N-079); `global` is reached by the memory service's own fallback (NC-034)."""
_READS = (RECALL_MEMORY_TOOL, RETRIEVE_INSTRUCTIONS_TOOL, READ_CYPHER_TOOL, MEMORY_QUERY_TOOL)
"""What every agent of this kind reads with; `memory_query` is on no agent's list, and none goes without it (V-058)."""
_ALL_SCOPES = frozenset({Role.MAESTRO, Role.ADMIN})


class BadArguments(ValueError):
    """What the model gave does not fit the tool; the text says why, for the model to repair it."""


@dataclass(frozen=True)
class Toolbox:
    """The tools of one turn."""

    tools: Mapping[str, Tool[Any, Any]]
    """By the name that the model sees."""
    scopes: tuple[str, ...]
    shortened: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """How the schema of an input is told; as it is where nothing is stated."""

    def definitions(self) -> tuple[dict[str, Any], ...]:
        """The tools as the chat API takes them (NC-072)."""
        return tuple({"type": "function", "function": self._function(*named)} for named in self.tools.items())

    def _function(self, name: str, tool: Tool[Any, Any]) -> dict[str, Any]:
        function = tool.function() | {"name": name}
        if self.shortened is not None:
            function["parameters"] = self.shortened(function["parameters"])
        if tool is RECALL_MEMORY_TOOL:
            parameters = function["parameters"]
            scope = {**parameters["properties"]["scope"], "enum": list(self.scopes)}
            function["parameters"] = {**parameters, "properties": {**parameters["properties"], "scope": scope}}
        return function

    def arguments(self, name: str, text: str, who: Principal) -> Message:
        """The arguments of a call, checked before anything is done with them (N-154).

        Args:
            name: of a tool that is in the box.
            text: JSON as the model wrote it.
            who: the caller; nothing in the arguments can name another one (NC-067).

        Raises:
            BadArguments: they do not fit.
        """
        try:
            given = from_json(text or "{}", allow_inf_nan=False)
        except ValueError as error:
            raise BadArguments(f"the arguments are not JSON: {error}") from error
        if not isinstance(given, dict):
            raise BadArguments("the arguments must be one JSON object")
        model: type[Message] = self.tools[name].rpc.input
        try:
            # Checked as JSON: a list stands for a tuple, and a text never for a number where the field is strict.
            request = model.model_validate_json(text or "{}")
        except ValidationError as error:
            raise BadArguments(_told(error)) from error
        if isinstance(request, RecallMemory) and request.scope not in self.scopes:
            raise BadArguments(f"scope: one of {', '.join(self.scopes)}")
        if isinstance(request, ReadCypher) and "user_id" in request.parameters:
            return request.model_copy(update={"parameters": {**request.parameters, "user_id": who.user}})
        return request


def counsels(agent: AgentProfile) -> bool:
    """Whether an agent works with the tools of its allow-list alone."""
    return bool(agent.tools) and RECORDS not in agent.stages


def toolbox(agent: AgentProfile, who: Principal, listed: Mapping[str, Tool[Any, Any]] = NONE) -> Toolbox:
    """The tools that this agent may use for this caller: the agent's own, less what the caller's role may not call.

    Args:
        agent: the agent.
        who: the caller.
        listed: what the agent's allow-list adds, as the caller's desk has it.

    The role is the caller's, from the token (N-221); no text and no argument can change it (N-226).
    """
    keeps = KEEPS in agent.stages
    wanted = (*_READS, *((KEEP_MEMORY_TOOL,) if keeps else ()))
    scopes = tuple(Scope) if keeps and who.role in _ALL_SCOPES else _OPEN
    tools = {tool.name: tool for tool in wanted if who.role in tool.roles}
    more = {legal(name): tool for name, tool in listed.items() if name not in tools}
    return Toolbox({**tools, **more}, tuple(scope.value for scope in scopes))


def _told(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_context=False, include_input=False)[:5]
    return "; ".join(f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}" for fault in faults)
