"""Whatever is said, an answer is given, and none is made up."""

from __future__ import annotations

import pytest

from tests.questions.asking import Asker
from tests.questions.checks import CONFIDENT

HOSTILE = (
    "?",
    "\x00\x01",
    "‮secret‬ projects",
    "🙂" * 50,
    "how many " * 120,
    "Which " + "projects of " * 60 + "MOD?",
    "{{user}} {% raw %}",
    "1/0 ∞ -1e999 projects in year 99999999999999999999",
    "项目有多少？",
    "كم عدد المشاريع",
)
SALADS = (
    "blorptang projects rated Red in 2022",
    "how many zqxwv projects in 2022",
    "average gribbleflax cost of projects by department",
    "which projects vorpal 2021 2022 most rating",
)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_no_text_breaks_it(asker: Asker, text: str) -> None:
    answer = await asker.ask(text)
    assert answer.answer
    assert 0.0 <= answer.confidence <= 1.0


@pytest.mark.parametrize("text", SALADS)
async def test_a_salad_with_a_word_that_means_nothing_gets_no_confident_answer(asker: Asker, text: str) -> None:
    answer = await asker.ask(text)
    assert (answer.data.query_results, answer.cypher_executed) == ((), None)
    assert answer.confidence <= CONFIDENT


@pytest.mark.req("N-058")
async def test_a_script_in_a_question_is_shown_inert(asker: Asker) -> None:
    answer = await asker.ask("What became of <script>alert(1)</script> and <img src=x onerror=alert(2)>?")
    assert "<script" not in answer.answer
    assert "<img" not in answer.answer


async def test_a_very_long_question_is_read_in_part_and_declined(asker: Asker) -> None:
    answer = await asker.ask("why " * 5_000 + "projects?")
    assert answer.confidence == 0.0
