"""Media, tools, the profile and readiness: what is asked of the other services."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest

from phronesis_bus import Blobs, Bus, Call, connect, serve, serve_basics
from phronesis_contracts import BadRequest, NotFound, Nothing, Unavailable, UnsupportedMedia
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.media import (
    ACCEPT_UPLOAD,
    FETCH,
    MAX_UPLOAD,
    MEDIA_GET,
    UPLOADS,
    AcceptUpload,
    FetchUrl,
    Media,
    MediaKind,
    MediaRef,
)
from phronesis_contracts.memory import PROFILE_GET, PROFILE_PUT, REMEMBER_TOOL, Profile, Remember, Remembered, RememberedItem
from phronesis_contracts.twin import UPSERT_TOOL, Upsert, Upserted
from phronesis_gateway.http.operations import Readiness
from tests.support.gateway import Holder, RunningGateway
from tests.support.personas import Persona
from tests.support.scripted_orchestrator import ScriptedOrchestrator
from tests.support.servers import NatsServer

MEDIA = "/api/v1/media"
MESSAGES = "/api/v1/conversations/messages"


@dataclass
class Neighbours:
    """The other services, with what they were asked."""

    uploads: Blobs
    asked: list[tuple[Call, Any, bytes]] = field(default_factory=list)
    down: set[str] = field(default_factory=set)
    profile: Profile = field(default_factory=Profile)

    async def serve(self, buses: dict[str, Bus]) -> None:
        """Answer."""
        await serve(buses["media"], ACCEPT_UPLOAD, self.accept)
        await serve(buses["media"], FETCH, self.fetch)
        await serve(buses["media"], MEDIA_GET, self.media)
        await serve(buses["memory"], REMEMBER_TOOL, self.remember)
        await serve(buses["memory"], PROFILE_GET, self.profile_get)
        await serve(buses["memory"], PROFILE_PUT, self.profile_put)
        await serve(buses["graph"], UPSERT_TOOL, self.upsert)
        for name, bus in buses.items():
            await serve_basics(bus, {"store": self._ping(name)})

    def _ping(self, name: str) -> Any:
        async def ping() -> None:
            if name in self.down:
                raise Unavailable("down")

        return ping

    async def accept(self, call: Call, request: AcceptUpload) -> Media:
        data = await self.uploads.get(request.upload)
        self.asked.append((call, request, data))
        if data.startswith(b"MZ"):
            raise UnsupportedMedia("programs are not taken", field="file")
        return Media(id="m-1", name=request.name, type="text/plain", kind=MediaKind.DOCUMENT, size=len(data), sha256="")

    async def fetch(self, call: Call, request: FetchUrl) -> Media:
        self.asked.append((call, request, b""))
        if "169.254" in request.url:
            raise BadRequest("this address is not public", field="url")
        id = f"m-{request.url.rpartition('/')[2]}"
        return Media(id=id, name="", type="text/plain", kind=MediaKind.DOCUMENT, size=1, sha256="")

    async def media(self, call: Call, request: MediaRef) -> Media:
        if request.media_id != "m-1":
            raise NotFound("no such medium")
        return Media(id="m-1", name="n", type="text/plain", kind=MediaKind.DOCUMENT, size=1, sha256="")

    async def remember(self, call: Call, request: Remember) -> Remembered:
        self.asked.append((call, request, b""))
        return Remembered(items=tuple(RememberedItem(id="i", status="created") for _ in request.items))

    async def profile_get(self, call: Call, request: Nothing) -> Profile:
        return self.profile

    async def profile_put(self, call: Call, request: Profile) -> Profile:
        self.profile = request
        return request

    async def upsert(self, call: Call, request: Upsert) -> Upserted:
        return Upserted()


@pytest.fixture(scope="module")
async def neighbours(nats_server: NatsServer) -> AsyncIterator[Neighbours]:
    """Memory, graph, instructions and media."""
    async with AsyncExitStack() as stack:
        names = ("memory", "instructions", "graph", "media")
        buses = {name: await stack.enter_async_context(connect(name, nats_server.settings(name))) for name in names}
        running = Neighbours(Blobs(buses["media"], UPLOADS))
        await running.serve(buses)
        yield running


async def test_a_file_in_a_form_reaches_the_media_service(api: RunningGateway, ann: Holder, neighbours: Neighbours) -> None:
    file = ("../../etc/pass\x00wd.txt", b"text", "text/x-odd")
    answer = await api.http.post(MEDIA, files={"file": file}, headers=ann.headers)
    call, request, data = neighbours.asked[-1]
    assert (answer.status_code, answer.headers["location"], answer.json()["id"]) == (201, f"{MEDIA}/m-1", "m-1")
    assert (call.who, data, request.claimed_type) == (ann.who, b"text", "text/x-odd")
    assert (request.name.startswith("pass"), "/" in request.name, "\x00" in request.name) == (True, False, False)


async def test_a_file_in_a_body_reaches_the_media_service(api: RunningGateway, ann: Holder, neighbours: Neighbours) -> None:
    headers = ann.headers | {"Content-Type": "application/pdf", "X-File-Name": "r%C3%A9sum%C3%A9.pdf"}
    big = b"x" * (3 * 1024 * 1024)
    answer = await api.http.post(MEDIA, content=big, headers=headers)
    _, request, data = neighbours.asked[-1]
    assert (answer.status_code, answer.json()["size"], data == big) == (201, len(big), True)
    assert (request.name, request.claimed_type) == ("résumé.pdf", "application/pdf")
    assert (await api.http.get(answer.headers["location"], headers=ann.headers)).json()["id"] == "m-1"
    assert (await api.http.get(f"{MEDIA}/other", headers=ann.headers)).status_code == 404


async def test_an_upload_that_is_not_accepted_is_removed(api: RunningGateway, ann: Holder, neighbours: Neighbours) -> None:
    answer = await api.http.post(MEDIA, files={"file": ("a.txt", b"MZ program")}, headers=ann.headers)
    _, request, _ = neighbours.asked[-1]
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (415, "unsupported_media", "file")
    with pytest.raises(NotFound):
        await neighbours.uploads.get(request.upload)


async def test_an_upload_over_the_limit_is_a_413_and_never_handed_on(
    api: RunningGateway, ann: Holder, neighbours: Neighbours
) -> None:
    before = len(neighbours.asked)
    large = b"x" * (MAX_UPLOAD + 1)

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(large), 1024 * 1024):
            yield large[at : at + 1024 * 1024]

    answers = [
        await api.http.post(MEDIA, content=pieces(), headers=ann.headers),
        await api.http.post(MEDIA, files={"file": ("a", large)}, headers=ann.headers),
    ]
    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(413, "too_large")] * 2
    assert len(neighbours.asked) == before


@pytest.mark.parametrize(
    "files", [{"other": ("a", b"x")}, {"file": ("a", b"")}, [("file", ("a", b"x")), ("file", ("b", b"y"))]]
)
async def test_a_form_without_one_file_is_a_400(api: RunningGateway, ann: Holder, files: Any) -> None:
    answer = await api.http.post(MEDIA, files=files, headers=ann.headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")


@pytest.mark.req("D-016", "D-T02")
async def test_addresses_are_fetched_first_and_the_turn_carries_ids_in_order(
    api: RunningGateway, ann: Holder, neighbours: Neighbours, orchestrator: ScriptedOrchestrator
) -> None:
    media = [{"url": "https://example.org/a"}, {"mediaId": "mine"}, {"url": "https://example.org/b"}]
    text = f"look {uuid4()}"
    body = {"currentMessageText": text, "currentMessageMedia": media}
    answer = await api.http.post(MESSAGES, json=body, headers=ann.headers)
    (turn,) = orchestrator.submitted[answer.json()["turn_id"]]
    assert turn.media == ("m-a", "mine", "m-b")


@pytest.mark.req("D-152")
async def test_an_address_that_cannot_be_fetched_names_its_place_and_begins_no_turn(
    api: RunningGateway, ann: Holder, neighbours: Neighbours, orchestrator: ScriptedOrchestrator
) -> None:
    before = len(orchestrator.submitted)
    media = [{"mediaId": "mine"}, {"url": "http://169.254.169.254/"}]
    answer = await api.http.post(MESSAGES, json={"currentMessageMedia": media}, headers=ann.headers)
    assert (answer.status_code, answer.json()["field"]) == (400, "currentMessageMedia.1.url")
    assert len(orchestrator.submitted) == before


async def test_a_tool_is_called_with_the_callers_key(api: RunningGateway, ann: Holder, neighbours: Neighbours) -> None:
    body = {"items": [{"text": "Phoenix moves the archive."}]}
    headers = ann.headers | {"Idempotency-Key": "k1"}
    answer = await api.http.post("/api/v1/tools/remember", json=body, headers=headers)
    call, request, _ = neighbours.asked[-1]
    assert (answer.status_code, answer.json()) == (200, {"items": [{"id": "i", "external_id": None, "status": "created"}]})
    assert (call.who, call.service, call.key) == (ann.who, "gateway", f"http/{ann.who.user}/k1")
    assert request.items[0].text == "Phoenix moves the archive."


async def test_tools_are_listed_and_called_by_role(api: RunningGateway, ann: Holder, neighbours: Neighbours) -> None:
    maestro = await api.holder(**Persona.MAESTRO.rights)
    for holder in (ann, maestro):
        listed = (await api.http.get("/api/v1/tools", headers=holder.headers)).json()["tools"]
        assert [tool["name"] for tool in listed] == sorted(n for n, t in TOOLS.items() if t.open_to(holder.who))
    refused = await api.http.post("/api/v1/tools/graph_upsert", json={}, headers=ann.headers)
    allowed = await api.http.post("/api/v1/tools/graph_upsert", json={}, headers=maestro.headers)
    assert (refused.status_code, refused.json()["code"], allowed.status_code) == (403, "forbidden", 200)


@pytest.mark.parametrize(
    ("name", "body", "status", "field"),
    [
        ("nothing", {}, 404, None),
        ("remember", {}, 400, "items"),
        ("remember", {"items": [{"text": "x"}] * 501}, 400, "items"),
        ("remember", {"items": [{"text": "x", "kind": "odd"}]}, 400, "items.0.kind"),
    ],
)
async def test_a_tool_call_that_cannot_be_is_refused(
    api: RunningGateway, ann: Holder, neighbours: Neighbours, name: str, body: Any, status: int, field: str | None
) -> None:
    answer = await api.http.post(f"/api/v1/tools/{name}", json=body, headers=ann.headers)
    assert (answer.status_code, answer.json().get("field")) == (status, field)


async def test_the_profile_is_put_and_read(api: RunningGateway, ann: Holder, neighbours: Neighbours) -> None:
    body = {"profile": {"name": "Ann", "likes": ["tea"]}}
    put = await api.http.put("/api/v1/profile", json=body, headers=ann.headers)
    got = await api.http.get("/api/v1/profile", headers=ann.headers)
    assert (put.status_code, got.json()) == (200, body | {"labels": [], "updated_at": None, "version": None})


async def test_readiness_names_what_is_down(api: RunningGateway, neighbours: Neighbours) -> None:
    fresh = Readiness(api.bus, {"bus": api.bus.ping})
    assert await fresh.down() == ()
    neighbours.down = {"graph", "memory"}
    try:
        assert await Readiness(api.bus, {}).down() == ("memory.store", "graph.store")
        assert await fresh.down() == ()  # it is asked again only after a second
    finally:
        neighbours.down = set()
