"""How an item of a LangGraph store is kept as a memory, and which items a filter asks for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from langgraph.store.base import Item, MatchCondition, PutOp, SearchItem, get_text_at_path

from phronesis_contracts.memories import FoundMemory, Memory, Metadata, NewMemory

MOST_TEXT = 20_000
"""Characters of a memory's text."""
MOST_VALUE = 100_000
"""Bytes of a value as JSON."""
_MOST_FILTERED = 200
"""Characters of a string by which the server filters; longer ones are compared here."""
_ITEM = "langgraph_item"
"""What marks an item among the other memories of its user."""
_KEY, _VALUE, _INDEXED = "langgraph_key", "langgraph_value", "langgraph_indexed"
_LABEL, _FIELD, _DEPTH = "langgraph_label_", "langgraph_field_", "langgraph_depth"


def make_id(namespace: Sequence[str], key: str) -> str:
    """The external id of an item; a hash, because labels and keys may be longer than an id."""
    return "langgraph:" + sha256(json.dumps([*namespace, key]).encode()).hexdigest()


def make_memory(op: PutOp, fields: Sequence[str]) -> NewMemory:
    """The memory that an item is kept as.

    Args:
        op: the item, with a value.
        fields: paths of what is found by meaning where the item does not say.

    Raises:
        TypeError: the value is no JSON.
        ValueError: it has a number that JSON lacks, or is over 100,000 bytes.
    """
    value = dict(op.value or {})
    written = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if (size := len(written.encode())) > MOST_VALUE:
        raise ValueError(f"the value of {op.key!r} has {size} bytes; an item may have {MOST_VALUE}")
    text = "" if op.index is False else _text(value, fields if op.index is None else op.index)
    metadata: Metadata = {
        _ITEM: True,
        _KEY: op.key,
        _VALUE: written,
        _INDEXED: bool(text),
        _DEPTH: len(op.namespace),
        **_labels(op.namespace),
        **{_FIELD + name: one for name, one in value.items() if _is_filtered_there(one)},
    }
    return NewMemory(text=text or op.key or "-", external_id=make_id(op.namespace, op.key), metadata=metadata)


def read_item(memory: Memory) -> Item:
    """The item that a memory keeps."""
    return Item(**_parts(memory))


def read_found(memory: Memory) -> SearchItem:
    """The item that a memory keeps, with its score where a search by meaning found it."""
    return SearchItem(**_parts(memory), score=memory.score if isinstance(memory, FoundMemory) else None)


def filter_of(prefix: Sequence[str], wanted: Mapping[str, Any] | None = None, *, by_meaning: bool = False) -> Metadata:
    """What the metadata of the items has to hold that a search asks for; `matches` decides about the rest."""
    plain = {_FIELD + name: one for name, one in (wanted or {}).items() if _is_filtered_there(one)}
    return {_ITEM: True, **_labels(prefix), **plain, **({_INDEXED: True} if by_meaning else {})}


def matches(value: Any, wanted: Any) -> bool:
    """Whether a value is what a filter asks for: equal, or within its operators (`$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`).

    Raises:
        ValueError: an operator is unknown.
    """
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_compare(value, operator, bound) for operator, bound in wanted.items())
        return isinstance(value, Mapping) and all(matches(value.get(name), one) for name, one in wanted.items())
    if isinstance(wanted, list | tuple):
        return isinstance(value, list) and len(value) == len(wanted) and all(map(matches, value, wanted))
    return bool(value == wanted)


def is_under(namespace: Sequence[str], condition: MatchCondition) -> bool:
    """Whether a namespace begins or ends as a condition says, where `*` is any label."""
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))


def plain_prefix(conditions: Sequence[MatchCondition]) -> tuple[str, ...]:
    """The labels with which every namespace begins that meets the conditions, as far as they are no wildcards."""
    for condition in conditions:
        if condition.match_type == "prefix":
            path = [*condition.path, "*"]
            return tuple(path[: path.index("*")])
    return ()


def _parts(memory: Memory) -> dict[str, Any]:
    found = memory.metadata
    return {
        "value": json.loads(str(found[_VALUE])),
        "key": found[_KEY],
        "namespace": tuple(found[f"{_LABEL}{place}"] for place in range(int(found[_DEPTH] or 0))),
        "created_at": memory.created_at,
        "updated_at": memory.updated_at,
    }


def _labels(namespace: Sequence[str]) -> dict[str, str]:
    return {f"{_LABEL}{place}": label for place, label in enumerate(namespace)}


def _is_filtered_there(value: Any) -> bool:
    """Whether the server filters by a value. By `None` it does not: a value that is missing equals it."""
    return isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= _MOST_FILTERED)


def _compare(value: Any, operator: str, bound: Any) -> bool:
    match operator:
        case "$eq":
            return bool(value == bound)
        case "$ne":
            return bool(value != bound)
        case "$gt":
            return value is not None and float(value) > float(bound)
        case "$gte":
            return value is not None and float(value) >= float(bound)
        case "$lt":
            return value is not None and float(value) < float(bound)
        case "$lte":
            return value is not None and float(value) <= float(bound)
    raise ValueError(f"unknown operator: {operator}")


def _text(value: dict[str, Any], fields: Sequence[str]) -> str:
    found = [text for path in fields for text in (_lines(value) if path == "$" else get_text_at_path(value, path))]
    return "\n".join(found)[:MOST_TEXT].strip()


def _lines(value: Any, name: str = "") -> Iterator[str]:
    """The parts of a value as words: a line for each, with its name, and without the signs of JSON."""
    match value:
        case dict():
            for inner, one in value.items():
                yield from _lines(one, f"{name} {inner}".strip())
        case list():
            for one in value:
                yield from _lines(one, name)
        case None:
            return
        case _:
            yield f"{name}: {value}" if name else str(value)
