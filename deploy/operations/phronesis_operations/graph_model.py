"""What the graph may hold, and how its values stand in an archive."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from phronesis_contracts.constitution.registry import NODE_LABEL
from phronesis_contracts.knowledge_graph import NAME
from phronesis_graph.adapters.bolt import Bolt
from phronesis_graph.adapters.labels import GONE, LINKS, LOCKS, NEWS, WRITES
from phronesis_graph.curation import KNOWLEDGE
from phronesis_graph.knowledge import LABELS, LINK_TYPES
from phronesis_graph.ontology import Ontology
from phronesis_graph.settings import GraphSettings

from .errors import Damaged, Failed

DOUBLE = (KNOWLEDGE, NODE_LABEL)
"""Labels of nodes that have another one beside it: the agents' own, and those of the constitutional graph."""
NODES, RELATIONSHIPS = "graph/nodes", "graph/relationships"
_SECONDS = 120.0
_INT64 = 2**63
_NAME = re.compile(NAME)


def labels(ontology: Ontology) -> tuple[str, ...]:
    """Every label that the service writes, in the order of reading; each node has one of these, and a unique `key`. Those
    of `DOUBLE` have another label beside it.

    Keys of writes come first, so that a write whose key was read is read whole. News comes last, so that of every node
    that was read its news was read, or had been sent before.
    """
    return (WRITES, LOCKS, *ontology.nodes, *LABELS, *DOUBLE, LINKS, GONE, NEWS)


def types(ontology: Ontology) -> frozenset[str]:
    """Every type of relationship that the service writes. Between nodes of `DOUBLE` there are types of their own."""
    return frozenset((*ontology.relationships, *LINK_TYPES))


def own_name(name: object) -> str | None:
    """A label or a type of the agents' own, if it is a plain name that can stand in a statement."""
    return name if isinstance(name, str) and _NAME.fullmatch(name) else None


@asynccontextmanager
async def opened(settings: GraphSettings) -> AsyncIterator[Bolt]:
    """The store for the length of a block, with time for large reads; asked by the writing user, who sees everything."""
    patient = {"read_timeout": _SECONDS, "write_timeout": _SECONDS, "read_user": None, "read_password_file": None}
    async with Bolt.open(settings.model_copy(update=patient)) as bolt:
        yield bolt


def written(properties: Mapping[str, Any]) -> bytes:
    """Properties as JSON: a whole number stays one, and a fraction stays one, `1.0` too.

    Raises:
        Failed: a value has a type that the platform does not write.
    """
    for name, value in properties.items():
        if not _plain(value):
            raise Failed(f"the graph holds a {type(value).__name__} in `{name}`, which an archive does not take")
    return json.dumps(properties, ensure_ascii=False, separators=(",", ":")).encode()


def simplified(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Properties that agents gave: what their statements computed and an archive does not take, a day for instance, as text."""
    return {name: value if _plain(value) else _text(value) for name, value in properties.items()}


def _text(value: Any) -> str:
    return str(value.iso_format()) if hasattr(value, "iso_format") else str(value)


def understood(body: bytes) -> dict[str, Any]:
    """The properties again.

    Raises:
        Damaged: these are none.
    """
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Damaged("properties of the graph cannot be read") from error
    if not isinstance(found, dict) or not all(map(_plain, found.values())):
        raise Damaged("properties of the graph cannot be read")
    return found


def _plain(value: object) -> bool:
    match value:
        case list():
            return all(not isinstance(one, list) and _plain(one) for one in value)
        case bool() | str() | float() | None:
            return True
        case int():
            return -_INT64 <= value < _INT64
        case _:
            return False


def batches(
    rows: Iterator[tuple[Any, dict[str, Any], int]], most: int, size: int
) -> Iterator[tuple[Any, list[dict[str, Any]]]]:
    """Rows of one kind after another, as batches of `most` rows or about `size` bytes."""
    batch: list[dict[str, Any]] = []
    kind, held = None, 0
    for of_row, row, weight in rows:
        if batch and (of_row != kind or len(batch) >= most or held >= size):
            yield kind, batch
            batch, held = [], 0
        kind, held = of_row, held + weight
        batch.append(row)
    if batch:
        yield kind, batch
