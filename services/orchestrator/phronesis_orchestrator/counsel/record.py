"""The nodes that a turn has seen: what an answer may cite, and what it rests on in the end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from phronesis_contracts import Message
from phronesis_contracts.orchestrator import Source

from ..text import shorten

CITED = re.compile(r"\[([A-Za-z0-9][A-Za-z0-9_.:-]{0,199})\](?!\()")
"""An id in square brackets, which is no link."""
MAX_SOURCES = 20
_SNIPPET = 240
"""Characters of what a source says."""
_SCORES = ("score", "finalScore", "goalScore")
_TEXTS = ("summary", "statement", "description", "narrative")


@dataclass(frozen=True)
class Seen:
    """A node in few words."""

    id: str
    type: str
    """Only tasks are told without one."""
    title: str
    text: str = ""
    score: float = 1.0
    """Cosine where a search found it, else 1."""


class Record:
    """The nodes of one turn by id."""

    def __init__(self) -> None:
        self._seen: dict[str, Seen] = {}

    def __contains__(self, id: str) -> bool:
        return id in self._seen

    def __iter__(self) -> Iterator[Seen]:
        return iter(self._seen.values())

    def get(self, id: str) -> Seen | None:
        """A node that was seen."""
        return self._seen.get(id)

    def note(self, answer: Message) -> None:
        """Note every node that an answer names."""
        for one in _nodes(answer.model_dump(mode="json", by_alias=True), 1.0):
            known = self._seen.get(one.id)
            if known is None or (one.text and not known.text):
                self._seen[one.id] = one

    def unknown(self, text: str) -> list[str]:
        """Ids that a text cites and nobody gave."""
        return [id for id in dict.fromkeys(CITED.findall(text)) if id not in self._seen]

    def kept(self, text: str) -> str:
        """A text without citations of what was not seen."""
        return re.sub(r"[ \t]?" + CITED.pattern, lambda found: found[0] if found[1] in self._seen else "", text)

    def sources(self, text: str) -> tuple[Source, ...]:
        """The nodes that a text cites, in its order."""
        found = [one for id in dict.fromkeys(CITED.findall(text)) if (one := self._seen.get(id)) is not None]
        return tuple(
            Source(id=one.id, type=one.type, title=one.title, score=round(max(0.0, min(1.0, one.score)), 4), snippet=one.text)
            for one in found[:MAX_SOURCES]
        )


def _nodes(value: Any, score: float) -> Iterator[Seen]:
    match value:
        case dict():
            told = next((value[name] for name in _SCORES if isinstance(value.get(name), int | float)), score)
            id, title = value.get("id", value.get("nodeId")), value.get("title")
            if isinstance(id, str) and isinstance(title, str):
                text = next((value[name] for name in _TEXTS if isinstance(value.get(name), str)), "")
                yield Seen(id, str(value.get("type", "task")), title, shorten(text, _SNIPPET), float(told))
            for member in value.values():
                yield from _nodes(member, float(told))
        case list():
            for member in value:
                yield from _nodes(member, score)
