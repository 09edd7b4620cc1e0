"""The handlers of the media service, with buckets in memory."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any
from uuid import UUID, uuid4

import pytest

from phronesis_bus import Call
from phronesis_contracts import BadRequest, NotFound, Principal, ServiceError, TimedOut, TooLarge, Unavailable, UnsupportedMedia
from phronesis_contracts.media import MAX_UPLOAD, AcceptUpload, FetchUrl, Media, MediaKind, MediaReady, MediaRef, TextRef
from phronesis_media.media import Fetched, Reading
from phronesis_media.uploads.handlers import MediaHandlers
from phronesis_media.uploads.store import MediaStore

ANN = Principal(tenant="acme", user="ann")
CALL = Call(ANN, "gateway")
TEXT = b"Delivery confidence was reviewed in March."


class MemoryBucket:
    """Objects in a dictionary."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    async def put(self, name: str, data: bytes) -> None:
        self.objects[name] = data

    async def get(self, name: str) -> bytes:
        if name not in self.objects:
            raise NotFound("no such object")
        return self.objects[name]

    async def delete(self, name: str) -> None:
        self.objects.pop(name, None)


class CountingReader:
    """Reads every document as its characters, and counts."""

    def __init__(self, failure: Exception | None = None, *, makeshift: bool = False) -> None:
        self.reads = 0
        self.failure = failure
        self.makeshift = makeshift

    async def read(self, data: bytes, type: str) -> Reading:
        self.reads += 1
        await asyncio.sleep(0)
        if self.failure:
            raise self.failure
        return Reading(text=data.decode("latin-1"), engine="test 1", pages=2, makeshift=self.makeshift)


class OnePage:
    """A web of one page."""

    async def fetch(self, url: str) -> Fetched:
        return Fetched(b"<html>hello</html>", "page", "text/html; charset=utf-8")


class Service:
    """The handlers with all that they stand on."""

    def __init__(self, reader: CountingReader | None = None) -> None:
        self.uploads, self.media = MemoryBucket(), MemoryBucket()
        self.reader = reader or CountingReader()
        self.audited: list[tuple[str, str, dict[str, Any]]] = []
        self.told: list[tuple[str, MediaReady]] = []
        self.handlers = MediaHandlers(self.uploads, MediaStore(self.media), self.reader, OnePage(), self.audit, self.tell)

    async def audit(self, who: Principal, action: str, arguments: dict[str, Any]) -> None:
        self.audited.append((who.user, action, arguments))

    async def tell(self, tenant: str, medium: MediaReady) -> None:
        assert self.media.objects, "it is told of what is stored"
        self.told.append((tenant, medium))

    async def accept(self, data: bytes = TEXT, name: str = "note.txt", claim: str | None = None, who: Call = CALL) -> Media:
        upload = uuid4().hex
        self.uploads.objects[upload] = data
        return await self.handlers.accept(who, AcceptUpload(upload=upload, name=name, claimed_type=claim))


@pytest.mark.req("D-T02")
async def test_an_accepted_upload_is_kept_with_its_record_and_is_no_upload_any_more() -> None:
    service = Service()
    media = await service.accept()
    assert media == Media(
        id=media.id,
        name="note.txt",
        type="text/plain",
        kind=MediaKind.DOCUMENT,
        size=len(TEXT),
        sha256=hashlib.sha256(TEXT).hexdigest(),
        created_at=media.created_at,
    )
    assert media.created_at is not None
    assert UUID(media.id).version == 4
    assert service.uploads.objects == {}
    assert set(service.media.objects) == {f"acme/{media.id}", f"acme/{media.id}.json"}
    assert service.audited == [
        ("ann", "media.accept", {"media_id": media.id, "name": "note.txt", "type": "text/plain", "size": len(TEXT)})
    ]


@pytest.mark.parametrize("data", [b"", b"\x7fELF\x02" + bytes(60)])
async def test_a_refused_upload_leaves_nothing_behind(data: bytes) -> None:
    service = Service()
    with pytest.raises(BadRequest):
        await service.accept(data, "cat.png")
    assert (service.uploads.objects, service.media.objects, service.audited) == ({}, {}, [])


@pytest.mark.req("D-032")
async def test_an_upload_over_the_limit_is_too_large() -> None:
    with pytest.raises(TooLarge):
        await Service().accept(b"a" * (MAX_UPLOAD + 1))


@pytest.mark.parametrize("upload", ["", "../x", "A" * 32, "g" * 32, "0" * 31, f"{'0' * 32}/x"])
async def test_an_upload_of_another_shape_is_refused(upload: str) -> None:
    with pytest.raises(BadRequest) as refused:
        await Service().handlers.accept(CALL, AcceptUpload(upload=upload))
    assert refused.value.field == "upload"


async def test_an_upload_that_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFound, match="no such upload"):
        await Service().handlers.accept(CALL, AcceptUpload(upload=uuid4().hex))


async def test_a_fetched_page_becomes_a_medium_like_an_upload() -> None:
    service = Service()
    media = await service.handlers.fetch(CALL, FetchUrl(url="https://example.com/page"))
    assert await service.handlers.get(CALL, MediaRef(media_id=media.id)) == media
    assert (media.name, media.type) == ("page", "text/html")


@pytest.mark.parametrize(
    "who",
    [
        ANN.model_copy(update={"user": "bob"}),
        ANN.model_copy(update={"tenant": "other"}),
        Principal(tenant="other", user="bob"),
    ],
)
@pytest.mark.req("D-152")
async def test_a_foreign_medium_is_answered_like_an_unknown_one(who: Principal) -> None:
    service = Service()
    media = await service.accept()
    call = Call(who, "gateway")
    answers = []
    for id in (media.id, str(uuid4()), media.id.upper(), "../acme/x", "*"):
        for handler in (
            service.handlers.get,
            service.handlers.extract_text,
            service.handlers.caption,
            service.handlers.transcribe,
        ):
            with pytest.raises(NotFound) as refused:
                await handler(call, TextRef(media_id=id))
            answers.append(refused.value.body())
    assert answers == [NotFound("no such medium").body()] * 20


async def test_the_text_of_a_document_comes_with_what_read_it() -> None:
    service = Service()
    media = await service.accept()
    found = await service.handlers.extract_text(CALL, TextRef(media_id=media.id))
    assert found.model_dump() == {
        "media_id": media.id,
        "name": "note.txt",
        "type": "text/plain",
        "text": TEXT.decode(),
        "engine": "test 1",
        "pages": 2,
        "truncated": False,
        "seconds": None,
        "kind": MediaKind.DOCUMENT,
        "offset": 0,
        "length": len(TEXT.decode()),
        "parts": (),
        "limits": (),
    }


@pytest.mark.req("D-036")
async def test_the_same_content_is_read_once_in_a_tenant_even_when_asked_for_together() -> None:
    service = Service()
    media = [await service.accept(name=f"{i}.txt") for i in range(3)]
    texts = await asyncio.gather(*(service.handlers.extract_text(CALL, TextRef(media_id=m.id)) for m in media * 2))
    assert ({text.text for text in texts}, service.reader.reads) == ({TEXT.decode()}, 1)


async def test_another_tenant_s_reading_is_not_used() -> None:
    service = Service()
    stranger = Call(Principal(tenant="other", user="ann"), "gateway")
    for call in (CALL, stranger):
        media = await service.accept(who=call)
        await service.handlers.extract_text(call, TextRef(media_id=media.id))
    assert service.reader.reads == 2


@pytest.mark.req("D-035")
async def test_a_long_text_is_cut_in_the_reply_and_stays_whole_in_the_store() -> None:
    service = Service()
    media = await service.accept(b"a" * 500_000)
    found = await service.handlers.extract_text(CALL, TextRef(media_id=media.id))
    (stored,) = [data for name, data in service.media.objects.items() if name.endswith(".text")]
    assert (len(found.text), found.truncated) == (400_000, True)
    assert len(Reading.model_validate_json(stored).text) == 500_000


@pytest.mark.parametrize("failure", [UnsupportedMedia("damaged"), TooLarge("pages")])
async def test_what_the_content_is_at_fault_for_is_remembered_in_its_tenant(failure: ServiceError) -> None:
    service = Service(CountingReader(failure))
    stranger = Call(Principal(tenant="other", user="ann"), "gateway")
    bodies = []
    for call in (CALL, CALL, stranger):
        media = await service.accept(who=call)
        with pytest.raises(type(failure)) as refused:
            await service.handlers.extract_text(call, TextRef(media_id=media.id))
        bodies.append(refused.value.body())
    assert (bodies, service.reader.reads) == ([failure.body()] * 3, 2)


@pytest.mark.parametrize("failure", [Unavailable("no process"), TimedOut("late")])
async def test_what_the_content_is_not_at_fault_for_is_tried_anew(failure: ServiceError) -> None:
    service = Service(CountingReader(failure))
    media = await service.accept()
    for _ in range(2):
        with pytest.raises(type(failure)):
            await service.handlers.extract_text(CALL, TextRef(media_id=media.id))
    assert service.reader.reads == 2


async def test_a_makeshift_reading_is_given_and_not_kept() -> None:
    service = Service(CountingReader(makeshift=True))
    media = await service.accept()
    texts = [(await service.handlers.extract_text(CALL, TextRef(media_id=media.id))).text for _ in range(2)]
    assert (texts, service.reader.reads) == ([TEXT.decode()] * 2, 2)


@pytest.mark.parametrize(
    ("data", "kind", "tool"),
    [
        (TEXT, MediaKind.DOCUMENT, "document.extract_text"),
        (b"\x89PNG\r\n\x1a\n" + b"words", MediaKind.IMAGE, "vision.caption"),
        (b"fLaC" + bytes(8), MediaKind.AUDIO, "audio.transcribe"),
    ],
)
@pytest.mark.req("D-021", "D-022", "D-023", "D-024", "D-128")
async def test_the_kind_of_a_medium_alone_decides_which_tool_reads_it(data: bytes, kind: MediaKind, tool: str) -> None:
    service = Service()
    media = await service.accept(data, "")
    handlers = service.handlers
    tools = {
        "document.extract_text": handlers.extract_text,
        "vision.caption": handlers.caption,
        "audio.transcribe": handlers.transcribe,
    }
    found = await tools.pop(tool)(CALL, TextRef(media_id=media.id))
    assert (media.kind, media.name, found.kind) == (kind, kind.value, kind)
    for other in tools.values():
        with pytest.raises(BadRequest, match=f"this medium is read by {tool}") as refused:
            await other(CALL, TextRef(media_id=media.id))
        assert refused.value.field == "media_id"


async def test_a_stored_file_is_told_of_with_its_owner_and_a_refused_one_is_not() -> None:
    service = Service()
    media = await service.accept(name="note.txt")
    assert service.told == [("acme", MediaReady(media_id=media.id, user="ann", kind=MediaKind.DOCUMENT, name="note.txt"))]
    with pytest.raises(BadRequest):
        await service.accept(b"\x00\x01\x02", name="x.bin")
    assert len(service.told) == 1
