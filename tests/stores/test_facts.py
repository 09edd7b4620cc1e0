"""Memory that forms itself, on a real Postgres and both vector indexes: learnt, superseded, recalled and forgotten."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from phronesis_bus import News
from phronesis_contracts import BadRequest, KeyReused, NotFound, Principal
from phronesis_contracts.deletions import ConversationDeleted, DeletionState, Purged
from phronesis_contracts.facts import (
    MEMORY_FORGOTTEN,
    AskFacts,
    CopiesPurged,
    Fact,
    FactKind,
    ForgetFor,
    ForgettingRef,
    ImportMemory,
    Learn,
    Learnt,
    ListFacts,
    MemoryForgotten,
    Origin,
    RecallFacts,
    Statement,
)
from phronesis_contracts.memory import Remember, RememberItem, Retrieve
from phronesis_contracts.orchestrator import TurnEndedNews, TurnStatus
from phronesis_memory.facts.forgetting import PostgresForgettings
from phronesis_memory.facts.handlers import FactHandlers, assemble_facts
from phronesis_memory.settings import MemorySettings
from phronesis_postgres import EVERY_TENANT
from tests.support.memory import Memory, calling, open_memory, someone
from tests.support.postgres_text import holding
from tests.support.servers import PostgresServer, VectorServer

START = datetime(2026, 3, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Known:
    """The handlers of facts beside those of items, on one database."""

    memory: Memory
    facts: FactHandlers
    forgettings: PostgresForgettings


@pytest.fixture(scope="module")
async def known(postgres: PostgresServer, weaviate: VectorServer | None) -> AsyncIterator[Known]:
    async with open_memory(postgres, weaviate) as memory:
        settings = MemorySettings(stage_seconds=5)
        handlers, forgettings = assemble_facts(memory.database, memory.embedder, settings, lambda: None, memory.vectors)
        yield Known(memory, handlers, forgettings)


async def learnt(
    known: Known, who: Principal, said: str, minute: int = 0, turn: str | None = None, conversation: str = "c1", **more: Any
) -> Learnt:
    id = turn or str(uuid4())
    when = START + timedelta(minutes=minute)
    request = Learn(turn_id=id, conversation_id=conversation, said=said, said_at=when, **more)
    return await known.facts.learn(calling(who, f"learn/{id}"), request)


async def listed(known: Known, who: Principal, **more: Any) -> tuple[Fact, ...]:
    return (await known.facts.list_facts(calling(who), ListFacts(**more))).facts


async def recalled(known: Known, who: Principal, query: str) -> list[str]:
    found = await known.facts.recall_facts(calling(who), RecallFacts(query=query))
    return [one.fact.text for one in found.facts]


async def rows(known: Known, statement: str, *arguments: Any) -> list[Any]:
    async with known.memory.database.transaction(EVERY_TENANT) as connection:
        return [tuple(row) for row in await connection.fetch(statement, *arguments)]


async def test_of_two_preferences_about_one_thing_the_later_is_held_and_the_earlier_keeps_its_time(known: Known) -> None:
    who = someone()
    await learnt(known, who, "I prefer short answers.", 0)
    second = await learnt(known, who, "I prefer long answers.", 9)
    (held,) = await listed(known, who)
    assert (held.object, held.valid_to, second.superseded) == ("long answers", None, 1)
    past = next(fact for fact in await listed(known, who, superseded=True) if not fact.held)
    assert (past.object, past.valid_from, past.valid_to, past.superseded_by) == (
        "short answers",
        START,
        START + timedelta(minutes=9),
        held.id,
    )
    assert await recalled(known, who, "which answers") == ["The user prefers long answers."]
    assert len(await known.memory.entries(who.tenant)) == 1


async def test_a_sentence_kept_as_it_was_said_is_listed_as_a_note_and_not_among_the_facts(known: Known) -> None:
    who = someone()
    await learnt(known, who, "I live in Riyadh. My neighbours are rebuilding their roof until the end of March.")
    assert [fact.text for fact in await listed(known, who)] == ["The user lives in Riyadh."]
    assert [fact.text for fact in await listed(known, who, kind="note")] == [
        "The user said: My neighbours are rebuilding their roof until the end of March."
    ]


async def test_a_fact_names_the_turn_it_was_said_in(known: Known) -> None:
    who, turn = someone(), str(uuid4())
    await learnt(known, who, "I live in Riyadh", turn=turn, conversation="c7")
    (fact,) = await listed(known, who)
    assert [(one.turn_id, one.conversation_id, one.origin) for one in fact.sources] == [(turn, "c7", Origin.USER)]
    assert (fact.trust, fact.confidence) == (1.0, 0.9)


async def test_the_same_turn_again_teaches_nothing_more(known: Known) -> None:
    who, turn = someone(), str(uuid4())
    first = await learnt(known, who, "I live in Riyadh", turn=turn)
    assert await learnt(known, who, "I live in Riyadh", turn=turn) == first
    with pytest.raises(KeyReused):
        await learnt(known, who, "I live in Jeddah", turn=turn)
    (fact,) = await listed(known, who)
    assert len(fact.sources) == 1


async def test_another_user_sees_none_of_it(known: Known) -> None:
    who = someone()
    others = [someone(tenant=who.tenant), someone(user=who.user)]
    await learnt(known, who, "I prefer short answers.")
    (fact,) = await listed(known, who)
    for other in others:
        assert await listed(known, other, superseded=True) == ()
        assert await recalled(known, other, "short answers") == []
        with pytest.raises(NotFound):
            await known.facts.forget_for_good(calling(other), ForgetFor(ids=(fact.id,)))
    assert await recalled(known, who, "short answers") == ["The user prefers short answers."]


async def test_a_document_and_a_reply_state_no_preference_and_are_trusted_less(known: Known) -> None:
    who = someone()
    said = [
        Statement(kind=FactKind.PREFERENCE, predicate="prefers", object="ads", text="Likes ads.", origin=Origin.MEDIA),
        Statement(predicate="works at", object="Bolt", text="The user works at Bolt.", origin=Origin.MEDIA),
    ]
    await learnt(known, who, "I work at Acme", 0)
    done = await learnt(known, who, "", 5, statements=tuple(said))
    assert ([one.status for one in done.facts], done.refused) == (["kept"], 1)
    assert [fact.object for fact in await listed(known, who)] == ["Acme"]


async def test_a_secret_is_not_kept(known: Known) -> None:
    who, word = someone(), f"hunter{uuid4().hex}"
    done = await learnt(known, who, f"My password is {word}. I like tea.")
    assert (len(done.facts), done.refused) == (1, 1)
    assert await holding(known.memory.database, word) == {}


async def test_a_recalled_fact_says_what_gave_it_its_score(known: Known) -> None:
    who = someone()
    await learnt(known, who, "I work at the Ministry of Works.")
    found = await known.facts.recall_facts(calling(who), RecallFacts(query="Which ministry?"))
    (one,) = found.facts
    assert one.why.words == ("ministri",) or one.why.words == ("ministry",)
    assert (one.why.trust, one.why.confidence) == (1.0, 0.9)
    assert one.why.vector is not None
    assert one.why.vector > 0
    assert one.why.text is not None
    assert 0 < one.score <= 1


async def test_a_held_fact_stands_in_the_context_of_a_turn_with_its_reason(known: Known) -> None:
    who = someone()
    await learnt(known, who, "I prefer short answers.")
    context = await known.memory.handlers.retrieve(calling(who), Retrieve(key_phrases=("short answers",)))
    (unit,) = context.memory_units
    assert (unit.text, unit.kind) == ("The user prefers short answers.", "fact")
    assert unit.why is not None
    assert (unit.why["origin"], unit.why["trust"], unit.why["since"]) == ("user", 1.0, START.isoformat())
    assert unit.why["vector"] > 0


async def test_an_import_is_taken_once_for_its_key(known: Known) -> None:
    who = someone()
    lines = "\n".join(json.dumps({"text": text}) for text in ("I prefer short answers", "I live in Riyadh", "my pin is 1234"))
    request = ImportMemory(lines=lines)
    first = await known.facts.import_memory(calling(who, "k"), request)
    assert (first.lines, first.added, first.skipped, first.skipped_lines) == (3, 2, 1, (3,))
    assert await known.facts.import_memory(calling(who, "k"), request) == first
    assert {fact.object: len(fact.sources) for fact in await listed(known, who)} == {"short answers": 1, "Riyadh": 1}
    with pytest.raises(KeyReused):
        await known.facts.import_memory(calling(who, "k"), ImportMemory(lines='{"text": "I like tea"}'))


async def test_a_preview_tells_what_goes_and_changes_nothing(known: Known) -> None:
    who, turn = someone(), str(uuid4())
    await learnt(known, who, "I prefer short answers.", turn=turn)
    (fact,) = await listed(known, who)
    shown = await known.facts.preview_forgetting(calling(who), ForgetFor(ids=(fact.id,)))
    assert (shown.facts, shown.turns) == ((fact,), (turn,))
    assert (shown.removed["facts"], shown.removed["sources"], shown.removed["vectors"]) == (1, 1, 1)
    assert await listed(known, who) == (fact,)


@pytest.mark.parametrize("what", [{}, {"ids": ("a",), "subject": "user"}, {"subject": "a\x00"}])
async def test_a_forgetting_of_nothing_or_of_two_things_is_refused(known: Known, what: dict[str, Any]) -> None:
    request = ForgetFor(**what)
    for handler in (known.facts.preview_forgetting, known.facts.forget_for_good):
        with pytest.raises(BadRequest):
            await handler(calling(someone()), request)


async def test_what_is_forgotten_goes_with_its_words_its_vector_and_the_episode_of_its_turn(known: Known) -> None:
    who, turn, word = someone(), str(uuid4()), f"canary{uuid4().hex}"
    ended = TurnEndedNews(
        turn_id=turn,
        conversation_id="c1",
        user=who.user,
        agent="dialogue",
        status=TurnStatus.COMPLETED,
        user_text=f"I prefer {word} answers",
    )
    await known.memory.handlers.on_turn_ended(News(who.tenant, "1", 1), ended)
    await learnt(known, who, f"I prefer {word} answers", turn=turn)
    (fact,) = await listed(known, who)
    begun = await known.facts.forget_for_good(calling(who, "k"), ForgetFor(ids=(fact.id,)))
    assert begun.state is DeletionState.PENDING
    assert begun.removed["memory"] == {"facts": 1, "sources": 1, "items": 0, "episodes": 1, "vectors": 2}
    assert await holding(known.memory.database, word) == {}
    assert await known.memory.entries(who.tenant) == []
    assert await rows(known, "SELECT sum(items) FROM scopes WHERE tenant = $1", who.tenant) == [(0,)]
    news = await rows(known, "SELECT body FROM outbox WHERE subject = $1", MEMORY_FORGOTTEN.on(who.tenant))
    assert [MemoryForgotten.model_validate_json(body).turns for (body,) in news] == [(turn,)]
    await known.memory.handlers.on_turn_ended(News(who.tenant, "2", 1), ended)
    again_learnt = await learnt(known, who, f"I prefer {word} answers", turn=turn)
    assert [(one.id, one.text) for one in again_learnt.facts] == [(fact.id, None)], "the first result, without its words"
    again = Learn(turn_id=turn, conversation_id="c1", said=f"I like {word}", said_at=START)
    assert await known.facts.learn(calling(who, "other"), again) == Learnt()
    assert await holding(known.memory.database, word) == {}


async def test_a_forgetting_is_complete_once_graph_and_orchestrator_have_reported(known: Known) -> None:
    who = someone()
    await learnt(known, who, "I like tea")
    begun = await known.facts.forget_for_good(calling(who), ForgetFor(subject="User"))
    word, turn, news = f"canary{uuid4().hex}", str(uuid4()), News(who.tenant, "1", 1)
    ended = TurnEndedNews(
        turn_id=turn,
        conversation_id="c1",
        user=who.user,
        agent="dialogue",
        status=TurnStatus.COMPLETED,
        user_text=word,
    )
    await known.memory.handlers.on_turn_ended(news, ended)
    await known.facts.on_purged(news, Purged(deletion_id=begun.forgetting_id, removed={"links": 1}))
    asked = ForgettingRef(forgetting_id=begun.forgetting_id)
    assert (await known.facts.get_forgetting(calling(who), asked)).state is DeletionState.PENDING
    report = CopiesPurged(deletion_id=begun.forgetting_id, removed={"turns": 1}, turns=(turn,))
    await known.facts.on_copies_purged(news, report)
    found = await known.facts.get_forgetting(calling(who), asked)
    assert (found.state, found.removed["graph"], found.removed["orchestrator"]) == (
        DeletionState.COMPLETE,
        {"links": 1},
        {"turns": 1},
    )
    assert await holding(known.memory.database, word) == {}


async def test_what_a_forgotten_fact_had_superseded_does_not_come_back(known: Known) -> None:
    who = someone()
    await learnt(known, who, "I prefer short answers.", 0)
    await learnt(known, who, "I prefer long answers.", 5)
    (held,) = await listed(known, who)
    await known.facts.forget_for_good(calling(who), ForgetFor(ids=(held.id,)))
    assert await listed(known, who) == ()
    await learnt(known, who, "I prefer short answers.", 9)
    (again,) = await listed(known, who)
    assert (again.object, again.valid_from) == ("short answers", START + timedelta(minutes=9))


async def test_a_stored_item_is_forgotten_by_its_external_id(known: Known) -> None:
    who, word = someone(), f"canary{uuid4().hex}"
    items = (RememberItem(text=f"The {word} is blue", external_id="bird"),)
    await known.memory.handlers.remember(calling(who), Remember(items=items))
    begun = await known.facts.forget_for_good(calling(who), ForgetFor(ids=("bird",)))
    assert begun.removed["memory"]["items"] == 1
    assert await holding(known.memory.database, word) == {}


@pytest.mark.parametrize("way", ["forgotten", "deleted"])
async def test_all_that_a_conversation_alone_taught_goes_with_it(known: Known, way: str) -> None:
    who = someone()
    await learnt(known, who, "I like tea", conversation="gone")
    await learnt(known, who, "I live in Riyadh", conversation="gone")
    await learnt(known, who, "I live in Riyadh", conversation="kept")
    if way == "forgotten":
        await known.facts.forget_for_good(calling(who), ForgetFor(conversation_id="gone"))
    else:
        event = ConversationDeleted(deletion_id=str(uuid4()), conversation_id="gone", user=who.user)
        await known.facts.on_conversation_deleted(News(who.tenant, "1", 1), event)
        assert await learnt(known, who, "I like tea", conversation="gone") == Learnt()
    (left,) = await listed(known, who, superseded=True)
    assert (left.object, [one.conversation_id for one in left.sources]) == ("Riyadh", ["kept"])


async def test_a_restored_backup_forgets_again(known: Known) -> None:
    who = someone()
    await learnt(known, who, "I like tea")
    (fact,) = await listed(known, who)
    forgetting = uuid4()
    statement = "INSERT INTO forgettings (id, tenant, owner, ids, turns, again) VALUES ($1, $2, $3, $4, $5, true)"
    async with known.memory.database.transaction(EVERY_TENANT) as connection:
        await connection.execute(statement, forgetting, who.tenant, who.user, [fact.id], ["t"])
    assert await known.forgettings.repeat() == 1
    assert (await listed(known, who), await known.forgettings.repeat()) == ((), 0)


async def test_a_transaction_of_another_tenant_reaches_no_fact(known: Known) -> None:
    who, other = someone(), someone()
    await learnt(known, who, "I like tea")
    async with known.memory.database.transaction(other.tenant) as connection:
        for table in ("facts", "fact_sources", "forgettings"):
            assert await connection.fetchval(f"SELECT count(*) FROM {table}") == 0


async def asked(known: Known, who: Principal, question: str, **more: Any) -> list[str]:
    found = await known.facts.ask_facts(calling(who), AskFacts(question=question, **more))
    assert found.known is bool(found.facts)
    return [one.words for one in found.facts]


async def test_what_a_turn_says_is_known_before_it_ends_and_is_learnt_once(known: Known) -> None:
    who, turn, said = someone(), str(uuid4()), "I'm Tom, live in Leeds with my wife Anna, and I'm allergic to peanuts"
    request = Learn(turn_id=turn, conversation_id="c1", said=said, said_at=START)
    during = await known.facts.learn(calling(who, f"{turn}/learn"), request)
    assert [(one.status, one.words) for one in during.facts] == [
        ("added", "You are called Tom."),
        ("added", "You live in Leeds."),
        ("added", "Your wife is Anna."),
        ("added", "You are allergic to peanuts."),
    ]
    assert await asked(known, who, "What am I allergic to?") == ["You are allergic to peanuts."]
    after = await known.facts.learn(calling(who, f"learn/{turn}"), request)
    assert {one.id for one in after.facts} == {one.id for one in during.facts}
    drawn = [
        Statement(predicate="resides in", object="Leeds", text="The user lives in Leeds."),
        Statement(predicate="speaks", object="Welsh", text="The user speaks Welsh."),
    ]
    by_model = await known.facts.learn(
        calling(who, "model"), request.model_copy(update={"said": "", "statements": tuple(drawn)})
    )
    assert [one.text for one in by_model.facts] == ["The user speaks Welsh."]
    assert [len(fact.sources) for fact in await listed(known, who)] == [1] * 5


async def test_a_correction_is_told_and_the_past_keeps_what_was_said(known: Known) -> None:
    who = someone()
    await learnt(known, who, "I'm allergic to peanuts and I live in Leeds", 0)
    done = await learnt(known, who, "No, walnuts, not peanuts.", 5)
    assert (done.correction, [one.words for one in done.facts]) == (
        "made",
        ["You are allergic to walnuts.", "You are not allergic to peanuts."],
    )
    assert [one.words for one in done.facts[1].replaced] == ["You are allergic to peanuts."]
    assert await asked(known, who, "What am I allergic to?") == ["You are allergic to walnuts."]
    before = START + timedelta(minutes=3)
    assert await asked(known, who, "What am I allergic to?", as_of=before) == ["You are allergic to peanuts."]
    moved = await learnt(known, who, "I meant York", 9)
    assert (moved.correction, moved.facts) == ("unclear", ())
    moved = await learnt(known, who, "Not Leeds but York", 10)
    assert [one.words for one in moved.facts[0].replaced] == ["You live in Leeds."]
    assert await asked(known, who, "where do I live?") == ["You live in York."]


async def test_a_question_is_answered_for_its_own_user_and_says_when_nothing_was_told(known: Known) -> None:
    who = someone()
    others = [someone(tenant=who.tenant), someone(user=who.user)]
    await learnt(known, who, "My sister Mia lives in Oslo. Remember that the gate code is 4411")
    for question, answer in (
        ("Where does Mia live?", "Your sister lives in Oslo."),
        ("What's the gate code?", "Your gate code is 4411."),
        ("What do you know about my sister?", "Your sister lives in Oslo."),
        ("forget the gate code", "Your gate code is 4411."),
    ):
        assert await asked(known, who, question) == [answer]
        for other in others:
            assert await asked(known, other, question) == []
    nothing = await known.facts.ask_facts(calling(who), AskFacts(question="Where do I work?"))
    assert (nothing.known, nothing.understood, nothing.predicates[0]) == (False, True, "works at")
    outside = await known.facts.ask_facts(calling(who), AskFacts(question="What is the capital of Mongolia?"))
    assert (outside.known, outside.understood) == (False, False)


async def test_what_no_pattern_takes_is_kept_as_it_was_said_and_told_where_it_comes_near(known: Known) -> None:
    who = someone()
    await learnt(known, who, "The bell of the barn hangs behind the quince tree.")
    found = await known.facts.ask_facts(calling(who), AskFacts(question="whereabouts hangs the bell of the barn"))
    assert (found.known, [one.words for one in found.near]) == (
        False,
        ["You said: The bell of the barn hangs behind the quince tree."],
    )
    assert (
        await known.facts.ask_facts(calling(someone()), AskFacts(question="whereabouts hangs the bell of the barn"))
    ).near == ()


async def test_what_was_so_before_is_told_as_what_was(known: Known) -> None:
    who = someone()
    await learnt(known, who, "I live in Leeds", 1)
    await learnt(known, who, "I moved to York", 2)
    assert await asked(known, who, "Where did I live before?") == ["Earlier: You live in Leeds."]
    assert await asked(known, who, "Where do I live?") == ["You live in York."]


async def test_a_sentence_that_tells_a_change_comes_before_what_was_so(known: Known) -> None:
    who = someone()
    await learnt(known, who, "I work at Brill & Sons", 1)
    await learnt(known, who, "The bell of the barn hangs at the gate now", 2)
    assert await asked(known, who, "Which company do I work for?") == ["You work at Brill & Sons."]
    await learnt(known, who, "the company I work for is no longer the same, they are called Tarrant from now on", 3)
    assert await asked(known, who, "Which company do I work for?") == [
        "You said: the company I work for is no longer the same, they are called Tarrant from now on.",
        "Earlier: You work at Brill & Sons.",
    ]
    assert await asked(known, who, "Which company do I work for?", as_of=START + timedelta(minutes=2)) == [
        "You work at Brill & Sons."
    ]


async def test_what_a_question_finds_can_be_forgotten(known: Known) -> None:
    who = someone()
    await learnt(known, who, "My address is 14 Mill Lane, York")
    found = await known.facts.ask_facts(calling(who), AskFacts(question="forget my address"))
    ids = tuple(one.fact.id for one in found.facts)
    preview = await known.facts.preview_forgetting(calling(who), ForgetFor(ids=ids))
    assert [fact.text for fact in preview.facts] == ["The user's address is 14 Mill Lane, York."]
    await known.facts.forget_for_good(calling(who, "k"), ForgetFor(ids=ids))
    assert await asked(known, who, "What is my address?") == []


async def test_recall_finds_first_what_a_question_asks_for_in_other_words(known: Known) -> None:
    who = someone()
    await learnt(known, who, "I work at Brill & Sons. I like questions about companies. My wife works at a bank.")
    found = await known.facts.recall_facts(calling(who), RecallFacts(query="Who is my employer?"))
    assert (found.facts[0].fact.object, found.facts[0].why.asked) == ("Brill & Sons", True)
