"""Conversations, media and the profile: what is kept of the caller."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from phronesis.bus import Bus, ask
from phronesis.contracts import Nothing
from phronesis.contracts.media import MEDIA_GET, Media, MediaRef
from phronesis.contracts.memory import PROFILE_GET, PROFILE_PUT, Profile
from phronesis.contracts.orchestrator import CONVERSATION_GET, Conversation, ConversationRef
from phronesis.gateway.answers import PROBLEMS, Id, answers, as_json
from phronesis.gateway.door import Caller, Door, IdempotencyKey, keyed, scoped
from phronesis.gateway.messages import ProfileGiven
from phronesis.gateway.uploads import Uploads

MEDIA = "/api/v1/media"
_FILE = {"schema": {"type": "object", "required": ["file"], "properties": {"file": {"type": "string", "format": "binary"}}}}
_UPLOAD = {
    "requestBody": {
        "required": True,
        "content": {"multipart/form-data": _FILE, "*/*": {"schema": {"type": "string", "format": "binary"}}},
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

    @routes.get("/api/v1/conversations/{id}", responses=answers(Conversation))
    async def get_conversation(
        id: Id,
        who: Caller,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        before: Annotated[int | None, Query(ge=0, le=2**62)] = None,
    ) -> Response:
        """A conversation with its newest messages, or those before sequence `before`; oldest first."""
        wanted = ConversationRef(conversation_id=id, limit=limit, before=before)
        return as_json(await ask(bus, who, CONVERSATION_GET, wanted))

    @routes.post(MEDIA, status_code=201, responses=answers(Media, 201), openapi_extra=_UPLOAD)
    async def upload(request: Request, who: Caller, key: IdempotencyKey) -> Response:
        """Upload a file: as the part `file` of a form, or as the body with `Content-Type` and `X-File-Name`."""
        media = await uploads.take(who, request, scoped(who, key))
        return as_json(media, 201, {"Location": f"{MEDIA}/{media.id}"})

    @routes.get(MEDIA + "/{id}", responses=answers(Media))
    async def get_media(id: Id, who: Caller) -> Response:
        """What is known of an upload."""
        return as_json(await ask(bus, who, MEDIA_GET, MediaRef(media_id=id)))

    @routes.get("/api/v1/profile", responses=answers(Profile))
    async def get_profile(who: Caller) -> Response:
        """What is known of the caller."""
        return as_json(await ask(bus, who, PROFILE_GET, Nothing()))

    @routes.put("/api/v1/profile", responses=answers(Profile))
    async def put_profile(given: ProfileGiven, who: Caller, key: IdempotencyKey) -> Response:
        """Replace what is known of the caller."""
        return as_json(await ask(bus, who, PROFILE_PUT, Profile(profile=given.profile), key=scoped(who, key)))

    return routes
