"""Words, sentences, key phrases and ranks, as the model path uses them, on the sample portfolio's own texts."""

from __future__ import annotations

import csv
import random
from functools import cache
from importlib.resources import files
from typing import Any

import pytest

from phronesis_contracts.memory import AugmentedMemoryContext, ContextItem, ItemKind
from phronesis_contracts.orchestrator import Directive
from phronesis_orchestrator.agents.text import focus, key_phrases, rank_items, sentences, snippet, words
from phronesis_orchestrator.conversations.history import PastMessage
from phronesis_orchestrator.models.reasoner import TurnContext

GDF = "Geological Disposal Facility Programme (GDF)"
ASKED = "What is the Geological Disposal Facility programme for?"
TALK = (PastMessage("user", ASKED), PastMessage("assistant", f"**{GDF}**: The primary objective is to site a facility."))
_TEXTS = ("aims", "rating_comment", "schedule_comment", "budget_comment")


@cache
def reports() -> tuple[ContextItem, ...]:
    """Every report of the portfolio, as retrieval hands it back."""
    file = files("phronesis_samples.portfolio").joinpath("portfolio_2020_2023.csv")
    rows = csv.DictReader(file.read_text(encoding="utf-8").splitlines(keepends=True))
    return tuple(
        ContextItem(
            id=str(number),
            external_id=f"EntityProject/{row['project_number']}/{row['year']}",
            kind=ItemKind.NODE,
            title=row["project_name"],
            text="\n".join(row[name] for name in _TEXTS if row[name])[:2_000] or row["project_name"],
            score=0.5,
            hop=0,
        )
        for number, row in enumerate(rows)
    )


def found(title: str, count: int = 25) -> AugmentedMemoryContext:
    """The reports of one project among others, in no helpful order."""
    own = [item for item in reports() if item.title == title]
    others = random.Random(title).sample([item for item in reports() if item.title != title], count - len(own))
    items = random.Random(0).sample(own + others, count)
    return AugmentedMemoryContext(user_id="u", key_phrases=("x",), concepts=tuple(items))


def a_turn(text: str, **changes: Any) -> TurnContext:
    known: dict[str, Any] = {"agent": None, "profile": {}, "history": (), "directive": Directive.SUPPORTIVE_COMPANION}
    return TurnContext(**{**known, "final_input": text, "user_text": text, **changes})


def test_a_follow_up_is_about_what_was_talked_of() -> None:
    turn = a_turn("Which department runs it, and how confident is delivery?", history=TALK)
    assert rank_items(focus(turn), found(GDF))[0][1].title == GDF


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        (ASKED, ("Geological Disposal Facility programme", ASKED)),
        ('Tell me about "Skynet 6" and Crossrail.', ("Skynet 6", "Crossrail", 'Tell me about "Skynet 6" and Crossrail.')),
        ("why are prisons overcrowded?", ("why are prisons overcrowded?", "prisons overcrowded")),
        (
            "How is the New Hospital Programme (NHP) going?",
            ("New Hospital Programme", "NHP", "How is the New Hospital Programme (NHP) going?"),
        ),
        ("这个项目的目标是什么?", ("这个项目的目标是什么?", "这个项目的目标是什么")),
    ],
)
@pytest.mark.req("D-134")
def test_key_phrases_are_the_names_the_message_and_its_content_words(text: str, phrases: tuple[str, ...]) -> None:
    assert key_phrases(text) == phrases


@pytest.mark.req("D-056")
def test_a_long_message_gives_at_most_eight_phrases_of_two_hundred_characters() -> None:
    phrases = key_phrases(" ".join(f"Project Number{n} runs and" for n in range(5_000)))
    assert 0 < len(phrases) <= 8
    assert max(map(len, phrases)) <= 200


@pytest.mark.parametrize(
    "text", ["What about its cost?", "And in 2021?", "Why?", "Who leads it?", "How risky is that programme?"]
)
def test_a_message_without_a_subject_takes_the_one_that_was_talked_of(text: str) -> None:
    assert key_phrases(text, TALK) == (GDF, f"{GDF}: {text}", text)


@pytest.mark.parametrize(
    "text", ["What about Crossrail?", "Is the Lower Thames Crossing late?", "Which projects build prisons?"]
)
def test_a_message_with_a_subject_of_its_own_keeps_to_it(text: str) -> None:
    assert not any(GDF in phrase for phrase in key_phrases(text, TALK))


def test_a_node_with_a_text_for_each_year_is_one_source_the_newest_or_the_year_asked_for() -> None:
    memory = found(GDF)
    usual, asked = rank_items(ASKED, memory), rank_items(f"{ASKED} In 2021?", memory)
    assert [item.title for _, item in usual].count(GDF) == 1
    assert usual[0][1].external_id == "EntityProject/DECC_0005_1112-Q1/2023"
    assert asked[0][1].external_id == "EntityProject/DECC_0005_1112-Q1/2021"


def test_sentences_end_at_points_and_lines_but_not_in_abbreviations() -> None:
    text = "Costs rose, e.g. by £5m. Dr. Smith left. - First aim\n- Second aim; - third"
    assert sentences(text) == ["Costs rose, e.g. by £5m.", "Dr. Smith left.", "First aim", "Second aim;", "third"]


def test_a_snippet_is_the_window_that_fits_the_question_best() -> None:
    text = "It began in 2008. Waste will be stored deep underground. Nobody knows where. " + "Filler follows here. " * 40
    assert snippet("where is waste stored?", text, 60) == "Waste will be stored deep underground. Nobody knows where."
    assert len(snippet("begin", "word " * 400, 240)) <= 240
    assert snippet("x", "") == ""


def test_words_are_found_in_any_script() -> None:
    assert words("L’été Straße 2023 don't") == ["l'été", "strasse", "2023", "don't"]


def test_the_day_of_a_date_ends_no_sentence() -> None:
    text = "zum 1. Mai ändert sich das. Es gilt vom 3. bis 21. August."
    assert sentences(text) == ["zum 1. Mai ändert sich das.", "Es gilt vom 3. bis 21. August."]


def test_a_sentence_goes_on_over_the_end_of_a_page_line() -> None:
    text = "The budget review meeting of the programme takes place on\n14 May 2024 in room 3. Then it ends."
    assert sentences(text) == [
        "The budget review meeting of the programme takes place on 14 May 2024 in room 3.",
        "Then it ends.",
    ]


def test_a_heading_and_a_list_keep_their_lines() -> None:
    assert sentences("Note on reviews\nThe first point stands here.\n- a list mark\n- another one") == [
        "Note on reviews",
        "The first point stands here.",
        "a list mark",
        "another one",
    ]
