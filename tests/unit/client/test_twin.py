from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from phronesis.cli import run
from phronesis_contracts.twin import Level, Upsert
from phronesis_graph.twin.ontology import LevelRule
from phronesis_graph.twin.ontology_file import load
from phronesis_graph.twin.upserts import plan_batch
from phronesis_samples.twin.generator import generate
from phronesis_samples.twin.strands import CHAINS, CODES, LINKS
from tests.support.fake_gateway import KEY, FakeGateway


def test_the_same_seed_makes_the_same_twin_and_another_another() -> None:
    assert generate(600, 5) == generate(600, 5)
    assert generate(600, 5) != generate(600, 6)


@pytest.mark.parametrize("count", [400, 777, 3_000])
def test_a_twin_has_as_many_nodes_as_were_asked_for(count: int) -> None:
    assert len({node.key for node in generate(count, 1).nodes}) == count


@pytest.mark.parametrize("count", [0, 399])
def test_too_few_nodes_are_refused(count: int) -> None:
    with pytest.raises(ValueError, match="400 nodes"):
        generate(count, 1)


def test_what_is_made_is_the_ontologys() -> None:
    """The generator has tables of its own, which nothing ties to the ontology but this."""
    ontology = load()
    pairs = {
        (source, name, target)
        for name, kind in ontology.relationships.items()
        if kind.rule is LevelRule.SAME
        for source in kind.sources
        for target in kind.targets
    }
    assert {(link.source, link.name, link.target) for link in LINKS} == pairs
    assert set(CODES) == set(ontology.nodes)
    steps = {
        name: (hops[0].sources, *(part for hop in hops for part in (hop.names, hop.targets))) for name, hops in CHAINS.items()
    }
    assert steps == {name: chain.steps for name, chain in ontology.chains.items()}


def test_all_types_relationships_levels_and_years_are_there_and_fit_the_ontology() -> None:
    made, ontology = generate(2_000, 3), load()
    assert {node.type for node in made.nodes} == set(ontology.nodes)
    assert {node.level for node in made.nodes} == set(Level)
    assert {node.year for node in made.nodes} == {2024, 2025}
    assert {one.type for one in made.relationships} == {link.name for link in LINKS} | {"PARENT_OF"}
    plans = [plan_batch(ontology, "acme", batch) for batch in made.batches()]
    assert sum(len(each.nodes) for each in plans) == 2_000
    assert sum(len(each.relationships) for each in plans) == len(made.relationships)


def test_each_of_the_four_gaps_is_planted_and_most_questions_have_none() -> None:
    for seed in range(5):
        types = Counter(one.type for one in generate(400, seed).questions)
        assert set(types) == {None, "TemporalGap", "LevelMismatch", "ChainBreak", "DirectRelationshipMissing"}
        assert types[None] > types.total() / 2


def test_years_can_be_more_than_two() -> None:
    made = generate(900, 1, years=(2021, 2022, 2023))
    assert len(made.nodes) == 900
    assert {node.year for node in made.nodes} == {2021, 2022, 2023}


def test_the_command_writes_the_twin_and_its_truth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["twin", "generate", "--nodes", "400", "--seed", "5", "--out", str(tmp_path / "made")]) == 0
    made = generate(400, 5)
    batches = (tmp_path / "made" / "twin.jsonl").read_text().splitlines()
    assert [Upsert.model_validate_json(line) for line in batches] == list(made.batches())
    truth = [json.loads(line) for line in (tmp_path / "made" / "truth.jsonl").read_text().splitlines()]
    assert [(one["question"], one["year"], one["level"], one["type"]) for one in truth] == [
        (one.question, one.year, one.level, one.type) for one in made.questions
    ]
    assert "400 nodes" in capsys.readouterr().err


def test_the_command_loads_the_twin(
    gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PHRONESIS_URL", gateway.url)
    monkeypatch.setenv("PHRONESIS_KEY", KEY)
    assert run(["twin", "generate", "--nodes", "400", "--load"]) == 0
    posted = gateway.on("/api/v1/tools/graph_upsert")
    assert sum(len(seen.json["nodes"]) for seen in posted) == 400
    assert "nodes created: 400" in capsys.readouterr().err


@pytest.mark.parametrize("options", [[], ["--nodes", "10", "--out", "x"]])
def test_the_command_says_what_it_cannot_do(options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["twin", "generate", *options]) == 2
    assert list(tmp_path.iterdir()) == []
