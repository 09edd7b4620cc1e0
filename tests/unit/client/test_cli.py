"""The command: what it prints where, and the code it leaves with."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from phronesis import Client, sse
from phronesis.cli import run
from phronesis_contracts.ontology import EntityName, OntologyChanges, OntologyFile, OntologyPublished, Vocabulary
from phronesis_contracts.orchestrator import Reply
from phronesis_contracts.twin import Level, Upsert, UpsertNode
from phronesis_graph.twin.ontology_file import parse
from phronesis_graph.twin.vocabulary import to_view
from tests.support.fake_gateway import KEY, FakeGateway, problem

COMMANDS = [
    *(["ask"], ["chat"], ["trace"], ["remember"], ["recall"], ["version"], ["up"], ["down"], ["status"], ["doctor"]),
    *(
        ["load"],
        ["load", "portfolio"],
        ["load", "files"],
        ["twin"],
        ["twin", "generate"],
        ["turns"],
        ["keys"],
        ["conversations"],
        ["profile"],
        ["forget"],
        ["memory"],
        ["memory", "query"],
    ),
    *(["memory", name] for name in ("add", "search", "list", "get", "update", "history", "delete", "context")),
    *(["conversations", name] for name in ("list", "show", "delete")),
    *(["profile", name] for name in ("show", "set", "delete")),
    *(["turns", name] for name in ("list", "show", "cancel", "retry")),
    *(["keys", name] for name in ("create", "list", "revoke")),
]


@pytest.fixture(autouse=True)
def stack(gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names the fake gateway."""
    monkeypatch.setenv("PHRONESIS_URL", gateway.url)
    monkeypatch.setenv("PHRONESIS_KEY", KEY)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_explains_itself(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command, "--help"]) == 0
    assert f"Usage: phronesis {' '.join(command)}" in capsys.readouterr().out


def test_ask_prints_the_reply_and_its_sources(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", "what is it?"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "answer 1 to: what is it?\n\nSources\n  1. A source (Concept, score 0.75)\n"
    assert "… routed" in printed.err
    assert "degraded: graph" in printed.err


def test_json_stands_alone_on_stdout(capsys: pytest.CaptureFixture[str], gateway: FakeGateway) -> None:
    assert run(["ask", "--json", "what is it?"]) == 0
    [turn] = gateway.turns.values()
    assert Reply.model_validate_json(capsys.readouterr().out) == Reply.model_validate(turn["reply"])


def test_ask_sends_files_and_goes_on_with_a_conversation(
    capsys: pytest.CaptureFixture[str], gateway: FakeGateway, tmp_path: Path
) -> None:
    file = tmp_path / "note.txt"
    file.write_text("a note")
    run(["ask", "one", "--json"])
    conversation = json.loads(capsys.readouterr().out)["conversation_id"]
    assert run(["ask", "two", "--conversation", conversation, "--media", str(file), "--agent", "noor"]) == 0
    [upload] = gateway.uploads
    assert gateway.on("/api/v1/turns")[1].json == {
        "currentMessageText": "two",
        "currentMessageMedia": [{"mediaId": upload}],
        "conversationId": conversation,
        "agent": "noor",
    }


def test_the_reply_is_found_when_the_events_are_lost(
    capsys: pytest.CaptureFixture[str], gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "pause_before", lambda attempt: 0.01)
    gateway.cuts.extend([(1, "accepted")] * 6)
    assert run(["ask", "hi"]) == 0
    assert capsys.readouterr().out.startswith("answer 1 to: hi\n")


def test_what_a_document_says_does_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", "clear \x1b[2J the screen"]) == 0
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("status", "code", "left_with"),
    [(403, "forbidden", 3), (404, "not_found", 3), (400, "bad_request", 3), (500, "internal", 1), (504, "timed_out", 1)],
)
def test_a_refusal_and_a_failure_leave_with_different_codes(
    capsys: pytest.CaptureFixture[str], gateway: FakeGateway, status: int, code: str, left_with: int
) -> None:
    gateway.faults.append(problem(status, code, "because\nof this", field="agent"))
    assert run(["ask", "hi"]) == left_with
    assert capsys.readouterr() == ("", f"error: {code}: because of this (agent)\n")


def test_a_turn_that_failed_leaves_with_its_problem(capsys: pytest.CaptureFixture[str], gateway: FakeGateway) -> None:
    gateway.problem = {"code": "unavailable", "status": 503, "detail": "the model is away"}
    assert run(["ask", "hi"]) == 1
    [turn] = gateway.turns
    assert f"error: unavailable: turn {turn} failed: the model is away\n" in capsys.readouterr().err


def test_no_stack_is_a_failure_that_says_how_to_start_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("PHRONESIS_URL")
    assert run(["ask", "hi", "--data", str(tmp_path)]) == 1
    expected = f"no local stack in {tmp_path}; start one with `phronesis up`, or name another by --url and --key"
    assert capsys.readouterr() == ("", f"error: unavailable: {expected}\n")


@pytest.mark.parametrize(
    "arguments",
    [["ask"], ["ask", "hi", "--media", "no/such/file"], ["recall", "x", "--limit", "0"], ["nothing"], ["ask", "hi", "--no"]],
)
def test_wrong_usage_is_one_line_and_leaves_with_2(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert run(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: usage: ")
    assert printed.err.count("\n") == 1


def test_chat_keeps_the_conversation_of_a_pipe(
    capsys: pytest.CaptureFixture[str], gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "note.txt"
    file.write_text("a note")
    lines = f"one\n\n/file {file}\ntwo\n/new\nthree\n/quit\nfour\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    assert run(["chat"]) == 0
    answers = [line for line in capsys.readouterr().out.splitlines() if line.startswith("answer")]
    assert answers == ["answer 1 to: one", "answer 2 to: two", "answer 1 to: three"]
    assert ["currentMessageMedia" in seen.json for seen in gateway.on("/api/v1/turns")] == [False, True, False]


def test_a_piped_chat_goes_on_after_a_failure_and_leaves_with_its_code(
    capsys: pytest.CaptureFixture[str], gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway.faults.append(problem(400, "bad_request", "no"))
    monkeypatch.setattr("sys.stdin", io.StringIO("/file no/such/file\none\ntwo"))
    assert run(["chat"]) == 3
    printed = capsys.readouterr()
    assert printed.out.startswith("answer 1 to: two\n")
    assert printed.err.startswith("error: bad_request: no/such/file is no file\nerror: bad_request: no\n")


def test_trace_is_a_tree_in_order_of_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", "t1"]) == 0
    printed = capsys.readouterr()
    assert printed.out == (
        f"turn t1  trace {'a' * 32}\n"
        "└── +     0.0 ms     11.0 ms  gateway      POST messages\n"
        "    └── +     1.0 ms      9.0 ms  orchestrator job turn\n"
        "        └── +     3.0 ms      5.0 ms  memory       rpc retrieve\n"
    )
    assert printed.err == "no answer from: media\n"


def test_turns_alone_lists_them(capsys: pytest.CaptureFixture[str], client: Client) -> None:
    turn = client.turns.submit("hi")
    for arguments in (["turns"], ["turns", "list"]):
        assert run(arguments) == 0
        [header, row] = capsys.readouterr().out.splitlines()
        assert header.split() == ["TURN", "STATUS", "CREATED", "(UTC)", "AGENT", "CONVERSATION"]
        assert row.split()[:2] == [turn.turn_id, "completed"]


def test_a_turn_is_shown_cancelled_and_retried(
    capsys: pytest.CaptureFixture[str], client: Client, gateway: FakeGateway
) -> None:
    gateway.silent = True
    turn = client.turns.submit("slow").turn_id
    assert [run(["turns", what, turn]) for what in ("cancel", "show", "retry")] == [0, 0, 0]
    shown = capsys.readouterr().out
    assert "status        cancelled" in shown
    assert f"retry of      {turn}" in shown
    assert run(["turns", "cancel", turn]) == 3
    assert run(["turns", "show", "unknown"]) == 3


def test_a_new_key_stands_alone_on_stdout(capsys: pytest.CaptureFixture[str], gateway: FakeGateway) -> None:
    assert run(["keys", "create", "--tenant", "acme", "--user", "ann", "--agent", "noor", "--ministry", "energy"]) == 0
    [key] = gateway.keys
    assert capsys.readouterr().out == f"phr_{key}\n"
    assert run(["keys", "revoke", key]) == 0
    assert run(["keys", "list"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == [
        *(key, "acme", "ann", "member", "(noor)"),
        *("http", "revoked"),
    ]
    assert run(["keys", "create", "--tenant", "acme", "--user", "ann", "--role", "king"]) == 3
    assert run(["keys", "create", "--tenant", "acme", "--user", "ann", "--agent", "king"]) == 3


def test_a_key_ends_and_calls_some_tools_alone_where_that_is_asked(gateway: FakeGateway) -> None:
    wanted = ["keys", "create", "--tenant", "acme", "--user", "ann"]
    assert run([*wanted, "--days", "30", "--tool", "recall", "--tool", "remember"]) == 0
    [key] = gateway.keys.values()
    assert (key["days"], key["tools"]) == (30, ["recall", "remember"])
    assert run([*wanted, "--for", "bus", "--tool", "recall"]) == 3
    assert run(wanted) == 0
    assert {"days", "tools"} & list(gateway.keys.values())[1].keys() == set()


def test_a_role_of_the_version_before_makes_the_same_key_and_is_said_to_be_deprecated(
    capsys: pytest.CaptureFixture[str], gateway: FakeGateway
) -> None:
    assert run(["keys", "create", "--tenant", "acme", "--user", "ann", "--role", "maestro"]) == 0
    [key] = gateway.keys.values()
    assert (key["role"], key["agents"]) == ("member", ["maestro"])
    assert "--role maestro is deprecated; use --role member --agent maestro" in capsys.readouterr().err


def test_a_key_of_a_reader_may_act_as_several_agents(gateway: FakeGateway) -> None:
    arguments = ["keys", "create", "--tenant", "acme", "--user", "ann", "--role", "reader"]
    assert run([*arguments, "--agent", "discuss", "--agent", "mind"]) == 0
    [key] = gateway.keys.values()
    assert (key["role"], key["agents"]) == ("reader", ["discuss", "mind"])


def test_what_is_remembered_is_recalled(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["remember", "The mug is blue.", "--title", "Mug", "--kind", "note", "--external-id", "mug"]) == 0
    assert capsys.readouterr().out.split()[1] == "created"
    assert run(["recall", "mug"]) == 0
    assert capsys.readouterr().out == "1. Mug (note, score 0.50)\n   The mug is blue.\n"
    assert run(["recall", "mug", "--json"]) == 0
    assert [item["external_id"] for item in json.loads(capsys.readouterr().out)["items"]] == ["mug"]


def test_a_memory_is_looked_through_as_an_agent_does_it(gateway: FakeGateway, capsys: pytest.CaptureFixture[str]) -> None:
    hit = {"id": "e1", "text": "timed  out", "when": "2026-05-04T12:00:00Z", "score": 1.0, "source": "web_search"}
    found = {"operation": "failures", "query": "search", "results": [hit], "count": 1}
    gateway.tools["memory_query"] = lambda body: found if body["limit"] == 5 else found | {"results": [], "count": 0}
    assert run(["memory", "query", "failures", "search"]) == 0
    assert capsys.readouterr() == ("1. web_search, 2026-05-04 12:00 (score 1.00)\n   timed out\n", "")
    assert run(["memory", "query", "failures", "search", "--limit", "3"]) == 0
    assert capsys.readouterr() == ("", "nothing found\n")
    gateway.tools["memory_query"] = lambda body: found | {"results": [], "error": "memory unavailable: timed_out"}
    assert run(["memory", "query", "failures", "search"]) == 0
    assert capsys.readouterr() == ("", "[memory unavailable: timed_out]\n")
    assert run(["memory", "query", "feelings", "search"]) == 3


def test_what_is_kept_in_a_scope_is_recalled_from_it_and_forgotten(capsys: pytest.CaptureFixture[str]) -> None:
    keep = ["remember", "The mug is  blue.", "--scope", "global"]
    assert run(keep) == 3
    assert run([*keep, "--external-id", "mug"]) == 0
    assert capsys.readouterr().out == "mug  created\n"
    assert run(["recall", "mug", "--scope", "global"]) == 0
    assert capsys.readouterr() == ("1. mug (score 0.50, confidence 1.00)\n   The mug is blue.\n", "")
    assert run(["recall", "mug", "--scope", "departmental"]) == 0
    assert capsys.readouterr().err == "[from the scope global]\n"
    assert run(["recall", "mug", "--scope", "global", "--json"]) == 0
    assert [one["key"] for one in json.loads(capsys.readouterr().out)["snippets"]] == ["mug"]
    assert run(["recall", "mug"]) == 0
    assert capsys.readouterr().err == "nothing found\n"
    assert run(["forget", "mug", "cup", "--scope", "global", "--yes"]) == 0
    assert capsys.readouterr() == ("mug\n", "1 forgotten\n")
    assert run(["recall", "mug", "--scope", "global"]) == 0
    assert capsys.readouterr() == ("", "nothing found\n")


@pytest.mark.parametrize(
    "arguments",
    [["remember", "x", "--external-id", "k", "--scope", "admin"], ["recall", "x", "--limit", "51", "--scope", "global"]],
)
def test_what_no_scope_takes_is_a_refusal(arguments: list[str]) -> None:
    assert run(arguments) == 3


@pytest.mark.parametrize("arguments", [["remember", ""], ["remember", "x", "--kind", "node"], ["recall", ""]])
def test_input_that_breaks_a_rule_is_a_refusal(arguments: list[str]) -> None:
    assert run(arguments) == 3


def test_load_posts_every_batch_and_waits_for_its_texts(
    capsys: pytest.CaptureFixture[str], gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = [
        UpsertNode(type="EntityProject", id=f"p{n}", year=2020, name=f"P{n}", level=Level.L3, properties={"aims": "a" * 50})
        for n in (1, 2)
    ]
    monkeypatch.setattr("phronesis_samples.portfolio.batches", lambda: [Upsert(nodes=(node,)) for node in nodes])
    assert run(["load", "portfolio"]) == 0
    posted = gateway.on("/api/v1/tools/graph_upsert")
    assert [seen.json["nodes"][0]["id"] for seen in posted] == ["p1", "p2"]
    assert len({seen.headers["idempotency-key"] for seen in posted}) == 2
    assert len(gateway.on("/api/v1/tools/recall")) == 2
    assert "nodes created: 2" in capsys.readouterr().err
    assert run(["load", "portfolio", "--no-wait"]) == 0
    assert len(gateway.on("/api/v1/tools/recall")) == 2


class TwinOfAStranger:
    """The tools that `phronesis load FILE...` calls, over one ontology in memory."""

    def __init__(self, gateway: FakeGateway) -> None:
        self.published: list[str] = []
        gateway.tools |= {"ontology.publish": self._publish, "ontology.get": self._get, "twin_vocabulary": self._vocabulary}

    def _publish(self, body: dict[str, Any]) -> dict[str, Any]:
        if not body["dry_run"]:
            self.published.append(body["text"])
        view = to_view(parse(body["text"]), "1")
        done = OntologyPublished(version=1, changes=OntologyChanges(added=("Vessel",)), ontology=view, dry_run=body["dry_run"])
        return done.model_dump(mode="json")

    def _get(self, body: dict[str, Any]) -> dict[str, Any]:
        view = to_view(parse(ONTOLOGY), "1")
        return OntologyFile(version=1, active=True, text=ONTOLOGY, ontology=view).model_dump(mode="json")

    def _vocabulary(self, body: dict[str, Any]) -> dict[str, Any]:
        north = EntityName(type="Yard", id="n", name="North", level=Level.L3, years=(2025,))
        view = to_view(parse(ONTOLOGY), "1")
        return Vocabulary(version="1", ontology=view, names=(north,)).model_dump(mode="json")


ONTOLOGY = """name: shipyard
nodes:
  Vessel: {properties: {tonnage: {type: number}}}
  Yard:
relationships: {BUILT_AT: {from: [Vessel], to: [Yard]}}
"""


def test_a_strangers_files_are_checked_published_and_posted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], gateway: FakeGateway
) -> None:
    twin = TwinOfAStranger(gateway)
    (tmp_path / "shipyard.yaml").write_text(ONTOLOGY)
    (tmp_path / "vessel.csv").write_text("name,tonnage,BUILT_AT\nAnn,5,North\n")
    files = [str(tmp_path / name) for name in ("shipyard.yaml", "vessel.csv")]
    assert run(["load", "--dry-run", *files, "--year", "2025"]) == 0
    assert (twin.published, gateway.on("/api/v1/tools/graph_upsert")) == ([], [])
    assert "nothing was written" in capsys.readouterr().err
    assert run(["load", *files, "--year", "2025"]) == 0
    assert twin.published == [ONTOLOGY]
    nodes, joins = (seen.json for seen in gateway.on("/api/v1/tools/graph_upsert"))
    assert [node["id"] for node in nodes["nodes"]] == ["ann"]
    assert [each["target"] for each in joins["relationships"]] == [{"type": "Yard", "id": "n", "year": 2025}]


def test_a_strangers_faults_are_told_by_line_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], gateway: FakeGateway
) -> None:
    twin = TwinOfAStranger(gateway)
    (tmp_path / "shipyard.yaml").write_text(ONTOLOGY)
    (tmp_path / "ships.csv").write_text("name,tonnage\nAnn,heavy\nBob,5\n,7\n")
    files = [str(tmp_path / name) for name in ("shipyard.yaml", "ships.csv")]
    assert run(["load", *files, "--type", "Vessel"]) == 3
    said = capsys.readouterr().err.splitlines()
    assert "ships.csv:2: column 'tonnage': 'heavy' is no number; write 1234.5" in said
    assert "ships.csv:4: the row has no name" in said
    assert (twin.published, gateway.on("/api/v1/tools/graph_upsert")) == ([], [])
    assert run(["load", str(tmp_path / "ships.csv")]) == 3
    assert "ships.csv:1: the ontology has no node type 'ships'" in capsys.readouterr().err
