"""Accepted media in their bucket: content and record of each medium, and one text for each content of a tenant."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID

from phronesis_contracts import NotFound, Principal

from ..media import Bucket, Reading, Stored

_TOGETHER = 16
"""Records that are read at once."""


class MediaStore:
    """The bucket `media`: `<tenant>/<id>` is the content, `<tenant>/<id>.json` the record, and `<tenant>/files/<user>/<id>`
    lists a medium that has a purpose.

    The text stands under the content's hash, so that the same file is read once in a tenant.
    """

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    async def keep(self, medium: Stored, data: bytes) -> None:
        """Store content, then record: a medium is there from the moment its record is."""
        await self._bucket.put(f"{medium.tenant}/{medium.id}", data)
        await self._bucket.put(f"{medium.tenant}/{medium.id}.json", medium.model_dump_json().encode())
        if medium.purpose is not None:
            await self._bucket.put(_entry(medium), b"")

    async def files(self, who: Principal) -> list[Stored]:
        """The caller's media that have a purpose, the newest first."""
        begin = f"{who.tenant}/files/{who.user}/"
        ids = [name.removeprefix(begin) for name in await self._bucket.names() if name.startswith(begin)]
        found = []
        for id in ids:
            try:
                found.append(await self.find(who, id))
            except NotFound:
                continue  # it is being removed
        return sorted(found, key=lambda medium: (medium.created, medium.id), reverse=True)

    async def find(self, who: Principal, media_id: str) -> Stored:
        """The caller's own medium. Raises `NotFound`: it does not exist, or is another's; the two cannot be told apart."""
        missing = NotFound("no such medium")
        if not is_medium_id(media_id):
            raise missing
        try:
            found = Stored.model_validate_json(await self._bucket.get(f"{who.tenant}/{media_id}.json"))
        except NotFound:
            raise missing from None
        if found.tenant != who.tenant or found.user != who.user:
            raise missing
        return found

    async def content(self, medium: Stored) -> bytes:
        return await self._bucket.get(f"{medium.tenant}/{medium.id}")

    async def reading(self, medium: Stored) -> Reading | None:
        """The whole text or the refusal, where this content has been read before."""
        try:
            return Reading.model_validate_json(await self._bucket.get(text_object(medium)))
        except NotFound:
            return None

    async def keep_reading(self, medium: Stored, reading: Reading) -> None:
        """Store the whole text, or the refusal, unless the medium was removed while it was read."""
        await self._bucket.put(text_object(medium), reading.model_dump_json().encode())
        if not await self._kept(medium):
            await self._bucket.delete(text_object(medium))

    async def remove(self, medium: Stored) -> None:
        """Remove a medium with its text. Another one with the same content is read anew when it is asked for.

        The text goes first, since the record names it, and once more for whoever was reading meanwhile.
        """
        name = f"{medium.tenant}/{medium.id}"
        entry = () if medium.purpose is None else (_entry(medium),)
        for gone in (*entry, text_object(medium), name, f"{name}.json", text_object(medium)):
            await self._bucket.delete(gone)

    async def records(self, tenant: str, after: str = "") -> AsyncIterator[Stored]:
        """The media of a tenant in the order of their names, from behind `after` on."""
        names = sorted(name for name in await self._bucket.names() if name.startswith(f"{tenant}/") and name.endswith(".json"))
        names = [name for name in names if name > after]
        for start in range(0, len(names), _TOGETHER):
            for found in await asyncio.gather(*map(self._record, names[start : start + _TOGETHER])):
                if found is not None and found.tenant == tenant:
                    yield found

    async def _record(self, name: str) -> Stored | None:
        try:
            return Stored.model_validate_json(await self._bucket.get(name))
        except NotFound:
            return None

    async def _kept(self, medium: Stored) -> bool:
        try:
            await self._bucket.get(f"{medium.tenant}/{medium.id}.json")
        except NotFound:
            return False
        return True


def text_object(medium: Stored) -> str:
    """The object that holds the text: one for each tenant, content and type."""
    return f"{medium.tenant}/{medium.sha256}.{medium.type.rpartition('/')[2]}.text"


def _entry(medium: Stored) -> str:
    return f"{medium.tenant}/files/{medium.user}/{medium.id}"


def is_medium_id(text: str) -> bool:
    """Whether this is a UUID as this service writes them."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
