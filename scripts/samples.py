"""Frozen samples of every message, in every form it was ever sent in. What stands in a file stays; new forms are added."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .messages import carried, contracts, files, name, read
from .tree import CONTRACTS

FOLDER = CONTRACTS / "samples"
_PATTERNS = {
    "^[0-9a-f]{64}$": "0" * 64,
    r"^Q[1-4]$": "Q3",
    r"^[0-9a-f]{32}$": "0123456789abcdef0123456789abcdef",
    r"^[a-z0-9][a-z0-9_-]{0,63}$": "acme",
    r"^[A-Za-z_][A-Za-z0-9_]{0,63}$": "Product",
    r"^[A-Za-z0-9][A-Za-z0-9_]{0,63}(/[A-Za-z0-9_]{1,64}){0,3}$": "EntityProject",
    r"^\d{1,9}\.\d{1,9}\.\d{1,9}$": "1.0.1",
    r"^[A-Za-z0-9][A-Za-z0-9_.:-]*$": "goal-1",
    r"^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$": "SERVES",
    r"^[a-z][a-z0-9-]{0,19}$": "weather",
    r"^[A-Za-z0-9_./-]{1,64}$": "forecast",
    r"\S": "some text",
    r"^[^;]+$": "Old Name",
    r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$": "contract-desk",
    r"^[!-~]+$": "openai/gpt-oss-120b",
    r"^[A-Za-z0-9_-]{1,64}$": "get_weather",
}
_FORMATS = {
    "date-time": "2026-11-21T10:00:00Z",
    "date": "2026-11-21",
    "uuid": "6d0a1c9e-53b7-5f0e-9b51-6b1f8e8d4a77",
    "packaged-agent": "nova",
    "tool-name": "recall",
}

Schema = dict[str, Any]


def example(schema: Schema, defs: Schema, field: str = "value") -> Any:
    """A value that fits the schema, with every optional field filled.

    Raises:
        LookupError: a pattern or a format for which no example is known here.
    """
    if "$ref" in schema:
        return example(defs[schema["$ref"].rsplit("/", 1)[-1]], defs, field)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return example(next(s for s in schema[key] if s.get("type") != "null"), defs, field)
    match schema.get("type"):
        case "object":
            if "properties" in schema:
                return {key: example(value, defs, key) for key, value in schema["properties"].items()}
            inner, names = schema.get("additionalProperties"), schema.get("propertyNames", {"const": "name"})
            return {example(names, defs, "name"): example(inner, defs, field) if isinstance(inner, dict) else "anything"}
        case "array" if "prefixItems" in schema:
            return [example(item, defs, field) for item in schema["prefixItems"]]
        case "array":
            return [example(schema.get("items", {}), defs, field)] * max(1, int(schema.get("minItems", 1)))
        case "integer":
            return max(int(schema.get("minimum", 1)), 1)
        case "number":
            return max(float(schema.get("minimum", 0.5)), 0.5)
        case "boolean":
            return True
        case "string":
            return _text(schema, field)
    return "anything"


def _text(schema: Schema, field: str) -> str:
    if "pattern" in schema:
        return _PATTERNS[schema["pattern"]]
    if "format" in schema:
        return _FORMATS[schema["format"]]
    return f"some {field}".ljust(int(schema.get("minLength", 0)), "x")


def committed() -> dict[str, dict[str, list[Any]]]:
    """The samples as they are committed: contract, then `in` or `out`, oldest first."""
    return read(FOLDER)


def documents() -> dict[Path, str]:
    """The samples of every contract, with a new one where a message has gained a field."""
    found = committed()
    for contract in contracts():
        sides = found.setdefault(name(contract), {})
        for side, model in carried(contract).items():
            schema = model.model_json_schema()
            filled = model.model_validate(example(schema, schema.get("$defs", {}))).model_dump(mode="json")
            kept = sides.setdefault(side, [])
            if not any(_shape(sample) == _shape(filled) for sample in kept):
                kept.append(filled)
    return files(FOLDER, found)


def _shape(value: Any) -> Any:
    """The fields of a value, at every depth, without what stands in them."""
    match value:
        case dict():
            return {key: _shape(inner) for key, inner in value.items()}
        case list():
            return [_shape(value[0])] if value else []
    return None
