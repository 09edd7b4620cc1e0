"""How formed facts are judged: by the words of what is expected, of whom, and how often."""

from __future__ import annotations

from typing import Any

import pytest

from evals.formed import judge, says, summary

CONVERSATION = {
    "id": "c1",
    "messages": [],
    "facts": [
        {"about": "user", "says": [["lives", "living"], ["bath"]], "kind": "told"},
        {"about": "Vera", "says": [["vera", "sister"], ["bees"]], "kind": "told"},
    ],
    "never": [{"says": [["gold"]], "why": "system"}],
}


def fact(text: str, subject: str = "user") -> dict[str, Any]:
    return {"text": text, "subject": subject}


@pytest.mark.parametrize(
    ("text", "groups", "said"),
    [
        ("The user lives in Bath.", [["live", "lives"], ["bath"]], True),
        ("The user has a bathroom.", [["bath"]], False),
        ("The user doesn’t eat meat", [["doesn't"], ["meat"]], True),
        ("The user lives in Bath.", [["lives"], ["wells"]], False),
    ],
)
def test_a_text_says_what_has_a_word_of_each_group(text: str, groups: list[list[str]], said: bool) -> None:
    assert says(text, groups) is said


@pytest.mark.parametrize(
    ("facts", "outcomes", "missed"),
    [
        ([fact("The user lives in Bath.")], ["right"], ("vera + bees",)),
        ([fact("The user lives in Bath."), fact("The user said: living in Bath.")], ["right", "duplicate"], ("vera + bees",)),
        ([fact("The user's sister keeps bees.", "user's sister")], ["right"], ("lives + bath",)),
        ([fact("Vera lives in Bath.", "Vera")], ["wrong person"], ("lives + bath", "vera + bees")),
        ([fact("The user is a gold customer.")], ["never"], ("lives + bath", "vera + bees")),
        ([fact("The user is tired.")], ["not expected"], ("lives + bath", "vera + bees")),
    ],
)
def test_a_fact_is_judged_by_what_is_expected(
    facts: list[dict[str, Any]], outcomes: list[str], missed: tuple[str, ...]
) -> None:
    judged = judge(CONVERSATION, facts)
    assert ([one.outcome for one in judged.formed], judged.missed) == (outcomes, missed)


def test_the_summary_counts_a_duplicate_as_true_and_apart() -> None:
    judged = judge(CONVERSATION, [fact("The user lives in Bath."), fact("The user said: living in Bath."), fact("It rains.")])
    told = {line.partition(":")[0]: line.rpartition(", ")[2] for line in summary([judged])[1:]}
    assert (told["right (precision)"], told["duplicates"], told["formed of the expected (recall)"]) == (
        "2 of 3",
        "1 of 3",
        "1 of 2",
    )
