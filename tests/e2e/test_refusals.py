"""What gets refused at the front door, how, and that nothing is left of it."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import asyncpg
import httpx
import pytest

from phronesis_local import postgres
from tests.support.bus import eventually
from tests.support.people import MESSAGES, TURNS, Person, Town
from tests.support.stack import RunningStack

pytestmark = [pytest.mark.any_store, pytest.mark.timeout(300)]


def problem(response: httpx.Response) -> dict[str, Any]:
    """What a problem document says, without what differs from one to the next."""
    assert response.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = response.json()
    assert len(document.pop("trace_id")) == 32
    assert document.pop("detail")
    assert document.pop("title")
    assert document.pop("type") == f"urn:phronesis:problem:{document['code']}"
    assert document["status"] == response.status_code
    return document


def refusal(status: int, code: str, field: str | None = None) -> dict[str, Any]:
    """The same of a refusal that is expected."""
    return {"status": status, "code": code} | ({"field": field} if field else {})


BODIES: dict[str, tuple[bytes, dict[str, Any]]] = {
    "not JSON": (b'{"currentMessageText": "Hello', refusal(400, "bad_request")),
    "a key twice": (b'{"currentMessageText": "a", "currentMessageText": "b"}', refusal(400, "bad_request")),
    "too large": (b'{"currentMessageText": "' + b"a" * 1_200_000 + b'"}', refusal(413, "too_large")),
    "a long text": (b'{"currentMessageText": "' + b"a" * 100_001 + b'"}', refusal(400, "bad_request", "currentMessageText")),
    "nothing": (b"{}", refusal(400, "bad_request", "currentMessageText")),
    "blanks": (b'{"currentMessageText": "  \\n "}', refusal(400, "bad_request", "currentMessageText")),
    "a number": (b'{"currentMessageText": 5}', refusal(400, "bad_request", "currentMessageText")),
    "an agent there is not": (b'{"currentMessageText": "Hello", "agent": "nobody"}', refusal(400, "bad_request", "agent")),
    "a field there is not": (b'{"currentMessageText": "Hello", "userId": "owner"}', refusal(400, "bad_request", "userId")),
    "two media in one": (
        b'{"currentMessageMedia": [{"mediaId": "a", "url": "http://a.b/"}]}',
        refusal(400, "bad_request", "currentMessageMedia.0"),
    ),
    "an inner address": (
        b'{"currentMessageText": "Hello", "currentMessageMedia": [{"url": "http://169.254.169.254/"}]}',
        refusal(400, "bad_request", "currentMessageMedia.0.url"),
    ),
}


@pytest.mark.req("D-015", "D-017", "D-145", "D-152")
@pytest.mark.parametrize("path", [MESSAGES, TURNS])
@pytest.mark.parametrize("what", BODIES)
async def test_a_body_that_is_wrong_is_refused_and_leaves_no_turn(somebody: Person, path: str, what: str) -> None:
    body, expected = BODIES[what]
    answer = await somebody.http.post(path, content=body, headers={"Content-Type": "application/json"})
    assert problem(answer) == expected
    assert await somebody.turns() == []


@pytest.mark.req("D-012", "D-143", "D-145")
async def test_a_foreign_conversation_is_as_unknown_as_one_there_is_not(everybody: Town) -> None:
    one = await everybody.someone()
    theirs = (await one.reply("Hello!"))["conversation_id"]
    for other in (await everybody.someone(one.tenant), await everybody.someone()):
        foreign, unknown = await other.say("Hello!", theirs), await other.say("Hello!", str(uuid4()))
        assert {**foreign.json(), "trace_id": ""} == {**unknown.json(), "trace_id": ""}
        assert problem(foreign) == refusal(404, "not_found", "conversationId")
        assert problem(await other.http.get(f"/api/v1/conversations/{theirs}")) == refusal(404, "not_found")
        assert await other.turns() == []
    assert len(await one.messages(theirs)) == 2


@pytest.mark.req("D-143", "D-152")
async def test_foreign_media_and_turns_are_as_unknown_as_those_there_are_not(everybody: Town) -> None:
    one = await everybody.someone()
    media = await one.uploaded("note.txt", b"The kiln at Brenna is fired on Mondays.", "text/plain")
    turn = (await one.reply("Hello!"))["turn_id"]
    for other in (await everybody.someone(one.tenant), await everybody.someone()):
        foreign, unknown = await other.say("Hi", media=[media]), await other.say("Hi", media=[str(uuid4())])
        assert {**foreign.json(), "trace_id": ""} == {**unknown.json(), "trace_id": ""}
        assert problem(foreign) == refusal(404, "not_found", "currentMessageMedia")
        for path in (f"/api/v1/media/{media}", f"{TURNS}/{turn}", f"{TURNS}/{turn}/trace", f"{TURNS}/{turn}/events"):
            assert problem(await other.http.get(path)) == refusal(404, "not_found")
        assert problem(await other.http.delete(f"{TURNS}/{turn}")) == refusal(404, "not_found")
        assert await other.turns() == []


ELF = b"\x7fELF\x02\x01\x01" + bytes(57)


@pytest.mark.parametrize(
    ("name", "data", "type", "expected"),
    [
        ("photo.png", ELF, "image/png", refusal(415, "unsupported_media", "name")),
        ("report.pdf", b"This is a text, and no PDF.", "application/pdf", refusal(415, "unsupported_media", "name")),
        ("tool", ELF, "application/octet-stream", refusal(415, "unsupported_media")),
        ("empty.txt", b"", "text/plain", refusal(400, "bad_request", "file")),
    ],
)
async def test_media_that_lie_are_refused(
    somebody: Person, name: str, data: bytes, type: str, expected: dict[str, Any]
) -> None:
    assert problem(await somebody.upload(name, data, type)) == expected


NODE = {"type": "EntityProject", "id": "P-1", "year": 2024, "name": "A project", "level": "L1", "properties": {}}


async def test_a_role_that_may_not_write_is_refused_and_audited(stack: RunningStack, somebody: Person) -> None:
    answer = await somebody.tool("graph_upsert", {"nodes": [NODE]})
    assert problem(answer) == refusal(403, "forbidden")
    connection = await asyncpg.connect(postgres.dsn(stack.data.postgres))

    async def is_audited() -> bool:
        return bool(await connection.fetch(_AUDIT, somebody.tenant))

    try:
        await eventually(is_audited, within=20)
        rows = await connection.fetch(_AUDIT, somebody.tenant)
    finally:
        await connection.close()
    assert [tuple(row) for row in rows] == [(somebody.user, "member (noor)", "graph_upsert", "refused", "forbidden")]
    assert await somebody.recall("A project") == []


_AUDIT = "SELECT who, role, action, outcome, code FROM orchestrator.audit WHERE tenant = $1"


async def test_a_revoked_key_opens_nothing(everybody: Town, somebody: Person) -> None:
    await somebody.reply("Hello!")
    assert (await everybody.owner.http.delete(f"/api/v1/keys/{somebody.key_id}")).status_code == 200
    for answer in (await somebody.say("Hello!"), await somebody.http.get(TURNS)):
        assert problem(answer) == refusal(401, "unauthorized")
        assert answer.headers["www-authenticate"] == 'Bearer error="invalid_token"'


@pytest.mark.req("D-143")
@pytest.mark.parametrize("header", [None, "Bearer phr_" + "a" * 43, "Basic b3duZXI6", "Bearer"])
async def test_nobody_comes_in_without_a_key(everybody: Town, header: str | None) -> None:
    headers = {"Authorization": header} if header else {}
    async with httpx.AsyncClient(base_url=everybody.owner.http.base_url, trust_env=False, headers=headers) as http:
        answer = await http.post(MESSAGES, json={"currentMessageText": "Hello"})
    assert problem(answer) == refusal(401, "unauthorized")


@pytest.mark.req("D-020")
async def test_an_idempotency_key_stands_for_one_body(somebody: Person) -> None:
    key = uuid4().hex
    first = (await somebody.say("Hello!", idempotency=key)).json()
    assert (await somebody.say("Hello!", idempotency=key)).json() == first
    submitted = await somebody.submit("Hello!", idempotency=key)
    assert (submitted.status_code, submitted.json()["turn_id"]) == (202, first["turn_id"])
    assert problem(await somebody.say("Goodbye!", idempotency=key)) == refusal(409, "idempotency_key_reused")
    assert [one["turn_id"] for one in await somebody.turns()] == [first["turn_id"]]
    assert len(await somebody.messages(first["conversation_id"])) == 2


@pytest.mark.parametrize("key", [b"a" * 256, "na\u00efve".encode(), b"tab\there"])
async def test_an_idempotency_key_that_is_none_is_refused(somebody: Person, key: bytes) -> None:
    answer = await somebody.http.post(MESSAGES, json={"currentMessageText": "Hello"}, headers={b"Idempotency-Key": key})
    assert problem(answer) == refusal(400, "bad_request", "Idempotency-Key")
    assert await somebody.turns() == []


@pytest.mark.req("D-010")
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
async def test_the_messages_endpoint_takes_messages_alone(somebody: Person, method: str) -> None:
    answer = await somebody.http.request(method, MESSAGES)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
