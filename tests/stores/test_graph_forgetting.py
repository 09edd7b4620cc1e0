"""Forgotten knowledge items leave the graph with their links, and late news does not bring them back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from phronesis_contracts import Principal
from phronesis_contracts.deletions import Purged
from phronesis_contracts.memory import ItemsForgotten
from phronesis_contracts.twin import GRAPH_PURGED
from tests.support.bus import somebody
from tests.support.graph import Stores, opened, stored
from tests.support.servers import GraphServer


@pytest.fixture(scope="module")
async def stores(graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stores]:
    async with opened(graph_server, tmp_path_factory.mktemp("forgetting")) as found:
        yield found


async def forget(stores: Stores, who: Principal, *ids: str, **more: Any) -> None:
    await stores.knowledge.forget(who.tenant, ItemsForgotten(owner=who.user, ids=ids, **more))


async def hops(stores: Stores, who: Principal, *ids: str) -> dict[str, int]:
    return {item.id: item.hop for item in await stores.expand(who, *ids)}


async def keys(stores: Stores, who: Principal) -> list[str]:
    """Ids of all that any node of the graph says of this user's items, its grave-stones aside."""
    found: list[str] = []
    for label in ("MemoryUnit", "Concept"):
        rows = await stores.run(f"MATCH (n:{label}) WHERE n.tenant = $tenant RETURN n.id AS id", tenant=who.tenant)
        found += [row["id"] for row in rows]
    prefix = f"{who.tenant}/"
    rows = await stores.run("MATCH (w:PlatformLink) WHERE w.source STARTS WITH $prefix RETURN w.target AS id", prefix=prefix)
    return sorted(found + [row["id"] for row in rows])


async def reports(stores: Stores, who: Principal) -> list[Purged]:
    rows = await stores.run(
        "MATCH (n:PlatformNews) WHERE n.subject = $subject RETURN n.body AS body ORDER BY n.key",
        subject=GRAPH_PURGED.on(who.tenant),
    )
    return [Purged.model_validate_json(row["body"]) for row in rows]


async def test_forgotten_items_leave_with_their_links_and_those_that_wait(stores: Stores) -> None:
    who = somebody()
    await stores.knowledge.store(who.tenant, stored(who.user, "a", "b", "c", links=("a>b", "b>c", "b>later")))
    await forget(stores, who, "b")
    assert await keys(stores, who) == ["a", "c"]
    assert await hops(stores, who, "a", "c") == {"a": 0, "c": 0}


async def test_a_forgotten_item_is_not_brought_back_by_late_news_and_nothing_links_to_it(stores: Stores) -> None:
    who = somebody()
    await forget(stores, who, "b")
    await stores.knowledge.store(who.tenant, stored(who.user, "a", "b", "c", links=("a>b", "b>c", "a>c"), version=9))
    assert await keys(stores, who) == ["a", "c"]
    assert await hops(stores, who, "a") == {"a": 0, "c": 1}


@pytest.mark.req("D-143")
async def test_another_owners_item_of_the_same_id_stays(stores: Stores) -> None:
    ann = somebody()
    bob = somebody(tenant=ann.tenant)
    for who in (ann, bob):
        await stores.knowledge.store(who.tenant, stored(who.user, "a"))
    await forget(stores, ann, "a")
    assert await keys(stores, ann) == ["a"]


async def test_a_deletion_hears_what_was_removed_part_by_part(stores: Stores) -> None:
    who, deletion = somebody(), str(uuid4())
    await stores.knowledge.store(who.tenant, stored(who.user, "a", "b", links=("a>b",)))
    await forget(stores, who, "a", "b", "unknown", deletion_id=deletion, part=1, parts=2)
    await forget(stores, who, deletion_id=deletion, part=2, parts=2)
    assert await reports(stores, who) == [
        Purged(deletion_id=deletion, removed={"items": 2, "links": 1}, part=1, parts=2),
        Purged(deletion_id=deletion, removed={"items": 0, "links": 0}, part=2, parts=2),
    ]


async def test_a_wish_to_forget_reports_to_nobody(stores: Stores) -> None:
    who = somebody()
    await stores.knowledge.store(who.tenant, stored(who.user, "a"))
    await forget(stores, who, "a")
    assert (await keys(stores, who), await reports(stores, who)) == ([], [])


async def test_nothing_is_left_of_the_items_of_an_erased_user_and_all_of_others(stores: Stores) -> None:
    ann = somebody()
    bob = somebody(tenant=ann.tenant)
    longer = ann.model_copy(update={"user": f"{ann.user}-x"})
    for who in (ann, bob, longer):
        await stores.knowledge.store(who.tenant, stored(who.user, "a", "b", "c", links=("a>b", "b>later")))
    await forget(stores, ann, "c")
    assert await stores.knowledge.held(ann.tenant, ann.user) == ({"items": 2, "waiting_links": 1}, 1)
    assert await stores.knowledge.erase(ann.tenant, ann.user) == {"items": 2, "waiting_links": 1}
    assert await stores.knowledge.held(ann.tenant, ann.user) == ({"items": 0, "waiting_links": 0}, 1)
    assert await stores.knowledge.erase(ann.tenant, ann.user) == {"items": 0, "waiting_links": 0}
    for who in (bob, longer):
        assert await stores.knowledge.held(who.tenant, who.user) == ({"items": 3, "waiting_links": 1}, 0)
        assert await hops(stores, who, "a", "b") == {"a": 0, "b": 0}
