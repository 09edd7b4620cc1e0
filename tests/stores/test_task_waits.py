"""Tasks that wait for a date or for their owner, on a real Postgres: without a worker, and without their time running."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from phronesis_bus import Call
from phronesis_contracts import BadRequest, NotFound, Principal, ServiceError
from phronesis_contracts.orchestrator import SubmitTurn, TaskOrder, TurnStatus, turn_id
from phronesis_contracts.tasks import AnswerTask, NotWaiting
from phronesis_orchestrator.tasks.ports import WaitOrder
from phronesis_orchestrator.tasks.store import PostgresTasks, PostgresWaits
from phronesis_orchestrator.turns.store import PostgresTurns
from phronesis_orchestrator.turns.turn import Claim, LostClaim, NewTurn
from phronesis_postgres import EVERY_TENANT, Database
from tests.stores.test_turns import LEASE, claimed, someone
from tests.support.servers import PostgresServer

STEP = "task.step.ask"


@pytest.fixture
async def database(postgres: PostgresServer) -> AsyncIterator[Database]:
    async with postgres.fresh_schema("orchestrator") as settings, Database.open(settings, "orchestrator") as database:
        yield database


@pytest.fixture
def turns(database: Database) -> PostgresTurns:
    return PostgresTurns(database)


@pytest.fixture
def waits(database: Database) -> PostgresWaits:
    return PostgresWaits(database)


async def begun(turns: PostgresTurns, who: Principal) -> Claim:
    """A task that is worked on."""
    request = SubmitTurn(idempotency_key=uuid4().hex, text="Ask them", agent="nova", task=TaskOrder())
    id = turn_id(who.tenant, who.user, request.idempotency_key)
    await turns.accept(NewTurn(id, who, request, "f", 900.0, None, None), 100)
    return await claimed(turns)


def question(*choices: str, step: str = STEP) -> WaitOrder:
    return WaitOrder(step, "person", datetime.now(UTC) + timedelta(days=7), "Which year?", choices)


def date(days: float = 1.0) -> WaitOrder:
    return WaitOrder("task.step.wait", "date", datetime.now(UTC) + timedelta(days=days))


async def answer(waits: PostgresWaits, who: Principal, claim: Claim, text: str, key: str | None = None) -> None:
    await waits.answer(Call(who, "gateway", key), AnswerTask(task_id=claim.turn_id, answer=text))


async def come(database: Database, claim: Claim) -> None:
    """Let the time of a wait have come."""
    async with database.transaction(EVERY_TENANT) as connection:
        await connection.execute(
            "UPDATE task_waits SET due_at = now() - interval '1 second' WHERE turn_id = $1", UUID(claim.turn_id)
        )


async def test_a_task_that_asks_is_claimed_by_nobody_and_shows_its_question(
    turns: PostgresTurns, waits: PostgresWaits, database: Database
) -> None:
    who = someone()
    claim, order = await begun(turns, who), question("2021", "2022")
    await waits.begin(claim, order)
    assert await turns.claim("w2", 10, LEASE) == []
    task = await PostgresTasks(database).get(who, claim.turn_id)
    assert task.status is TurnStatus.WAITING
    assert task.waiting is not None
    assert (task.waiting.kind, task.waiting.question, task.waiting.choices, task.waiting.until) == (
        "person",
        "Which year?",
        ("2021", "2022"),
        order.due,
    )


async def test_an_answer_lets_the_task_go_on_and_is_found_by_whoever_takes_it(
    turns: PostgresTurns, waits: PostgresWaits
) -> None:
    who = someone()
    claim = await begun(turns, who)
    assert await waits.found(claim, STEP) is None
    await waits.begin(claim, question())
    assert await waits.found(claim, STEP) is None, "nobody has answered yet"
    await answer(waits, who, claim, " The year of the flood ")
    again = await claimed(turns, "w2")
    ended = await waits.found(again, STEP)
    assert ended is not None
    assert ended.answer == "The year of the flood"
    with pytest.raises(NotWaiting):
        await answer(waits, who, claim, "Another year")


async def test_of_several_answers_at_once_one_is_taken_and_a_repeat_with_its_key_changes_nothing(
    turns: PostgresTurns, waits: PostgresWaits
) -> None:
    who = someone()
    claim = await begun(turns, who)
    await waits.begin(claim, question())
    given = await asyncio.gather(*(answer(waits, who, claim, f"the {n}th", f"k{n}") for n in range(5)), return_exceptions=True)
    (taken,) = [n for n, error in enumerate(given) if error is None]
    assert {type(error) for error in given if error is not None} == {NotWaiting}
    await answer(waits, who, claim, f"the {taken}th", f"k{taken}")
    assert len(await turns.claim("w2", 10, LEASE)) == 1


async def test_an_answer_beside_the_choices_is_refused_and_a_choice_is_taken_in_its_own_words(
    turns: PostgresTurns, waits: PostgresWaits
) -> None:
    who = someone()
    claim = await begun(turns, who)
    await waits.begin(claim, question("Both years", "None"))
    with pytest.raises(BadRequest) as caught:
        await answer(waits, who, claim, "Maybe")
    assert (caught.value.field, caught.value.detail) == ("answer", "answer with one of: Both years, None")
    await answer(waits, who, claim, "both YEARS")
    ended = await waits.found(await claimed(turns), STEP)
    assert ended is not None
    assert ended.answer == "Both years"


async def test_nobody_else_answers_and_what_waits_for_a_date_asks_nothing(turns: PostgresTurns, waits: PostgresWaits) -> None:
    who = someone()
    claim = await begun(turns, who)
    await waits.begin(claim, question())
    for stranger in (someone(who.tenant), someone()):
        with pytest.raises(NotFound):
            await answer(waits, stranger, claim, "mine")
    other = await begun(turns, who)
    await waits.begin(other, date())
    with pytest.raises(NotWaiting):
        await answer(waits, who, other, "now")


async def test_a_date_that_comes_and_a_question_that_runs_out_put_their_tasks_back(
    turns: PostgresTurns, waits: PostgresWaits, database: Database
) -> None:
    who = someone()
    first, second, third = [await begun(turns, who) for _ in range(3)]
    await waits.begin(first, date())
    await waits.begin(second, question())
    await waits.begin(third, date())
    await come(database, first)
    await come(database, second)
    copies = [PostgresWaits(database) for _ in range(4)]
    assert sum(await asyncio.gather(*(copy.end_due(10) for copy in copies))) == 2
    claims = {claim.turn_id: claim for claim in await turns.claim("w2", 10, LEASE)}
    assert set(claims) == {first.turn_id, second.turn_id}
    ends = [await waits.found(claims[first.turn_id], "task.step.wait"), await waits.found(claims[second.turn_id], STEP)]
    assert [end is not None and end.answer for end in ends] == [None, None]
    with pytest.raises(NotWaiting):
        await answer(waits, who, second, "too late")


async def test_a_wait_that_a_cancellation_ends_is_over_for_good(
    turns: PostgresTurns, waits: PostgresWaits, database: Database
) -> None:
    who = someone()
    claim = await begun(turns, who)
    await waits.begin(claim, question())
    await turns.cancel(who, claim.turn_id)
    with pytest.raises(NotWaiting):
        await answer(waits, who, claim, "2021")
    await come(database, claim)
    assert await waits.end_due(10) == 0
    assert (await PostgresTasks(database).get(who, claim.turn_id)).status is TurnStatus.CANCELLED


async def test_time_spent_waiting_is_counted_and_takes_nothing_from_the_time_until_the_task_expires(
    turns: PostgresTurns, waits: PostgresWaits, database: Database
) -> None:
    who = someone()
    claim = await begun(turns, who)
    await waits.begin(claim, date())
    async with database.transaction(EVERY_TENANT) as connection:
        await connection.execute(
            "UPDATE task_waits SET created_at = now() - interval '2 days', due_at = now() - interval '1 hour'"
        )
        await connection.execute("UPDATE turns SET expires_at = now() - interval '1 hour' + interval '15 minutes'")
    assert await waits.end_due(10) == 1
    again = await claimed(turns)
    assert not again.expired
    assert await waits.waited(again) == pytest.approx(47 * 3600, abs=60)
    left = (await turns.get(who, claim.turn_id)).expires_at
    assert left is not None
    assert (left - datetime.now(UTC)).total_seconds() == pytest.approx(15 * 60, abs=60)


async def test_a_worker_that_lost_its_task_lets_nothing_wait(turns: PostgresTurns, waits: PostgresWaits) -> None:
    who = someone()
    claim = await begun(turns, who)
    await turns.cancel(who, claim.turn_id)
    with pytest.raises(LostClaim):
        await waits.begin(claim, date())


async def test_a_task_may_wait_again_at_another_step(turns: PostgresTurns, waits: PostgresWaits) -> None:
    who = someone()
    claim = await begun(turns, who)
    for number in range(3):
        await waits.begin(claim, question(step=f"{STEP}.{number}"))
        await answer(waits, who, claim, f"answer {number}")
        claim = await claimed(turns)
    found = [await waits.found(claim, f"{STEP}.{number}") for number in range(3)]
    assert [one and one.answer for one in found] == ["answer 0", "answer 1", "answer 2"]


def test_what_asks_nothing_is_a_conflict() -> None:
    error: ServiceError = NotWaiting("x")
    assert (error.status, error.code) == (409, "task.not_waiting")
