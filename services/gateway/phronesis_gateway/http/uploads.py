"""Uploads: read with a hard limit, laid into the bucket, handed to the media service; and their routes."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, get_args
from urllib.parse import unquote
from uuid import uuid4

from fastapi import APIRouter, Path, Request
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import Response

from phronesis_bus import Blobs, Bus, ask
from phronesis_contracts import BadRequest, Busy, Principal, ServiceError, TooLarge
from phronesis_contracts.media import (
    ACCEPT_UPLOAD,
    MAX_UPLOAD,
    MEDIA_GET,
    MEDIA_OPEN,
    UPLOADS,
    AcceptUpload,
    FilePurpose,
    Media,
    MediaRef,
)

from ..auth.authentication import Authenticator, Caller, IdempotencyKey, authenticated_route, scope_idempotency_key
from .responses import ID_FORM, PROBLEMS, json_response, route_responses

log = logging.getLogger(__name__)

SECONDS = 120.0
"""Seconds in which an upload has to arrive."""
ENVELOPE = 64 * 1024
"""Bytes that a multipart body may have beside the file."""
_NAME = 255
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Upload:
    """An upload as it came."""

    data: bytes
    name: str
    type: str | None


class UploadReceiver:
    """Takes uploads in, a few at a time: each is held in memory once. `most`: how many side by side."""

    def __init__(self, bus: Bus, most: int) -> None:
        self._bus = bus
        self._bucket = Blobs(bus, UPLOADS)
        self._free = most

    async def take(self, who: Principal, request: Request, key: str | None) -> Media:
        """Read the request's file and have it accepted.

        Raises:
            BadRequest: there is no file, or the media service does not take it.
            TooLarge: it is over the limit.
            Busy: too many uploads are under way.
        """
        async with self._place():
            return await self._accepted(who, await _read_upload(request), key)

    async def take_file(self, who: Principal, request: Request, key: str | None) -> Media:
        """Read a form with a file and its purpose, and have it accepted; raises as `take` does."""
        async with self._place(), _in_time():
            arrived, purpose = await _file_of_form(request)
            return await self._accepted(who, arrived, key, purpose)

    async def content(self, who: Principal, id: str) -> tuple[Media, bytes]:
        """An upload of the caller with its bytes. Raises `NotFound`."""
        async with self._place():
            opened = await ask(self._bus, who, MEDIA_OPEN, MediaRef(media_id=id))
            try:
                return opened, await self._bucket.get(opened.download)
            finally:
                await self._drop(opened.download)

    async def accept(self, who: Principal, arrived: Upload, key: str) -> Media:
        """Have a file accepted that came inside a message; raises as `take` does."""
        async with self._place():
            return await self._accepted(who, arrived, key)

    async def _accepted(self, who: Principal, arrived: Upload, key: str | None, purpose: FilePurpose | None = None) -> Media:
        name = uuid4().hex
        await self._bucket.put(name, arrived.data)
        try:
            upload = AcceptUpload(upload=name, name=arrived.name, claimed_type=arrived.type, purpose=purpose)
            return await ask(self._bus, who, ACCEPT_UPLOAD, upload, key=key)
        except BaseException:
            await self._drop(name)
            raise

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        if self._free == 0:
            raise Busy("too many uploads are under way", retry_after=2)
        self._free -= 1
        try:
            yield
        finally:
            self._free += 1

    async def _drop(self, name: str) -> None:
        try:
            await self._bucket.delete(name)
        except ServiceError as error:
            # It expires by itself within the hour that the bucket keeps things.
            log.warning("an upload could not be removed: %s", error.code)


@asynccontextmanager
async def _in_time() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(SECONDS):
            yield
    except TimeoutError as error:
        raise HTTPException(408, "the upload did not arrive in time", {"Connection": "close"}) from error


async def _read_upload(request: Request) -> Upload:
    async with _in_time():
        if _is_form(request):
            return await _from_form(request)
        return await _from_body(request)


def _is_form(request: Request) -> bool:
    return request.headers.get("content-type", "").lower().startswith("multipart/form-data")


async def _file_of_form(request: Request) -> tuple[Upload, FilePurpose]:
    if not _is_form(request):
        raise BadRequest("send a form (multipart/form-data) with the parts file and purpose", field="file")
    async with request.form(max_files=1, max_fields=4, max_part_size=ENVELOPE) as form:
        if others := sorted(set(form) - {"file", "purpose"}):
            raise BadRequest("send the parts file and purpose alone", field=others[0][:64])
        purpose = next((one for one in get_args(FilePurpose) if one == form.get("purpose")), None)
        if purpose is None:
            raise BadRequest(f"a file is for one of: {', '.join(get_args(FilePurpose))}", field="purpose")
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise BadRequest("send the file in a part named file", field="file")
        return _check_upload(await file.read(MAX_UPLOAD + 1), file.filename or "", file.content_type), purpose


async def _from_form(request: Request) -> Upload:
    async with request.form(max_files=1, max_fields=4, max_part_size=ENVELOPE) as form:
        file = form.get("file")
        if not isinstance(file, UploadFile) or len(form) > 1:
            raise BadRequest("send the file in a part named file, and no other part", field="file")
        data = await file.read(MAX_UPLOAD + 1)
        return _check_upload(data, file.filename or "", file.content_type)


async def _from_body(request: Request) -> Upload:
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > MAX_UPLOAD:
            break
    name = unquote(request.headers.get("x-file-name", ""))
    return _check_upload(bytes(data), name, request.headers.get("content-type"))


def _check_upload(data: bytes, name: str, type: str | None) -> Upload:
    if len(data) > MAX_UPLOAD:
        raise TooLarge(f"an upload has {MAX_UPLOAD} bytes at most", field="file")
    if not data:
        raise BadRequest("the file is empty", field="file")
    return Upload(data, clean_file_name(name), type[:_NAME] if type else None)


def clean_file_name(given: str) -> str:
    """A name without folders and control characters: it is shown, and never opened."""
    last = re.split(r"[/\\]", given)[-1]
    return _CONTROL.sub("", last).strip(". ")[:_NAME]


MediaId = Annotated[str, Path(description="The upload's id."), ID_FORM]
MEDIA = "/api/v1/media"
_OFFICE = "application/vnd.openxmlformats-officedocument."
FILE_TYPES = (
    *("text/plain", "text/markdown", "text/html", "text/csv", "application/pdf"),
    *(_OFFICE + part for part in ("wordprocessingml.document", "spreadsheetml.sheet", "presentationml.presentation")),
    *(f"image/{part}" for part in ("png", "jpeg", "gif", "webp", "bmp", "tiff")),
    *(f"audio/{part}" for part in ("wav", "mpeg", "flac", "ogg", "mp4")),
)
"""What a file may be."""
_BINARY = {"type": "string", "format": "binary", "description": "The file."}
_FORM = {
    "schema": {"type": "object", "required": ["file"], "properties": {"file": _BINARY}, "additionalProperties": False},
    "encoding": {"file": {"contentType": ", ".join(FILE_TYPES)}},
}
_UPLOAD = {
    "requestBody": {
        "required": True,
        "content": {"multipart/form-data": _FORM} | {type: {"schema": _BINARY} for type in FILE_TYPES},
    }
}


def media_router(authenticator: Authenticator, bus: Bus, uploads: UploadReceiver) -> APIRouter:
    routes = APIRouter(route_class=authenticated_route(authenticator), responses=PROBLEMS, tags=["media"])

    @routes.post(MEDIA, status_code=201, responses=route_responses(Media, 201), openapi_extra=_UPLOAD)
    async def upload_media(request: Request, who: Caller, key: IdempotencyKey) -> Response:
        """Upload a file.

        As the part `file` of a form, or as the body with `Content-Type` and, percent-encoded, `X-File-Name`. Name its id in a
        message to have it looked at.
        """
        media = await uploads.take(who, request, scope_idempotency_key(who, key))
        return json_response(media, 201, {"Location": f"{MEDIA}/{media.id}"})

    @routes.get(MEDIA + "/{id}", responses=route_responses(Media))
    async def get_media(id: MediaId, who: Caller) -> Response:
        """Get an upload.

        What is known of the file, without its content.
        """
        return json_response(await ask(bus, who, MEDIA_GET, MediaRef(media_id=id)))

    return routes
