"""Users of a running stack: each talks to its front door with a key of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from time import monotonic
from typing import Any, cast
from uuid import uuid4

import httpx

from phronesis_gateway.http.operations import KEPT
from tests.support.personas import Persona

ENDS = ("completed", "failed", "cancelled", "parked")
MESSAGES, TURNS = "/api/v1/conversations/messages", "/api/v1/turns"


class Person:
    """One user of a tenant.

    Args:
        url: the gateway.
        key: the key.
        said: where every text that is sent is kept.
    """

    def __init__(self, url: str, key: str, said: list[str]) -> None:
        self.key = key
        self.tenant = self.user = self.key_id = ""
        self._said = said
        self.http = httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=45, trust_env=False)

    async def say(self, text: str, conversation: str | None = None, media: Sequence[str] = (), **more: Any) -> httpx.Response:
        """Send a message and wait for the answer; `idempotency` is its key, other names are fields of the body."""
        return await self._message(MESSAGES, text, conversation, media, **more)

    async def submit(
        self, text: str, conversation: str | None = None, media: Sequence[str] = (), **more: Any
    ) -> httpx.Response:
        """Hand a message in."""
        return await self._message(TURNS, text, conversation, media, **more)

    async def accepted(self, text: str, conversation: str | None = None, media: Sequence[str] = ()) -> dict[str, Any]:
        """Hand a message in that is accepted: the ids of its turn and its conversation."""
        return cast(dict[str, Any], _body(await self.submit(text, conversation, media), 202))

    async def reply(self, text: str, conversation: str | None = None, media: Sequence[str] = ()) -> dict[str, Any]:
        """The reply to a message that is answered."""
        return cast(dict[str, Any], _body(await self.say(text, conversation, media), 200))

    async def turn(self, turn_id: str) -> dict[str, Any]:
        """The state of a turn."""
        return cast(dict[str, Any], _body(await self.http.get(f"{TURNS}/{turn_id}"), 200))

    async def ended(self, turn_id: str, within: float = 60.0) -> dict[str, Any]:
        """A turn once it has ended."""
        end = monotonic() + within
        while (turn := await self.turn(turn_id))["status"] not in ENDS:
            assert monotonic() < end, f"a turn is still {turn['status']}"
            await asyncio.sleep(0.05)
        return turn

    async def turns(self) -> list[dict[str, Any]]:
        """All turns of this user, newest first."""
        found: list[dict[str, Any]] = _body(await self.http.get(TURNS, params={"limit": 200}), 200)["turns"]
        return found

    async def messages(self, conversation: str) -> list[dict[str, Any]]:
        """The messages of a conversation, oldest first."""
        answer = await self.http.get(f"/api/v1/conversations/{conversation}", params={"limit": 200})
        found: list[dict[str, Any]] = _body(answer, 200)["messages"]
        return found

    async def upload(self, name: str, data: bytes, type: str) -> httpx.Response:
        """Upload a file."""
        return await self.http.post("/api/v1/media", files={"file": (name, data, type)})

    async def uploaded(self, name: str, data: bytes, type: str = "application/pdf") -> str:
        """Upload a file that is taken; its id."""
        return str(_body(await self.upload(name, data, type), 201)["id"])

    async def tool(self, name: str, body: dict[str, Any]) -> httpx.Response:
        """Call a tool."""
        return await self.http.post(f"/api/v1/tools/{name}", json=body, headers={"Idempotency-Key": uuid4().hex})

    async def remember(self, title: str, text: str) -> None:
        """Store a fact and wait until it is found by its title."""
        self._said.append(text)
        _body(await self.tool("remember", {"items": [{"title": title, "text": text}]}), 200)
        end = monotonic() + 30
        while text not in [item["text"] for item in await self.recall(title)]:
            assert monotonic() < end, "what was remembered is not found"
            await asyncio.sleep(0.1)

    async def recall(self, query: str) -> list[dict[str, Any]]:
        """What memory finds."""
        found: list[dict[str, Any]] = _body(await self.tool("recall", {"query": query, "limit": 100}), 200)["items"]
        return found

    async def _message(
        self, path: str, text: str, conversation: str | None, media: Sequence[str], idempotency: str | None = None, **more: Any
    ) -> httpx.Response:
        if len(text) > 20:
            self._said.append(text[:2_000])
        body = {"currentMessageText": text, "conversationId": conversation} | more
        if media:
            body["currentMessageMedia"] = [{"mediaId": id} for id in media]
        stated = {name: value for name, value in body.items() if value is not None}
        return await self.http.post(path, json=stated, headers={"Idempotency-Key": idempotency or uuid4().hex})


class Town:
    """Everybody who uses a stack.

    Args:
        url: the gateway.
        key: the key of the stack's owner.
    """

    def __init__(self, url: str, key: str) -> None:
        self.said: list[str] = []
        """Every text that anybody sent."""
        self._url = url
        self._people: list[Person] = []
        self.owner = self._person(key)
        self.owner.tenant, self.owner.user = "local", "owner"

    async def someone(self, tenant: str | None = None, role: str = "noor", scopes: tuple[str, ...] = ()) -> Person:
        """A new user, in a tenant of its own where none is stated."""
        name = f"u-{uuid4().hex[:12]}"
        user = {"tenant": tenant or f"t-{uuid4().hex[:12]}", "user": name, **Persona(role).stated, "scopes": scopes}
        made = _body(await self.owner.http.post("/api/v1/keys", json=user), 201)
        person = self._person(made["key"])
        person.tenant, person.user, person.key_id = made["tenant"], made["user"], made["id"]
        return person

    def known(self, person: Person) -> Person:
        """Somebody who was here before the stack began anew."""
        again = self._person(person.key)
        again.tenant, again.user, again.key_id = person.tenant, person.user, person.key_id
        return again

    async def ready(self, within: float = 60.0) -> None:
        """Return when the stack says that everything is up, and has found that out after this call."""
        end = monotonic() + within
        fresh = monotonic() + KEPT
        while True:
            down: Any = "the gateway does not answer"
            with contextlib.suppress(httpx.HTTPError):
                answer = await self.owner.http.get("/health/ready")
                if answer.status_code == 200 and monotonic() > fresh:
                    return
                down = answer.json().get("down")
            assert monotonic() < end, f"the stack is not ready: {down}"
            await asyncio.sleep(0.1)

    @property
    def keys(self) -> list[str]:
        """The key of everybody."""
        return [person.key for person in self._people]

    def _person(self, key: str) -> Person:
        person = Person(self._url, key, self.said)
        self._people.append(person)
        return person

    async def close(self) -> None:
        """Close every connection."""
        for person in self._people:
            await person.http.aclose()


@contextlib.asynccontextmanager
async def town(url: str, key: str) -> AsyncIterator[Town]:
    """The users of the stack at `url`, for the length of a block."""
    people = Town(url, key)
    try:
        yield people
    finally:
        await people.close()


def _body(response: httpx.Response, status: int) -> Any:
    assert response.status_code == status, response.text[:500]
    return response.json()
