"""The handlers of profiles."""

from __future__ import annotations

from phronesis_bus import Call
from phronesis_contracts import Nothing
from phronesis_contracts.memory import DeleteProfile, Profile, UpdateProfile

from .rules import check_profile, merge_patch
from .store import PostgresProfiles


class ProfileHandlers:
    def __init__(self, profiles: PostgresProfiles) -> None:
        self._profiles = profiles

    async def get(self, call: Call, request: Nothing) -> Profile:
        return await self._profiles.get(call.who)

    async def put(self, call: Call, request: Profile) -> Profile:
        given = check_profile(request.profile)
        return await self._profiles.change(call, request, request.version, lambda _: given)

    async def update(self, call: Call, request: UpdateProfile) -> Profile:
        patch = check_profile(request.patch, "patch")
        return await self._profiles.change(
            call, request, request.version, lambda old: check_profile(merge_patch(old, patch), "patch")
        )

    async def delete(self, call: Call, request: DeleteProfile) -> Profile:
        return await self._profiles.delete(call, request)
