"""A backup that is older than a forgetting brings back nothing of it: its list of what was forgotten outlives the stores."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4

import pytest

from phronesis_local.parts import SERVICES
from tests.support.bus import eventually
from tests.support.documents import pdf
from tests.support.operations import WITHOUT_A_MODEL, content, phronesis
from tests.support.people import Person, Town, town
from tests.support.production import SERVERS
from tests.support.remains import remains
from tests.support.stack import RunningStack, running

pytestmark = [pytest.mark.verify, pytest.mark.any_store, pytest.mark.timeout(900)]


async def learnt(person: Person, thing: str) -> dict[str, Any]:
    """The held fact of this object, once there is one."""
    end = monotonic() + 120
    while True:
        found = [one for one in (await person.tool("facts.list", {})).json()["facts"] if one["object"] == thing]
        if found:
            return dict(found[0])
        assert monotonic() < end, f"{thing} is not learnt"
        await asyncio.sleep(0.5)


async def clean(stack: RunningStack, marker: str, tenant: str) -> None:
    """Return when nothing is left of `marker`; fail with what is when that takes too long."""
    end = monotonic() + 60
    while left := await remains(stack, marker, tenant):
        assert monotonic() < end, left
        await asyncio.sleep(0.5)


async def forgotten(person: Person, id: str) -> None:
    """Forget a fact, and return when every service has."""
    told: dict[str, Any] = (await person.tool("memory.forget", {"ids": [id]})).json()

    async def complete() -> bool:
        asked = {"forgetting_id": told["forgetting_id"]}
        return bool((await person.tool("memory.forgetting", asked)).json()["state"] == "complete")

    await eventually(complete, within=120)


async def opened(stack: RunningStack) -> tuple[str, str]:
    """Where a stack answers, and its owner's key."""
    return stack.data.url.read_text().strip(), stack.data.key.read_text().strip()


async def erased(admin: Person, person: Person) -> None:
    """Erase a user, and return when that is complete."""
    told = await admin.http.delete(f"/api/v1/users/{person.user}")
    assert told.status_code == 202, told.text

    async def complete() -> bool:
        return bool((await admin.http.get(told.headers["location"])).json()["state"] == "complete")

    await eventually(complete, within=120)


async def source_forgotten(person: Person, media: str) -> None:
    """Forget a document with all that came of it, and return when that is complete."""
    told = await person.http.post("/api/v1/forgettings", json={"document": media})
    assert told.status_code == 202, told.text

    async def complete() -> bool:
        return bool((await person.http.get(told.headers["location"])).json()["state"] == "complete")

    await eventually(complete, within=120)


async def before(data: Path, archive: Path, known: Path, marks: tuple[str, str, str]) -> tuple[str, str, str, str]:
    """Learn, back up, forget, erase another user, and write what was forgotten: whose it was, and a turn in which it stood."""
    marker, other, attached = marks
    async with running(data, (*SERVERS, *SERVICES), WITHOUT_A_MODEL) as stack, town(*await opened(stack)) as people:
        await people.ready()
        person = await people.someone()
        turn = (await person.reply(f"I like {marker}."))["turn_id"]
        fact = await learnt(person, marker)
        media = await person.uploaded("notes.pdf", pdf([[f"The {attached} station was built in 1931 by the water board."]]))
        await person.reply("When was the station built?", media=[media])
        gone, admin = await people.someone(tenant=person.tenant), await people.someone(tenant=person.tenant, role="admin")
        await gone.uploaded("notes.pdf", pdf([[f"The {other} station was built in 1931 by the water board."]]))
        await gone.reply(f"Where is the {other}?")
        await gone.remember(other, f"The {other} is blue.")
        code, _, errors = await phronesis("backup", str(archive), data=data)
        assert code == 0, errors
        assert marker.encode() in content(archive, "backup")
        await forgotten(person, fact["id"])
        await source_forgotten(person, media)
        await clean(stack, marker, person.tenant)
        await erased(admin, gone)
        await clean(stack, other, person.tenant)
        await clean(stack, attached, person.tenant)
        code, said, errors = await phronesis("forgotten", str(known), data=data)
        assert (code, said.strip()) == (0, f"{known}: 3 forgettings"), errors
        return person.key, person.tenant, person.user, turn


def again(people: Town, key: str, tenant: str, user: str) -> Person:
    """Somebody who was there when the backup was made."""
    person = people._person(key)
    person.tenant, person.user = tenant, user
    return person


async def still_forgotten(data: Path, marks: tuple[str, str, str], key: str, tenant: str, user: str, turn: str) -> None:
    """Start a restored stack, and see that nothing of `marks` is in it and that a replay says why."""
    marker, other, attached = marks
    async with running(data, (*SERVERS, *SERVICES), WITHOUT_A_MODEL) as stack, town(*await opened(stack)) as people:
        await people.ready()
        person = again(people, key, tenant, user)
        await clean(stack, marker, tenant)
        await clean(stack, other, tenant)
        await clean(stack, attached, tenant)
        (source,) = (await person.http.get("/api/v1/forgettings")).json()["forgettings"]
        assert source["after"] == {name: {} for name in source["after"]}
        assert (await person.tool("facts.list", {"superseded": True})).json()["facts"] == []
        replayed = await person.http.post(f"/api/v1/turns/{turn}/replay", json={})
        assert (replayed.status_code, replayed.json()["code"]) == (404, "turn_forgotten")
        logs = [path for path in Path(stack.data.root).rglob("*.log") if marker.encode() in path.read_bytes()]
        assert logs == []


async def test_a_restored_backup_forgets_again_by_a_kept_list_and_by_what_the_stores_knew(tmp_path: Path) -> None:
    archive, known = tmp_path / "all.phr", tmp_path / "forgotten.jsonl"
    marks = (f"kestrel{uuid4().hex[:12]}", f"heron{uuid4().hex[:12]}", f"bittern{uuid4().hex[:12]}")
    whose = await before(tmp_path / "first", archive, known, marks)
    assert not [mark for mark in marks if mark in known.read_text()]
    assert [json.loads(line).get("owner") for line in known.read_text().splitlines()] == [whose[2], None, None]
    fresh = ("restore", str(archive), "--forgotten", str(known))
    over = ("restore", str(archive), "--force", "--yes")
    for data, arguments in ((tmp_path / "second", fresh), (tmp_path / "first", over)):
        code, said, errors = await phronesis(*arguments, data=data)
        assert (code, "DIFFERS" in said) == (0, False), errors
        await still_forgotten(data, marks, *whose)
