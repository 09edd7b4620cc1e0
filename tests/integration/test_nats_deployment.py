"""The broker of a deployment, with the committed file: each user tries every subject there is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from phronesis_bus.secrets import make
from phronesis_contracts import Agent, Role
from phronesis_contracts.service import SERVICES
from tests.support import rights
from tests.support.bus import connected, eventually
from tests.support.nats_deployment import FILES, DeployedNats, Wire, deployed
from tests.support.outside import access, admitting, is_let_in
from tests.support.personas import Persona

pytestmark = pytest.mark.verify

USERS = (*SERVICES, "declare", "operator", "system")
COMMITTED = (FILES / "nats.conf").read_text()
MESSAGES = rights.messages(COMMITTED, USERS)
SUBSCRIPTIONS = rights.subscriptions(COMMITTED, USERS)


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DeployedNats]:
    async with deployed(tmp_path_factory.mktemp("deployed")) as server:
        await server.declare()
        yield server


@pytest.fixture
async def wire(server: DeployedNats, user: str) -> AsyncIterator[Wire]:
    password = server.secrets / f"nats-{'declare' if user == 'system' else user}.password"
    async with Wire.of(server, user, password.read_text()) as wire:
        yield wire


@pytest.mark.parametrize("user", USERS)
async def test_a_user_may_publish_what_is_declared_for_it_and_nothing_else(wire: Wire, user: str) -> None:
    expected = rights.allowed(rights.may_publish(user), MESSAGES)
    assert set(MESSAGES) - await wire.cannot_publish(MESSAGES) == expected
    assert 0 < len(expected) < len(MESSAGES)


@pytest.mark.parametrize("queue", ["", "own", "another", "mine"])
@pytest.mark.parametrize("user", USERS)
async def test_a_user_may_hear_what_is_declared_for_it_and_nothing_else_in_a_queue_group_too(
    wire: Wire, user: str, queue: str
) -> None:
    group = {"own": user, "another": "memory" if user != "memory" else "graph"}.get(queue, queue)
    expected = rights.allowed(rights.may_hear(user), SUBSCRIPTIONS)
    assert set(SUBSCRIPTIONS) - await wire.cannot_subscribe(SUBSCRIPTIONS, group) == expected
    assert 0 < len(expected) < len(SUBSCRIPTIONS)


@pytest.mark.parametrize(
    "given",
    [Persona.NOOR.rights, Persona.CURATOR.rights, {"role": Role.READER, "agents": (Agent.CURATOR, Agent.NOOR)}],
    ids=["noor", "curator", "reader"],
)
async def test_an_outside_system_may_do_what_its_tenant_user_and_role_give_it_and_nothing_else(
    server: DeployedNats, given: dict[str, Any]
) -> None:
    await server.declare()  # the program that declares has tried to delete every stream, and may
    async with admitting(server), connected(server, "gateway") as (gateway,):
        who, made = access(gateway, **given)
        say, hear = rights.of_outside_system(who)
        own = [subject.replace("acme", who.tenant).replace("ann", who.user) for subject in SUBSCRIPTIONS]
        subjects = list(dict.fromkeys([*SUBSCRIPTIONS, *own, *hear, f"{made.inbox}.x"]))
        messages = [subject for subject in subjects if not {"*", ">"} & set(subject.split("."))]
        async with Wire.of(server, made.user, made.password) as wire:
            assert set(messages) - await wire.cannot_publish(messages) == rights.allowed(say, messages)
            for queue in ("", "memory"):
                assert set(subjects) - await wire.cannot_subscribe(subjects, queue) == rights.allowed(hear, subjects)


def test_every_contract_is_tried() -> None:
    """A message that a service may send is one that another may hear, or that a stream takes."""
    heard = {pattern for user in USERS for pattern in rights.may_hear(user)}
    asked = {pattern for user in USERS for pattern in rights.may_publish(user) if pattern.startswith("rpc.")}
    assert asked <= heard
    assert {rights._one(pattern) for pattern in asked} <= set(MESSAGES)


async def test_a_changed_password_counts_after_a_reload_and_puts_out_who_came_with_the_old_one(tmp_path: Path) -> None:
    async with deployed(tmp_path) as server, AsyncExitStack() as stack:
        old = (server.secrets / "nats-graph.password").read_text()
        graph = await stack.enter_async_context(Wire.of(server, "graph", old))
        media = await stack.enter_async_context(Wire.of(server, "media", (server.secrets / "nats-media.password").read_text()))
        (server.secrets / "nats-graph.password").unlink()
        make(server.secrets)
        server.reload()
        await eventually(graph.is_put_out)
        assert await media.cannot_publish(["_INBOX.x"]) == set()
        with pytest.raises(AssertionError):
            await stack.enter_async_context(Wire.of(server, "graph", old))
        await stack.enter_async_context(Wire.of(server, "graph", (server.secrets / "nats-graph.password").read_text()))


async def test_a_changed_admission_key_counts_after_a_restart_of_the_server(tmp_path: Path) -> None:
    async with deployed(tmp_path) as server:
        await server.declare()
        (server.secrets / "admission.pem").unlink()
        make(server.secrets)
        async with admitting(server), connected(server, "gateway") as (gateway,):
            _, made = access(gateway)
            assert not await is_let_in(server, made)
            await server.stop()
            await server.bare()
            await eventually(lambda: is_let_in(server, made))
