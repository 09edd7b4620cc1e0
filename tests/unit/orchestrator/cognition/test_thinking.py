"""The stages before the work: what is asked of whom for which tier, in which order, and what a failure costs."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

import pytest

from phronesis_contracts import ModelRateLimited, ModelUnavailable, Unavailable
from phronesis_orchestrator.agents.cognition.preparation import (
    apply_decision,
    calibrations,
    decide_intent,
    detect_tone_and_intent,
    prepare_plan,
    reflect_on_draft,
)
from phronesis_orchestrator.agents.cognition.state import CAPABILITIES, COGNITION
from phronesis_orchestrator.agents.cognition.thought import CONTENT_WRITER, HEADERS, Intent, Section, Tier
from phronesis_orchestrator.ledger.usage import CallUsage
from phronesis_orchestrator.models.reasoner import Answer, CallFailed, Draft, IntentDecision, LookAhead, Reflection, TurnContext
from tests.support.cognition import STRATEGY, FakeExperience, FakeThinker, a_turn, an_agent, running
from tests.unit.orchestrator.fakes import FakeJournal

from .test_reasoning import POST

TASK = "Compare the two leases and delete the node of the worse one"


def of(intent: Intent, text: str = TASK, **more: Any) -> TurnContext:
    """A turn of this intent."""
    turn = a_turn(text, **more)
    return replace(turn, thought=replace(turn.thought, intent=intent))


async def plan_of(hand: Any, thinker: Any, turn: TurnContext) -> str:
    return (await prepare_plan(hand, thinker, turn, (POST,))).thought.plan


@pytest.mark.req("V-014", "V-095", "V-181")
@pytest.mark.parametrize(("tier", "calls"), [("flash", 0), ("haiku", 0), ("sonnet", 1), ("quality", 1)])
async def test_only_deep_tiers_look_ahead(tier: str, calls: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    thinker = FakeThinker()
    plan = await plan_of(running(), thinker, of(Intent(Tier(tier))))
    assert thinker.calls == ["preflight"] * calls
    assert ("PRE-FLIGHT REASONING" in plan, "PRE-FLIGHT REASONING" in caplog.text) == (bool(calls), bool(calls))


@pytest.mark.req("V-015", "V-096", "V-C04")
@pytest.mark.parametrize("tier", list(Tier))
async def test_conversation_has_no_look_ahead_no_recall_and_no_block(tier: Tier) -> None:
    thinker, memory = FakeThinker(), FakeExperience()
    assert await plan_of(running(memory), thinker, of(Intent(tier, action=False))) == ""
    assert (thinker.calls, memory.asked) == ([], [])


@pytest.mark.req("V-009", "V-188", "V-130")
@pytest.mark.parametrize("text", ["Remind me to call Ann", "What time is it?", "Hello!"])
async def test_a_flash_turn_asks_nobody_anything(text: str) -> None:
    thinker, memory = FakeThinker(), FakeExperience()
    hand = running(memory)
    turn = await prepare_plan(
        hand, thinker, await decide_intent(hand, thinker, detect_tone_and_intent(hand, a_turn(text))), (POST,)
    )
    assert (thinker.calls, memory.asked) == ([], [])
    assert turn.thought.intent is not None
    assert turn.thought.intent.tier is Tier.FLASH
    assert ("REASONING CONTEXT" in turn.thought.plan) is turn.thought.intent.action


@pytest.mark.req("V-005", "V-C01")
async def test_a_flash_turn_is_told_the_records_that_are_at_hand() -> None:
    memory = FakeExperience()
    hand = running(memory)
    hand.cognition.records.put(hand.claim.who, (replace(memory.records[0], name="linkedin"),))
    assert "linkedin: 85% success (20 uses)" in await plan_of(hand, FakeThinker(), of(Intent(Tier.FLASH)))
    assert memory.asked == []


@pytest.mark.req("V-085", "V-086", "V-189", "V-180", "V-167", "V-087", "V-170")
async def test_every_action_has_the_block_with_no_model_asked_for_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    texts = [
        f"{verb} the report of {month}" for verb in ("Publish", "Read", "Send", "Move", "Sum up") for month in ("May", "June")
    ]
    thinker = FakeThinker()
    for text in texts:
        hand = running()
        plan = await plan_of(hand, thinker, of(Intent(Tier.HAIKU), text))
        assert plan.count("REASONING CONTEXT") == 1
        assert "HIGH — linkedin post_text is irreversible" in plan
    assert thinker.calls == []
    assert caplog.text.count("REASONING CONTEXT") == 10
    assert "report of" not in caplog.text
    assert "linkedin" not in caplog.text


@pytest.mark.req("V-018", "V-092", "V-105", "V-C02")
async def test_what_memory_knows_is_asked_side_by_side_before_the_look_ahead() -> None:
    seen: list[str] = []

    class Watched(FakeExperience):
        async def _given(self, name: str, who: Any) -> Any:
            seen.append(f"{name} begins")
            await asyncio.sleep(0)
            seen.append(f"{name} ends")
            return await super()._given(name, who)

    class Ahead(FakeThinker):
        async def look_ahead(self, turn: TurnContext) -> Answer[LookAhead]:
            seen.append("preflight")
            return await super().look_ahead(turn)

    plan = await plan_of(running(Watched()), Ahead(), of(Intent(Tier.SONNET)))
    assert [one.partition(" ")[2] for one in seen] == ["begins"] * 3 + ["ends"] * 3 + [""]
    assert [section for section, header in HEADERS.items() if header in plan] == [
        Section.EPISODES, Section.STRATEGIES, Section.REASONING, Section.PREFLIGHT,
    ]  # fmt: skip


@pytest.mark.req("V-109", "V-130", "V-167", "V-C14", "V-C15")
async def test_strategies_are_recalled_once_and_told_to_the_look_ahead_and_the_work(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    memory, thinker = FakeExperience(), FakeThinker()
    plan = await plan_of(running(memory), thinker, of(Intent(Tier.QUALITY)))
    (given,) = thinker.given
    assert memory.asked.count("strategies") == 1
    assert "PROVEN STRATEGIES" in plan
    assert "PROVEN STRATEGIES" in given.thought.plan
    assert "EPISODIC RECALL" not in given.thought.plan
    assert "PROVEN STRATEGIES: 1 lines" in caplog.text


@pytest.mark.req("V-109")
async def test_two_strategies_are_told_at_most_where_an_operator_says_nothing() -> None:
    plan = await plan_of(running(FakeExperience(strategies=(STRATEGY,) * 5)), FakeThinker(), of(Intent(Tier.QUALITY)))
    assert plan.count(STRATEGY.approach) == 2


async def test_strategies_that_an_operator_switched_off_are_not_asked_for() -> None:
    memory = FakeExperience()
    plan = await plan_of(running(memory, strategies=0), FakeThinker(), of(Intent(Tier.QUALITY)))
    assert ("strategies" in memory.asked, "PROVEN STRATEGIES" in plan) == (False, False)


@pytest.mark.req("V-016", "V-107", "V-045", "V-C08")
async def test_the_persona_that_writes_differs_in_style_and_in_a_look_back_alone() -> None:
    asked, calls = [], []
    for persona in (None, CONTENT_WRITER):
        memory, thinker = FakeExperience(), FakeThinker()
        hand = running(memory)
        turn = await prepare_plan(hand, thinker, of(Intent(Tier.SONNET, persona=persona)), (POST,))
        await reflect_on_draft(hand, thinker, turn, Draft(answer="A draft."))  # type: ignore[arg-type]  # only the look back is asked
        assert ("STYLE EXAMPLES" in turn.thought.plan) is (persona is not None)
        asked.append(set(memory.asked))
        calls.append(thinker.calls)
    assert asked[1] - asked[0] == {"style"}
    assert calls == [["preflight"], ["preflight", "reflect"]]


@pytest.mark.req("V-108")
@pytest.mark.parametrize(("text", "told"), [("write about sea ice", True), ("reschedule my meeting", False)])
async def test_a_text_on_a_topic_has_the_research_directive(text: str, told: bool) -> None:
    hand = running()
    turn = detect_tone_and_intent(hand, a_turn(text))
    assert ("RESEARCH DIRECTIVE\nFind facts first." in await plan_of(hand, FakeThinker(), turn)) is told


@pytest.mark.req("V-099", "V-173", "V-186", "V-100", "V-C13")
async def test_a_look_ahead_that_hangs_is_stopped_at_its_limit() -> None:
    thinker = FakeThinker(ahead=None)
    hand = running(preflight_limit=0.05)
    async with asyncio.timeout(30):
        plan = await plan_of(hand, thinker, of(Intent(Tier.SONNET)))
    assert ("PRE-FLIGHT" in plan, "REASONING CONTEXT" in plan, thinker.stopped) == (False, True, True)
    assert hand.degraded == ["preflight"]
    assert running().cognition.settings.preflight_limit == 3.0


@pytest.mark.req("V-100", "V-101", "V-102", "V-172", "X-C10")
@pytest.mark.parametrize(
    "ahead",
    [
        CallFailed(ModelUnavailable("broken"), CallUsage(model_calls=1, input_tokens=7)),
        CallFailed(ModelRateLimited("429"), CallUsage(model_calls=1, input_tokens=7)),
        Unavailable("no"),
        Answer(None),
        LookAhead(),
        LookAhead(approach=("  ",)),
    ],
)
async def test_a_look_ahead_that_fails_is_not_asked_again_and_costs_the_turn_nothing_else(ahead: Any) -> None:
    journal, thinker = FakeJournal(), FakeThinker(ahead=ahead)
    hand = running(journal=journal)
    plan = await plan_of(hand, thinker, of(Intent(Tier.SONNET)))
    assert "PRE-FLIGHT" not in plan
    assert "REASONING CONTEXT" in plan
    again = await plan_of(running(journal=journal), thinker, of(Intent(Tier.SONNET)))
    assert (again, thinker.calls) == (plan, ["preflight"])
    assert hand.steps.spent.input_tokens == (7 if isinstance(ahead, CallFailed) else 0)


@pytest.mark.req("V-111", "V-134")
@pytest.mark.parametrize("part", ["episodes", "strategies", "records", "style"])
@pytest.mark.parametrize("error", [Unavailable("away"), ValueError("broken"), None])
async def test_a_part_of_memory_that_fails_or_hangs_is_left_out_and_the_others_stay(part: str, error: Exception | None) -> None:
    memory = FakeExperience(hangs=frozenset({part})) if error is None else FakeExperience(**{part: error})  # type: ignore[arg-type]
    hand = running(memory, recall_limit=0.05)
    plan = await plan_of(hand, FakeThinker(), of(Intent(Tier.SONNET, persona=CONTENT_WRITER)))
    there = {
        "episodes": "EPISODIC RECALL",
        "strategies": "PROVEN STRATEGIES",
        "style": "STYLE EXAMPLES",
        "records": "Reliability",
    }
    hand.cognition.records.put(hand.claim.who, ())
    assert {name for name, header in there.items() if header in plan} == set(there) - {part, "records"}
    assert hand.degraded == [part]


@pytest.mark.req("V-011", "V-012")
async def test_a_model_says_the_tier_and_rules_do_where_it_fails() -> None:
    said = IntentDecision(tier=Tier.QUALITY, action=True)
    hand, thinker = running(), FakeThinker(decides=said)
    turn = await decide_intent(hand, thinker, detect_tone_and_intent(hand, a_turn(TASK)))
    assert (turn.thought.intent, thinker.calls) == (Intent(Tier.QUALITY), ["decide"])
    hand, thinker = running(), FakeThinker(decides=CallFailed(ModelUnavailable("no"), CallUsage()))
    turn = await decide_intent(hand, thinker, detect_tone_and_intent(hand, a_turn(TASK)))
    assert (turn.thought.intent, hand.degraded) == (Intent(Tier.SONNET), ["intent"])


@pytest.mark.req("V-012")
def test_what_a_loops_own_call_said_counts_unless_rules_saw_a_simple_message() -> None:
    hand, simple, task = running(), of(Intent(Tier.FLASH)), of(Intent(Tier.HAIKU, persona=CONTENT_WRITER))
    assert apply_decision(hand, simple, Tier.QUALITY, action=True).thought.intent == Intent(Tier.FLASH)
    assert apply_decision(hand, task, Tier.QUALITY, action=False).thought.intent == Intent(Tier.QUALITY, False, CONTENT_WRITER)
    assert apply_decision(hand, task, None, action=True).thought.intent == task.thought.intent
    assert apply_decision(hand, a_turn("x"), Tier.FLASH, action=True).thought.intent is None


async def test_an_agent_without_the_stages_thinks_nothing() -> None:
    hand, thinker, memory = running(), FakeThinker(), FakeExperience()
    turn = detect_tone_and_intent(hand, a_turn(TASK, an_agent(stages=("loop",))))
    assert await prepare_plan(hand, thinker, await decide_intent(hand, thinker, turn), (POST,)) == turn
    assert (thinker.calls, memory.asked) == ([], [])


@pytest.mark.req("V-047")
@pytest.mark.parametrize("again", [CallFailed(ModelUnavailable("no"), CallUsage()), Unavailable("no"), Answer(None), None])
async def test_a_look_back_that_fails_keeps_the_draft(again: Any) -> None:
    hand, draft = running(reflection_limit=0.05), Draft(answer="A draft.")
    turn = of(Intent(Tier.SONNET, persona=CONTENT_WRITER))
    assert await reflect_on_draft(hand, FakeThinker(again=again), turn, draft) == draft  # type: ignore[arg-type]  # only that is asked
    assert hand.degraded == ["reflection"]


@pytest.mark.req("V-045")
async def test_a_look_back_gives_the_better_text_where_it_has_one() -> None:
    hand, draft = running(), Draft(answer="A draft.", confidence=0.5)
    turn = of(Intent(Tier.SONNET, persona=CONTENT_WRITER))
    for again, said in ((Reflection(score=0.6, answer="Better."), "Better."), (Reflection(score=0.9), "A draft.")):
        found = await reflect_on_draft(hand, FakeThinker(again=again), turn, draft)  # type: ignore[arg-type]  # only that is asked
        assert found == draft.model_copy(update={"answer": said})
        hand = running()


@pytest.mark.req("V-082", "V-T07")
@pytest.mark.parametrize(
    ("profile", "told"),
    [
        ({}, ()),
        ({"calibrations": ["be more concise", 7, " "]}, ("be more concise",)),
        ({"calibrations": "no\nlists"}, ("no lists",)),
        ({"calibrations": {"a": 1}}, ()),
    ],
)
def test_calibrations_come_from_the_profile(profile: dict[str, object], told: tuple[str, ...]) -> None:
    assert calibrations(profile) == told


@pytest.mark.req("V-171")
async def test_progress_is_shown_in_order() -> None:
    shown: list[str] = []
    hand, thinker = running(shown=shown), FakeThinker(decides=IntentDecision(tier=Tier.SONNET, action=True))
    await prepare_plan(hand, thinker, await decide_intent(hand, thinker, detect_tone_and_intent(hand, a_turn(TASK))), (POST,))
    assert shown == ["intent", "preflight"]


@pytest.mark.req("V-010")
async def test_capabilities_are_measured_by_name() -> None:
    hand = running()
    await plan_of(hand, FakeThinker(), of(Intent(Tier.SONNET)))
    text = (await hand.tracing.metrics.text()).decode()
    assert CAPABILITIES == ("planning", "memory_query", "reasoning", "preflight", "strategies", "history")
    for name in ("reasoning", "preflight", "strategies"):
        assert f'{COGNITION.name}_count{{capability="{name}",outcome="ok"}} 1.0' in text


@pytest.mark.req("V-001", "X-C04")
async def test_the_same_message_takes_the_same_stages() -> None:
    found = []
    for _ in range(2):
        shown: list[str] = []
        memory, thinker = FakeExperience(), FakeThinker(decides=IntentDecision(tier=Tier.SONNET, action=True))
        hand = running(memory, shown=shown)
        turn = await prepare_plan(
            hand, thinker, await decide_intent(hand, thinker, detect_tone_and_intent(hand, a_turn(TASK))), (POST,)
        )
        found.append((shown, memory.asked, thinker.calls, turn.thought))
    assert found[0] == found[1]
