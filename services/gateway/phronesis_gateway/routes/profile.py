"""The profile: what is known of the caller, who may read, correct and delete it."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Header, Request
from starlette.responses import Response

from phronesis_bus import Bus, ask
from phronesis_contracts import BadRequest, Nothing
from phronesis_contracts.memory import (
    PROFILE_DELETE,
    PROFILE_GET,
    PROFILE_PUT,
    PROFILE_UPDATE,
    DeleteProfile,
    Profile,
    ProfileChanged,
    UpdateProfile,
)
from phronesis_gateway.answers import PROBLEMS, answers, as_json
from phronesis_gateway.door import Caller, Door, IdempotencyKey, keyed, scoped
from phronesis_gateway.messages import ProfileGiven

PROFILE = "/api/v1/profile"
MERGE_PATCH = "application/merge-patch+json"
_ETAG = re.compile(r'"([0-9]{1,18})"')
_IF_MATCH = r'^("[0-9]{1,18}"|\*)$'
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {**answers(Profile)[200], "headers": {"ETag": {"description": "The version.", "schema": {"type": "string"}}}}
}


async def _version(
    request: Request,
    _: Annotated[
        str | None,
        Header(
            alias="If-Match",
            pattern=_IF_MATCH,
            json_schema_extra={"format": "entity-tag"},
            description="The `ETag` of the version to change; another one by now is a 412.",
        ),
    ] = None,
) -> int | None:
    given = request.headers.getlist("if-match")
    if not given or given == ["*"]:
        return None
    found = _ETAG.fullmatch(given[0])
    if len(given) > 1 or found is None:
        raise BadRequest("give one ETag as it came, or *", field="If-Match")
    return int(found[1])


Version = Annotated[int | None, Depends(_version)]
"""The version that the caller wants to change, where it states one."""


def router(door: Door, bus: Bus) -> APIRouter:
    """The routes.

    Args:
        door: lets callers in.
        bus: the connected bus.
    """
    routes = APIRouter(route_class=keyed(door), responses=PROBLEMS, tags=["profile"])

    @routes.get(PROFILE, responses=_ANSWER)
    async def get_profile(who: Caller) -> Response:
        """What is known of the caller; empty for a new user."""
        return _shown(await ask(bus, who, PROFILE_GET, Nothing()))

    @routes.put(PROFILE, responses=_ANSWER)
    async def put_profile(given: ProfileGiven, who: Caller, version: Version, key: IdempotencyKey) -> Response:
        """Replace what is known of the caller."""
        wanted = Profile(profile=given.profile, version=version)
        return _shown(await _asked(ask(bus, who, PROFILE_PUT, wanted, key=scoped(who, key))))

    @routes.patch(PROFILE, responses=_ANSWER)
    async def update_profile(
        given: Annotated[ProfileGiven, Body(media_type=MERGE_PATCH)], who: Caller, version: Version, key: IdempotencyKey
    ) -> Response:
        """Correct what is known of the caller, by a JSON merge patch (RFC 7396): members replace, null removes."""
        wanted = UpdateProfile(patch=given.profile, version=version)
        return _shown(await _asked(ask(bus, who, PROFILE_UPDATE, wanted, key=scoped(who, key))))

    @routes.delete(PROFILE, responses=_ANSWER)
    async def delete_profile(who: Caller, version: Version, key: IdempotencyKey) -> Response:
        """Delete what is known of the caller. A second time changes nothing."""
        return _shown(await _asked(ask(bus, who, PROFILE_DELETE, DeleteProfile(version=version), key=scoped(who, key))))

    return routes


async def _asked(answer: Any) -> Profile:
    """The answer to a change, with errors named as the caller names their fields."""
    try:
        changed: Profile = await answer
    except BadRequest as error:
        error.field = "profile" if error.field == "patch" else error.field
        raise
    except ProfileChanged as error:
        error.field = "If-Match"
        raise
    return changed


def _shown(profile: Profile) -> Response:
    return as_json(profile, headers={"ETag": f'"{profile.version or 0}"'})
