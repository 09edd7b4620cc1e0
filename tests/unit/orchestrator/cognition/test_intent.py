"""What a message is, by rules and as a model says it."""

from __future__ import annotations

import json

import pytest

from phronesis_orchestrator.agents.cognition.preparation import classify_intent
from phronesis_orchestrator.agents.cognition.thought import CONTENT_WRITER, DEEP, LIGHT, Intent, Tier
from phronesis_orchestrator.models.language_model import models_by_tier
from phronesis_orchestrator.models.parsing import parse_decided, parse_look_ahead, parse_reflected
from phronesis_orchestrator.models.reasoner import Fault, IntentDecision, LookAhead, Reflection
from tests.support.cases import for_each


@pytest.mark.req("V-012", "V-C03")
def test_there_are_four_tiers_two_light_and_two_deep() -> None:
    assert [tier.value for tier in Tier] == ["flash", "haiku", "sonnet", "quality"]
    assert (LIGHT | DEEP, LIGHT & DEEP) == (frozenset(Tier), frozenset())


@pytest.mark.req("V-012", "NC-004", "V-C03")
def test_a_tier_has_the_model_of_the_settings_whatever_its_name() -> None:
    assert dict(models_by_tier("gemini-quality", "a-flash-model")) == {
        Tier.FLASH: "gemini-quality",
        Tier.HAIKU: "gemini-quality",
        Tier.SONNET: "a-flash-model",
        Tier.QUALITY: "a-flash-model",
    }


@pytest.mark.req("V-013", "V-009")
@for_each(
    ("text", "found"),
    [
        ("Hello!", Intent(Tier.FLASH, action=False)),
        ("Thanks a lot", Intent(Tier.FLASH, action=False)),
        ("Remind me to call Ann tomorrow", Intent(Tier.FLASH)),
        ("Could you remind me at nine?", Intent(Tier.FLASH)),
        ("What time is it?", Intent(Tier.FLASH)),
        ("What\u2019s the date today?", Intent(Tier.FLASH)),
        ("Who owns the archive project?", Intent(Tier.HAIKU)),
        ("List my open tasks", Intent(Tier.HAIKU)),
        ("I'm so tired", Intent(Tier.HAIKU, action=False)),
        ("Compare the costs of both projects", Intent(Tier.SONNET)),
        ("Why did the project slip?", Intent(Tier.SONNET)),
        ("Post on LinkedIn about our results", Intent(Tier.SONNET, persona=CONTENT_WRITER, topic=True)),
        ("Give me a comprehensive view of all risks", Intent(Tier.QUALITY)),
    ],
)
def test_rules_know_the_kind_of_a_message(text: str, found: Intent) -> None:
    assert classify_intent(text) == found


@pytest.mark.req("V-108")
@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("write about sea ice", True),
        ("Draft an article on heat pumps", True),
        ("reschedule my meeting", False),
        ("reschedule my meeting on Monday about the budget", False),
        ("post it on LinkedIn", False),
    ],
)
def test_a_text_on_a_topic_is_told_from_other_work(text: str, topic: bool) -> None:
    assert classify_intent(text).topic is topic


def test_an_attachment_is_work_even_beside_a_greeting() -> None:
    assert classify_intent("hello", attached=True) == Intent(Tier.SONNET)


@pytest.mark.parametrize("text", ["what is the time complexity of this?", "remind me" + " of it" * 50])
def test_what_only_begins_like_a_simple_message_is_none(text: str) -> None:
    assert classify_intent(text).tier is not Tier.FLASH


@pytest.mark.req("V-012", "V-016")
def test_what_a_model_says_is_read() -> None:
    told = {"tier": "quality", "branch": "action", "persona": "content_writer", "topic": True}
    assert parse_decided(json.dumps(told)) == IntentDecision(tier=Tier.QUALITY, action=True, persona=CONTENT_WRITER, topic=True)
    assert parse_decided(json.dumps({**told, "persona": "pirate"})) == IntentDecision(
        tier=Tier.QUALITY, action=True, topic=True
    )


@pytest.mark.req("V-012")
@pytest.mark.parametrize("said", ["", "{}", '{"tier": "opus", "branch": "action"}', '{"tier": "flash"}', '{"tier": ["flash"]}'])
def test_a_decision_without_a_known_tier_is_a_fault(said: str) -> None:
    assert isinstance(parse_decided(said), Fault)


@pytest.mark.req("V-093", "V-094")
def test_a_look_ahead_has_four_labelled_parts_and_three_actions_at_most() -> None:
    ahead = parse_look_ahead(json.dumps({"know": "k", "need": "n", "approach": list("abcde"), "risk": "r"}))
    assert isinstance(ahead, LookAhead)
    assert ahead.text() == "KNOW: k\nNEED: n\nAPPROACH: 1. a 2. b 3. c\nRISK: r"


@pytest.mark.req("V-100", "V-101")
@pytest.mark.parametrize("said", ["", "{}", '{"know": " ", "approach": []}', "I think that"])
def test_a_look_ahead_of_nothing_is_a_fault_and_has_no_text(said: str) -> None:
    assert isinstance(parse_look_ahead(said), Fault)
    assert LookAhead().text() == ""


@pytest.mark.req("V-044")
@pytest.mark.parametrize(
    ("score", "kept"), [(0.75, 0.75), (1, 1.0), (0, 0.0), (1.2, None), (-1, None), ("good", None), (True, None), (None, None)]
)
def test_a_score_is_a_number_from_nothing_to_one_or_none(score: object, kept: float | None) -> None:
    assert parse_reflected(json.dumps({"score": score, "answer": None})) == Reflection(score=kept)
