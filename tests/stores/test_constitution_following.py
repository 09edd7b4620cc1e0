"""From a change of a constitutional node to its vector, its history and what is near to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import numpy as np
import pytest

from phronesis_contracts import Unavailable
from phronesis_contracts.constitution.maintenance import AskEmbeddings, EmbeddingRecord, EmbeddingState
from phronesis_contracts.constitution.registry import TYPES, Layer
from phronesis_contracts.orchestrator import Audited
from phronesis_contracts.service import AUDITED
from phronesis_memory.constitution.nodes import state_after_failure
from phronesis_memory.constitution.ports import NodeFilter, Pair
from phronesis_memory.constitution.queue import DueNode
from phronesis_postgres import EVERY_TENANT
from tests.support.bus import eventually
from tests.support.constitution_memory import Constitution, admin, open_constitution, unit
from tests.support.memory import calling
from tests.support.servers import PostgresServer, VectorServer

EVERY = NodeFilter(lifecycle=None)


@pytest.fixture
async def held(postgres: PostgresServer, weaviate: VectorServer | None) -> AsyncIterator[Constitution]:
    async with open_constitution(postgres, weaviate) as one:
        yield one


@pytest.fixture
def tenant() -> str:
    return f"t{uuid4().hex[:12]}"


async def record(held: Constitution, tenant: str, id: str) -> EmbeddingRecord | None:
    told = await held.parts.handlers.embeddings(calling(admin(tenant)), AskEmbeddings(ids=(id,)))
    return told.records[0] if told.records else None


async def state(held: Constitution, tenant: str, id: str) -> EmbeddingState | None:
    found = await record(held, tenant, id)
    return None if found is None else found.state


async def ids(held: Constitution, tenant: str, words: str, chosen: NodeFilter | None = None) -> list[str]:
    [vector] = await held.embedder.embed_queries([words])
    return [hit.id for hit in await held.parts.vectors.nearest(tenant, vector, chosen or NodeFilter(), 10) if hit.cosine > 0.5]


async def alarms(held: Constitution, tenant: str) -> list[Audited]:
    async with held.database.connection(EVERY_TENANT) as connection:
        rows = await connection.fetch("SELECT body FROM outbox WHERE subject = $1 ORDER BY id", AUDITED["memory"].on(tenant))
    return [found for row in rows if (found := Audited.model_validate_json(row["body"])).action == "drift.found"]


@pytest.mark.req("O-293", "O-294", "O-295", "O-306")
async def test_a_new_node_of_the_first_tiers_is_embedded_without_waiting_for_a_run(held: Constitution, tenant: str) -> None:
    for type in ("principle", "goal", "decision"):
        await held.hear(tenant, held.graph.put(tenant, type, type, f"kind harvest of {type}"))
        found = await record(held, tenant, type)
        assert found is not None
        assert found.text_hash is not None
        assert found == EmbeddingRecord(
            node_id=type, layer=TYPES[type].layer, type=type, state=EmbeddingState.CURRENT, model="words", dimension=384,
            text_hash=found.text_hash, tokens=found.tokens, updated_at=held.clock.at,
        )  # fmt: skip
    assert await ids(held, tenant, "principle kind harvest") != []


@pytest.mark.req("O-292", "O-344")
async def test_a_type_that_is_never_embedded_has_no_record_and_is_not_sent(held: Constitution, tenant: str) -> None:
    for type in ("human", "ai", "timeBlock", "workSession", "metric", "observation"):
        await held.hear(tenant, held.graph.put(tenant, type, type, "Secret name", summary="secret life"))
        assert await record(held, tenant, type) is None
    held.clock.forward(days=32)
    await held.tick()
    assert held.embedder.texts == []


@pytest.mark.req("O-296", "O-297", "O-318")
async def test_the_lower_tiers_wait_for_their_runs_which_embed_many_texts_at_once(held: Constitution, tenant: str) -> None:
    await held.tick()
    for n in range(5):
        await held.hear(tenant, held.graph.put(tenant, "task", f"task{n}", f"weed bed {n}"))
        await held.hear(tenant, held.graph.put(tenant, "note", f"note{n}", f"rain gauge {n}"))
    assert (held.embedder.calls, await state(held, tenant, "task0")) == (0, EmbeddingState.PENDING)
    held.clock.forward(hours=14)
    await held.tick()
    assert (held.embedder.calls, len(held.embedder.texts)) == (1, 5)
    assert (await state(held, tenant, "task4"), await state(held, tenant, "note0")) == ("current", "pending")
    held.clock.forward(days=4)
    await held.tick()
    assert (held.embedder.calls, len(held.embedder.texts)) == (2, 10)
    await held.tick()
    assert (held.embedder.calls, await state(held, tenant, "note4")) == (2, "current")


@pytest.mark.req("O-318")
async def test_a_run_that_nobody_was_there_for_is_made_up_for_once(held: Constitution, tenant: str) -> None:
    await held.tick()
    await held.hear(tenant, held.graph.put(tenant, "task", "a", "weed bed"))
    held.clock.forward(days=3, hours=5)
    await held.tick()
    assert (held.embedder.calls, await state(held, tenant, "a")) == (1, "current")
    told = {run.name: run for run in await held.parts.schedule.told()}
    assert (told["nightly"].last_at, told["nightly"].next_at) == (held.clock.at, datetime(2026, 1, 11, 2, tzinfo=UTC))


@pytest.mark.req("O-312", "O-314")
async def test_an_archived_node_is_not_found_any_more_and_costs_no_call(held: Constitution, tenant: str) -> None:
    await held.hear(tenant, held.graph.put(tenant, "goal", "a", "kind harvest"))
    await held.hear(tenant, held.graph.put(tenant, "goal", "a", "kind harvest", status="archived", metadata={"by": "ann"}))
    assert (held.embedder.calls, await ids(held, tenant, "goal kind harvest")) == (1, [])
    assert await ids(held, tenant, "goal kind harvest", EVERY) == ["a"]
    await held.hear(tenant, held.graph.put(tenant, "goal", "a", "kind harvest", status="active"))
    assert (held.embedder.calls, await ids(held, tenant, "goal kind harvest")) == (1, ["a"])


@pytest.mark.req("O-312", "O-315", "O-306", "O-421")
async def test_only_what_is_in_the_text_costs_a_call(held: Constitution, tenant: str) -> None:
    await held.hear(tenant, held.graph.put(tenant, "goal", "a", "kind harvest", summary="much  of it"))
    first = await record(held, tenant, "a")
    held.clock.forward(hours=1)
    await held.hear(tenant, held.graph.put(tenant, "goal", "a", "kind harvest", summary="much of it", outcome="good"))
    assert (held.embedder.calls, await record(held, tenant, "a")) == (1, first)
    await held.hear(tenant, held.graph.put(tenant, "goal", "a", "new orchard", summary="much of it"))
    second = await record(held, tenant, "a")
    assert first is not None
    assert second is not None
    assert (held.embedder.calls, second.updated_at, second.text_hash == first.text_hash) == (2, held.clock.at, False)
    assert await ids(held, tenant, "goal new orchard") == ["a"]


@pytest.mark.req("O-302")
async def test_a_node_without_words_is_skipped_and_one_that_loses_them_is_not_found(held: Constitution, tenant: str) -> None:
    await held.hear(tenant, held.graph.put(tenant, "value", "a", " "), held.graph.put(tenant, "value", "b", "kind harvest"))
    assert (await state(held, tenant, "a"), len(held.embedder.texts)) == (EmbeddingState.SKIPPED, 1)
    await held.hear(tenant, held.graph.put(tenant, "value", "b", " "))
    found = await record(held, tenant, "b")
    assert found is not None
    assert (found.state, found.dimension) == (EmbeddingState.SKIPPED, None)
    assert await ids(held, tenant, "value kind harvest", EVERY) == []


@pytest.mark.req("O-316")
async def test_a_deleted_node_leaves_neither_record_nor_vector_nor_what_it_said(held: Constitution, tenant: str) -> None:
    await held.hear(tenant, held.graph.put(tenant, "value", "a", "kind harvest"))
    await held.hear(tenant, held.graph.drop(tenant, "a"))
    assert await record(held, tenant, "a") is None
    assert await ids(held, tenant, "value kind harvest", EVERY) == []
    history = await held.parts.history.versions(tenant, "a", 10)
    assert [(one.version, one.operation, one.actor, dict(one.fields)) for one in history] == [
        (1, "create", "ann", {}),
        (2, "delete", "ann", {}),
    ]


@pytest.mark.req("O-317")
async def test_repeats_and_older_news_change_nothing(held: Constitution, tenant: str) -> None:
    first = held.graph.put(tenant, "goal", "a", "kind harvest")
    await held.hear(tenant, first)
    second = held.graph.put(tenant, "goal", "a", "new orchard")
    await held.hear(tenant, second, second, first, second)
    assert (held.embedder.calls, await ids(held, tenant, "goal new orchard")) == (2, ["a"])
    assert [one.version for one in await held.parts.history.versions(tenant, "a", 10)] == [1, 2]


@pytest.mark.req("O-317")
async def test_news_that_was_read_late_does_not_bring_the_old_text_back(held: Constitution, tenant: str) -> None:
    held.graph.put(tenant, "goal", "a", "kind harvest")
    old = held.graph.nodes[tenant, "a"]
    await held.hear(tenant, held.graph.put(tenant, "goal", "a", "new orchard"))
    await held.parts.following.keep(tenant, [old])
    await held.embed()
    assert await ids(held, tenant, "goal new orchard") == ["a"]


async def test_a_node_that_is_made_again_with_its_id_is_found_whatever_comes_first(held: Constitution, tenant: str) -> None:
    await held.hear(tenant, held.graph.put(tenant, "goal", "a", "kind harvest"), held.graph.put(tenant, "goal", "a", "more"))
    gone = held.graph.drop(tenant, "a")
    held.clock.forward(seconds=1)
    again = held.graph.put(tenant, "goal", "a", "new orchard")
    await held.hear(tenant, again, gone)
    assert await ids(held, tenant, "goal new orchard") == ["a"]
    assert await state(held, tenant, "a") == EmbeddingState.CURRENT


@pytest.mark.req("O-309", "O-310", "O-114")
async def test_an_embedder_that_fails_twice_is_asked_a_third_time(
    held: Constitution, tenant: str, caplog: pytest.LogCaptureFixture
) -> None:
    held.embedder.failures = [Unavailable("down"), Unavailable("down")]
    await held.hear(tenant, held.graph.put(tenant, "goal", "a", "kind harvest"))
    assert (held.embedder.calls, await state(held, tenant, "a")) == (1, "pending")
    assert "node a could not be embedded: unavailable" in caplog.text
    for _ in range(3):
        held.clock.forward(seconds=6)
        await held.embed()
    found = await record(held, tenant, "a")
    assert found is not None
    assert (held.embedder.calls, found.state, found.problem) == (3, "current", None)


@pytest.mark.req("O-309", "O-310", "O-311", "O-355")
async def test_after_four_attempts_a_node_has_failed_until_the_sweep_finds_the_embedder_well(
    held: Constitution, tenant: str
) -> None:
    held.embedder.down = True
    await held.hear(tenant, held.graph.put(tenant, "goal", "a", "kind harvest"))
    for _ in range(3):
        held.clock.forward(seconds=6)
        await held.embed()
    found = await record(held, tenant, "a")
    assert found is not None
    assert (held.embedder.calls, found.state, found.problem) == (4, "failed", "unavailable")
    held.embedder.down = False
    held.clock.forward(seconds=61)
    await held.embed()
    told = await held.parts.handlers.embeddings(calling(admin(tenant)), AskEmbeddings())
    assert (await state(held, tenant, "a"), told.backlog) == ("current", 0)


@pytest.mark.req("O-309", "C-81")
async def test_a_text_that_is_refused_fails_at_once_and_takes_no_other_with_it(held: Constitution, tenant: str) -> None:
    held.embedder.refused = "poison"
    news = [held.graph.put(tenant, "goal", id, f"kind {id}") for id in ("apple", "poison", "quince")]
    for event in news:
        await held.parts.following.follow(tenant, event)
    await held.embed()
    assert [await state(held, tenant, id) for id in ("apple", "poison", "quince")] == ["current", "failed", "current"]
    assert held.embedder.calls == 4


@pytest.mark.req("O-309")
async def test_a_key_that_is_refused_is_not_tried_for_every_text(held: Constitution, tenant: str) -> None:
    held.embedder.refused = "kind"
    for n in range(20):
        await held.parts.following.follow(tenant, held.graph.put(tenant, "goal", f"g{n:02}", f"kind {n}"))
    await held.embed()
    found = await record(held, tenant, "g19")
    assert found is not None
    assert (held.embedder.calls, found.state, found.problem) == (4, "failed", "memory.embedding_refused")


@pytest.mark.req("O-090", "O-360")
@pytest.mark.parametrize("wrong", [np.zeros(384, np.float32), np.full(384, np.nan, np.float32), np.ones(1_536, np.float32)])
async def test_a_vector_that_cannot_be_searched_by_is_refused_and_the_one_before_stays(
    held: Constitution, tenant: str, wrong: np.ndarray, caplog: pytest.LogCaptureFixture
) -> None:
    await held.hear(tenant, held.graph.put(tenant, "goal", "a", "kind harvest"))
    held.embedder.set = {"orchard": wrong}
    await held.hear(tenant, held.graph.put(tenant, "goal", "a", "orchard"), held.graph.put(tenant, "goal", "b", "orchard"))
    found = await record(held, tenant, "a")
    assert found is not None
    assert (found.state, found.problem, found.dimension) == ("failed", "memory.vector_refused", 384)
    assert "node b could not be embedded: memory.vector_refused" in caplog.text
    assert await ids(held, tenant, "goal kind harvest", EVERY) == ["a"]


@pytest.mark.req("O-387", "C-93")
async def test_three_edits_leave_three_versions_with_times_and_changed_fields(held: Constitution, tenant: str) -> None:
    await held.hear(tenant, held.graph.put(tenant, "value", "a", "Candour", statement="We say what is so."))
    held.clock.forward(days=1)
    await held.hear(tenant, held.graph.put(tenant, "value", "a", "Candour", statement="We say what is so, kindly."))
    held.clock.forward(days=1)
    await held.hear(tenant, held.graph.put(tenant, "value", "a", "Kind candour", statement=None, status="archived"))
    history = await held.parts.history.versions(tenant, "a", 10)
    assert [(one.version, one.operation, one.at.day, one.actor) for one in history] == [
        (1, "create", 7, "ann"),
        (2, "update", 8, "ann"),
        (3, "update", 9, "ann"),
    ]
    assert [dict(one.fields) for one in history] == [
        {
            "title": {"old": None, "new": "Candour"},
            "statement": {"old": None, "new": "We say what is so."},
            "status": {"old": None, "new": "active"},
        },
        {"statement": {"old": "We say what is so.", "new": "We say what is so, kindly."}},
        {
            "title": {"old": "Candour", "new": "Kind candour"},
            "statement": {"old": "We say what is so, kindly.", "new": None},
            "status": {"old": "active", "new": "archived"},
        },
    ]


@pytest.mark.req("O-387")
async def test_a_version_that_was_passed_before_it_was_read_is_there_without_values(held: Constitution, tenant: str) -> None:
    first = held.graph.put(tenant, "human", "a", "Ann")
    second = held.graph.put(tenant, "human", "a", "Ann B", summary="S")
    third = held.graph.put(tenant, "human", "a", "Ann B", summary="S2")
    await held.hear(tenant, third, first, second)
    history = await held.parts.history.versions(tenant, "a", 10)
    assert [(one.version, one.changed, sorted(one.fields)) for one in history] == [
        (1, ("title",), []),
        (2, ("title", "summary"), []),
        (3, ("title", "summary"), ["status", "summary", "title"]),
    ]


@pytest.mark.req("O-320", "O-390")
async def test_a_node_that_moved_by_more_than_a_tenth_is_told_once(held: Constitution, tenant: str) -> None:
    held.embedder.set = {"first": unit(p0=1.0), "second": unit(p0=0.91), "third": unit(p1=1.0)}
    await held.hear(tenant, held.graph.put(tenant, "value", "a", "first"))
    second = held.graph.put(tenant, "value", "a", "second")
    await held.hear(tenant, second, second)
    assert await alarms(held, tenant) == []
    third = held.graph.put(tenant, "value", "a", "third")
    await held.hear(tenant, third, third)
    [alarm] = await alarms(held, tenant)
    assert alarm == Audited(
        who="memory",
        role="service",
        action="drift.found",
        outcome="done",
        arguments={"id": "a", "type": "value", "version": 3, "drift": pytest.approx(1.0, abs=0.01)},
    )
    assert [
        None if one.drift is None else round(one.drift, 2) for one in await held.parts.history.versions(tenant, "a", 9)
    ] == [
        None,
        0.09,
        1.0,
    ]
    drifted = await held.parts.history.drifted(tenant, None, frozenset({Layer.FOUNDATION}), 0.1)
    assert [(one.node_id, one.version) for one in drifted] == [("a", 3)]


@pytest.mark.req("O-319", "O-320")
@pytest.mark.parametrize(("cosine", "told"), [(0.89, True), (0.91, False)])
async def test_the_weekly_look_finds_vectors_that_drifted(held: Constitution, tenant: str, cosine: float, told: bool) -> None:
    held.embedder.set = {"first": unit(p0=1.0)}
    await held.tick()
    await held.hear(tenant, held.graph.put(tenant, "value", "a", "first"))
    held.embedder.set = {"first": unit(p0=cosine)}
    held.clock.forward(days=4)
    await held.tick()
    assert (held.embedder.calls, len(await alarms(held, tenant))) == (2, int(told))
    held.clock.forward(days=7)
    await held.tick()
    assert (held.embedder.calls, len(await alarms(held, tenant))) == (3, int(told))


@pytest.mark.req("O-413")
async def test_near_duplicates_of_one_type_are_flagged_as_long_as_they_are(held: Constitution, tenant: str) -> None:
    held.embedder.set = {"one": unit(p0=1.0), "two": unit(p0=0.95), "other": unit(p0=0.96), "away": unit(p1=1.0)}
    await held.hear(
        tenant,
        held.graph.put(tenant, "goal", "b", "one"),
        held.graph.put(tenant, "goal", "a", "two"),
        held.graph.put(tenant, "vision", "c", "other"),
    )
    [pair] = await held.parts.history.pairs(tenant, 0.9, frozenset(), 10)
    assert pair == Pair("a", "b", "goal", Layer.VISION, pair.cosine)
    assert pair.cosine == pytest.approx(0.95, abs=2e-3)
    await held.hear(tenant, held.graph.put(tenant, "goal", "b", "away"))
    assert await held.parts.history.pairs(tenant, 0.9, frozenset(), 10) == []


@pytest.mark.req("O-361")
async def test_a_layer_says_that_it_is_being_filled(held: Constitution, tenant: str) -> None:
    await held.parts.following.follow(tenant, held.graph.put(tenant, "goal", "a", "kind harvest"))
    await held.parts.following.follow(tenant, held.graph.put(tenant, "task", "b", "weed bed"))
    assert await held.parts.vectors.populating(tenant) == {Layer.VISION}
    await held.embed()
    assert await held.parts.vectors.populating(tenant) == frozenset()
    states = {one.layer: (one.vectors, one.waiting) for one in await held.parts.vectors.state(tenant)}
    assert (states[Layer.VISION], states[Layer.EXECUTION]) == ((1, 0), (0, 1))


@pytest.mark.req("O-308")
async def test_strong_consistency_finds_a_write_whose_news_has_not_come(held: Constitution, tenant: str) -> None:
    held.graph.put(tenant, "goal", "a", "kind harvest")
    async with held.running():
        await held.parts.vectors.settled(tenant)
        assert await ids(held, tenant, "goal kind harvest") == ["a"]
        held.clock.forward(minutes=5)
        held.graph.put(tenant, "goal", "a", "new orchard")
        await held.parts.vectors.settled(tenant)
        assert await ids(held, tenant, "goal new orchard") == ["a"]


@pytest.mark.verify
async def test_strong_consistency_says_when_it_cannot_be_had(held: Constitution, tenant: str) -> None:
    held.graph.put(tenant, "goal", "a", "kind harvest")
    held.embedder.down = True
    async with held.running():
        with pytest.raises(Unavailable):
            await held.parts.vectors.settled(tenant)


@pytest.mark.verify
async def test_a_change_that_is_not_found_yet_is_told_as_such_until_it_is(held: Constitution, tenant: str) -> None:
    held.graph.put(tenant, "goal", "a", "kind harvest")
    held.embedder.down = True
    async with held.running():
        assert [await held.parts.vectors.caught_up(tenant) for _ in range(2)] == [None, None]
        held.embedder.down = False
        held.clock.forward(minutes=5)
        await eventually(lambda: _is_told(held, tenant))
        assert await ids(held, tenant, "goal kind harvest") == ["a"]


@pytest.mark.req("O-339", "O-355", "O-359")
async def test_what_was_taken_by_a_process_that_died_is_embedded_by_another(held: Constitution, tenant: str) -> None:
    await held.parts.following.follow(tenant, held.graph.put(tenant, "goal", "a", "kind harvest"))
    assert len(await held.parts.queue.take(held.clock.at, 10)) == 1
    assert await held.embed() == 0
    held.clock.at += timedelta(seconds=121)
    async with held.running():
        await eventually(lambda: _current(held, tenant, "a"))


@pytest.mark.req("O-355")
async def test_an_order_outlives_an_attempt_that_was_under_way_and_failed(held: Constitution, tenant: str) -> None:
    await held.parts.following.follow(tenant, held.graph.put(tenant, "goal", "a", "kind harvest"))
    [taken] = await held.parts.queue.take(held.clock.at, 10)
    await held.parts.following.refresh(tenant, ["a"], at_once=True, force=True)
    await held.parts.queue.fail(taken, state_after_failure(taken.attempts, "unavailable", held.clock.at, for_good=True))
    assert await held.embed() == 1
    assert await state(held, tenant, "a") is EmbeddingState.CURRENT


@pytest.mark.req("O-308")
async def test_strong_consistency_waits_for_what_is_embedded_and_not_in_the_index_yet(held: Constitution, tenant: str) -> None:
    await held.parts.following.follow(tenant, held.graph.put(tenant, "goal", "a", "kind harvest"))
    taken = await held.parts.queue.take(held.clock.at, 10)
    vectors = await held.embedder.embed_texts([due.body for due in taken])
    assert await held.parts.queue.store(tenant, list(zip(taken, vectors, strict=True)), held.clock.at) == ["a"]
    await held.parts.vectors.settled(tenant)
    assert await ids(held, tenant, "goal kind harvest") == ["a"]


@pytest.mark.req("O-339", "O-308")
async def test_news_read_while_a_node_is_taken_does_not_have_it_embedded_again(held: Constitution, tenant: str) -> None:
    await held.parts.following.follow(tenant, held.graph.put(tenant, "goal", "a", "kind harvest"))
    leased = held.clock.at + timedelta(seconds=120)
    async with held.database.transaction(tenant) as taking:
        await taking.execute("UPDATE constitution_nodes SET due = $2 WHERE tenant = $1", tenant, leased)
        following = asyncio.create_task(held.parts.following.refresh(tenant, ["a"]))
        await eventually(lambda: _waits(held))
    await following
    assert await held.parts.queue.take(held.clock.at, 10) == []


async def _waits(held: Constitution) -> bool:
    """Whether somebody waits for a lock on a node."""
    waiting = """
        SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%constitution_nodes%'"""
    async with held.database.connection(EVERY_TENANT) as connection:
        return bool(await connection.fetchval(waiting))


async def _current(held: Constitution, tenant: str, id: str) -> bool:
    return await state(held, tenant, id) is EmbeddingState.CURRENT


async def _is_told(held: Constitution, tenant: str) -> bool:
    return await held.parts.vectors.caught_up(tenant) is not None


async def test_what_is_taken_as_memory_stops_is_due_for_whoever_comes_next(
    held: Constitution, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await held.parts.following.follow(tenant, held.graph.put(tenant, "goal", "a", "kind harvest"))
    taken, go, take = asyncio.Event(), asyncio.Event(), held.parts.queue.take

    async def slowly(now: datetime, most: int) -> list[DueNode]:
        rows = await take(now, most)
        taken.set()
        await go.wait()
        return rows

    with monkeypatch.context() as patched:
        patched.setattr(held.parts.queue, "take", slowly)
        stepping = asyncio.create_task(held.parts.embedding.step())
        await taken.wait()
        stepping.cancel()
        await asyncio.wait([stepping], timeout=0)
        go.set()
        await asyncio.gather(stepping, return_exceptions=True)
    assert stepping.cancelled()
    assert (await held.embed(), await state(held, tenant, "a")) == (1, EmbeddingState.CURRENT)


async def test_memory_stops_where_what_it_has_taken_cannot_be_given_back(
    held: Constitution, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(taken: Sequence[DueNode], when: datetime) -> None:
        raise Unavailable("the database is away")

    monkeypatch.setattr(held.parts.queue, "give_back", away)
    await held.parts.following.follow(tenant, held.graph.put(tenant, "goal", "a", "kind harvest"))
    held.embedder.open.clear()
    async with held.running():
        await held.embedder.begun.wait()
        stopping = asyncio.create_task(held.parts.embedding.stop())
        stopped, _ = await asyncio.wait([stopping], timeout=5)
        assert stopped == {stopping}
