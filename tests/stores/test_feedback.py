"""What people think of answers, on a real Postgres: kept with the turn, changed, taken back, and gone with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast
from uuid import UUID

import pytest

from phronesis_bus import Call
from phronesis_contracts import Conflict, Forbidden, NotFound, Principal
from phronesis_contracts.orchestrator import ListTurns, RateTurn, Turn
from phronesis_orchestrator.conversations.store import PostgresConversations
from phronesis_orchestrator.turns.handlers import TurnHandlers
from phronesis_orchestrator.turns.store import PostgresTurns
from phronesis_postgres import Database
from tests.stores.test_turns import claimed, completed, new
from tests.support.personas import Persona
from tests.support.servers import PostgresServer

ADMIN = Principal(tenant="acme", user="boss", **Persona.ADMIN.rights)
ANN, BO = Principal(tenant="acme", user="ann"), Principal(tenant="acme", user="bo")


@pytest.fixture
async def database(postgres: PostgresServer) -> AsyncIterator[Database]:
    async with postgres.fresh_schema("orchestrator") as settings, Database.open(settings, "orchestrator") as database:
        yield database


@pytest.fixture
def turns(database: Database) -> PostgresTurns:
    return PostgresTurns(database)


async def answered(turns: PostgresTurns, who: Principal = ANN, text: str = "hello") -> str:
    """The turn of a message that was answered."""
    await turns.accept(new(who, text=text), 100)
    claim = await claimed(turns)
    await turns.end(claim, completed(claim))
    return claim.turn_id


async def rate(turns: PostgresTurns, turn: str, helpful: bool | None, remark: str = "", who: Principal = ANN) -> Turn:
    return await turns.rate(who, RateTurn(turn_id=turn, helpful=helpful, remark=remark))


def said(turn: Turn) -> tuple[bool, str] | None:
    return (turn.feedback.helpful, turn.feedback.remark) if turn.feedback else None


async def listed(turns: PostgresTurns, who: Principal, **wanted: Any) -> list[str]:
    handlers = object.__new__(TurnHandlers)
    handlers._turns = turns
    return [turn.opening for turn in (await handlers.list(Call(who, "gateway"), ListTurns(**wanted))).turns]


async def users(turns: PostgresTurns, **wanted: Any) -> list[str]:
    """Whose turns an administrator is shown."""
    return [turn.user for turn in (await turns.list(ADMIN, ListTurns(**wanted))).turns]


async def test_an_administrator_is_not_shown_what_others_asked(turns: PostgresTurns) -> None:
    await answered(turns, text="my secret")
    assert await listed(turns, ANN) == ["my secret"]
    assert await listed(turns, ADMIN, user="*") == [""]


async def test_what_somebody_thinks_of_an_answer_is_kept_changed_and_taken_back(turns: PostgresTurns) -> None:
    turn = await answered(turns)
    assert said(await rate(turns, turn, False, "Of last year")) == (False, "Of last year")
    assert said(await turns.get(ANN, turn)) == (False, "Of last year")
    assert said(await rate(turns, turn, True)) == (True, "")
    assert said(await rate(turns, turn, None, "nothing")) is None


async def test_nobody_rates_the_answer_of_another_or_what_is_not_answered_yet(turns: PostgresTurns) -> None:
    with pytest.raises(NotFound):
        await rate(turns, await answered(turns), True, who=BO)
    waiting = (await turns.accept(new(ANN), 100)).turn_id
    with pytest.raises(Conflict):
        await rate(turns, waiting, True)


async def test_feedback_goes_with_its_conversation(database: Database, turns: PostgresTurns) -> None:
    turn = await answered(turns)
    conversation = (await rate(turns, turn, False, "My secret")).conversation_id
    await PostgresConversations(database).delete(ANN, conversation)
    async with database.connection("acme") as connection:
        row = await connection.fetchrow("SELECT helpful, remark, rated_at FROM turns WHERE id = $1", UUID(turn))
    assert tuple(cast(Any, row)) == (None, None, None)


async def test_turns_are_listed_by_what_was_thought_of_them_and_for_administrators_by_user(turns: PostgresTurns) -> None:
    await rate(turns, await answered(turns, text="good"), True)
    await rate(turns, await answered(turns, text="bad"), False)
    await rate(turns, await answered(turns, BO, "of bo"), False, who=BO)
    assert await listed(turns, ANN, helpful=False) == ["bad"]
    assert await listed(turns, ANN, user="ann") == ["bad", "good"]
    assert await users(turns, user="bo") == ["bo"]
    assert await users(turns, user="*", helpful=False) == ["bo", "ann"]
    (last,) = (await turns.list(ADMIN, ListTurns(user="*", limit=1))).turns
    assert (last.user, await users(turns, user="*", before=last.turn_id)) == ("bo", ["ann", "ann"])
    for user in ("bo", "*"):
        with pytest.raises(Forbidden):
            await listed(turns, ANN, user=user)
