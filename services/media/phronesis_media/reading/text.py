"""The text of a reading as it is kept: in order, within its limit, with its pages, sheets or sections."""

from __future__ import annotations

import re
from collections.abc import Sequence

from phronesis_contracts import UnsupportedMedia
from phronesis_contracts.media import MediaKind, TextPart

from ..media import Reading, clean_text
from ..uploads import formats

_CUT = "\n\n[This goes on; only this much of its text is kept.]"
_NOTHING = {
    MediaKind.DOCUMENT: "no text was found in the document",
    MediaKind.IMAGE: "nothing was found in the image",
    MediaKind.AUDIO: "no speech was found in the recording",
}
_HEADING = re.compile(r"^#{1,6}[ \t]+(\S.*)$", re.M)
_BETWEEN = "\n\n"
_NAME = 80
_SECTIONED = frozenset({formats.DOCX, formats.HTML, formats.MARKDOWN})


def limit_text(reading: Reading, kind: MediaKind, limit: int, type: str = "") -> Reading:
    """The reading with its text in order and within `limit` characters. Raises `UnsupportedMedia`: there is no text.

    Args:
        type: media type of the content; it tells what a form feed or a heading stands for.
    """
    pages = [clean_text(page) for page in reading.text.split("\f")]
    text = _BETWEEN.join(page for page in pages if page)
    if not text:
        raise UnsupportedMedia(_NOTHING[kind])
    parts = _parts(text, pages, type)
    if len(text) <= limit:
        return reading.model_copy(update={"text": text, "parts": parts})
    kept = tuple(part.model_copy(update={"end": min(part.end, limit)}) for part in parts if part.start < limit)
    return reading.model_copy(update={"text": text[:limit] + _CUT, "parts": kept, "limits": (*reading.limits, "text")})


def _parts(text: str, pages: Sequence[str], type: str) -> tuple[TextPart, ...]:
    if type in (formats.PDF, formats.PPTX):
        return _pages(pages)
    if type == formats.XLSX:
        return _sections(text, "sheet")
    return _sections(text, "heading") if type in _SECTIONED else ()


def _pages(pages: Sequence[str]) -> tuple[TextPart, ...]:
    found, at = [], 0
    for number, page in enumerate(pages, 1):
        if page:
            found.append(TextPart(page=number, start=at, end=at + len(page)))
            at += len(page) + len(_BETWEEN)
    return tuple(found)


def _sections(text: str, what: str) -> tuple[TextPart, ...]:
    heads = list(_HEADING.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)][: len(heads)]
    return tuple(
        TextPart.model_validate({what: head[1].strip().strip("#").strip()[:_NAME] or None, "start": head.start(), "end": end})
        for head, end in zip(heads, ends, strict=True)
    )
