"""What a record holds, what it leaves with its owner, and how two runs are compared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_bus.tracing import Tracing
from phronesis_contracts import Nothing, Principal
from phronesis_contracts.answers import MAX_CALLS, MAX_STAGES, NotRecorded
from phronesis_contracts.memory import (
    KEEP_MEMORY,
    PROFILE_GET,
    RETRIEVE,
    AugmentedMemoryContext,
    ContextItem,
    ItemKind,
    KeepMemory,
    KeptMemory,
    Profile,
    RecalledMemories,
    Scope,
    Snippet,
)
from phronesis_contracts.twin import READ_CYPHER, CypherRows
from phronesis_orchestrator.metrics import STAGE
from phronesis_orchestrator.traces.handlers import RecordedNeighbours
from phronesis_orchestrator.traces.record import (
    MOST_BYTES,
    Item,
    Question,
    StoredRecord,
    TurnRecord,
    is_held,
    join_records,
    json_digest,
    list_items,
    list_memories,
    measure,
    restore_answer,
    trace_arguments,
)
from phronesis_orchestrator.traces.store import diff_answers, list_used_facts
from tests.unit.orchestrator.fakes import FACT, PROFILE, FakeNeighbours

ANN = Principal(tenant="acme", user="ann")
CONTEXT = AugmentedMemoryContext(user_id="ann", key_phrases=("x",), memory_units=(FACT,))


def question(**more: object) -> Question:
    return Question.model_validate({"subject": "graph.v1.nodes", "digest": "d", **more})


@pytest.mark.parametrize(
    ("rpc", "answer", "held"),
    [
        (RETRIEVE, CONTEXT, True),
        (RETRIEVE, AugmentedMemoryContext(user_id="ann", key_phrases=("x",)), False),
        (PROFILE_GET, Profile(profile={"name": "Ann"}), True),
        (PROFILE_GET, Profile(), False),
        (READ_CYPHER, CypherRows(rows=({"id": "1"},)), False),
        (KEEP_MEMORY, KeptMemory(id="m", status="created"), False),
    ],
)
def test_texts_of_memories_stay_with_their_owner_and_receipts_of_writes_do_not(rpc: object, answer: object, held: bool) -> None:
    assert is_held(rpc, answer) is held  # type: ignore[arg-type]


def test_of_a_memory_that_is_written_the_trace_shows_no_text() -> None:
    request = KeepMemory(scope=Scope.PERSONAL, key="k", content="The canary sings.")
    assert trace_arguments(ANN, KEEP_MEMORY, request) == {"scope": "personal", "key": "***"}


def test_an_answer_that_is_read_again_holds_the_recorded_memories_alone() -> None:
    newer = ContextItem(id="i2", kind=ItemKind.FACT, title="New", text="New.", score=0.99, hop=0)
    again = CONTEXT.model_copy(update={"memory_units": (newer, FACT.model_copy(update={"score": 0.1}))})
    assert restore_answer(again, list_items(CONTEXT)) == (CONTEXT, ())


def test_memories_that_are_not_found_again_are_named() -> None:
    snippets = tuple(Snippet(key=key, content=key, confidence=1.0, score=0.5) for key in ("a", "b"))
    answer = RecalledMemories(snippets=snippets, scope=Scope.PERSONAL)
    left = answer.model_copy(update={"snippets": snippets[1:]})
    assert restore_answer(left, list_items(answer)) == (left, ("personal:a",))


def test_a_record_holds_no_more_than_its_room() -> None:
    record = TurnRecord()
    for _ in range(2 * MAX_CALLS + 1):
        record.ask(question(answer={"text": "x" * (MOST_BYTES // 10)}))
    for _ in range(MAX_STAGES + 1):
        with record.staged("s", measure(Tracing("orchestrator"), STAGE, "s", "s")):
            pass
    kept = record.kept()
    assert (len(kept.questions), len(kept.stages), kept.cut) == (2 * MAX_CALLS, MAX_STAGES, True)
    assert len(kept.model_dump_json()) < MOST_BYTES + 200_000


def test_a_stage_that_fails_is_recorded_with_its_code() -> None:
    record = TurnRecord()
    with pytest.raises(NotRecorded), record.staged("s", measure(Tracing("orchestrator"), STAGE, "s", "s")):
        raise NotRecorded
    assert [(stage.name, stage.outcome) for stage in record.stages] == [("s", "not_recorded")]


def test_two_attempts_are_one_record() -> None:
    first, second = (StoredRecord(questions=(question(digest=name),), notes={name: 1}) for name in ("a", "b"))
    both = join_records(first, second)
    assert ([one.digest for one in both.questions], both.notes) == (["a", "b"], {"a": 1, "b": 1})


def test_what_a_turn_asks_again_after_an_approval_is_recorded_once() -> None:
    first = StoredRecord(questions=(question(digest="read"), question(digest="written", step="call.1.1")))
    second = StoredRecord(questions=(question(digest="read"), question(digest="read later")))
    assert [one.digest for one in join_records(first, second).questions] == ["written", "read", "read later"]


def test_a_memory_that_is_used_twice_is_listed_once_with_its_best_score() -> None:
    items = [question(items=(Item(id="i", kind="fact", score=score),)) for score in (0.2, 0.9, 0.5)]
    assert list_memories(StoredRecord(questions=tuple(items))) == (Item(id="i", kind="fact", score=0.9),)


def test_facts_are_the_nodes_that_answers_of_the_graph_name() -> None:
    answer = {"rows": [{"id": "7", "type": "EntityProject", "near": [{"id": "8"}]}, {"id": "7", "type": "EntityProject"}]}
    assert [fact.id for fact in list_used_facts(StoredRecord(questions=(question(answer=answer),)))] == ["7", "8"]


async def test_a_replay_gives_the_answers_to_one_question_in_their_order() -> None:
    asked = json_digest(Nothing().model_dump(mode="json"))
    answers: list[dict[str, object]] = [{"profile": {}, "version": number} for number in (1, 2)]
    record = StoredRecord(questions=tuple(question(subject=PROFILE_GET.subject, digest=asked, answer=one) for one in answers))
    recorded = RecordedNeighbours(record, PROFILE, FakeNeighbours(), None)
    found = [await recorded.ask(ANN, PROFILE_GET, Nothing()) for _ in range(3)]
    assert [one.version for one in found] == [1, 2, 2]


async def test_a_replay_makes_no_call_that_is_not_in_the_record() -> None:
    neighbours = FakeNeighbours()
    recorded = RecordedNeighbours(StoredRecord(), PROFILE, neighbours, None)
    with pytest.raises(NotRecorded):
        await recorded.ask(ANN, KEEP_MEMORY, KeepMemory(scope=Scope.PERSONAL, key="k", content="c"), key="a key")
    assert neighbours.questions == []
    assert [(one.name, one.arguments) for one in recorded.unrecorded] == [("keep_memory", {"scope": "personal", "key": "***"})]


@given(st.text(), st.text())
def test_answers_differ_exactly_where_they_are_not_equal_line_by_line(before: str, after: str) -> None:
    if before == after:
        assert diff_answers(before, after) == ""
    elif (before.splitlines() or [""]) != (after.splitlines() or [""]):
        assert diff_answers(before, after).startswith("--- the turn")
