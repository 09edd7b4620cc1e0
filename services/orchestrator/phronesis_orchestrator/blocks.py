"""What the blocks of a prompt hold, line by line."""

from __future__ import annotations

import re

from phronesis_contracts.memory import AugmentedMemoryContext

from .budget import Line
from .history import PastMessage, Summary
from .reasoner import TurnContext

_NEXT_DOCUMENT = re.compile(r"\n(?=\[(?:document|image|audio): )")


def parts_of(turn: TurnContext) -> dict[str, list[Line]]:
    """What every prompt of a turn may show, in the order of its blocks."""
    message = turn.user_text or ("" if turn.media_text else turn.final_input)
    return {
        "profile": [Line.json(**{str(name): value}) for name, value in turn.profile.items()],
        "summary": summary_lines(turn.summary),
        "history": [past_line(past) for past in turn.history],
        "draft": [],
        "memory": [],
        "message": [Line.of(message)] if message else [],
        "attachments": [Line.of(text) for text in _NEXT_DOCUMENT.split(turn.media_text)] if turn.media_text else [],
    }


def past_line(past: PastMessage) -> Line:
    """A message; with its number where others between it and the next are left out."""
    if past.seq is None:
        return Line.json(role=past.role, text=past.text)
    return Line.json(message=past.seq, role=past.role, text=past.text)


def summary_lines(summary: Summary) -> list[Line]:
    """What is left of older turns: who put them in short, and what they said."""
    lines = (
        [Line.json(messages=f"up to {summary.text_through}", shortened_by="model", text=summary.text)] if summary.text else []
    )
    if summary.notes:
        reach = f"{summary.notes[0].seq} to {summary.notes[-1].seq}"
        lines.append(Line.json(messages=reach, shortened_by="rule: single sentences, word for word"))
    return [*lines, *(Line.json(message=note.seq, role=note.role, text=note.text) for note in summary.notes)]


def memory_lines(memory: AugmentedMemoryContext | None) -> list[Line]:
    """One line of JSON for each item, best first; and a last one where a part of memory did not answer."""
    if memory is None:
        return []
    items = sorted((*memory.concepts, *memory.memory_units), key=lambda item: (-item.score, item.hop, item.id))
    lines = [
        Line.json(
            id=item.external_id or item.id,
            kind=item.kind.value,
            title=item.title,
            text=item.text,
            **({"why": item.why} if item.why else {}),
        )
        for item in items
    ]
    return [*lines, Line.json(incomplete=", ".join(memory.degraded))] if memory.degraded and lines else lines
