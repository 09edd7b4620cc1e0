"""What makes a past turn important, with the traps of words, and when a conversation is put in short."""

from __future__ import annotations

import pytest

from phronesis_orchestrator.conversations.history import KEPT, PRUNE_AFTER, WINDOW, PastMessage, Summary
from phronesis_orchestrator.conversations.summary import Scoring, Sign, score_importance, select_history
from tests.unit.orchestrator.test_summary import past_of, turns

STRICT = Scoring(openers=False)
ARABIC = {Sign.DECISION: ("\u0645\u0648\u0627\u0641\u0642",)}


@pytest.mark.req("V-143", "V-144", "V-145", "V-147", "V-C20")
@pytest.mark.parametrize(
    "said",
    [
        "the casino, they say",
        "factually so",
        "nevertheless",
        "disapproved",
        "cargo with care",
        "unalwaysed",
        "make sureness",
        "wrongly",
    ],
)
def test_a_keyword_inside_another_word_is_none(said: str) -> None:
    assert score_importance(said, "") == 0


@pytest.mark.req("V-149")
@pytest.mark.parametrize("apostrophe", ["'", "\u2019", "\u2018", "\u02bc", "\uff07"])
def test_every_apostrophe_is_the_same(apostrophe: str) -> None:
    assert score_importance(f"let{apostrophe}s do it", "") == 3
    assert score_importance(f"don{apostrophe}t forget", "") == 2


@pytest.mark.req("V-146", "V-C19")
@pytest.mark.parametrize(
    ("said", "plain", "strict"),
    [
        ("What is it", 2, 0),
        ("Please go on. Then stop", 2, 0),
        ("ask Fatima", 2, 2),
        ("Ask Fatima", 2, 2),
        ("we met on Monday", 2, 0),
        ("\u201cTell me", 2, 0),
        ("ask ed", 0, 0),
        ("ask Ed", 0, 0),
        ("ask EDWARD", 0, 0),
    ],
)
def test_a_sentence_opener_is_a_name_by_the_pattern_alone_and_none_with_the_setting(said: str, plain: int, strict: int) -> None:
    assert (score_importance(said, ""), score_importance(said, "", STRICT)) == (plain, strict)


@pytest.mark.req("V-142", "V-C19")
def test_another_script_scores_by_the_words_that_are_added_for_it() -> None:
    agreed = "\u0623\u0646\u0627 \u0645\u0648\u0627\u0641\u0642"
    assert score_importance(agreed, "") == 0
    assert score_importance(agreed, "", Scoring().with_language(ARABIC)) == 3
    assert score_importance(f"{agreed}, approved", "", Scoring().with_language(ARABIC)) == 3


@pytest.mark.req("V-151", "V-153", "V-C18")
def test_a_conversation_of_fifteen_turns_stands_word_for_word_and_one_of_sixteen_does_not() -> None:
    summary, history = select_history(past_of(turns(PRUNE_AFTER)))
    assert (summary, len(history), {message.seq for message in history}) == (Summary(), 2 * PRUNE_AFTER, {None})
    summary, history = select_history(past_of(turns(PRUNE_AFTER + 1)))
    assert (summary.through, len(history)) == (2 * (PRUNE_AFTER + 1 - WINDOW), 2 * WINDOW)


@pytest.mark.req("V-183", "V-151", "V-152", "V-154", "V-157")
def test_decisions_of_a_long_conversation_stay_word_for_word_in_their_order() -> None:
    said = {2: "let's do the blue one", 5: "we go with the second offer", 9: "approved, book it"}
    all = turns(25, said)
    summary, history = select_history(past_of(all))
    kept = [message for message in history if message.seq is not None]
    assert [message.text for message in kept if message.role == "user"] == [said[2], said[5], said[9]]
    assert [message.seq for message in kept] == [3, 4, 9, 10, 17, 18]
    assert list(history[len(kept) :]) == [
        message for turn in all[15:] for message in (PastMessage("user", turn.user), PastMessage("assistant", turn.reply))
    ]
    assert (summary.through, summary.kept) == (30, (3, 9, 17))


@pytest.mark.req("V-158")
def test_of_like_turns_the_newer_ones_are_kept() -> None:
    all = turns(20, {at: "we go with it" for at in range(1, 11)})
    assert select_history(past_of(all))[0].kept == tuple(2 * at - 1 for at in range(6, 11))


@pytest.mark.req("V-159")
def test_a_stronger_turn_takes_the_place_of_one_that_was_kept() -> None:
    weak = {at: "i prefer tea" for at in range(1, 6)}
    first, _ = select_history(past_of(turns(20, weak)))
    assert first.kept == (1, 3, 5, 7, 9)
    all = turns(31, weak | {12: "let's do it, no, wrong"})
    later, history = select_history(past_of(all, first))
    assert later.kept == (3, 5, 7, 9, 23)
    assert [message.seq for message in history if message.seq] == [3, 4, 5, 6, 7, 8, 9, 10, 23, 24]


@pytest.mark.req("V-152", "V-C23")
def test_a_turn_that_tells_nothing_fills_no_place() -> None:
    summary, _ = select_history(past_of(turns(40, {3: "let's do it"})))
    assert summary.kept == (5,)
    assert len(summary.kept) < KEPT


@pytest.mark.req("V-142", "V-008", "V-T10")
def test_the_same_turns_always_give_the_same_view() -> None:
    all = turns(60, {at: "ask Fatima" for at in range(1, 50, 3)})
    assert select_history(past_of(all)) == select_history(past_of(all))
