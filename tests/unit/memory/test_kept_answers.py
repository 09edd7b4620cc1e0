"""Answers that are kept: for whom, for how long, and what ends them."""

from __future__ import annotations

import pytest

from phronesis_bus import News
from phronesis_contracts import Principal
from phronesis_contracts.constitution.search import SearchStats, SemanticFound, SemanticSearch, TuneRetrieval
from phronesis_contracts.constitution.writes import ConstitutionChanged
from phronesis_memory.constitution.retrievals import ANSWER_SECONDS, MAX_ANSWERS, SETTLE_SECONDS, AnswerCache
from tests.support.personas import Persona
from tests.unit.memory.fakes_constitution import Ground, calling, flushed, ids

ANN = Principal(tenant="acme", user="ann", **Persona.DISCUSS.rights)
ANSWER = SemanticFound(results=(), stats=SearchStats())


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.req("O-326", "O-379")
async def test_the_same_question_is_answered_from_what_is_kept() -> None:
    ground = Ground()
    ground.add("a", "value", 0.9)
    first = await ground.searching.semantic_search(calling(), SemanticSearch(query="x"))
    second = await ground.searching.semantic_search(calling(user="bob"), SemanticSearch(query="x"))
    assert (first.cached, second.cached) == (False, True)
    assert second.results == first.results
    assert first.retrieval_id != second.retrieval_id
    assert [row.cached for row in await flushed(ground)] == [False, True]


@pytest.mark.req("O-326")
async def test_another_question_is_searched_anew() -> None:
    ground = Ground()
    ground.add("a", "value", 0.9)
    await ground.searching.semantic_search(calling(), SemanticSearch(query="x"))
    for other in (SemanticSearch(query="y"), SemanticSearch(query="x", top_k=3), SemanticSearch(query="x", min_similarity=0.1)):
        assert not (await ground.searching.semantic_search(calling(), other)).cached


@pytest.mark.req("O-324")
async def test_nobody_of_other_rights_or_of_another_tenant_gets_it() -> None:
    ground = Ground()
    ground.add("a", "value", 0.9)
    await ground.searching.semantic_search(calling(Persona.DISCUSS), SemanticSearch(query="x"))
    for other in (calling(Persona.MIND), calling(tenant="other")):
        assert not (await ground.searching.semantic_search(other, SemanticSearch(query="x"))).cached


@pytest.mark.req("O-326")
async def test_a_write_of_the_tenant_ends_what_is_kept() -> None:
    ground = Ground()
    ground.add("a", "value", 0.9)
    await ground.searching.semantic_search(calling(), SemanticSearch(query="x"))
    ground.add("b", "value", 0.95)
    await ground.searching.on_constitution_changed(News("other", "n1", 1), ConstitutionChanged())
    assert (await ground.searching.semantic_search(calling(), SemanticSearch(query="x"))).cached
    await ground.searching.on_constitution_changed(News("acme", "n2", 1), ConstitutionChanged())
    found = await ground.searching.semantic_search(calling(), SemanticSearch(query="x"))
    assert (found.cached, ids(found.results)) == (False, ["b", "a"])


async def test_an_answer_that_may_lack_what_was_written_just_before_says_so_and_is_not_kept() -> None:
    ground = Ground()
    ground.add("a", "value", 0.9)
    ground.vectors.late = True
    late = [await ground.searching.semantic_search(calling(), SemanticSearch(query="x")) for _ in range(2)]
    ground.vectors.late = False
    after = await ground.searching.semantic_search(calling(), SemanticSearch(query="x"))
    said = "the index is being filled with what was written just before: results may be missing"
    assert [(one.warnings, one.cached) for one in [*late, after]] == [((said,), False), ((said,), False), ((), False)]


async def test_an_answer_that_was_begun_before_a_write_is_not_kept() -> None:
    answers = AnswerCache(Clock())
    place = answers.place(ANN, "t", "x")
    answers.drop("acme")
    answers.keep(place, ANSWER)
    assert answers.find(place) is None


async def test_nothing_is_kept_while_a_write_may_be_on_its_way_to_the_index() -> None:
    clock = Clock()
    answers = AnswerCache(clock)
    answers.drop("acme")
    for seconds, kept in ((SETTLE_SECONDS - 1, None), (2, ANSWER)):
        clock.now += seconds
        place = answers.place(ANN, "t", "x")
        answers.keep(place, ANSWER)
        assert answers.find(place) == kept


async def test_an_answer_is_kept_a_quarter_of_an_hour() -> None:
    clock = Clock()
    answers = AnswerCache(clock)
    place = answers.place(ANN, "t", "x")
    answers.keep(place, ANSWER)
    clock.now += ANSWER_SECONDS - 1
    assert answers.find(place) == ANSWER
    clock.now += 1
    assert answers.find(place) is None


async def test_the_answers_unused_for_longest_go_first() -> None:
    answers = AnswerCache(Clock())
    places = [answers.place(ANN, "t", str(number)) for number in range(MAX_ANSWERS + 1)]
    for place in places[:MAX_ANSWERS]:
        answers.keep(place, ANSWER)
    answers.find(places[0])
    answers.keep(places[MAX_ANSWERS], ANSWER)
    assert [answers.find(place) for place in (places[0], places[1], places[MAX_ANSWERS])] == [ANSWER, None, ANSWER]


@pytest.mark.req("O-366")
async def test_changed_defaults_end_what_is_kept() -> None:
    ground = Ground()
    ground.add("a", "value", 0.5)
    assert len((await ground.searching.semantic_search(calling(), SemanticSearch(query="x"))).results) == 1
    await ground.searching.tune_retrieval(calling(Persona.ADMIN), TuneRetrieval(values={"semantic.minSimilarity": 0.6}))
    assert (await ground.searching.semantic_search(calling(), SemanticSearch(query="x"))).results == ()
