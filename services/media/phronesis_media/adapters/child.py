"""Reads media with what is installed, in child processes with limits of the system."""

from __future__ import annotations

import logging
import time
from importlib.util import find_spec
from typing import Any

from phronesis_contracts import BadRequest, ServiceError, TooLarge, Unavailable, UnsupportedMedia
from phronesis_contracts.media import MediaKind

from .. import formats
from ..domain import Reading, tidy
from ..reading.jobs import Job
from ..scans import merged
from ..settings import MediaSettings
from ..sniff import decode
from .crew import Crew
from .workers import Failed

log = logging.getLogger(__name__)

_CPU = 0.8
"""Share of a job's seconds that may be processor time: what spends more is at fault itself, whatever the machine's load."""
_CUT = "\n\n[This goes on; only this much of its text is kept.]"
_NAMES = {MediaKind.DOCUMENT: "document", MediaKind.IMAGE: "image", MediaKind.AUDIO: "recording"}
_NOTHING = {
    MediaKind.DOCUMENT: "no text was found in the document",
    MediaKind.IMAGE: "nothing was found in the image",
    MediaKind.AUDIO: "no speech was found in the recording",
}
_ENGINES = {"ocr": ("rapidocr", "ocr"), "speech": ("faster_whisper", "speech")}
"""The package that a job needs, and the extra that installs it."""
_HEAD = 65_536


class ChildReader:
    """Documents by their parsers, images by OCR, recordings by speech recognition; plain texts, which need none, at once."""

    def __init__(self, settings: MediaSettings) -> None:
        self._settings = settings
        models = dict.fromkeys(("ocr", "speech"), settings.model_memory)
        memory = dict.fromkeys(("documents", "sheets", "prepare"), settings.parse_memory) | models
        self._crews = {
            name: Crew(size, settings.parsers, settings.idle_seconds, name if name in models else None)
            for name, size in memory.items()
        }

    async def close(self) -> None:
        """End the processes."""
        for crew in self._crews.values():
            await crew.close()

    async def read(self, data: bytes, type: str, seconds: float | None = None) -> Reading:
        """The text of the medium in `data`, within `seconds` in place of the usual ones."""
        kind = formats.KINDS[type]
        seconds = seconds or self._settings.parse_seconds
        match kind:
            case MediaKind.IMAGE:
                reading = await self._ask("ocr", data, type, seconds)
            case MediaKind.AUDIO:
                reading = await self._ask("speech", data, type, seconds)
            case MediaKind.DOCUMENT:
                reading = await self._document(data, type, seconds)
        return whole(reading, kind, self._settings.text_limit)

    async def prepare(self, data: bytes, type: str, seconds: float) -> tuple[bytes, float | None]:
        """What to send to a provider's model: a picture as JPEG and no length, a recording as it is and its seconds.

        Raises:
            ServiceError: as `read`.
        """
        head, body = await self._run("prepare", "prepare", data, type, seconds)
        return (body, None) if type in formats.IMAGES else (data, head["seconds"])

    async def _document(self, data: bytes, type: str, seconds: float) -> Reading:
        if type in formats.TEXT:
            return Reading(text=decode(data) or "", engine="utf-8")
        if type != formats.PDF:
            return await self._ask("sheets" if type == formats.XLSX else "documents", data, type, seconds)
        start = time.monotonic()
        head, body = await self._run("documents", "documents", data, type, seconds)
        found = Reading(text=body.decode("utf-8", "replace"), engine=head["engine"], pages=head["pages"])
        bare: list[int] = head["bare"]
        if not bare:
            return found
        wanted = tuple(bare[: self._settings.scan_limit])
        try:
            left = max(1.0, seconds - (time.monotonic() - start))
            head, body = await self._run("ocr", "ocr", data, type, left, wanted)
        except ServiceError as error:
            if len(bare) == found.pages:
                raise
            log.warning("the pages without text of a document were not read: %s", error.code)
            rest = merged(found, bare, (), "")
            return rest.model_copy(update={"makeshift": not isinstance(error, BadRequest)})
        return merged(found, bare, body.decode("utf-8", "replace").split("\f")[: head["done"]], head["engine"])

    async def _ask(self, crew: str, data: bytes, type: str, seconds: float) -> Reading:
        head, body = await self._run(crew, "documents" if crew == "sheets" else crew, data, type, seconds)
        text = body.decode("utf-8", "replace")
        return Reading(text=text, engine=head["engine"], pages=head.get("pages"), seconds=head.get("seconds"))

    async def _run(
        self, crew: str, name: str, data: bytes, type: str, seconds: float, only: tuple[int, ...] = ()
    ) -> tuple[dict[str, Any], bytes]:
        settings = self._settings
        job = Job(
            name=name,
            type=type,
            seconds=seconds,
            cpu=_CPU * seconds,
            characters=settings.text_limit,
            pages=settings.scan_limit if name in ("ocr", "prepare") else settings.page_limit,
            pixels=settings.pixel_limit,
            length=settings.audio_limit,
            only=only,
        )
        if name in _ENGINES and not find_spec(_ENGINES[name][0]):
            raise Unavailable(f"this installation cannot read it: the extra phronesis-media[{_ENGINES[name][1]}] is missing")
        try:
            return await self._crews[crew].ask(job, data, _HEAD + 4 * (settings.text_limit + 1))
        except Failed as failed:
            raise _refusal(failed.args[0], _NAMES[formats.KINDS[type]]) from failed


def whole(reading: Reading, kind: MediaKind, limit: int) -> Reading:
    """The reading with its text in order and within `limit` characters.

    Raises:
        UnsupportedMedia: there is no text (D-034).
    """
    text = tidy(reading.text)
    if not text:
        raise UnsupportedMedia(_NOTHING[kind])
    return reading.model_copy(update={"text": text[:limit] + _CUT if len(text) > limit else text})


def _refusal(why: str, name: str) -> ServiceError:
    match why:
        case "encrypted":
            return UnsupportedMedia(f"the {name} is protected by a password")
        case "video":
            return UnsupportedMedia("video is not readable")
        case "pages":
            return TooLarge(f"the {name} has too many pages")
        case "pixels":
            return TooLarge(f"the {name} has too many pixels")
        case "length":
            return TooLarge(f"the {name} is too long")
        case "memory" | "time":
            return TooLarge(f"reading the {name} takes more memory or time than is allowed")
    return UnsupportedMedia(f"the {name} is damaged")
