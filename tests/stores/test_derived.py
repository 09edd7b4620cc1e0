"""What was formed of turns and of a source, on a real Postgres: listed, erased in steps, kept where the user said it too."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from phronesis_bus import Call, News
from phronesis_contracts import BadRequest, Message, Principal
from phronesis_contracts.deletions import Derived, FindDerived, OriginRef, Span
from phronesis_contracts.documents import KeepDocument
from phronesis_contracts.episodes import RecordStrategy
from phronesis_contracts.facts import Fact, Learn, ListFacts, Origin, Statement
from phronesis_contracts.media import MediaKind
from phronesis_contracts.memory import KeepMemory, Remember, RememberItem, Scope
from phronesis_contracts.orchestrator import TurnEndedNews, TurnStatus
from phronesis_contracts.origins import OriginKind
from phronesis_contracts.tasks import VerifiedBy
from phronesis_memory.app import assemble_scopes
from phronesis_memory.documents.handlers import _prepare
from phronesis_memory.documents.store import PostgresDocuments
from phronesis_memory.episodes.store import PostgresStrategies
from phronesis_memory.facts import derived as derived_module
from phronesis_memory.facts.derived import DerivedHandlers
from phronesis_memory.facts.handlers import FactHandlers, assemble_facts
from phronesis_memory.items.drafts import Drafter, draft_from_strategy
from phronesis_memory.items.scopes import ScopeHandlers
from phronesis_memory.settings import MemorySettings
from phronesis_postgres import EVERY_TENANT
from tests.support.memory import Memory, calling, open_memory, someone
from tests.support.postgres_text import holding
from tests.support.servers import PostgresServer, VectorServer

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)


@dataclass(frozen=True)
class Stores:
    memory: Memory
    facts: FactHandlers
    scopes: ScopeHandlers
    derived: DerivedHandlers

    async def ended(self, who: Principal, turn: str, text: str, conversation: str = "c1") -> None:
        event = TurnEndedNews(
            turn_id=turn,
            conversation_id=conversation,
            user=who.user,
            agent="dialogue",
            status=TurnStatus.COMPLETED,
            user_text=text,
        )
        await self.memory.handlers.on_turn_ended(News(who.tenant, "1", 1), event)

    async def learn(
        self, who: Principal, turn: str, object: str, *origins: Origin, predicate: str = "pays", conversation: str = "c1"
    ) -> None:
        statements = tuple(
            Statement(predicate=predicate, object=object, text=f"You pay {object}.", origin=origin) for origin in origins
        )
        request = Learn(turn_id=turn, conversation_id=conversation, said_at=NOW, statements=statements)
        await self.facts.learn(of_turn(who, turn, f"learn/{predicate}"), request)

    async def keep_document(self, who: Principal, media: str, text: str, name: str = "a.pdf", conversation: str = "c1") -> None:
        request = KeepDocument(
            conversation_id=conversation, media_id=media, name=name, kind=MediaKind.DOCUMENT, text=text, length=len(text)
        )
        passages, counted = _prepare(request)
        store = PostgresDocuments(self.memory.database, self.memory.vectors)
        await store.keep(calling(who, uuid4().hex), request, passages, counted, 1_000)

    async def record(self, who: Principal, turn: str, goal: str) -> None:
        said = {"task_id": turn, "goal": goal, "approach": f"{goal} slowly", "score": 0.9, "verified_by": VerifiedBy.PERSON}
        request = RecordStrategy(succeeded=True, **said)
        [draft] = await Drafter(self.memory.embedder).complete([draft_from_strategy(request, ())], {})
        store = PostgresStrategies(self.memory.database, self.memory.vectors, lambda: None)
        await store.record(of_turn(who, turn, "task.strategy"), request, draft)

    async def remember(self, who: Principal, turn: str, text: str) -> None:
        await self.memory.handlers.remember(of_turn(who, turn, "work/1.0"), Remember(items=(RememberItem(text=text),)))

    async def listed(self, who: Principal) -> tuple[Fact, ...]:
        return (await self.facts.list_facts(calling(who), ListFacts())).facts

    async def find(self, who: Principal, **what: object) -> Derived:
        return await self.derived.find(calling(who), FindDerived.model_validate(what))

    async def erase(self, who: Principal, **what: object) -> int:
        """Erase all of it; in how many steps."""
        for step in range(1, 50):
            if (await self.derived.erase(calling(who), FindDerived.model_validate(what))).done:
                return step
        raise AssertionError("it is never done")


def of_turn(who: Principal, turn: str, step: str) -> Call:
    """A write that the orchestrator makes in a turn."""
    return Call(who, "orchestrator", f"{turn}/{step}")


@pytest.fixture(scope="module")
async def stores(postgres: PostgresServer, weaviate: VectorServer | None) -> AsyncIterator[Stores]:
    async with open_memory(postgres, weaviate) as memory:
        settings = MemorySettings(stage_seconds=5)
        facts, _ = assemble_facts(memory.database, memory.embedder, settings, lambda: None, memory.vectors)
        scopes = assemble_scopes(memory.database, memory.embedder, settings, lambda: None, memory.vectors)
        yield Stores(memory, facts, scopes, DerivedHandlers(memory.database, memory.vectors, lambda: None))


async def test_all_that_was_formed_of_a_turn_and_its_document_is_listed_and_goes(stores: Stores) -> None:
    who, turn, word = someone(), str(uuid4()), f"canary{uuid4().hex}"
    await stores.ended(who, turn, word)
    await stores.learn(who, turn, word, Origin.MEDIA)
    await stores.keep_document(who, "m1", f"The word is {word}.")
    await stores.record(who, turn, word)
    await stores.remember(who, turn, f"{word} is blue")
    kept = KeepMemory(scope=Scope.PERSONAL, key="k", content=f"{word} is paid")
    await stores.scopes.keep_memory(of_turn(who, turn, "work/1.1"), kept)
    found = await stores.find(who, turns=(turn,), media=("m1",))
    kinds = {"facts": 1, "episodes": 1, "strategies": 1, "memories": 2, "documents": 1, "passages": 1}
    assert {name: found.counts[name] for name in kinds} == kinds
    assert sorted(one.kind for one in found.things) == ["document", "episode", "fact", "memory", "memory", "strategy"]
    assert await stores.erase(who, turns=(turn,), media=("m1",)) == 1
    assert (await stores.find(who, turns=(turn,), media=("m1",))).counts == {}
    assert await holding(stores.memory.database, word) == {}
    assert await stores.memory.entries(who.tenant) == []


async def test_late_news_of_a_turn_brings_nothing_back(stores: Stores) -> None:
    who, turn = someone(), str(uuid4())
    await stores.erase(who, turns=(turn,))
    await stores.ended(who, turn, "hello")
    await stores.learn(who, turn, "Northwind", Origin.MEDIA)
    assert (await stores.find(who, turns=(turn,))).counts == {}


async def test_what_the_user_said_too_stays_less_the_source(stores: Stores) -> None:
    who, read, said = someone(), str(uuid4()), str(uuid4())
    await stores.learn(who, read, "Northwind", Origin.MEDIA)
    await stores.learn(who, said, "Northwind", Origin.USER)
    await stores.learn(who, read, "Southwind", Origin.REPLY, predicate="visits")
    found = await stores.find(who, turns=(read,))
    assert (found.detached, found.counts["facts"]) == (1, 1)
    await stores.erase(who, turns=(read,))
    (left,) = await stores.listed(who)
    assert (left.object, [one.turn_id for one in left.sources]) == ("Northwind", [said])


async def test_the_users_own_words_beside_a_document_stay_and_those_of_a_conversation_go_with_it(stores: Stores) -> None:
    who, turn = someone(), str(uuid4())
    await stores.learn(who, turn, "Northwind", Origin.USER, conversation="c9")
    assert (await stores.find(who, turns=(turn,), media=("m1",))).counts == {}
    assert (await stores.find(who, conversation_id="c9")).counts["facts"] == 1
    await stores.erase(who, conversation_id="c9")
    assert await stores.listed(who) == ()


async def test_many_things_go_in_bounded_steps(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived_module, "BATCH", 2)
    who, turn = someone(), str(uuid4())
    items = tuple(RememberItem(text=f"thing {n}") for n in range(5))
    await stores.memory.handlers.remember(of_turn(who, turn, "work/1.0"), Remember(items=items))
    found = await stores.find(who, turns=(turn,))
    assert found.more
    assert await stores.erase(who, turns=(turn,)) == 2
    assert (await stores.find(who, turns=(turn,))).counts == {}


async def test_a_file_is_found_by_its_name_in_any_capitals_and_by_its_kind(stores: Stores) -> None:
    who = someone()
    await stores.keep_document(who, "m1", "one", "Invoice May.pdf")
    await stores.keep_document(who, "m2", "two", "invoice may.pdf", "c2")
    await stores.keep_document(who, "m3", "three", "other.pdf")
    assert set((await stores.find(who, name="INVOICE MAY.PDF")).media) == {"m1", "m2"}
    assert set((await stores.find(who, origin=OriginRef(kind=OriginKind.DOCUMENT))).media) == {"m1", "m2", "m3"}
    assert (await stores.find(who, origin=OriginRef(kind=OriginKind.PICTURE))).media == ()


async def test_what_carries_the_label_of_a_source_goes_without_its_turn(stores: Stores) -> None:
    who, other = someone(), someone()
    for person in (who, other):
        await stores.ended(person, str(uuid4()), "hello")
    async with stores.memory.database.transaction(EVERY_TENANT) as connection:
        labels = [{"kind": "document", "id": "m7", "name": "a.pdf"}, {"kind": "web", "id": "example.com"}]
        await connection.execute("UPDATE items SET labels = $2 WHERE tenant = $1", who.tenant, labels)
    for what in ({"media": ("m7",)}, {"origin": OriginRef(kind=OriginKind.WEB)}):
        assert (await stores.find(who, **what)).counts["episodes"] == 1
        assert (await stores.find(other, **what)).counts == {}
    assert (await stores.find(who, origin=OriginRef(kind=OriginKind.WEB, id="example.org"))).counts == {}
    await stores.erase(who, media=("m7",))
    assert (await stores.find(who, origin=OriginRef(kind=OriginKind.WEB))).counts == {}


async def test_what_was_searched_for_meanwhile_goes_and_the_rest_stays(stores: Stores) -> None:
    who = someone()
    async with stores.memory.database.transaction(who.tenant) as connection:
        for hour in (9, 11):
            await connection.execute(
                "INSERT INTO constitution_retrievals VALUES ($1, $2, $3, 'hybrid', $4, 'who?', 'h', '{}', 1, 'ok', 1, 1, '{}',"
                " false, '{}')",
                who.tenant,
                uuid4(),
                NOW.replace(hour=hour),
                who.user,
            )
    span = Span(begin=NOW, end=NOW.replace(minute=5))
    assert (await stores.find(who, spans=(span,))).counts == {"searches": 1}
    await stores.erase(who, spans=(span,))
    later = Span(begin=NOW, end=NOW.replace(hour=12))
    assert (await stores.find(who, spans=(later,))).counts == {"searches": 1}


async def test_a_turn_of_another_user_covers_nothing(stores: Stores) -> None:
    who, turn = someone(), str(uuid4())
    other = Principal(tenant=who.tenant, user="bob")
    await stores.ended(who, turn, "hello")
    await stores.remember(who, turn, "the okapi is blue")
    await stores.keep_document(who, "m1", "one")
    assert (await stores.find(other, turns=(turn,), media=("m1",), conversation_id="c1")).counts == {}
    await stores.erase(other, turns=(turn,), media=("m1",), conversation_id="c1")
    assert (await stores.find(who, turns=(turn,), media=("m1",))).counts["episodes"] == 1


async def test_a_name_that_nothing_can_store_is_refused(stores: Stores) -> None:
    request: Message = FindDerived(name="a\x00.pdf")
    assert isinstance(request, FindDerived)
    with pytest.raises(BadRequest):
        await stores.derived.find(calling(someone()), request)
