"""How a message sounds, by rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_orchestrator.agents.cognition.preparation import detect_tone
from phronesis_orchestrator.agents.cognition.thought import Tone, ToneLabel
from tests.support.cases import for_each


@pytest.mark.req("V-074", "V-075", "V-C11")
@for_each(
    ("text", "label", "urgency"),
    [
        ("I need this ASAP.", ToneLabel.URGENT, 0.9),
        ("This is an emergency!", ToneLabel.URGENT, 1.0),
        ("Post it right now", ToneLabel.URGENT, 0.8),
        ("No rush, it is not urgent.", ToneLabel.NEUTRAL, 0.0),
        ("Please do it today", ToneLabel.NEUTRAL, 0.4),
        ("It keeps failing and I am fed up", ToneLabel.FRUSTRATED, 0.0),
        ("Thank you, that was great", ToneLabel.POSITIVE, 0.0),
        ("That is not good, I am worried", ToneLabel.NEGATIVE, 0.0),
        ("I am not happy with it", ToneLabel.NEGATIVE, 0.0),
        ("I don\u2019t hate it", ToneLabel.POSITIVE, 0.0),
        ("Show the projects of Health", ToneLabel.NEUTRAL, 0.0),
        ("The insurgent was quicklyish", ToneLabel.NEUTRAL, 0.0),
    ],
)
def test_a_message_sounds_as_its_words_say(text: str, label: ToneLabel, urgency: float) -> None:
    assert detect_tone(text) == Tone(label, urgency)


@pytest.mark.req("V-075", "V-079")
def test_a_tone_is_told_with_its_urgency_in_tenths() -> None:
    assert str(Tone(ToneLabel.URGENT, 0.9)) == "urgent (urgency=0.9)"
    assert str(detect_tone("do it, urgently")) == "urgent (urgency=0.9)"


@pytest.mark.req("V-077", "V-C11")
@pytest.mark.parametrize("text", ["", "   ", "?!?", "\u0645\u0631\u062d\u0628\u0627"])
def test_a_message_that_tells_nothing_is_neutral(text: str) -> None:
    assert detect_tone(text) == Tone(ToneLabel.NEUTRAL, 0.0)


@pytest.mark.req("V-077")
@given(st.text(max_size=3_000))
def test_urgency_is_a_tenth_between_nothing_and_one_for_any_text(text: str) -> None:
    found = detect_tone(f"asap {text}!!!!")
    assert 0.0 <= found.urgency <= 1.0
    assert found.urgency == round(found.urgency, 1)
    assert detect_tone(text) == detect_tone(text)
