"""Removing the media of a deleted conversation."""

from __future__ import annotations

import asyncio

import pytest

from phronesis_bus import Call, News
from phronesis_contracts import NotFound, Principal
from phronesis_contracts.deletions import ConversationDeleted, Purged
from phronesis_contracts.media import AcceptUpload, MediaReady, MediaRef, TextRef
from phronesis_media.media import Reading
from phronesis_media.uploads.handlers import MediaHandlers, RemovalHandlers
from phronesis_media.uploads.store import MediaStore
from tests.unit.media.test_handlers import ANN, CALL, TEXT, CountingReader, MemoryBucket, OnePage

BOB = Principal(tenant="acme", user="bob")
NEWS = News("acme", "1", 1)


class Service:
    """The service with its bucket, and what it reported."""

    def __init__(self) -> None:
        self.uploads, self.media, self.reader = MemoryBucket(), MemoryBucket(), CountingReader()
        self.reports: list[tuple[str, Purged]] = []
        shelf = MediaStore(self.media)
        self.handlers = MediaHandlers(self.uploads, shelf, self.reader, OnePage(), _silent, _untold)
        self.removal = RemovalHandlers(shelf, self._report)

    async def _report(self, tenant: str, purged: Purged) -> None:
        self.reports.append((tenant, purged))

    async def accepted(self, who: Principal = ANN) -> str:
        """A text that was uploaded, and read."""
        upload = "0" * 32
        await self.uploads.put(upload, TEXT)
        id = (await self.handlers.accept(Call(who, "gateway"), AcceptUpload(upload=upload, name="a.txt"))).id
        await self.handlers.extract_text(Call(who, "gateway"), TextRef(media_id=id))
        return id

    async def delete(self, *media: str, user: str = "ann", part: int = 1, parts: int = 1) -> None:
        """A conversation of this user with these media was deleted."""
        event = ConversationDeleted(deletion_id="d", conversation_id="c", user=user, media=media, part=part, parts=parts)
        await self.removal.on_conversation_deleted(NEWS, event)


async def _silent(who: Principal, action: str, arguments: dict[str, object]) -> None:
    return None


async def _untold(tenant: str, medium: MediaReady) -> None:
    return None


async def test_a_medium_goes_with_its_record_and_its_text() -> None:
    service = Service()
    id = await service.accepted()
    assert len(service.media.objects) == 3
    await service.delete(id, part=2, parts=3)
    assert service.media.objects == {}
    assert service.reports == [("acme", Purged(deletion_id="d", removed={"media": 1}, part=2, parts=3))]
    with pytest.raises(NotFound):
        await service.handlers.get(CALL, MediaRef(media_id=id))


async def test_a_repeat_and_unknown_media_do_no_harm() -> None:
    service = Service()
    id = await service.accepted()
    for _ in range(2):
        await service.delete(id, "../x", "00000000-0000-4000-8000-000000000000")
    assert [report.removed for _, report in service.reports] == [{"media": 1}, {"media": 0}]


@pytest.mark.req("D-143")
async def test_another_users_medium_stays() -> None:
    service = Service()
    id = await service.accepted(BOB)
    await service.delete(id)
    assert len(service.media.objects) == 3


async def test_a_medium_with_the_same_content_is_still_read() -> None:
    service = Service()
    mine, bobs = await service.accepted(), await service.accepted(BOB)
    await service.delete(mine)
    found = await service.handlers.extract_text(Call(BOB, "gateway"), TextRef(media_id=bobs))
    assert found.text == TEXT.decode()


async def test_a_text_that_was_being_read_meanwhile_is_not_kept() -> None:
    service = Service()
    id = await service.accepted()
    for name in [name for name in service.media.objects if name.endswith(".text")]:
        await service.media.delete(name)
    began, go = asyncio.Event(), asyncio.Event()

    async def slow(data: bytes, type: str) -> Reading:
        began.set()
        await go.wait()
        return Reading(text=data.decode(), engine="slow 1")

    service.reader.read = slow  # type: ignore[method-assign]
    reading = asyncio.create_task(service.handlers.extract_text(CALL, TextRef(media_id=id)))
    await began.wait()
    await service.delete(id)
    go.set()
    assert (await reading).text == TEXT.decode()
    assert service.media.objects == {}
