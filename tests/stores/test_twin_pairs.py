"""Each question-query pair of tests/twin_pairs gives its rows on the store of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from phronesis_contracts import Principal
from phronesis_contracts.twin import DiagnoseGaps, FindEntities, RunChain, Survey
from phronesis_graph.guard import Guard
from phronesis_graph.twin.ontology_file import load as load_ontology
from phronesis_samples.twin.generator import generate
from tests.support.bus import somebody
from tests.support.graph import Stores, opened
from tests.support.servers import GraphServer
from tests.support.twins import call, load, reasoning

FILES = sorted((Path(__file__).parents[1] / "twin_pairs").glob("*.yaml"))
CONTENT = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in FILES]
PAIRS: list[dict[str, Any]] = [pair for content in CONTENT for pair in content["pairs"]]
[TWIN] = {(content["twin"]["nodes"], content["twin"]["seed"]) for content in CONTENT}
GUARD = Guard(load_ontology())


@pytest.fixture(scope="module")
async def stores(graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stores]:
    async with opened(graph_server, tmp_path_factory.mktemp("pairs")) as found:
        yield found


@pytest.fixture(scope="module")
async def who(stores: Stores) -> Principal:
    """Whose twin it is. Another tenant has the same one, and nothing of it may show."""
    one, other = somebody(), somebody()
    for each in (one, other):
        await load(stores, each, generate(*TWIN).batches())
    return one


async def answered(stores: Stores, who: Principal, pair: dict[str, Any]) -> list[Any]:
    """The rows that a pair gives."""
    handlers, given = reasoning(stores), pair.get("arguments", {})
    match pair.get("tool"):
        case None:
            allowed = GUARD.check(pair["cypher"], pair["parameters"], who.tenant)
            return await stores.bolt.read(lambda run: run.rows(allowed.statement, **allowed.parameters))
        case "survey_twin":
            return list((await handlers.survey(call(who), Survey.model_validate(given))).rows)
        case "run_chain":
            ran = await handlers.run_chain(call(who), RunChain.model_validate(given))
            assert all(path.whole for path in ran.paths)
            return [[node.id for node in path.nodes] for path in ran.paths]
        case "diagnose_gaps":
            answer = await handlers.diagnose_gaps(call(who), DiagnoseGaps.model_validate(given))
            return [[gap.type, gap.last_node, gap.missing_step] for gap in answer.gaps]
        case "find_entities":
            named = await handlers.find_entities(call(who), FindEntities.model_validate(given))
            return [[entity.type, entity.id] for entity in named.entities]
        case other:
            raise AssertionError(f"no such tool: {other}")


@pytest.mark.timeout(300)  # the first one loads the twins
@pytest.mark.parametrize("pair", PAIRS, ids=[pair["id"] for pair in PAIRS])
async def test_a_pair_gives_its_rows(stores: Stores, who: Principal, pair: dict[str, Any]) -> None:
    assert await answered(stores, who, pair) == pair["rows"]


def test_there_are_sixty_pairs_and_more_over_every_chain_and_pattern() -> None:
    patterns = Counter(pair["pattern"] for pair in PAIRS)
    assert len(PAIRS) >= 60
    assert len({pair["id"] for pair in PAIRS}) == len(PAIRS)
    assert {*load_ontology().chains, "optimized_retrieval", "impact_analysis", "vector_strategy"} <= set(patterns)
    assert all(len({*pair} & {"tool", "cypher"}) == 1 for pair in PAIRS)
