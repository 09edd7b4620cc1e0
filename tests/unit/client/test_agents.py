"""Agents by the SDK and by `phronesis agent`: what is sent, and what is printed where."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse

from phronesis import Client
from phronesis.cli import run
from phronesis_contracts import Message
from phronesis_contracts.agents import (
    AgentDefinition,
    AgentDeleted,
    AgentDiff,
    AgentInfo,
    AgentPublished,
    AgentRefused,
    AgentShown,
    AgentVersion,
    AgentVersions,
    TenantAgents,
)
from tests.support.fake_gateway import KEY, FakeGateway, problem

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
AGENTS = "/api/v1/agents"
FILE = """name: librarian
instructions: |
  Be brief.
  Be kind.
sources: [memory]
"""


@pytest.fixture(autouse=True)
def stack(gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names the fake gateway."""
    monkeypatch.setenv("PHRONESIS_URL", gateway.url)
    monkeypatch.setenv("PHRONESIS_KEY", KEY)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "librarian.yaml"
    path.write_text(FILE)
    return str(path)


def answers(gateway: FakeGateway, answer: Message) -> None:
    """Let the gateway answer the next request so."""
    gateway.faults.append(lambda: JSONResponse(answer.model_dump(mode="json")))


@pytest.mark.parametrize("command", ["", "list", "show", "publish", "versions", "diff", "rollback", "delete"])
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["agent", *command.split(), "--help"]) == 0
    assert f"Usage: phronesis agent {command}".rstrip() in capsys.readouterr().out


def test_a_file_is_published_as_it_stands(file: str, gateway: FakeGateway, capsys: pytest.CaptureFixture[str]) -> None:
    answers(gateway, AgentPublished(name="librarian", version=2, changed=("sources",), diff="+- memory"))
    assert run(["agent", "publish", file, "--note", "why"]) == 0
    [sent] = gateway.on(AGENTS)
    fields = {"name": "librarian", "instructions": "Be brief.\nBe kind.\n", "sources": ["memory"], "note": "why"}
    assert (sent.method, sent.json) == ("POST", fields)
    assert "idempotency-key" in sent.headers
    printed = capsys.readouterr()
    assert printed.out == "+- memory\n"
    assert "version 2 of librarian is active" in printed.err


def test_a_dry_run_says_that_nothing_was_published(file: str, gateway: FakeGateway, capsys: pytest.CaptureFixture[str]) -> None:
    answers(gateway, AgentPublished(name="librarian", version=1, changed=("name",), diff="+name", dry_run=True))
    assert run(["agent", "publish", file, "--dry-run"]) == 0
    assert gateway.on(AGENTS)[0].json["dry_run"] is True
    assert "nothing was published" in capsys.readouterr().err
    answers(gateway, AgentPublished(name="librarian", version=1))
    assert run(["agent", "publish", file]) == 0
    assert "nothing changes: version 1 of librarian says the same" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["- a list\n", "name: [", "1: 2\n"])
def test_a_file_that_describes_no_agent_is_refused_here(
    text: str, tmp_path: Path, gateway: FakeGateway, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.yaml").write_text(text)
    assert run(["agent", "publish", str(tmp_path / "a.yaml")]) == 3
    assert "a.yaml" in capsys.readouterr().err
    assert gateway.seen == []


def test_a_refusal_names_the_field(file: str, gateway: FakeGateway, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    refused = problem(400, AgentRefused.code, "there are no such tools: recal", field="tools")
    gateway.faults.extend([refused, refused])
    assert run(["agent", "publish", file]) == 3
    assert capsys.readouterr().err == "error: instructions.agent_refused: there are no such tools: recal (tools)\n"
    with pytest.raises(AgentRefused) as raised:
        client.agents.publish(AgentDefinition(name="librarian", tools=("recal",)))
    assert raised.value.field == "tools"
    assert gateway.on(AGENTS)[1].json == {"name": "librarian", "tools": ["recal"]}


def test_what_is_shown_can_be_published_again(gateway: FakeGateway, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    definition = AgentDefinition.model_validate(
        {"name": "librarian", "instructions": "Be brief.\nBe kind.\n", "sources": ["memory"]}
    )
    info = AgentInfo(name="librarian", own=True, based_on="dialogue", version=1, at=NOW, by="eve")
    answers(gateway, AgentShown(agent=info, definition=definition))
    assert run(["agent", "show", "librarian", "1"]) == 0
    assert gateway.on(f"{AGENTS}/librarian")[0].query == "version=1"
    printed = capsys.readouterr()
    assert printed.out.startswith("name: librarian\ninstructions: |\n  Be brief.\n  Be kind.\n")
    (tmp_path / "again.yaml").write_text(printed.out)
    answers(gateway, AgentPublished(name="librarian", version=1))
    assert run(["agent", "publish", str(tmp_path / "again.yaml")]) == 0
    assert AgentDefinition.model_validate(gateway.on(AGENTS)[0].json) == definition


def test_lists_are_tables(gateway: FakeGateway, capsys: pytest.CaptureFixture[str]) -> None:
    infos = (AgentInfo(name="dialogue", description="About."), AgentInfo(name="desk", own=True, based_on="nova", version=3))
    answers(gateway, TenantAgents(agents=infos))
    assert run(["agent", "list"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "dialogue  packaged                  About.",
        "desk      version 3, based on nova",
    ]
    answers(gateway, TenantAgents(agents=()))
    assert run(["agent", "list", "--own"]) == 0
    assert gateway.on(AGENTS)[1].query == "own=true"
    capsys.readouterr()
    listed = (
        AgentVersion(version=2, active=True, by="eve", at=NOW, note="n"),
        AgentVersion(version=1, active=False, by="eve", at=NOW),
    )
    answers(gateway, AgentVersions(name="desk", versions=listed))
    assert run(["agent", "versions", "desk"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "2        active  eve  2026-01-02 03:04  n"


def test_going_back_and_deleting_ask_first(
    gateway: FakeGateway, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert run(["agent", "rollback", "desk"]) != 0
    assert run(["agent", "delete", "desk"]) != 0
    assert gateway.seen == []
    answers(gateway, AgentPublished(name="desk", version=1, changed=("model",)))
    assert run(["agent", "rollback", "desk", "1", "--yes"]) == 0
    answers(gateway, AgentPublished(name="desk", version=1, changed=("model",), dry_run=True))
    assert run(["agent", "rollback", "desk", "--dry-run"]) == 0
    sent: list[Any] = [one.json for one in gateway.on(f"{AGENTS}/desk/rollback")]
    assert sent == [{"version": 1, "dry_run": False}, {"dry_run": True}]
    answers(gateway, AgentDeleted(name="desk", deleted=True))
    assert run(["agent", "delete", "desk", "--yes"]) == 0
    assert "desk is deleted" in capsys.readouterr().err


def test_two_versions_are_compared(gateway: FakeGateway, capsys: pytest.CaptureFixture[str]) -> None:
    answers(gateway, AgentDiff(name="desk", before=1, after=2, changed=("model",), diff="-model: a\n+model: b"))
    assert run(["agent", "diff", "desk", "1"]) == 0
    assert capsys.readouterr().out == "-model: a\n+model: b\n"
    assert gateway.on(f"{AGENTS}/desk/diff")[0].query == "before=1"
