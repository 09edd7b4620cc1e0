"""The labelled questions, and how many words each shares with its answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from phronesis_memory.words.analysis import stems

DATA = Path(__file__).parent / "data"
LOW = 0.2
"""A question with at most this share of its stems in the answer shares few words with it."""
Split = Literal["dev", "test"]


@dataclass(frozen=True)
class Question:
    """A question and what counts as its answer."""

    id: str
    kind: str
    """`portfolio`, `conversation` or `document`."""
    text: str
    answers: tuple[str, ...]
    """External ids; each of them alone is right."""


def questions(split: Split) -> list[Question]:
    """The questions of a split. Only those of `dev` may be used to choose how items are found."""
    return [Question(**row | {"answers": tuple(row["answers"])}) for row in rows(f"questions-{split}")]


def rows(name: str) -> Iterator[dict[str, Any]]:
    """The lines of a data file."""
    for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def overlap(question: Question, texts: Mapping[str, Sequence[str]]) -> float:
    """The share of the question's stems that stand in one item of its answers: the greatest such share.

    Args:
        question: the question.
        texts: for each external id what its items say, titles included.
    """
    asked = set(stems(question.text))
    shares = [len(asked & set(stems(text))) / len(asked) for id in question.answers for text in texts[id]]
    return max(shares)
