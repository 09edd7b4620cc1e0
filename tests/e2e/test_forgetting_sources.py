"""A source goes with all that came of it: no row, vector, message, object or page of a file holds a word of it, and what the
preview names is what goes."""

from __future__ import annotations

import asyncio
import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from phronesis import AsyncClient
from phronesis_bus import BusSettings, ask, connect
from phronesis_contracts import Agent, NotFound, Principal
from phronesis_contracts.deletions import FIND_DERIVED, DeletionState, Derived, FindDerived, SourceForgetting
from phronesis_contracts.episodes import RECORD_STRATEGY, RecordStrategy
from phronesis_contracts.facts import LEARN, FactKind, Learn, Origin, Statement
from phronesis_contracts.memory import KEEP_MEMORY, REMEMBER, KeepMemory, Remember, RememberItem, Scope
from phronesis_contracts.tasks import VerifiedBy
from phronesis_local import postgres
from phronesis_local.keys import password_file, signing_key_file
from phronesis_local.loopback import LOOPBACK
from tests.e2e.commands import command
from tests.support.bus import eventually
from tests.support.documents import pdf
from tests.support.people import Person
from tests.support.remains import remains
from tests.support.stack import RunningStack

pytestmark = pytest.mark.timeout(240)


def client(of: Person) -> AsyncClient:
    return AsyncClient(str(of.http.base_url), of.key)


def service(stack: RunningStack, name: str) -> BusSettings:
    url = f"nats://{LOOPBACK}:{stack.part('nats').port}"
    return BusSettings(
        url=url,
        password_file=password_file(stack.data, name),
        signing_key_file=signing_key_file(stack.data, name),
        trust_dir=stack.data.trust,
    )


def words() -> list[str]:
    """Words that stand nowhere else."""
    return [f"{bird}{uuid4().hex[:12]}" for bird in ("kingfisher", "bittern", "wheatear")]


def statement(text: str, object: str, origin: Origin) -> Statement:
    return Statement(kind=FactKind.FACT, predicate="has supplier", object=object, text=text, origin=origin)


async def formed(stack: RunningStack, person: Person, turn: dict[str, Any], word: str) -> None:
    """Let memory form of a turn what a model would have it form: facts, a strategy, and memories that an agent kept."""
    who = Principal(tenant=person.tenant, user=person.user, agents=(Agent.MAESTRO,))
    of = {"turn_id": turn["turn_id"], "conversation_id": turn["conversation_id"]}
    statements = (
        statement(f"The supplier is {word}.", word, Origin.MEDIA),
        Statement(predicate="pays", object="Northwind", text="You pay Northwind.", origin=Origin.MEDIA),
    )
    own = Statement(predicate="pays", object="Northwind", text="You pay Northwind.", origin=Origin.USER)
    now = datetime.now(UTC)
    async with connect("orchestrator", service(stack, "orchestrator")) as bus:
        await ask(bus, who, LEARN, Learn(**of, said_at=now, statements=statements), key=f"learn/{of['turn_id']}")
        elsewhere = Learn(turn_id=str(uuid4()), conversation_id=str(uuid4()), said_at=now, statements=(own,))
        await ask(bus, who, LEARN, elsewhere, key=f"learn/{uuid4()}")
        strategy = RecordStrategy(
            task_id=of["turn_id"],
            goal=f"Pay {word}",
            approach=f"Ask {word} first.",
            score=0.9,
            succeeded=True,
            verified_by=VerifiedBy.PERSON,
        )
        await ask(bus, who, RECORD_STRATEGY, strategy, key=f"{of['turn_id']}/task.strategy")
        kept = KeepMemory(scope=Scope.PERSONAL, key="supplier", content=f"The supplier {word} is paid by cheque.")
        await ask(bus, who, KEEP_MEMORY, kept, key=f"{of['turn_id']}/work/1.0")
        item = RememberItem(text=f"{word} wants cheques.", title=word, kind="concept")
        await ask(bus, who, REMEMBER, Remember(items=(item,)), key=f"{of['turn_id']}/work/1.1")


async def episodes(stack: RunningStack, person: Person, turns: list[str]) -> None:
    """Return when memory has an episode of each turn."""
    who = Principal(tenant=person.tenant, user=person.user)
    async with connect("orchestrator", service(stack, "orchestrator")) as bus:

        async def there() -> bool:
            found: Derived = await ask(bus, who, FIND_DERIVED, FindDerived(turns=tuple(turns)))
            return found.counts.get("episodes", 0) == len(turns)

        await eventually(there, within=60)


async def summarised(stack: RunningStack, conversation: str, word: str) -> None:
    """Give a conversation a summary that quotes the document, and have agents' searches of a turn be on record."""
    connection = await asyncpg.connect(postgres.dsn(stack.data.postgres))
    try:
        summary = json.dumps({"through": 2, "text": f"They spoke of {word}."})
        await connection.execute(
            "UPDATE orchestrator.conversations SET summary = $2, summary_through = 2 WHERE id = $1", conversation, summary
        )
        await connection.execute(
            "INSERT INTO memory.constitution_retrievals SELECT tenant, gen_random_uuid(), created_at, 'hybrid', user_id, $2,"
            " 'h', '{}', 1, 'ok', 1, 1, '{}', false, '{}' FROM orchestrator.turns WHERE conversation_id = $1 LIMIT 1",
            conversation,
            f"Who is {word}?",
        )
    finally:
        await connection.close()


async def complete(sdk: AsyncClient, begun: SourceForgetting) -> SourceForgetting:
    end = monotonic() + 90
    while (found := await sdk.forgettings.get(begun.forgetting_id)).state is DeletionState.PENDING:
        assert monotonic() < end, f"not forgotten: {found}"
        await asyncio.sleep(0.25)
    return found


async def left(stack: RunningStack, marks: list[str], tenant: str) -> dict[str, dict[str, int]]:
    return {mark: found for mark in marks if (found := await remains(stack, mark, tenant))}


async def clean(stack: RunningStack, marks: list[str], tenant: str) -> None:
    """Return when nothing is left; fail with what is when that takes too long."""
    found: dict[str, dict[str, int]] = {}
    for _ in range(40):
        if not (found := await left(stack, marks, tenant)):
            return
        await asyncio.sleep(0.25)
    assert found == {}


async def files_with(stack: RunningStack, marks: list[str]) -> dict[str, list[str]]:
    """The files of Postgres that hold one of these, once dead rows are vacuumed away and old segments of its log removed."""
    connection = await asyncpg.connect(postgres.dsn(stack.data.postgres))
    try:
        await connection.execute("ALTER SYSTEM SET wal_recycle = off")
        await connection.execute("SELECT pg_reload_conf()")
        await connection.execute("ANALYZE")
        await connection.execute("VACUUM FULL")
        for _ in range(3):
            await connection.execute("SELECT pg_switch_wal()")
            await connection.execute("CHECKPOINT")
    finally:
        await connection.execute("ALTER SYSTEM RESET wal_recycle")
        await connection.execute("SELECT pg_reload_conf()")
        await connection.close()
    found: dict[str, list[str]] = {}
    for path in Path(stack.data.postgres).rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            for mark in marks:
                if mark.encode() in content:
                    found.setdefault(mark, []).append(str(path.relative_to(stack.data.postgres)))
    return found


def digest_of(proof: SourceForgetting, person: Person) -> str:
    """The digest as `docs/how-to/forget-expire-erase.md` says that it is made."""
    assert proof.completed_at is not None
    said: dict[str, Any] = {
        "forgetting_id": proof.forgetting_id,
        "tenant": person.tenant,
        "user": person.user,
        "media": sorted(proof.media),
        "conversation_id": proof.conversation_id,
        "origin": None,
        "requested_at": proof.requested_at.isoformat(),
        "completed_at": proof.completed_at.isoformat(),
        "before": proof.before,
        "after": proof.after,
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


async def test_nothing_is_left_of_a_forgotten_document_in_any_store_or_file(stack: RunningStack, somebody: Person) -> None:
    marks = words()
    supplier, station, formed_of = marks
    page = [[f"The {station} station was built in 1931 by the water board.", f"Its supplier is {supplier}."]]
    media = await somebody.uploaded("invoice.pdf", pdf(page))
    other = await somebody.uploaded("kept.pdf", pdf([["The okapi lives in the forest of Ituri."]]))
    first = await somebody.reply("Which station was built in 1931, and by whom?", media=[media, other])
    conversation = first["conversation_id"]
    second = await somebody.reply("And who is its supplier?", conversation)
    await formed(stack, somebody, first, formed_of)
    asked = await somebody.reply("Who wants cheques?")
    kept = await somebody.reply("Where does the okapi live?", media=[other])
    await episodes(stack, somebody, [turn["turn_id"] for turn in (first, second, asked, kept)])
    await summarised(stack, conversation, station)
    assert station in first["user_response"] + second["user_response"]
    before = {place for mark in marks for place in await remains(stack, mark, somebody.tenant)}
    assert {
        "orchestrator.messages",
        "orchestrator.turns",
        "orchestrator.conversations",
        "memory.items",
        "memory.facts",
        "memory.strategies",
        "memory.constitution_retrievals",
        "media",
    } <= before
    async with client(somebody) as sdk:
        preview = await sdk.forgettings.preview(document="Invoice.pdf")
        pages = [await sdk.forgettings.preview(document=media, limit=3, offset=at) for at in range(0, preview.total, 3)]
        assert tuple(one for shown in pages for one in shown.things) == preview.things
        named = {one.kind for one in preview.things}
        assert named == {"media", "fact", "memory", "episode", "strategy", "document", "turn"}
        assert (preview.media, preview.detached, preview.total) == ((media,), 1, len(preview.things))
        begun = await sdk.forgettings.begin(document="invoice.pdf")
        assert begun.before == preview.held
        proof = await complete(sdk, begun)
        again = await sdk.forgettings.preview(document=media)
        assert (again.total, again.held) == (0, {name: {} for name in again.held})
        with pytest.raises(NotFound):
            await sdk.forgettings.begin(document=media)
        assert await sdk.forgettings.list() == (proof,)
        facts = (await sdk.memory.list_facts()).facts
    assert [(one.object, [source.origin for source in one.sources]) for one in facts] == [("Northwind", [Origin.USER])]
    assert proof.after == {name: {} for name in proof.before}
    assert proof.digest == digest_of(proof, somebody)
    assert not [mark for mark in marks if mark in proof.model_dump_json()]

    await clean(stack, marks, somebody.tenant)
    for thing in preview.things:
        if thing.kind == "turn":
            assert (await somebody.http.get(f"/api/v1/turns/{thing.id}")).status_code == 404
    assert (await somebody.http.get(f"/api/v1/media/{other}")).status_code == 200
    assert (await somebody.turn(kept["turn_id"]))["status"] == "completed"
    assert await files_with(stack, marks) == {}
    logs = [path for path in Path(stack.data.root).rglob("*.log") if any(mark.encode() in path.read_bytes() for mark in marks)]
    assert logs == []


@pytest.mark.verify
async def test_a_conversation_goes_with_its_own_words_and_what_others_hold_stays(stack: RunningStack, somebody: Person) -> None:
    gone, stays = f"heron{uuid4().hex[:12]}", f"okapi{uuid4().hex[:12]}"
    media = await somebody.uploaded("notes.pdf", pdf([[f"The {gone} station was built in 1931."]]))
    first = await somebody.reply("When was the station built?", media=[media])
    told = await somebody.reply(f"I prefer long {gone}.", first["conversation_id"])
    beside = await somebody.reply(f"I prefer short {stays}.")
    await episodes(stack, somebody, [turn["turn_id"] for turn in (first, told, beside)])
    async with client(somebody) as sdk:
        proof = await complete(sdk, await sdk.forgettings.begin(conversation_id=first["conversation_id"]))
    assert (proof.before["media"], proof.before["memory"]["episodes"]) == ({"media": 1}, 2)

    await clean(stack, [gone], somebody.tenant)
    assert (await somebody.turn(beside["turn_id"]))["reply"] is not None
    assert "orchestrator.messages" in await remains(stack, stays, somebody.tenant)
    assert await somebody.messages(first["conversation_id"]) == []
    reply = await somebody.reply("Hello again.", first["conversation_id"])
    assert reply["conversation_id"] == first["conversation_id"]


@pytest.mark.verify
async def test_a_forgetting_goes_on_where_it_was_after_its_process_was_killed(stack: RunningStack, somebody: Person) -> None:
    mark = f"heron{uuid4().hex[:12]}"
    media = await somebody.uploaded("notes.pdf", pdf([[f"The {mark} station was built in 1931."]]))
    turn = await somebody.reply("When was the station built?", media=[media])
    await episodes(stack, somebody, [turn["turn_id"]])
    async with client(somebody) as sdk:
        begun = await sdk.forgettings.begin(document=media)
        before = stack.part("orchestrator").process
        stack.process("orchestrator").kill()
        await stack.until(lambda now: now.parts["orchestrator"].state == "up" and now.parts["orchestrator"].process != before)
        proof = await complete(sdk, begun)
    assert proof.before["media"] == {"media": 1}
    await clean(stack, [mark], somebody.tenant)


async def test_what_is_another_users_is_not_forgotten(somebody: Person, everybody: Any) -> None:
    other = await everybody.someone(tenant=somebody.tenant)
    media = await somebody.uploaded("notes.pdf", pdf([["The station was built in 1931."]]))
    turn = await somebody.reply("When was the station built?", media=[media])
    async with client(other) as sdk:
        for source in ({"document": media}, {"document": "notes.pdf"}, {"conversation_id": turn["conversation_id"]}):
            assert (await sdk.forgettings.preview(**source)).total == 0
            with pytest.raises(NotFound):
                await sdk.forgettings.begin(**source)
    assert (await somebody.http.get(f"/api/v1/media/{media}")).status_code == 200


@pytest.mark.verify
async def test_a_person_forgets_a_document_by_saying_so_and_confirming(stack: RunningStack, somebody: Person) -> None:
    mark = f"heron{uuid4().hex[:12]}"
    media = await somebody.uploaded("invoice.pdf", pdf([[f"The {mark} station was built in 1931."]]))
    turn = await somebody.reply("When was the station built?", media=[media])
    await episodes(stack, somebody, [turn["turn_id"]])
    shown = await somebody.reply("Forget everything from invoice.pdf", turn["conversation_id"])
    assert "invoice.pdf" in shown["user_response"]
    assert (await somebody.http.get(f"/api/v1/media/{media}")).status_code == 200
    await somebody.reply("yes, forget it", turn["conversation_id"])
    async with client(somebody) as sdk:
        (begun,) = await sdk.forgettings.list()
        await complete(sdk, begun)
    await clean(stack, [mark], somebody.tenant)
    said = [one["text"] for one in await somebody.messages(turn["conversation_id"]) if one["role"] == "user"]
    assert said == ["yes, forget it"]


@pytest.mark.verify
async def test_the_command_previews_forgets_and_prints_the_proof(stack: RunningStack, everybody: Any) -> None:
    owner = everybody.owner.http
    upload = {"file": ("notes.pdf", pdf([["The station was built in 1931."]]), "application/pdf")}
    media = (await owner.post("/api/v1/media", files=upload)).json()["id"]
    code, out, err = await command(stack, "forget", "--document", media, "--preview")
    assert (code, "notes.pdf" in out) == (0, True), err
    code, out, err = await command(stack, "forget", "--document", media, "--yes", "--json")
    assert (code, json.loads(out)["state"]) == (0, "complete"), err
    code, out, err = await command(stack, "forget", "--yes")
    assert code != 0
