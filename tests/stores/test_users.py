"""Who uses a tenant, on a real Postgres: those who have talked, in the orders of names, with when they were last seen."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from phronesis_bus import Call, audit_entry
from phronesis_contracts import Forbidden, Principal
from phronesis_contracts.orchestrator import ListUsers, SeenUser
from phronesis_gateway.auth.users import UserList, UserShown, merge_users
from phronesis_orchestrator.conversations.handlers import ConversationHandlers
from phronesis_orchestrator.conversations.store import PostgresConversations
from phronesis_orchestrator.traces.store import PostgresTraces
from phronesis_orchestrator.turns.store import PostgresTurns
from phronesis_postgres import Database
from tests.stores.test_turns import new
from tests.support.personas import Persona
from tests.support.servers import PostgresServer

ADMIN = Principal(tenant="acme", user="boss", **Persona.ADMIN.rights)


@pytest.fixture
async def database(postgres: PostgresServer) -> AsyncIterator[Database]:
    async with postgres.fresh_schema("orchestrator") as settings, Database.open(settings, "orchestrator") as database:
        yield database


async def talk(database: Database, *users: str, tenant: str = "acme") -> None:
    for user in users:
        await PostgresTurns(database).accept(new(Principal(tenant=tenant, user=user)), 100)


async def read(database: Database, by: Principal = ADMIN, **wanted: Any) -> tuple[SeenUser, ...]:
    handlers = ConversationHandlers(PostgresConversations(database), None, None, None)  # type: ignore[arg-type]
    return (await handlers.users(Call(by, "gateway"), ListUsers(**wanted))).users


async def test_everybody_who_has_talked_in_the_tenant_is_listed_by_name(database: Database) -> None:
    await talk(database, "bo", "ann", "bo", "a-b", "ab")
    await talk(database, "eve", tenant="other")
    found = await read(database)
    assert [(one.user, one.conversations) for one in found] == [("a-b", 1), ("ab", 1), ("ann", 1), ("bo", 2)]
    assert [one.user for one in await read(database, after="ab", limit=1)] == ["ann"]
    assert [one.user for one in await read(database, text="b")] == ["a-b", "ab", "bo"]


async def test_who_is_asked_for_by_name_is_seen_when_something_was_done_for_them(database: Database) -> None:
    ann = Principal(tenant="acme", user="ann")
    await PostgresTraces(database).audit("news", "acme", "memory", audit_entry(ann, "memory.add", {}))
    seen, never = await read(database, also=("ann", "bo"))
    assert (seen.user, seen.conversations, seen.last_seen is None) == ("ann", 0, False)
    assert never == SeenUser(user="bo")


async def test_nobody_but_an_administrator_lists_users(database: Database) -> None:
    with pytest.raises(Forbidden):
        await read(database, Principal(tenant="acme", user="ann"))


def test_users_of_keys_and_of_conversations_are_one_list() -> None:
    holders = [UserShown(user="ann", keys=1), UserShown(user="cy", keys=2)]
    seen = [SeenUser(user="ann", conversations=3), SeenUser(user="bo", conversations=1), SeenUser(user="cy")]
    ann, bo, cy = (
        UserShown(user="ann", keys=1, conversations=3),
        UserShown(user="bo", conversations=1),
        UserShown(user="cy", keys=2),
    )
    assert merge_users(holders, seen, 3) == UserList(users=(ann, bo, cy))
    assert merge_users(holders, seen, 2) == UserList(users=(ann, bo), next="bo")
