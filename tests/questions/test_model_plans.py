"""Questions that the rules decline, asked with a model that plans rightly, wrongly, late or in broken JSON."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from phronesis_contracts.answers import Analysis
from phronesis_orchestrator.understanding.asking_model import SURE
from phronesis_samples.twin.generator import Twin
from phronesis_tokens import count
from tests.questions.asking import Asker
from tests.questions.checks import CONFIDENT
from tests.questions.planned import PORTFOLIO, Planned, of_twin, told
from tests.questions.questions import DECLINED
from tests.support.chat import reasoning
from tests.support.groq_plans import BROKEN, Says, Scripted, broken, late, perturbed, planning
from tests.support.groq_server import Fault, GroqServer, groq_server

NOTHING = "Nothing was found out."
SCRIPTED = {one.text: one.scripted for one in PORTFOLIO}


@asynccontextmanager
async def with_model(asker: Asker, says: Says, seconds: float = 5.0) -> AsyncIterator[tuple[Asker, GroqServer]]:
    """The same person, with a model that says so."""
    async with groq_server() as server, reasoning(server, budget=3_000, seconds=seconds) as model:
        server.says = says
        yield asker.of(asker.agent, reasoner=model), server


def prompt_tokens(request: dict[str, Any] | None) -> int:
    """Tokens of a prompt without the form of its answer."""
    assert request is not None
    return sum(count(str(message["content"]), 10_000) for message in request["messages"])


async def asked(asker: Asker, one: Planned) -> Analysis:
    return await asker.ask(one.text, *one.before)


@pytest.mark.parametrize("one", PORTFOLIO, ids=lambda one: one.text)
async def test_the_rules_alone_decline_it(asker: Asker, one: Planned) -> None:
    answer = await asked(asker, one)
    assert (answer.confidence, answer.data.query_results) == (0.0, ()), answer.answer


def is_wrong(one: Planned, answer: Analysis) -> bool:
    """Whether an answer says something else than what is right, as an answer."""
    return bool(one.right(answer)) and answer.answer != NOTHING and bool(answer.data.query_results or "**" in answer.answer)


async def test_a_model_that_plans_rightly_has_it_answered_right_and_says_how_it_was_understood(asker: Asker) -> None:
    async with with_model(asker, planning(SCRIPTED)) as (asking, server):
        answers = {one.text: (one, await asked(asking, one)) for one in PORTFOLIO}
    wrong = {text: one.right(answer) for text, (one, answer) in answers.items() if one.right(answer)}
    assert len(wrong) <= 0.1 * len(PORTFOLIO), wrong
    assert sum("(I took this as: " in answer.answer for _, answer in answers.values()) >= 0.9 * len(PORTFOLIO)
    assert all(answer.confidence <= SURE for _, answer in answers.values())
    assert max(prompt_tokens(call.request) for call in server.calls if call.purpose in ("understand", "formulate")) <= 2_000


async def test_the_same_holds_of_a_twin_of_all_types(twin: Asker, made: Twin) -> None:
    questions = of_twin(made)
    scripted = {one.text: one.scripted for one in questions}
    before = [one.text for one in questions if (await asked(twin, one)).confidence > 0]
    async with with_model(twin, planning(scripted)) as (asking, _):
        wrong = {one.text: (why, found.answer) for one in questions if (why := one.right(found := await asked(asking, one)))}
    assert before == []
    assert wrong == {}


async def test_a_dialogue_tells_it_with_how_it_was_understood(asker: Asker) -> None:
    one = PORTFOLIO[0]
    async with with_model(asker.of("dialogue"), planning(SCRIPTED)) as (asking, _):
        reply = (await asking.turn(one.text)).reply
    assert reply.user_response.startswith("I take “initiatives” to mean projects; if you mean something else, please say")
    assert "there are **52** projects (delivered by MOD)" in reply.user_response
    assert reply.user_response.endswith("(I took this as: number of projects (delivered by MOD), 2022.)")


async def test_what_words_were_wrongly_taken_for_is_said_first_and_never_surely(asker: Asker) -> None:
    text = "What was the verdict on Crossrail in 2020?"
    wrong = Scripted("describe", told("Crossrail Programme", "category", years=(2020,)), {"verdict": "EntityProject.category"})
    async with with_model(asker, planning({text: wrong})) as (asking, _):
        answer = await asking.ask(text)
    assert answer.answer.startswith("I take “verdict” to mean category; if you mean something else, please say it")
    assert answer.confidence <= CONFIDENT


@pytest.mark.parametrize("one", PORTFOLIO, ids=lambda one: one.text)
async def test_a_plan_that_answers_another_question_is_not_taken(asker: Asker, one: Planned) -> None:
    others = [other.scripted for other in PORTFOLIO if other is not one]
    tried = list(perturbed(one.scripted, others, Random(one.text)))
    assert len(tried) >= 3
    for wrong in tried:
        async with with_model(asker, planning({one.text: wrong})) as (asking, _):
            answer = await asked(asking, one)
        assert not is_wrong(one, answer), f"{wrong.kind} {wrong.plan}: {answer.answer}"


@pytest.mark.parametrize("step", ["understand", "formulate"])
@pytest.mark.parametrize("text", BROKEN)
async def test_a_broken_plan_leaves_the_rules_answer(asker: Asker, step: str, text: str) -> None:
    one = PORTFOLIO[0]
    async with with_model(asker, broken(SCRIPTED, step, text)) as (asking, server):
        answer = await asked(asking, one)
    assert not is_wrong(one, answer), answer.answer
    assert sum(call.step.split("/")[1].startswith(("understand", "formulate")) for call in server.calls if call.step) <= 3


async def test_a_late_plan_leaves_the_rules_answer(asker: Asker) -> None:
    one = PORTFOLIO[0]
    async with with_model(asker, late(3.0), seconds=0.5) as (asking, _):
        answer = await asked(asking, one)
    assert not is_wrong(one, answer), answer.answer
    assert answer.confidence <= CONFIDENT


@pytest.mark.parametrize("text", DECLINED)
async def test_what_no_plan_says_is_declined_whatever_the_model_plans(asker: Asker, text: str) -> None:
    dice = Random(text)
    for scripted in dice.sample([one.scripted for one in PORTFOLIO], 6):
        async with with_model(asker, planning({text: scripted})) as (asking, _):
            answer = await asking.ask(text)
        assert "**" not in answer.answer, answer.answer
        assert answer.data.query_results == ()


async def test_what_became_of_plans_and_replies_is_counted_and_stands_in_the_trace(asker: Asker) -> None:
    one, other = PORTFOLIO[0], PORTFOLIO[2]
    wrong = Scripted(one.scripted.kind, other.scripted.plan, one.scripted.words)
    notes = []
    for plans in ({one.text: one.scripted}, {one.text: wrong}):
        async with with_model(asker, planning(plans)) as (asking, _):
            turn = await asking.turn(one.text)
        notes.append(turn.stage.turns.traced.notes)
    assert [(each["planning"], each["prose"]) for each in notes] == [("accepted", "accepted"), ("rejected", "accepted")]


# -- what an analyst's model writes is held against what the rules found ---------------------------------------------


def writing(answer: str) -> Says:
    """A model that gives this answer to whatever it is to look up."""

    def says(purpose: str, request: dict[str, Any]) -> Fault | None:
        return Fault(content=json.dumps({"answer": answer, "confidence": 1.0})) if purpose in ("tools", "rewrite") else None

    return says


async def test_an_analyst_is_shown_what_the_rules_found_as_data_with_its_origin(asker: Asker) -> None:
    async with with_model(asker, writing("MOD has **52** projects in 2022.")) as (asking, server):
        turn = await asking.turn("How many projects does MOD have in 2022?")
    prompt = next(call.request for call in server.calls if call.purpose == "tools" and call.request)["messages"]
    assert "Origin: read from the records by rules, for this message.\nIn 2022, there are **52**" in prompt[1]["content"]
    assert "(block draft)" in prompt[0]["content"]
    analysis = turn.reply.analysis
    assert analysis is not None
    assert (analysis.answer, analysis.mode) == ("MOD has **52** projects in 2022.", "A")
    assert (turn.reply.reasoner, turn.reply.degraded) == ("groq", ())
    assert analysis.cypher_executed
    assert turn.stage.turns.traced.notes["prose"] == "accepted"


@pytest.mark.parametrize(
    "said", ["MOD has **51** projects in 2022.", "Quite a few.", "MOD has **52** projects in 2022, 17 of them late."]
)
async def test_an_answer_that_contradicts_what_was_found_is_replaced(asker: Asker, said: str) -> None:
    async with with_model(asker, writing(said)) as (asking, _):
        turn = await asking.turn("How many projects does MOD have in 2022?")
    analysis = turn.reply.analysis
    assert analysis is not None
    assert analysis.answer.startswith("In 2022, there are **52** projects")
    assert turn.stage.turns.traced.notes["prose"] == "rejected"


async def test_where_the_analysts_model_fails_what_the_rules_found_stands(asker: Asker) -> None:
    def says(purpose: str, request: dict[str, Any]) -> Fault | None:
        return Fault(status=500) if purpose == "tools" else None

    async with with_model(asker, says) as (asking, _):
        reply = (await asking.turn("How many projects does MOD have in 2022?")).reply
    assert reply.analysis is not None
    assert reply.analysis.answer.startswith("In 2022, there are **52** projects")
    assert (reply.reasoner, reply.degraded) == ("extractive", ("model",))


@pytest.mark.parametrize("mode", ["E", "J"])
async def test_a_model_that_asks_back_what_the_rules_know_is_not_listened_to(asker: Asker, mode: str) -> None:
    def says(purpose: str, request: dict[str, Any]) -> Fault | None:
        told = {"mode": mode, "intent": "-", "answer": "Which one do you mean?", "analysis": [], "confidence": 0.9}
        return Fault(content=json.dumps(told)) if purpose == "classify" else None

    async with with_model(asker, says) as (asking, _):
        assert (await asking.ask("How many projects does MOD have in 2022?")).answer.startswith("In 2022, there are **52**")
        assert (await asking.ask("Tell me about that thing")).answer == "Which one do you mean?"
