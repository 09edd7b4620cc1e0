"""Cutting documents into passages."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from phronesis_contracts.media import TextPart
from phronesis_memory.documents.passages import LONGEST, OVERLAP, WORDS, split_document

TEXTS = st.lists(st.sampled_from(["one", "two.", "three!", "four;", "five\n", "six?", "\n\n", "x" * 700]), max_size=600).map(
    " ".join
)


@settings(deadline=None)
@given(TEXTS, st.integers(0, 1_000), st.lists(st.integers(0, 4_000), max_size=4))
def test_every_word_is_in_a_passage_and_none_is_too_long(text: str, offset: int, cuts: list[int]) -> None:
    edges = sorted({offset, offset + len(text), *(offset + cut for cut in cuts if cut < len(text))})
    parts = [TextPart(page=n, start=a, end=b) for n, (a, b) in enumerate(pairwise(edges), 1)]
    found = split_document(text, offset, parts)
    covered = {at for one in found for at in range(one.start - offset, one.end - offset)}
    assert {at for at, sign in enumerate(text) if not sign.isspace()} <= covered
    assert all(one.text == text[one.start - offset : one.end - offset] for one in found)
    assert all(len(one.text.split()) <= WORDS + OVERLAP and len(one.text) <= LONGEST + LONGEST // 4 + 1 for one in found)
    assert [one.start for one in found] == sorted(one.start for one in found)


def test_a_passage_begins_with_the_end_of_the_one_before() -> None:
    text = " ".join(f"This is sentence number {number}." for number in range(60))
    first, second, *_ = split_document(text, 0, ())
    assert second.start < first.end
    assert first.text.endswith("."), "it ends with a sentence"
    assert second.text.startswith("This is"), "and begins with one"


def test_a_passage_is_of_one_page() -> None:
    text = "The first page.\n\nThe second page."
    parts = (TextPart(page=1, start=0, end=15), TextPart(page=2, start=17, end=len(text)))
    assert [(one.page, one.text) for one in split_document(text, 0, parts)] == [(1, "The first page."), (2, "The second page.")]


def test_the_rows_of_a_sheet_come_after_the_names_of_its_columns() -> None:
    rows = "\n".join(f"| item {number} | {number} |" for number in range(200))
    text = f"## Costs\n| name | cost |\n| --- | --- |\n{rows}"
    found = split_document(text, 0, (TextPart(sheet="Costs", start=0, end=len(text)),))
    assert len(found) > 2
    assert all("| name | cost |" in one.text for one in found)
    assert {one.sheet for one in found} == {"Costs"}
