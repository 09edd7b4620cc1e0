"""`phronesis constitution`: what it sends, what it prints where, and the code it leaves with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phronesis.cli import run
from phronesis_contracts.constitution.search import SemanticFound
from phronesis_samples.institute import sample
from tests.support.fake_constitution import FakeConstitution
from tests.support.fake_gateway import KEY, FakeGateway, problem

COMMANDS = [
    *([], ["load"], ["show"], ["search"], ["ladder"], ["session"], ["inventory"], ["repair"], ["backup"]),
    *(["backup", name] for name in ("create", "list", "verify", "restore")),
]


@pytest.fixture
def graph(gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> FakeConstitution:
    """A graph behind the gateway that the environment names."""
    monkeypatch.setenv("PHRONESIS_URL", gateway.url)
    monkeypatch.setenv("PHRONESIS_KEY", KEY)
    return FakeConstitution(gateway)


@pytest.fixture
def loaded(graph: FakeConstitution, capsys: pytest.CaptureFixture[str]) -> FakeConstitution:
    """The sample behind the gateway."""
    assert run(["constitution", "load", "--sample"]) == 0
    capsys.readouterr()
    return graph


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_explains_itself(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["constitution", *command, "--help"]) == 0
    assert f"Usage: phronesis {' '.join(['constitution', *command])}" in capsys.readouterr().out


def test_the_sample_is_loaded_and_embedded_and_loading_it_again_changes_nothing(
    graph: FakeConstitution, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["constitution", "load", "--sample"]) == 0
    printed = capsys.readouterr()
    assert "created: 45, updated: 0, unchanged: 0, relationships: 50" in printed.err
    assert "embedded: 45" in printed.err
    assert printed.out == ""
    assert set(graph.nodes) == set(graph.embedded) == {node.id for node in sample().nodes}
    assert run(["constitution", "load", "--sample", "--no-embed"]) == 0
    assert "created: 0, updated: 0, unchanged: 45, relationships: 0" in capsys.readouterr().err
    assert len(graph.embedded) == 45


def test_a_made_up_graph_is_loaded_in_parts_each_with_a_key_of_its_own(graph: FakeConstitution, gateway: FakeGateway) -> None:
    assert run(["constitution", "load", "--size", "600", "--seed", "3", "--no-embed"]) == 0
    posted = gateway.on("/api/v1/tools/constitution.load.v1")
    assert sum(len(seen.json.get("nodes", ())) for seen in posted) == 600
    assert len({seen.headers["idempotency-key"] for seen in posted}) == len(posted) > 3


def test_what_is_there_is_removed_first_where_that_is_meant(
    loaded: FakeConstitution, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded.nodes["old"] = loaded.nodes["goal-open-sediment"] | {"id": "old", "status": "archived"}
    file = tmp_path / "one.json"
    file.write_text(json.dumps({"nodes": [{"id": "only", "type": "goal", "title": "The only one"}]}))
    assert run(["constitution", "load", str(file), "--clear", "--yes"]) == 0
    assert set(loaded.nodes) == {"only"}
    assert "removed: 46" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options", [[], ["--sample", "--size", "45"], ["--size", "44"], ["nowhere.yaml"]], ids=lambda options: " ".join(options)
)
def test_what_cannot_be_loaded_is_wrong_usage(graph: FakeConstitution, options: list[str]) -> None:
    assert run(["constitution", "load", *options]) == 2
    assert graph.nodes == {}


def test_a_file_that_is_no_constitution_says_where(
    graph: FakeConstitution, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text("nodes: [{id: a, type: goal}]")
    assert run(["constitution", "load", str(file)]) == 2
    assert "node 1 (a), title: Field required" in " ".join(capsys.readouterr().err.split())


def test_a_part_that_the_registry_refuses_ends_the_load_with_its_reason(
    graph: FakeConstitution, gateway: FakeGateway, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.faults.append(problem(400, "constitution.refused", "there is no type 'gaol'; did you mean goal?"))
    assert run(["constitution", "load", "--sample"]) == 3
    assert "error: constitution.refused: there is no type 'gaol'; did you mean goal?" in capsys.readouterr().err


def test_a_node_is_shown_field_by_field_with_its_relationships(
    loaded: FakeConstitution, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["constitution", "show", "decision-rent-boat"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:6]] == ["id", "type", "layer", "title", "status"]
    assert "roi            total: 1.6" in " ".join(lines) or any(
        line.startswith("roi") and "total: 1.6" in line for line in lines
    )
    assert lines[-1].split() == ["decision-rent-boat", "SUPPORTED_BY", "insight-borrowed-tools"]


def test_a_search_sends_its_filters_and_prints_the_cosines(
    loaded: FakeConstitution, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["constitution", "search", "openness", "--layer", "foundation", "--type", "value", "--limit", "2", "--min", "0.1"]
    assert run(command) == 0
    assert loaded.asked == [
        {"query": "openness", "topK": 2, "layers": ["foundation"], "types": ["value"], "minSimilarity": 0.1}
    ]
    printed = capsys.readouterr()
    assert printed.out.splitlines()[1].split()[:3] == ["0.500", "value", "value-open-record"]
    assert printed.err.strip() == "2 results, 99 tokens"


def test_a_search_that_finds_nothing_says_what_to_do(graph: FakeConstitution, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["constitution", "search", "openness"]) == 0
    assert "nothing reaches the least cosine; ask for less with --min" in capsys.readouterr().err


def test_a_search_around_an_anchor_prints_the_way(loaded: FakeConstitution, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["constitution", "search", "tools", "--anchor", "strategy-borrow-first"]) == 0
    assert loaded.asked[0]["anchorNodeId"] == "strategy-borrow-first"
    assert "strategy-borrow-first -SERVES-> goal-more-field-days" in capsys.readouterr().out


def test_json_stands_alone_on_stdout(loaded: FakeConstitution, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["constitution", "search", "openness", "--json"]) == 0
    assert len(SemanticFound.model_validate_json(capsys.readouterr().out).results) == 10


def test_a_ladder_is_printed_from_the_goal_up(loaded: FakeConstitution, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["constitution", "ladder", "goal-open-sediment"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        "Publish twelve years of sediment readings (goal goal-open-sediment)",
        "  Be the record that engineers trust (goal goal-trusted-record)",
        "    A shore that looks after itself (vision vision-living-shore)",
    ]
    assert printed.err.strip() == "depth 2"


def test_a_session_tells_its_nodes_its_workload_and_its_tokens(
    loaded: FakeConstitution, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["constitution", "session"]) == 0
    printed = capsys.readouterr()
    assert "Workload: yellow, 31 of 40 hours\n  Take on nothing new this week.\n" in printed.out
    assert "3 tokens (foundation 1, vision 1, workload 1), 12 ms\ncalendar: not set" in printed.err


def test_the_inventory_counts(loaded: FakeConstitution, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["constitution", "inventory"]) == 0
    printed = capsys.readouterr()
    assert "vision  goal  45     P1" in printed.out
    assert "odei_node_status  RANGE  ONLINE  100 %" in printed.out
    assert printed.err.strip() == "45 nodes, 50 relationships"


def test_a_backup_is_made_verified_and_restored_by_the_word_that_verifying_gave(
    loaded: FakeConstitution, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["constitution", "backup", "create"]) == 0
    assert run(["constitution", "backup", "verify", "b1"]) == 0
    assert "phronesis constitution backup restore b1 --confirm heron" in capsys.readouterr().err
    assert run(["constitution", "backup", "restore", "b1", "--confirm", "heron", "--yes"]) == 0
    assert "45 nodes, 48 relationships and 36 vectors restored, 2 nodes removed" in capsys.readouterr().out
    assert loaded.asked == [
        {"operation": "backup"},
        {"operation": "verify", "backupId": "b1"},
        {"operation": "restore", "backupId": "b1", "confirmation": "heron"},
    ]


@pytest.mark.req("O-401")
def test_a_repair_prints_each_step_as_it_ends(loaded: FakeConstitution, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["constitution", "repair", "openness"]) == 0
    steps = [line.split(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert steps == ["back up", "regenerate", "verify", "check vectors", "search"]


@pytest.mark.req("O-401")
def test_a_repair_that_stops_at_a_step_leaves_with_1(loaded: FakeConstitution, capsys: pytest.CaptureFixture[str]) -> None:
    loaded.findings.append("2 nodes have no vector")
    assert run(["constitution", "repair", "openness"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "verify: 2 nodes have no vector"
