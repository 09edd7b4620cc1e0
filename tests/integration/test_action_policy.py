"""A policy of actions that is set on one copy of the orchestrator, on a real server: the turns of every copy run under it."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from uuid import uuid4

import pytest

from phronesis_bus import Relay, ask, connect
from phronesis_contracts import Forbidden, Principal
from phronesis_contracts.approvals import (
    ACTION_POLICY_GET,
    ACTION_POLICY_LIST,
    ACTION_POLICY_SET,
    ActionPolicy,
    GetActionPolicy,
    ListPolicyVersions,
    PolicyChanged,
    SetActionPolicy,
)
from phronesis_orchestrator.approvals.handlers import PolicyCache, serve_policies
from phronesis_orchestrator.approvals.store import PostgresPolicies
from phronesis_postgres import Database, PostgresOutbox
from tests.support.personas import Persona
from tests.support.servers import NatsServer, PostgresServer


async def test_a_policy_that_is_set_on_one_copy_ends_what_every_copy_has_cached(
    nats_server: NatsServer, postgres: PostgresServer
) -> None:
    admin = Principal(tenant=f"t{uuid4().hex[:8]}", user="boss", **Persona.ADMIN.rights)
    async with AsyncExitStack() as stack:
        settings = await stack.enter_async_context(postgres.fresh_schema("orchestrator"))
        database = await stack.enter_async_context(Database.open(settings, "orchestrator"))
        caches = []
        for _ in range(2):
            bus = await stack.enter_async_context(connect("orchestrator", nats_server.settings("orchestrator")))
            # The clock stands still: nothing is read again because it is old.
            store, relay = PostgresPolicies(database), Relay(bus, PostgresOutbox(database))
            caches.append(PolicyCache(store.in_force, lambda: 0.0))
            await serve_policies(bus, store, caches[-1], relay.wake)
            relay.start()
        gateway = await stack.enter_async_context(connect("gateway", nats_server.settings("gateway")))
        assert [await cache.load(admin.tenant) for cache in caches] == [ActionPolicy()] * 2
        wanted = SetActionPolicy(replaces=0, egress=("example.org",))
        made = await ask(gateway, admin, ACTION_POLICY_SET, wanted, key="k1")
        async with asyncio.timeout(10):
            # No event tells of it.
            while [await cache.load(admin.tenant) for cache in caches] != [made.policy] * 2:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        with pytest.raises(PolicyChanged):
            await ask(gateway, admin, ACTION_POLICY_SET, wanted, key="k2")
        member = Principal(tenant=admin.tenant, user="ann")
        assert await ask(gateway, member, ACTION_POLICY_GET, GetActionPolicy()) == made
        with pytest.raises(Forbidden):
            await ask(gateway, member, ACTION_POLICY_LIST, ListPolicyVersions())
