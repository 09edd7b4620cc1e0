"""The log of retrievals, ratings, and the defaults that a tenant may change."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

import pytest

from phronesis_contracts import BadRequest
from phronesis_contracts.constitution.search import (
    TUNABLE,
    EmbeddingUnavailable,
    HybridSearch,
    NoSuchRetrieval,
    RateRetrieval,
    RetrievalRated,
    SemanticSearch,
    TuneRetrieval,
)
from phronesis_memory.constitution import retrievals as log_module
from phronesis_memory.constitution.retrievals import MAX_WAITING, Retrieval, RetrievalLog, describe_defaults
from tests.support.bus import eventually
from tests.support.personas import Persona
from tests.unit.memory.fakes_constitution import Ground, calling, flushed
from tests.unit.memory.fakes_retrievals import KeptRetrievals


def row(id: str, **more: object) -> Retrieval:
    fields = {"tenant": "acme", "tool": "t", "actor": "ann", "question": "why", "arguments": {}, "milliseconds": 1.0}
    return Retrieval(**({"id": id, "outcome": "ok"} | fields | more))  # type: ignore[arg-type]


@pytest.mark.req("O-364", "O-335", "O-404")
async def test_each_call_is_a_row_with_its_figures() -> None:
    ground = Ground()
    ground.add("a", "value", 0.9)
    ground.add("b", "insight", 0.8)
    ground.add("c", "note", 0.7)
    found = await ground.searching.semantic_search(calling(), SemanticSearch(query="why"))
    [logged] = await flushed(ground)
    assert (logged.id, logged.tool, logged.actor, logged.outcome) == (found.retrieval_id, "semantic.search.v1", "ann", "ok")
    assert (logged.nodes, logged.tokens, logged.cached) == (3, found.stats.token_estimate, False)
    assert logged.layers == {"foundation": 1, "mind": 2}
    assert logged.milliseconds > 0
    assert "query" not in logged.arguments
    assert logged.question_hash == hashlib.sha256(b"why").hexdigest()


@pytest.mark.req("O-364")
async def test_a_call_that_fails_is_a_row_too() -> None:
    ground = Ground()
    ground.embedder.down = True
    with pytest.raises(EmbeddingUnavailable):
        await ground.searching.semantic_search(calling(), SemanticSearch(query="why"))
    assert [(logged.outcome, logged.nodes) for logged in await flushed(ground)] == [("memory.embedding_unavailable", 0)]


async def test_rows_are_written_behind_the_answers_in_batches() -> None:
    kept = KeptRetrievals()
    log = RetrievalLog(kept, 30)
    for number in range(1_200):
        log.add(row(str(number)))
    assert kept.appended == 0
    await log.flush()
    assert (kept.appended, len(kept.rows)) == (3, 1_200)


async def test_what_the_store_does_not_take_waits_and_is_bounded() -> None:
    kept = KeptRetrievals(down=True)
    log = RetrievalLog(kept, 30)
    for number in range(MAX_WAITING + 5):
        log.add(row(str(number)))
    await log.flush()
    assert kept.rows == {}
    kept.down = False
    await log.flush()
    assert (len(kept.rows), "4" in kept.rows, "5" in kept.rows) == (MAX_WAITING, False, True)


async def test_a_row_that_the_store_can_never_take_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = KeptRetrievals()
    log = RetrievalLog(kept, 30)

    async def broken(_: object) -> None:
        raise ValueError("not this one")

    with monkeypatch.context() as patched:
        patched.setattr(kept, "append", broken)
        log.add(row("bad"))
        await log.flush()
    log.add(row("good"))
    await log.flush()
    assert list(kept.rows) == ["good"]


@pytest.mark.parametrize("wrong", [{"query": "a\0b"}, {"anchorNodeId": "\0"}, {"topic": "t\0"}])
async def test_what_no_store_takes_is_refused(wrong: dict[str, str]) -> None:
    ground = Ground()
    with pytest.raises(BadRequest, match="NUL"):
        await ground.searching.hybrid_search(calling(), HybridSearch.model_validate({"query": "x"} | wrong))
    assert await flushed(ground) == []


@pytest.mark.req("O-352")
async def test_rows_go_when_their_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "_EVERY", 0.001)
    now = datetime.now(UTC)
    kept = KeptRetrievals({one.id: one for one in (row("old", at=now - timedelta(days=8)), row("new", at=now))})
    log = RetrievalLog(kept, 7)
    log.start()
    await eventually(lambda: list(kept.rows) == ["new"])
    log.add(row("last"))
    await log.stop()
    assert list(kept.rows) == ["new", "last"]


@pytest.mark.req("O-365", "O-417")
async def test_a_rating_is_linked_to_a_retrieval_at_once() -> None:
    ground = Ground()
    ground.add("a", "value", 0.9)
    found = await ground.searching.semantic_search(calling(), SemanticSearch(query="why"))
    rated = RateRetrieval(retrieval_id=found.retrieval_id, relevant=True)
    assert await ground.searching.rate_retrieval(calling(), rated) == RetrievalRated(satisfaction=1.0, ratings=1)
    other = RateRetrieval(retrieval_id=found.retrieval_id, relevant=False, node_id="a")
    assert await ground.searching.rate_retrieval(calling(), other) == RetrievalRated(satisfaction=0.5, ratings=2)


@pytest.mark.req("O-365")
async def test_a_retrieval_that_there_is_not_cannot_be_rated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("phronesis_memory.constitution.search_handlers._PAUSE", 0.001)
    with pytest.raises(NoSuchRetrieval):
        await Ground().searching.rate_retrieval(calling(), RateRetrieval(retrieval_id="none", relevant=True))


@pytest.mark.req("O-366", "O-406")
async def test_a_changed_default_is_used_by_the_next_search() -> None:
    ground = Ground()
    ground.add("goal", "goal")
    ground.add("linked", "strategy", 0.5)
    ground.link(("linked", "SERVES", "goal"))
    asked = HybridSearch(query="x", anchor_node_id="goal")
    await ground.searching.tune_retrieval(
        calling(Persona.ADMIN), TuneRetrieval(values={"hybrid.structuralWeight": 1.0, "hybrid.semanticWeight": 0.0})
    )
    assert (await ground.searching.hybrid_search(calling(), asked)).results[0].final_score == 1.0
    given = asked.model_copy(update={"structural_weight": 0.5, "semantic_weight": 0.5})
    assert (await ground.searching.hybrid_search(calling(), given)).results[0].final_score == pytest.approx(0.75)


@pytest.mark.req("O-366")
async def test_defaults_are_told_with_those_that_were_changed() -> None:
    assert describe_defaults({}).values == TUNABLE
    changed = describe_defaults({"goal.minSimilarity": 0.5})
    assert (changed.values, changed.changed) == (TUNABLE | {"goal.minSimilarity": 0.5}, ("goal.minSimilarity",))


@pytest.mark.req("O-366")
@pytest.mark.parametrize("wrong", [{"semantic.floor": 0.5}, {"semantic.minSimilarity": 1.5}, {"goal.minSimilarity": -0.1}])
async def test_what_is_no_default_cannot_become_one(wrong: dict[str, float | None]) -> None:
    with pytest.raises(BadRequest):
        await Ground().searching.tune_retrieval(calling(Persona.ADMIN), TuneRetrieval(values=wrong))


async def test_weights_cannot_both_become_zero() -> None:
    with pytest.raises(BadRequest):
        describe_defaults({"hybrid.structuralWeight": 0.0, "hybrid.semanticWeight": 0.0})


async def test_a_search_goes_on_with_the_shipped_defaults_where_the_store_is_down() -> None:
    ground = Ground()
    ground.add("a", "value", 0.41)
    ground.kept.down = True
    assert len((await ground.searching.semantic_search(calling(), SemanticSearch(query="x"))).results) == 1
