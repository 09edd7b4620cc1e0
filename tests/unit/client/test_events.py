"""Events of a turn: parsed as the standard says, and followed over broken connections."""

from __future__ import annotations

from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis import AsyncClient, Client, TurnEvent, sse
from phronesis.sse import Following, Parser
from phronesis_contracts import Internal, NotFound, Unavailable
from tests.support.fake_gateway import KEY, FakeGateway, problem

STREAM = (
    'retry: 1500\n: ping\n\nid: 7\r\nevent: phase\r\ndata: {"phase":\r\ndata: "a\u2028b"}\r\n\r\ndata: 3\n\nevent: lost\n\n'
)
EVENTS = [TurnEvent(id="7", kind="phase", data={"phase": "a\u2028b"}), TurnEvent(id="7", kind="message", data={"value": 3})]


@given(st.lists(st.integers(0, len(STREAM.encode())), max_size=12))
def test_events_are_the_same_however_the_bytes_are_cut(cuts: list[int]) -> None:
    data, parser = STREAM.encode(), Parser()
    edges = [0, *sorted(cuts), len(data)]
    found = [event for a, b in pairwise(edges) for event in parser.feed(data[a:b])]
    assert found == EVENTS
    assert parser.retry == 1.5


def test_an_event_that_never_ends_is_refused() -> None:
    parser = Parser()
    chunks = [b"data: " + b"x" * 1024 * 1024] * 5
    with pytest.raises(Internal):
        list(chain.from_iterable(map(parser.feed, chunks)))


ALL = [("1", "accepted"), ("2", "phase"), ("3", "phase"), ("4", "ended"), ("4", "text"), ("4", "text"), ("4", "done")]


def test_the_stream_ends_with_the_turn_itself(client: Client) -> None:
    turn = client.turns.submit("hi")
    events = list(client.turns.events(turn.turn_id))
    assert [(event.id, event.kind) for event in events] == ALL
    assert [event.data.get("phase") for event in events[1:3]] == ["routed", "an\u2028swered"]
    assert events[-1].data["reply"]["user_response"] == "answer 1 to: hi"


def test_a_broken_stream_goes_on_behind_the_last_whole_event(client: Client, gateway: FakeGateway) -> None:
    turn = client.turns.submit("hi")
    gateway.cuts.extend([(2, "phase"), (3, "phase")])
    assert [(event.id, event.kind) for event in client.turns.events(turn.turn_id)] == ALL
    opened = gateway.on(f"/api/v1/turns/{turn.turn_id}/events")
    assert [seen.headers.get("last-event-id") for seen in opened] == [None, "1", "2"]


def test_an_end_that_breaks_half_way_is_told_once(client: Client, gateway: FakeGateway) -> None:
    turn = client.turns.submit("hi")
    gateway.cuts.extend([(4, "done"), (4, "text")])
    assert [(event.id, event.kind) for event in client.turns.events(turn.turn_id)] == ALL


def test_an_end_that_comes_again_with_a_later_id_is_told_once() -> None:
    """The first time it was sent before the hint of the end had reached the broker's stream."""
    first, second = ([f'id: {id}\nevent: {kind}\ndata: {{"k": 1}}\n\n' for kind in ("ended", "text", "done")] for id in (3, 4))
    following = Following("t", None, "http://here")
    told = list(following.feed("".join(["id: 3\nevent: phase\ndata: {}\n\n", *first[:2]]).encode()))
    following.broken(None)
    told += following.feed("".join(second).encode())
    assert [(event.id, event.kind) for event in told] == [("3", "phase"), ("3", "ended"), ("3", "text"), ("4", "done")]


def test_a_stream_that_never_brings_anything_is_given_up(
    client: Client, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "FRUITLESS", 4)
    turn = client.turns.submit("hi")
    gateway.faults.extend([problem(503, "unavailable", "away")] * 20)
    with pytest.raises(Unavailable, match="away"):
        list(client.turns.events(turn.turn_id))


def test_a_foreign_turn_has_no_events(client: Client) -> None:
    with pytest.raises(NotFound):
        list(client.turns.events("unknown"))


async def test_the_async_face_follows_a_broken_stream_too(gateway: FakeGateway) -> None:
    gateway.cuts.append((3, "phase"))
    async with AsyncClient(gateway.url, KEY) as client:
        turn = await client.turns.submit("hi")
        assert [(e.id, e.kind) async for e in client.turns.events(turn.turn_id, after="1")] == ALL[1:]


async def test_the_async_face_speaks_and_repeats_as_the_blocking_one(gateway: FakeGateway) -> None:
    gateway.faults.append(problem(503, "unavailable", "away"))
    async with AsyncClient(gateway.url, KEY) as client:
        reply = await client.conversations.send("hello")
        read = await client.conversations.get(reply.conversation_id)
        assert (await client.ready()).ready
        with pytest.raises(NotFound):
            await client.turns.get("unknown")
    assert [message.text for message in read.messages] == ["hello", "answer 1 to: hello"]
