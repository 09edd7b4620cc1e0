"""The stage that carries a summary on: how many calls it makes, what it stores, and what happens when it fails."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from phronesis_contracts import ServiceError, TimedOut, Unavailable
from phronesis_orchestrator.agents.context import MOST, run_beside
from phronesis_orchestrator.conversations.history import STEP, PastMessage, PastTurn, Summary
from phronesis_orchestrator.conversations.summary import fold
from phronesis_orchestrator.ledger.usage import CallUsage
from phronesis_orchestrator.models.reasoner import Answer, ModelSummary, TurnContext
from phronesis_orchestrator.turns.turn import Completed
from phronesis_tokens import count
from tests.unit.orchestrator.fakes import (
    PROFILE,
    FakeConversations,
    FakeNeighbours,
    ScriptedReasoner,
    Stage,
    claim,
    direct,
    raised,
    reply,
)

OWN = PROFILE.model_copy(update={"prompts": {"summarise": "Shorten {{history}}."}})
AGED = tuple(PastTurn(2 * at + 1, f"my item {at} costs {at} pounds", "Noted.") for at in range(STEP))
WINDOW = (PastMessage("user", "hi"), PastMessage("assistant", "hello"))


@dataclass
class Summarising(ScriptedReasoner):
    """A scripted reasoner that can also put turns in short."""

    summary: Answer[ModelSummary] | ServiceError | None = None
    shown: tuple[Summary, tuple[PastTurn, ...]] | None = None

    async def summarise(self, turn: TurnContext, earlier: Summary, dropped: tuple[PastTurn, ...]) -> Answer[ModelSummary]:
        self.calls.append("summarise")
        self.shown = (earlier, dropped)
        answer: Answer[ModelSummary] = raised(self.summary)
        return answer


def short(text: str = "Ann has ten items.") -> Answer[ModelSummary]:
    return Answer(ModelSummary(summary=text), spent=CallUsage(input_tokens=7, output_tokens=3, model_calls=1))


def staged(reasoner: ScriptedReasoner, aged: tuple[PastTurn, ...] = AGED, **more: Any) -> Stage:
    reasoner.routes, reasoner.composes = [direct()], [reply()]
    past = FakeConversations(history=WINDOW, aged=aged, **more)
    return Stage(reasoner, neighbours=FakeNeighbours(profiles={"dialogue": OWN}), conversations=past)


async def run(stage: Stage) -> Completed:
    end = await stage.run(claim())
    assert isinstance(end, Completed), end
    return end


@pytest.mark.req("D-045", "D-047")
@pytest.mark.parametrize("aged", [(), AGED[:1], AGED[: STEP - 1]])
async def test_a_turn_whose_history_fits_makes_no_call_more_and_writes_nothing(aged: tuple[PastTurn, ...]) -> None:
    stage = staged(Summarising(summary=short()), aged)
    end = await run(stage)
    assert stage.reasoner.calls == ["route", "compose"]
    assert (end.reply.usage.model_calls, stage.conversations.stored, end.reply.degraded) == (2, [], ())


async def test_a_step_of_turns_makes_one_call_and_stores_what_it_gave() -> None:
    reasoner = Summarising(summary=short())
    stage = staged(reasoner)
    end = await run(stage)
    assert sorted(reasoner.calls) == ["compose", "route", "summarise"]
    assert reasoner.shown == (Summary(), AGED)
    through = 2 * STEP
    assert stage.conversations.stored == [Summary(through=through, text="Ann has ten items.", text_through=through)]
    assert (end.reply.usage.model_calls, end.reply.usage.input_tokens, end.reply.degraded) == (3, 17, ())


@pytest.mark.req("V-C22")
async def test_the_turn_at_hand_is_shown_the_rules_summary_and_does_not_wait_for_the_models() -> None:
    reasoner = Summarising(summary=short())
    await run(staged(reasoner))
    assert reasoner.contexts[0].summary == fold(Summary(), (), AGED)


async def test_without_a_model_the_rules_summary_is_stored() -> None:
    stage = staged(ScriptedReasoner())
    assert (await run(stage)).reply.degraded == ()
    assert stage.conversations.stored == [fold(Summary(), (), AGED)]


async def test_without_a_prompt_for_it_no_model_is_asked() -> None:
    stage = staged(Summarising(summary=short()))
    stage.neighbours.profiles["dialogue"] = PROFILE
    await run(stage)
    assert stage.reasoner.calls == ["route", "compose"]
    assert stage.conversations.stored == [fold(Summary(), (), AGED)]


@pytest.mark.parametrize("fault", [Unavailable(), TimedOut(), Answer[ModelSummary](None)])
async def test_a_model_that_fails_leaves_the_rules_summary_and_marks_the_reply(fault: Any) -> None:
    stage = staged(Summarising(summary=fault))
    end = await run(stage)
    assert (end.reply.user_response, end.reply.degraded) == ("Done.", ("summary",))
    assert stage.conversations.stored == [fold(Summary(), (), AGED)]


async def test_a_summary_that_rambles_is_cut() -> None:
    stage = staged(Summarising(summary=short("word " * 9_000)))
    await run(stage)
    (stored,) = stage.conversations.stored
    assert count(stored.text, 10_000) <= MOST
    assert stored.text.endswith("[cut]")


async def test_a_summary_that_was_made_before_a_crash_is_not_made_again() -> None:
    stage = staged(Summarising(summary=short()))
    await run(stage)
    again = staged(Summarising(summary=Unavailable()))
    again.journal = stage.journal
    end = await run(again)
    assert again.reasoner.calls == []
    assert (end.reply.degraded, again.conversations.stored) == ((), stage.conversations.stored)


async def test_a_store_that_does_not_take_the_summary_costs_the_turn_nothing() -> None:
    class Refusing(FakeConversations):
        async def keep_summary(self, tenant: str, conversation_id: str, summary: Summary) -> None:
            raise Unavailable()

    stage = staged(ScriptedReasoner())
    stage.conversations = Refusing(history=WINDOW, aged=AGED)
    assert (await run(stage)).reply.degraded == ()


async def test_a_block_that_fails_stops_the_work_beside_it() -> None:
    began, stopped = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async def broken() -> None:
        async with run_beside(work()):
            await began.wait()
            raise KeyError("x")

    with pytest.raises(KeyError):
        await broken()
    assert stopped.is_set()
