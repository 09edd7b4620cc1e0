"""The clients of a chaos run: they submit turns, repeat what got no answer, and wait for every end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from time import monotonic
from typing import Any
from uuid import uuid4

import httpx

ENDS = ("completed", "failed", "cancelled", "parked")


@dataclass
class Sent:
    """One turn as its client saw it."""

    key: str
    text: str
    turn_id: str | None = None
    """Set when the turn was accepted."""
    status: str | None = None
    reply: dict[str, Any] | None = None
    since: float = field(default_factory=monotonic)


class Traffic:
    """Turns through the front door, with the idempotency key that makes a repeat harmless."""

    def __init__(self, url: str, key: str) -> None:
        self._http = httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=15, trust_env=False)
        self.sent: list[Sent] = []

    async def close(self) -> None:
        await self._http.aclose()

    async def submit(self, text: str, limit: float = 90) -> Sent:
        """Submit a turn until it is accepted, or the limit is over."""
        sent = Sent(uuid4().hex, text)
        self.sent.append(sent)
        end = monotonic() + limit
        while monotonic() < end:
            try:
                answer = await self._http.post(
                    "/api/v1/turns", json={"currentMessageText": text}, headers={"Idempotency-Key": sent.key}
                )
            except httpx.HTTPError:
                await asyncio.sleep(0.1)
                continue
            if answer.status_code in (200, 202):
                sent.turn_id = answer.json()["turn_id"]
                return sent
            if answer.status_code < 500 and answer.status_code != 429:
                raise AssertionError(f"a turn was refused: {answer.status_code} {answer.text[:200]}")
            await asyncio.sleep(0.1)
        return sent

    async def ended(self, sent: Sent, limit: float = 120) -> bool:
        """Wait for the end of an accepted turn."""
        end = monotonic() + limit
        while sent.turn_id is not None and monotonic() < end:
            try:
                answer = await self._http.get(f"/api/v1/turns/{sent.turn_id}")
                if answer.status_code == 200 and answer.json()["status"] in ENDS:
                    sent.status, sent.reply = answer.json()["status"], answer.json().get("reply")
                    return True
            except httpx.HTTPError:
                pass
            await asyncio.sleep(0.05)
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
            await asyncio.sleep(0.1)
        return False
