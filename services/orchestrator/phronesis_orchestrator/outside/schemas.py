"""Schemas that strangers write: which can be held to safely, and holding arguments to them."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from jsonschema import Draft7Validator, Draft201909Validator, Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from referencing import Registry

from phronesis_contracts.faces import told

LARGEST = 32_000
"""Characters of a schema as JSON, and of the arguments of one call."""
_DEEPEST = 24
_EXPANDED = 2_000
"""Nodes of a schema with every reference followed: what one check may cost at most."""
_DRAFTS = (Draft202012Validator, Draft201909Validator, Draft7Validator)
_UNKNOWN = ("$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "patternProperties")
"""Words that lead out of the schema, in circles, or to expressions that a stranger wrote."""
_HIDDEN = ("Cf", "Cs", "Co")


class Unfit(ValueError):
    """A schema that calls are not held to; the text says why."""


def checked(schema: Any) -> dict[str, Any]:
    """The schema, once it is known that holding arguments to it ends soon and reaches nothing else.

    Raises:
        Unfit: it is too large, no schema, refers to elsewhere or to itself, or holds characters that nobody sees.
    """
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise Unfit("its arguments are no object")
    _plain(schema, 0)
    try:
        size = len(json.dumps(schema, allow_nan=False))
    except (ValueError, TypeError) as error:
        raise Unfit("its schema is no JSON") from error
    if size > LARGEST:
        raise Unfit(f"its schema is over {LARGEST} characters")
    _expanded(schema, schema, (), [0])
    try:
        _draft(schema).check_schema(schema)
        told(schema)
    except (SchemaError, AttributeError, TypeError, ValueError, RecursionError) as error:
        raise Unfit("its schema is not one of JSON Schema as models are told it") from error
    return schema


def fault(schema: dict[str, Any], arguments: dict[str, Any]) -> str | None:
    """What is wrong with arguments, in few words; `None` where they fit. Patterns and formats are left to the server.

    Args:
        schema: a checked one.
        arguments: as they would be sent.
    """
    try:
        if len(json.dumps(arguments, allow_nan=False)) > LARGEST:
            return f"the arguments are over {LARGEST} characters"
        # The registry knows nothing, so that no reference is ever fetched.
        error = best_match(_held(_draft(schema))(schema, registry=Registry()).iter_errors(arguments))
    except (ValueError, RecursionError):
        return "the arguments are no JSON"
    if error is None:
        return None
    where = ".".join(str(part) for part in error.absolute_path)
    return f"{where}: {error.message}"[:300] if where else error.message[:300]


def visible(text: str) -> str:
    """The text without control characters and those that nobody sees."""
    return "".join(c for c in text if c in "\n\t" or not _hidden(c))


def _hidden(character: str) -> bool:
    category = unicodedata.category(character)
    return (category == "Cc" and character not in "\n\t\r") or category in _HIDDEN


def _plain(value: Any, depth: int) -> None:
    if depth > _DEEPEST:
        raise Unfit(f"its schema is nested over {_DEEPEST} levels")
    if isinstance(value, str) and any(_hidden(c) for c in value):
        raise Unfit("its schema holds characters that nobody sees")
    for each in _members(value):
        _plain(each, depth + 1)


def _members(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _expanded(value: Any, root: dict[str, Any], within: tuple[str, ...], count: list[int]) -> None:
    """Count the nodes with every reference followed."""
    count[0] += 1
    if count[0] > _EXPANDED:
        raise Unfit(f"its schema has over {_EXPANDED} nodes")
    if isinstance(value, dict):
        if word := next((word for word in _UNKNOWN if word in value), None):
            raise Unfit(f"its schema uses {word}")
        if "$ref" in value:
            ref = value["$ref"]
            if not isinstance(ref, str) or not ref.startswith("#/") or ref in within:
                raise Unfit("its schema refers to elsewhere or to itself")
            _expanded(_target(root, ref), root, (*within, ref), count)
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _expanded(each, root, within, count)


def _target(root: dict[str, Any], ref: str) -> Any:
    found: Any = root
    for part in ref[2:].split("/"):
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        if not isinstance(found, dict) or name not in found:
            raise Unfit("its schema refers to what it does not have")
        found = found[name]
    return found


def _draft(schema: dict[str, Any]) -> type[Validator]:
    found: type[Validator] = validator_for(schema, default=Draft202012Validator)
    if found not in _DRAFTS:
        raise ValueError("another draft")
    return found


def _unheld(*_: Any) -> Iterator[Any]:
    return iter(())


_HELD = {draft: extend(draft, {"pattern": _unheld}) for draft in _DRAFTS}


def _held(draft: type[Validator]) -> type[Validator]:
    held: type[Validator] = _HELD[draft]
    return held
