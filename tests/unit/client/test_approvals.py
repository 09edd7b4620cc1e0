"""Approvals in the SDK and in the command: each call reaches its route and comes back typed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from phronesis import Client
from phronesis.cli import run
from phronesis_contracts import BadRequest, NotFound
from phronesis_contracts.approvals import (
    ActionPolicy,
    Approval,
    ApprovalAnswered,
    ApprovalScope,
    ApprovalStatus,
    Decision,
    Grant,
    PolicyChanged,
    UnknownGrant,
)
from phronesis_contracts.origins import OriginKind
from phronesis_contracts.tools import Effect
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


GRANT = Grant(
    grant_id="g1",
    approval_id="a1",
    user="ann",
    tool="http_fetch",
    effect=Effect.OUTBOUND,
    kinds=(OriginKind.DOCUMENT,),
    host="shop.example",
    created_at=AT,
    created_by="ann",
)


def test_an_approval_can_be_given_for_more_than_the_call(client: Client, gateway: FakeGateway, capsys: Printed) -> None:
    assert client.approvals.answer("a1", "approve", scope="conversation").scope is ApprovalScope.CONVERSATION
    assert run(["approvals", "approve", "a0", "--for", "rule"]) == 3  # it ran out
    assert [seen.json["scope"] for seen in gateway.seen if seen.json] == ["conversation", "rule"]
    with pytest.raises(BadRequest):
        client.approvals.answer("a1", "approve", scope="for ever")


def test_an_approval_says_because_of_what_it_is_asked(gateway: FakeGateway, capsys: Printed) -> None:
    label = {"kind": "document", "id": "m1", "name": "invoice.pdf"}
    more = {"because": [label], "effect": "outbound", "host": "shop.example", "scopes": ["once", "conversation", "rule"]}
    gateway.approvals["a1"] |= more
    assert run(["approvals", "show", "a1"]) == 0
    assert capsys.readouterr().out.splitlines()[5:8] == [
        "because of invoice.pdf (document)",
        "effect     outbound, at shop.example",
        "allow for  once, conversation, rule",
    ]


def test_grants_are_listed_and_taken_back(client: Client, gateway: FakeGateway, capsys: Printed) -> None:
    gateway.grants = {"g1": GRANT.model_dump(mode="json")}
    assert client.approvals.grants() == (GRANT,)
    assert run(["approvals", "grants"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == [
        *("g1", "ann", "http_fetch", "all", "document", "shop.example", "in", "force"),
    ]
    assert run(["approvals", "revoke", "g1"]) == 0
    assert (client.approvals.grants(), len(client.approvals.grants(revoked=True))) == ((), 1)
    with pytest.raises(UnknownGrant):
        client.approvals.revoke("g2")


def test_the_policy_is_read_set_and_put_back(client: Client) -> None:
    rule = {"origin": "web", "effect": "message", "ruling": "refuse"}
    made = client.action_policy.set(0, [rule], ["example.org"], approval_seconds=600)
    assert made.policy == ActionPolicy.model_validate(
        {"version": 1, "rules": [rule], "egress": ["example.org"], "approval_seconds": 600}
    )
    with pytest.raises(PolicyChanged):
        client.action_policy.set(0)
    assert client.action_policy.restore(1, 0).policy == ActionPolicy(version=2)
    assert [one.policy.version for one in client.action_policy.versions()] == [2, 1]
    assert client.action_policy.get(1) == made


def test_what_is_no_policy_is_not_sent(client: Client, gateway: FakeGateway) -> None:
    with pytest.raises(BadRequest):
        client.action_policy.set(0, [{"origin": "moon", "effect": "write", "ruling": "ask"}])
    with pytest.raises(BadRequest):
        client.action_policy.set(0, approval_seconds=1)
    assert gateway.seen == []


def test_the_command_changes_one_part_of_the_policy_and_leaves_the_rest(gateway: FakeGateway, capsys: Printed) -> None:
    for command in (
        ["rule", "web", "message", "refuse"],
        ["allow-host", "example.org", "*.example.net"],
        ["wait", "24"],
        ["rule", "document", "write", "allow"],
        ["remove-host", "example.org"],
        ["rule", "document", "write", "default"],
    ):
        assert run(["policy", *command]) == 0
    capsys.readouterr()
    assert run(["policy", "remove-host", "example.org"]) == 3
    assert run(["policy"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:3] == ["approvals  wait 24 hours", "hosts      *.example.net"]
    rulings = {line.split()[0]: line.split()[1:] for line in lines[3:]}
    assert (rulings["web"], rulings["user"]) == (["ask", "ask", "refuse", "ask"], ["allow"] * 4)
    assert run(["policy", "restore", "1"]) == 0
    assert run(["policy", "versions"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[-7:]] == ["7", "6", "5", "4", "3", "2", "1"]
