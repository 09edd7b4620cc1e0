"""Stage return: what an answer rests on, as the reply lists it."""

from __future__ import annotations

from phronesis.contracts.media import ExtractedText
from phronesis.contracts.memory import AugmentedMemoryContext
from phronesis.contracts.orchestrator import Source

from ..ranking import rank_sources
from ..text import snippet

MAX_SOURCES = 5


def sources(question: str, documents: tuple[ExtractedText, ...], memory: AugmentedMemoryContext | None) -> tuple[Source, ...]:
    """The attached documents first, since the user put them there, then what retrieval found, best first."""
    attached = [
        Source(id=d.media_id, type="document", title=d.name or d.media_id, score=1.0, snippet=snippet(question, d.text))
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
        for item in (rank_sources(question, memory) if memory else [])
    ]
    return tuple((attached + found)[:MAX_SOURCES])
