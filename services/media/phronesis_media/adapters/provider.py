"""Reads images and recordings with Groq's models, and with the local engines where those fail."""

from __future__ import annotations

import asyncio
import base64
import logging
import time
from importlib.resources import files
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from phronesis_contracts import BadRequest, ServiceError, Unavailable
from phronesis_contracts.media import MediaKind

from .. import formats
from ..domain import Reading
from ..settings import MediaSettings
from .child import ChildReader, whole

T = TypeVar("T", bound=BaseModel)
log = logging.getLogger(__name__)

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

    def __init__(self, settings: MediaSettings, local: ChildReader) -> None:
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
        """Close the connections."""
        await self._client.close()

    async def read(self, data: bytes, type: str) -> Reading:
        """The text of the medium in `data`."""
        kind = formats.KINDS[type]
        if kind == MediaKind.DOCUMENT:
            return await self._local.read(data, type)
        seconds, start = self._settings.parse_seconds, time.monotonic()
        try:
            async with asyncio.timeout(_SHARE * seconds):
                reading = await self._asked(data, type, _SHARE * seconds)
                return whole(reading, kind, self._settings.text_limit)
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
        heard = _parsed(_Heard, answer)
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
        choices = _parsed(_Completion, answer).choices
        if not choices or not choices[0].message.content:
            raise Unavailable("the provider's model said nothing")
        return choices[0].message.content


def _parsed(model: type[T], answer: Any) -> T:
    try:
        return model.model_validate_json(answer.http_response.content)
    except ValidationError as error:
        raise Unavailable("the provider's answer cannot be read") from error
