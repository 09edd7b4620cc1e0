"""What a message holds: its text, and media by address, by the id of an upload, or inside the message itself."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from phronesis_contracts import BadRequest
from phronesis_gateway.messages import MediaGiven
from phronesis_gateway.uploads import Arrived, file_name

_DATA = re.compile(r"data:([a-z0-9.+-]+/[a-z0-9.+-]+)?(?:;[a-z0-9.+-]+=[a-zA-Z0-9.+-]+)*;base64,", re.I)
_ID: Any = Field(min_length=1, max_length=64, json_schema_extra={"format": "medium"})
_ADDRESS: Any = Field(min_length=1, json_schema_extra={"format": "public-address"})


class Part(BaseModel):
    """Base of the parts. What a part says besides, such as a picture's `detail`, changes nothing here."""

    model_config = ConfigDict(frozen=True)


class TextPart(Part):
    """Text."""

    type: Literal["text", "input_text", "output_text"]
    text: str = Field(json_schema_extra={"format": "not-blank"})


class ImageUrl(Part):
    """Where a picture is: a public address, or a `data:` address that holds it."""

    url: Annotated[str, _ADDRESS]


class ImagePart(Part):
    """A picture of a chat's message."""

    type: Literal["image_url"]
    image_url: ImageUrl


def _only(*names: str) -> dict[str, Any]:
    """Exactly one of these members, for the description."""
    nothing = {"type": "null"}
    given = {"type": "string"}
    return {"oneOf": [{"required": [one], "properties": {n: given if n == one else nothing for n in names}} for one in names]}


class InputImage(Part):
    """A picture of a response's input: by an address, or by the id of an upload."""

    model_config = ConfigDict(json_schema_extra=_only("image_url", "file_id"))

    type: Literal["input_image"]
    image_url: Annotated[str, _ADDRESS] | None = None
    file_id: Annotated[str, _ID] | None = None


class Sound(Part):
    """A recording."""

    data: str = Field(min_length=1, json_schema_extra={"format": "inline-file"})
    """Base64."""
    format: Literal["wav", "mp3"]


class AudioPart(Part):
    """Speech."""

    type: Literal["input_audio"]
    input_audio: Sound


class File(Part):
    """A file: by the id of an upload, or inside."""

    model_config = ConfigDict(json_schema_extra=_only("file_id", "file_data"))

    file_id: Annotated[str, _ID] | None = None
    file_data: str | None = Field(default=None, min_length=1, json_schema_extra={"format": "inline-file"})
    """Base64, alone or as a `data:` address."""
    filename: str | None = None


class FilePart(Part):
    """A file of a chat's message."""

    type: Literal["file"]
    file: File


class InputFile(File):
    """A file of a response's input."""

    model_config = ConfigDict(json_schema_extra=_only("file_id", "file_data", "file_url"))

    type: Literal["input_file"]
    file_url: Annotated[str, _ADDRESS] | None = None


def _kind(part: Any) -> str:
    kind = part.get("type") if isinstance(part, dict) else getattr(part, "type", None)
    return "text" if kind in ("input_text", "output_text") else str(kind)


AnyPart = Annotated[
    Annotated[TextPart, Tag("text")]
    | Annotated[ImagePart, Tag("image_url")]
    | Annotated[InputImage, Tag("input_image")]
    | Annotated[AudioPart, Tag("input_audio")]
    | Annotated[FilePart, Tag("file")]
    | Annotated[InputFile, Tag("input_file")],
    Discriminator(_kind),
]
Content = Annotated[str, Field(json_schema_extra={"format": "not-blank"})] | Annotated[tuple[AnyPart, ...], Field(min_length=1)]


@dataclass(frozen=True)
class Said:
    """What a person says in a message."""

    text: str
    media: tuple[MediaGiven | Arrived, ...]
    """Uploads and addresses, and files that the message itself holds."""


def text_of(content: Content | None) -> str:
    """The text of a message alone."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part.text for part in content if isinstance(part, TextPart))


def said(content: Content | None, field: str) -> Said:
    """A person's message.

    Args:
        content: the message's.
        field: where it stands, for the error.

    Raises:
        BadRequest: a medium is named in no way, or in two, or what it holds is no base64.
    """
    if content is None or isinstance(content, str):
        return Said(content or "", ())
    return Said(text_of(content), tuple(_media(content, field)))


def _media(parts: Iterable[AnyPart], field: str) -> Iterable[MediaGiven | Arrived]:
    for place, part in enumerate(parts):
        where = f"{field}.{place}"
        match part:
            case ImagePart():
                yield _one(None, part.image_url.url, None, f"{where}.image_url.url", "image")
            case InputImage():
                yield _one(part.file_id, part.image_url, None, where, "image")
            case AudioPart():
                sound = part.input_audio
                yield Arrived(_decoded(sound.data, f"{where}.input_audio.data"), f"audio.{sound.format}", None)
            case FilePart():
                yield _one(part.file.file_id, None, part.file.file_data, f"{where}.file", part.file.filename or "file")
            case InputFile():
                yield _one(part.file_id, part.file_url, part.file_data, where, part.filename or "file")


def _one(id: str | None, url: str | None, data: str | None, where: str, name: str) -> MediaGiven | Arrived:
    if sum(given is not None for given in (id, url, data)) != 1:
        raise BadRequest("name a medium in one way: by its id, by its address, or by what it holds", field=where)
    if id is not None:
        return MediaGiven(media_id=id)
    if url is not None and not url[:5].lower() == "data:":
        if len(url) > 2_048:
            raise BadRequest("an address has 2048 characters at most", field=where)
        return MediaGiven(url=url)
    inside = url or data or ""
    head = _DATA.match(inside)
    return Arrived(_decoded(inside[head.end() :] if head else inside, where), file_name(name), head[1] if head else None)


def _decoded(text: str, where: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequest("this is no base64", field=where) from error
    if not data:
        raise BadRequest("the file is empty", field=where)
    return data
