"""Sending a message and waiting for its reply."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import pytest

from phronesis_contracts.orchestrator import Problem, turn_id
from tests.support.gateway import Holder, RunningGateway
from tests.support.scripted_orchestrator import KEY_REUSED, ScriptedOrchestrator

MESSAGES = "/api/v1/conversations/messages"
TURNS = "/api/v1/turns"


async def send(api: RunningGateway, holder: Holder, text: str, key: str | None = None, **more: Any) -> httpx.Response:
    headers = holder.headers | ({"Idempotency-Key": key} if key else {})
    return await api.http.post(MESSAGES, json={"currentMessageText": text, **more}, headers=headers)


@pytest.mark.req("D-010", "D-113", "V-T03")
async def test_a_message_is_answered_with_the_reply_of_its_turn(api: RunningGateway, ann: Holder) -> None:
    text = f"hello {uuid4()}"
    answer = await send(api, ann, text, key="k1")
    body = answer.json()
    assert (answer.status_code, body.pop("conversation_id") != "") == (200, True)
    assert body == {
        "turn_id": turn_id(ann.who.tenant, ann.who.user, "k1"),
        "user_response": f"You said: {text}",
        "next_agent_directive": "focused_analyst",
        "reasoner": "scripted",
        "degraded": [],
        "sources": [],
        "usage": {
            **{"input_tokens": 0, "output_tokens": 0, "model_calls": 0, "ms": 0, "cost_usd": None},
            **{"instruction_tokens": 0, "release": "", "arms": {}},
        },
        "analysis": None,
        "tool_calls": [],
    }


@pytest.mark.req("D-017")
async def test_the_turn_acts_for_the_key_and_not_for_a_user_in_the_body(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator
) -> None:
    text = f"who {uuid4()}"
    answer = await send(api, ann, text)
    assert orchestrator.callers[answer.json()["turn_id"]] == ann.who
    refused = await send(api, ann, text, userId="bob")
    assert (refused.status_code, refused.json()["field"]) == (400, "userId")


@pytest.mark.req("D-C02", "D-C08")
async def test_fields_may_be_written_in_snake_case(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator
) -> None:
    conversation = str(uuid4())
    body = {
        "conversation_id": conversation,
        "current_message_text": "hi",
        "current_message_media": {"media_id": "m1"},
        "agent": "noor",
    }
    answer = await api.http.post(MESSAGES, json=body, headers=ann.headers)
    (turn,) = orchestrator.submitted[answer.json()["turn_id"]]
    assert (turn.conversation_id, turn.text, turn.media, turn.agent) == (conversation, "hi", ("m1",), "noor")


async def test_a_refused_turn_is_a_problem_with_the_refusals_code(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator
) -> None:
    text = f"refused {uuid4()}"
    orchestrator.refuse = lambda turn: (
        Problem(code="not_found", status=404, detail="no such agent", field="agent") if turn.text == text else None
    )
    answer = await send(api, ann, text)
    body = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(body.pop("trace_id")) == 32
    assert body == {
        "type": "urn:phronesis:problem:not_found",
        "title": "Not Found",
        "status": 404,
        "code": "not_found",
        "detail": "no such agent",
        "field": "agent",
    }


@pytest.mark.parametrize(
    ("field", "named"), [("conversation_id", "conversationId"), ("media.2", "currentMessageMedia.2"), ("agent", "agent")]
)
async def test_a_refusal_names_the_field_as_the_caller_does(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator, field: str, named: str
) -> None:
    orchestrator.refuse = lambda turn: Problem(code="not_found", status=404, field=field) if turn.text == "odd" else None
    assert (await send(api, ann, "odd")).json()["field"] == named


async def test_a_busy_orchestrator_is_a_503_that_says_when_to_come_back(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator
) -> None:
    text = f"busy {uuid4()}"
    orchestrator.refuse = lambda turn: Problem(code="busy", status=503, retry_after=4) if turn.text == text else None
    answer = await send(api, ann, text)
    assert (answer.status_code, answer.json()["code"], answer.headers["retry-after"]) == (503, "busy", "4")


async def test_a_failed_turn_is_its_problem_with_its_status(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator
) -> None:
    text = f"fails {uuid4()}"
    orchestrator.ends[text] = Problem(code="model_gone", status=502, detail="the model does not answer")
    answer = await send(api, ann, text, key="k")
    turn = turn_id(ann.who.tenant, ann.who.user, "k")
    body = answer.json()
    assert (answer.status_code, body["code"], body["turn_id"]) == (502, "model_gone", turn)
    assert body["instance"] == f"{TURNS}/{turn}"


@pytest.mark.req("D-020")
async def test_the_same_key_is_answered_with_the_same_reply(api: RunningGateway, ann: Holder) -> None:
    text = f"once {uuid4()}"
    answers = [await send(api, ann, text, key="again") for _ in range(2)]
    assert answers[0].content == answers[1].content
    assert [answer.status_code for answer in answers] == [200, 200]


async def test_the_same_key_with_another_body_is_a_conflict_and_the_first_goes_on(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator
) -> None:
    text = f"first {uuid4()}"
    orchestrator.slow.add(text)
    first = asyncio.create_task(send(api, ann, text, key="k"))
    turn = await orchestrator.arrived(text=text)
    second = await send(api, ann, "something else", key="k")
    await orchestrator.end(turn)
    assert (second.status_code, second.json()["code"]) == (409, KEY_REUSED.code)
    assert (await first).json()["user_response"] == f"You said: {text}"


async def test_fifty_requests_with_one_key_are_one_turn_with_one_reply(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator
) -> None:
    text = f"storm {uuid4()}"
    answers = await asyncio.gather(*(send(api, ann, text, key="storm") for _ in range(50)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1


async def test_one_users_key_is_not_anothers(api: RunningGateway, ann: Holder) -> None:
    bob = await api.holder(tenant=ann.who.tenant)
    mine, theirs = await send(api, ann, "hi", key="k"), await send(api, bob, "ho", key="k")
    assert (theirs.status_code, mine.json()["turn_id"] != theirs.json()["turn_id"]) == (200, True)


@pytest.mark.parametrize("key", ["x" * 256, "", "schlüssel"])
async def test_an_idempotency_key_that_is_none_is_refused(api: RunningGateway, ann: Holder, key: str) -> None:
    headers = ann.headers | {"Idempotency-Key": key}
    answer = await api.http.post(
        MESSAGES, json={"currentMessageText": "x"}, headers={k.encode(): v.encode() for k, v in headers.items()}
    )
    assert (answer.status_code, answer.json()["field"]) == (400, "Idempotency-Key")


@pytest.mark.verify
async def test_a_turn_that_nobody_accepts_is_published_again_and_then_a_503(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator
) -> None:
    text = f"deaf {uuid4()}"
    orchestrator.deaf_to.add(text)
    answer = await send(api, ann, text)
    turn = await orchestrator.arrived(3, text=text)
    assert (answer.status_code, answer.json()["code"], answer.headers["retry-after"]) == (503, "unavailable", "2")
    assert len({copy.idempotency_key for copy in orchestrator.submitted[turn]}) == 1


async def test_an_acceptance_that_was_lost_is_said_again(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator
) -> None:
    text = f"lost {uuid4()}"
    orchestrator.deaf_to.add(text)
    sending = asyncio.create_task(send(api, ann, text))
    await orchestrator.arrived(text=text)
    orchestrator.deaf_to.remove(text)
    assert (await sending).json()["user_response"] == f"You said: {text}"


async def test_an_end_whose_hint_was_lost_is_found_in_the_row(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator
) -> None:
    text = f"quiet {uuid4()}"
    orchestrator.slow.add(text)
    sending = asyncio.create_task(send(api, ann, text))
    await orchestrator.end(await orchestrator.arrived(text=text), hint=False)
    assert (await sending).json()["user_response"] == f"You said: {text}"


@pytest.mark.parametrize(("whole", "asked"), [(True, 0), (False, 1)])
async def test_an_ended_turn_is_asked_for_only_where_its_last_line_does_not_carry_it(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator, whole: bool, asked: int
) -> None:
    text = f"whole {uuid4()}"
    orchestrator.slow.add(text)
    sending = asyncio.create_task(send(api, ann, text))
    turn = await orchestrator.arrived(text=text)
    await orchestrator.end(turn, whole=whole)
    answer = await sending
    assert (answer.status_code, answer.json()["user_response"]) == (200, f"You said: {text}")
    assert orchestrator.asked.count(turn) == asked


@pytest.mark.verify
async def test_a_turn_that_takes_longer_than_the_wait_is_a_202_and_goes_on(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator
) -> None:
    text = f"slow {uuid4()}"
    orchestrator.slow.add(text)
    answer = await send(api, ann, text, key="k")
    turn = turn_id(ann.who.tenant, ann.who.user, "k")
    assert (answer.status_code, answer.headers["location"]) == (202, f"{TURNS}/{turn}")
    assert (answer.json()["turn_id"], answer.json()["status"]) == (turn, "queued")
    ended = await orchestrator.end(turn)
    assert (await api.http.get(answer.headers["location"], headers=ann.headers)).json() == ended.model_dump(mode="json")


async def test_a_turn_that_waits_for_a_person_is_a_202_at_once(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator
) -> None:
    text = f"waits {uuid4()}"
    orchestrator.slow.add(text)
    sending = asyncio.create_task(send(api, ann, text))
    turn = await orchestrator.arrived(text=text)
    approval = await orchestrator.wait(turn)
    answer = await sending
    assert (answer.status_code, answer.json()["status"]) == (202, "waiting")
    assert (await api.http.get(answer.headers["location"], headers=ann.headers)).json()["approval_id"] == approval


async def test_a_client_that_leaves_does_not_stop_its_turn(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator
) -> None:
    text = f"leaves {uuid4()}"
    orchestrator.slow.add(text)
    sending = asyncio.create_task(send(api, ann, text, key="k"))
    turn = await orchestrator.arrived(text=text)
    sending.cancel()
    await orchestrator.end(turn)
    again = await send(api, ann, text, key="k")
    assert (again.status_code, again.json()["turn_id"]) == (200, turn)


async def test_a_cancelled_turn_is_a_409_for_who_waits_for_it(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator
) -> None:
    text = f"cancelled {uuid4()}"
    orchestrator.slow.add(text)
    sending = asyncio.create_task(send(api, ann, text))
    turn = await orchestrator.arrived(text=text)
    cancelled = await api.http.delete(f"{TURNS}/{turn}", headers=ann.headers)
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    answer = await sending
    assert (answer.status_code, answer.json()["code"]) == (409, "turn_ended")
    again = await api.http.delete(f"{TURNS}/{turn}", headers=ann.headers)
    assert (again.status_code, again.json()["code"], again.json()["turn"]["status"]) == (409, "turn_ended", "cancelled")


async def test_a_turn_is_handed_in_listed_and_retried(
    api: RunningGateway, ann: Holder, orchestrator: ScriptedOrchestrator
) -> None:
    text = f"handed in {uuid4()}"
    orchestrator.slow.add(text)
    answer = await api.http.post(TURNS, json={"currentMessageText": text}, headers=ann.headers)
    turn = answer.json()["turn_id"]
    assert (answer.status_code, answer.headers["location"], answer.json()["status"]) == (202, f"{TURNS}/{turn}", "queued")
    listed = (await api.http.get(TURNS, params={"status": "queued"}, headers=ann.headers)).json()
    assert [found["turn_id"] for found in listed["turns"]] == [turn]
    retried = await api.http.post(f"{TURNS}/{turn}/retry", headers=ann.headers)
    assert (retried.status_code, retried.json()["retry_of"]) == (202, turn)
    assert retried.headers["location"] == f"{TURNS}/{retried.json()['turn_id']}"


async def test_another_users_turn_and_conversation_are_as_unknown_as_none(api: RunningGateway, ann: Holder) -> None:
    bob = await api.holder(tenant=ann.who.tenant)
    reply = (await send(api, ann, "mine")).json()
    for path in (f"{TURNS}/{reply['turn_id']}", f"/api/v1/conversations/{reply['conversation_id']}"):
        assert (await api.http.get(path, headers=ann.headers)).status_code == 200
        foreign, unknown = (
            await api.http.get(path, headers=bob.headers),
            await api.http.get(path[:-12] + uuid4().hex[:12], headers=bob.headers),
        )
        assert [a.status_code for a in (foreign, unknown)] == [404, 404]
        assert foreign.json() | {"trace_id": ""} == unknown.json() | {"trace_id": ""}


async def test_the_trace_of_a_turn_begins_with_its_request_and_names_who_did_not_answer(
    api: RunningGateway, ann: Holder
) -> None:
    reply = (await send(api, ann, "traced")).json()
    trace = (await api.http.get(f"{TURNS}/{reply['turn_id']}/trace", headers=ann.headers)).json()
    root, *rest = trace["spans"]
    assert (root["name"], root["service"], root["parent_id"]) == (f"POST {MESSAGES}", "gateway", None)
    assert ("orchestrator", "take orchestrator.v1.turn") in {(span["service"], span["name"]) for span in rest}
    assert trace["missing"] == ["memory", "instructions", "graph", "media"]


async def test_a_trace_id_chosen_by_two_callers_shows_neither_the_others_spans(api: RunningGateway, ann: Holder) -> None:
    bob = await api.holder()
    parent = {"traceparent": f"00-{uuid4().hex}-{uuid4().hex[:16]}-01"}
    for holder in (ann, bob):
        body = {"currentMessageText": "same trace"}
        reply = (await api.http.post(MESSAGES, json=body, headers=holder.headers | parent)).json()
    trace = (await api.http.get(f"{TURNS}/{reply['turn_id']}/trace", headers=bob.headers)).json()
    roots = [span for span in trace["spans"] if span["name"] == f"POST {MESSAGES}"]
    takes = [span for span in trace["spans"] if span["name"] == "take orchestrator.v1.turn"]
    assert [span["attributes"]["phronesis.owner"] for span in roots] == [f"{bob.who.tenant}/{bob.who.user}"]
    assert len(takes) == 1
