"""What is sent again, when, and what never is."""

from __future__ import annotations

import socket
import time

import pytest
from starlette.responses import PlainTextResponse, Response

from phronesis import Client
from phronesis.request import WAIT_IN_ALL
from phronesis_contracts import Busy, Internal, TooManyRequests, Unavailable
from tests.support.fake_gateway import KEY, FakeGateway, problem

MESSAGES = "/api/v1/conversations/messages"
AWAY = problem(503, "unavailable", "memory is down")


def test_a_message_is_sent_again_with_the_same_key_until_it_is_answered(client: Client, gateway: FakeGateway) -> None:
    gateway.faults.extend([AWAY, problem(429, "too_many_requests", "slow down")])
    assert client.conversations.send("hi").user_response == "answer 1 to: hi"
    assert len({seen.headers["idempotency-key"] for seen in gateway.on(MESSAGES)}) == 1
    assert len(gateway.on(MESSAGES)) == 3


def test_retry_after_is_waited_for(client: Client, gateway: FakeGateway) -> None:
    gateway.faults.append(problem(503, "busy", "full", {"Retry-After": "1"}))
    began = time.monotonic()
    client.conversations.send("hi")
    assert time.monotonic() - began >= 1.0


def test_a_retry_after_beyond_the_patience_is_the_callers(client: Client, gateway: FakeGateway) -> None:
    gateway.faults.append(problem(503, "busy", "full", {"Retry-After": str(WAIT_IN_ALL + 1)}))
    with pytest.raises(Busy) as caught:
        client.conversations.send("hi")
    assert caught.value.retry_after == WAIT_IN_ALL + 1
    assert len(gateway.seen) == 1


def test_a_call_without_a_key_is_not_repeated(client: Client, gateway: FakeGateway) -> None:
    gateway.faults.append(AWAY)
    with pytest.raises(Unavailable):
        client.tools.call("graph_upsert", {"nodes": []})
    assert len(gateway.seen) == 1


def test_a_call_with_a_key_is_repeated(client: Client, gateway: FakeGateway) -> None:
    gateway.faults.append(AWAY)
    assert client.tools.call("graph_upsert", {"nodes": []}, idempotency_key="k") == {"nodes_created": 0}
    assert len(gateway.seen) == 2


def test_patience_ends(client: Client, gateway: FakeGateway) -> None:
    gateway.faults.extend([AWAY] * 20)
    with pytest.raises(Unavailable, match="memory is down"):
        client.tools.list()
    assert len(gateway.seen) == 5


def test_a_refusal_is_not_repeated(client: Client, gateway: FakeGateway) -> None:
    gateway.faults.append(problem(500, "internal", "it failed"))
    with pytest.raises(Internal):
        client.conversations.send("hi")
    assert len(gateway.seen) == 1


def test_nothing_listening_is_unavailable_and_says_where() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with Client(url, KEY) as client, pytest.raises(Unavailable, match=url):
        client.tools.list()


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (PlainTextResponse("<html>bad gateway</html>", 502), Unavailable),
        (PlainTextResponse("too many", 429), TooManyRequests),
        (PlainTextResponse("not json", 200), Internal),
        (PlainTextResponse("[]", 200), Internal),
    ],
)
def test_an_answer_that_is_none_of_ours_is_a_typed_error(
    client: Client, gateway: FakeGateway, response: Response, error: type[Exception]
) -> None:
    gateway.faults.append(lambda: response)
    with pytest.raises(error):
        client.turns.cancel("t1")
