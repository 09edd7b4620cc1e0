"""Rules of a tenant: what they watch for, and what they let through."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_contracts import Busy, TooLarge, Unavailable
from phronesis_contracts.constitution.insight import RuleHit
from phronesis_contracts.constitution.registry import TYPES
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_contracts.constitution.writes import GuardrailHit
from phronesis_graph.constitution.guardrails import (
    Comparisons,
    Rule,
    RuleCache,
    Subject,
    Understanding,
    Words,
    allow,
    parse_trigger,
    rule_of_node,
    subject_of,
)
from phronesis_graph.constitution.meaning import Judge, Wording
from tests.support.cases import for_each


def guardrail(text: str | None, severity: str = "high", id: str = "g-1", **more: Any) -> Rule:
    told = {"id": id, "type": "guardrail", "layer": "foundation", "title": "Rest", "status": "active"}
    found = rule_of_node(ConstitutionNode.model_validate({**told, "trigger": text, "severity": severity, **more}))
    assert found is not None
    return found


class NoSource:
    async def read(self, tenant: str) -> Sequence[ConstitutionNode]:
        return ()


class Literal:
    """A judge who takes words for what they are."""

    def because(self, wordings: Sequence[Wording], said: Mapping[str, Any]) -> list[str | None]:
        return [f"it speaks of {one.text}" if one.text in str(said).casefold() else None for one in wordings]


def find_hits(rules: Sequence[Rule], of: Subject, changed: frozenset[str] | None = None) -> tuple[RuleHit, ...]:
    cache = RuleCache(NoSource(), Understanding(lambda: cast(Judge, Literal())))
    return asyncio.run(cache.find_hits("acme", rules, of, changed))


def goes_off(text: str, **fields: Any) -> bool:
    found = parse_trigger(text)
    assert isinstance(found, Comparisons)
    return found.because(Subject(fields, {})) is not None


@for_each(
    ("text", "fields", "expected"),
    [
        ("effortHours > 40", {"effortHours": 40.5}, True),
        ("effortHours > 40", {"effortHours": 40.0}, False),
        ("effortHours >= 40", {"effortHours": 40}, True),
        ("effortHours > 40", {}, False),
        ("effortHours > 40", {"effortHours": "41"}, False),
        ("effortHours > 40", {"effortHours": True}, False),
        ("roi.total < 0", {"roi": {"total": -0.5}}, True),
        ("roi.total < 0", {"roi": {"total": 0.0}}, False),
        ("roi.total < -10.5", {"roi.total": -11}, True),
        ("budget > 1000", {"properties": {"budget": 1001}}, True),
        ("priority = 5 and effortHours < 1", {"priority": 5, "effortHours": 0.5}, True),
        ("priority = 5 and effortHours < 1", {"priority": 5, "effortHours": 1.5}, False),
        ("type = task && status != done", {"type": "task", "status": "todo"}, True),
        ("dueDate < 2026-01-01", {"dueDate": "2025-12-31"}, True),
        ("dueDate < 2026-01-01", {"dueDate": "2026-01-01"}, False),
        ("status == 'In Progress'", {"status": "in progress"}, True),
    ],
)
def test_a_trigger_compares_fields(text: str, fields: dict[str, Any], expected: bool) -> None:
    assert isinstance(parse_trigger(text), Comparisons)
    assert goes_off(text, **fields) is expected


@pytest.mark.parametrize("text", ["", "   ", "of the and", "?!"])
def test_a_trigger_that_says_nothing_never_goes_off(text: str) -> None:
    assert parse_trigger(text) is None


@given(st.text(max_size=200))
def test_any_text_is_a_trigger_or_none_and_is_never_run(text: str) -> None:
    found = parse_trigger(text)
    if found is not None:
        assert isinstance(found, Words | Comparisons)
        assert found.reads(frozenset()) is False


@pytest.mark.parametrize(
    ("severity", "expected"),
    [("block", True), ("Critical", True), ("high", True), ("medium", False), ("low", False), ("", False)],
)
def test_a_severe_rule_blocks_and_another_wants_to_be_named(severity: str, expected: bool) -> None:
    assert guardrail("gossip", severity).blocks is expected


def test_a_principle_is_a_rule_where_its_bag_says_when_it_is_broken() -> None:
    told = {"id": "p-1", "type": "principle", "layer": "foundation", "title": "Openness", "statement": "Say what you know"}
    assert rule_of_node(ConstitutionNode.model_validate(told)) is None
    found = rule_of_node(ConstitutionNode.model_validate({**told, "properties": {"trigger": "secret", "severity": "block"}}))
    assert found is not None
    assert (found.blocks, found.response) == (True, "Say what you know")


def test_what_blocks_is_refused_with_its_id_its_title_and_its_response() -> None:
    found = find_hits(
        [guardrail("effortHours > 40", response="Split it")], subject_of("task", {"title": "x", "effortHours": 45.0})
    )
    with pytest.raises(GuardrailHit) as caught:
        allow(found, ["g-1"])
    assert caught.value.detail == (
        "this is not allowed: guardrail g-1 ('Rest'), because effortHours is 45 (effortHours > 40); it says: Split it"
    )


def test_what_does_not_block_passes_once_it_is_named() -> None:
    found = find_hits([guardrail("gossip", "low")], subject_of("task", {"title": "A gossip"}))
    with pytest.raises(GuardrailHit) as caught:
        allow(found, ["g-2"])
    assert caught.value.field == "acknowledge"
    assert "g-1" in caught.value.detail
    assert allow(found, ["g-2", "g-1"]) == {"acknowledged": ("g-1",), "overridden": ()}
    assert allow(found, [], override=True) == {"acknowledged": (), "overridden": ("g-1",)}


def test_those_that_block_come_first() -> None:
    rules = [guardrail("gossip", "low", "a"), guardrail("gossip", "high", "b")]
    found = find_hits(rules, subject_of(None, {}, "a gossip"))
    assert [(hit.rule.id, hit.severity) for hit in found] == [("b", "block"), ("a", "acknowledge")]


def test_a_change_is_asked_about_where_it_touches_what_a_rule_reads() -> None:
    rules = [guardrail("gossip", id="words"), guardrail("effortHours > 40", id="hours")]
    of = subject_of("task", {"title": "gossip", "effortHours": 45.0})
    for changed, expected in (
        ({"status"}, []),
        ({"title"}, ["words"]),
        ({"effortHours"}, ["words", "hours"]),
        ({"provenance"}, []),
    ):
        assert [hit.rule.id for hit in find_hits(rules, of, frozenset(changed))] == expected


@pytest.mark.parametrize("field", ["title", "summary", "description", "narrative", "properties", "metadata"])
def test_words_are_looked_for_in_every_text_of_a_node(field: str) -> None:
    content: dict[str, Any] = {
        "title": "x",
        field: {"note": {"more": ["some gossip"]}} if field in ("properties", "metadata") else "some gossip",
    }
    assert len(find_hits([guardrail("gossip")], subject_of("goal", content))) == 1


def test_lists_of_texts_are_texts() -> None:
    assert (
        len(find_hits([guardrail("gossip")], subject_of("goal", {"title": "x", "successCriteria": ["by letter", "by gossip"]})))
        == 1
    )


def test_where_something_is_from_does_not_break_a_rule() -> None:
    content = {"title": "x", "provenance": {"note": "gossip"}}
    assert find_hits([guardrail("gossip")], subject_of("goal", content)) == ()


@pytest.mark.parametrize("severity", ["block", "low"])
def test_what_cannot_be_held_against_a_rule_in_words_is_refused_and_may_be_repeated(severity: str) -> None:
    opened = []

    def fail_once() -> Judge:
        opened.append(1)
        if len(opened) == 1:
            raise OSError("no model")
        return cast(Judge, Literal())

    async def check() -> None:
        cache = RuleCache(NoSource(), Understanding(fail_once))
        rules, of = [guardrail("gossip", severity)], subject_of("task", {"title": "Gossip"})
        with pytest.raises(Unavailable) as caught:
            await cache.find_hits("acme", rules, of)
        assert caught.value.retry_after == 1
        assert len(await cache.find_hits("acme", rules, of)) == 1

    asyncio.run(check())


def test_without_a_rule_in_words_nothing_is_loaded() -> None:
    def never() -> Judge:
        raise AssertionError("loaded")

    cache = RuleCache(NoSource(), Understanding(never))
    found = asyncio.run(
        cache.find_hits("acme", [guardrail("effortHours > 40")], subject_of("task", {"title": "x", "effortHours": 41}))
    )
    assert len(found) == 1


def test_a_rule_may_compare_type_and_layer() -> None:
    rules = [guardrail("layer = execution and type = decision")]
    assert [bool(find_hits(rules, subject_of(name, {}))) for name in TYPES] == [name == "decision" for name in TYPES]


async def test_what_is_too_long_to_be_read_in_time_is_refused_and_takes_nobodys_turn() -> None:
    cache = RuleCache(NoSource(), Understanding(lambda: cast(Judge, Literal())))
    with pytest.raises(TooLarge):
        await cache.find_hits(
            "acme", [guardrail("night work")], subject_of("task", {"title": "T", "properties": {"log": "x " * 40_000}})
        )


async def test_a_tenant_that_writes_much_leaves_every_second_turn_to_the_others() -> None:
    read: list[str] = []

    class Noting(Literal):
        def because(self, wordings: Sequence[Wording], said: Mapping[str, Any]) -> list[str | None]:
            read.append(str(said["title"]))
            return super().because(wordings, said)

    cache, rules = RuleCache(NoSource(), Understanding(lambda: cast(Judge, Noting()))), [guardrail("gossip")]

    async def write(tenant: str) -> None:
        await cache.find_hits(tenant, rules, subject_of("task", {"title": tenant}))

    await asyncio.gather(*(write("flood") for _ in range(12)), write("acme"))
    assert (len(read), read.index("acme") <= 2) == (13, True)


async def test_more_writes_of_a_tenant_than_may_wait_are_refused_for_a_moment_and_those_of_others_are_not() -> None:
    cache, rules = RuleCache(NoSource(), Understanding(lambda: cast(Judge, Literal()))), [guardrail("gossip")]
    subject = subject_of("task", {"title": "x"})
    writes = [cache.find_hits(tenant, rules, subject) for tenant in (*["flood"] * 20, "acme")]
    came = await asyncio.gather(*writes, return_exceptions=True)
    assert [isinstance(one, Busy) for one in came] == [*[False] * 16, *[True] * 4, False]
