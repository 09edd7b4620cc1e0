"""A tool: a contract with a name, and how it is shown to models: legal names, and schemas in few words."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any, Generic

from .messages import In, Out_, Rpc
from .principal import EVERYONE, Agent, Principal


class Risk(IntEnum):
    """The one scale of risk (read < low < medium < high)."""

    READ = 0
    LOW = 1
    MEDIUM = 2
    HIGH = 3


class Effect(StrEnum):
    """What a call does beyond its answer."""

    READ = "read"
    """Nothing: it reads inside the tenant."""
    WRITE = "write"
    OUTBOUND = "outbound"
    """It sends its arguments out of the tenant."""
    MESSAGE = "message"
    """Other people are shown it, or their agents are told it."""
    SPEND = "spend"
    """It begins or allows work that costs money."""


@dataclass(frozen=True)
class Tool(Generic[In, Out_]):
    """A contract that models, people and outside systems may call by name."""

    name: str
    description: str
    rpc: Rpc[In, Out_]
    risk: Risk = field(default=Risk.READ, kw_only=True)
    agents: frozenset[Agent] = field(default=EVERYONE, kw_only=True)
    """The agents that may use it; administrators may use every tool."""
    irreversible: bool = field(default=False, kw_only=True)
    kind: Effect = field(default=Effect.WRITE, kw_only=True)
    """What it does, where it does more than read."""

    @property
    def effect(self) -> Effect:
        """What a call of it does beyond its answer."""
        return Effect.READ if self.risk is Risk.READ else self.kind

    def open_to(self, who: Principal) -> bool:
        """Whether the caller's role and permissions let it use the tool, and its key names no others alone."""
        if who.tools is not None and self.name not in who.tools:
            return False
        return who.acts_as(self.agents) if self.risk is Risk.READ else who.writes_as(self.agents)

    def function(self) -> dict[str, Any]:
        """The tool as a model's function: name, description and JSON schema of the input."""
        return {"name": self.name, "description": self.description, "parameters": self.rpc.input.model_json_schema()}


LONGEST_NAME = 64
"""Characters of a name that every client and model takes."""
NAME_PREFIXES = ("odei.neo4j.", "odei_neo4j_")
"""What may stand before a tool's name, in either spelling."""
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_OMITTED_OF_INPUTS = frozenset({"title", "maxLength", "maxItems", "maxProperties", "minLength", "additionalProperties"})
"""Words of a schema that a caller does without: a limit that is broken is told by name."""
_OMITTED_OF_OUTPUTS = frozenset({"title"})
_LONGEST_DESCRIPTION = 100
"""Characters of a field's description that is told; a model's own is not, since the tool has one."""


def legal_name(name: str) -> str:
    """`name` with nothing in it that a client may refuse: dots become underscores."""
    return _ILLEGAL.sub("_", name)[:LONGEST_NAME]


def bare_name(name: str) -> str:
    """`name` without the prefix that some callers put before it."""
    return next((name.removeprefix(prefix) for prefix in NAME_PREFIXES if name.startswith(prefix)), name)


def successor_name(name: str) -> str:
    """The name that the second version of a tool of the first has, whether there is one or not."""
    return f"{name.removesuffix('.v1')}.v2"


def schema_of_input(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of an input in few words. It allows all that the whole schema does, but for null, which is the same as leaving
    out; what it no longer says is still held to where the call is read.
    """
    return _inline_definitions(_shorten(schema, _OMITTED_OF_INPUTS, present=True))


def schema_of_output(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of an output without its titles and descriptions; a client holds an answer to the rest."""
    return _inline_definitions(_shorten(schema, _OMITTED_OF_OUTPUTS, present=False))


def _shorten(schema: dict[str, Any], untold: frozenset[str], *, present: bool, field: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word, value in (_without_null(schema) if present else schema).items():
        match word:
            case "properties":
                found[word] = {name: _shorten(each, untold, present=present, field=True) for name, each in value.items()}
            case "$defs":
                found[word] = {name: _shorten(each, untold, present=present) for name, each in value.items()}
            case "default" if present and value in (None, [], {}):
                continue
            case "description" if not (field and present and len(value) <= _LONGEST_DESCRIPTION):
                continue
            case _ if word in untold:
                continue
            case "anyOf" | "oneOf" | "allOf" | "prefixItems":
                found[word] = [_shorten(each, untold, present=present) for each in value]
            case _ if isinstance(value, dict) and word != "default":
                found[word] = _shorten(value, untold, present=present)
            case _:
                found[word] = value
    return found


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    stated = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if "anyOf" not in schema or len(stated) == len(schema["anyOf"]):
        return schema
    rest = {word: value for word, value in schema.items() if word != "anyOf"}
    return {**rest, **stated[0]} if len(stated) == 1 else {**rest, "anyOf": stated}


def _inline_definitions(schema: dict[str, Any]) -> dict[str, Any]:
    defs: dict[str, Any] = schema.get("$defs", {})
    text = repr(schema)
    once = {f"#/$defs/{name}": name for name in defs if text.count(f"'#/$defs/{name}'") == 1}

    def placed(value: Any) -> Any:
        if isinstance(value, list):
            return [placed(each) for each in value]
        if not isinstance(value, dict):
            return value
        if isinstance(ref := value.get("$ref"), str) and ref in once:
            rest = {word: each for word, each in value.items() if word != "$ref"}
            return {**placed(defs[once[ref]]), **rest}
        return {word: placed(each) for word, each in value.items()}

    found: dict[str, Any] = placed({word: value for word, value in schema.items() if word != "$defs"})
    left = {name: placed(each) for name, each in defs.items() if f"#/$defs/{name}" not in once}
    return {**found, "$defs": left} if left else found
