"""All that is held of a user goes from every store of a whole stack, with a proof; and what a tenant does not keep goes too."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from phronesis import AsyncClient
from phronesis_contracts import Conflict, Forbidden, Unauthorized
from phronesis_contracts.deletions import DeletionState, Erasure
from phronesis_local import postgres
from tests.e2e.commands import command
from tests.support.bus import eventually
from tests.support.documents import pdf
from tests.support.people import Person, Town
from tests.support.remains import remains
from tests.support.stack import RunningStack

pytestmark = pytest.mark.timeout(240)

KEEPERS_OF_NAMES = {"gateway.erasures", "orchestrator.audit", "graph"}
"""Where a user's name stays: in the proof, in who did what, and for a while among the graph's ids of what was forgotten."""


def client(of: Person) -> AsyncClient:
    return AsyncClient(str(of.http.base_url), of.key)


async def administrator(everybody: Town) -> Person:
    return await everybody.someone(role="admin")


async def lived(person: Person, marker: str) -> None:
    """Let a user leave something in every service."""
    media = await person.uploaded("notes.pdf", pdf([[f"The {marker} station was built in 1931 by the water board."]]))
    await person.reply(f"When was the {marker} station built?", media=[media])
    await person.reply(f"My name is {marker} and I live in Leeds.")
    item = {"text": f"The {marker} is blue.", "title": marker, "kind": "concept", "external_id": marker}
    linked = {"text": f"A note on {marker}.", "title": f"note {marker}", "kind": "note", "links": [marker]}
    for one in (item, linked):
        stored = await person.tool("remember", {"items": [one]})
        assert stored.status_code == 200, stored.text
    async with client(person) as sdk:
        await sdk.memory.add({"text": f"{marker} said hello", "speaker": "Ada"}, conversation_id="c1")
        await sdk.profile.update({"town": marker})


async def settled(stack: RunningStack, person: Person, marker: str) -> dict[str, int]:
    """What is held of the marker once every service has followed what there was to follow."""
    found: dict[str, int] = {}

    async def quiet() -> bool:
        found.clear()
        found.update(await remains(stack, marker, person.tenant))
        return {"memory.items", "memory.profiles", "orchestrator.turns", "media"} <= set(found) and "events" not in found

    await eventually(quiet, within=60)
    return found


async def complete(sdk: AsyncClient, erasure: Erasure) -> Erasure:
    found = erasure

    async def done() -> bool:
        nonlocal found
        found = await sdk.users.erasure(erasure.erasure_id)
        return found.state is DeletionState.COMPLETE

    await eventually(done, within=120)
    return found


def digest_of(proof: Erasure, tenant: str) -> str:
    """The digest as `docs/how-to/forget-expire-erase.md` says that it is made."""
    assert proof.completed_at is not None
    said: dict[str, Any] = {
        "erasure_id": proof.erasure_id,
        "tenant": tenant,
        "user": proof.user,
        "requested_by": proof.requested_by,
        "requested_at": proof.requested_at.isoformat(),
        "completed_at": proof.completed_at.isoformat(),
        "before": proof.before,
        "after": proof.after,
        "kept": proof.kept,
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


async def test_nothing_is_left_of_an_erased_user_in_any_store_and_all_of_others(stack: RunningStack, everybody: Town) -> None:
    admin = await administrator(everybody)
    gone, stays = [await everybody.someone(tenant=admin.tenant) for _ in range(2)]
    marks = {gone.user: f"kingfisher{uuid4().hex[:12]}", stays.user: f"okapi{uuid4().hex[:12]}"}
    for person in (gone, stays):
        await lived(person, marks[person.user])
    before = await settled(stack, stays, marks[stays.user])
    await settled(stack, gone, marks[gone.user])
    async with client(admin) as sdk:
        preview = await sdk.users.preview_erasure(gone.user)
        assert (preview.user, preview.held["gateway"], preview.held["media"]["media"]) == (gone.user, {"keys": 1}, 1)
        assert (await sdk.users.preview_erasure(gone.user)).held == preview.held
        proof = await complete(sdk, await sdk.users.erase(gone.user))
        listed = await sdk.users.erasures()
    assert proof.before == preview.held
    assert all(proof.before[service] for service in ("gateway", "orchestrator", "memory", "graph", "media"))
    assert proof.after == {service: {} for service in proof.before}
    assert (proof.requested_by, proof.digest) == (admin.user, digest_of(proof, admin.tenant))
    assert listed == (proof,)
    assert marks[gone.user] not in proof.model_dump_json()
    assert (await gone.http.get("/api/v1/profile")).status_code == 401
    assert await remains(stack, marks[gone.user], gone.tenant) == {}
    assert set(await remains(stack, gone.user, gone.tenant)) <= KEEPERS_OF_NAMES
    assert await remains(stack, marks[stays.user], stays.tenant) == before
    async with client(stays) as sdk:
        assert [one.text for one in (await sdk.memory.search("hello", kinds="message")).memories] == [
            f"{marks[stays.user]} said hello"
        ]
    connection = await asyncpg.connect(postgres.dsn(stack.data.postgres))
    try:
        entries = await connection.fetch(
            "SELECT action, who, arguments::text AS said FROM orchestrator.audit"
            " WHERE tenant = $1 AND starts_with(action, 'user.')",
            admin.tenant,
        )
    finally:
        await connection.close()
    assert {(row["action"], row["who"]) for row in entries} == {("user.erase", admin.user), ("user.erased", admin.user)}
    assert any(str(proof.digest) in row["said"] for row in entries)


@pytest.mark.verify
async def test_an_erasure_goes_on_where_it_was_after_its_process_was_killed(stack: RunningStack, everybody: Town) -> None:
    admin = await administrator(everybody)
    gone, mark = await everybody.someone(tenant=admin.tenant), f"heron{uuid4().hex[:12]}"
    await lived(gone, mark)
    await settled(stack, gone, mark)
    async with client(admin) as sdk:
        begun = await sdk.users.erase(gone.user)

        async def half_way() -> bool:
            return "media" in (await sdk.users.erasure(begun.erasure_id)).before

        await eventually(half_way, within=60)
        before = stack.part("gateway").process
        stack.process("gateway").kill()
        await stack.until(lambda now: now.parts["gateway"].state == "up" and now.parts["gateway"].process != before)
        await everybody.ready()
        proof = await complete(sdk, begun)
    assert proof.before["media"]["media"] == 1
    assert proof.after == {service: {} for service in proof.before}
    assert await remains(stack, mark, gone.tenant) == {}


async def test_users_erase_themselves_and_nobody_else(everybody: Town) -> None:
    admin = await administrator(everybody)
    ada, bo = [await everybody.someone(tenant=admin.tenant) for _ in range(2)]
    elsewhere = await administrator(everybody)
    async with client(ada) as sdk:
        await sdk.memory.add("the locker is in the hall")
        with pytest.raises(Forbidden):
            await sdk.users.erase(bo.user)
        with pytest.raises(Forbidden):
            await sdk.users.preview_erasure(bo.user)
        with pytest.raises(Forbidden):
            await sdk.retention.get()
        assert (await sdk.users.preview_erasure(ada.user)).held["memory"]["note_items"] == 1
        begun = await sdk.users.erase(ada.user)
        with pytest.raises(Unauthorized):
            await sdk.memory.list()
    async with client(elsewhere) as sdk:
        assert (await sdk.users.preview_erasure(bo.user)).held["gateway"] == {}
        with pytest.raises(Conflict):
            await sdk.users.erase(elsewhere.user)
    async with client(admin) as sdk:
        proof = await complete(sdk, begun)
        assert (await sdk.users.preview_erasure(bo.user)).held["gateway"] == {"keys": 1}
    assert (proof.requested_by, proof.before["memory"]["note_items"]) == (ada.user, 1)


@pytest.mark.verify
async def test_a_program_erases_its_user_by_its_own_name_for_them(everybody: Town) -> None:
    admin = await administrator(everybody)
    backend = await everybody.someone(tenant=admin.tenant, scopes=("act_for_users",))
    async with client(backend) as program, client(admin) as sdk:
        await program.memory.add("the locker is in the hall", user_id="Bo@Example.com")
        await program.memory.add("the locker is upstairs", user_id="cy")
        proof = await complete(sdk, await sdk.users.erase("Bo@Example.com"))
        assert proof.before["memory"]["note_items"] == 1
        assert (await program.memory.list(user_id="Bo@Example.com")).memories == ()
        assert len((await program.memory.list(user_id="cy")).memories) == 1
        await program.memory.add("the locker is new", user_id="Bo@Example.com")
        assert len((await program.memory.list(user_id="Bo@Example.com")).memories) == 1


@pytest.mark.verify
async def test_what_a_tenant_does_not_keep_longer_is_deleted_and_nothing_of_others(
    stack: RunningStack, everybody: Town
) -> None:
    admin, other = await administrator(everybody), await administrator(everybody)
    for person in (admin, other):
        await lived(person, f"heron{uuid4().hex[:12]}")
    connection = await asyncpg.connect(postgres.dsn(stack.data.postgres))
    counts = """
        SELECT (SELECT count(*) FROM memory.items WHERE tenant = $1 AND kind = 'message'),
            (SELECT count(*) FROM memory.items WHERE tenant = $1 AND kind = 'note'),
            (SELECT count(*) FROM orchestrator.conversations WHERE tenant = $1),
            (SELECT count(*) FROM orchestrator.turns WHERE tenant = $1)"""
    try:
        for person in (admin, other):
            await connection.execute(
                "UPDATE memory.items SET created_at = now() - interval '40 days' WHERE tenant = $1", person.tenant
            )
            await connection.execute(
                "UPDATE orchestrator.conversations SET updated_at = now() - interval '40 days' WHERE tenant = $1",
                person.tenant,
            )
        async with client(admin) as sdk:
            assert (await sdk.retention.get()).model_dump(exclude_none=True) == {}
            told = await sdk.retention.set(messages=30, conversations=30, media=30)
            assert told.model_dump(exclude_none=True) == {"messages": 30, "conversations": 30, "media": 30}
            assert await sdk.retention.get() == told

        async def swept() -> bool:
            return list(await connection.fetchrow(counts, admin.tenant)) == [0, 1, 0, 0]

        await eventually(swept, within=60)
        assert list(await connection.fetchrow(counts, other.tenant)) == [1, 1, 2, 2]
        entered = "SELECT count(*) FROM orchestrator.audit WHERE tenant = $1 AND action = 'retention.sweep'"

        async def audited() -> bool:
            return bool(await connection.fetchval(entered, admin.tenant))

        await eventually(audited, within=30)
    finally:
        await connection.close()
    async with client(admin) as sdk:
        assert (await sdk.users.preview_erasure(admin.user)).held["media"]["media"] == 1


async def test_a_memory_expires_in_a_running_stack(somebody: Person) -> None:
    async with client(somebody) as sdk:
        soon = datetime.now(UTC) + timedelta(seconds=3)
        added = await sdk.memory.add(["the alarm code is 4711", "the alarm is loud"], expires_at=soon)
        await sdk.memory.update(added.memories[1].id, expires_at="never")
        held = {one.text: one.expires_at for one in (await sdk.memory.list()).memories}
        assert held == {"the alarm code is 4711": soon, "the alarm is loud": None}

        async def expired() -> bool:
            return [one.text for one in (await sdk.memory.list()).memories] == ["the alarm is loud"]

        await eventually(expired, within=10)

        async def swept() -> bool:
            return (await sdk.users.preview_erasure(somebody.user)).held["memory"]["note_items"] == 1

        await eventually(swept, within=30)


@pytest.mark.verify
async def test_the_command_line_erases_a_user_and_sets_retention(stack: RunningStack, everybody: Town) -> None:
    gone = await everybody.someone(tenant="local")
    async with client(gone) as sdk:
        await sdk.memory.add("the locker is in the hall")
    code, out, err = await command(stack, "user", "erase", gone.user, "--dry-run")
    assert (code, "erases   gateway: 1 keys" in out) == (0, True), err
    code, out, err = await command(stack, "user", "erase", gone.user, "--yes", "--wait", "--json")
    done = json.loads(out)
    assert (code, done["state"], done["before"]["memory"]["note_items"]) == (0, "complete", 1), err
    code, out, err = await command(stack, "user", "erasure", done["erasure_id"])
    assert (code, done["digest"] in out) == (0, True), err
    code, out, err = await command(stack, "retention", "set", "--messages", "36500", "--yes")
    assert (code, "messages       36500 days" in out) == (0, True), err
    code, out, err = await command(stack, "retention", "set", "--yes")
    code, out, err = await command(stack, "retention", "show")
    assert (code, "messages       for ever" in out) == (0, True), err
