"""The commands about conversations, the profile and forgetting."""

from __future__ import annotations

import json

import pytest

from phronesis import Client
from phronesis.cli import conversations, run
from phronesis_contracts.deletions import Deletion, DeletionState
from phronesis_contracts.orchestrator import ConversationPage
from tests.support.fake_gateway import KEY, FakeGateway

Printed = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def stack(gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names the fake gateway."""
    monkeypatch.setenv("PHRONESIS_URL", gateway.url)
    monkeypatch.setenv("PHRONESIS_KEY", KEY)
    monkeypatch.setattr(conversations, "PAUSE", 0.0)


@pytest.fixture
def talk(gateway: FakeGateway) -> str:
    """A conversation that there is."""
    with Client(gateway.url, KEY) as client:
        return client.conversations.send("What is it?").conversation_id


def test_conversations_are_listed_with_their_titles(capsys: Printed, talk: str) -> None:
    assert run(["conversations"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == [
        *(talk, "2026-01-02", "03:04:05", "1", "dialogue", "What", "is", "it?")
    ]


def test_the_next_page_is_named_beside_the_list(capsys: Printed, talk: str, gateway: FakeGateway) -> None:
    with Client(gateway.url, KEY) as client:
        client.conversations.send("And this?")
    assert run(["conversations", "list", "--limit", "1"]) == 0
    assert capsys.readouterr().err == "more: --cursor 1\n"
    assert run(["conversations", "list", "--limit", "1", "--cursor", "1", "--json"]) == 0
    page = ConversationPage.model_validate_json(capsys.readouterr().out)
    assert ([one.conversation_id for one in page.conversations], page.next) == ([talk], None)


def test_a_conversation_is_shown(capsys: Printed, talk: str) -> None:
    assert run(["conversations", "show", talk]) == 0
    assert capsys.readouterr().out == "1. user: What is it?\n2. assistant: answer 1 to: What is it?\n"


def test_delete_with_wait_stays_until_nothing_is_left(capsys: Printed, talk: str, gateway: FakeGateway) -> None:
    assert run(["conversations", "delete", talk, "--wait", "--yes", "--json"]) == 0
    done = Deletion.model_validate_json(capsys.readouterr().out)
    assert (done.conversation_id, done.state) == (talk, DeletionState.COMPLETE)
    assert talk not in gateway.conversations


def test_delete_without_wait_prints_where_it_is(capsys: Printed, talk: str, gateway: FakeGateway) -> None:
    assert run(["conversations", "delete", talk, "-y"]) == 0
    (id,) = gateway.deletions
    assert capsys.readouterr().out == f"deletion  {id}\nstate     pending\n"


def test_a_deletion_that_does_not_end_in_time_is_a_failure(capsys: Printed, talk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversations, "PATIENCE", 0.0)
    assert run(["conversations", "delete", talk, "--wait", "--yes"]) == 1
    assert "still going on" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["conversations", "delete", "{talk}"], ["profile", "delete"], ["forget", "x"]])
def test_nothing_is_deleted_without_a_yes(
    command: list[str], talk: str, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    for answer in ("n\n", "\n", ""):
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        seen = len(gateway.seen)
        assert run([part.replace("{talk}", talk) for part in command]) == 130
        assert len(gateway.seen) == seen


def test_a_yes_that_is_typed_is_enough(talk: str, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert run(["conversations", "delete", talk]) == 0
    assert talk not in gateway.conversations


def test_the_profile_is_set_shown_and_deleted(capsys: Printed, gateway: FakeGateway) -> None:
    assert run(["profile", "set", "name=Ann B.", "age=30", "likes.tea=true", "none=NaN"]) == 0
    assert gateway.profile == {"name": "Ann B.", "age": 30, "likes": {"tea": True}, "none": "NaN"}
    assert run(["profile", "set", "age=null", "none=null"]) == 0
    capsys.readouterr()
    assert run(["profile"]) == 0
    assert capsys.readouterr().out == 'name = Ann B.\nlikes = {"tea": true}\n'
    assert run(["profile", "show", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["profile"] == {"name": "Ann B.", "likes": {"tea": True}}
    assert run(["profile", "delete", "--yes"]) == 0
    assert gateway.profile == {}


@pytest.mark.parametrize("field", ["name", "=x", "a.=x", "a..b=x"])
def test_what_is_no_key_and_value_is_refused(field: str, capsys: Printed, gateway: FakeGateway) -> None:
    assert run(["profile", "set", field]) == 3
    assert "is not KEY=VALUE" in capsys.readouterr().err
    assert gateway.seen == []


def test_forget_prints_what_there_was(capsys: Printed, gateway: FakeGateway) -> None:
    run(["remember", "The mug is blue.", "--external-id", "mug"])
    capsys.readouterr()
    (item,) = gateway.items
    assert run(["forget", "mug", "other", "--yes"]) == 0
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (f"{item['id']}\n", "1 forgotten\n")
    assert gateway.items == []
