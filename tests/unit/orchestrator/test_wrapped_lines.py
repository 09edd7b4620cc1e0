"""Sentences of texts whose lines were broken to fit a page."""

from __future__ import annotations

from phronesis_orchestrator.agents.text import sentences


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
