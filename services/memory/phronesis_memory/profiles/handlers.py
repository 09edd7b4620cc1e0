"""The handlers of profiles: what a profile may be, and how a part of it is corrected."""

from __future__ import annotations

import json
from typing import Any

from phronesis_bus import Call
from phronesis_contracts import BadRequest, Nothing, TooLarge
from phronesis_contracts.memory import DeleteProfile, Profile, UpdateProfile

from ..values import is_storable
from .store import PostgresProfiles

MAX_PROFILE = 32 * 1024
"""Bytes of a profile as JSON."""
MAX_DEPTH = 16
"""Objects and lists inside each other."""


def merge_patch(profile: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """The profile after a JSON merge patch (RFC 7396): members replace, null removes, objects are patched in turn."""
    result = dict(profile)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            inner = result.get(name)
            result[name] = merge_patch(inner if isinstance(inner, dict) else {}, value)
        else:
            result[name] = value
    return result


def check_profile(profile: dict[str, Any], field: str = "profile") -> dict[str, Any]:
    """The profile, or patch, where it can be stored. Raises `BadRequest` (too deep, or refused; see `field`), `TooLarge`."""
    if _depth(profile) > MAX_DEPTH:
        raise BadRequest(f"a profile is nested {MAX_DEPTH} deep at most", field=field)
    if not is_storable(profile):
        raise BadRequest("a profile holds no NUL characters and no infinite numbers", field=field)
    if len(json.dumps(profile, ensure_ascii=False).encode()) > MAX_PROFILE:
        raise TooLarge(f"a profile is at most {MAX_PROFILE} bytes", field=field)
    return profile


def _depth(value: Any) -> int:
    """How deep objects and lists stand inside each other; counting ends just over the limit."""
    level, depth = [value], 0
    while level and depth <= MAX_DEPTH:
        inner: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                inner.extend(one.values())
            elif isinstance(one, list):
                inner.extend(one)
        depth += any(isinstance(one, (dict, list)) for one in level)
        level = inner
    return depth


class ProfileHandlers:
    def __init__(self, profiles: PostgresProfiles) -> None:
        self._profiles = profiles

    async def get(self, call: Call, request: Nothing) -> Profile:
        return await self._profiles.get(call.who)

    async def put(self, call: Call, request: Profile) -> Profile:
        given = check_profile(request.profile)
        return await self._profiles.change(call, request, request.version, lambda _: given, whole=True)

    async def update(self, call: Call, request: UpdateProfile) -> Profile:
        patch = check_profile(request.patch, "patch")
        return await self._profiles.change(
            call, request, request.version, lambda old: check_profile(merge_patch(old, patch), "patch")
        )

    async def delete(self, call: Call, request: DeleteProfile) -> Profile:
        return await self._profiles.delete(call, request)
