"""When a node is embedded, and when again: the rules, without a store and without a clock."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from phronesis_contracts import BadRequest
from phronesis_contracts.constitution.keeping import EmbeddingState

from ..domain.values import Vector
from .texts import Facts

TRIES = 4
"""One attempt and three retries (O-309)."""
_FIRST = 1.0
"""Seconds before the first retry; each further wait is twice as long, a quarter more or less."""
_JITTER = 0.25
_SWEEP = timedelta(seconds=60)
"""How long a node that failed waits until it is tried once more (O-311)."""


class VectorRefused(BadRequest):
    """The embedder answered with a vector that is all zero, not finite, or of another dimension (O-090, O-360)."""

    code = "memory.vector_refused"


@dataclass(frozen=True)
class Known:
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
class Standing:
    """What the record says from now on."""

    state: EmbeddingState
    due: datetime | None = None
    attempts: int = 0
    problem: str | None = None


def is_older(facts: Facts, known: Known | None) -> bool:
    """Whether what was read is older than what the record was made from (O-317)."""
    return known is not None and (facts.born, facts.version) < (known.born, known.version)


def decided(facts: Facts, known: Known | None, now: datetime, *, at_once: bool = False, force: bool = False) -> Standing:
    """What is to be done for a node that was read.

    Args:
        facts: the node.
        known: its record, if there is one.
        now: the time.
        at_once: also nodes that would wait for the night, or that failed and would wait for their next try.
        force: also where the vector fits already.
    """
    assert facts.tier is not None
    if not facts.body:
        return Standing(EmbeddingState.SKIPPED)
    if known is not None and known.embedded_hash == facts.text_hash and not force:
        return Standing(EmbeddingState.CURRENT)
    soon = at_once or force or facts.tier.at_once
    again = force or (at_once and known is not None and known.state is EmbeddingState.FAILED)
    waits = known is not None and known.text_hash == facts.text_hash and known.state in _WAITING
    if known is not None and waits and (known.due is not None or not soon) and not again:
        return Standing(known.state, known.due, known.attempts, known.problem)
    return Standing(EmbeddingState.PENDING, now if soon else None)


_WAITING = (EmbeddingState.PENDING, EmbeddingState.FAILED)


def after_failure(attempts: int, problem: str, now: datetime, *, for_good: bool) -> Standing:
    """What is to be done after an attempt that failed.

    Args:
        attempts: how many there were, with this one.
        problem: the class of the failure.
        now: the time.
        for_good: whether the same again would fail the same (a key or a text that is refused).
    """
    if for_good or attempts >= TRIES:
        return Standing(EmbeddingState.FAILED, now + _SWEEP, attempts, problem)
    wait = _FIRST * 2 ** (attempts - 1) * random.uniform(1 - _JITTER, 1 + _JITTER)
    return Standing(EmbeddingState.PENDING, now + timedelta(seconds=wait), attempts, problem)


def fit(vector: Vector, dimension: int) -> None:
    """Raise `VectorRefused` unless a vector can be searched by."""
    if vector.shape != (dimension,):
        raise VectorRefused(f"a vector of {vector.size} numbers, and not of {dimension}")
    if not np.isfinite(vector).all() or not vector.any():
        raise VectorRefused("a vector without a direction")
