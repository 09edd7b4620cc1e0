"""The labelled set of bench/quality, and the figures that are made of ranks."""

from __future__ import annotations

from collections import defaultdict

import pytest

from bench.quality import routine
from bench.quality.corpus import Corpus
from bench.quality.labels import LOW, Question, overlap, questions, rows
from bench.quality.metrics import Figures, figures, percentiles, rank

TEST, DEV = questions("test"), questions("dev")


@pytest.fixture(scope="module")
def said() -> dict[str, list[str]]:
    """What the items of each external id say."""
    found: dict[str, list[str]] = defaultdict(list)
    for draft in Corpus().drafts():
        found[draft.external_id or ""].append(draft.whole)
    return found


def _subjects(some: list[Question]) -> set[str]:
    """The projects, conversations' teams and documents that questions are about."""
    return {
        answer.split("/")[1].upper() if question.kind == "portfolio" else answer.rpartition("-" if ":" in answer else "/")[0]
        for question in some
        for answer in question.answers
    }


def test_the_set_is_large_enough_and_no_question_stands_twice() -> None:
    texts = [question.text.casefold() for question in (*TEST, *DEV)]
    assert (len(TEST) >= 320, len(DEV) >= 80, len(set(texts)), len({q.id for q in (*TEST, *DEV)})) == (
        True,
        True,
        len(texts),
        len(texts),
    )


def test_all_kinds_are_asked_in_both_splits() -> None:
    kinds = {"portfolio", "conversation", "document"}
    assert {question.kind for question in TEST} == {question.kind for question in DEV} == kinds


def test_every_answer_is_in_the_corpus(said: dict[str, list[str]]) -> None:
    assert [q.id for q in (*TEST, *DEV) if not q.answers or any(answer not in said for answer in q.answers)] == []


def test_nothing_that_answers_a_question_for_the_figures_answers_one_for_tuning() -> None:
    assert _subjects(TEST) & _subjects(DEV) == set()


def test_a_third_of_the_questions_share_few_words_with_their_answer(said: dict[str, list[str]]) -> None:
    low = sum(overlap(question, said) <= LOW for question in TEST)
    assert 1 / 3 <= low / len(TEST) <= 0.5


def test_no_question_is_copied_from_its_answer(said: dict[str, list[str]]) -> None:
    copied = [
        q.id
        for q in (*TEST, *DEV)
        if len(q.text.split()) > 2 and any(q.text.casefold() in text.casefold() for a in q.answers for text in said[a])
    ]
    assert copied == []


def test_routine_turns_are_the_same_at_every_run() -> None:
    assert list(routine.turns()) == list(routine.turns())


def test_every_written_turn_and_section_has_an_id_of_its_own() -> None:
    ids = [row["id"] for name in ("conversations", "documents") for row in rows(name)]
    assert len(ids) == len(set(ids)) > 180


def test_overlap_is_the_share_of_the_stems_in_the_best_item() -> None:
    question = Question("1", "document", "Who repairs the pumps at night?", ("a", "b"))
    assert overlap(question, {"a": ["pump"], "b": ["A night of repairs.", "Nothing."]}) == pytest.approx(2 / 3)


def test_a_rank_is_the_place_of_the_first_right_item() -> None:
    assert (rank(["a", "b", "c"], {"c", "b"}), rank(["a"], {"c"})) == (2, None)


def test_figures_are_shares_of_all_questions() -> None:
    assert figures([1, 2, 20, None, 26]) == Figures(5, 0.4, 0.4, 0.6, 0.31)


def test_percentiles_are_the_median_and_the_95th() -> None:
    assert percentiles([float(n) for n in range(1, 100)]) == (50.0, 95.0)
