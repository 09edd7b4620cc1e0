"""The tools that an agent is offered, and the order and the limits of its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from phronesis_contracts import Agent, Message, Principal, Tool
from phronesis_contracts.agents import MAX_TOOL_CALLS, AnswerSource, source_of
from phronesis_contracts.episodes import MEMORY_QUERY_TOOL
from phronesis_contracts.instructions import RETRIEVE_INSTRUCTIONS_TOOL, AgentProfile, RetrieveInstructions
from phronesis_contracts.memory import KEEP_MEMORY_TOOL, RECALL_MEMORY_TOOL, RecallMemory, Scope
from phronesis_contracts.tools import legal_name
from phronesis_contracts.twin import READ_CYPHER_TOOL, ReadCypher

from ..models.reasoner import ToolCall

NONE: Mapping[str, Tool[Any, Any]] = MappingProxyType({})
KEEPS = "keep"
"""The stage of agents that may also write memories."""
RECORDS = "gaps"
"""The stage of agents that answer from records: they keep their order of calls, whatever their allow-list adds to it."""
_OPEN = (Scope.PERSONAL, Scope.DEPARTMENTAL, Scope.MINISTRY)
"""Scopes that a model may name; `global` is reached by the memory service's own fallback."""
_READS = (RECALL_MEMORY_TOOL, RETRIEVE_INSTRUCTIONS_TOOL, READ_CYPHER_TOOL, MEMORY_QUERY_TOOL)
"""What every agent of this kind reads with; `memory_query` is on no agent's list, and none goes without it."""
_ALL_SCOPES = frozenset({Agent.MAESTRO})


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
        """The tools as the chat API takes them."""
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
        """The arguments of a call, checked before anything is done with them.

        Args:
            text: JSON as the model wrote it.
            who: the caller; nothing in the arguments can name another one.

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
            raise BadArguments(_describe_error(error)) from error
        if isinstance(request, RecallMemory) and request.scope not in self.scopes:
            raise BadArguments(f"scope: one of {', '.join(self.scopes)}")
        if isinstance(request, ReadCypher) and "user_id" in request.parameters:
            return request.model_copy(update={"parameters": {**request.parameters, "user_id": who.user}})
        return request


def uses_allow_list(agent: AgentProfile) -> bool:
    """Whether an agent works with the tools of its allow-list alone."""
    return (bool(agent.tools) or agent.only_tools) and RECORDS not in agent.stages


def answers_like_dialogue(agent: AgentProfile) -> bool:
    """Whether rules answer for an own agent as for `dialogue`: without its tools those of the constitution could not."""
    return uses_allow_list(agent) and agent.only_tools and not may_read(agent, AnswerSource.CONSTITUTION)


def may_read(agent: AgentProfile | None, source: AnswerSource) -> bool:
    """Whether an agent may answer from a source: a packaged one from all that its loop reads, a tenant's own as it states."""
    return agent is None or agent.sources is None or source in agent.sources


def may_use(agent: AgentProfile, tool: Tool[Any, Any]) -> bool:
    """Whether an agent may use a tool that its loop offers: its own list and sources take away, and never give."""
    source = source_of(tool)
    listed = not agent.only_tools or tool.name in agent.tools
    return listed and (source is None or may_read(agent, source))


def max_calls(agent: AgentProfile) -> int:
    """Tool calls of one turn that are made for an agent."""
    return min(agent.limits.tool_calls or MAX_TURN_CALLS, MAX_TURN_CALLS)


def build_toolbox(agent: AgentProfile, who: Principal, listed: Mapping[str, Tool[Any, Any]] = NONE) -> Toolbox:
    """The tools that this agent may use for this caller: those of its loop that its own list and sources leave it, less what
    the caller may not call.

    The caller's rights come from its token; no text and no argument can change it.
    """
    keeps = KEEPS in agent.stages
    wanted = (*_READS, *((KEEP_MEMORY_TOOL,) if keeps else ()))
    scopes = tuple(Scope) if keeps and who.acts_as(_ALL_SCOPES) else _OPEN
    tools = {tool.name: tool for tool in wanted if tool.open_to(who) and may_use(agent, tool)}
    more = {legal_name(name): tool for name, tool in listed.items() if name not in tools}
    return Toolbox({**tools, **more}, tuple(scope.value for scope in scopes))


def _describe_error(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_context=False, include_input=False)[:5]
    return "; ".join(f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}" for fault in faults)


MAX_ROUNDS = 8
"""Rounds of one inquiry, the answer counted in."""
MAX_TURN_CALLS = MAX_TOOL_CALLS
"""Tool calls of one turn that are made."""
MAX_ELEMENTS = 32
"""Elements of one call: half of the library is no selection any more."""
MAX_REFUSALS = 3
"""Refused reads in a row after which no more is read: the first, and two tries to repair it."""


class NotAdmitted(Exception):
    """A call that is not made; the model is told why."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail


@dataclass(frozen=True)
class Admitted:
    """A call that is to be made."""

    call: ToolCall
    request: Message


class Gate:
    """Admits the calls of one turn, in the order in which the model wrote them.

    Args:
        most: calls that are made.
    """

    def __init__(self, box: Toolbox, who: Principal, most: int = MAX_TURN_CALLS) -> None:
        self._box = box
        self._who = who
        self._most = most
        self._seen: set[tuple[str, str]] = set()
        self._remembered = RECALL_MEMORY_TOOL.name not in box.tools  # a step without its tool is none
        self._asked: set[str] = set()
        """Kinds of instructions that were asked for and not refused: `mode`, `elements`."""
        self._loaded = RETRIEVE_INSTRUCTIONS_TOOL.name not in box.tools
        self._refusals = 0
        self.made = 0
        """Calls that were admitted."""

    @property
    def full(self) -> bool:
        """Whether no more calls are made."""
        return self.made >= self._most

    def admit(self, call: ToolCall) -> Admitted:
        """A call with its checked arguments. Raises `NotAdmitted`."""
        if call.name not in self._box.tools:
            raise NotAdmitted("unknown_tool", f"the tools are: {', '.join(self._box.tools)}")
        if self.full:
            raise NotAdmitted("too_many_calls", "no more calls are made for this message; answer with what there is")
        try:
            request = self._box.arguments(call.name, call.arguments, self._who)
        except BadArguments as error:
            raise NotAdmitted("bad_arguments", str(error)[:500]) from error
        known = (call.name, request.model_dump_json())
        if known in self._seen:
            raise NotAdmitted("repeated", "this very call was made before; its answer stands above and is to be trusted")
        self._in_order(call.name, request)
        self._seen.add(known)
        self.made += 1
        return Admitted(call, request)

    def _in_order(self, name: str, request: Message) -> None:
        if name == RECALL_MEMORY_TOOL.name:
            self._remembered = True
        elif name == RETRIEVE_INSTRUCTIONS_TOOL.name and isinstance(request, RetrieveInstructions):
            self._instructions("mode" if request.mode else "elements")
            if len(request.elements or ()) > MAX_ELEMENTS:
                raise NotAdmitted("too_many_elements", f"ask for at most {MAX_ELEMENTS}: those that the question needs")
            self._asked.add("mode" if request.mode else "elements")
        elif name == READ_CYPHER_TOOL.name:
            if not self._loaded:
                raise NotAdmitted("out_of_order", "step 2 comes first: load the instructions of the mode, then read")
            if self._refusals >= MAX_REFUSALS:
                raise NotAdmitted("not_readable", "this could not be repaired in two tries; say what could not be found out")

    def _instructions(self, kind: str) -> None:
        if not self._remembered:
            raise NotAdmitted("out_of_order", "step 0 comes first: recall_memory")
        if kind in self._asked:
            raise NotAdmitted("once_only", f"instructions by {kind} are loaded once in a turn; they stand above")
        if kind == "elements" and "mode" not in self._asked:
            raise NotAdmitted("out_of_order", "load the bundle of the mode first, then the elements that it says are needed")

    def settle(self, admitted: Admitted, refused: bool, failed: bool) -> None:
        """Note what came of a call.

        Args:
            refused: whether its owner found it wrong, so that a changed one may pass.
            failed: whether it gave nothing, for whatever reason.
        """
        request = admitted.request
        if isinstance(request, RetrieveInstructions):
            self._loaded = self._loaded or not failed
            if failed:
                self._asked.discard("mode" if request.mode else "elements")
        elif isinstance(request, ReadCypher):
            self._refusals = self._refusals + 1 if refused else self._refusals if failed else 0
        if failed and not refused:
            self._seen.discard((admitted.call.name, request.model_dump_json()))  # it may be tried once more
