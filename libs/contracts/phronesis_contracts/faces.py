"""How a tool is shown to models: by names that every client takes, and with a schema told in few words."""

from __future__ import annotations

import re
from typing import Any

LONGEST = 64
"""Characters of a name that every client and model takes."""
PREFIXES = ("odei.neo4j.", "odei_neo4j_")
"""What may stand before a tool's name, in either spelling."""
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_UNTOLD = frozenset({"title", "maxLength", "maxItems", "maxProperties", "minLength", "additionalProperties"})
"""Words of a schema that a caller does without: a limit that is broken is told by name."""
_SAID = frozenset({"title"})
_SHORT = 100
"""Characters of a field's description that is told; a model's own is not, since the tool has one."""


def legal(name: str) -> str:
    """`name` with nothing in it that a client may refuse: dots become underscores."""
    return _ILLEGAL.sub("_", name)[:LONGEST]


def bare(name: str) -> str:
    """`name` without the prefix that some callers put before it."""
    return next((name.removeprefix(prefix) for prefix in PREFIXES if name.startswith(prefix)), name)


def successor(name: str) -> str:
    """The name that the second version of a tool of the first has, whether there is one or not."""
    return f"{name.removesuffix('.v1')}.v2"


def told(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of an input in few words. It allows all that the whole schema does, but for null, which is the same as leaving
    out; what it no longer says is still held to where the call is read.

    Args:
        schema: as pydantic makes it.
    """
    return _defined(_short(schema, _UNTOLD, present=True))


def answered(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of an output without its titles and descriptions; a client holds an answer to the rest."""
    return _defined(_short(schema, _SAID, present=False))


def _short(schema: dict[str, Any], untold: frozenset[str], *, present: bool, field: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word, value in (_present(schema) if present else schema).items():
        match word:
            case "properties":
                found[word] = {name: _short(each, untold, present=present, field=True) for name, each in value.items()}
            case "$defs":
                found[word] = {name: _short(each, untold, present=present) for name, each in value.items()}
            case "default" if present and value in (None, [], {}):
                continue
            case "description" if not (field and present and len(value) <= _SHORT):
                continue
            case _ if word in untold:
                continue
            case "anyOf" | "oneOf" | "allOf" | "prefixItems":
                found[word] = [_short(each, untold, present=present) for each in value]
            case _ if isinstance(value, dict) and word != "default":
                found[word] = _short(value, untold, present=present)
            case _:
                found[word] = value
    return found


def _present(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that may be null as it is where it is not."""
    stated = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if "anyOf" not in schema or len(stated) == len(schema["anyOf"]):
        return schema
    rest = {word: value for word, value in schema.items() if word != "anyOf"}
    return {**rest, **stated[0]} if len(stated) == 1 else {**rest, "anyOf": stated}


def _defined(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema whose definitions stand where they are used, if that is in one place."""
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
