"""One key for the many users of a program, on a whole stack: each has a memory, conversations and turns of their own."""

from __future__ import annotations

import asyncpg
import pytest
from openai import AsyncOpenAI

from phronesis import AsyncClient
from phronesis_contracts import Forbidden
from phronesis_local import postgres
from tests.support.bus import eventually
from tests.support.people import Person, Town
from tests.support.personas import Persona
from tests.support.stack import RunningStack

pytestmark = pytest.mark.any_store


async def program(everybody: Town, role: str = "noor") -> Person:
    """A key that may act for users, in a tenant of its own."""
    return await everybody.someone(role=role, scopes=("act_for_users",))


def client(of: Person, user_id: str | None = None) -> AsyncClient:
    return AsyncClient(str(of.http.base_url), of.key, user_id=user_id)


async def test_each_user_of_a_program_has_a_memory_of_their_own(everybody: Town) -> None:
    backend = await program(everybody)
    async with client(backend) as one:
        for user in ("ada", "Bo@Example.com"):
            await one.memory.add(f"the locker of {user} is in the hall", user_id=user)
        found = {
            user: [one.text for one in (await one.memory.search("locker in the hall", user_id=user)).memories]
            for user in ("ada", "Bo@Example.com", "cy")
        }
        own = (await one.memory.search("locker in the hall")).memories
    assert found == {
        "ada": ["the locker of ada is in the hall"],
        "Bo@Example.com": ["the locker of Bo@Example.com is in the hall"],
        "cy": [],
    }
    assert own == ()


async def test_what_was_added_for_a_user_is_there_for_their_own_key(everybody: Town) -> None:
    backend = await program(everybody)
    ada = await everybody.someone(tenant=backend.tenant)
    async with client(backend) as one, client(ada) as own:
        await one.memory.add("the locker is in the hall", user_id=ada.user)
        assert [found.text for found in (await own.memory.search("where is the locker")).memories] == [
            "the locker is in the hall"
        ]


async def test_a_key_acts_for_nobody_without_the_scope_and_for_no_user_with_more_rights(everybody: Town) -> None:
    plain = await everybody.someone()
    backend = await program(everybody)
    admin = await everybody.someone(tenant=backend.tenant, role="admin")
    for key, user in ((plain, "ada"), (backend, admin.user), (backend, backend.user)):
        async with client(key) as one:
            with pytest.raises(Forbidden) as error:
                await one.memory.list(user_id=user)
            assert error.value.field == "Phronesis-User"


async def test_acting_for_a_user_an_administrators_key_may_no_more_than_a_member(everybody: Town) -> None:
    backend = await program(everybody, role="admin")
    given = {"user": "eve", "role": "admin"}
    acted = await backend.http.post("/api/v1/keys", json=given, headers={"Phronesis-User": "ada"})
    assert (acted.status_code, acted.json()["code"]) == (403, "forbidden")
    assert (await backend.http.post("/api/v1/keys", json=given)).status_code == 201


async def test_the_audit_trail_names_the_user_and_who_acted(everybody: Town, stack: RunningStack) -> None:
    backend = await program(everybody)
    async with client(backend) as one:
        await one.memory.add("the locker is in the hall", user_id="ada")
        await one.memory.add("the locker is green")
    connection = await asyncpg.connect(postgres.dsn(stack.data.postgres))

    async def rows() -> list[tuple[str, ...]]:
        query = "SELECT who, role, action, acted_by FROM orchestrator.audit WHERE tenant = $1 ORDER BY acted_by"
        return [tuple(row) for row in await connection.fetch(query, backend.tenant)]

    async def both() -> bool:
        return len(await rows()) == 2

    try:
        await eventually(both, within=20)
        found = await rows()
    finally:
        await connection.close()
    assert found == [
        ("ada", Persona.NOOR.text, "memory.add", backend.user),
        (backend.user, Persona.NOOR.text, "memory.add", None),
    ]


async def test_a_turn_of_a_user_is_followed_by_a_ticket_and_seen_by_no_other_user(everybody: Town) -> None:
    backend = await program(everybody)
    as_ada, as_bo = {"Phronesis-User": "ada"}, {"Phronesis-User": "bo"}
    async with client(backend, "ada") as ada:
        turn = (await ada.conversations.send("Hello!")).turn_id
    ticket = (await backend.http.post(f"/api/v1/turns/{turn}/ticket", headers=as_ada)).json()
    events = await backend.http.get(ticket["url"])
    assert (events.status_code, "event: done" in events.text or "event: ended" in events.text) == (200, True)
    assert (await backend.http.get(f"/api/v1/turns/{turn}", headers=as_bo)).status_code == 404
    assert (await backend.http.get(f"/api/v1/turns/{turn}")).status_code == 404


async def test_the_user_of_openais_api_is_acted_for_with_the_scope_and_ignored_without(everybody: Town) -> None:
    for key, users in ((await program(everybody), {"ada", "bo"}), (await everybody.someone(), {""})):
        async with AsyncOpenAI(base_url=f"{key.http.base_url}/v1", api_key=key.key, max_retries=0) as sdk:
            for user in ("ada", "bo"):
                await sdk.chat.completions.create(
                    model="dialogue", user=user, messages=[{"role": "user", "content": f"My name is {user.title()}."}]
                )
        counts = {}
        for user in ("ada", "bo"):
            headers = {"Phronesis-User": user} if users != {""} else {}
            counts[user] = len((await key.http.get("/api/v1/conversations", headers=headers)).json()["conversations"])
        assert counts == ({"ada": 1, "bo": 1} if users != {""} else {"ada": 2, "bo": 2})
