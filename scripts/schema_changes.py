"""What the API and the bus offer otherwise than in the last release, and whether the changelog says so.

python -m scripts.schema_changes              show every difference; fail where CHANGELOG.md is silent on one
python -m scripts.schema_changes --release    keep what there is now as the last release

The last release's documents stand in `docs/released`. A difference is told by a line under "Unreleased" that names the path
of the operation, the subject of the message, or its tool.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from phronesis_contracts.catalog import TOOLS
from phronesis_gateway.description import without_null

from . import asyncapi, openapi
from .schemas import breaks
from .tree import DOCS, ROOT

RELEASED = DOCS / "released"
_WORDS = ("title", "description", "summary", "examples", "example", "operationId", "tags")
"""Members that say something to people and nothing to a program."""
_KEPT = {"openapi.json": openapi.documents, "asyncapi.yaml": asyncapi.documents}

Document = dict[str, Any]
Parts = dict[str, Any]
"""An operation by its parts: a parameter, a body, an answer; each a schema, or a plain value."""


@dataclass(frozen=True)
class Change:
    """One operation that is not as it was released."""

    name: str
    """`METHOD /path`, or the kind and the subject of a message."""
    what: str
    """`added`, `removed` or `changed`."""
    details: tuple[str, ...]
    breaking: bool

    def __str__(self) -> str:
        mark = "  BREAKING" if self.breaking else ""
        return "\n".join([f"{self.what:8} {self.name}{mark}", *(f"           {line}" for line in self.details)])


def operations(document: Document) -> dict[str, Parts]:
    """The operations of an OpenAPI or an AsyncAPI document by name."""
    if "openapi" in document:
        return {
            f"{method.upper()} {path}": _of_http(operation, document.get("components", {}).get("responses", {}))
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        }
    return {name: _of_bus(document, name) for name in document["operations"]}


def _of_http(operation: Document, shared: Document) -> Parts:
    parts: Parts = {}
    for parameter in operation.get("parameters", ()):
        name = f"{parameter['in']} parameter {parameter['name']}"
        parts[f"required {name}" if parameter.get("required") else name] = without_null(parameter["schema"])
    body = operation.get("requestBody", {})
    for type, content in body.get("content", {}).items():
        parts[f"body {type}"] = content.get("schema", {})
    answers = {status: _schemas(response, shared) for status, response in operation["responses"].items()}
    for status, found in answers.items():
        # An error in the form that every other one has is named for people.
        if status == "default" or found != answers.get("default"):
            parts[f"answer {status}"] = {}
            parts |= {f"answer {status} {type}": schema for type, schema in found.items()}
    return parts


def _schemas(response: Document, shared: Document) -> Document:
    """The schemas of an answer by media type; `shared`: answers that others refer to."""
    stated = shared[response["$ref"].rpartition("/")[2]] if "$ref" in response else response
    return {type: content.get("schema", {}) for type, content in stated.get("content", {}).items()}


def _of_bus(document: Document, name: str) -> Parts:
    channels, operation = document["channels"], document["operations"][name]
    parts: Parts = {key: value for key, value in operation.items() if key == "action" or key.startswith("x-")}
    parts["address"] = channels[name]["address"]
    parts["message"] = channels[name]["messages"]["message"]["payload"]
    if reply := channels.get(f"{name}.reply"):
        parts["answer"] = reply["messages"]["answer"]["payload"]
    return parts


def changes(old: Document, new: Document) -> list[Change]:
    """Every operation of `new` that is not as it was in `old`, and those that are gone."""
    before, after = operations(old), operations(new)
    found = [Change(name, "added", (), False) for name in sorted(after.keys() - before.keys())]
    found += [Change(name, "removed", (), True) for name in sorted(before.keys() - after.keys())]
    defs = _defs(old), _defs(new)
    for name in sorted(before.keys() & after.keys()):
        lines = list(_differences(before[name], after[name], *defs))
        if lines:
            found.append(Change(name, "changed", tuple(line for line, _ in lines), any(breaking for _, breaking in lines)))
    return found


def _defs(document: Document) -> Document:
    found: Document = document.get("components", {}).get("schemas", {})
    return found


def _differences(old: Parts, new: Parts, old_defs: Document, new_defs: Document) -> Iterator[tuple[str, bool]]:
    """What differs, and whether who relies on `old` stumbles over it."""
    for part in sorted(old.keys() - new.keys()):
        # A parameter that is required no longer is gone by this name, and harms nobody.
        yield f"{part} is gone", part.removeprefix("required ") not in new
    for part in sorted(new.keys() - old.keys()):
        yield f"{part} is new", part.startswith("required ")
    for part in sorted(old.keys() & new.keys()):
        a, b = old[part], new[part]
        if not isinstance(a, dict) or not isinstance(b, dict):
            if a != b:
                yield f"{part} was {a!r} and is {b!r}", part in ("action", "address")
            continue
        if _inlined(a, old_defs) == _inlined(b, new_defs):
            continue
        broken = breaks(a | {"$defs": old_defs}, b | {"$defs": new_defs}, part)
        yield from ((line, True) for line in broken)
        if not broken:
            yield f"{part} has more, or less narrow, than before", False


def _inlined(schema: Any, defs: Document, inside: tuple[str, ...] = ()) -> Any:
    """A schema with what it refers to in its place and without its words."""
    if isinstance(schema, list):
        return [_inlined(each, defs, inside) for each in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str):
        name = reference.rsplit("/", 1)[-1]
        return name if name in inside or name not in defs else _inlined(defs[name], defs, (*inside, name))
    fields = schema.get("properties")
    plain = {key: value for key, value in schema.items() if key not in (*_WORDS, "properties")}
    stated = {key: _inlined(value, defs, inside) for key, value in plain.items()}
    # A field may have the name of a word.
    return stated | ({"properties": {k: _inlined(v, defs, inside) for k, v in fields.items()}} if fields else {})


def unreleased(changelog: str) -> str:
    """The part of a changelog that tells of what is not released."""
    found = re.search(r"^## \[Unreleased\]\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def is_told(name: str, text: str) -> bool:
    """Whether `text` names an operation: by its path, by its subject, or by its tool."""
    _, space, path = name.partition(" ")
    subject = name.partition(".")[2]
    tools = () if space else tuple(f"`{tool.name}`" for tool in TOOLS.values() if tool.rpc.subject == subject)
    if any(tool in text for tool in tools):
        return True
    return re.search(rf"(?<![\w/.]){re.escape(path if space else subject)}(?![\w/{{]|[.]\w)", text) is not None


def released(name: str) -> Document:
    """A document of the last release."""
    # JSON is YAML.
    found: Document = yaml.safe_load((RELEASED / name).read_text())
    return found


def current(name: str) -> str:
    """The text of a document as the code has it."""
    [text] = _KEPT[name]().values()
    return text


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", action="store_true", help="keep what there is now as the last release")
    if parser.parse_args().release:
        RELEASED.mkdir(exist_ok=True)
        for name in _KEPT:
            (RELEASED / name).write_text(current(name))
        return
    found = [change for name in _KEPT for change in changes(released(name), yaml.safe_load(current(name)))]
    print("\n".join(map(str, found)) or "The API and the bus are as they were released.")
    told = unreleased((ROOT / "CHANGELOG.md").read_text())
    if silent := [change.name for change in found if not is_told(change.name, told)]:
        sys.exit("CHANGELOG.md does not name these under Unreleased:\n" + "\n".join(f"  {name}" for name in silent))


if __name__ == "__main__":
    main()
