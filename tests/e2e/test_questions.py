"""Questions about the portfolio, asked of the whole stack without a model: right, or declined, never wrong."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from phronesis_contracts.answers import Analysis
from tests.questions.checks import CONFIDENT
from tests.questions.questions import DECLINED, QUESTIONS, Question
from tests.support.people import Person

pytestmark = [pytest.mark.verify, pytest.mark.timeout(290)]

CHAT = "/api/v1/chat/message"
AT_ONCE = 2
"""Questions under way together."""


async def _ask(person: Person, text: str, conversation: str | None = None) -> dict[str, Any]:
    body = {"query": text, "agent": "noor"} | ({"conversationId": conversation} if conversation else {})
    answer = await person.http.post(CHAT, json=body, headers={"Idempotency-Key": uuid4().hex})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def _answered(person: Person, question: Question) -> str:
    conversation: str | None = None
    for before in question.before:
        conversation = (await _ask(person, before, conversation))["conversationId"]
    answer = Analysis.model_validate(await _ask(person, question.text, conversation))
    wrong = question.right(answer)
    return f"{question.text}: {wrong}: {answer.answer[:200]}" if wrong else ""


@pytest.mark.req("N-007", "N-024", "N-025", "N-027", "N-028", "N-029", "N-059", "N-066")
async def test_questions_about_the_portfolio_are_answered_right(analyst: Person) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(question: Question) -> str:
        async with gate:
            return await _answered(analyst, question)

    found = await asyncio.gather(*(one(question) for question in QUESTIONS[::2]))
    wrong = [one for one in found if one]
    assert not wrong, "\n".join(wrong)


@pytest.mark.req("N-031", "N-036")
async def test_what_cannot_be_answered_surely_is_declined_by_the_stack(analyst: Person) -> None:
    for text in DECLINED[::3]:
        answer = Analysis.model_validate(await _ask(analyst, text))
        assert (answer.confidence <= CONFIDENT, answer.data.query_results) == (True, ()), text
