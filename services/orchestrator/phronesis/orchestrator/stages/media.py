"""Stage media: every attachment becomes text, side by side and in the given order (D-021 to D-035)."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from phronesis.contracts import Principal, ServiceError
from phronesis.contracts.instructions import AgentProfile
from phronesis.contracts.media import ExtractedText

from ..ports import Neighbours

log = logging.getLogger(__name__)

MAX_CHARS = 24_000
"""Characters of one attachment that reach a prompt; the whole text stays with media (D-035)."""
_UNREADABLE = "(the attachment {name} could not be read)"


@dataclass(frozen=True)
class ReadMedia:
    """What the attachments gave."""

    text: str
    """One labelled part for each attachment, in order."""
    documents: tuple[ExtractedText, ...]
    unreadable: int
    """How many could not be read."""


async def read_media(
    neighbours: Neighbours, who: Principal, media: tuple[str, ...], agent: AgentProfile | None, limit: float
) -> ReadMedia:
    """Read the attachments. One that cannot be read leaves a note in its place."""
    if not media:
        return ReadMedia("", (), 0)
    read = await asyncio.gather(*(_document(neighbours, who, id, limit) for id in media))
    note = (agent.phrases if agent else {}).get("unreadable_attachment", _UNREADABLE)
    parts = [_part(found) if found else note.replace("{name}", id) for id, found in zip(media, read, strict=True)]
    documents = tuple(found for found in read if found)
    return ReadMedia("\n\n".join(parts), documents, len(read) - len(documents))


async def _document(neighbours: Neighbours, who: Principal, media_id: str, limit: float) -> ExtractedText | None:
    try:
        found = await neighbours.document_text(who, media_id, limit)
    except ServiceError as error:
        log.warning("an attachment could not be read: %s", error.code)
        return None
    return found if found.text.strip() else None


def _part(found: ExtractedText) -> str:
    text = found.text[:MAX_CHARS]
    cut = "\n[cut here; the rest of the document is stored]" if found.truncated or len(found.text) > MAX_CHARS else ""
    return f"[document: {found.name or found.media_id}]\n{text}{cut}\n[end of document]"


def final_input(text: str, media_text: str) -> str:
    """The one input of the later phases: the user's text, then the text of media (D-026, D-027)."""
    return "\n\n".join(part for part in (text.strip(), media_text) if part)
