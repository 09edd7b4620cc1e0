"""A stack is backed up while it works, and restored into a fresh directory: nothing of what it had said yes to is missing."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from phronesis_local.parts import SERVICES
from tests.support.bus import eventually
from tests.support.documents import pdf
from tests.support.operations import WITHOUT_A_MODEL, alike, content, counts, phronesis
from tests.support.people import Person, Town, town
from tests.support.production import SERVERS
from tests.support.sample_portfolio import few_projects
from tests.support.stack import RunningStack, running

pytestmark = [pytest.mark.verify, pytest.mark.any_store, pytest.mark.timeout(600)]

LINES = ["The ferry to Utvorda leaves at six.", "It carries twelve cars."]
QUERIES = ("When does the ferry leave?", "twelve cars", "Finsevatn weather station", "lighthouse")
FACTS = {
    "Ferry to Utvorda": "The ferry to Utvorda leaves at six and carries twelve cars.",
    "Finsevatn": "The weather station at Finsevatn was built in 1931 and stands at 1210 metres.",
    "Slettnes lighthouse": "Slettnes lighthouse is the northernmost lighthouse on the mainland.",
}
KEPT = "The harbour master leaves in May."
SECRET = "The second key hangs behind the zebrawood clock."


@dataclass
class Before:
    """What the first stack held and said."""

    archive: Path
    data: Path
    said: str = ""
    people: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    """Key, tenant and user by name."""
    recalled: dict[str, Any] = field(default_factory=dict)
    conversation: str = ""
    messages: list[Any] = field(default_factory=list)
    origins: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    media: str = ""
    accepted: list[str] = field(default_factory=list)
    """Turns of somebody busy that were accepted before the backup began."""
    exported: str = ""
    refused: tuple[int, str] = (0, "")


async def recalled(person: Person, scope: str) -> list[tuple[str, str, float]]:
    """What a scope holds on the harbour: keys, contents and confidences."""
    answer = await person.tool("recall_memory", {"scope": scope, "query_summary": "harbour"})
    return [(one["key"], one["content"], one["confidence"]) for one in answer.json()["snippets"]]


async def origins(person: Person) -> dict[str, list[dict[str, str]]]:
    """Where somebody's memories come from, by what they say, once the turn with the document is among them."""
    page = (await person.http.get("/api/v1/memory")).json()["memories"]
    told = {one["text"]: one["labels"] for one in page}
    return told if any("Attached: ferry.pdf" in text for text in told) else {}


async def busy(person: Person, accepted: list[str], stop: asyncio.Event) -> None:
    """Hand in turns, and remember things, until told to stop."""
    number = 0
    while not stop.is_set():
        number += 1
        answer = await person.submit(f"What do you know of harbour number {number}?")
        if answer.status_code == 202:
            accepted.append(answer.json()["turn_id"])
        await person.tool("remember", {"items": [{"title": f"Harbour {number}", "text": f"Harbour {number} is deep."}]})
        about = {"aims": f"Harbour {number} is to be dredged before winter."}
        place = {"id": f"h{number}", "year": 2023, "name": f"Harbour {number}", "level": "L3"}
        batch = {"type": "EntityProject", **place, "properties": about}
        await person.tool("graph_upsert", {"nodes": [batch], "relationships": []})


async def filled(people: Town, before: Before) -> None:
    """Give everybody something."""
    ann, bob = await people.someone("acme"), await people.someone("zebra-co")
    upsert = few_projects().model_dump(mode="json")
    assert (await people.owner.tool("graph_upsert", upsert)).status_code == 200
    for title, text in FACTS.items():
        await ann.remember(title, text)
    await bob.remember("Second key", SECRET)
    chief = await people.someone("acme", "maestro")
    for scope in ("personal", "secrets"):
        body = {"scope": scope, "key": "harbour", "content": KEPT, "confidence": 0.5}
        assert (await chief.tool("keep_memory", body)).status_code == 200
    before.media = await ann.uploaded("ferry.pdf", pdf([LINES]))
    before.conversation = (await ann.reply("Hello! When does the ferry leave?", media=[before.media]))["conversation_id"]
    before.messages = await ann.messages(before.conversation)
    await eventually(lambda: origins(ann), within=60)
    before.origins = await origins(ann)
    before.people = {name: (p.key, p.tenant, p.user) for name, p in (("ann", ann), ("bob", bob), ("chief", chief))}
    before.recalled = {query: await ann.recall(query) for query in QUERIES}


@pytest.fixture(scope="module")
async def before(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Before]:
    """A stack that was backed up in the middle of its work, and stopped."""
    folder = tmp_path_factory.mktemp("before")
    before = Before(folder / "all.phr", folder / "data")
    async with running(before.data, (*SERVERS, *SERVICES), WITHOUT_A_MODEL) as stack:
        async with town(stack.data.url.read_text().strip(), stack.data.key.read_text().strip()) as people:
            await people.ready()
            await filled(people, before)
            carol, stop, accepted = await people.someone("busybees", "maestro"), asyncio.Event(), list[str]()
            before.people["carol"] = (carol.key, carol.tenant, carol.user)
            working = asyncio.create_task(busy(carol, accepted, stop))
            await eventually(lambda: len(accepted) >= 5, within=120)
            before.accepted = list(accepted)
            code, before.said, errors = await phronesis("backup", str(before.archive), data=before.data)
            assert code == 0, errors
            stop.set()
            await working
            code, before.exported, errors = await phronesis("export", "acme", str(folder / "acme.phr"), data=before.data)
            assert code == 0, errors
            code, _, errors = await phronesis("restore", str(before.archive), data=before.data)
            before.refused = (code, errors)
    yield before
    shutil.rmtree(folder)


@dataclass
class After:
    """The second stack."""

    stack: RunningStack
    people: Town
    named: dict[str, Person]
    said: str


@pytest.fixture(scope="module")
async def after(before: Before, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[After]:
    """The archive in a fresh directory, with its stack running."""
    data = tmp_path_factory.mktemp("after") / "data"
    code, said, errors = await phronesis("restore", str(before.archive), data=data)
    assert code == 0, errors
    async with running(data, (*SERVERS, *SERVICES), WITHOUT_A_MODEL) as stack:
        async with town(stack.data.url.read_text().strip(), stack.data.key.read_text().strip()) as people:
            await people.ready()
            named = {}
            for name, (key, tenant, user) in before.people.items():
                person = named[name] = people._person(key)
                person.tenant, person.user = tenant, user
            yield After(stack, people, named, said)


def test_every_store_holds_what_the_archive_does(before: Before, after: After) -> None:
    lines = [line.split() for line in after.said.splitlines()[1:-1]]
    assert {name: int(here.replace(",", "")) for name, _, here in lines} == counts(before.archive)


async def test_recalls_are_the_same(before: Before, after: After) -> None:
    ann = after.named["ann"]
    assert alike({query: await ann.recall(query) for query in QUERIES}, before.recalled)


async def test_memories_of_scopes_are_there(after: After) -> None:
    chief = after.named["chief"]
    assert [await recalled(chief, scope) for scope in ("personal", "secrets", "csuite")] == [[("harbour", KEPT, 0.5)]] * 2 + [
        []
    ]


async def test_every_memory_comes_from_where_it_came_from(before: Before, after: After) -> None:
    assert await origins(after.named["ann"]) == before.origins
    kinds = {label["kind"] for labels in before.origins.values() for label in labels}
    assert {"memory", "document"} <= kinds


async def test_a_conversation_goes_on(before: Before, after: After) -> None:
    ann = after.named["ann"]
    assert await ann.messages(before.conversation) == before.messages
    reply = await ann.reply("And how many cars does it carry?", before.conversation)
    assert reply["conversation_id"] == before.conversation
    assert len(await ann.messages(before.conversation)) == len(before.messages) + 2


async def test_an_upload_is_readable(before: Before, after: After) -> None:
    answer = await after.named["ann"].tool("document.extract_text", {"media_id": before.media})
    assert answer.json()["text"].split() == " ".join(LINES).split()


async def test_another_tenant_still_sees_nothing(before: Before, after: After) -> None:
    assert (await after.named["bob"].http.get(f"/api/v1/media/{before.media}")).status_code == 404
    assert [item["text"] for item in await after.named["bob"].recall("Where is the second key?")] == [SECRET]


async def test_every_turn_accepted_before_the_backup_is_there_and_ends(before: Before, after: After) -> None:
    carol = after.named["carol"]
    ends = [(await carol.ended(turn))["status"] for turn in before.accepted]
    assert ends == ["completed"] * len(before.accepted)


async def test_what_the_graph_holds_is_found_by_meaning_in_the_end(after: After) -> None:
    """News that was not followed at the point is followed after the restore."""
    carol = after.named["carol"]
    code, _, errors = await phronesis("backup", str(after.stack.data.root / "again.phr"), data=after.stack.data.root)
    assert code == 0, errors
    held = content(after.stack.data.root / "again.phr", "backup")
    numbers = [n for n in range(1, 6) if f"busybees/EntityProject/h{n}/2023".encode() in held]
    assert numbers

    async def found(n: int) -> bool:
        return f"EntityProject/h{n}/2023" in [item["external_id"] for item in await carol.recall(f"Harbour {n} dredged")]

    for n in numbers:
        await eventually(lambda n=n: found(n), within=60)  # type: ignore[misc]


def test_a_stack_that_runs_is_not_restored_over(before: Before) -> None:
    code, said = before.refused
    assert (code, "phronesis down" in said) == (3, True)


async def test_stores_that_hold_something_are_not_restored_over(before: Before) -> None:
    code, _, said = await phronesis("restore", str(before.archive), data=before.data)
    assert (code, "--force removes everything first" in said) == (3, True)


async def test_a_damaged_archive_is_refused_before_anything_is_touched(before: Before, tmp_path: Path) -> None:
    data = bytearray(before.archive.read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "damaged.phr").write_bytes(data)
    code, _, said = await phronesis("restore", str(tmp_path / "damaged.phr"), data=tmp_path / "fresh")
    assert (code, said.startswith("error: ")) == (3, True)
    assert not (tmp_path / "fresh").exists()


def test_the_export_of_a_tenant_holds_nothing_of_another(before: Before) -> None:
    held = content(before.archive.with_name("acme.phr"), "tenant")
    foreign = [
        SECRET,
        "zebrawood",
        before.people["bob"][2],
        before.people["carol"][2],
        "zebra-co",
        "busybees",
        "local/",
        "Geological",
    ]
    assert [text for text in foreign if text.encode() in held] == []
    assert all(fact.encode() in held for fact in FACTS.values())


async def test_a_copy_beside_the_original_is_refused_and_leaves_nothing(before: Before, after: After) -> None:
    export, data, name = before.archive.with_name("acme.phr"), after.stack.data.root, f"moved-{uuid4().hex[:8]}"
    code, _, said = await phronesis("import", str(export), data=data)
    assert (code, "has something here" in said) == (3, True)
    code, _, said = await phronesis("import", str(export), "--as", name, data=data)
    assert (code, "ids of the archive are taken" in said) == (3, True)
    code, _, said = await phronesis("export", name, str(data / "moved.phr"), data=data)
    assert (code, f"there is nothing of {name}" in said) == (3, True)
    assert await after.named["ann"].recall(QUERIES[0])


async def test_a_tenant_moves_to_another_installation_under_another_name(before: Before, tmp_path: Path) -> None:
    export = before.archive.with_name("acme.phr")
    async with running(tmp_path / "data", (*SERVERS, *SERVICES), WITHOUT_A_MODEL) as stack:
        async with town(stack.data.url.read_text().strip(), stack.data.key.read_text().strip()) as people:
            await people.ready()
            code, _, errors = await phronesis("import", str(export), "--as", "moved", data=stack.data.root)
            assert code == 0, errors
            body = {"tenant": "moved", "user": before.people["ann"][2], "agents": ["noor"]}
            made = await people.owner.http.post("/api/v1/keys", json=body)
            ann = people._person(made.json()["key"])
            assert alike({query: await ann.recall(query) for query in QUERIES}, before.recalled)
            assert await ann.messages(before.conversation) == before.messages
            body = {"tenant": "moved", "user": before.people["chief"][2], "agents": ["maestro"]}
            chief = people._person((await people.owner.http.post("/api/v1/keys", json=body)).json()["key"])
            assert [await recalled(chief, scope) for scope in ("personal", "secrets")] == [[("harbour", KEPT, 0.5)]] * 2
            answer = await ann.tool("document.extract_text", {"media_id": before.media})
            assert answer.json()["text"].split() == " ".join(LINES).split()
            await ann.reply("And how many cars does it carry?", before.conversation)
            await ann.remember("Ferry prices", "A car costs ninety crowns on the ferry to Utvorda.")
        code, _, errors = await phronesis("export", "moved", str(tmp_path / "moved.phr"), data=stack.data.root)
        assert code == 0, errors
    assert b"acme" not in content(tmp_path / "moved.phr", "tenant")
