"""The clients of a chaos run: they hand turns, files and notes in, repeat what got no answer, and wait for every end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from time import monotonic
from typing import Any
from uuid import uuid4

import httpx

from .mix import Wish

ENDS = ("completed", "failed", "cancelled", "parked")
_PAUSE = 0.1


@dataclass
class Sent:
    """One turn as its client saw it."""

    wish: Wish
    conversation_id: str | None = None
    key: str = field(default_factory=lambda: uuid4().hex)
    turn_id: str | None = None
    """Set when the turn was accepted."""
    status: str | None = None
    reply: dict[str, Any] | None = None


@dataclass
class Note:
    """One item that a client had remembered, and what was said to that."""

    external_id: str
    link: str | None
    key: str = field(default_factory=lambda: uuid4().hex)
    id: str | None = None
    """Set when the item was stored."""
    status: str | None = None


class Traffic:
    """Requests at the front door, each with the idempotency key that makes a repeat harmless."""

    def __init__(self, url: str, key: str) -> None:
        self._http = httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=15, trust_env=False)
        self.sent: list[Sent] = []
        self.notes: list[Note] = []

    async def close(self) -> None:
        await self._http.aclose()

    async def submit(self, wish: Wish, conversation_id: str | None = None, limit: float = 90) -> Sent:
        """Submit a turn, with its file uploaded before it, until it is accepted, or the limit is over."""
        sent = Sent(wish, conversation_id)
        self.sent.append(sent)
        body: dict[str, Any] = {"currentMessageText": wish.text, "agent": wish.agent}
        if conversation_id is not None:
            body["conversationId"] = conversation_id
        if wish.file is not None:
            body["currentMessageMedia"] = [{"mediaId": await self._upload(wish, limit)}]
        accepted = await self._repeated("/api/v1/turns", sent.key, limit, json=body)
        if accepted is not None:
            sent.turn_id, sent.conversation_id = accepted["turn_id"], accepted["conversation_id"]
        return sent

    async def _upload(self, wish: Wish, limit: float) -> str:
        assert wish.file is not None
        content = await asyncio.to_thread(wish.file.make)
        headers = {"Content-Type": wish.file.type, "X-File-Name": wish.file.name}
        medium = await self._repeated("/api/v1/media", uuid4().hex, limit, content=content, headers=headers)
        assert medium is not None, "a file was not taken"
        return str(medium["id"])

    async def remember(self, number: int, limit: float = 90) -> Note:
        """Have an item remembered that is related to the newest one that is stored."""
        stored = [note.external_id for note in self.notes if note.id]
        note = Note(f"note:{number}", stored[-1] if stored else None)
        self.notes.append(note)
        item = {"text": f"Chaos{number} is a programme that drains the lower field.", "external_id": note.external_id}
        body = {"items": [item | ({"links": [note.link]} if note.link else {})]}
        answer = await self._repeated("/api/v1/tools/remember", note.key, limit, json=body)
        if answer is not None:
            note.id, note.status = answer["items"][0]["id"], answer["items"][0]["status"]
        return note

    async def _repeated(
        self, path: str, key: str, limit: float, headers: dict[str, str] | None = None, **body: Any
    ) -> dict[str, Any] | None:
        """Send a request until it is answered, with the same key; `None` when it was not within the limit."""
        end = monotonic() + limit
        while monotonic() < end:
            try:
                answer = await self._http.post(path, headers={"Idempotency-Key": key, **(headers or {})}, **body)
            except httpx.HTTPError:
                await asyncio.sleep(_PAUSE)
                continue
            if answer.is_success:
                found: dict[str, Any] = answer.json()
                return found
            if answer.status_code < 500 and answer.status_code != 429:
                raise AssertionError(f"{path} was refused: {answer.status_code} {answer.text[:200]}")
            await asyncio.sleep(_PAUSE)
        return None

    async def turn(self, id: str) -> dict[str, Any] | None:
        """A turn as the front door shows it; `None` when it does not answer."""
        try:
            answer = await self._http.get(f"/api/v1/turns/{id}")
        except httpx.HTTPError:
            return None
        return answer.json() if answer.status_code == 200 else None

    async def ended(self, sent: Sent, limit: float = 120, pause: float = 0.05) -> bool:
        """Wait for the end of an accepted turn, with a look after every `pause` seconds."""
        end = monotonic() + limit
        while sent.turn_id is not None and monotonic() < end:
            found = await self.turn(sent.turn_id)
            if found is not None and found["status"] in ENDS:
                sent.status, sent.reply = found["status"], found.get("reply")
                return True
            await asyncio.sleep(pause)
        return False

    async def ready(self, limit: float) -> bool:
        """Wait until the gateway says that everything is up."""
        end = monotonic() + limit
        while monotonic() < end:
            try:
                if (await self._http.get("/health/ready")).status_code == 200:
                    return True
            except httpx.HTTPError:
                pass
            await asyncio.sleep(_PAUSE)
        return False
