"""Media: what the caller uploads."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from phronesis_bus import Bus, ask
from phronesis_contracts.media import MEDIA_GET, Media, MediaRef
from phronesis_gateway.answers import PROBLEMS, Id, answers, as_json
from phronesis_gateway.door import Caller, Door, IdempotencyKey, keyed, scoped
from phronesis_gateway.uploads import Uploads

MEDIA = "/api/v1/media"
_OFFICE = "application/vnd.openxmlformats-officedocument."
_TYPES = (
    *("text/plain", "text/markdown", "text/html", "text/csv", "application/pdf"),
    *(_OFFICE + part for part in ("wordprocessingml.document", "spreadsheetml.sheet", "presentationml.presentation")),
    *(f"image/{part}" for part in ("png", "jpeg", "gif", "webp", "bmp", "tiff")),
    *(f"audio/{part}" for part in ("wav", "mpeg", "flac", "ogg", "mp4")),
)
_BINARY = {"type": "string", "format": "binary"}
_FORM = {
    "schema": {"type": "object", "required": ["file"], "properties": {"file": _BINARY}, "additionalProperties": False},
    "encoding": {"file": {"contentType": ", ".join(_TYPES)}},
}
_UPLOAD = {
    "requestBody": {
        "required": True,
        "content": {"multipart/form-data": _FORM} | {type: {"schema": _BINARY} for type in _TYPES},
    }
}


def router(door: Door, bus: Bus, uploads: Uploads) -> APIRouter:
    """The routes.

    Args:
        door: lets callers in.
        bus: the connected bus.
        uploads: takes uploads in.
    """
    routes = APIRouter(route_class=keyed(door), responses=PROBLEMS, tags=["memory"])

    @routes.post(MEDIA, status_code=201, responses=answers(Media, 201), openapi_extra=_UPLOAD)
    async def upload(request: Request, who: Caller, key: IdempotencyKey) -> Response:
        """Upload a file: as the part `file` of a form, or as the body with `Content-Type` and `X-File-Name`."""
        media = await uploads.take(who, request, scoped(who, key))
        return as_json(media, 201, {"Location": f"{MEDIA}/{media.id}"})

    @routes.get(MEDIA + "/{id}", responses=answers(Media))
    async def get_media(id: Id, who: Caller) -> Response:
        """What is known of an upload."""
        return as_json(await ask(bus, who, MEDIA_GET, MediaRef(media_id=id)))

    return routes
