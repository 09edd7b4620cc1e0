"""Whatever is said, the analyst neither breaks nor makes an answer up."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phronesis_orchestrator.agents.analyst.vocabulary import phrases
from phronesis_samples.portfolio import reports
from tests.questions.asking import Asker
from tests.questions.checks import CONFIDENT
from tests.questions.twin import MemoryTwin

NONSENSE = ("blorptang", "zqxwv", "gribbleflax", "vorpal", "snickersnack", "frabjous", "qwertzuiop", "wibblewobble")
KNOWN = sorted({" ".join(key) for key in phrases()})
ASKER = Asker(MemoryTwin.of(reports.batches()))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=200))
def test_no_text_breaks_it(text: str) -> None:
    answer = asyncio.run(ASKER.ask(text or "?"))
    assert answer.answer


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(KNOWN), min_size=1, max_size=9), st.sampled_from(NONSENSE), st.integers(0, 9))
def test_a_salad_with_a_word_that_means_nothing_gets_no_confident_answer(words: list[str], nonsense: str, at: int) -> None:
    text = " ".join([*words[:at], nonsense, *words[at:]])
    answer = asyncio.run(ASKER.ask(text))
    # Explanations and courtesies state no figure of the data.
    assert answer.data.query_results == ()
    assert answer.confidence <= CONFIDENT or answer.mode in "GHI"


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(KNOWN), min_size=1, max_size=12))
def test_no_salad_of_known_words_breaks_it(words: list[str]) -> None:
    answer = asyncio.run(ASKER.ask(" ".join(words)))
    assert 0.0 <= answer.confidence <= 1.0


@pytest.mark.req("N-058")
async def test_a_script_in_a_question_is_shown_inert() -> None:
    answer = await ASKER.ask("What became of <script>alert(1)</script> and <img src=x onerror=alert(2)>?")
    assert "<script" not in answer.answer
    assert "<img" not in answer.answer


async def test_a_very_long_question_is_read_in_part_and_declined() -> None:
    answer = await ASKER.ask("why " * 5_000 + "projects?")
    assert answer.confidence == 0.0
