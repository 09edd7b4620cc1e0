"""Turns of an agent without a model and without a twin: quoted from memory and documents, or said not to be known."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from phronesis_contracts import Unavailable
from phronesis_contracts.deletions import (
    FIND_DERIVED,
    FORGET_SOURCE,
    PREVIEW_SOURCE,
    DeletionState,
    Derived,
    DerivedThing,
    FindDerived,
    ForgetSource,
    PreviewSource,
    SourceForgetting,
    SourcePreview,
)
from phronesis_contracts.documents import (
    COMPARE_TEXTS,
    SEARCH_DOCUMENTS,
    ComparedTexts,
    CompareTexts,
    FoundPassage,
    FoundPassages,
)
from phronesis_contracts.facts import (
    ASK_FACTS,
    FORGET_FOR_GOOD,
    AnsweredFacts,
    AnsweringFact,
    AskFacts,
    Fact,
    FactKind,
    ForgetFor,
    Forgetting,
    Origin,
)
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.media import ExtractedText, MediaKind
from phronesis_contracts.memory import AugmentedMemoryContext, ContextItem, ItemKind
from phronesis_contracts.ontology import VOCABULARY
from phronesis_contracts.orchestrator import Reply
from phronesis_orchestrator.conversations.history import PastMessage
from phronesis_orchestrator.models.reasoner import RULES
from phronesis_orchestrator.turns.turn import Completed
from phronesis_orchestrator.understanding import answering
from phronesis_orchestrator.understanding.language import Language
from phronesis_orchestrator.understanding.plan import Focus, QuotedSource, Understood
from phronesis_orchestrator.understanding.planner import understand
from phronesis_orchestrator.understanding.reader import Vocabularies
from tests.unit.orchestrator.fakes import FakeConversations, FakeNeighbours, ScriptedReasoner, Stage, claim, query
from tests.unit.orchestrator.fakes import reply as written
from tests.unit.orchestrator.tasks.portfolio import vocabulary
from tests.unit.orchestrator.test_text import ASKED, GDF, found

_WHEN = datetime(2026, 3, 1, tzinfo=UTC)
ORANGE = AnsweringFact(
    fact=Fact(
        id="f1", kind=FactKind.FACT, subject="user", predicate="noted", object="orange is the colour now", text="-", held=True,
        valid_from=_WHEN, recorded_at=_WHEN, confidence=0.9, trust=1.0, origin=Origin.USER,
    ),
    words="You said: orange is the colour now.",
    confidence=0.4,
)  # fmt: skip
NOTHING = AugmentedMemoryContext(user_id="ann", key_phrases=("x",))


async def answered(text: str, neighbours: FakeNeighbours, media: tuple[str, ...] = (), **more: Any) -> Reply:
    end = await Stage(RULES, neighbours, FakeConversations(**more)).run(claim(text, media))
    assert isinstance(end, Completed), end
    return end.reply


@pytest.mark.parametrize(
    ("question", "title", "told"),
    [
        (ASKED, GDF, "higher activity radioactive waste"),
        ("How will Skynet 6 help the military?", "Skynet 6 (aka FBLOS)", "Core Satellite Communications"),
        ("What does the River Thames Scheme protect?", "River Thames Scheme", "reduce flood risk"),
        (
            "Which programme replaces Airwave?",
            "Emergency Services Mobile Communications Programme (ESMCP)",
            "Emergency Services Network",
        ),
        ("what is the uk seafood fund for", "UK Seafood Fund", "fishing"),
    ],
)
@pytest.mark.req("D-107")
async def test_a_question_is_answered_with_the_projects_own_words(question: str, title: str, told: str) -> None:
    reply = await answered(question, FakeNeighbours(memory=found(title)))
    assert reply.user_response.startswith(f"**{title}")
    assert told in reply.user_response
    assert reply.sources is not None
    assert reply.sources[0].title.startswith(title)


@pytest.mark.req("D-002")
async def test_the_same_turn_gets_the_same_answer() -> None:
    first, second = [await answered(ASKED, FakeNeighbours(memory=found(GDF))) for _ in range(2)]
    assert (first.user_response, first.sources) == (second.user_response, second.sources)


async def test_only_what_the_answer_quotes_is_named_as_a_source() -> None:
    reply = await answered(ASKED, FakeNeighbours(memory=found(GDF)))
    quoted = [one for one in reply.user_response.split("**")[1::2]]
    assert [one.title for one in reply.sources] == quoted


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("Hello!", "greeting"),
        ("good morning", "greeting"),
        ("Thanks, that was helpful", "thanks"),
        ("bye", "farewell"),
        ("Who are you?", "about"),
        ("what can you do", "about"),
    ],
)
@pytest.mark.req("D-054")
async def test_a_courtesy_is_answered_at_once_with_the_agents_own_sentence(text: str, phrase: str) -> None:
    agent = AgentProfile(agent="a", version="1", loop="router", stages=(), prompts={}, phrases={phrase: f"My {phrase}."})
    neighbours = FakeNeighbours(profiles={"dialogue": agent})
    assert (await answered(text, neighbours)).user_response == f"My {phrase}."
    assert neighbours.asked == []


@pytest.mark.parametrize(
    "text", ["Hello, what is Crossrail?", "Thanks. And its cost?", "What can you do about floods in the Thames?"]
)
async def test_a_question_behind_a_courtesy_is_not_taken_for_one(text: str) -> None:
    agent = AgentProfile(
        agent="a",
        version="1",
        loop="router",
        stages=(),
        prompts={},
        phrases=dict.fromkeys(("greeting", "thanks", "about"), "My."),
    )
    assert (await answered(text, FakeNeighbours(profiles={"dialogue": agent}, memory=NOTHING))).user_response != "My."


@pytest.mark.parametrize("text", ["What does the archive of Zerubia hold?", "Capital of Mongolia?", "Who wrote Hamlet?"])
@pytest.mark.req("D-107")
async def test_where_nothing_supports_an_answer_it_says_so_and_names_no_source(text: str) -> None:
    reply = await answered(text, FakeNeighbours(memory=found(GDF)))
    assert reply.sources == ()
    assert "**" not in reply.user_response


async def test_what_retrieval_cannot_give_marks_the_reply() -> None:
    reply = await answered("What does the archive of Phoenix hold?", FakeNeighbours(memory=Unavailable("away")))
    assert "memory" in reply.degraded


def document(text: str, name: str = "guide.pdf") -> ExtractedText:
    return ExtractedText(
        media_id="m1", name=name, type="application/pdf", text=text, engine="test", kind=MediaKind.DOCUMENT, length=len(text)
    )


@pytest.mark.req("D-014")
async def test_an_attached_document_is_quoted_by_its_name() -> None:
    text = "Visitors need a badge. The canteen opens at eleven on weekdays. Parking is free."
    neighbours = FakeNeighbours(memory=found(GDF), documents={"m1": document(text)})
    reply = await answered("When does the canteen open?", neighbours, ("m1",))
    assert "**guide.pdf" in reply.user_response
    assert "The canteen opens at eleven on weekdays." in reply.user_response
    assert [one.title for one in reply.sources][:1] == ["guide.pdf"]


@pytest.mark.req("D-033")
async def test_a_document_that_could_not_be_read_is_mentioned() -> None:
    neighbours = FakeNeighbours(memory=NOTHING, documents={"m1": Unavailable("it is torn")})
    reply = await answered("Summarise this.", neighbours, ("m1",))
    assert reply.user_response.endswith("What you attached could not be read.")
    assert "media" in reply.degraded


async def test_the_texts_of_a_thing_are_read_by_year_and_its_years_are_not_mixed() -> None:
    pieces = [("2023", "The Delivery Confidence Assessment rating remained at Amber."), ("2021", "The rating was Green then.")]
    items = [
        ContextItem(
            id=str(at), external_id=f"EntityProject/P/{year}", kind=ItemKind.NODE, title=GDF, text=text, score=0.5, hop=0
        )
        for at, (year, text) in enumerate(pieces)
    ]
    memory = NOTHING.model_copy(update={"concepts": tuple(items)})
    asked = "How is the delivery of the Geological Disposal Facility programme rated?"
    reply = await answered(asked, FakeNeighbours(memory=memory))
    assert "remained at Amber" in reply.user_response
    assert "Green" not in reply.user_response


CABLE_CAR = ContextItem(
    id="i1",
    external_id="cable-car",
    kind=ItemKind.FACT,
    title="Tindfjell cable car",
    text="The Tindfjell cable car carries thirty people to the summit and was built in 1972.",
    score=0.6,
    hop=0,
)
STATION = CABLE_CAR.model_copy(
    update={"id": "i2", "external_id": "station", "title": "Valley station", "text": "The valley station was built in 1950."}
)
OF_THE_CAR = Focus(
    quoted=QuotedSource(id="cable-car", title="Tindfjell cable car", kind="fact", asked="What is the Tindfjell cable car?")
)


@pytest.mark.parametrize("text", ["When was it built?", "How many people does it carry?", "And in which year was it built?"])
async def test_a_follow_up_is_answered_from_where_the_answer_before_was_quoted(text: str) -> None:
    memory = NOTHING.model_copy(update={"concepts": (STATION, CABLE_CAR)})
    reply = await answered(text, FakeNeighbours(memory=memory), focus=OF_THE_CAR)
    assert [source.id for source in reply.sources] == ["cable-car"]
    assert "1972" in reply.user_response


async def test_what_the_quoted_source_does_not_say_is_not_guessed() -> None:
    memory = NOTHING.model_copy(update={"concepts": (STATION, CABLE_CAR)})
    reply = await answered("Who runs it?", FakeNeighbours(memory=memory), focus=OF_THE_CAR)
    assert (reply.user_response, reply.sources) == ("“Tindfjell cable car” does not say that, and I will not guess.", ())


async def test_a_new_subject_is_not_looked_for_in_what_was_quoted() -> None:
    memory = NOTHING.model_copy(update={"concepts": (STATION, CABLE_CAR)})
    reply = await answered("When was the valley station built?", FakeNeighbours(memory=memory), focus=OF_THE_CAR)
    assert [source.id for source in reply.sources] == ["station"]


async def test_a_question_after_a_remark_about_the_speaker_is_answered() -> None:
    text = "I am afraid of the Tindfjell cable car. What is it?"
    reply = await answered(text, FakeNeighbours(memory=NOTHING.model_copy(update={"concepts": (CABLE_CAR,)})))
    assert "carries thirty people" in reply.user_response


async def test_a_document_and_memory_are_both_looked_in() -> None:
    text = "Visitors need a badge. The canteen opens at eleven on weekdays. Parking is free."
    memory = NOTHING.model_copy(update={"concepts": (CABLE_CAR,)})
    neighbours = FakeNeighbours(memory=memory, documents={"m1": document(text)})
    reply = await answered("When was the Tindfjell cable car built?", neighbours, ("m1",))
    assert [source.id for source in reply.sources] == ["cable-car"]


GUIDE = "Opening hours\nThe canteen opens at eleven on weekdays.\nFees\nA locker costs 4 euros. It was painted by a club."


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("When does the canteen open?", "at eleven"),
        ("wehn does the cantene open", "at eleven"),
        ("how much is a locker?", "4 euros"),
    ],
)
async def test_a_document_answers_in_spite_of_a_misspelt_word(text: str, told: str) -> None:
    reply = await answered(text, FakeNeighbours(memory=NOTHING, documents={"m1": document(GUIDE)}), ("m1",))
    assert told in reply.user_response


@pytest.mark.parametrize("text", ["When was the locker painted?", "How many clubs painted it?"])
async def test_a_sentence_without_the_sort_of_thing_that_is_asked_for_is_no_answer(text: str) -> None:
    guide = document("It was painted by a club. The locker is green.")
    reply = await answered(text, FakeNeighbours(memory=NOTHING, documents={"m1": guide}), ("m1",))
    assert (reply.sources, "**" in reply.user_response) == ((), False)


async def test_what_stands_under_a_heading_is_quoted_with_it() -> None:
    reply = await answered("What are the fees?", FakeNeighbours(memory=NOTHING, documents={"m1": document(GUIDE)}), ("m1",))
    assert "A locker costs 4 euros." in reply.user_response


async def test_where_the_answer_before_stands_is_told() -> None:
    source = QuotedSource(id="m1", title="guide.pdf", kind="document", asked="When does it open?", label="guide.pdf, page 3")
    reply = await answered("On which page is that?", FakeNeighbours(memory=NOTHING), focus=Focus(quoted=source))
    assert reply.user_response == "That is in guide.pdf, page 3."


async def test_a_short_follow_up_to_what_was_about_the_speaker_is_asked_of_what_they_said() -> None:
    said = (PastMessage("user", "my favourite colour is orange now"), PastMessage("assistant", "Noted."))

    def asked(request: AskFacts) -> AnsweredFacts:
        whole = request.question == "my favourite colour is orange now and the colour?"
        return AnsweredFacts(known=False, understood=True, near=(ORANGE,) if whole else ())

    neighbours = FakeNeighbours(memory=NOTHING, owners={ASK_FACTS.subject: asked})
    reply = await answered("and the colour?", neighbours, history=said, focus=Focus(personal=True))
    assert reply.user_response.endswith("You said: orange is the colour now.")


KNOWN = AnsweredFacts(known=True, understood=True, facts=(ORANGE,))


async def test_what_a_person_asked_to_forget_is_left_out_until_they_confirm() -> None:
    neighbours = FakeNeighbours(memory=NOTHING, owners={ASK_FACTS.subject: KNOWN})
    reply = await answered("what is my favourite colour?", neighbours, focus=Focus(to_forget=("f1",)))
    assert (reply.user_response.startswith("You asked me to forget that"), reply.sources) == (True, ())


async def test_another_fact_is_told_while_one_waits_to_be_forgotten() -> None:
    neighbours = FakeNeighbours(memory=NOTHING, owners={ASK_FACTS.subject: KNOWN})
    reply = await answered("what is my favourite colour?", neighbours, focus=Focus(to_forget=("f2",)))
    assert reply.user_response == "You said: orange is the colour now."


SHOWN = (PastMessage("user", "Forget my favourite colour."), PastMessage("assistant", "This would be forgotten: …"))


@pytest.mark.parametrize(
    ("said", "gone", "told"),
    [
        ("Yes, forget it.", [("f1",)], "Forgotten for good, with the message in which you said it."),
        ("yes please", [("f1",)], "Forgotten for good, with the message in which you said it."),
        ("no wait, keep it", [], "Nothing was forgotten."),
        ("keep it", [], "Nothing was forgotten."),
    ],
)
async def test_a_forgetting_begins_once_the_person_confirms_it(said: str, gone: list[tuple[str, ...]], told: str) -> None:
    forgotten: list[tuple[str, ...]] = []

    def forget(request: ForgetFor) -> Forgetting:
        forgotten.append(request.ids)
        return Forgetting(forgetting_id="g1", state=DeletionState.PENDING, requested_at=_WHEN)

    neighbours = FakeNeighbours(memory=NOTHING, owners={FORGET_FOR_GOOD.subject: forget})
    reply = await answered(said, neighbours, history=SHOWN, focus=Focus(to_forget=("f1",)))
    assert (reply.user_response, forgotten) == (told, gone)


def known_file(request: FindDerived) -> Derived:
    return Derived(media=("m1",) if request.name == "may invoice.pdf" else ())


@pytest.mark.parametrize(
    ("said", "source"),
    [
        ("Forget everything from may invoice.pdf", ForgetSource(document="may invoice.pdf")),
        ("please erase all you know from “may invoice.pdf”.", ForgetSource(document="may invoice.pdf")),
        ("Forget this conversation", ForgetSource(conversation_id="c1")),
        ("vergiss alles aus may invoice.pdf", ForgetSource(document="may invoice.pdf")),
        ("Lösche alles aus diesem Gespräch", ForgetSource(conversation_id="c1")),
    ],
)
async def test_a_person_is_shown_what_came_of_a_source_before_it_is_forgotten(said: str, source: ForgetSource) -> None:
    asked: list[ForgetSource] = []

    def preview(request: PreviewSource) -> SourcePreview:
        asked.append(ForgetSource(**request.model_dump(include={"document", "conversation_id"})))
        things = (
            DerivedThing(kind="media", id="m1", text="may invoice.pdf"),
            DerivedThing(kind="fact", id="f1", text="The seeds cost 14 euros."),
            DerivedThing(kind="episode", id="e1", text="User: hello"),
        )
        return SourcePreview(media=("m1",), held={"orchestrator": {"turns": 2}}, detached=1, things=things, total=3)

    owners = {PREVIEW_SOURCE.subject: preview, FIND_DERIVED.subject: known_file}
    end = await Stage(RULES, FakeNeighbours(memory=NOTHING, owners=owners), FakeConversations()).run(claim(said))
    assert isinstance(end, Completed), end
    told = end.reply.user_response
    assert ("may invoice.pdf" in told, "14 euros" in told, "User: hello" in told) == (True, True, False)
    assert end.focus is not None
    assert [one.model_copy(update={"conversation_id": source.conversation_id}) for one in asked] == [source]
    waits = end.focus.source_to_forget
    assert waits is not None
    assert (waits.document, bool(waits.conversation_id)) == (source.document, bool(source.conversation_id))


@pytest.mark.parametrize(("said", "begun"), [("yes, forget it", 1), ("yes please", 1), ("keep it", 0), ("what is red?", 0)])
async def test_a_source_is_forgotten_once_the_person_confirms_it(said: str, begun: int) -> None:
    forgotten: list[ForgetSource] = []

    def forget(request: ForgetSource) -> SourceForgetting:
        forgotten.append(request)
        return SourceForgetting(forgetting_id="g1", state=DeletionState.PENDING, requested_at=_WHEN)

    source, history = ForgetSource(document="a.pdf"), (PastMessage("user", "Forget everything from a.pdf"), SHOWN[1])
    neighbours = FakeNeighbours(memory=NOTHING, owners={FORGET_SOURCE.subject: forget})
    await answered(said, neighbours, history=history, focus=Focus(source_to_forget=source))
    assert forgotten == [source] * begun


@pytest.mark.parametrize("said", ["What is in invoice.pdf?", "delete the project file", "forget my locker code"])
async def test_what_names_no_source_to_forget_is_no_order_to_forget_one(said: str) -> None:
    neighbours = FakeNeighbours(memory=NOTHING)
    await answered(said, neighbours)
    assert [one for one in neighbours.questions if one[0] == PREVIEW_SOURCE.subject] == []


async def test_a_model_puts_no_other_words_to_a_forgetting() -> None:
    forgetting = Forgetting(forgetting_id="g1", state=DeletionState.PENDING, requested_at=_WHEN)
    neighbours = FakeNeighbours(memory=NOTHING, owners={FORGET_FOR_GOOD.subject: forgetting})
    model = ScriptedReasoner(routes=[query("colour")], composes=[written("I kept it, of course.")])
    stage = Stage(model, neighbours, FakeConversations(history=SHOWN, focus=Focus(to_forget=("f1",))))
    end = await stage.run(claim("yes please"))
    assert isinstance(end, Completed), end
    assert end.reply.user_response == "Forgotten for good, with the message in which you said it."


@pytest.mark.parametrize("said", ["ok", "sure", "yes please"])
async def test_a_yes_to_something_else_forgets_nothing(said: str) -> None:
    neighbours = FakeNeighbours(memory=NOTHING)
    history = (*SHOWN, PastMessage("user", "which projects were red?"), PastMessage("assistant", "Seven."))
    await answered(said, neighbours, history=history, focus=Focus(to_forget=("f1",)))
    assert [one for one in neighbours.questions if one[0] == FORGET_FOR_GOOD.subject] == []


async def test_what_waits_to_be_forgotten_is_quoted_from_no_item_either() -> None:
    def told(external: str) -> AugmentedMemoryContext:
        text = "The locker in the hall has the code 4417."
        item = ContextItem(id="i1", external_id=external, kind=ItemKind.NOTE, title="Locker", text=text, score=0.9, hop=0)
        return NOTHING.model_copy(update={"memory_units": (item,)})

    question, focus = "What code does the locker in the hall have?", Focus(to_forget=("f1",))
    replies = [await answered(question, FakeNeighbours(memory=told(one)), focus=focus) for one in ("f1", "f2")]
    assert ["4417" in reply.user_response for reply in replies] == [False, True]


async def test_a_question_behind_a_yes_forgets_nothing() -> None:
    reply = await answered("yes, what is red?", FakeNeighbours(memory=NOTHING), focus=Focus(to_forget=("f1",)))
    assert "Forgotten" not in reply.user_response


async def test_yes_forgets_nothing_that_was_not_shown_before() -> None:
    reply = await answered("Yes, forget it.", FakeNeighbours(memory=NOTHING))
    assert "Forgotten" not in reply.user_response


async def test_what_only_comes_near_is_not_told_as_the_answer() -> None:
    near = AnsweredFacts(known=False, understood=True, near=(ORANGE,))
    reply = await answered("what is my blood type?", FakeNeighbours(memory=NOTHING, owners={ASK_FACTS.subject: near}))
    assert reply.user_response == ("You have not told me exactly that. The closest I know: You said: orange is the colour now.")


STAFF = "name,team,start,room\nMei Lin,Design,2020-01-02,B12\nAmara Oke,Design,2019-03-01,B14\nLars Holt,Sales,2021-09-15,A03"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("which room is Mei Lin in?", ("room: B12",)),
        ("when did Lars Holt start?", ("start: 2021-09-15",)),
        ("who works in Design?", ("Mei Lin", "Amara Oke")),
    ],
)
async def test_a_row_of_an_attached_table_is_quoted_with_the_names_of_its_columns(text: str, told: tuple[str, ...]) -> None:
    neighbours = FakeNeighbours(memory=NOTHING, documents={"m1": document(STAFF, "staff.csv")})
    reply = await answered(text, neighbours, ("m1",))
    assert [one in reply.user_response for one in told] == [True] * len(told), reply.user_response


async def test_what_no_column_of_an_attached_table_says_is_not_answered_from_it() -> None:
    neighbours = FakeNeighbours(memory=NOTHING, documents={"m1": document(STAFF, "staff.csv")})
    reply = await answered("how many people work in Design?", neighbours, ("m1",))
    assert reply.sources == (), reply.user_response


async def test_a_row_without_what_is_asked_for_is_told_as_no_more_than_near() -> None:
    neighbours = FakeNeighbours(memory=NOTHING, documents={"m1": document(STAFF, "staff.csv")})
    reply = await answered("What is Lars Holt's phone number?", neighbours, ("m1",))
    assert reply.user_response == (
        "“staff.csv” does not say that directly. The closest it comes:\n\n"
        "**staff.csv**: name: Lars Holt; team: Sales; start: 2021-09-15; room: A03.\n\n"
        "Quoted from the sources; no language model was used."
    )


@pytest.mark.parametrize(
    ("name", "text"), [("2024-budget.pdf", "How many lockers are there?"), ("Ms Lee.pdf", "Who paints the locker?")]
)
async def test_the_name_of_a_file_does_not_stand_for_what_is_asked_of_its_text(name: str, text: str) -> None:
    guide = document("The locker is green. There are lockers in the hall. The club paints the locker.", name)
    reply = await answered(text, FakeNeighbours(memory=NOTHING, documents={"m1": guide}), ("m1",))
    assert (reply.sources, "**" in reply.user_response) == ((), False)


LEASE_TEXT = "The rent is 800 euros. Pets are not allowed. The lease runs until 30 June 2030. A key costs 20 euros."
LEASE = {"m1": document(LEASE_TEXT, "lease.txt")}


def comparing(**near: float) -> dict[str, Any]:
    """Memory that finds sentences near by a word that they hold, and all others far."""

    def compare(request: CompareTexts) -> ComparedTexts:
        return ComparedTexts(
            cosines=tuple(max((near[word] for word in near if word in text), default=0.0) for text in request.texts)
        )

    return {COMPARE_TEXTS.subject: compare}


async def test_the_nearest_sentence_of_a_document_is_told_as_no_more_than_that() -> None:
    neighbours = FakeNeighbours(memory=NOTHING, documents=LEASE, owners=comparing(Pets=0.5, rent=0.2))
    reply = await answered("may I keep a hamster?", neighbours, ("m1",))
    assert reply.user_response == (
        "“lease.txt” does not say that directly. The closest it comes:\n\n"
        "**lease.txt**: Pets are not allowed. The lease runs until 30 June 2030.\n\n"
        "Quoted from the sources; no language model was used."
    )


async def test_a_sentence_without_what_is_asked_for_is_not_the_nearest() -> None:
    neighbours = FakeNeighbours(memory=NOTHING, documents=LEASE, owners=comparing(Pets=0.5, until=0.3))
    reply = await answered("when must hamsters go?", neighbours, ("m1",))
    assert "The lease runs until 30 June 2030." in reply.user_response
    assert "Pets" not in reply.user_response


async def test_a_sentence_that_shares_the_words_is_only_near_where_another_means_more_of_it() -> None:
    letter = document("The lease is kept in the office. You may leave after two years.", "letter.txt")
    neighbours = FakeNeighbours(memory=NOTHING, documents={"m1": letter}, owners=comparing(kept=0.2, leave=0.6))
    reply = await answered("is the lease kept?", neighbours, ("m1",))
    assert reply.user_response.startswith("“letter.txt” does not say that directly.")
    assert "You may leave after two years." in reply.user_response


async def test_without_the_meaning_of_sentences_nothing_is_taken_for_near() -> None:
    neighbours = FakeNeighbours(memory=NOTHING, documents=LEASE)
    reply = await answered("would hamsters be fine?", neighbours, ("m1",))
    assert "documents" in reply.degraded
    assert "hamster" not in reply.user_response
    assert "does not say that directly" not in reply.user_response


async def test_a_number_that_counts_something_else_does_not_answer_how_many() -> None:
    shed = document("The parts for the loom are in cupboard 14.", "shed.txt")
    reply = await answered("how many looms are there?", FakeNeighbours(memory=NOTHING, documents={"m1": shed}), ("m1",))
    assert "14" not in reply.user_response


async def test_a_document_without_a_word_about_it_is_quoted_from_its_beginning() -> None:
    reply = await answered("", FakeNeighbours(memory=NOTHING, documents=LEASE, owners=comparing(Pets=0.5)), ("m1",))
    assert reply.user_response.startswith("**lease.txt**: The rent is 800 euros.")


def passage(media_id: str, text: str, **more: Any) -> FoundPassage:
    """A passage of a document that came with an earlier message."""
    given = {"name": media_id, "kind": MediaKind.DOCUMENT, "position": 0, "start": 0, "end": len(text), "score": 0.5} | more
    return FoundPassage(media_id=media_id, text=text, **given)


def held(*passages: FoundPassage) -> dict[str, Any]:
    """Memory that has these passages of the conversation's documents."""
    return {SEARCH_DOCUMENTS.subject: FoundPassages(passages=passages, documents=len(passages))}


OFFER, BILL = "Offer of Morven\nThe excess is 80 pounds a claim.", "Invoice 77\nThe excess is 95 pounds a claim."


async def test_what_comes_with_a_message_is_asked_before_what_came_earlier() -> None:
    neighbours = FakeNeighbours(
        memory=NOTHING,
        documents={"m1": document(BILL, "bill.txt")},
        owners=held(passage("offer.txt", OFFER), passage("bill.txt", BILL)),
    )
    reply = await answered("Here is the other one. How much is the excess?", neighbours, ("m1",))
    assert ("95 pounds" in reply.user_response, "80 pounds" in reply.user_response) == (True, False)


@pytest.mark.parametrize(("text", "told"), [("and in the invoice?", "95"), ("How much is the excess in the offer?", "80")])
async def test_a_document_is_chosen_by_a_word_of_its_first_line(text: str, told: str) -> None:
    neighbours = FakeNeighbours(
        memory=NOTHING, owners=held(passage("a.txt", OFFER), passage("b.txt", BILL)) | comparing(excess=0.5)
    )
    source = QuotedSource(id="a.txt", title="a.txt", kind="document", asked="How much is the excess?", label="a.txt")
    history = (PastMessage("user", "How much is the excess?"), PastMessage("assistant", "80 pounds."))
    reply = await answered(text, neighbours, history=history, focus=Focus(quoted=source))
    assert [one in reply.user_response for one in ("80 pounds", "95 pounds")] == [told == "80", told == "95"]


ON_A_ROW = QuotedSource(
    id="staff.csv", title="staff.csv", kind="document", asked="Who started last?", label="staff.csv",
    row="name: Lars Holt; team: Sales; start: 2021-09-15; room: A03.",
)  # fmt: skip


@pytest.mark.parametrize(("text", "sure"), [("which room is that?", True), ("and where?", True), ("and their phone?", None)])
async def test_a_short_question_about_the_row_that_was_told_gets_it_again(text: str, sure: bool | None) -> None:
    neighbours = FakeNeighbours(memory=NOTHING, owners=held(passage("staff.csv", STAFF)))
    reply = await answered(text, neighbours, focus=Focus(quoted=ON_A_ROW))
    assert reply.user_response.startswith("**staff.csv**: name: Lars Holt;") is bool(sure)


async def test_another_value_asks_the_computed_question_again() -> None:
    source = ON_A_ROW.model_copy(update={"row": "", "computed": "How many people are in Design?"})
    neighbours = FakeNeighbours(memory=NOTHING, owners=held(passage("staff.csv", STAFF)))
    reply = await answered("and in Sales?", neighbours, focus=Focus(quoted=source))
    assert reply.user_response.startswith("**staff.csv**: There is 1 such row. name: Lars Holt;"), reply.user_response


@pytest.mark.parametrize(
    ("text", "read_in"),
    [
        ("What is Crossrail for, and what do the mudlarks think of it?", ["en"]),
        ("Ampelfarbe von NS&I Rainbow 2023?", ["en", "de"]),
    ],
)
async def test_a_message_is_read_in_another_language_only_if_that_knows_as_many_of_its_words(
    text: str, read_in: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []

    def read(text: str, lexicon: Any, focus: Focus, language: Language, **more: Any) -> Understood:
        found.append(language.name)
        return understand(text, lexicon, focus, language, **more)

    monkeypatch.setattr(answering, "understand", read)
    neighbours = FakeNeighbours(owners={VOCABULARY.subject: vocabulary()})
    await Stage(RULES, neighbours, vocabularies=Vocabularies(neighbours)).attempt(claim(text))
    assert list(dict.fromkeys(found)) == read_in
