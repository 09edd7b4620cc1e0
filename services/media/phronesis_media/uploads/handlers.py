"""What the service does with uploads, addresses and media; and the removal of what only a deleted conversation referred to."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from uuid import uuid4
from weakref import WeakValueDictionary

from phronesis_bus import Call, News
from phronesis_contracts import BadRequest, NotFound, Nothing, Principal, ServiceError, TooLarge
from phronesis_contracts.deletions import Aged, ConversationDeleted, DropAged, PartErased, Purged, UserData
from phronesis_contracts.media import (
    MAX_UPLOAD,
    AcceptUpload,
    ExtractedText,
    FetchUrl,
    FileList,
    FilePurpose,
    ListFiles,
    Media,
    MediaKind,
    MediaReady,
    MediaRef,
    OpenedMedia,
    TextRef,
)

from ..media import (
    LARGEST_REPLY,
    LONGEST_REPLY,
    Audit,
    Bucket,
    Reader,
    Reading,
    Stored,
    Web,
    clean_name,
    cut_to_reply,
    parts_between,
    size_of_parts,
    tenant,
)
from . import formats
from .formats import detect_type
from .store import MediaStore, text_object

_TOOLS = {MediaKind.DOCUMENT: "document.extract_text", MediaKind.IMAGE: "vision.caption", MediaKind.AUDIO: "audio.transcribe"}


Tell = Callable[[str, MediaReady], Awaitable[None]]
"""Tell in a tenant of a medium that was stored."""


class MediaHandlers:
    """The handlers of the service."""

    def __init__(self, uploads: Bucket, store: MediaStore, reader: Reader, web: Web, audit: Audit, tell: Tell) -> None:
        self._uploads = uploads
        self._store = store
        self._reader = reader
        self._web = web
        self._audit = audit
        self._tell = tell
        self._reading: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def accept(self, call: Call, request: AcceptUpload) -> Media:
        """Make a medium of an upload; the upload is gone after it, accepted or refused."""
        if len(request.upload) != 32 or not set(request.upload) <= set("0123456789abcdef"):
            raise BadRequest("an upload is named by 32 hexadecimal digits", field="upload")
        try:
            data = await self._uploads.get(request.upload)
        except NotFound:
            raise NotFound("no such upload") from None
        try:
            media = await self._keep(call.who, data, request.name, request.claimed_type, request.purpose)
        except BadRequest:
            await self._uploads.delete(request.upload)
            raise
        await self._uploads.delete(request.upload)
        return media

    async def fetch(self, call: Call, request: FetchUrl) -> Media:
        """Make a medium of what a public address gives."""
        found = await self._web.fetch(request.url)
        return await self._keep(call.who, found.data, found.name, found.claimed_type)

    async def get(self, call: Call, request: MediaRef) -> Media:
        return (await self._store.find(call.who, request.media_id)).media()

    async def files(self, call: Call, request: ListFiles) -> FileList:
        """A page of the caller's media that have a purpose. Raises `NotFound`: the page's beginning is none of them."""
        found = [one for one in await self._store.files(call.who) if request.purpose in (None, one.purpose)]
        if request.oldest_first:
            found.reverse()
        if request.after is not None:
            place = next((at for at, one in enumerate(found, 1) if one.id == request.after), None)
            if place is None:
                raise NotFound("no such medium", field="after")
            found = found[place:]
        page = found[: request.limit]
        return FileList(files=tuple(one.media() for one in page), more=len(found) > len(page))

    async def open(self, call: Call, request: MediaRef) -> OpenedMedia:
        """Lay the bytes of a medium where the caller's side can take them."""
        medium = await self._store.find(call.who, request.media_id)
        download = uuid4().hex
        await self._uploads.put(download, await self._store.content(medium))
        return OpenedMedia(**medium.media().model_dump(), download=download)

    async def delete(self, call: Call, request: MediaRef) -> Media:
        """Remove a medium. What a conversation has read of it goes with that conversation."""
        medium = await self._store.find(call.who, request.media_id)
        await self._audit(call.who, "media.delete", {"media_id": medium.id, "name": medium.name})
        await self._store.remove(medium)
        return medium.media()

    async def extract_text(self, call: Call, request: TextRef) -> ExtractedText:
        return await self._text(call.who, request, MediaKind.DOCUMENT)

    async def caption(self, call: Call, request: TextRef) -> ExtractedText:
        return await self._text(call.who, request, MediaKind.IMAGE)

    async def transcribe(self, call: Call, request: TextRef) -> ExtractedText:
        return await self._text(call.who, request, MediaKind.AUDIO)

    async def _text(self, who: Principal, request: TextRef, kind: MediaKind) -> ExtractedText:
        medium = await self._store.find(who, request.media_id)
        if medium.kind != kind:  # the kind alone decides which tool reads a medium
            raise BadRequest(f"this medium is read by {_TOOLS[medium.kind]}", field="media_id")
        tenant.set(who.tenant)
        reading = await self._read(medium)
        start, whole = request.offset, reading.text
        near = parts_between(reading.parts, start, start + LONGEST_REPLY)
        text, cut = cut_to_reply(whole, start, LARGEST_REPLY - size_of_parts(near))
        return ExtractedText(
            media_id=medium.id,
            name=medium.name,
            type=medium.type,
            text=text,
            engine=reading.engine,
            pages=reading.pages,
            seconds=reading.seconds,
            kind=kind,
            truncated=cut,
            offset=start,
            length=len(whole),
            parts=parts_between(near, start, start + len(text)),
            limits=reading.limits,
        )

    async def _keep(
        self, who: Principal, data: bytes, name: str, claim: str | None, purpose: FilePurpose | None = None
    ) -> Media:
        if len(data) > MAX_UPLOAD:
            raise TooLarge(f"a file may have {MAX_UPLOAD} bytes")
        name = clean_name(name, "")
        # both walk over all the bytes, so they may not hold the loop
        type = await asyncio.to_thread(detect_type, data, name, claim)
        digest = await asyncio.to_thread(lambda: hashlib.sha256(data).hexdigest())
        medium = Stored(
            id=str(uuid4()),
            tenant=who.tenant,
            user=who.user,
            name=name or formats.KINDS[type].value,
            type=type,
            kind=formats.KINDS[type],
            size=len(data),
            sha256=digest,
            created=datetime.now(UTC),
            purpose=purpose,
        )
        # Announced first: an entry too many is better than a medium that no entry tells of.
        await self._audit(who, "media.accept", {"media_id": medium.id, "name": medium.name, "type": type, "size": len(data)})
        await self._store.keep(medium, data)
        # Whoever uploads is answered once the news is stored: without an answer they upload again.
        await self._tell(who.tenant, MediaReady(media_id=medium.id, user=who.user, kind=medium.kind, name=medium.name))
        return medium.media()

    async def _read(self, medium: Stored) -> Reading:
        """The whole text: once for each content of a tenant, however many ask at the same time.

        What the content is at fault for is kept too, so that a hostile file is taken apart once.
        """
        lock = self._reading.setdefault(text_object(medium), asyncio.Lock())
        async with lock:
            reading = await self._store.reading(medium)
            if reading is None:
                data = await self._store.content(medium)
                try:
                    reading = await self._reader.read(data, medium.type)
                except BadRequest as error:
                    reading = Reading(refusal=error.body())
                if not reading.makeshift:
                    await self._store.keep_reading(medium, reading)
            if reading.refusal is not None:
                raise ServiceError.from_body(reading.refusal)
            return reading


Report = Callable[[str, Purged], Awaitable[None]]
"""Announce in a tenant what was removed."""


class RemovalHandlers:
    """Follows deletions of conversations."""

    def __init__(self, store: MediaStore, report: Report) -> None:
        self._store = store
        self._report = report

    async def on_conversation_deleted(self, news: News, event: ConversationDeleted) -> None:
        """Remove the media that nothing else refers to; of a repeat, what is gone already is not counted again."""
        owner = Principal(tenant=news.tenant, user=event.user)
        removed = 0
        for id in event.media:
            try:
                medium = await self._store.find(owner, id)
            except NotFound:
                continue
            await self._store.remove(medium)
            removed += 1
        report = Purged(deletion_id=event.deletion_id, removed={"media": removed}, part=event.part, parts=event.parts)
        await self._report(news.tenant, report)


_STEP = 15.0
"""Seconds that one step of a removal goes on."""


class EndingHandlers:
    """Media that end by themselves: with all else that is held of a user, and with a tenant's retention."""

    def __init__(self, store: MediaStore) -> None:
        self._store = store
        self._reached: dict[tuple[str, str], str] = {}
        """By tenant and what is removed, the record up to which it is; a removal that is forgotten begins anew."""

    async def held(self, call: Call, request: Nothing) -> UserData:
        """How much is held of the caller."""
        theirs = [one async for one in self._store.records(call.who.tenant) if one.user == call.who.user]
        return UserData(held={"media": len(theirs), "bytes": sum(one.size for one in theirs)} if theirs else {})

    async def erase(self, call: Call, request: Nothing) -> PartErased:
        """Erase some of the caller's media."""
        return await self._remove(call.who.tenant, f"user {call.who.user}", lambda one: one.user == call.who.user)

    async def drop_aged(self, call: Call, request: DropAged) -> PartErased:
        """Delete media of a tenant whose time is over. Raises `BadRequest`."""
        if request.what is not Aged.MEDIA:
            raise BadRequest(f"media holds no {request.what}", field="what")
        return await self._remove(call.who.tenant, "aged", lambda one: one.created < request.before)

    async def _remove(self, tenant: str, what: str, gone: Callable[[Stored], bool]) -> PartErased:
        ends, removed = time.monotonic() + _STEP, 0
        after = self._reached.pop((tenant, what), "")
        async for one in self._store.records(tenant, after):
            if gone(one):
                await self._store.remove(one)
                removed += 1
            if time.monotonic() >= ends:
                self._reached[tenant, what] = f"{tenant}/{one.id}.json"
                return PartErased(removed={"media": removed} if removed else {}, done=False)
        return PartErased(removed={"media": removed} if removed else {}, done=True)
