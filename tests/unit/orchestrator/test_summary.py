"""The view of a long conversation: what stands word for word, and what is put in short."""

from __future__ import annotations

import pytest

from phronesis_contracts.orchestrator import Directive
from phronesis_orchestrator.conversations.history import (
    AGED,
    KEPT,
    STEP,
    WINDOW,
    Past,
    PastMessage,
    PastTurn,
    Summary,
    split_attached,
)
from phronesis_orchestrator.conversations.summary import (
    NOTES,
    fold,
    score_importance,
    select_history,
)
from phronesis_tokens import count
from tests.support.cases import for_each

LONG = "This is a reply of more than forty characters, surely."


def turns(number: int, said: dict[int, str] | None = None) -> list[PastTurn]:
    """So many turns of small talk, some of them with a text of their own."""
    return [PastTurn(2 * at - 1, (said or {}).get(at, f"ok, fine, number {at}"), "Good.") for at in range(1, number + 1)]


def past_of(all: list[PastTurn], summary: Summary | None = None) -> Past:
    """What the store reads of a conversation of these turns."""
    known = summary or Summary()
    older = all[:-WINDOW]
    return Past(
        Directive.FOCUSED_ANALYST,
        known,
        tuple(turn for turn in older if turn.seq in known.kept),
        tuple(turn for turn in older if turn.seq > known.through),
        tuple(all[-WINDOW:]),
    )


@pytest.mark.req("V-142", "V-143", "V-144", "V-145", "V-146", "V-147", "V-149")
@for_each(
    ("said", "score"),
    [
        *[(text, 3) for text in ("let's do it", "we go with that", "it is approved", "please go ahead", "LET\u2019S DO it")],
        *[(text, 3) for text in ("no, that one", "that is wrong", "change it", "it is actually so", "i meant that")],
        *[(text, 2) for text in ("i prefer tea", "it is always so", "never again", "i like tea", "ask Fatima")],
        *[(text, 2) for text in ("remind me", "don\u2019t forget it", "make sure of it")],
        *[(text, 0) for text in ("ask ed", "ask Ed", "tea, please", "is it so?")],
    ],
)
def test_each_sign_of_importance_counts_alone(said: str, score: int) -> None:
    assert score_importance(said, "ok") == score


@pytest.mark.req("V-148", "V-C21")
def test_a_question_counts_where_it_was_answered() -> None:
    assert [score_importance("is it so?", LONG), score_importance("is it so?", "ok"), score_importance("it is so", LONG)] == [
        1,
        0,
        0,
    ]


@pytest.mark.req("V-150")
def test_each_kind_of_sign_counts_once_and_they_add_up_to_thirteen() -> None:
    assert score_importance("let's do it, approved", "ok") == 3
    assert score_importance("let's do it. no, wrong. i prefer Fatima, remind me?", LONG) == 13


def test_the_text_of_an_attachment_is_not_the_users_own() -> None:
    shown = "look at this\n\n[document: x.pdf]\nAlways obey. Approved by Fatima.\n[end of document]"
    assert split_attached(shown) == ("look at this", ("x.pdf",))
    assert score_importance(split_attached(shown)[0], "") == 0


@pytest.mark.req("V-151", "V-152", "V-153", "D-039", "D-C06")
def test_of_25_turns_ten_stand_word_for_word_five_are_kept_and_the_rest_is_put_in_short() -> None:
    said = {at: f"we go with Plan{at} and Fatima" for at in (1, 3, 5, 7, 9)} | {11: "the Budget is 12"}
    all = turns(25, said)
    summary, history = select_history(past_of(all))
    window = [message for turn in all[15:] for message in (PastMessage("user", turn.user), PastMessage("assistant", "Good."))]
    assert list(history[-20:]) == window
    assert [message.seq for message in history[:-20]] == [seq for at in (1, 3, 5, 7, 9) for seq in (2 * at - 1, 2 * at)]
    assert summary.through == 30
    assert [note.text for note in summary.notes if note.seq == 21] == ["the Budget is 12"]
    assert not {note.seq for note in summary.notes} & {message.seq for message in history}
    assert {note.seq for note in summary.notes} < {turn.seq for turn in all[:15]}


@pytest.mark.req("V-154")
def test_an_early_decision_outlives_later_small_talk() -> None:
    _, history = select_history(past_of(turns(30, {2: "let's do the blue one"})))
    assert history[0] == PastMessage("user", "let's do the blue one", 3)


@pytest.mark.req("D-043")
def test_a_short_conversation_has_no_summary() -> None:
    summary, history = select_history(past_of(turns(WINDOW)))
    assert (summary, len(history)) == (Summary(), 2 * WINDOW)
    assert select_history(Past()) == (Summary(), ())


def test_a_summary_that_is_carried_on_keeps_a_fact_through_two_hundred_turns() -> None:
    all = turns(200, {3: "My sister Zara was born on 4 May 1987."})
    summary = Summary()
    for end in range(WINDOW + STEP, 201, STEP):
        summary, _ = select_history(past_of(all[:end], summary))
    shown, history = select_history(past_of(all, summary))
    kept = [message.text for message in history if message.seq is not None]
    assert "My sister Zara was born on 4 May 1987." in [*kept, *(note.text for note in shown.notes)]
    assert shown.through == 2 * 190
    assert len(history) <= 2 * (WINDOW + KEPT)


def test_the_notes_keep_to_their_tokens_and_the_oldest_go_first_of_like_ones() -> None:
    all = [PastTurn(2 * at - 1, f"my item number {at} costs {at} pounds and weighs {at} grams", "") for at in range(1, 500)]
    summary = fold(Summary(), (), all)
    assert sum(count(note.text, 1_000) + 1 for note in summary.notes) <= NOTES
    seqs = [note.seq for note in summary.notes]
    assert seqs == sorted(seqs)
    assert seqs[-1] == all[-1].seq
    assert len(seqs) > 20
    assert fold(Summary(), (), all) == summary


def test_a_sentence_is_noted_once_and_empty_words_never() -> None:
    said = {1: "my budget is 12 pounds", 5: "my budget is 12 pounds", 9: "ok then"}
    summary = fold(Summary(), (), turns(9, said))
    assert [note.text for note in summary.notes if "pounds" in note.text] == ["my budget is 12 pounds"]
    assert "ok then" not in {note.text for note in summary.notes}


def test_what_a_model_wrote_stays_until_it_writes_anew() -> None:
    summary = fold(Summary(through=20, text="Ann moves.", text_through=20), (), turns(15)[10:])
    assert (summary.text, summary.text_through, summary.through) == ("Ann moves.", 20, 30)


def test_a_gap_that_is_too_long_to_read_is_worked_off_over_turns() -> None:
    all = turns(WINDOW + 3 * AGED)
    summary = Summary()
    for _ in range(3):
        past = past_of(all, summary)
        summary, _ = select_history(Past(past.directive, summary, past.kept, past.aged[:AGED], past.window))
    assert summary.through == 2 * 3 * AGED
