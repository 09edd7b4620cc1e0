"""Readers of media.

What is installed, in child processes with limits of the system; and Groq's models for images and recordings, with the local
reader where those fail. The text of a reading is kept in order, within its limit, with its pages, sheets or sections.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import re
import time
from collections.abc import Sequence
from importlib.resources import files
from importlib.util import find_spec
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from phronesis_contracts import BadRequest, ServiceError, TooLarge, Unavailable, UnsupportedMedia
from phronesis_contracts.media import MediaKind, TextPart

from ..media import Reading, clean_text
from ..settings import MediaSettings
from ..uploads import formats
from ..uploads.formats import decode_text
from .jobs import Job
from .workers import ReadingFailed, WorkerPool

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


def merge_scans(found: Reading, bare: Sequence[int], read: Sequence[str], engine: str) -> Reading:
    """The whole text in the order of the pages.

    Args:
        found: the text by the parser, with a form feed between pages.
        bare: numbers of the pages without text, from 1.

    Returns:
        The reading; its text says which pages were read by OCR, and which were not.
    """
    pages = found.text.split("\f")
    for number, text in zip(bare, read, strict=False):
        if text.strip() and number <= len(pages):
            pages[number - 1] = f"[Page {number}, by OCR]\n{text}"
    left = bare[len(read) :]
    words = "\f".join(pages)
    if words.strip() and left:
        words += f"\f[{_name_pages(left)} without text of its own; OCR has not looked there.]"
    limits = (*found.limits, "scans") if left else found.limits
    engine = f"{found.engine}, {engine}" if engine else found.engine
    return found.model_copy(update={"text": words, "engine": engine, "limits": limits})


def _name_pages(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"Page {numbers[0]} is"
    return f"{len(numbers)} pages, from {numbers[0]} to {numbers[-1]}, are"


log = logging.getLogger(__name__)

_CPU = 0.8
"""Share of a job's seconds that may be processor time: what spends more is at fault itself, whatever the machine's load."""
_NAMES = {MediaKind.DOCUMENT: "document", MediaKind.IMAGE: "image", MediaKind.AUDIO: "recording"}
_ENGINES = {"ocr": ("rapidocr", "ocr"), "speech": ("faster_whisper", "speech")}
"""The package that a job needs, and the extra that installs it."""
_HEAD = 65_536


class LocalReader:
    """Documents by their parsers, images by OCR, recordings by speech recognition; plain texts, which need none, at once."""

    def __init__(self, settings: MediaSettings) -> None:
        self._settings = settings
        models = dict.fromkeys(("ocr", "speech"), settings.model_memory)
        memory = dict.fromkeys(("documents", "sheets", "prepare"), settings.parse_memory) | models
        self._pools = {
            name: WorkerPool(size, settings.parsers, settings.idle_seconds, name if name in models else None)
            for name, size in memory.items()
        }

    async def close(self) -> None:
        for pool in self._pools.values():
            await pool.close()

    async def read(self, data: bytes, type: str, seconds: float | None = None) -> Reading:
        kind = formats.KINDS[type]
        seconds = seconds or self._settings.parse_seconds
        match kind:
            case MediaKind.IMAGE:
                reading = await self._ask("ocr", data, type, seconds)
            case MediaKind.AUDIO:
                reading = await self._ask("speech", data, type, seconds)
            case MediaKind.DOCUMENT:
                reading = await self._document(data, type, seconds)
        return limit_text(reading, kind, self._settings.text_limit, type)

    async def prepare(self, data: bytes, type: str, seconds: float) -> tuple[bytes, float | None]:
        """What to send to a provider's model: a picture as JPEG and no length, a recording as it is and its seconds.

        Raises:
            ServiceError: as `read`.
        """
        head, body = await self._run("prepare", "prepare", data, type, seconds)
        return (body, None) if type in formats.IMAGES else (data, head["seconds"])

    async def _document(self, data: bytes, type: str, seconds: float) -> Reading:
        if type in formats.TEXT:
            return Reading(text=decode_text(data) or "", engine="utf-8")
        if type != formats.PDF:
            return await self._ask("sheets" if type == formats.XLSX else "documents", data, type, seconds)
        start = time.monotonic()
        head, body = await self._run("documents", "documents", data, type, seconds)
        limits = ("pages",) if head.get("broken") else ()
        found = Reading(text=body.decode("utf-8", "replace"), engine=head["engine"], pages=head["pages"], limits=limits)
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
            rest = merge_scans(found, bare, (), "")
            return rest.model_copy(update={"makeshift": not isinstance(error, BadRequest)})
        return merge_scans(found, bare, body.decode("utf-8", "replace").split("\f")[: head["done"]], head["engine"])

    async def _ask(self, pool: str, data: bytes, type: str, seconds: float) -> Reading:
        head, body = await self._run(pool, "documents" if pool == "sheets" else pool, data, type, seconds)
        text = body.decode("utf-8", "replace")
        return Reading(text=text, engine=head["engine"], pages=head.get("pages"), seconds=head.get("seconds"))

    async def _run(
        self, pool: str, name: str, data: bytes, type: str, seconds: float, only: tuple[int, ...] = ()
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
            return await self._pools[pool].ask(job, data, _HEAD + 4 * (settings.text_limit + 1))
        except ReadingFailed as failed:
            raise _refusal(failed.args[0], _NAMES[formats.KINDS[type]]) from failed


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


T = TypeVar("T", bound=BaseModel)

_SHARE = 0.5
"""Share of the time that the provider may take, its retries and all; the rest is kept for the local engine."""
_RETRIES = 2
_LONGEST = 2048
"""Tokens of a description."""
_EXTENSIONS = {"audio/wav": "wav", "audio/mpeg": "mp3", "audio/flac": "flac", "audio/ogg": "ogg", formats.M4A: "m4a"}


class _Heard(BaseModel):
    text: str


class _Message(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Message


class _Completion(BaseModel):
    choices: list[_Choice]


class GroqReader:
    """Images and recordings by Groq; documents by the local reader, and all that Groq does not answer.

    Args:
        settings: with a key for Groq.
        local: reads documents, makes images ready, and stands in.
    """

    def __init__(self, settings: MediaSettings, local: LocalReader) -> None:
        import groq  # takes most of a second, and is needed with a key alone

        assert settings.groq_api_key is not None
        self._errors = groq.APIError
        self._settings = settings
        self._local = local
        logging.getLogger("groq").setLevel(logging.WARNING)  # at debug level it would log whole images
        self._client: Any = groq.AsyncGroq(
            api_key=settings.groq_api_key.get_secret_value(),
            base_url=settings.groq_url,
            timeout=settings.parse_seconds,
            max_retries=_RETRIES,
        )
        self._prompt = files("phronesis_media").joinpath("content", "caption.md").read_text("utf-8")

    async def close(self) -> None:
        await self._client.close()

    async def read(self, data: bytes, type: str) -> Reading:
        kind = formats.KINDS[type]
        if kind == MediaKind.DOCUMENT:
            return await self._local.read(data, type)
        seconds, start = self._settings.parse_seconds, time.monotonic()
        try:
            async with asyncio.timeout(_SHARE * seconds):
                reading = await self._asked(data, type, _SHARE * seconds)
                return limit_text(reading, kind, self._settings.text_limit)
        except BadRequest:
            raise  # over a limit or damaged, which no other engine changes; or nothing is said in it
        except (self._errors, TimeoutError, ServiceError) as error:
            log.warning("the provider's model has not read %s (%s); the local engine does", type, error.__class__.__name__)
        left = max(1.0, seconds - (time.monotonic() - start))
        return (await self._local.read(data, type, left)).model_copy(update={"makeshift": True})

    async def _asked(self, data: bytes, type: str, seconds: float) -> Reading:
        ready, length = await self._local.prepare(data, type, seconds)
        if type in formats.IMAGES:
            return Reading(text=await self._described(ready), engine=f"groq {self._settings.vision_model}")
        answer = await self._client.audio.transcriptions.with_raw_response.create(
            model=self._settings.speech_model, file=(f"recording.{_EXTENSIONS[type]}", ready, type), response_format="json"
        )
        heard = _parse_answer(_Heard, answer)
        return Reading(text=heard.text, engine=f"groq {self._settings.speech_model}", seconds=length)

    async def _described(self, picture: bytes) -> str:
        address = f"data:image/jpeg;base64,{base64.b64encode(picture).decode()}"
        parts = [{"type": "text", "text": self._prompt}, {"type": "image_url", "image_url": {"url": address}}]
        answer = await self._client.chat.completions.with_raw_response.create(
            model=self._settings.vision_model,
            messages=[{"role": "user", "content": parts}],
            temperature=0.0,
            max_completion_tokens=_LONGEST,
        )
        choices = _parse_answer(_Completion, answer).choices
        if not choices or not choices[0].message.content:
            raise Unavailable("the provider's model said nothing")
        return choices[0].message.content


def _parse_answer(model: type[T], answer: Any) -> T:
    try:
        return model.model_validate_json(answer.http_response.content)
    except ValidationError as error:
        raise Unavailable("the provider's answer cannot be read") from error
