"""The analyst without a model on the loaded portfolio: right, or declined, never wrong."""

from __future__ import annotations

import re

import pytest

from tests.questions.asking import Asker
from tests.questions.checks import CONFIDENT
from tests.questions.questions import DECLINED, NOTHING_THERE, QUESTIONS, Question

BANNED = re.compile(r"\b(?:(?i:nodes?|cypher|quer(?:y|ies)|embeddings?|L[123])|IDs?)\b")


@pytest.mark.req("N-024", "N-025", "N-027", "N-028", "N-029", "N-059", "N-062")
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.text)
async def test_a_question_is_answered_right(asker: Asker, question: Question) -> None:
    answer = await asker.ask(question.text, *question.before)
    assert question.right(answer) == "", answer.answer
    assert answer.mode in question.mode
    assert answer.cypher_executed


@pytest.mark.parametrize("text", DECLINED)
async def test_what_cannot_be_answered_surely_is_declined(asker: Asker, text: str) -> None:
    answer = await asker.ask(text)
    assert answer.confidence <= CONFIDENT
    assert answer.data.query_results == ()
    assert "**" not in answer.answer


@pytest.mark.parametrize("text", ["and why?", "and where?", "and who?"])
async def test_a_follow_up_that_asks_something_else_does_not_get_the_answer_before_again(asker: Asker, text: str) -> None:
    answer = await asker.ask(text, "How many projects does MOD have in 2022?")
    assert (answer.confidence, answer.data.query_results) == (0.0, ()), answer.answer


@pytest.mark.parametrize(
    ("turns", "told"),
    [
        (
            ("Did the cost of the Police Uplift Programme change between 2021 and 2022?", "by how much", "and 2022 to 2023"),
            "+£3 m",
        ),
        (
            ("Did the cost of the Police Uplift Programme change between 2021 and 2022?", "by how much", "which department?"),
            "HO",
        ),
        (("Which department had the most red projects in 2022?", "how many?"), "9"),
        (
            ("Which department had the most red projects in 2022?", "how many?", "which of these is the most expensive"),
            "Lightning Programme",
        ),
        (("What does the Lower Thames Crossing cost in 2022?", "is that more than in 2020?"), "Yes"),
        (("5 largest home office projects, 2023", "sum of the five?"), "£21,136 million"),
        (("5 largest home office projects, 2023", "sum of the five?", "what share of all home office costs is it"), "84.3 %"),
        (("whole-life cost of Project Gigabit in 2023", "who's in charge"), "DSIT"),
        (("Which DFT projects were new in 2022?", "what do they cost"), "In 2022"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[-1],
)
async def test_a_follow_up_goes_on_from_what_was_answered(asker: Asker, turns: tuple[str, ...], told: str) -> None:
    answer = await asker.ask(turns[-1], *turns[:-1])
    assert told in answer.answer.replace("**", "")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("which ends first, Crossrail or Type 31, in 2022?", "Crossrail Programme"),
        ("is the Type 26 programme finishing later than Type 31 as of 2023", "Yes"),
        ("which department spends the most in 2022", "DFT has the highest total whole-life cost"),
        ("what does MOJ spend in total in 2023", "MOJ"),
        ("Which projects of the Home Office cost over a billion in 2023?", "Police Uplift Programme"),
        ("Which departments have no amber projects in 2023?", "no"),
        ("Is there a project called Crossrail Programme in 2022?", "Yes"),
        ("What projects were there in 2021 but not in 2022?", "2021"),
        ("Welches Ministerium führt das Making-Tax-Digital-Projekt?", "HMRC"),
        ("What do all the 2022 projects cost together over their whole life?", "£495,520 million"),
    ],
)
async def test_people_put_it_in_other_words(asker: Asker, text: str, told: str) -> None:
    answer = await asker.ask(text)
    assert told in answer.answer.replace("**", "")
    assert answer.confidence > CONFIDENT, answer.answer


async def test_two_things_that_no_year_holds_both_of_are_not_put_in_order(asker: Asker) -> None:
    answer = await asker.ask("which ends first, Crossrail or HS2")
    assert answer.confidence <= CONFIDENT
    assert "cannot say which comes first" in answer.answer


async def test_a_few_things_do_not_join_or_leave_the_data(asker: Asker) -> None:
    before = ("Which DFT projects were new in 2022?", "what do they cost")
    answer = await asker.ask("and which ones left that year?", *before)
    assert answer.confidence == 0.0, answer.answer


@pytest.mark.xfail(strict=True, reason="a pronoun after a link means what was found, never what was asked about")
async def test_a_pronoun_after_a_link_may_mean_the_thing_that_was_asked_about(asker: Asker) -> None:
    answer = await asker.ask("and its rating?", "who delivers crossrail")
    assert "**Green**" in answer.answer


@pytest.mark.xfail(strict=True, reason="“minister” is taken for a misspelt “ministry”, which is said in the answer")
async def test_a_word_of_another_meaning_is_not_taken_for_a_spelling_mistake(asker: Asker) -> None:
    answer = await asker.ask("Which minister is responsible for the most projects in 2022?")
    assert answer.confidence <= CONFIDENT


@pytest.mark.parametrize("text", NOTHING_THERE)
async def test_years_without_data_are_said_with_those_that_there_are(asker: Asker, text: str) -> None:
    answer = await asker.ask(text)
    assert answer.data.query_results == ()
    assert "from 2020 to 2023" in answer.answer


def test_there_are_questions_enough() -> None:
    assert len(QUESTIONS) >= 60
    assert len(DECLINED) >= 20


@pytest.mark.req("N-055", "N-071")
@pytest.mark.parametrize("question", QUESTIONS[::3], ids=lambda question: question.text)
async def test_an_answer_is_in_business_language(asker: Asker, question: Question) -> None:
    answer = await asker.ask(question.text, *question.before)
    labels = [str(value) for chart in answer.visualizations for value in chart.config.values()]
    said = [answer.answer, *answer.analysis, *(chart.title for chart in answer.visualizations), *labels]
    assert [text for text in said if BANNED.search(text)] == []
