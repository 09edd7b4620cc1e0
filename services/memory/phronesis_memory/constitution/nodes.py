"""What memory keeps of a node: the text of its vector, and when it is embedded, and when again. No store and no clock."""

from __future__ import annotations

import hashlib
import json
import random
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from phronesis_contracts import BadRequest
from phronesis_contracts.constitution.maintenance import EmbeddingState
from phronesis_contracts.constitution.registry import TYPES, Layer, Lifecycle, NodeType, Tier, lifecycle_of
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_tokens import clean, count

from ..embedding.chunks import WORDS, split_pieces
from ..values import Vector

MAX_CHARACTERS = 6_000
"""Characters of a text."""
_PLAIN = frozenset({"title", "summary", "description"})
"""Fields that stand by themselves on their lines; the others follow their names."""
_FIGURES = frozenset(
    {"priority", "severity", "confidence", "insightType", "roi", "decidedAt", "deadline", "timebox", "horizon"}
)
"""Fields that are no prose."""
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_NOT_CONTENT = frozenset({"id", "type", "layer", "createdAt", "updatedAt", "version", "provenance"})


@dataclass(frozen=True)
class NodeSnapshot:
    """What memory keeps of a node as it was when it was read."""

    id: str
    type: str
    layer: Layer
    tier: Tier | None
    lifecycle: Lifecycle
    title: str
    version: int
    born: datetime
    changed_at: datetime
    content: dict[str, Any]
    """Its fields by name, for the history."""
    body: str
    """What is embedded; empty where there is nothing to embed, or the type is never embedded."""
    text_hash: str
    tokens: int
    """Tokens of what is given to the model for it."""


def snapshot_of(node: ConstitutionNode) -> NodeSnapshot:
    """What memory keeps of a node that was read in full."""
    kind = TYPES[node.type]
    body = "" if kind.tier is None else text_of_node(node, kind)
    fields = _without_unstorable(node.model_dump(mode="json"))
    return NodeSnapshot(
        node.id,
        node.type,
        kind.layer,
        kind.tier,
        lifecycle_of(node.status or ""),
        fields["title"],
        node.version or 1,
        node.created_at or _NEVER,
        node.updated_at or _NEVER,
        {name: value for name, value in fields.items() if name not in _NOT_CONTENT and value is not None},
        body,
        hashlib.sha256(body.encode()).hexdigest(),
        sum(map(count, split_text(body))) if body else 0,
    )


def text_of_node(node: ConstitutionNode, kind: NodeType) -> str:
    """The text of a node: its type in words, then the registry's fields in their order, one line each.

    Returns:
        At most `MOST` characters that can be stored and sent; empty where the node has none of the fields.
    """
    fields = node.model_dump(mode="json")
    # A field that the type does not declare is kept in the bag.
    values = {name: fields.get(name, (fields.get("properties") or {}).get(name)) for name in kind.text}
    lines = [_line(name, said) for name, value in values.items() if (said := _value_as_text(value))]
    label = _HUMP.sub(" ", kind.label).lower()
    return "\n".join([label, *lines])[:MAX_CHARACTERS] if lines else ""


def split_text(body: str) -> list[str]:
    """What is given to the model for a text: its sentences, or pieces of it where it is longer than the local model reads.

    The sentences are without the type and the figures, which have nothing to do with what a question is about: on the sets
    in `evals/sets/search` the model finds more with them left out.
    """
    if len(body.split()) <= WORDS:
        return [_sentences(body)]
    head, _, rest = body.partition("\n")
    title, _, rest = rest.partition("\n")
    # Each piece follows the type and the title, so that it is about the node; a title alone can be long, too.
    return split_pieces(f"{head}: {title[:200]}", rest or title)


def _sentences(body: str) -> str:
    _, *lines = body.split("\n")
    told = [line.rstrip(". ") for line in lines if line.partition(":")[0] not in _FIGURES]
    return ". ".join(told) + "." if told else body


def _line(name: str, said: str) -> str:
    return said if name in _PLAIN else f"{name}: {said}"


def _value_as_text(value: Any) -> str:
    if value is None or value in ("", [], {}, ()):
        return ""
    text = value if isinstance(value, str) else json.dumps(_normalize_numbers(value), ensure_ascii=False, sort_keys=True)
    return " ".join(clean(text).replace("\x00", " ").split())


def _normalize_numbers(value: Any) -> Any:
    """The same with whole numbers as such: one store gives 5 back, the other 5.0."""
    match value:
        case bool():
            return value
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {name: _normalize_numbers(one) for name, one in value.items()}
        case list() | tuple():
            return [_normalize_numbers(one) for one in value]
        case _:
            return value


def _without_unstorable(value: Any) -> Any:
    match value:
        case str():
            return clean(value).replace("\x00", " ")
        case dict():
            return {_without_unstorable(name): _without_unstorable(one) for name, one in value.items()}
        case list() | tuple():
            return [_without_unstorable(one) for one in value]
        case _:
            return _normalize_numbers(value)


MAX_TRIES = 4
"""One attempt and three retries."""
_FIRST = 1.0
"""Seconds before the first retry; each further wait is twice as long, a quarter more or less."""
_JITTER = 0.25
_SWEEP = timedelta(seconds=60)
"""How long a node that failed waits until it is tried once more."""


class VectorRefused(BadRequest):
    """The embedder answered with a vector that is all zero, not finite, or of another dimension."""

    code = "memory.vector_refused"


@dataclass(frozen=True)
class KnownRecord:
    """The record that there is of a node."""

    born: datetime
    version: int
    text_hash: str
    state: EmbeddingState
    due: datetime | None
    attempts: int
    problem: str | None
    embedded_hash: str | None
    """Of the text that its vector was made from, by the model that the service has now; `None` without such a vector."""


@dataclass(frozen=True)
class RecordState:
    """What the record says from now on."""

    state: EmbeddingState
    due: datetime | None = None
    attempts: int = 0
    problem: str | None = None


def is_older(facts: NodeSnapshot, known: KnownRecord | None) -> bool:
    """Whether what was read is older than what the record was made from."""
    return known is not None and (facts.born, facts.version) < (known.born, known.version)


def decide_state(
    facts: NodeSnapshot, known: KnownRecord | None, now: datetime, *, at_once: bool = False, force: bool = False
) -> RecordState:
    """What is to be done for a node that was read. `at_once`: also one that would wait for the night or its next try."""
    assert facts.tier is not None
    if not facts.body:
        return RecordState(EmbeddingState.SKIPPED)
    if known is not None and known.embedded_hash == facts.text_hash and not force:
        return RecordState(EmbeddingState.CURRENT)
    soon = at_once or force or facts.tier.at_once
    again = force or (at_once and known is not None and known.state is EmbeddingState.FAILED)
    waits = known is not None and known.text_hash == facts.text_hash and known.state in _WAITING
    if known is not None and waits and (known.due is not None or not soon) and not again:
        return RecordState(known.state, known.due, known.attempts, known.problem)
    return RecordState(EmbeddingState.PENDING, now if soon else None)


_WAITING = (EmbeddingState.PENDING, EmbeddingState.FAILED)


def state_after_failure(attempts: int, problem: str, now: datetime, *, for_good: bool) -> RecordState:
    """What is to be done after an attempt that failed.

    Args:
        attempts: how many there were, with this one.
        for_good: whether the same again would fail the same (a key or a text that is refused).
    """
    if for_good or attempts >= MAX_TRIES:
        return RecordState(EmbeddingState.FAILED, now + _SWEEP, attempts, problem)
    wait = _FIRST * 2 ** (attempts - 1) * random.uniform(1 - _JITTER, 1 + _JITTER)
    return RecordState(EmbeddingState.PENDING, now + timedelta(seconds=wait), attempts, problem)


def check_vector(vector: Vector, dimension: int) -> None:
    """Raise `VectorRefused` unless a vector can be searched by."""
    if vector.shape != (dimension,):
        raise VectorRefused(f"a vector of {vector.size} numbers, and not of {dimension}")
    if not np.isfinite(vector).all() or not vector.any():
        raise VectorRefused("a vector without a direction")
