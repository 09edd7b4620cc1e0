"""The reasoner without a model, on the sample portfolio's own texts."""

from __future__ import annotations

import csv
import random
import time
from functools import cache
from importlib.resources import files
from typing import Any

import pytest

from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.memory import AugmentedMemoryContext, ContextItem, ItemKind
from phronesis_contracts.orchestrator import Directive
from phronesis_orchestrator.agents.extractive import Extractive, focus, key_phrases
from phronesis_orchestrator.agents.text import rank_items, sentences, snippet, words
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


async def reply(turn: TurnContext, memory: AugmentedMemoryContext | None, draft: str | None = None) -> str:
    answer = await Extractive().compose(turn, draft, memory)
    assert answer.value is not None
    return answer.value.user_response


@pytest.mark.parametrize(
    ("question", "title", "told"),
    [
        (ASKED, GDF, "higher activity radioactive waste"),
        ("How will Skynet 6 help the military?", "Skynet 6 (aka FBLOS)", "Core Satellite Communications"),
        ("What does the River Thames Scheme protect?", "River Thames Scheme", "reducing the risk of flooding"),
        ("What is being built at Glen Parva?", "Glen Parva New Build Prison", "resettlement"),
        ("Who benefits from the Energy Bills Support Scheme?", "Energy Bills Support Scheme", "households in Great Britain"),
        (
            "Which programme replaces Airwave?",
            "Emergency Services Mobile Communications Programme (ESMCP)",
            "Emergency Services Network",
        ),
        ("what is the uk seafood fund for", "UK Seafood Fund", "fishing"),
        ("What is the aim of the Rapid Charging Fund?", "Rapid Charging Fund", "motorways"),
    ],
)
async def test_a_question_is_answered_with_the_projects_own_words(question: str, title: str, told: str) -> None:
    memory = found(title)
    said = await reply(a_turn(question), memory)
    assert said.startswith(f"**{title}**: ")
    assert told in said
    assert rank_items(question, memory)[0][1].title == title
    assert said.endswith("Quoted from the sources; no language model was used.")


@pytest.mark.req("D-002")
async def test_the_same_turn_gets_the_same_answer() -> None:
    assert await reply(a_turn(ASKED), found(GDF)) == await reply(a_turn(ASKED), found(GDF))


async def test_a_follow_up_is_answered_about_the_same_project() -> None:
    turn = a_turn("Which department runs it, and how confident is delivery?", history=TALK)
    routed = (await Extractive().route(turn)).value
    said = await reply(turn, found(GDF))
    assert routed is not None
    assert routed.key_phrases[0] == GDF
    assert said.startswith(f"**{GDF}**: ")
    assert "Delivery Confidence Assessment rating" in said
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


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("Hello!", "greeting"),
        ("good morning", "greeting"),
        ("Thanks, that was helpful", "thanks"),
        ("bye", "farewell"),
        ("Who are you?", "about"),
        ("what can you do", "about"),
    ],
)
@pytest.mark.req("D-054")
async def test_a_courtesy_is_answered_at_once_with_the_agents_own_sentence(text: str, phrase: str) -> None:
    agent = AgentProfile(agent="a", version="1", loop="router", stages=(), prompts={}, phrases={phrase: f"My {phrase}."})
    routed = (await Extractive().route(a_turn(text, agent=agent))).value
    assert routed is not None
    assert (routed.decision, routed.direct_response) == ("respond_directly", f"My {phrase}.")
    assert await reply(a_turn(text, agent=agent), None, routed.direct_response) == f"My {phrase}."


@pytest.mark.parametrize(
    "text", ["Hello, what is Crossrail?", "Thanks. And its cost?", "What can you do about floods in the Thames?"]
)
async def test_a_question_behind_a_courtesy_is_looked_up(text: str) -> None:
    routed = (await Extractive().route(a_turn(text))).value
    assert routed is not None
    assert routed.decision == "query_memory"


@pytest.mark.req("D-107")
async def test_where_nothing_was_found_it_says_so() -> None:
    nothing = AugmentedMemoryContext(user_id="u", key_phrases=("x",))
    assert await reply(a_turn(ASKED), nothing) == "I found nothing about this in your memory or your documents."


async def test_an_attached_document_is_quoted_by_its_name() -> None:
    text = "Visitors need a badge. The canteen opens at eleven on weekdays. Parking is free."
    turn = a_turn("When does the canteen open?", media_text=f"[document: guide.pdf]\n{text}\n[end of document]")
    said = await reply(turn, found(GDF))
    assert "**guide.pdf**: " in said
    assert "The canteen opens at eleven on weekdays." in said


async def test_a_document_that_could_not_be_read_is_mentioned() -> None:
    turn = a_turn("Summarise this.", media_text="(the attachment a.pdf could not be read)")
    said = await reply(turn, None)
    assert said.startswith("(the attachment a.pdf could not be read)\n\nI found nothing")


@pytest.mark.parametrize(
    ("text", "directive"),
    [
        ("How much does Crossrail cost?", Directive.FOCUSED_ANALYST),
        ("Give me some ideas for a logo", Directive.CREATIVE_COLLABORATOR),
        ("I feel overwhelmed", Directive.SUPPORTIVE_COMPANION),
        ("What is Crossrail about?", Directive.CURIOUS_EXPLORER),
    ],
)
@pytest.mark.req("D-110")
async def test_the_next_stance_is_chosen_by_rules(text: str, directive: Directive) -> None:
    composed = (await Extractive().compose(a_turn(text), None, found(GDF))).value
    assert composed is not None
    assert composed.next_agent_directive is directive


def test_a_node_with_a_text_for_each_year_is_one_source_the_newest_or_the_year_asked_for() -> None:
    memory = found(GDF)
    usual, asked = rank_items(ASKED, memory), rank_items(f"{ASKED} In 2021?", memory)
    assert [item.title for _, item in usual].count(GDF) == 1
    assert usual[0][1].external_id == "EntityProject/DECC_0005_1112-Q1/2023"
    assert asked[0][1].external_id == "EntityProject/DECC_0005_1112-Q1/2021"


async def test_the_texts_of_a_node_are_read_together_and_its_years_are_not_mixed() -> None:
    """Retrieval hands back a node's texts in pieces: here the newest year's rating, and an older year's aims and rating."""
    pieces = [("2023", "The Delivery Confidence Assessment rating remained at Amber."), ("2021", "The rating was Green then.")]
    pieces += [("2021", "The objective is to provide a permanent home for radioactive waste, deep under the ground.")]
    items = [
        ContextItem(
            id=str(at), external_id=f"EntityProject/P/{year}", kind=ItemKind.NODE, title=GDF, text=text, score=0.5, hop=0
        )
        for at, (year, text) in enumerate(pieces)
    ]
    memory = AugmentedMemoryContext(user_id="u", key_phrases=("x",), concepts=tuple(items))
    aims = await reply(a_turn(ASKED), memory)
    rating = await reply(a_turn("How is delivery of the Geological Disposal Facility programme rated?"), memory)
    assert "permanent home for radioactive waste" in aims
    assert "Amber" not in aims
    assert "remained at Amber" in rating
    assert "Green" not in rating


async def test_an_answer_from_25_items_takes_milliseconds() -> None:
    memory = found(GDF)
    await reply(a_turn(ASKED), memory)
    took = []
    for _ in range(5):
        began = time.process_time()
        await reply(a_turn(ASKED), memory)
        took.append(time.process_time() - began)
    assert min(took) < 0.03


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
