"""From a model's words to values."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phronesis_orchestrator.models.parsing import (
    COMPOSED_SCHEMA,
    MAX_REASONING,
    MAX_REPLY,
    parse_classified,
    parse_composed,
    parse_routed,
    salvage,
)
from phronesis_orchestrator.models.reasoner import Classification, ComposedReply, Fault, RouteDecision


@pytest.mark.req("D-056")
def test_phrases_are_trimmed_without_repeats_and_at_most_eight() -> None:
    phrases = ", ".join(f'"  Phrase {number % 12} "' for number in range(50))
    routed = parse_routed(f'{{"decision": "query_memory", "key_phrases": ["PHRASE 0", {phrases}]}}')
    assert isinstance(routed, RouteDecision)
    assert routed.key_phrases == ("PHRASE 0", *(f"Phrase {number}" for number in range(1, 8)))


@pytest.mark.req("D-051", "D-149", "D-163")
def test_cypher_in_a_phrase_is_text_like_any_other() -> None:
    routed = parse_routed('{"decision": "query_memory", "key_phrases": ["MATCH (n) DETACH DELETE n"]}')
    assert routed == RouteDecision(decision="query_memory", key_phrases=("MATCH (n) DETACH DELETE n",))


@pytest.mark.req("D-111")
def test_the_reason_of_a_directive_is_cut_to_its_limit() -> None:
    composed = parse_composed(
        f'{{"user_response": " Yes. ", "next_agent_directive": "focused_analyst", "directive_reasoning": "{"x" * 900}"}}'
    )
    assert isinstance(composed, ComposedReply)
    assert (composed.user_response, composed.directive_reasoning) == ("Yes.", "x" * MAX_REASONING)


@pytest.mark.parametrize("said", ["[" * 100_000, '{"decision": NaN}', '{"a": 1e999}', "null", '"text"', "{}", "\x00"])
def test_json_made_to_hurt_is_a_fault(said: str) -> None:
    assert isinstance(parse_routed(said), Fault)


@settings(deadline=None)
@given(st.text())
def test_any_words_give_a_value_or_a_fault(said: str) -> None:
    assert isinstance(parse_composed(said), ComposedReply | Fault)
    assert isinstance(parse_routed(said), RouteDecision | Fault)


@pytest.mark.req("D-140")
@pytest.mark.parametrize(
    ("said", "saved"),
    [
        ('{"user_response": "It stores waste.", "next_agent_dir', "It stores waste."),
        ('Here you go: {"user_response": "A \\"quoted\\" word\\nand é"', 'A "quoted" word\nand é'),
        ('{"user_response": "Cut in the mid', "Cut in the mid"),
        ('{"user_response": "Fine.", "directive_reasoning": 3}', "Fine."),
        ('{"user_response": "  "}', None),
        ('{"user_response": ["no"]}', None),
        ('{"reply": "no"}', None),
        ("I am sorry", None),
        ("", None),
    ],
)
def test_a_reply_is_saved_from_an_answer_that_is_no_good_as_a_whole(said: str, saved: str | None) -> None:
    assert salvage(said) == saved


@pytest.mark.req("D-109")
def test_the_schema_asks_for_all_three_fields() -> None:
    assert COMPOSED_SCHEMA["required"] == ["user_response", "next_agent_directive", "directive_reasoning"]


@pytest.mark.parametrize(
    "said",
    [
        '{"decision": "query_memory", "decision": "respond_directly"}',
        '{"decision": "query_memory", "more": {"a": 1, "a": 2}}',
    ],
)
def test_an_object_with_a_key_twice_is_a_fault(said: str) -> None:
    assert parse_routed(said) == Fault(said, "The answer is not JSON: a key stands twice in an object")


def test_what_the_store_cannot_hold_is_left_out_of_every_text() -> None:
    assert parse_routed('{"decision": "query_memory", "key_phrases": ["a\\u0000b"]}') == RouteDecision(
        decision="query_memory", key_phrases=("ab",)
    )
    assert parse_composed('{"user_response": "a\\u0000b"}') == ComposedReply(user_response="ab")
    assert parse_routed("\0no") == Fault("no", "The answer is not JSON: expected value at line 1 column 1")
    assert salvage('{"user_response": "a\\u0000b\\ud800c", "x') == "abc"


def test_a_reply_is_never_longer_than_its_limit() -> None:
    said = f'{{"user_response": "{"x" * 60_000}"}}'
    assert isinstance(parse_composed(said), Fault)
    assert salvage(said) == "x" * MAX_REPLY


@pytest.mark.parametrize(
    "said",
    [
        'Sure, here it is:\n{"decision": "query_memory", "key_phrases": ["heat"]}\nI hope that helps.',
        'My answer:\n```json\n{"decision": "query_memory", "key_phrases": ["heat"]}\n```\nDone.',
        '{"decision": "query_memory", "key_phrases": ["heat",],}',
        '{"decision": "Query Memory", "key_phrases": ["heat"]}',
        '{"decision": "query", "key_phrases": ["heat"]}',
        '{"decision": "query_memroy", "key_phrases": ["heat"]}',
        '{"decision": "query_memory", "key_phrases": ["heat"]} {"decision": "respond_directly"}',
    ],
)
def test_a_slip_that_can_mean_one_thing_alone_costs_no_repair(said: str) -> None:
    assert parse_routed(said) == RouteDecision(decision="query_memory", key_phrases=("heat",))


@pytest.mark.parametrize("said", ['{"decision": "run_cypher"}', '{"decision": "re"}', '{"decision": 5}', "{{name}}", "{ ,,, }"])
def test_what_can_mean_nothing_or_anything_is_a_fault(said: str) -> None:
    assert isinstance(parse_routed(said), Fault)


def test_a_comma_and_a_brace_inside_a_text_stay() -> None:
    assert parse_composed('So: {"user_response": "a, ] and \\"}\\", b",}') == ComposedReply(user_response='a, ] and "}", b')


@pytest.mark.parametrize(("said", "mode"), [("a", "A"), ("Mode D", "D"), ("E: one detail is missing", "E"), ("J.", "J")])
def test_the_letter_of_a_mode_is_known_beside_its_name(said: str, mode: str) -> None:
    found = parse_classified(json.dumps({"mode": said, "answer": "Which one?"}))
    assert isinstance(found, Classification)
    assert found.mode == mode


@pytest.mark.parametrize("said", ["I think it is a greeting", "ab", "K", "", None, ["A"]])
def test_what_names_no_mode_is_none(said: object) -> None:
    assert isinstance(parse_classified(json.dumps({"mode": said, "answer": "x"})), Fault)
