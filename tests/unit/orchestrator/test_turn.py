"""One turn from claim to end: its stages, its branches and every fallback of the router loop."""

from __future__ import annotations

import json
from typing import Any

import pytest

from phronesis_contracts import Label, OriginKind, TimedOut, Unavailable, UnsupportedMedia
from phronesis_contracts.media import ExtractedText
from phronesis_contracts.memory import AugmentedMemoryContext
from phronesis_contracts.orchestrator import Directive, TurnStatus
from phronesis_orchestrator.conversations.history import PastMessage
from phronesis_orchestrator.models.reasoner import RouteDecision
from phronesis_orchestrator.turns.turn import Completed, Failed
from tests.unit.orchestrator.fakes import (
    FACT,
    FakeConversations,
    FakeNeighbours,
    ScriptedReasoner,
    Stage,
    claim,
    direct,
    fault,
    query,
    reply,
)


def scripted(routes: list[Any], composes: list[Any], **more: Any) -> Stage:
    return Stage(ScriptedReasoner(routes, composes), **more)


async def completed(stage: Stage, *args: Any, **more: Any) -> Completed:
    end = await stage.run(claim(*args, **more))
    assert isinstance(end, Completed), end
    return end


def document(text: str = "The budget is 12.", id: str = "m1") -> ExtractedText:
    return ExtractedText(media_id=id, name="note.pdf", type="application/pdf", text=text, engine="test")


@pytest.mark.req("D-002", "D-006", "D-007", "D-060", "D-061", "D-108", "D-112", "D-146", "D-156", "D-C14")
async def test_a_direct_answer_makes_two_calls_and_no_retrieval() -> None:
    stage = scripted([direct("Hi!")], [reply("Hello, Ann.")])
    end = await completed(stage, "Hello")
    assert stage.reasoner.calls == ["route", "compose"]
    assert stage.neighbours.asked == []
    assert stage.reasoner.drafts == ["Hi!"]
    assert (end.reply.user_response, end.directive, end.reasoning) == ("Hello, Ann.", Directive.FOCUSED_ANALYST, "because")
    assert end.reply.usage.model_calls == 2


@pytest.mark.req("D-002", "D-009", "D-062", "D-063", "D-104", "D-105", "D-108", "D-157", "D-C15")
async def test_a_question_to_memory_is_answered_from_what_retrieval_gave() -> None:
    stage = scripted([query("Phoenix", "the archive")], [reply()])
    end = await completed(stage)
    assert stage.neighbours.asked == [("Phoenix", "the archive")]
    (memory,) = stage.reasoner.memories
    assert memory is not None
    assert [item.title for item in memory.memory_units] == ["Phoenix"]
    assert [(s.title, s.type) for s in end.reply.sources] == [("Phoenix", "fact")]
    assert stage.reasoner.calls == ["route", "compose"]


@pytest.mark.req("D-131")
async def test_the_phases_are_shown_in_order() -> None:
    stage = scripted([query("Phoenix")], [reply()])
    await completed(stage)
    assert stage.shown == ["preprocessed", "routed", "retrieved", "answered", "ended"]


@pytest.mark.req("D-001", "D-040", "D-117", "D-038", "D-039", "D-041")
async def test_the_prompt_gets_profile_history_and_the_directive_of_the_turn_before() -> None:
    past = (PastMessage("user", "hi"), PastMessage("assistant", "hello"))
    stage = scripted(
        [direct()],
        [reply()],
        neighbours=FakeNeighbours(known={"name": "Ann"}),
        conversations=FakeConversations(Directive.CREATIVE_COLLABORATOR, past),
    )
    await completed(stage)
    (context,) = stage.reasoner.contexts
    assert (context.profile, context.history, context.directive) == ({"name": "Ann"}, past, Directive.CREATIVE_COLLABORATOR)


@pytest.mark.req("D-042", "D-046")
@pytest.mark.parametrize(
    ("neighbours", "conversations", "mark"),
    [
        (FakeNeighbours(known=Unavailable()), FakeConversations(), "profile"),
        (FakeNeighbours(), FakeConversations(error=Unavailable()), "history"),
    ],
)
async def test_a_part_of_the_context_that_fails_is_marked_and_the_turn_goes_on(
    neighbours: FakeNeighbours, conversations: FakeConversations, mark: str
) -> None:
    stage = scripted([direct()], [reply()], neighbours=neighbours, conversations=conversations)
    assert (await completed(stage)).reply.degraded == (mark,)


@pytest.mark.req("D-T04")
async def test_without_instructions_the_rules_answer_and_say_so() -> None:
    stage = scripted([], [], neighbours=FakeNeighbours(profiles={"dialogue": Unavailable()}))
    end = await completed(stage, "Hello")
    assert (end.reply.reasoner, end.reply.degraded, stage.reasoner.calls) == ("extractive", ("instructions",), [])


@pytest.mark.req("D-133", "D-134", "D-057")
@pytest.mark.parametrize("routes", [[fault(), fault()], [TimedOut()], [fault(), Unavailable()]])
async def test_an_unusable_router_asks_memory_with_phrases_drawn_by_code(routes: list[Any]) -> None:
    stage = scripted(routes, [reply()])
    end = await completed(stage, "What is project Phoenix for?")
    assert any("Phoenix" in phrase for phrase in stage.neighbours.asked[0])
    assert end.reply.degraded == ("router",)


@pytest.mark.req("D-057", "D-047")
async def test_a_router_answer_is_repaired_once() -> None:
    stage = scripted([fault(), query("Phoenix")], [reply()])
    end = await completed(stage)
    assert stage.reasoner.calls == ["route", "route.repair", "compose"]
    assert (stage.neighbours.asked, end.reply.degraded) == ([("Phoenix",)], ())


@pytest.mark.req("D-135")
async def test_a_query_without_phrases_uses_the_whole_input() -> None:
    stage = scripted([query()], [reply()])
    await completed(stage, "x" * 500)
    assert stage.neighbours.asked == [("x" * 200,)]


@pytest.mark.req("D-136")
async def test_a_direct_answer_without_a_draft_still_gets_its_final_call() -> None:
    stage = scripted([direct(None)], [reply("Fine.")])
    assert (await completed(stage)).reply.user_response == "Fine."
    assert stage.reasoner.drafts == [None]


@pytest.mark.req("D-140", "D-C14")
@pytest.mark.parametrize(
    ("route", "second", "expected"),
    [
        (direct("The draft."), fault(json.dumps({"user_response": "Saved."})), "Saved."),
        (direct("The draft."), fault("cut {"), "The draft."),
        (direct("The draft."), Unavailable(), "The draft."),
    ],
)
async def test_a_final_answer_that_cannot_be_repaired_falls_back(route: Any, second: Any, expected: str) -> None:
    past = FakeConversations(Directive.CURIOUS_EXPLORER)
    stage = scripted([route], [fault(), second], conversations=past)
    end = await completed(stage)
    assert (end.reply.user_response, end.directive) == (expected, Directive.CURIOUS_EXPLORER)
    assert end.reply.degraded == ("final",)


@pytest.mark.req("D-141", "D-110")
async def test_an_unknown_directive_keeps_the_reply_and_the_earlier_directive() -> None:
    stage = scripted([direct()], [reply("Arr.", None)], conversations=FakeConversations(Directive.CURIOUS_EXPLORER))
    end = await completed(stage)
    assert (end.reply.user_response, end.reply.next_agent_directive) == ("Arr.", Directive.CURIOUS_EXPLORER)


@pytest.mark.req("D-142")
async def test_a_model_that_is_away_with_nothing_to_say_fails_the_turn_with_its_code() -> None:
    end = await scripted([query("x")], [Unavailable("the model does not answer")]).run(claim())
    assert isinstance(end, Failed)
    assert (end.status, end.problem.code, end.problem.status) == (TurnStatus.FAILED, "unavailable", 503)


@pytest.mark.req("D-137", "D-107")
async def test_a_retrieval_that_fails_is_marked_and_the_reply_is_given() -> None:
    stage = scripted([query("x")], [reply()], neighbours=FakeNeighbours(memory=Unavailable()))
    end = await completed(stage)
    assert end.reply.degraded == ("memory",)
    (memory,) = stage.reasoner.memories
    assert memory == AugmentedMemoryContext(user_id="ann", key_phrases=("x",))


@pytest.mark.req("D-138")
async def test_what_retrieval_marks_stands_in_the_reply() -> None:
    memory = AugmentedMemoryContext(user_id="ann", key_phrases=("x",), degraded=("graph",))
    stage = scripted([query("x")], [reply()], neighbours=FakeNeighbours(memory=memory))
    assert (await completed(stage)).reply.degraded == ("graph",)


@pytest.mark.req("D-064")
async def test_there_is_at_most_one_retrieval_in_a_turn() -> None:
    stage = scripted([query("a", "b")], [reply("I need to query memory again.")])
    await completed(stage)
    assert len(stage.neighbours.asked) == 1


@pytest.mark.req("D-005", "D-026", "D-028", "D-029", "D-004")
async def test_the_text_of_attachments_follows_the_users_own_in_order_and_labelled() -> None:
    neighbours = FakeNeighbours(documents={"m1": document("first", "m1"), "m2": document("second", "m2")})
    stage = scripted([direct()], [reply()], neighbours=neighbours)
    end = await completed(stage, "Read these", ("m1", "m2"))
    (context,) = stage.reasoner.contexts
    part = "[document: note.pdf]\n{}\n[end of document]"
    assert context.final_input == f"Read these\n\n{part.format('first')}\n\n{part.format('second')}"
    assert [(s.id, s.type) for s in end.reply.sources] == [("m1", "document"), ("m2", "document")]
    assert (end.user_text, end.attached) == ("Read these", ("note.pdf", "note.pdf"))
    documents = [Label(kind=OriginKind.DOCUMENT, id=id, name="note.pdf") for id in ("m1", "m2")]
    assert set(end.labels) == {Label(kind=OriginKind.USER), *documents}


@pytest.mark.req("D-030", "D-027")
async def test_a_message_without_media_is_its_text_alone() -> None:
    stage = scripted([direct()], [reply()])
    await completed(stage, "  Hello  ")
    (context,) = stage.reasoner.contexts
    assert context.final_input == "Hello"


@pytest.mark.req("D-033", "D-034")
@pytest.mark.parametrize("found", [UnsupportedMedia("no text"), document("   ")])
async def test_an_attachment_that_cannot_be_read_leaves_a_note_when_text_remains(found: Any) -> None:
    stage = scripted([direct()], [reply()], neighbours=FakeNeighbours(documents={"m1": found}))
    end = await completed(stage, "Read this", ("m1",))
    (context,) = stage.reasoner.contexts
    assert context.final_input == "Read this\n\n(note.pdf is unreadable)"
    assert end.reply.degraded == ("media",)


@pytest.mark.req("D-033")
async def test_a_message_of_nothing_but_unreadable_media_fails() -> None:
    stage = scripted([], [], neighbours=FakeNeighbours(documents={"m1": UnsupportedMedia("no text")}))
    end = await stage.run(claim("", ("m1",)))
    assert isinstance(end, Failed)
    assert (end.problem.code, end.problem.field) == ("unsupported_media", "currentMessageMedia")
    assert stage.reasoner.calls == []


@pytest.mark.req("D-035")
async def test_a_long_document_is_cut_with_a_mark() -> None:
    stage = scripted([direct()], [reply()], neighbours=FakeNeighbours(documents={"m1": document("y" * 50_000)}))
    await completed(stage, "Read", ("m1",))
    (context,) = stage.reasoner.contexts
    assert len(context.final_input) < 25_000
    assert "[cut here" in context.final_input


async def test_a_second_attempt_makes_no_call_that_has_its_result_in_the_journal() -> None:
    first = scripted([query("Phoenix")], [Unavailable()])
    await first.run(claim())
    second = scripted([], [reply("From the journal on.")], journal=first.journal)
    end = await completed(second)
    assert (second.reasoner.calls, end.reply.user_response) == (["compose"], "From the journal on.")
    assert end.reply.usage.model_calls == 2


@pytest.mark.parametrize(
    ("state", "status", "code"),
    [
        ({"key_revoked": True}, TurnStatus.FAILED, "unauthorized"),
        ({"expired": True}, TurnStatus.FAILED, "timed_out"),
        ({"idle_claims": 6}, TurnStatus.PARKED, "internal"),
    ],
)
async def test_a_hopeless_turn_is_ended_and_not_run(state: dict[str, Any], status: TurnStatus, code: str) -> None:
    stage = scripted([], [])
    end = await stage.run(claim(**state))
    assert isinstance(end, Failed)
    assert (end.status, end.problem.code) == (status, code)


@pytest.mark.req("D-056")
def test_key_phrases_are_tidied() -> None:
    phrases = ("  a  b ", "A B", "", *(f"p{i}" for i in range(50)), "x" * 300)
    routed = RouteDecision(decision="query_memory", key_phrases=phrases)
    assert routed.key_phrases == ("a b", "p0", "p1", "p2", "p3", "p4", "p5", "p6")


@pytest.mark.req("D-105")
async def test_an_item_that_has_little_to_do_with_the_question_is_no_source() -> None:
    other = FACT.model_copy(update={"id": "i2", "title": "Fish", "text": "Herring are silver.", "score": 0.2})
    memory = AugmentedMemoryContext(user_id="ann", key_phrases=("x",), memory_units=(other, FACT))
    stage = scripted([query("Phoenix")], [reply()], neighbours=FakeNeighbours(memory=memory))
    end = await completed(stage, "What does Phoenix move?")
    assert [s.title for s in end.reply.sources] == ["Phoenix"]
