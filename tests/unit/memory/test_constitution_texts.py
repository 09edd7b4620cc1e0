"""The text of a node's vector: what is in it, in which order, and what is not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from phronesis_contracts.constitution.registry import TYPES, Layer, Lifecycle, Tier
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_memory.constitution.nodes import MAX_CHARACTERS, snapshot_of, split_text, text_of_node
from tests.support.cases import for_each

ALL: dict[str, Any] = {
    "summary": "S", "description": "D", "content": "C", "statement": "St", "priority": 4, "rationale": "Ra",
    "trigger": "Tr", "response": "Re", "severity": "Se", "narrative": "Na", "horizon": "Ho", "deadline": "2026-12-01",
    "target": "Ta", "successCriteria": ["one", "two"], "outcome": "Ou", "timebox": "Ti", "current": "Cu",
    "dueDate": "2026-11-22", "likelihood": 0.4, "reasoning": "Rs", "roi": {"total": 2.0}, "decidedAt": "2026-01-01",
    "effortHours": 3, "startsAt": "2026-01-02", "endsAt": "2026-01-03", "unit": "kg", "observedAt": "2026-01-04",
    "value": 7, "occurredAt": "2026-01-05", "insightType": "In", "confidence": 0.75, "pattern": "Pa", "url": "U",
    "noise": "N",
}  # fmt: skip
"""Every field that any type has, and one that none has."""
PLAIN = ("T", "S", "D", "content: C")
GOLDEN: dict[str, tuple[str, ...]] = {
    "value": ("value", "T", "S", "D", "statement: St", "priority: 4"),
    "principle": ("principle", "T", "S", "D", "statement: St", "rationale: Ra"),
    "guardrail": ("guardrail", "T", "S", "D", "statement: St", "trigger: Tr", "response: Re", "severity: Se"),
    "policy": ("policy", *PLAIN),
    "context": ("context", *PLAIN),
    "vision": ("vision", "T", "S", "D", "narrative: Na", "horizon: Ho"),
    "business": ("business", *PLAIN),
    "goal": (
        "goal", "T", "S", "D", "narrative: Na", "target: Ta", "deadline: 2026-12-01", 'successCriteria: ["one", "two"]',
    ),
    "season": ("season", *PLAIN),
    "strategy": ("strategy", "T", "S", "D", "narrative: Na", "timebox: Ti"),
    "objective": ("objective", "T", "S", "D", "narrative: Na"),
    "keyResult": ("key result", *PLAIN),
    "initiative": ("initiative", *PLAIN),
    "milestone": ("milestone", *PLAIN),
    "risk": ("risk", *PLAIN),
    "project": ("project", *PLAIN),
    "area": ("area", *PLAIN),
    "system": ("system", *PLAIN),
    "process": ("process", *PLAIN),
    "decision": ("decision", "T", "S", "D", "reasoning: Rs", 'roi: {"total": 2}', "decidedAt: 2026-01-01"),
    "task": ("task", *PLAIN),
    "action": ("action", *PLAIN),
    "event": ("event", *PLAIN),
    "signal": ("signal", *PLAIN),
    "insight": ("insight", "T", "S", "D", "insightType: In", "confidence: 0.75"),
    "pattern": ("pattern", "T", "S", "D", "pattern: Pa", "confidence: 0.75"),
    "evidence": ("evidence", *PLAIN),
    "source": ("source", *PLAIN),
    "note": ("note", *PLAIN),
}  # fmt: skip
"""The lines of each type that is embedded, from a node that has every field."""
NEVER = {"human", "ai", "timeBlock", "workSession", "metric", "observation"}


def node(type: str, title: str = "T", **fields: Any) -> ConstitutionNode:
    return ConstitutionNode.model_validate(
        {"id": "n", "type": type, "layer": TYPES[type].layer, "title": title, "status": "active", **fields}
    )


def text(type: str, title: str = "T", **fields: Any) -> str:
    return text_of_node(node(type, title, **fields), TYPES[type])


@pytest.mark.req("O-292", "O-298", "O-300", "C-76", "C-77")
@for_each("type", GOLDEN)
def test_a_text_has_the_fields_of_its_type_in_their_order_and_no_others(type: str) -> None:
    assert text(type, **ALL) == "\n".join(GOLDEN[type])


@pytest.mark.req("O-292", "C-17")
def test_every_type_is_embedded_but_six() -> None:
    assert {name for name, kind in TYPES.items() if kind.tier is None} == NEVER
    assert set(GOLDEN) == set(TYPES) - NEVER


@pytest.mark.req("O-292", "O-344")
@pytest.mark.parametrize("type", sorted(NEVER))
def test_a_type_that_is_never_embedded_has_no_text_to_send(type: str) -> None:
    assert snapshot_of(node(type, **ALL)).body == ""


@pytest.mark.req("O-298")
def test_a_node_with_only_a_title_has_two_lines() -> None:
    assert text("keyResult", "Ten harvests") == "key result\nTen harvests"


@pytest.mark.req("O-299")
def test_a_long_text_is_cut_at_6000_characters_and_stays_valid() -> None:
    cut = text("note", description="é🌱" * 3_500)
    assert len(cut) == MAX_CHARACTERS == 6_000
    assert cut.encode().decode() == cut


@pytest.mark.req("O-301", "C-78")
def test_structured_values_read_the_same_whatever_the_order_of_their_keys() -> None:
    one, other = {"b": 1, "a": [2.0, "ü"]}, {"a": [2, "ü"], "b": 1.0}
    assert text("goal", successCriteria=one) == text("goal", successCriteria=other)
    assert text("goal", successCriteria=one).endswith('successCriteria: {"a": [2, "ü"], "b": 1}')


def test_a_value_of_several_lines_stands_on_one() -> None:
    assert text("principle", rationale="one\n two\x00three\ud800") == "principle\nT\nrationale: one two three?"


def test_a_field_that_the_type_does_not_declare_is_found_in_the_bag() -> None:
    assert text("risk", properties={"content": "C", "other": "O"}) == "risk\nT\ncontent: C"


@pytest.mark.req("O-302")
def test_a_node_without_any_words_has_no_text() -> None:
    assert text("note", " ", content="") == ""
    assert snapshot_of(node("note", " ")).tokens == 0


@pytest.mark.req("O-315")
def test_what_is_not_in_the_text_does_not_change_its_hash() -> None:
    hashes = {snapshot_of(node("value", **more)).text_hash for more in ({}, {"metadata": {"a": 1}}, {"noise": 1})}
    assert len(hashes) == 1


def test_memory_keeps_of_a_node_what_it_needs() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    facts = snapshot_of(
        node(
            "task", description="D", status="done", version=3, createdAt=at, updatedAt=at, effortHours=2.0, provenance={"a": 1}
        )
    )
    assert (facts.id, facts.type, facts.layer, facts.tier) == ("n", "task", Layer.EXECUTION, Tier.P3)
    assert (facts.lifecycle, facts.version, facts.born, facts.changed_at) == (Lifecycle.ACTIVE, 3, at, at)
    assert facts.content == {"title": "T", "description": "D", "status": "done", "effortHours": 2}
    assert (facts.body, facts.tokens) == ("task\nT\nD", 4)


def test_a_short_text_goes_to_the_model_as_sentences_and_a_long_one_in_pieces_that_name_the_node() -> None:
    short, long = text("note", content="few words"), text("note", "Soil", content="A sentence of five words. " * 100)
    assert split_text(short) == ["T. content: few words."]
    assert len(split_text(long)) == 4
    assert all(part.startswith("note: Soil. ") for part in split_text(long))


def test_the_model_is_not_given_the_type_and_the_figures_of_a_node() -> None:
    told = text("guardrail", "Ask first", trigger="A gift.", response="Say no.", severity="block")
    assert split_text(told) == ["Ask first. trigger: A gift. response: Say no."]
