"""What strangers write: lists of tools, parsed, judged and pinned, the schemas of their arguments, and how agents are offered
them.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import unquote

from jsonschema import Draft7Validator, Draft201909Validator, Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from pydantic import ConfigDict, model_validator
from referencing import Registry

from phronesis_bus import Call
from phronesis_contracts import Message, Principal, Rpc, Tool
from phronesis_contracts.outside import PREFIX, AcceptedTool, InspectedTool, ToolState
from phronesis_contracts.tools import LONGEST_NAME, legal_name, schema_of_input

from ..turns.ports import Neighbours
from .ports import OutsideCaller, Server, Servers

LARGEST = 32_000
"""Characters of a schema as JSON, and of the arguments of one call."""
_DEEPEST = 24
_EXPANDED = 2_000
"""Nodes of a schema with every reference followed: what one check may cost at most."""
_DRAFTS = (Draft202012Validator, Draft201909Validator, Draft7Validator)
_UNKNOWN = ("$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "patternProperties")
"""Words that lead out of the schema, in circles, or to expressions that a stranger wrote."""
_HIDDEN = ("Cf", "Cs", "Co")


class UnfitSchema(ValueError):
    """A schema that calls are not held to; the text says why."""


def check_schema(schema: Any) -> dict[str, Any]:
    """The schema, once it is known that holding arguments to it ends soon and reaches nothing else.

    Raises:
        Unfit: it is too large, no schema, refers to elsewhere or to itself, or holds characters that nobody sees.
    """
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise UnfitSchema("its arguments are no object")
    _plain(schema, 0)
    try:
        size = len(json.dumps(schema, allow_nan=False))
    except (ValueError, TypeError) as error:
        raise UnfitSchema("its schema is no JSON") from error
    if size > LARGEST:
        raise UnfitSchema(f"its schema is over {LARGEST} characters")
    _count_expanded(schema, schema, (), [0])
    try:
        _draft(schema).check_schema(schema)
        schema_of_input(schema)
    except (SchemaError, AttributeError, TypeError, ValueError, RecursionError) as error:
        raise UnfitSchema("its schema is not one of JSON Schema as models are told it") from error
    return schema


def find_fault(schema: dict[str, Any], arguments: dict[str, Any]) -> str | None:
    """What is wrong with arguments, in few words; `None` where they fit. Patterns and formats are left to the server."""
    try:
        if len(json.dumps(arguments, allow_nan=False)) > LARGEST:
            return f"the arguments are over {LARGEST} characters"
        # The registry knows nothing, so that no reference is ever fetched.
        error = best_match(_build_validator(_draft(schema))(schema, registry=Registry()).iter_errors(arguments))
    except (ValueError, RecursionError):
        return "the arguments are no JSON"
    if error is None:
        return None
    where = ".".join(str(part) for part in error.absolute_path)
    return f"{where}: {error.message}"[:300] if where else error.message[:300]


def strip_invisible(text: str) -> str:
    """The text without control characters and those that nobody sees."""
    return "".join(c for c in text if c in "\n\t" or not _hidden(c))


def _hidden(character: str) -> bool:
    category = unicodedata.category(character)
    return (category == "Cc" and character not in "\n\t\r") or category in _HIDDEN


def _plain(value: Any, depth: int) -> None:
    if depth > _DEEPEST:
        raise UnfitSchema(f"its schema is nested over {_DEEPEST} levels")
    if isinstance(value, str) and any(_hidden(c) for c in value):
        raise UnfitSchema("its schema holds characters that nobody sees")
    for each in _members(value):
        _plain(each, depth + 1)


def _members(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _count_expanded(value: Any, root: dict[str, Any], within: tuple[str, ...], count: list[int]) -> None:
    count[0] += 1
    if count[0] > _EXPANDED:
        raise UnfitSchema(f"its schema has over {_EXPANDED} nodes")
    if isinstance(value, dict):
        if word := next((word for word in _UNKNOWN if word in value), None):
            raise UnfitSchema(f"its schema uses {word}")
        if "$ref" in value:
            ref = value["$ref"]
            if not isinstance(ref, str) or not ref.startswith("#/") or ref in within:
                raise UnfitSchema("its schema refers to elsewhere or to itself")
            _count_expanded(_target(root, ref), root, (*within, ref), count)
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _count_expanded(each, root, within, count)


def _target(root: dict[str, Any], ref: str) -> Any:
    found: Any = root
    for part in ref[2:].split("/"):
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        if not isinstance(found, dict) or name not in found:
            raise UnfitSchema("its schema refers to what it does not have")
        found = found[name]
    return found


def _draft(schema: dict[str, Any]) -> type[Validator]:
    found: type[Validator] = validator_for(schema, default=Draft202012Validator)
    if found not in _DRAFTS:
        raise ValueError("another draft")
    return found


def _ignore_keyword(*_: Any) -> Iterator[Any]:
    return iter(())


_HELD = {draft: extend(draft, {"pattern": _ignore_keyword}) for draft in _DRAFTS}


def _build_validator(draft: type[Validator]) -> type[Validator]:
    held: type[Validator] = _HELD[draft]
    return held


MOST = 200
"""Tools of one server that are looked at."""
_DESCRIPTION = 4_000
"""Characters of a description."""
_NAME = re.compile(r"[A-Za-z0-9_./-]{1,64}")
_DIFF = 4_000


@dataclass(frozen=True)
class ListedTool:
    """A tool as its server describes it now."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] | None = None
    pin: str = ""
    reason: str = ""
    """Why it cannot be accepted; empty where it can."""


def full_tool_name(server: str, tool: str) -> str:
    return f"{PREFIX}{server}.{tool}"


def pin_hash(name: str, description: str, parameters: Mapping[str, Any]) -> str:
    """The hash of what a model is told of a tool; another one after a change of a single character."""
    return hashlib.sha256(json.dumps([name, description, parameters], sort_keys=True).encode()).hexdigest()


def parse_tools(server: str, raw: Sequence[Any]) -> tuple[ListedTool, ...]:
    """The tools of a list, whatever stands in it: each is usable or says why not, and one that has no name is left out.

    Args:
        raw: the members of `tools`, as JSON was parsed.
    """
    named = [one for one in raw[:MOST] if isinstance(one, dict) and isinstance(one.get("name"), str)]
    called = Counter(legal_name(full_tool_name(server, one["name"])) for one in named)
    return tuple(_list_tool(server, one, called) for one in named)


def _list_tool(server: str, one: dict[str, Any], called: Counter[str]) -> ListedTool:
    name, description = one["name"], one.get("description") or ""
    whole = full_tool_name(server, name)
    if not _NAME.fullmatch(name):
        return ListedTool(strip_invisible(name)[:64], reason="its name has other characters than letters, digits and _ . / -")
    if len(whole) > LONGEST_NAME:
        return ListedTool(name, reason=f"with its server's, its name is over {LONGEST_NAME} characters")
    if called[legal_name(whole)] > 1:
        return ListedTool(name, reason="another tool of the server has the same name, or one that models cannot tell from it")
    if not isinstance(description, str) or len(description) > _DESCRIPTION:
        return ListedTool(name, reason=f"its description is no text of at most {_DESCRIPTION} characters")
    description = strip_invisible(description)
    try:
        parameters = check_schema(one.get("inputSchema"))
    except UnfitSchema as error:
        return ListedTool(name, description, reason=str(error))
    return ListedTool(name, description, parameters, pin_hash(name, description, parameters))


def compare_tools(tools: Sequence[ListedTool], accepted: Sequence[AcceptedTool]) -> tuple[InspectedTool, ...]:
    """How what a server says now stands to what was accepted; what it no longer has comes last."""
    known = {tool.name: tool for tool in accepted}
    names = {tool.name for tool in tools}
    gone = (InspectedTool(name=name, state=ToolState.GONE) for name in known if name not in names)
    return (*(_compare_tool(tool, known.get(tool.name)) for tool in tools), *gone)


def _compare_tool(tool: ListedTool, known: AcceptedTool | None) -> InspectedTool:
    shown = InspectedTool(
        name=tool.name,
        state=ToolState.UNUSABLE,
        description=tool.description,
        parameters=dict(tool.parameters or {}),
        pin=tool.pin,
        reason=tool.reason,
    )
    if tool.reason:
        return shown
    if known is None:
        return shown.model_copy(update={"state": ToolState.NEW})
    if known.pin == tool.pin:
        return shown.model_copy(update={"state": ToolState.ACCEPTED})
    return shown.model_copy(update={"state": ToolState.CHANGED, "diff": _diff(known, tool)})


def _diff(known: AcceptedTool, tool: ListedTool) -> str:
    before, after = _lines(known.description, known.parameters), _lines(tool.description, tool.parameters or {})
    return "\n".join(difflib.unified_diff(before, after, "accepted", "now", lineterm=""))[:_DIFF]


def _lines(description: str, parameters: Mapping[str, Any]) -> list[str]:
    return [*description.splitlines(), *json.dumps(parameters, indent=1, sort_keys=True).splitlines()]


EVERY_SERVER = "*"
"""In an agent's profile: all of the tenant's servers."""
MOST_OFFERED = 64
"""Outside tools that one agent is offered."""


class OutsideArguments(Message):
    """Arguments of an outside tool. Each accepted tool has a subclass that holds them to its pinned schema."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool: ClassVar[str] = ""
    """`outside.<server>.<tool>`."""
    idempotent: ClassVar[bool] = False
    """Whether a call whose answer was lost may be made again."""
    schema_: ClassVar[dict[str, Any]] = {}

    given: dict[str, Any]
    """As they are sent."""

    @model_validator(mode="before")
    @classmethod
    def _held(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            raise ValueError("the arguments must be one JSON object")
        if wrong := find_fault(cls.schema_, given):
            raise ValueError(wrong)
        return {"given": given}

    @classmethod
    def model_json_schema(cls, *args: Any, **more: Any) -> dict[str, Any]:
        """The pinned schema; a copy, which may be told in fewer words."""
        found: dict[str, Any] = json.loads(json.dumps(cls.schema_))
        return found


class OutsideResult(Message):
    """What an outside tool gave: a stranger's data, and never an instruction."""

    text: str
    truncated: bool = False


class WhichServers(Message):
    """Servers by name, `*` for all."""

    servers: tuple[str, ...]


class OfferedTool(Message):
    """An accepted tool of a server that is switched on."""

    server: str
    tool: AcceptedTool


class ToolOffers(Message):
    """What an agent may be offered."""

    tools: tuple[OfferedTool, ...] = ()


OFFERED: Tool[WhichServers, ToolOffers] = Tool(
    "outside.offered", "The outside tools that are accepted.", Rpc("outside.v1.offered", WhichServers, ToolOffers)
)
CALLED = "outside.v1.called"
"""The subject that all outside tools share. Nobody serves it on the bus: turns alone ask it, of their own service."""


def build_tool(offered: OfferedTool) -> Tool[OutsideArguments, OutsideResult]:
    """An accepted tool as a contract with a face."""
    name, accepted = full_tool_name(offered.server, offered.tool.name), offered.tool
    held = type(
        "OutsideArguments_",
        (OutsideArguments,),
        {
            "__module__": __name__,
            "__annotations__": {"tool": ClassVar[str], "idempotent": ClassVar[bool], "schema_": ClassVar[dict[str, Any]]},
            "tool": name,
            "idempotent": accepted.idempotent,
            "schema_": accepted.parameters,
        },
    )
    rpc: Rpc[Any, OutsideResult] = Rpc(CALLED, held, OutsideResult)
    return Tool(name, accepted.description, rpc, risk=accepted.risk)


async def fetch_outside_tools(neighbours: Neighbours, who: Principal, servers: tuple[str, ...]) -> dict[str, Tool[Any, Any]]:
    """The outside tools of an agent by name. Raises `ServiceError`: they cannot be had at this time."""
    if not servers:
        return {}
    found = await neighbours.ask(who, OFFERED.rpc, WhichServers(servers=servers))
    return {tool.name: tool for tool in map(build_tool, found.tools)}


class Offers:
    """Answers turns: which outside tools there are, and what a call of one gives."""

    def __init__(self, servers: Servers, caller: OutsideCaller) -> None:
        self._servers = servers
        self._caller = caller

    async def offered(self, call: Call, request: WhichServers) -> ToolOffers:
        """The accepted tools of servers that are switched on, 64 at most."""
        found = [server for server in await self._servers.of(call.who.tenant) if server.enabled and _named(server, request)]
        tools = [OfferedTool(server=server.name, tool=tool) for server in found for tool in server.tools]
        return ToolOffers(tools=tuple(tools[:MOST_OFFERED]))

    async def called(self, call: Call, request: OutsideArguments) -> OutsideResult:
        """Call a tool; see `OutsideCaller`."""
        return OutsideResult(**await self._caller.call(call.who, request.tool, request.given, call.key or ""))


def _named(server: Server, request: WhichServers) -> bool:
    return EVERY_SERVER in request.servers or server.name in request.servers
