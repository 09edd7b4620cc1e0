"""The committed JSON schema of every contract, and what its version does not allow to change.

Inside a version only optional fields are added. A schema that breaks this is not written over the committed one: the
change is a new version of the contract, beside the old one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .messages import carried, contracts, name
from .tree import CONTRACTS

FOLDER = CONTRACTS / "schemas"
_WORDS = {"title", "description", "default", "examples"}
"""Keys of a schema that say something to people and nothing to a reader of messages."""

Schema = dict[str, Any]


class Break(Exception):
    """A contract changed in a way that its version does not allow."""


def current() -> dict[str, dict[str, Schema]]:
    """The schemas as the code has them: contract, then `in` or `out`."""
    return {
        name(contract): {
            side: model.model_json_schema(mode="validation" if side == "in" else "serialization")
            for side, model in carried(contract).items()
        }
        for contract in contracts()
    }


def committed() -> dict[str, dict[str, Schema]]:
    """The schemas as they are committed."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}


def breaks(old: Schema, new: Schema, where: str = "") -> list[str]:
    """What a reader or a writer of `old` would stumble over in `new`."""
    return _Comparison(old.get("$defs", {}), new.get("$defs", {})).breaks(old, new, where)


class _Comparison:
    def __init__(self, old: Schema, new: Schema) -> None:
        self._old = old
        self._new = new
        self._open: set[tuple[str, str]] = set()

    def breaks(self, old: Schema, new: Schema, where: str) -> list[str]:
        pair = (old.get("$ref", ""), new.get("$ref", ""))
        if any(pair):
            if pair in self._open:
                return []
            self._open.add(pair)
        before, after = _resolved(old, self._old), _resolved(new, self._new)
        found = self._fields(before, after, where)
        for key in sorted((before.keys() | after.keys()) - _WORDS - {"properties", "required", "$defs", "$ref"}):
            found += self._key(key, before.get(key), after.get(key), f"{where}:{key}")
        self._open.discard(pair)
        return found

    def _fields(self, old: Schema, new: Schema, where: str) -> list[str]:
        before, after = old.get("properties", {}), new.get("properties", {})
        found = [f"{where}.{field} is gone" for field in before.keys() - after.keys()]
        found += [f"{where}.{field} is now required" for field in set(new.get("required", ())) - set(old.get("required", ()))]
        found += [
            f"{where}.{field} may now be missing"
            for field in set(old.get("required", ())) - set(new.get("required", ()))
            if field in after
        ]
        for field in before.keys() & after.keys():
            found += self.breaks(before[field], after[field], f"{where}.{field}")
        return found

    def _key(self, key: str, old: Any, new: Any, where: str) -> list[str]:
        if key == "enum" and isinstance(old, list) and isinstance(new, list) and set(old) <= set(new):
            return []
        if isinstance(old, dict) and isinstance(new, dict):
            return self.breaks(old, new, where)
        if key in ("anyOf", "oneOf", "allOf", "prefixItems") and old and new and len(old) <= len(new):
            return [line for a, b in zip(old, new, strict=False) for line in self.breaks(a, b, where)]
        return [] if old == new else [f"{where} was {old!r} and is {new!r}"]


def _resolved(schema: Schema, defs: Schema) -> Schema:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    target: Schema = defs[reference.rsplit("/", 1)[-1]]
    return target | {key: value for key, value in schema.items() if key != "$ref"}


def broken() -> list[str]:
    """What the code breaks of what is committed; a contract that is gone is a break too."""
    now = current()
    found = []
    for contract, sides in committed().items():
        if contract not in now:
            found.append(f"{contract} is gone")
            continue
        for side, schema in sides.items():
            found += breaks(schema, now[contract].get(side, {}), f"{contract} {side} ")
    return found


def documents() -> dict[Path, str]:
    """The schema of every contract.

    Raises:
        Break: a contract changed in a way that its version does not allow.
    """
    if found := broken():
        raise Break(
            "Inside a version only optional fields are added (docs/reference/bus.md):\n" + "\n".join(f"  {b}" for b in found)
        )
    return {FOLDER / f"{key}.json": json.dumps(sides, indent=2, sort_keys=True) + "\n" for key, sides in current().items()}
