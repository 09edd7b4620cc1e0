"""The event stream of a turn."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import pytest

from phronesis_contracts.orchestrator import Problem, TurnProgress
from phronesis_gateway.turns.events import CHUNK
from phronesis_postgres import PostgresSettings
from tests.support.bus import eventually
from tests.support.gateway import Holder, RunningGateway, gateway
from tests.support.scripted_orchestrator import ScriptedOrchestrator
from tests.support.servers import NatsServer

TURNS = "/api/v1/turns"


@dataclass(frozen=True)
class Seen:
    """One event as a client reads it."""

    id: str
    kind: str
    data: dict[str, Any]


class Reader:
    """Reads events off a response."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.aiter_lines()
        self.id = ""

    async def next(self) -> Seen | None:
        """The next event, or `None` at the end."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(10):
            async for line in self._lines:
                name, _, value = line.partition(": ")
                if line:
                    fields[name] = value
                elif "data" in fields:
                    self.id = fields.get("id", self.id)
                    return Seen(self.id, fields["event"], json.loads(fields["data"]))
                else:
                    fields = {}
        return None

    async def rest(self) -> list[Seen]:
        """All that is left."""
        found = []
        while (seen := await self.next()) is not None:
            found.append(seen)
        return found


@asynccontextmanager
async def watching(
    api: RunningGateway, turn: str, headers: dict[str, str], last: str | None = None, query: str = ""
) -> AsyncIterator[Reader]:
    more = {"Last-Event-ID": last} if last is not None else {}
    async with api.http.stream("GET", f"{TURNS}/{turn}/events{query}", headers=headers | more) as response:
        if response.status_code != 200:
            await response.aread()
            raise httpx.HTTPStatusError(response.text, request=response.request, response=response)
        yield Reader(response)


@pytest.fixture
async def turn(api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator) -> str:
    """A turn of ann's that waits for its end."""
    text = f"watched {uuid4()}"
    orchestrator.slow.add(text)
    answer = await api.http.post(TURNS, json={"currentMessageText": text}, headers=ann.headers)
    id: str = answer.json()["turn_id"]
    return id


@pytest.mark.req("D-C17")
async def test_a_turn_is_watched_from_its_acceptance_to_its_end(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator, turn: str
) -> None:
    async with watching(api, turn, ann.headers) as reader:
        first = await reader.next()
        await orchestrator.phase(turn, "routed")
        second = await reader.next()
        ended = await orchestrator.end(turn)
        rest = await reader.rest()
    assert first is not None
    assert second is not None
    assert (first.kind, second.kind, second.data["phase"]) == ("accepted", "phase", "routed")
    assert [seen.kind for seen in rest] == ["ended", "text", "done"]
    assert ended.reply is not None
    assert rest[1].data == {"k": 1, "n": 1, "text": ended.reply.user_response}
    assert rest[2].data == ended.model_dump(mode="json")
    assert int(first.id) < int(second.id) <= int(rest[0].id) == int(rest[2].id)


async def test_a_reader_is_told_which_approval_a_turn_waits_for(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator, turn: str
) -> None:
    async with watching(api, turn, ann.headers) as reader:
        await reader.next()
        approval = await orchestrator.wait(turn)
        waiting = await reader.next()
        await orchestrator.end(turn)
        rest = await reader.rest()
    assert waiting is not None
    assert (waiting.kind, waiting.data["detail"]) == ("waiting", {"approval_id": approval})
    assert [seen.kind for seen in rest] == ["ended", "text", "done"]


async def test_a_reader_that_comes_back_gets_what_it_has_not_seen(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator, turn: str
) -> None:
    async with watching(api, turn, ann.headers) as reader:
        seen = await reader.next()
    assert seen is not None
    for phase in ("preprocessed", "routed"):
        await orchestrator.phase(turn, phase)
    await orchestrator.end(turn)
    async with watching(api, turn, ann.headers, last=seen.id) as reader:
        rest = await reader.rest()
    assert [one.data.get("phase") for one in rest[:2]] == ["preprocessed", "routed"]
    assert [one.kind for one in rest[2:]] == ["ended", "text", "done"]


async def test_a_reader_that_lost_the_end_gets_all_of_it_again(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator, turn: str
) -> None:
    await orchestrator.end(turn)
    async with watching(api, turn, ann.headers) as reader:
        accepted, *whole = await reader.rest()
    async with watching(api, turn, ann.headers, last=whole[-1].id) as reader:
        assert await reader.rest() == whole
    assert accepted.kind == "accepted"


async def test_text_that_looks_like_an_event_stays_text(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator, turn: str
) -> None:
    text = "a\n\ndata: {}\nevent: done\r\n\r\nid: 99\u2028\u0085" + "long " * CHUNK
    orchestrator.reply = lambda submitted: text
    try:
        await orchestrator.end(turn)
    finally:
        orchestrator.reply = lambda submitted: f"You said: {submitted.text}"
    async with watching(api, turn, ann.headers) as reader:
        seen = await reader.rest()
    parts = [one.data for one in seen if one.kind == "text"]
    assert [one.kind for one in seen] == ["accepted", "ended", *["text"] * len(parts), "done"]
    assert "".join(part["text"] for part in parts) == text
    assert [(part["k"], part["n"]) for part in parts] == [(k, len(parts)) for k in range(1, len(parts) + 1)]


async def test_an_end_whose_hint_was_lost_still_reaches_the_reader(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator, turn: str
) -> None:
    async with watching(api, turn, ann.headers) as reader:
        await reader.next()
        await orchestrator.end(turn, hint=False)
        assert [seen.kind for seen in await reader.rest()] == ["ended", "text", "done"]


async def test_what_was_said_to_another_submission_of_the_same_key_is_no_event_of_the_turn(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator, turn: str
) -> None:
    problem = Problem(code="idempotency_key_reused", status=409)
    await orchestrator.say(ann.who, TurnProgress(turn_id=turn, kind="refused", problem=problem))
    await orchestrator.end(turn)
    async with watching(api, turn, ann.headers) as reader:
        assert [seen.kind for seen in await reader.rest()] == ["accepted", "ended", "text", "done"]


async def test_an_acceptance_that_is_said_again_is_told_once(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator, turn: str
) -> None:
    again = TurnProgress(turn_id=turn, kind="accepted", conversation_id=str(uuid4()))
    await orchestrator.say(ann.who, again)
    await orchestrator.end(turn)
    async with watching(api, turn, ann.headers) as reader:
        whole = await reader.rest()
    await orchestrator.say(ann.who, again)
    async with watching(api, turn, ann.headers, last=whole[-1].id) as reader:
        behind = await reader.rest()
    assert [seen.kind for seen in whole] == ["accepted", "ended", "text", "done"]
    assert [seen.kind for seen in behind] == ["ended", "text", "done"]


@pytest.mark.parametrize("last", ["-1", "x", "1e3", "9" * 20, "٣"])
async def test_an_event_id_that_is_none_is_refused(api: RunningGateway, ann: Holder, turn: str, last: str) -> None:
    headers = ann.headers | {"Last-Event-ID": last}
    answer = await api.http.get(f"{TURNS}/{turn}/events", headers={k.encode(): v.encode() for k, v in headers.items()})
    assert (answer.status_code, answer.json()["field"]) == (400, "Last-Event-ID")


async def test_the_id_of_an_event_that_is_yet_to_come_still_leads_to_the_end(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator, turn: str
) -> None:
    await orchestrator.end(turn)
    async with watching(api, turn, ann.headers, last=str(2**62)) as reader:
        assert [seen.kind for seen in await reader.rest()] == ["ended", "text", "done"]


async def test_a_foreign_turn_cannot_be_watched(api: RunningGateway, turn: str) -> None:
    bob = await api.holder()
    answer = await api.http.get(f"{TURNS}/{turn}/events", headers=bob.headers)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    answer = await api.http.post(f"{TURNS}/{turn}/ticket", headers=bob.headers)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_a_ticket_opens_the_stream_of_its_turn_alone(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator, turn: str
) -> None:
    made = (await api.http.post(f"{TURNS}/{turn}/ticket", headers=ann.headers)).json()
    await orchestrator.end(turn)
    async with watching(api, turn, {}, query=f"?ticket={made['ticket']}") as reader:
        assert (await reader.rest())[-1].kind == "done"
    made = (await api.http.post(f"{TURNS}/{turn}/ticket", headers=ann.headers)).json()
    other = await api.http.get(f"{TURNS}/{uuid4()}/events", params={"ticket": made["ticket"]})
    as_key = await api.http.get(f"{TURNS}/{turn}", headers={"Authorization": f"Bearer {made['ticket']}"})
    assert (other.status_code, as_key.status_code) == (401, 401)


async def test_a_ticket_opens_one_stream_however_many_come_with_it(
    api: RunningGateway,
    ann: Holder,
    orchestrator: ScriptedOrchestrator,
    turn: str,
    nats_server: NatsServer,
    database: PostgresSettings,
) -> None:
    made = (await api.http.post(f"{TURNS}/{turn}/ticket", headers=ann.headers)).json()
    await orchestrator.end(turn)
    async with gateway(nats_server, database) as copy:
        answers = await asyncio.gather(*(each.http.get(made["url"]) for each in (api, copy) * 5))
    assert sorted(answer.status_code for answer in answers) == [200] + [401] * 9
    assert {answer.json()["detail"] for answer in answers if answer.status_code == 401} == {
        "the ticket was used; make another one"
    }
    again = (await api.http.post(f"{TURNS}/{turn}/ticket", headers=ann.headers)).json()
    assert (await api.http.get(again["url"])).status_code == 200


async def test_a_key_can_hold_only_so_many_streams_open(api: RunningGateway, ann: Holder, turn: str) -> None:
    async with watching(api, turn, ann.headers) as first, watching(api, turn, ann.headers) as second:
        assert [await reader.next() is not None for reader in (first, second)] == [True, True]
        answer = await api.http.get(f"{TURNS}/{turn}/events", headers=ann.headers)
        assert (answer.status_code, answer.json()["code"]) == (429, "too_many_requests")
        assert answer.headers["retry-after"] == "5"

    async def free() -> bool:
        async with api.http.stream("GET", f"{TURNS}/{turn}/events", headers=ann.headers) as response:
            return response.status_code == 200

    await eventually(free)


async def test_readers_that_vanish_leave_nothing_behind(api: RunningGateway, orchestrator: ScriptedOrchestrator) -> None:
    async def open_streams() -> int:
        lines = (await api.http.get("/metrics")).text.splitlines()
        return int(float(next(line.split()[1] for line in lines if line.startswith("gateway_open_streams "))))

    async def vanish() -> None:
        holder = await api.holder()
        text = f"vanish {uuid4()}"
        orchestrator.slow.add(text)
        answer = await api.http.post(TURNS, json={"currentMessageText": text}, headers=holder.headers)
        path = f"{TURNS}/{answer.json()['turn_id']}/events"
        reader, writer = await asyncio.open_connection("127.0.0.1", api.server.port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {holder.secret}\r\n\r\n".encode())
        await reader.readuntil(b"event: accepted")
        writer.transport.abort()

    await eventually(lambda: no(open_streams()))
    await asyncio.gather(*(vanish() for _ in range(40)))
    await eventually(lambda: no(open_streams()))


async def no(count: Coroutine[None, None, int]) -> bool:
    return await count == 0
