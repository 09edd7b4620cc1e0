"""What is learnt from turns by itself, and what is left once it is forgotten: no row, vector, message or log line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4

import pytest

from phronesis_bus import connect
from phronesis_bus.envelope import PARKED_FROM
from phronesis_bus.outbox import publish
from phronesis_contracts.orchestrator import PROGRESS, TURN_ENDED, TurnEndedNews, TurnProgress, TurnStatus
from tests.e2e.commands import command
from tests.support.bus import eventually
from tests.support.people import Person, Town
from tests.support.remains import remains
from tests.support.stack import RunningStack

pytestmark = pytest.mark.timeout(240)


async def facts(person: Person, **more: Any) -> list[dict[str, Any]]:
    """What is known of somebody."""
    answer = await person.tool("facts.list", more)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["facts"]
    return found


async def learnt(person: Person, thing: str) -> dict[str, Any]:
    """The held fact of this object, once there is one."""
    end = monotonic() + 60
    while not (found := [fact for fact in await facts(person) if fact["object"] == thing]):
        assert monotonic() < end, f"{thing} is not learnt"
        await asyncio.sleep(0.5)
    return found[0]


async def forgotten(person: Person, **what: Any) -> dict[str, Any]:
    """Forget, and return what is told once that is complete."""
    answer = await person.tool("memory.forget", what)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()

    async def complete() -> bool:
        found.update((await person.tool("memory.forgetting", {"forgetting_id": found["forgetting_id"]})).json())
        return bool(found["state"] == "complete")

    await eventually(complete, within=60)
    return found


async def clean(stack: RunningStack, marker: str, tenant: str) -> None:
    """Return when nothing is left of `marker`; fail with what is when that takes too long."""
    left: dict[str, int] = {}
    for _ in range(60):
        left = await remains(stack, marker, tenant)
        if not left:
            return
        await asyncio.sleep(0.25)
    assert left == {}


def logged(stack: RunningStack, marker: str) -> list[str]:
    """The files of logs in which `marker` stands."""
    files = [path for path in Path(stack.data.root).rglob("*.log") if path.is_file()]
    assert files
    return [path.name for path in files if marker.encode() in path.read_bytes()]


async def planted(stack: RunningStack, person: Person, reply: dict[str, Any], marker: str) -> None:
    """Have the streams hold `marker` with a turn: in a line of its progress, and in news of its end that memory parked."""
    of = {"conversation_id": reply["conversation_id"], "turn_id": reply["turn_id"]}
    for service in ("orchestrator", "memory"):
        async with connect(service, stack.bus_settings(service)) as bus:
            if service == "orchestrator":
                line = TurnProgress(**of, kind="phase", phase="routed", detail={"phrases": [marker]})
                subject = PROGRESS.on(person.tenant, person.user, reply["turn_id"])
                await publish(bus, subject, line.model_dump_json().encode(), {})
            else:
                news = TurnEndedNews(
                    **of, user=person.user, agent="dialogue", status=TurnStatus.COMPLETED, user_text=f"I like {marker}."
                )
                headers = {PARKED_FROM: TURN_ENDED.on(person.tenant)}
                await publish(bus, f"parked.{TURN_ENDED.durable(service)}", news.model_dump_json().encode(), headers)


async def test_a_preference_that_changed_is_held_as_it_is_now_and_forgotten_without_a_trace(
    stack: RunningStack, everybody: Town
) -> None:
    person, marker = await everybody.someone(), f"kestrel{uuid4().hex[:12]}"
    other = await everybody.someone(tenant=person.tenant)
    first = await person.reply(f"I prefer short {marker}.")
    await learnt(person, f"short {marker}")
    await person.reply(f"I prefer long {marker}.", first["conversation_id"])
    held = await learnt(person, f"long {marker}")
    past, now = sorted(await facts(person, superseded=True), key=lambda fact: str(fact["valid_from"]))
    assert (past["object"], past["held"], past["valid_to"]) == (f"short {marker}", False, now["valid_from"])
    assert (now["id"], now["valid_to"], now["sources"][0]["origin"]) == (held["id"], None, "user")
    asked = await person.reply(f"What do you know of {marker}?")
    assert await facts(other, superseded=True) == []
    await planted(stack, person, asked, marker)
    before = await remains(stack, marker, person.tenant)
    tables = {"memory.facts", "memory.items", "orchestrator.messages", "orchestrator.turns"}
    assert tables | {"stream OUT", "stream PARKED"} <= set(before)

    told = await forgotten(person, subject="user")
    assert (told["removed"]["memory"]["facts"], told["removed"]["memory"]["sources"]) == (2, 2)
    assert told["removed"]["orchestrator"]["turns"] >= 2
    assert "links" in told["removed"]["graph"]
    for turn in (first, asked):
        assert (await person.http.get(f"/api/v1/turns/{turn['turn_id']}")).status_code == 404
        replayed = await person.http.post(f"/api/v1/turns/{turn['turn_id']}/replay", json={})
        assert (replayed.status_code, replayed.json()["code"]) == (404, "turn_forgotten")
        assert marker not in replayed.text
    await clean(stack, marker, person.tenant)
    assert logged(stack, marker) == []


@pytest.mark.verify
async def test_the_command_imports_once_lists_explains_and_forgets(stack: RunningStack, tmp_path: Path) -> None:
    marker = f"kestrel{uuid4().hex[:12]}"
    file = tmp_path / "facts.jsonl"
    file.write_text(json.dumps({"text": f"I like {marker}"}) + "\n")
    for _ in range(2):
        code, out, err = await command(stack, "memory", "import", str(file))
        assert (code, out.strip()) == (0, "1 lines: 1 added, 0 known before, 0 superseded"), err
    code, out, err = await command(stack, "memory", "facts", "--query", marker, "--json")
    (found,) = json.loads(out)["facts"]
    assert (code, found["fact"]["object"], len(found["fact"]["sources"])) == (0, marker, 1), err
    id = found["fact"]["id"]
    code, out, err = await command(stack, "memory", "forget", id, "--preview", "--json")
    assert (code, json.loads(out)["removed"]["facts"]) == (0, 1), err
    code, out, err = await command(stack, "memory", "forget", id, "--yes", "--json")
    assert (code, json.loads(out)["state"]) == (0, "complete"), err
    file.write_text("{}\n")
    code, _, err = await command(stack, "memory", "import", str(file))
    assert code != 0
    assert "line 1" in err
    await clean(stack, marker, "local")
