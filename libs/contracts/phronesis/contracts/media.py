"""Contracts of the media service: uploads and their text."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from .deletions import Purged
from .messages import Event, Message, Rpc
from .tools import Tool

UPLOADS = "uploads"
"""The bucket of the Object Store through which the gateway hands bytes over."""
MAX_UPLOAD = 25 * 1024 * 1024
"""Bytes of one upload."""


class MediaKind(StrEnum):
    """Which tool reads a medium (D-021)."""

    DOCUMENT = "document"
    IMAGE = "image"
    AUDIO = "audio"


class AcceptUpload(Message):
    """Bytes that wait in the bucket `uploads` under `upload`."""

    upload: str
    name: str = Field(default="", max_length=255)
    claimed_type: str | None = Field(default=None, max_length=255)


class FetchUrl(Message):
    """A public address to fetch."""

    url: str = Field(min_length=1, max_length=2_048)


class Media(Message):
    """An accepted medium."""

    id: str
    name: str
    type: str
    """Media type found in the content, for example `application/pdf`."""
    kind: MediaKind
    size: int
    sha256: str


class MediaRef(Message):
    """One medium of the caller by id."""

    media_id: str = Field(min_length=1, max_length=64)


class ExtractedText(Message):
    """The text of a medium: of a document, in and about an image, or spoken in a recording."""

    media_id: str
    name: str
    type: str
    text: str
    engine: str
    """Name and version of what read it."""
    pages: int | None = None
    truncated: bool = False
    """Whether `text` was cut to fit a message; the whole stays stored."""
    seconds: float | None = None
    """Length of a recording."""
    kind: MediaKind = MediaKind.DOCUMENT


ACCEPT_UPLOAD = Rpc("media.v1.upload.accept", AcceptUpload, Media, timeout=30.0)
FETCH = Rpc("media.v1.fetch", FetchUrl, Media, timeout=30.0)
MEDIA_GET = Rpc("media.v1.media.get", MediaRef, Media)
EXTRACT_TEXT = Rpc("media.v1.document.extract_text", MediaRef, ExtractedText, timeout=30.0, max_bytes=1_000_000)
MEDIA_PURGED = Event("media.v1.conversation.purged", Purged, followers=("orchestrator",))
CAPTION = Rpc("media.v1.vision.caption", MediaRef, ExtractedText, timeout=30.0, max_bytes=1_000_000)
TRANSCRIBE = Rpc("media.v1.audio.transcribe", MediaRef, ExtractedText, timeout=30.0, max_bytes=1_000_000)

EXTRACT_TEXT_TOOL = Tool(
    "document.extract_text",
    "Read the text of an uploaded document: PDF, DOCX, XLSX, PPTX, HTML, Markdown or plain text.",
    EXTRACT_TEXT,
)
CAPTION_TOOL = Tool(
    "vision.caption",
    "Read an uploaded image: the text in it, and what can be said of the picture. PNG, JPEG, WebP, GIF, BMP or TIFF.",
    CAPTION,
)
TRANSCRIBE_TOOL = Tool(
    "audio.transcribe",
    "Write down what is said in an uploaded recording: WAV, MP3, FLAC, Ogg or M4A.",
    TRANSCRIBE,
)
