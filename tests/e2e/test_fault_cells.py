"""Some cells of the fault table (`python -m tests.faults` measures all), and whole turns with a model, on their own stack."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from phronesis_local.settings import Stores
from tests.faults.measure import FACT, QUESTION, ask, someone_who_knows
from tests.faults.model_faults import FAULTS
from tests.faults.model_part import model_cell
from tests.faults.stack import FaultStack, fault_stack
from tests.faults.store_part import store_cell
from tests.support.bus import eventually
from tests.support.groq_server import Fault
from tests.support.people import Person
from tests.support.production import STORES
from tests.support.stack import UNHURRIED
from tests.support.tcp_proxy import Mode

pytestmark = [pytest.mark.verify, pytest.mark.stores, pytest.mark.timeout(180)]

_PATIENT = {**UNHURRIED, "ORCHESTRATOR_RETRIEVAL_LIMIT": "10"}
"""What is at fault in a cell is the model or a store that the cell names, and not a graph that is slow on a busy machine."""
WITHOUT_POSTGRES = ("profile", "vector", "text") if STORES is Stores.EMBEDDED else ("profile", "text", "content")
"""What a reply lacks while memory has no Postgres: Weaviate goes on answering, and then the items' texts are missing."""
_STANCES = ("curious_explorer", "supportive_companion", "focused_analyst", "creative_collaborator")


@pytest.fixture(scope="module")
async def faulty(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[FaultStack]:
    """A stack with a scripted model, and a proxy in every connection."""
    async with fault_stack(tmp_path_factory.mktemp("faulty") / "data", _PATIENT) as stack:
        someone = await someone_who_knows(stack.people)

        async def whole() -> bool:  # the first statements of a fresh Neo4j take seconds to plan
            return (await ask(someone)).whole

        await eventually(whole, within=60)
        yield stack


@pytest.fixture
async def person(faulty: FaultStack) -> Person:
    """A user whose memory holds the fact."""
    return await someone_who_knows(faulty.people)


@pytest.mark.any_store
@pytest.mark.req("D-134", "D-140", "D-141", "D-142", "D-167")
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("429", "final"),
        ("429, Retry-After: 60", "router"),
        ("500", "router.repair"),
        ("connection reset", "final.repair"),
        ("malformed JSON", "final"),
        ("a tool that is not offered", "router"),
        ("cut at the greatest length", "final.repair"),
        ("unknown directive", "final"),
        ("NUL in the text", "final"),
        ("answer of 1 MB", "final.repair"),
    ],
)
async def test_a_fault_of_the_model_is_seen_by_the_client_as_the_list_says(
    faulty: FaultStack, person: Person, name: str, call: str
) -> None:
    fault = next(fault for fault in FAULTS if fault.name == name)
    row = await model_cell(faulty, person, fault, call)
    assert not row.bad, row


@pytest.mark.req("D-137", "D-138", "D-139", "D-166")
@pytest.mark.parametrize(
    ("link", "mode", "degraded"),
    [
        ("memory to Postgres", "reset", {WITHOUT_POSTGRES}),
        ("memory to Postgres", "stall", {WITHOUT_POSTGRES, ("profile", "memory")}),
        ("memory to the embedding service", "stall", {("vector",)}),
        ("graph to its store", "slow", {("graph",)}),
        ("graph to NATS", "refuse", {("graph",)}),
    ],
)
async def test_a_broken_store_is_named_in_the_reply_and_used_again_without_a_restart(
    faulty: FaultStack, person: Person, link: str, mode: Mode, degraded: set[tuple[str, ...]]
) -> None:
    row = await store_cell(faulty, person, link, mode)
    assert not row.bad, row
    assert (row.status, row.degraded in degraded) == (200, True), row


@pytest.mark.req("D-139", "D-123")
async def test_a_database_that_breaks_while_the_model_is_asked_costs_the_turn_time_and_nothing_else(
    faulty: FaultStack, person: Person
) -> None:
    mark = uuid4().hex
    faulty.model.fail("final", Fault(stall=0.5, about=mark))
    asked = asyncio.create_task(person.reply(f"{QUESTION} {mark}"))
    await eventually(lambda: faulty.model.about(mark) == 2)
    async with faulty.links["orchestrator to Postgres"].broken("reset"):
        await asyncio.sleep(1)
    reply = await asked
    said = await person.messages(reply["conversation_id"])
    assert [message["role"] for message in said] == ["user", "assistant"]
    assert reply["next_agent_directive"] == "curious_explorer"


@pytest.mark.req("D-001", "D-117", "D-118", "D-119", "D-160")
async def test_a_conversation_begins_with_its_first_stance_and_each_turn_sees_the_one_before(
    faulty: FaultStack, person: Person
) -> None:
    mark = uuid4().hex
    answer = {"user_response": "Done.", "next_agent_directive": "creative_collaborator", "directive_reasoning": "-"}
    faulty.model.fail("final", Fault(content=json.dumps(answer), about=mark))
    first = await person.reply(f"{QUESTION} {mark}")
    kept = (await person.http.get(f"/api/v1/conversations/{first['conversation_id']}")).json()["directive"]
    second = await person.reply("And who built it?", first["conversation_id"])
    assert (first["next_agent_directive"], kept) == ("creative_collaborator", "creative_collaborator")
    assert _stances(faulty, first) == {"supportive_companion"}
    assert _stances(faulty, second) == {"creative_collaborator"}


def _stances(faulty: FaultStack, reply: dict[str, Any]) -> set[str]:
    """The stances that stand in the instructions of a turn's router call."""
    calls = [call for call in faulty.model.calls if call.step == f"{reply['turn_id']}/route" and call.request]
    rules = [(call.request or {})["messages"][0]["content"] for call in calls]
    return {stance for text in rules for stance in _STANCES if stance in text}


@pytest.mark.req("D-008", "D-112", "D-146")
async def test_reply_and_next_stance_come_from_one_final_call(faulty: FaultStack, person: Person) -> None:
    mark = uuid4().hex
    reply = await person.reply(f"{QUESTION} {mark}")
    calls = [call.purpose for call in faulty.model.calls if (call.step or "").startswith(f"{reply['turn_id']}/")]
    assert calls == ["router", "final"]
    assert reply["next_agent_directive"] == "curious_explorer"


@pytest.mark.req("D-148", "D-009")
async def test_every_phase_of_a_turn_has_its_time_in_the_trace(faulty: FaultStack, person: Person) -> None:
    reply = await person.reply(QUESTION)
    spans = (await person.http.get(f"/api/v1/turns/{reply['turn_id']}/trace")).json()["spans"]
    phases = [span for span in sorted(spans, key=lambda span: span["start_ns"]) if span["name"].startswith("phase ")]
    assert [span["name"] for span in phases] == ["phase I media", "phase II route", "phase III retrieve", "phase IV answer"]
    assert all(span["end_ns"] > span["start_ns"] for span in phases)


@pytest.mark.req("D-069", "D-106", "D-157")
async def test_retrieval_brings_the_fact_to_the_final_call_and_asks_no_model_of_its_own(
    faulty: FaultStack, person: Person
) -> None:
    mark, phrases = uuid4().hex, ["Kvitfjell observatory", "last week's talk", "that feeling of being stuck"]
    routed = {"decision": "query_memory", "key_phrases": phrases, "thought_process": "-"}
    faulty.model.fail("router", Fault(content=json.dumps(routed), about=mark))
    reply = await person.reply(f"{QUESTION} {mark}")
    asked = {call.purpose: str((call.request or {})["messages"]) for call in faulty.model.calls if mark in str(call.request)}
    assert (FACT in asked["router"], FACT in asked["final"]) == (False, True)
    spans = (await person.http.get(f"/api/v1/turns/{reply['turn_id']}/trace")).json()["spans"]
    retrieved = [span["name"] for span in _below(spans, "phase III retrieve")]
    assert (retrieved.count("serve memory.v1.retrieve"), retrieved.count("serve graph.v1.expand")) == (1, 1)
    chats = {phase: _chats(_below(spans, f"phase {phase}")) for phase in ("II route", "III retrieve", "IV answer")}
    assert chats == {"II route": 1, "III retrieve": 0, "IV answer": 1}


def _below(spans: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """All spans under the one of this name."""
    (top,) = [span for span in spans if span["name"] == name]
    inside, found = {top["span_id"]}, []
    for span in sorted(spans, key=lambda span: span["start_ns"]):
        if span["parent_id"] in inside:
            inside.add(span["span_id"])
            found.append(span)
    return found


def _chats(spans: list[dict[str, Any]]) -> int:
    return sum(span["attributes"].get("gen_ai.operation.name") == "chat" for span in spans)
