"""What `make kind` asks of a cluster: a turn that is lost or answers something else fails it."""

from __future__ import annotations

import pytest

from phronesis import Client
from scripts import turns
from tests.support.fake_gateway import KEY, FakeGateway, problem


def test_a_refusal_on_the_way_is_borne(gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "ANSWER", "answer 1 to")
    gateway.faults.extend([problem(503, "unavailable", "away")] * 6)  # one more than the SDK bears itself
    with Client(gateway.url, KEY) as client:
        assert turns.ask(client).status == "completed"
    assert not gateway.faults


def test_another_answer_is_harm(gateway: FakeGateway) -> None:
    with Client(gateway.url, KEY) as client, pytest.raises(turns.Harmed, match="is completed and says"):
        turns.ask(client)


def test_a_turn_that_does_not_end_is_harm(gateway: FakeGateway) -> None:
    gateway.silent = True
    with Client(gateway.url, KEY) as client, pytest.raises(turns.Harmed, match="has not ended after"):
        turns.ask(client, within=0.5)


def test_harm_to_one_of_several_users_is_told(gateway: FakeGateway) -> None:
    with Client(gateway.url, KEY) as client, pytest.raises(turns.Harmed), turns.asking(client, users=2):
        pass
