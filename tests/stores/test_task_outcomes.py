"""What people say of tasks that have ended, what is learnt then, and what strategies were worth, in Postgres."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from phronesis_contracts import NotFound, Principal
from phronesis_contracts.orchestrator import Directive, Reply, SubmitTurn, TaskOrder, turn_id
from phronesis_contracts.tasks import ArmEffect, Difference, StepState, StrategiesArm, TaskState, TaskStep, Verified, VerifiedBy
from phronesis_orchestrator.learning.store import erase_turns
from phronesis_orchestrator.tasks.ports import Lesson, Plan, Step
from phronesis_orchestrator.tasks.store import PostgresTasks
from phronesis_orchestrator.turns.store import PostgresJournal, PostgresTurns
from phronesis_orchestrator.turns.turn import Claim, Completed, NewTurn
from phronesis_postgres import EVERY_TENANT, Database
from tests.support.servers import PostgresServer

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
ACCEPTED, REJECTED = (Verified(by=VerifiedBy.PERSON, accepted=word, at=NOON) for word in (True, False))
PLAN = Plan(steps=(Step(id="a", description="Do a", tool="survey_twin", wave=1),))


@pytest.fixture
async def database(postgres: PostgresServer) -> AsyncIterator[Database]:
    async with postgres.fresh_schema("orchestrator") as settings, Database.open(settings, "orchestrator") as database:
        yield database


def someone(tenant: str | None = None) -> Principal:
    return Principal(tenant=tenant or f"t{uuid4().hex[:8]}", user=f"u{uuid4().hex[:8]}")


async def begun(database: Database, who: Principal) -> Claim:
    """A task that is worked on."""
    request = SubmitTurn(idempotency_key=uuid4().hex, text="Do it", agent="nova", task=TaskOrder())
    id = turn_id(who.tenant, who.user, request.idempotency_key)
    turns = PostgresTurns(database)
    await turns.accept(NewTurn(id, who, request, "f", 900.0, None, None), 100)
    (claim,) = await turns.claim("w", 1, 15.0)
    return claim


async def ended(database: Database, who: Principal, **state: Any) -> Claim:
    """A task that has ended well, with what can be learnt of it."""
    claim = await begun(database, who)
    tasks, journal = PostgresTasks(database), PostgresJournal(database)
    await tasks.keep_state(claim, TaskState(**state))
    lesson = Lesson(
        **{"task_id": claim.turn_id, "conversation_id": claim.conversation_id, "agent": "nova", "goal": "Do it"},
        **{"signature": "s", "plan": PLAN, "approach": "1. Do a", "score": 0.9, "succeeded": True},
    )
    await journal.intend(claim, "task.lesson", {})
    await journal.result(claim, "task.lesson", {"lesson": lesson.model_dump(mode="json"), "verified": None})
    reply = Reply(
        **{"conversation_id": claim.conversation_id, "turn_id": claim.turn_id, "user_response": "Done."},
        **{"next_agent_directive": Directive.FOCUSED_ANALYST, "reasoner": "extractive"},
    )
    await PostgresTurns(database).end(claim, Completed(reply, "Done.", Directive.FOCUSED_ANALYST, "because"))
    return claim


async def rows(database: Database, statement: str, *arguments: Any) -> list[Any]:
    async with database.transaction(EVERY_TENANT) as connection:
        return [tuple(row) for row in await connection.fetch(statement, *arguments)]


async def templates(database: Database, who: Principal) -> list[Any]:
    return await rows(database, "SELECT signature, version FROM task_templates WHERE tenant = $1", who.tenant)


async def test_an_accepted_task_keeps_its_plan_and_a_rejected_one_loses_it(database: Database) -> None:
    who, tasks = someone(), PostgresTasks(database)
    claim = await ended(database, who, waves=1)
    lesson = await tasks.lesson(who, claim.turn_id)
    assert lesson is not None
    await tasks.verify(who, claim.turn_id, ACCEPTED, lesson)
    found = await tasks.get(who, claim.turn_id)
    assert (found.progress.verified, found.progress.waves) == (ACCEPTED, 1)
    assert await templates(database, who) == [("s", 1)]
    assert await tasks.template(who, "s") == PLAN
    await tasks.verify(who, claim.turn_id, REJECTED, None)
    assert (await tasks.get(who, claim.turn_id)).progress.verified == REJECTED
    assert await templates(database, who) == []


async def test_a_word_about_a_task_is_audited_without_its_comment(database: Database) -> None:
    who, tasks = someone(), PostgresTasks(database)
    claim = await ended(database, who)
    await tasks.verify(who, claim.turn_id, ACCEPTED.model_copy(update={"comment": "marmalade"}), None)
    said = [body.decode() for (body,) in await rows(database, "SELECT body FROM outbox WHERE subject LIKE '%audit%'")]
    assert [claim.turn_id in one for one in said] == [True]
    assert "marmalade" not in said[0]


async def test_a_task_that_runs_and_one_of_somebody_else_take_no_word(database: Database) -> None:
    who, tasks = someone(), PostgresTasks(database)
    running, other = await begun(database, who), await ended(database, someone(who.tenant))
    for id in (running.turn_id, other.turn_id, str(uuid4())):
        with pytest.raises(NotFound):
            await tasks.verify(who, id, ACCEPTED, None)
        assert await tasks.lesson(who, id) is None


async def test_what_can_be_learnt_of_a_task_goes_when_it_is_forgotten(database: Database) -> None:
    who, tasks = someone(), PostgresTasks(database)
    claim = await ended(database, who)
    async with database.transaction(who.tenant) as connection:
        await erase_turns(connection, who.tenant, [UUID(claim.turn_id)], [])
    assert await tasks.lesson(who, claim.turn_id) is None
    assert await rows(database, "SELECT step FROM journal") == []


def steps(done: int) -> tuple[TaskStep, ...]:
    """So many steps that were made, and one that was not."""
    made = [TaskStep(id=f"s{n}", wave=1, description="x", state=StepState.DONE) for n in range(done)]
    return (*made, TaskStep(id="left", wave=2, description="x", state=StepState.SKIPPED))


async def test_the_effect_tells_both_arms_of_the_caller_alone(database: Database) -> None:
    who, tasks = someone(), PostgresTasks(database)
    used, held = {"strategies_arm": StrategiesArm.USED}, {"strategies_arm": StrategiesArm.HELD_OUT}
    for verified in (ACCEPTED, ACCEPTED, REJECTED, None):
        await ended(database, who, **used, verified=verified, steps=steps(2))
    await ended(database, who, **held, verified=REJECTED, steps=steps(4))
    await ended(database, who, strategies_arm=StrategiesArm.NONE, verified=ACCEPTED)
    await ended(database, someone(who.tenant), **held, verified=ACCEPTED)
    effect = await tasks.effect(who)
    low, high = effect.used.low, effect.used.high
    assert (round(low, 3), round(high, 3)) == (0.208, 0.939)
    assert effect.used == ArmEffect(
        arm=StrategiesArm.USED, tasks=4, verified=3, accepted=2, share=2 / 3, low=low, high=high, steps=2
    )
    assert (effect.held_out.tasks, effect.held_out.share, effect.held_out.steps) == (1, 0.0, 4)
    assert effect.difference is Difference.NONE_SHOWN


@pytest.mark.parametrize(
    ("with_them", "without", "difference"),
    [(ACCEPTED, REJECTED, Difference.BETTER), (REJECTED, ACCEPTED, Difference.WORSE), (ACCEPTED, None, Difference.NONE_SHOWN)],
)
async def test_a_difference_is_shown_where_the_intervals_are_apart(
    database: Database, with_them: Verified, without: Verified | None, difference: Difference
) -> None:
    who = someone()
    for _ in range(5):
        await ended(database, who, strategies_arm=StrategiesArm.USED, verified=with_them)
        await ended(database, who, strategies_arm=StrategiesArm.HELD_OUT, verified=without)
    assert (await PostgresTasks(database).effect(who)).difference is difference
