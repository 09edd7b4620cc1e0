"""From which cosine on a node is a result where nobody says so: the embedder's noise, and the tenant's nodes as a whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from phronesis_contracts import Unavailable
from phronesis_contracts.constitution.search import HybridSearch, SemanticSearch, TuneRetrieval
from phronesis_memory.constitution.semantic import Floors, NoiseLevel
from phronesis_memory.values import Vector
from tests.support.personas import Persona
from tests.unit.memory.fakes_constitution import DIMENSION, Ground, ScriptedEmbedder, at_cosine, calling, ids

NOISE = 0.25


class Noise(NoiseLevel):
    """A level that is written down."""

    def __init__(self, level: float | None = NOISE) -> None:
        super().__init__(ScriptedEmbedder())
        self.level = level

    async def of(self) -> float | None:
        """As it was given."""
        return self.level


class RandomEmbedder(ScriptedEmbedder):
    """Every text has a direction of its own; the first number is the same in all of them."""

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """Directions that have nothing to do with each other."""
        if self.down:
            raise Unavailable("the model is down")
        made = [np.random.default_rng(list(text.encode())).normal(size=384).astype(np.float32) for text in texts]
        return [vector / np.linalg.norm(vector) for vector in made]


def ground(*cosines: float, level: float | None = NOISE) -> Ground:
    """Nodes with these cosines to the question, named by them."""
    made = Ground()
    made.meaning.floors = Floors(made.vectors, Noise(level))
    for place, cosine in enumerate(cosines):
        made.add(f"{cosine}-{place}", "value", at_cosine(cosine, 1 + place % (DIMENSION - 1)))
    return made


async def found(made: Ground, **more: object) -> list[str]:
    asked = SemanticSearch.model_validate({"query": "what matters"} | more)
    return [id.split("-")[0] for id in ids((await made.searching.semantic_search(calling(), asked)).results)]


BULK = tuple(0.05 + 0.005 * place for place in range(30))


@pytest.mark.req("O-154")
async def test_a_right_first_hit_below_the_stated_floor_is_found() -> None:
    assert await found(ground(0.31, *BULK)) == ["0.31"]


async def test_nothing_is_found_below_the_noise() -> None:
    assert await found(ground(0.24, *BULK)) == []


async def test_the_best_is_found_where_it_is_in_the_bulk() -> None:
    wide = tuple(0.26 + 0.01 * place for place in range(30))
    assert (await found(ground(*wide)))[0] == str(wide[-1])


async def test_what_does_not_stand_out_from_the_bulk_is_left_out() -> None:
    assert await found(ground(0.6, 0.58, 0.3, *BULK)) == ["0.6", "0.58"]


async def test_with_few_nodes_the_noise_decides_alone() -> None:
    assert await found(ground(0.6, 0.26, 0.24)) == ["0.6", "0.26"]


async def test_a_floor_that_was_asked_for_is_held() -> None:
    assert await found(ground(0.6, 0.58, 0.31, *BULK), minSimilarity=0.59) == ["0.6"]


async def test_a_floor_that_the_tenant_set_is_held() -> None:
    made = ground(0.6, 0.58, 0.31, *BULK)
    await made.searching.tune_retrieval(calling(Persona.ADMIN), TuneRetrieval(values={"semantic.minSimilarity": 0.59}))
    assert await found(made) == ["0.6"]


async def test_the_stated_floor_is_in_force_where_the_noise_is_not_known() -> None:
    assert await found(ground(0.41, 0.39, *BULK, level=None)) == ["0.41"]


async def test_a_hybrid_search_has_the_same_floor() -> None:
    made = ground(0.31, 0.24, *BULK)
    assert ids((await made.searching.hybrid_search(calling(), HybridSearch(query="what matters"))).results) == ["0.31-0"]


async def test_around_an_anchor_the_noise_is_floor_enough() -> None:
    made = ground(0.6, 0.3, 0.24, *BULK)
    made.add("anchor", "goal")
    asked = HybridSearch(query="what matters", anchor_node_id="anchor")
    assert ids((await made.searching.hybrid_search(calling(), asked)).results) == ["0.6-0", "0.3-1"]


@pytest.mark.req("O-180")
async def test_a_node_with_every_word_of_the_question_is_a_result_of_a_hybrid_search_whatever_its_cosine() -> None:
    made = ground(0.31, *BULK)
    made.add("named", "value", 0.1, title="what matters")
    made.add("unembedded", "task", title="what matters")
    hits = (await made.searching.hybrid_search(calling(), HybridSearch(query="what matters"))).results
    assert [(one.node.id, round(one.semantic_score, 2)) for one in hits] == [
        ("0.31-0", 0.31),
        ("named", 0.1),
        ("unembedded", 0.0),
    ]


async def test_the_noise_is_what_hardly_any_pair_of_unrelated_texts_reaches() -> None:
    level = await NoiseLevel(RandomEmbedder()).of()
    assert level is not None
    assert 3 < level * np.sqrt(384) < 4.5  # deviations of the cosine of two random directions


async def test_a_model_that_tells_nothing_apart_has_no_noise_level() -> None:
    assert await NoiseLevel(ScriptedEmbedder()).of() is None


async def test_a_model_that_was_away_is_measured_later() -> None:
    embedder, now = RandomEmbedder(down=True), [0.0]
    noise = NoiseLevel(embedder, lambda: now[0])
    assert await noise.of() is None
    embedder.down = False
    assert await noise.of() is None
    now[0] = 61.0
    assert await noise.of() is not None
