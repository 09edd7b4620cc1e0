"""Stage return: what an answer rests on, as the reply lists it."""

from __future__ import annotations

from phronesis_contracts.media import ExtractedText
from phronesis_contracts.memory import AugmentedMemoryContext, ContextItem
from phronesis_contracts.orchestrator import Source

from ..ranking import ranked
from ..text import snippet

MAX_SOURCES = 5
_RELEVANT = 0.5
"""Share of the best item's rank that an item needs to be named as a source."""


def sources(question: str, documents: tuple[ExtractedText, ...], memory: AugmentedMemoryContext | None) -> tuple[Source, ...]:
    """The attached documents first, since the user put them there, then what retrieval found, best first."""
    attached = [
        Source(id=d.media_id, type=d.kind.value, title=d.name or d.media_id, score=1.0, snippet=snippet(question, d.text))
        for d in documents
    ]
    found = [
        Source(
            id=item.external_id or item.id,
            type=item.kind,
            title=item.title,
            score=round(min(1.0, max(0.0, item.score)), 4),
            snippet=snippet(question, item.text),
        )
        for item in (_relevant(question, memory) if memory else [])
    ]
    return tuple((attached + found)[:MAX_SOURCES])


def recalled(memory: AugmentedMemoryContext | None) -> tuple[str, ...]:
    """Ids of all that memory put before a turn, named in the answer or not: what is forgotten is looked for by them."""
    return tuple(item.external_id or item.id for item in (*memory.memory_units, *memory.concepts)) if memory else ()


def _relevant(question: str, memory: AugmentedMemoryContext) -> list[ContextItem]:
    found = ranked(question, memory)
    return [item for rank, item in found if rank >= _RELEVANT * found[0][0]]
