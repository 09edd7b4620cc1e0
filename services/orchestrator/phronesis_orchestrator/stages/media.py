"""Stage media: every attachment becomes text, side by side and in the given order (D-021 to D-035)."""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass

from phronesis_contracts import Principal, ServiceError, TimedOut, UnsupportedMedia
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.media import ExtractedText

from ..ports import Neighbours

log = logging.getLogger(__name__)

MAX_CHARS = 24_000
"""Characters of one attachment that reach a prompt; the whole text stays with media (D-035)."""
_LABEL = re.compile(r"^\[((?:end of )?(?:document|image|audio)\b[^\]\n]*)\]", re.M)
_UNREADABLE = "(The attachment {name} could not be read: {reason}.)"


@dataclass(frozen=True)
class ReadMedia:
    """What the attachments gave."""

    text: str
    """One labelled part for each attachment, in order."""
    documents: tuple[ExtractedText, ...]
    unreadable: int
    """How many could not be read."""


@dataclass(frozen=True)
class _Unread:
    """An attachment that could not be read."""

    name: str
    why: ServiceError


async def read_media(
    neighbours: Neighbours, who: Principal, media: tuple[str, ...], agent: AgentProfile | None, limit: float
) -> ReadMedia:
    """Read the attachments, each by the tool of its kind. One that cannot be read leaves a note in its place.

    Args:
        limit: seconds that one attachment may take.
    """
    if not media:
        return ReadMedia("", (), 0)
    read = await asyncio.gather(*(_read(neighbours, who, id, limit) for id in media))
    note = (agent.phrases if agent else {}).get("unreadable_attachment", _UNREADABLE)
    documents = tuple(found for found in read if isinstance(found, ExtractedText))
    parts = (_part(found) if isinstance(found, ExtractedText) else _note(note, found) for found in read)
    return ReadMedia("\n\n".join(parts), documents, len(read) - len(documents))


async def _read(neighbours: Neighbours, who: Principal, media_id: str, limit: float) -> ExtractedText | _Unread:
    name = media_id
    try:
        async with asyncio.timeout(limit):
            medium = await neighbours.media(who, media_id)
            name = medium.name or media_id
            found = await neighbours.medium_text(who, medium, limit)
        if found.text.strip():
            return found
        error: ServiceError = UnsupportedMedia("no text was found in it")  # (D-034)
    except ServiceError as failed:
        error = failed
    except TimeoutError:
        error = TimedOut("reading it took too long")
    log.warning("an attachment could not be read: %s", error.code)
    return _Unread(name, error)


def _note(phrase: str, unread: _Unread) -> str:
    """The phrase with its places filled in; a name cannot break out of its line."""
    return phrase.replace("{reason}", unread.why.detail.rstrip(".")).replace("{name}", _name(unread.name))


def _part(found: ExtractedText) -> str:
    kind = found.kind.value
    text = _LABEL.sub(r"(\1)", found.text[:MAX_CHARS])  # none ends itself, nor passes its words off as another's (D-028)
    cut = f"\n[cut here; the rest of the {kind} is stored]" if found.truncated or len(found.text) > MAX_CHARS else ""
    return f"[{kind}: {_name(found.name or found.media_id)}]\n{text}{cut}\n[end of {kind}]"


def _name(name: str) -> str:
    """A file's name on one line and without the signs of a label (D-028)."""
    return " ".join(name.replace("[", "(").replace("]", ")").split())


def final_input(text: str, media_text: str) -> str:
    """The one input of the later phases: the user's text, then the text of media (D-026, D-027)."""
    return "\n\n".join(part for part in (text.strip(), media_text) if part)
