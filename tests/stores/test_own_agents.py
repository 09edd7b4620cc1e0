"""Versions of tenants' own agents, on a real Postgres."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from phronesis_bus import Call
from phronesis_contracts import Conflict, Forbidden, KeyReused, NotFound, Principal
from phronesis_contracts.agents import (
    MAX_AGENT_VERSIONS,
    MAX_AGENTS,
    AgentByName,
    AgentPublished,
    AgentRefused,
    DiffAgent,
    GetAgent,
    ListTenantAgents,
    PublishAgent,
    RollBackAgent,
)
from phronesis_contracts.instructions import AgentRef
from phronesis_instructions.agents.handlers import AgentHandlers
from phronesis_instructions.agents.store import PostgresAgents
from phronesis_instructions.library.content import read_agents, read_matrix
from phronesis_instructions.library.handlers import LibraryCache, LibraryHandlers
from phronesis_instructions.library.store import PostgresStore
from phronesis_postgres import EVERY_TENANT, Database
from tests.support.instructions import HashedArms
from tests.support.personas import Persona
from tests.support.servers import PostgresServer


class Agents:
    """The handlers of own agents as the service wires them, with those that give turns their profiles."""

    def __init__(self, database: Database) -> None:
        store = PostgresStore(database)
        libraries = LibraryCache(store, 60)
        self.woken = 0
        self.library = LibraryHandlers(store, libraries, HashedArms())
        self.own = AgentHandlers(libraries, self.library, PostgresAgents(database), self._wake)

    def _wake(self) -> None:
        self.woken += 1

    async def publish(self, call: Call, name: str = "librarian", **fields: Any) -> AgentPublished:
        return await self.own.publish(call, PublishAgent.model_validate({"name": name, **fields}))

    async def rollback(self, call: Call, version: int | None = None, name: str = "librarian", **more: Any) -> AgentPublished:
        return await self.own.rollback(call, RollBackAgent(name=name, version=version, **more))

    async def active(self, call: Call, name: str = "librarian") -> int | None:
        """The version that a turn would run with now."""
        try:
            found = await self.library.agent_get(call, AgentRef(agent=name))
        except NotFound:
            return None
        return int(found.version.partition("+")[2])


@pytest.fixture(scope="module")
async def database(postgres: PostgresServer) -> AsyncIterator[Database]:
    async with postgres.fresh_schema("instructions") as settings, Database.open(settings, "instructions") as database:
        yield database


@pytest.fixture(scope="module")
async def agents(database: Database) -> Agents:
    made = Agents(database)
    await made.library.load((read_matrix(), *read_agents()), 0.05, lambda: None)
    return made


def editor(key: str | None = None, role: Persona = Persona.EDITOR) -> Call:
    """An editor of a tenant of its own."""
    return Call(Principal(tenant=f"t-{uuid4().hex[:12]}", user="eve", **role.rights), "gateway", key)


async def fetched(database: Database, query: str, *arguments: object) -> list[dict[str, Any]]:
    async with database.connection(EVERY_TENANT) as connection:
        return [dict(row) for row in await connection.fetch(query, *arguments)]


async def test_each_publication_is_a_version_and_the_newest_is_what_turns_run_with(agents: Agents) -> None:
    call = editor()
    first = await agents.publish(call, instructions="Be brief.", note="a start")
    second = await agents.publish(call, instructions="Be exact.", sources=["memory"])
    assert (first.version, second.version, second.changed) == (1, 2, ("instructions", "sources"))
    assert (await agents.publish(call, instructions="Be exact.", sources=["memory"])).version == 2
    assert await agents.active(call) == 2
    listed = (await agents.own.versions(call, AgentByName(name="librarian"))).versions
    assert [(one.version, one.active, one.note, one.by) for one in listed] == [
        (2, True, "", "eve"),
        (1, False, "a start", "eve"),
    ]
    shown = await agents.own.show(call, GetAgent(name="librarian", version=1))
    assert shown.definition is not None
    assert (shown.active, shown.definition.instructions, shown.agent.version) == (False, "Be brief.", 1)
    diff = await agents.own.diff(call, DiffAgent(name="librarian", before=1))
    assert (diff.before, diff.after, diff.changed) == (1, 2, ("instructions", "sources"))


async def test_a_dry_run_changes_nothing(agents: Agents, database: Database) -> None:
    call = editor()
    planned = await agents.publish(call, instructions="Be brief.", dry_run=True)
    assert (planned.version, planned.changed, planned.dry_run) == (1, ("name", "instructions"), True)
    assert await fetched(database, "SELECT agent FROM agent_versions WHERE tenant = $1", call.who.tenant) == []
    assert await agents.active(call) is None
    await agents.publish(call)
    await agents.publish(call, instructions="Be brief.")
    assert (await agents.rollback(call, 1, dry_run=True)).changed == ("instructions",)
    assert await agents.active(call) == 2


async def test_a_rollback_makes_an_earlier_version_the_active_one(agents: Agents) -> None:
    call = editor()
    for said in ("one", "two", "three"):
        await agents.publish(call, instructions=said)
    assert (await agents.rollback(call)).version == 2
    assert await agents.active(call) == 2
    assert (await agents.rollback(call, 3)).changed == ("instructions",)
    assert (await agents.rollback(call, 3)).changed == ()
    assert (await agents.rollback(call, 1)).version == 1
    with pytest.raises(Conflict):
        await agents.rollback(call)
    with pytest.raises(NotFound):
        await agents.rollback(call, 9)
    assert (await agents.publish(call, instructions="four")).version == 4


async def test_a_deleted_agent_is_gone_until_it_is_rolled_back(agents: Agents) -> None:
    call = editor()
    await agents.publish(call, instructions="one")
    assert (await agents.own.delete(call, AgentByName(name="librarian"))).deleted
    assert await agents.active(call) is None
    assert not (await agents.own.delete(call, AgentByName(name="librarian"))).deleted
    assert (await agents.own.list(call, ListTenantAgents(own=True))).agents == ()
    with pytest.raises(NotFound):
        await agents.own.show(call, GetAgent(name="librarian"))
    assert (await agents.rollback(call)).version == 1
    assert await agents.active(call) == 1
    with pytest.raises(NotFound):
        await agents.own.delete(call, AgentByName(name="nobody"))


async def test_tenants_have_nothing_of_each_others_agents(agents: Agents, database: Database) -> None:
    ours, theirs = editor(), editor()
    await agents.publish(ours, instructions="ours")
    assert await agents.active(theirs) is None
    for asked in (
        agents.own.show(theirs, GetAgent(name="librarian", version=1)),
        agents.own.versions(theirs, AgentByName(name="librarian")),
        agents.own.delete(theirs, AgentByName(name="librarian")),
        agents.rollback(theirs, 1),
    ):
        with pytest.raises(NotFound):
            await asked
    assert (await agents.publish(theirs, instructions="theirs")).version == 1
    names = [one.name for one in (await agents.own.list(ours, ListTenantAgents())).agents if one.own]
    assert names == ["librarian"]
    shown = (await agents.own.show(ours, GetAgent(name="librarian"))).definition
    assert shown is not None
    assert shown.instructions == "ours"
    async with database.connection(ours.who.tenant) as connection:
        rows = await connection.fetch("SELECT DISTINCT tenant FROM agent_versions")
    assert [row["tenant"] for row in rows] == [ours.who.tenant]


async def test_a_change_is_announced_and_audited_with_who_made_it(agents: Agents, database: Database) -> None:
    call, woken = editor(), agents.woken
    await agents.publish(call, instructions="one")
    await agents.own.delete(call, AgentByName(name="librarian"))
    rows = await fetched(database, "SELECT subject, body FROM outbox WHERE tenant = $1 ORDER BY id", call.who.tenant)
    assert [row["subject"].split(".v1.")[1] for row in rows] == ["released", "audited"] * 2
    assert b'"agent/librarian"' in rows[0]["body"]
    assert b"agents.publish" in rows[1]["body"]
    assert b"agents.delete" in rows[3]["body"]
    assert agents.woken == woken + 2


async def test_a_repeat_with_its_key_is_the_same_publication(agents: Agents) -> None:
    call = editor("k1")
    done = await agents.publish(call, instructions="one")
    assert await agents.publish(call, instructions="one") == done
    with pytest.raises(KeyReused):
        await agents.publish(call, instructions="two")


async def test_publications_at_once_are_versions_one_after_the_other(agents: Agents) -> None:
    call = editor()
    done = await asyncio.gather(*(agents.publish(call, instructions=f"Take {n}.") for n in range(6)))
    assert sorted(one.version for one in done) == [1, 2, 3, 4, 5, 6]
    assert await agents.active(call) == 6


async def test_what_may_not_be_published_leaves_everything_as_it_was(agents: Agents) -> None:
    call = editor()
    await agents.publish(call, instructions="one")
    with pytest.raises(AgentRefused, match="no such tools: recal"):
        await agents.publish(call, tools=["recal"])
    with pytest.raises(Forbidden, match=r"member \(editor\) may not use read_neo4j_cypher"):
        await agents.publish(call, tools=["read_neo4j_cypher"])
    low = Call(call.who.model_copy(update=Persona.NOOR.rights), "gateway")
    with pytest.raises(Forbidden, match=r"member \(noor\) may not publish agents"):
        await agents.publish(low, instructions="two")
    assert await agents.active(call) == 1


async def test_nobody_rolls_back_to_a_tool_that_they_may_not_use(agents: Agents) -> None:
    chief = editor(role=Persona.ADMIN)
    await agents.publish(chief, tools=["read_neo4j_cypher"])
    await agents.publish(chief, tools=["recall"])
    lesser = Call(chief.who.model_copy(update=Persona.EDITOR.rights), "gateway")
    with pytest.raises(Forbidden, match="read_neo4j_cypher"):
        await agents.rollback(lesser, 1)
    assert await agents.active(chief) == 2


async def test_old_versions_go_and_the_active_one_stays(agents: Agents) -> None:
    call = editor()
    await agents.publish(call, instructions="first")
    await agents.publish(call, instructions="second")
    for n in range(MAX_AGENT_VERSIONS):
        await agents.publish(call, instructions=f"Take {n}.")
    kept = (await agents.own.versions(call, AgentByName(name="librarian"))).versions
    assert [one.version for one in kept] == list(range(MAX_AGENT_VERSIONS + 2, 2, -1))


async def test_a_tenant_has_no_more_agents_than_that(agents: Agents, database: Database) -> None:
    call = editor()
    insert = (
        "INSERT INTO agent_versions (tenant, agent, number, definition, active, published_by) "
        "VALUES ($1, $2, 1, $3, true, 'eve')"
    )
    async with database.transaction(call.who.tenant) as connection:
        rows = [(call.who.tenant, f"a{n}", {"name": f"a{n}"}) for n in range(MAX_AGENTS)]
        await connection.executemany(insert, rows)
    with pytest.raises(Conflict, match="at most 100 agents"):
        await agents.publish(call)
    assert (await agents.publish(call, "a7", instructions="A change is no new agent.")).version == 2
