"""The media service on a real broker: from the gateway's upload to the text."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from phronesis_bus import MEDIA, Blobs, Bus, News, ask, follow
from phronesis_contracts import BadRequest, NotFound, Nothing, Principal, TooLarge, UnsupportedMedia
from phronesis_contracts.deletions import AGED_DROP, USER_DATA, USER_ERASE, Aged, DropAged
from phronesis_contracts.media import (
    ACCEPT_UPLOAD,
    CAPTION,
    EXTRACT_TEXT,
    FETCH,
    MEDIA_GET,
    TRANSCRIBE,
    UPLOADS,
    AcceptUpload,
    FetchUrl,
    Media,
    MediaKind,
    MediaRef,
    TextRef,
)
from phronesis_contracts.orchestrator import Audited
from phronesis_contracts.service import AUDITED, HEALTH
from phronesis_media.app import build
from phronesis_media.fetching.web import DestinationResolver, PublicWeb, SystemResolver
from phronesis_media.uploads.store import MediaStore
from tests.support import documents, pictures, sample_note, speech
from tests.support.bus import connected, somebody
from tests.support.readers import reader
from tests.support.servers import NatsServer

PAGES = [[f"Page {number}", f"The review of programme {number}."] for number in range(1, 4)]


@pytest.fixture
async def buses(nats_server: NatsServer) -> AsyncIterator[tuple[Bus, Bus]]:
    """The gateway, with the media service running; and the service's own connection."""
    async with connected(nats_server, "gateway", "media") as (gateway, media), reader() as read:
        await build(media, read, PublicWeb(SystemResolver(), seconds=5), DestinationResolver(SystemResolver()))
        yield gateway, media


async def upload(gateway: Bus, who: Principal, data: bytes, name: str, claim: str | None = None) -> Media:
    id = uuid4().hex
    await Blobs(gateway, UPLOADS).put(id, data)
    return await ask(gateway, who, ACCEPT_UPLOAD, AcceptUpload(upload=id, name=name, claimed_type=claim))


@pytest.mark.req("D-024", "D-152")
async def test_an_uploaded_document_is_read_by_its_owner_and_found_by_nobody_else(buses: tuple[Bus, Bus]) -> None:
    gateway, _ = buses
    who = somebody()
    media = await upload(gateway, who, documents.pdf(PAGES), "review.pdf", "application/pdf")
    found = await ask(gateway, who, EXTRACT_TEXT, TextRef(media_id=media.id))
    assert (found.name, found.type, found.pages, found.truncated) == ("review.pdf", "application/pdf", 3, False)
    assert ("programme 1" in found.text, "programme 3" in found.text) == (True, True)
    assert await ask(gateway, who, MEDIA_GET, MediaRef(media_id=media.id)) == media
    for rpc in (MEDIA_GET, EXTRACT_TEXT, CAPTION, TRANSCRIBE):
        with pytest.raises(NotFound):
            await ask(gateway, somebody(tenant=who.tenant), rpc, TextRef(media_id=media.id))


@pytest.mark.req("D-035")
async def test_a_long_document_is_cut_in_the_reply_and_kept_whole(buses: tuple[Bus, Bus]) -> None:
    gateway, own = buses
    who = somebody()
    text = '漢字 and words, "quoted"\n' * 80_000
    media = await upload(gateway, who, text.encode(), "long.md")
    found = await ask(gateway, who, EXTRACT_TEXT, TextRef(media_id=media.id))
    assert (found.truncated, text.startswith(found.text), len(found.text) > 200_000) == (True, True, True)
    shelf = MediaStore(Blobs(own, MEDIA))
    whole = await shelf.reading(await shelf.find(who, media.id))
    assert whole is not None
    assert whole.text == text.strip()


@pytest.mark.req("D-031")
async def test_a_lie_is_refused_and_nothing_of_it_is_kept(buses: tuple[Bus, Bus]) -> None:
    gateway, _ = buses
    id = uuid4().hex
    uploads = Blobs(gateway, UPLOADS)
    await uploads.put(id, b"\x7fELF" + bytes(100))
    with pytest.raises(UnsupportedMedia) as refused:
        await ask(gateway, somebody(), ACCEPT_UPLOAD, AcceptUpload(upload=id, name="cat.png"))
    assert refused.value.field == "name"
    with pytest.raises(NotFound):
        await uploads.get(id)


async def test_an_accepted_upload_is_audited(nats_server: NatsServer, buses: tuple[Bus, Bus]) -> None:
    gateway, _ = buses
    who = somebody()
    entries: asyncio.Queue[Audited] = asyncio.Queue()

    async def on_audited(news: News, entry: Audited) -> None:
        if news.tenant == who.tenant:
            entries.put_nowait(entry)

    async with connected(nats_server, "orchestrator") as (follower,):
        await follow(follower, AUDITED["media"], on_audited)
        media = await upload(gateway, who, b"words", "a.txt")
        async with asyncio.timeout(10):
            entry = await entries.get()
    assert (entry.who, entry.action, entry.outcome) == (who.user, "media.accept", "done")
    assert entry.arguments["media_id"] == media.id


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "http://169.254.169.254/", "http://localhost.:80/", "file:///etc/passwd"])
@pytest.mark.req("D-152")
async def test_an_address_of_the_inside_is_refused(buses: tuple[Bus, Bus], url: str) -> None:
    gateway, _ = buses
    with pytest.raises(BadRequest) as refused:
        await ask(gateway, somebody(), FETCH, FetchUrl(url=url))
    assert refused.value.field == "url"


async def test_it_is_ready_as_long_as_the_broker_is(buses: tuple[Bus, Bus]) -> None:
    gateway, _ = buses
    health = await ask(gateway, somebody(), HEALTH["media"], Nothing())
    assert (health.ready, health.down) == (True, ())


async def test_the_sample_document_of_the_examples_can_be_read(buses: tuple[Bus, Bus]) -> None:
    gateway, _ = buses
    who = somebody()
    data = await asyncio.to_thread(sample_note.PATH.read_bytes)
    assert data == sample_note.content()
    media = await upload(gateway, who, data, sample_note.PATH.name, "application/pdf")
    found = await ask(gateway, who, EXTRACT_TEXT, TextRef(media_id=media.id))
    lines = [line for page in sample_note.PAGES for line in page if line]
    assert (found.pages, [line for line in lines if line not in found.text]) == (2, [])


@pytest.mark.verify
@pytest.mark.req("D-004", "D-022", "D-023")
async def test_an_image_and_a_recording_are_read_each_by_its_own_tool(buses: tuple[Bus, Bus]) -> None:
    gateway, _ = buses
    who = somebody()
    image = await upload(gateway, who, await asyncio.to_thread(pictures.PATH.read_bytes), "picture.png", "image/png")
    voice = await upload(gateway, who, await asyncio.to_thread(speech.PATH.read_bytes), "voice.ogg", "audio/ogg")
    seen, heard = await asyncio.gather(
        ask(gateway, who, CAPTION, TextRef(media_id=image.id)), ask(gateway, who, TRANSCRIBE, MediaRef(media_id=voice.id))
    )
    assert (seen.kind, seen.name, seen.text.split("\n")[0]) == (MediaKind.IMAGE, "picture.png", pictures.LINES[0])
    assert (heard.kind, heard.name, "geological disposal facility begins in September" in heard.text) == (
        *(MediaKind.AUDIO, "voice.ogg"),
        True,
    )
    assert heard.seconds is not None


@pytest.mark.req("D-032")
async def test_a_hostile_image_is_taken_apart_once_and_refused_alike_ever_after(buses: tuple[Bus, Bus]) -> None:
    gateway, own = buses
    who = somebody()
    answers = []
    for name in ("a.png", "b.png"):
        media = await upload(gateway, who, pictures.png_of(60_000, 60_000), name)
        with pytest.raises(TooLarge) as refused:
            await ask(gateway, who, CAPTION, TextRef(media_id=media.id))
        answers.append(refused.value.body())
    shelf = MediaStore(Blobs(own, MEDIA))
    kept = await shelf.reading(await shelf.find(who, media.id))
    assert kept is not None
    assert answers == [kept.refusal] * 2


async def test_the_media_of_an_erased_user_go_and_those_of_others_stay(buses: tuple[Bus, Bus]) -> None:
    gateway, own = buses
    who = somebody()
    other, namesake = somebody(tenant=who.tenant), somebody(user=who.user)
    held = {one: await upload(gateway, one, documents.pdf(PAGES), "review.pdf") for one in (who, other, namesake)}
    await ask(gateway, who, EXTRACT_TEXT, TextRef(media_id=held[who].id))
    counted = (await ask(gateway, who, USER_DATA["media"], Nothing())).held
    assert counted == {"media": 1, "bytes": held[who].size}
    assert (await ask(gateway, who, USER_ERASE["media"], Nothing())).model_dump() == {"removed": {"media": 1}, "done": True}
    assert (await ask(gateway, who, USER_DATA["media"], Nothing())).held == {}
    left = await Blobs(own, MEDIA).names()
    assert [name for name in left if held[who].id in name or (who.tenant in name and name.endswith(".text"))] == []
    for one in (other, namesake):
        assert "programme 1" in (await ask(gateway, one, EXTRACT_TEXT, TextRef(media_id=held[one].id))).text


async def test_media_go_once_they_are_older_than_their_tenant_keeps_them(buses: tuple[Bus, Bus]) -> None:
    gateway, _ = buses
    who, other = somebody(), somebody()
    old = await upload(gateway, who, documents.pdf(PAGES), "old.pdf")
    kept = await upload(gateway, other, documents.pdf(PAGES), "other.pdf")
    between = datetime.now(UTC)
    new = await upload(gateway, who, documents.pdf(PAGES), "new.pdf")
    dropped = await ask(gateway, who, AGED_DROP["media"], DropAged(what=Aged.MEDIA, before=between))
    assert dropped.model_dump() == {"removed": {"media": 1}, "done": True}
    with pytest.raises(NotFound):
        await ask(gateway, who, MEDIA_GET, MediaRef(media_id=old.id))
    assert await ask(gateway, who, MEDIA_GET, MediaRef(media_id=new.id)) == new
    assert await ask(gateway, other, MEDIA_GET, MediaRef(media_id=kept.id)) == kept
