"""Each mode without a model: what is answered at once reads nothing, what reads says how sure it is."""

from __future__ import annotations

import pytest

from phronesis_samples.portfolio import reports
from tests.questions.asking import Asker
from tests.questions.twin import MemoryTwin

pytestmark = pytest.mark.req("N-024", "N-026")

AT_ONCE = {
    "Good morning, thank you": "I",
    "Hello!": "I",
    "This is useless": "I",
    "What can you do?": "G",
    "Who are you?": "G",
    "What questions can I ask?": "G",
    "Explain what closing a gap means": "H",
    "What is a policy tool?": "H",
    "What does delivery confidence mean?": "H",
    "Define capability": "H",
    "Give me ideas to raise adoption": "F",
    "What should we do about Red projects?": "F",
    "What if we closed that program one quarter early?": "D",
}


@pytest.fixture
def asker() -> Asker:
    return Asker(MemoryTwin.of(reports.batches()[:1]))


@pytest.mark.req("N-032", "N-033", "N-034", "N-035", "N-037", "NC-013", "NC-014")
@pytest.mark.parametrize("text", AT_ONCE)
async def test_what_needs_no_data_is_answered_without_a_read(asker: Asker, text: str) -> None:
    answer = await asker.ask(text)
    assert (answer.mode, answer.cypher_executed, answer.visualizations) == (AT_ONCE[text], None, ())
    assert asker.twin.asked == []


@pytest.mark.req("N-031", "N-036", "NC-012")
@pytest.mark.parametrize(
    ("text", "mode", "asked"),
    [
        ("Show the totals for the year", "E", "Which year"),
        ("Tell me about that thing", "J", "thing"),
        ("Tell me about it", "J", "What"),
    ],
)
async def test_what_is_missing_from_a_question_is_asked_back(asker: Asker, text: str, mode: str, asked: str) -> None:
    answer = await asker.ask(text)
    assert (answer.mode, answer.confidence, asked in answer.answer) == (mode, 0.0, True)


@pytest.mark.req("N-043", "N-067")
async def test_what_is_not_published_lowers_the_confidence() -> None:
    asker = Asker(MemoryTwin.of(reports.batches()))
    whole = await asker.ask("How many projects per category in 2022?")
    partly = await asker.ask("How many projects per rating in 2022?")
    missing = await asker.ask("What is missing for Sizewell C?")
    assert whole.confidence == 1.0
    assert partly.confidence == pytest.approx(221 / 235, abs=0.001)
    assert missing.confidence < partly.confidence


@pytest.mark.req("N-066")
async def test_the_record_of_an_answer_holds_what_was_read() -> None:
    asker = Asker(MemoryTwin.of(reports.batches()))
    assert (await asker.ask("How many projects does MOD have in 2022?")).cypher_executed == "survey of EntityProject"
