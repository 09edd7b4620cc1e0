"""The blocking SDK: each call reaches its route and comes back typed."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import ModuleType

import pytest

from phronesis import Client, KeyInfo, Readiness, aio, batches, sync
from phronesis.calls import account, memory, turns
from phronesis_contracts import BadRequest, NotFound, Role, TimedOut, TooLarge, TurnEnded, Unauthorized
from phronesis_contracts.deletions import DeletionState
from phronesis_contracts.media import MAX_UPLOAD
from phronesis_contracts.memories import NewMemory
from phronesis_contracts.memory import Forgotten, ItemKind, ProfileChanged, RecalledItem, RememberItem
from phronesis_contracts.orchestrator import TurnStatus
from tests.support.fake_gateway import FakeGateway, problem
from tests.support.personas import Persona

MESSAGES = "/api/v1/conversations/messages"


def test_a_message_is_answered_and_the_conversation_goes_on(client: Client, gateway: FakeGateway) -> None:
    first = client.conversations.send("hello")
    second = client.conversations.send("and then?", first.conversation_id, media=["m1", "https://example.org/a.pdf"])
    assert (first.user_response, second.user_response) == ("answer 1 to: hello", "answer 2 to: and then?")
    assert first.sources[0].title == "A source"
    assert gateway.on(MESSAGES)[1].json == {
        "conversationId": first.conversation_id,
        "currentMessageText": "and then?",
        "currentMessageMedia": [{"mediaId": "m1"}, {"url": "https://example.org/a.pdf"}],
        "agent": "dialogue",
    }


def test_every_message_carries_an_idempotency_key_of_its_own(client: Client, gateway: FakeGateway) -> None:
    client.conversations.send("one")
    client.conversations.send("two")
    client.conversations.send("three", idempotency_key="mine")
    keys = [seen.headers["idempotency-key"] for seen in gateway.on(MESSAGES)]
    assert len(set(keys)) == 3
    assert keys[2] == "mine"


def test_a_turn_that_has_not_ended_in_time_is_named(client: Client, gateway: FakeGateway) -> None:
    gateway.silent = True
    with pytest.raises(TimedOut) as caught:
        client.conversations.send("slow")
    [turn] = gateway.turns
    assert turn in caught.value.detail


def test_a_conversation_is_read_back_in_order(client: Client) -> None:
    reply = client.conversations.send("hello")
    read = client.conversations.get(reply.conversation_id, limit=5)
    assert [(m.role, m.text) for m in read.messages] == [("user", "hello"), ("assistant", "answer 1 to: hello")]


def test_what_is_thought_of_an_answer_is_said_and_taken_back() -> None:
    said, back = turns.rate_turn("t1", helpful=False, remark="Too long"), turns.unrate_turn("t1")
    assert (said.method, said.path, said.json) == ("PUT", "/api/v1/turns/t1/feedback", {"helpful": False, "remark": "Too long"})
    assert (back.method, back.path) == ("DELETE", "/api/v1/turns/t1/feedback")
    assert (turns.list_turns(helpful=False).params or {})["helpful"] == "false"


def test_turns_are_submitted_read_listed_cancelled_and_retried(client: Client, gateway: FakeGateway) -> None:
    gateway.silent = True
    accepted = client.turns.submit("slow")
    assert client.turns.get(accepted.turn_id).status is TurnStatus.RUNNING
    assert [turn.turn_id for turn in client.turns.list(status=TurnStatus.RUNNING, limit=3)] == [accepted.turn_id]
    assert gateway.seen[-1].query == "limit=3&status=running"
    assert client.turns.cancel(accepted.turn_id).status is TurnStatus.CANCELLED
    assert client.turns.retry(accepted.turn_id).retry_of == accepted.turn_id
    with pytest.raises(TurnEnded):
        client.turns.cancel(accepted.turn_id)


def test_a_trace_names_the_services_that_did_not_answer(client: Client) -> None:
    trace = client.turns.trace("t1")
    assert [span.service for span in trace.spans] == ["memory", "gateway", "orchestrator"]
    assert trace.missing == ("media",)


def test_a_file_and_bytes_are_uploaded_whole(client: Client, gateway: FakeGateway, tmp_path: Path) -> None:
    file = tmp_path / "note.txt"
    file.write_bytes(b"\x00 some bytes \xff")
    media = client.media.upload(file)
    other = client.media.upload(b"more", "more.txt")
    assert (media.name, media.size, other.name) == ("note.txt", 14, "more.txt")
    assert gateway.uploads == {media.id: b"\x00 some bytes \xff", other.id: b"more"}


def test_an_upload_over_the_limit_is_refused_before_it_is_read(client: Client, gateway: FakeGateway, tmp_path: Path) -> None:
    file = tmp_path / "huge"
    with file.open("wb") as handle:
        handle.truncate(MAX_UPLOAD + 1)
    with pytest.raises(TooLarge):
        client.media.upload(file)
    assert gateway.seen == []


def test_what_is_remembered_is_recalled(client: Client) -> None:
    item = RememberItem(text="The mug is blue.", external_id="mug", kind=ItemKind.NOTE, title="Mug")
    stored = client.memory.remember([item, "a fact"])
    found = client.memory.recall("mug", limit=1).items
    about = RecalledItem(
        id=stored.items[0].id,
        external_id="mug",
        kind=ItemKind.NOTE,
        title="Mug",
        text="The mug is blue.",
        score=0.5,
        why={"text": 1.0},
    )
    assert found == (about,)


def test_a_bare_string_is_one_item(client: Client, gateway: FakeGateway) -> None:
    stored = client.memory.remember("hello")
    assert gateway.seen[-1].json == {"items": [{"text": "hello"}]}
    client.memory.recall("hello", kinds="fact")
    assert gateway.seen[-1].json["kinds"] == ["fact"]
    assert client.memory.forget(stored.items[0].id).count == 1
    client.conversations.send("look", media="m1")
    assert gateway.seen[-1].json["currentMessageMedia"] == [{"mediaId": "m1"}]
    client.turns.submit("look", media="https://example.org/a.pdf")
    assert gateway.seen[-1].json["currentMessageMedia"] == [{"url": "https://example.org/a.pdf"}]


def test_a_bare_string_is_one_item_of_a_request() -> None:
    assert account.get_usage(by="agent").params["by"] == ["agent"]
    assert memory.preview_forgetting("f1").json["ids"] == ["f1"]
    assert memory.forget_for_good("f1").json["ids"] == ["f1"]


def test_tools_are_listed_and_called_by_name(client: Client) -> None:
    assert [tool.name for tool in client.tools.list()] == ["recall"]
    assert client.tools.call("recall", {"query": "x"}) == {"items": []}
    with pytest.raises(NotFound):
        client.tools.call("../keys", {})


def test_keys_are_made_listed_and_revoked(client: Client) -> None:
    made = client.keys.create("acme", "ann", Role.MEMBER, ministry="energy", agents="noor")
    assert made.key == f"phr_{made.id}"
    client.keys.revoke(made.id)
    [listed] = client.keys.list()
    assert listed == KeyInfo(
        id=made.id,
        tenant="acme",
        user="ann",
        **Persona.NOOR.rights,
        ministry="energy",
        created_at=made.created_at,
        revoked_at=made.created_at,
    )


def test_the_profile_is_replaced_and_read(client: Client) -> None:
    client.profile.put({"name": "Ann"})
    assert client.profile.get().profile == {"name": "Ann"}


def test_the_profile_is_corrected_and_deleted_at_its_version(client: Client) -> None:
    stored = client.profile.put({"name": "Ann", "age": 30})
    changed = client.profile.update({"age": None, "likes": ["tea"]}, version=stored.version)
    assert changed.profile == {"name": "Ann", "likes": ["tea"]}
    with pytest.raises(ProfileChanged) as caught:
        client.profile.delete(version=stored.version)
    assert (caught.value.status, caught.value.field) == (412, "If-Match")
    assert client.profile.delete(version=changed.version).profile == {}


def test_conversations_are_listed_page_by_page(client: Client) -> None:
    ids = [client.conversations.send(f"message {n}").conversation_id for n in range(3)]
    first = client.conversations.list(limit=2)
    assert [(one.conversation_id, one.title) for one in first.conversations] == [(ids[2], "message 2"), (ids[1], "message 1")]
    last = client.conversations.list(limit=2, cursor=first.next)
    assert ([one.conversation_id for one in last.conversations], last.next) == ([ids[0]], None)


def test_a_conversation_is_deleted_and_its_deletion_followed(client: Client) -> None:
    id = client.conversations.send("hello").conversation_id
    deletion = client.conversations.delete(id)
    assert client.conversations.delete(id) == deletion
    assert deletion.state is DeletionState.PENDING
    client.conversations.deletion(deletion.deletion_id)
    done = client.conversations.deletion(deletion.deletion_id)
    assert (done.state, done.removed) == (DeletionState.COMPLETE, {"memory": {"items": 2, "sources": 2}})
    with pytest.raises(NotFound):
        client.conversations.get(id)


def test_items_are_forgotten(client: Client) -> None:
    (item,) = client.memory.remember(["The mug is blue."]).items
    assert client.memory.forget([item.id, "another"]) == Forgotten(count=1, ids=(item.id,))
    assert client.memory.recall("mug").items == ()


def test_readiness_is_an_answer_also_when_something_is_down(client: Client, gateway: FakeGateway) -> None:
    assert client.ready() == Readiness(ready=True)
    gateway.down = ("memory",)
    assert client.ready() == Readiness(ready=False, down=("memory",))


def test_a_wrong_key_is_unauthorized(gateway: FakeGateway) -> None:
    with Client(gateway.url, "phr_wrong") as client, pytest.raises(Unauthorized):
        client.tools.list()


def test_a_problem_document_becomes_its_class_with_its_field(client: Client, gateway: FakeGateway) -> None:
    gateway.faults.append(problem(400, "bad_request", "no such agent", field="agent"))
    with pytest.raises(BadRequest) as caught:
        client.conversations.send("hi", agent="nobody")
    assert (caught.value.detail, caught.value.field) == ("no such agent", "agent")


def test_input_that_breaks_a_rule_is_refused_without_a_request(client: Client, gateway: FakeGateway) -> None:
    with pytest.raises(BadRequest) as caught:
        client.memory.recall("", limit=1)
    assert caught.value.field == "query"
    assert gateway.seen == []


def test_both_faces_offer_the_same_calls() -> None:
    def offered(module: ModuleType) -> dict[str, list[str]]:
        classes = inspect.getmembers(module, lambda one: inspect.isclass(one) and one.__module__ == module.__name__)
        return {name.removeprefix("Async"): [n for n in dir(one) if not n.startswith("_")] for name, one in classes}

    blocking = {name: calls for name, calls in offered(sync).items() if not name.startswith("_")}
    assert blocking == {name: calls for name, calls in offered(aio).items() if not name.startswith("_")}
    assert inspect.signature(sync.Conversations.send) == inspect.signature(aio.Conversations.send)
    assert inspect.iscoroutinefunction(aio.Conversations.send)


@pytest.mark.parametrize(
    ("texts", "sizes"),
    [
        ([], []),
        (["a"] * 500, [500]),
        (["a"] * 1_001, [500, 500, 1]),
        (["甲" * 20_000] * 13, [6, 6, 1]),
    ],
    ids=["none", "as many as one call takes", "too many for one call", "too many bytes for one call"],
)
def test_memories_come_in_batches_that_one_call_takes(texts: list[str], sizes: list[int]) -> None:
    given = [NewMemory(text=text) for text in texts]
    made = list(batches(given))
    assert [len(batch) for batch in made] == sizes
    assert [one for batch in made for one in batch] == given


def test_a_memory_that_is_larger_than_a_batch_is_one_of_its_own() -> None:
    small, large = NewMemory(text="a"), NewMemory(text="b", metadata={"scan": "x" * 500_000})
    assert list(batches([small, large, small])) == [[small], [large], [small]]
