"""`docs/generated/rest.md`: every route of the gateway and every body, from the API's description."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from . import openapi
from .tree import GENERATED, GENERATED_DOCS

PATH = GENERATED_DOCS / "rest.md"
METHODS = ("get", "post", "put", "patch", "delete")
_HEAD = f"""# REST

<!-- {GENERATED} -->
Routes need a key, `Authorization: Bearer phr_...`, unless they say that they need none. A refused request is answered with
`application/problem+json`: `code` says why, `field` where, `retry_after` when to repeat it. [openapi.json](openapi.json) is the
same for programs, and a gateway serves it at `/openapi.json`.
"""
_TITLES = {"mcp": "MCP", "mcp-servers": "MCP servers", "openai": "OpenAI-compatible"}
_LIMITS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
}
Schema = Mapping[str, Any]


def documents() -> dict[Path, str]:
    """The page."""
    return {PATH: page(openapi.document())}


def page(described: Mapping[str, Any]) -> str:
    """The page of an OpenAPI document: routes by their tag, then the models."""
    by_tag: dict[str, list[str]] = {}
    for path, methods in sorted(described["paths"].items()):
        for method in METHODS:
            if method in methods:
                tag = methods[method].get("tags", ["others"])[0]
                by_tag.setdefault(tag, []).extend(_route(method, path, methods[method]))
    lines = [_HEAD]
    for tag, routes in sorted(by_tag.items()):
        lines += [f"## {_TITLES.get(tag, tag.capitalize())}", "", *routes]
    if shared := described["components"].get("responses"):
        lines += _errors(shared)
    lines += ["## Models", ""]
    for name, schema in sorted(described["components"]["schemas"].items()):
        lines += _model(name, schema)
    return "\n".join(lines).rstrip() + "\n"


def _route(method: str, path: str, route: Schema) -> Iterator[str]:
    words = [f"{route['summary']}." if "summary" in route else "", route.get("description", "")]
    yield from (f"### {method.upper()} {path}", "", _prose(" ".join(words)), "")
    if not route.get("security"):
        yield from ("Needs no key.", "")
    parameters = route.get("parameters", ())
    if parameters:
        yield from ("| parameter | in | type | |", "| --- | --- | --- | --- |")
        for one in parameters:
            said = _said(one["schema"], one.get("description", ""), one.get("required", False))
            yield f"| `{one['name']}` | {one['in']} | {_type(one['schema'])} | {said} |"
        yield ""
    body = route.get("requestBody", {}).get("content", {})
    for media, content in body.items():
        yield from (f"Body (`{media}`): {_type(content.get('schema', {}))}", "")
        if media == "application/json" and "example" in content:
            yield from ("```json", json.dumps(content["example"], indent=2, ensure_ascii=False), "```", "")
    replies = route.get("responses", {})
    for status, reply in replies.items():
        if status != "default" and "$ref" not in reply:
            kinds = [f"{_type(content.get('schema', {}))} (`{media}`)" for media, content in reply.get("content", {}).items()]
            yield from (f"Reply {status}: {', or '.join(kinds) or 'no body'}", "")
    if errors := sorted(status for status, reply in replies.items() if status != "default" and "$ref" in reply):
        yield from (f"Errors: {', '.join(errors)}", "")


def _errors(shared: Schema) -> Iterator[str]:
    """The answers that routes share, by their status."""
    said: dict[int, str] = {}
    for answer in shared.values():
        for content in answer["content"].values():
            if status := content["example"].get("status"):
                said.setdefault(status, answer["description"])
    yield from ("## Errors", "", "| status | |", "| --- | --- |")
    yield from (f"| {status} | {_prose(text)} |" for status, text in sorted(said.items()))
    yield ""


def _model(name: str, schema: Schema) -> Iterator[str]:
    yield from (f"### {name}", "")
    if text := _prose(schema.get("description", "")):
        yield from (text, "")
    fields = schema.get("properties", {})
    if fields:
        required = schema.get("required", ())
        yield from ("| field | type | |", "| --- | --- | --- |")
        for field, one in fields.items():
            yield f"| `{field}` | {_type(one)} | {_said(one, one.get('description', ''), field in required)} |"
        yield ""
    else:
        yield from (_type(schema), "")


def _type(schema: Schema) -> str:
    """A schema in words, with links to the models that it names."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(map(_type, schema[several])))
    if "allOf" in schema and len(schema["allOf"]) == 1:
        return _type(schema["allOf"][0])
    if "enum" in schema:
        return ", ".join(f"`{_cell(str(value))}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{_cell(str(schema['const']))}`"
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"array of {_type(schema['items'])}" if schema.get("items") else "array"
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping) and schema["additionalProperties"]:
        return f"object of {_type(schema['additionalProperties'])}"
    return f"{kind}, {schema['format']}" if "format" in schema else str(kind)


def _said(schema: Schema, text: str, required: bool) -> str:
    limits = [words.format(f"{schema[key]:,}") for key, words in _LIMITS.items() if key in schema]
    default = schema.get("default")
    if default not in (None, [], {}, ""):
        limits.append(f"default `{_cell(str(default).lower() if isinstance(default, bool) else str(default))}`")
    marks = [*(["required"] if required else []), *limits]
    return " ".join(part for part in (_prose(text), f"({', '.join(marks)})" if marks else "") if part)


def _prose(text: str) -> str:
    return _cell(" ".join(re.sub(r"<(?=\w)", "&lt;", text).split()))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
