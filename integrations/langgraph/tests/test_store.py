"""The store on a running stack, held against LangGraph's own store in memory, and searched by meaning."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime
from typing import Any, Literal

import pytest
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchItem,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from phronesis import Client
from phronesis_contracts import BadRequest, NotFound
from phronesis_langgraph import PhronesisStore

Carry = Callable[[BaseStore, list[Op]], list[Any]]

DOCUMENTS: list[Op] = [
    PutOp(("a", "ada", "tastes"), "coffee", {"text": "black", "strength": 3, "hot": True, "tags": ["drink", "daily"]}),
    PutOp(("a", "ada", "tastes"), "tea", {"text": "green", "strength": 1, "hot": True, "tags": ["drink"]}),
    PutOp(("a", "ada", "facts"), "home", {"text": "Oslo", "at": {"street": "Storgata", "floor": 4}, "since": None}),
    PutOp(("a", "bo", "tastes"), "coffee", {"text": "white", "strength": 2.5, "hot": False}),
    PutOp(("b", "ada"), "coffee", {"text": "none", "note": "Mål: 2 % — “zero”"}),
]


def carry_out(store: BaseStore, ops: list[Op]) -> list[Any]:
    return store.batch(ops)


def carry_out_without_blocking(store: BaseStore, ops: list[Op]) -> list[Any]:
    async def run() -> list[Any]:
        try:
            return await store.abatch(ops)
        finally:
            if isinstance(store, PhronesisStore):
                await store.aclose()

    return asyncio.run(run())


@pytest.fixture
def store(user: str) -> Iterator[PhronesisStore]:
    with PhronesisStore(user_id=user, wait=True) as store:
        yield store


@pytest.fixture
async def async_store(user: str) -> AsyncIterator[PhronesisStore]:
    async with PhronesisStore(user_id=user, wait=True) as store:
        yield store


@pytest.fixture(params=[carry_out, carry_out_without_blocking])
def carry(request: pytest.FixtureRequest) -> Carry:
    found: Carry = request.param
    return found


def plain(result: Any) -> Any:
    """A result without its times; items found in an order that can be compared."""
    match result:
        case Item():
            return (result.namespace, result.key, result.value)
        case [Item(), *_]:
            return sorted(map(plain, result), key=str)
    return result


@pytest.mark.parametrize(
    "asked",
    [
        GetOp(("a", "ada", "tastes"), "coffee"),
        GetOp(("b", "ada"), "coffee"),
        GetOp(("a", "ada"), "coffee"),
        GetOp(("a", "ada", "tastes"), "milk"),
        SearchOp(()),
        SearchOp(("a",)),
        SearchOp(("a", "ada")),
        SearchOp(("ada",)),
        SearchOp(("a", "ada", "tastes", "coffee")),
        SearchOp((), {"text": "black"}),
        SearchOp((), {"hot": True}),
        SearchOp((), {"strength": 2.5}),
        SearchOp((), {"tags": ["drink"]}),
        SearchOp((), {"tags": ["drink", "daily"]}),
        SearchOp((), {"at": {"street": "Storgata"}}),
        SearchOp((), {"at": {"street": "Other"}}),
        SearchOp((), {"since": None}),
        SearchOp(("a", "ada", "tastes"), {"strength": {"$gt": 1}}),
        SearchOp(("a", "ada", "tastes"), {"strength": {"$gte": 1, "$lt": 3}}),
        SearchOp(("a", "ada", "tastes"), {"strength": {"$lte": 1}, "hot": True}),
        SearchOp((), {"text": {"$ne": "black"}}),
        SearchOp((), {"text": {"$eq": "white"}}),
        SearchOp((), None, 0),
        SearchOp((), None, 10, 5),
        ListNamespacesOp(),
        ListNamespacesOp((MatchCondition("prefix", ("a",)),)),
        ListNamespacesOp((MatchCondition("prefix", ("a", "*", "tastes")),)),
        ListNamespacesOp((MatchCondition("suffix", ("tastes",)),)),
        ListNamespacesOp((MatchCondition("suffix", ("ada", "*")),)),
        ListNamespacesOp((MatchCondition("prefix", ("a",)), MatchCondition("suffix", ("facts",)))),
        ListNamespacesOp(None, 1),
        ListNamespacesOp(None, 2, 1, 1),
        ListNamespacesOp(None, None, 2, 3),
    ],
    ids=str,
)
def test_the_same_is_read_as_in_the_store_that_langgraph_keeps_in_memory(
    documents: PhronesisStore, expected: InMemoryStore, asked: Op, carry: Carry
) -> None:
    assert [plain(one) for one in carry(documents, [asked])] == [plain(one) for one in carry(expected, [asked])]


@pytest.fixture(scope="module")
def documents() -> Iterator[PhronesisStore]:
    """A store that tests only read."""
    with PhronesisStore(user_id="reader-of-documents") as store:
        store.batch(DOCUMENTS)
        yield store


@pytest.fixture
def expected() -> InMemoryStore:
    """LangGraph's own store with the same items; a new one each time, for it takes a namespace that it was asked for as one."""
    store = InMemoryStore()
    store.batch(DOCUMENTS)
    return store


WRITES: list[list[Op]] = [
    [PutOp(("n",), "k", {"v": 1}), GetOp(("n",), "k")],
    [PutOp(("n",), "k", {"v": 1}), PutOp(("n",), "k", {"v": 2})],
    [PutOp(("n",), "k", {"v": 1}), PutOp(("n",), "k", None)],
    [PutOp(("n",), "k", None), PutOp(("n",), "k", {"v": 1})],
    [PutOp(("n",), "never there", None)],
    [PutOp(("n", "m"), "k", {"v": {"deep": [1, {"x": None}]}}), PutOp(("n",), "m.k", {})],
    [PutOp(("n",), "", {"v": ""}), PutOp(("n",), "å/ü “x” " * 100, {"v": "y" * 50_000})],
    [SearchOp(("n",)), PutOp(("n",), "k", {"v": 1}), ListNamespacesOp()],
]


@pytest.mark.parametrize("ops", WRITES, ids=range(len(WRITES)))
def test_the_same_is_left_behind_as_in_the_store_that_langgraph_keeps_in_memory(
    store: PhronesisStore, carry: Carry, ops: list[Op]
) -> None:
    model = InMemoryStore()
    before: list[Op] = [PutOp(("n",), "k", {"v": 0, "old": True})]
    for some in (before, ops):
        assert [plain(one) for one in carry(store, some)] == [plain(one) for one in carry(model, some)]
    whole: list[Op] = [SearchOp((), None, 100)]
    assert [plain(one) for one in carry(store, whole)] == [plain(one) for one in carry(model, whole)]


def test_an_item_keeps_when_it_was_made_and_says_when_it_was_changed(store: PhronesisStore) -> None:
    store.put(("n",), "k", {"v": 1})
    first = store.get(("n",), "k")
    store.put(("n",), "k", {"v": 2})
    second = store.get(("n",), "k")
    assert first is not None
    assert second is not None
    assert isinstance(first.created_at, datetime)
    assert (second.created_at, second.updated_at > first.updated_at) == (first.created_at, True)


def test_a_search_by_meaning_finds_the_nearest_first_with_scores(store: PhronesisStore) -> None:
    store.put(("ada",), "1", {"text": "She takes her coffee without milk"})
    store.put(("ada",), "2", {"text": "The dentist has moved to Harbour Street"})
    store.put(("bo",), "3", {"text": "He takes his coffee with milk"})
    found = store.search(("ada",), query="how does she like her coffee?")
    assert [item.key for item in found][:1] == ["1"]
    assert {item.namespace for item in found} == {("ada",)}
    assert [item.score for item in found] == sorted((item.score or 0 for item in found), reverse=True)
    assert 0 < (found[0].score or 0) <= 1


def test_a_search_by_meaning_keeps_to_the_filter_the_limit_and_the_offset(store: PhronesisStore) -> None:
    for number in range(6):
        store.put(("notes",), str(number), {"text": f"The ferry to island {number} was late", "odd": number % 2 == 1})
    odd = store.search(("notes",), query="late ferry", filter={"odd": True})
    assert {item.key for item in odd} == {"1", "3", "5"}
    from_three = store.search(("notes",), query="late ferry", filter={"odd": {"$ne": True}})
    assert {item.key for item in from_three} == {"0", "2", "4"}
    whole = [item.key for item in store.search(("notes",), query="late ferry")]
    pages = [[item.key for item in store.search(("notes",), query="late ferry", limit=4, offset=at)] for at in (0, 4)]
    assert (pages[0] + pages[1], len(whole)) == (whole, 6)


@pytest.mark.parametrize(
    ("index", "found"), [(None, True), (["story.title"], True), (["tags[*]"], False), (False, False)], ids=str
)
def test_an_item_is_found_by_the_meaning_of_the_fields_that_it_names(
    store: PhronesisStore, index: Literal[False] | list[str] | None, found: bool
) -> None:
    value = {"story": {"title": "A lighthouse keeper counts whales"}, "tags": ["ledger", "invoice"]}
    store.put(("n",), "k", value, index=index)
    assert bool(store.search(("n",), query="lighthouse keeper and whales")) is found
    assert [item.key for item in store.search(("n",))] == ["k"]


def test_a_store_finds_by_the_fields_it_is_made_with(user: str) -> None:
    with PhronesisStore(user_id=user, fields=["title"], wait=True) as store:
        store.put(("n",), "k", {"title": "invoice", "body": "A lighthouse keeper counts whales"})
        assert store.search(("n",), query="lighthouse keeper and whales") == []
        assert [item.key for item in store.search(("n",), query="invoice")] == ["k"]


def test_memories_that_are_no_items_are_not_seen(store: PhronesisStore, user: str) -> None:
    with Client(user_id=user) as client:
        client.memory.add("The lighthouse keeper counts whales", wait=True)
    assert store.search((), query="lighthouse keeper") == store.search(()) == store.list_namespaces() == []


def test_an_item_is_a_memory_by_every_other_way_too(store: PhronesisStore, user: str) -> None:
    store.put(("ada",), "1", {"text": "She takes her coffee without milk"})
    with Client(user_id=user) as client:
        [found] = client.memory.search("coffee without milk").memories
    assert (found.text, found.kind) == ("text: She takes her coffee without milk", "note")


def test_users_see_nothing_of_each_other_whatever_the_namespace(store: PhronesisStore, user: str) -> None:
    store.put(("shared",), "k", {"text": "mine"})
    with PhronesisStore(user_id=f"{user}-2") as other:
        assert (other.get(("shared",), "k"), other.search(()), other.list_namespaces()) == (None, [], [])
        other.delete(("shared",), "k")
    assert store.get(("shared",), "k") is not None


def test_hundreds_of_items_are_stored_listed_and_deleted_in_one_batch(store: PhronesisStore, carry: Carry) -> None:
    names = [f"{number:03}" for number in range(620)]
    carry(store, [PutOp(("many", name[0]), name, {"n": int(name)}, False) for name in names])
    [found] = carry(store, [SearchOp(("many",), None, 1_000)])
    assert sorted(item.key for item in found) == names
    assert [item.key for item in found] == [item.key for at in (0, 300, 600) for item in store.search((), limit=300, offset=at)]
    assert carry(store, [ListNamespacesOp()]) == [[("many", str(first)) for first in range(7)]]
    carry(store, [PutOp(("many", name[0]), name, None) for name in names])
    assert carry(store, [SearchOp(())]) == [[]]


def test_large_values_are_listed_whole(store: PhronesisStore) -> None:
    values = {str(number): {"scan": str(number % 10) * 90_000} for number in range(12)}
    store.batch([PutOp(("scans",), key, value, False) for key, value in values.items()])
    assert {item.key: item.value for item in store.search((), limit=100)} == values


@pytest.mark.parametrize("value", [{"v": "x" * 100_001}, {"v": float("nan")}, {"v": object()}], ids=["large", "nan", "object"])
def test_a_value_that_cannot_be_kept_is_refused_and_nothing_of_its_batch_is_stored(store: PhronesisStore, value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        store.batch([PutOp(("n",), "good", {"v": 1}), PutOp(("n",), "bad", value)])
    assert store.search(()) == []


@pytest.mark.parametrize("namespace", [("a.b",), ("",), (), ("langgraph",)], ids=str)
def test_a_namespace_that_langgraph_does_not_take_is_refused(store: PhronesisStore, namespace: tuple[str, ...]) -> None:
    with pytest.raises(InvalidNamespaceError):
        store.put(namespace, "k", {"v": 1})


def test_a_label_with_a_period_is_refused_in_a_batch_too(store: PhronesisStore) -> None:
    with pytest.raises(InvalidNamespaceError):
        store.batch([GetOp(("a.b",), "k")])


def test_an_unknown_operator_is_refused(documents: PhronesisStore) -> None:
    with pytest.raises(ValueError, match="unknown operator"):
        documents.search((), filter={"text": {"$like": "b"}})


def test_a_time_to_live_is_refused(store: PhronesisStore) -> None:
    with pytest.raises(NotImplementedError):
        store.put(("n",), "k", {"v": 1}, ttl=5)


def test_what_phronesis_refuses_is_raised(store: PhronesisStore) -> None:
    with pytest.raises(BadRequest):
        store.put(("n",), "k", {"v": "a NUL: \x00"})
    assert not issubclass(BadRequest, NotFound)


def test_a_store_serves_one_event_loop_after_the_other(user: str) -> None:
    store = PhronesisStore(user_id=user)

    async def put_and_get(number: int) -> Item | None:
        await store.aput(("n",), "k", {"v": number})
        return await store.aget(("n",), "k")

    for number in range(2):
        found = asyncio.run(put_and_get(number))
        assert found is not None
        assert found.value == {"v": number}


async def test_the_calls_that_do_not_block_do_what_the_others_do(async_store: PhronesisStore) -> None:
    await async_store.aput(("ada",), "1", {"text": "She takes her coffee without milk"})
    found = await async_store.asearch(("ada",), query="coffee without milk")
    assert [(type(item), item.key) for item in found] == [(SearchItem, "1")]
    assert await async_store.alist_namespaces(prefix=("*",)) == [("ada",)]
    await async_store.adelete(("ada",), "1")
    assert await async_store.aget(("ada",), "1") is None
