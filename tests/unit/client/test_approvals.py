"""Approvals in the SDK and in the command: each call reaches its route and comes back typed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from phronesis import Client
from phronesis.cli import run
from phronesis_contracts import BadRequest, NotFound
from phronesis_contracts.approvals import Approval, ApprovalAnswered, ApprovalStatus, Decision
from tests.support.fake_gateway import KEY, FakeGateway

Printed = pytest.CaptureFixture[str]
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
APPROVAL = Approval(
    approval_id="a1",
    turn_id="t1",
    conversation_id="c1",
    user="ann",
    agent="execute",
    tool="node.delete.v1",
    arguments={"id": "go-1"},
    arguments_sha256="0" * 64,
    risk="high",
    irreversible=True,
    reason="HIGH — node.delete.v1 is irreversible",
    status=ApprovalStatus.PENDING,
    created_at=AT,
    expires_at=AT,
)


@pytest.fixture(autouse=True)
def waiting(gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names a gateway where one call waits, and another one waited."""
    monkeypatch.setenv("PHRONESIS_URL", gateway.url)
    monkeypatch.setenv("PHRONESIS_KEY", KEY)
    done = APPROVAL.model_copy(update={"approval_id": "a0", "status": ApprovalStatus.EXPIRED})
    gateway.approvals = {one.approval_id: one.model_dump(mode="json") for one in (APPROVAL, done)}


def test_approvals_are_listed_by_status(client: Client) -> None:
    assert client.approvals.list(ApprovalStatus.PENDING) == (APPROVAL,)
    assert [one.approval_id for one in client.approvals.list(limit=5)] == ["a1", "a0"]


def test_one_is_read(client: Client) -> None:
    assert client.approvals.get("a1") == APPROVAL
    with pytest.raises(NotFound):
        client.approvals.get("a2")


@pytest.mark.parametrize("decision", [Decision.REFUSE, "refuse"])
def test_an_answer_says_what_was_decided_with_a_key_so_that_it_can_be_repeated(
    client: Client, gateway: FakeGateway, decision: Any
) -> None:
    assert client.approvals.answer("a1", decision, "We need it.").status is ApprovalStatus.REFUSED
    (seen,) = gateway.on("/api/v1/approvals/a1")
    assert (seen.json, "idempotency-key" in seen.headers) == (
        {"decision": "refuse", "note": "We need it.", "scope": "once"},
        True,
    )
    with pytest.raises(ApprovalAnswered):
        client.approvals.answer("a1", Decision.APPROVE)


@pytest.mark.parametrize(("decision", "note", "field"), [("maybe", "", "decision"), ("approve", "x" * 1_001, "note")])
def test_what_is_no_answer_is_not_sent(client: Client, gateway: FakeGateway, decision: str, note: str, field: str) -> None:
    with pytest.raises(BadRequest) as refused:
        client.approvals.answer("a1", decision, note)
    assert (refused.value.field, gateway.seen) == (field, [])


def test_the_command_lists_what_waits(capsys: Printed) -> None:
    assert run(["approvals"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "APPROVAL  STATUS   UNTIL (UTC)       USER  WHAT",
        "a1        pending  2026-01-02 03:04  ann   HIGH — node.delete.v1 is irreversible",
    ]
    assert run(["approvals", "list", "--all", "--json"]) == 0
    assert [one["approval_id"] for one in json.loads(capsys.readouterr().out)["approvals"]] == ["a1", "a0"]


def test_the_command_shows_the_whole_call(capsys: Printed) -> None:
    assert run(["approvals", "show", "a1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "approval   a1",
        "status     pending",
        "turn       t1",
        "agent      execute, for ann",
        "why        HIGH — node.delete.v1 is irreversible",
        "effect     write",
        "until      2026-01-02 03:04:05 UTC",
        "call       node.delete.v1 {",
        '  "id": "go-1"',
        "}",
    ]


def test_the_command_answers_once(capsys: Printed) -> None:
    assert run(["approvals", "approve", "a1", "--note", "Go on."]) == 0
    assert "answered   by ann: Go on." in capsys.readouterr().out.splitlines()
    assert run(["approvals", "refuse", "a1"]) == 3
    assert capsys.readouterr().err == "error: approval_answered: the approval is granted\n"
