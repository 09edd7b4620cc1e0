"""Hybrid retrieval, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from phronesis_bus import Call
from phronesis_contracts import Principal, Unavailable
from phronesis_contracts.memory import AugmentedMemoryContext, EntityType, ItemKind, Remember, Remembered, Retrieve
from phronesis_contracts.twin import Neighbour, Node
from phronesis_memory.items.search import Candidate, Retrieval, SearchResult
from phronesis_memory.values import Audience, Draft, Item, NodeState

ANN = Principal(tenant="acme", user="ann")
NOW = datetime(2024, 1, 1, tzinfo=UTC)
A, B, C, D, E = (str(uuid4()) for _ in range(5))


@dataclass
class _Search:
    """Candidates by phrase; a phrase without any fails."""

    found: Mapping[str, Sequence[Candidate]]
    asked: list[tuple[Audience, str]] = field(default_factory=list)

    async def find(self, audience: Audience, queries: Sequence[str], limit: int = 0) -> list[SearchResult]:
        self.asked.extend((audience, query) for query in queries)
        if not set(queries) & set(self.found):
            raise Unavailable("down")
        return [
            SearchResult(tuple(self.found[q])) if q in self.found else SearchResult(degraded=frozenset({"vector"}))
            for q in queries
        ]


@dataclass
class _Graph:
    around: Sequence[Neighbour] = ()
    down: bool = False
    asked: list[tuple[str, list[str], int]] = field(default_factory=list)

    async def expand(self, who: Principal, ids: Sequence[str], hops: int, limit: int) -> tuple[Neighbour, ...]:
        self.asked.append((who.user, list(ids), hops))
        if self.down:
            raise Unavailable("down")
        return tuple(self.around)

    async def nodes(self, tenant: str, keys: Sequence[str]) -> tuple[Node, ...]:
        raise NotImplementedError


@dataclass
class _Knowledge:
    """Items by owner."""

    held: Mapping[str, Sequence[Item]]
    down: bool = False
    asked: list[tuple[Audience, list[str]]] = field(default_factory=list)

    async def items(self, audience: Audience, ids: Sequence[str]) -> list[Item]:
        self.asked.append((audience, list(ids)))
        if self.down:
            raise Unavailable("down")
        mine = [item for owner in audience.owners for item in self.held.get(owner, ())]
        return [item for item in mine if item.id in ids and item.kind in audience.kinds]

    async def digests(self, tenant: str, owner: str, external_ids: Sequence[str]) -> dict[tuple[str, str], bytes]:
        raise NotImplementedError

    async def remember(self, call: Call, request: Remember, drafts: Sequence[Draft]) -> Remembered:
        raise NotImplementedError

    async def record(self, tenant: str, owner: str, draft: Draft) -> None:
        raise NotImplementedError

    async def project(self, tenant: str, node: NodeState, drafts: Sequence[Draft]) -> None:
        raise NotImplementedError

    async def passed(self, tenant: str, versions: Mapping[str, int]) -> set[str]:
        raise NotImplementedError


def _hit(id: str, score: float = 1.0, *, cosine: float = 0.9, coverage: float = 0.0, family: str = "") -> Candidate:
    return Candidate(id, ItemKind.FACT, family, score, cosine, None, coverage)


def _item(id: str, kind: ItemKind = ItemKind.FACT, text: str = "text", age: int = 0) -> Item:
    return Item(id, kind, f"title of {kind}", text, None, "", NOW - timedelta(days=age), NOW)


def _retrieval(search: _Search, graph: _Graph, knowledge: _Knowledge, per_phrase: int = 5, most: int = 25) -> Retrieval:
    return Retrieval(
        search,  # type: ignore[arg-type]
        graph,
        knowledge,
        floor=0.28,
        per_phrase=per_phrase,
        most=most,
        seconds=1,
    )


async def _retrieve(
    found: Mapping[str, Sequence[Candidate]],
    *,
    graph: _Graph | None = None,
    knowledge: _Knowledge | None = None,
    phrases: Sequence[str] | None = None,
    **more: int,
) -> AugmentedMemoryContext:
    limits = {name: more.pop(name) for name in ("per_phrase", "most") if name in more}
    held = knowledge or _Knowledge({"ann": [_item(id) for id in (A, B, C, D, E)]})
    request = Retrieve(key_phrases=tuple(phrases or found), **more)
    return await _retrieval(_Search(found), graph or _Graph(), held, **limits).retrieve(ANN, request)


@pytest.mark.req("D-072", "D-078", "D-151")
async def test_each_phrase_is_searched_among_what_the_caller_may_see() -> None:
    search = _Search({"one": [], "two": []})
    await _retrieval(search, _Graph(), _Knowledge({})).retrieve(ANN, Retrieve(key_phrases=("one", "two")))
    assert [(a.tenant, a.owners, query) for a, query in search.asked] == [
        ("acme", ("ann", "*", "facts:ann"), "one"),
        ("acme", ("ann", "*", "facts:ann"), "two"),
    ]


@pytest.mark.req("D-076", "D-080")
async def test_an_item_that_several_phrases_find_is_one_seed_with_its_best_score() -> None:
    context = await _retrieve({"one": [_hit(A, 0.4), _hit(B, 0.3)], "two": [_hit(A, 0.8)]})
    assert [(seed.id, seed.score, seed.phrase) for seed in context.seeds] == [(A, 0.8, "two"), (B, 0.3, "one")]


@pytest.mark.req("D-074", "D-C09")
async def test_a_phrase_has_five_seeds_and_a_retrieval_twenty_five() -> None:
    found = {f"p{n}": [_hit(str(uuid4())) for _ in range(9)] for n in range(8)}
    assert len((await _retrieve(found)).seeds) == 25
    assert len((await _retrieve({"p0": found["p0"]})).seeds) == 5


@pytest.mark.req("D-081")
async def test_a_phrase_that_fails_does_not_lose_the_others() -> None:
    context = await _retrieve({"one": [_hit(A)], "three": [_hit(C)]}, phrases=("one", "two", "three"))
    assert ({seed.id for seed in context.seeds}, context.degraded) == ({A, C}, ("vector",))


@pytest.mark.req("D-079")
async def test_what_is_far_in_meaning_and_has_few_of_the_words_is_no_seed() -> None:
    far, worded, near = _hit(A, cosine=0.27), _hit(B, cosine=0.1, coverage=0.5), _hit(C, cosine=0.28)
    context = await _retrieve({"one": [far, worded, near]})
    assert {seed.id for seed in context.seeds} == {B, C}


@pytest.mark.req("D-087")
async def test_without_seeds_neither_the_graph_nor_the_store_is_asked() -> None:
    graph, knowledge = _Graph(), _Knowledge({})
    context = await _retrieve({"one": [_hit(A, cosine=0.1)]}, graph=graph, knowledge=knowledge)
    assert (graph.asked, knowledge.asked, list(context.timings_ms)) == ([], [], ["vector"])
    assert context.model_copy(update={"timings_ms": {}}) == AugmentedMemoryContext(user_id="ann", key_phrases=("one",))


@pytest.mark.req("D-137")
async def test_where_no_search_answers_the_context_is_empty_and_says_so() -> None:
    context = await _retrieve({}, phrases=("one",))
    assert (context.seeds, context.concepts, context.degraded) == ((), (), ("vector", "text"))


@pytest.mark.req("D-085", "D-094", "D-095", "D-100", "D-101", "D-102", "D-C10", "D-C13")
async def test_the_context_holds_seeds_and_neighbours_with_all_that_is_known_of_them() -> None:
    graph = _Graph([Neighbour(id=A, type="MemoryUnit", hop=0), Neighbour(id=B, type="Concept", hop=1)])
    knowledge = _Knowledge({"ann": [_item(A, text="fact"), _item(B, ItemKind.CONCEPT, text="concept")]})
    context = await _retrieve({"one": [_hit(A, 0.8)]}, graph=graph, knowledge=knowledge, hops=2)
    unit, concept = context.memory_units[0], context.concepts[0]
    assert (unit.id, unit.kind, unit.text, unit.score, unit.hop, unit.matched_phrase) == (A, "fact", "fact", 0.8, 0, "one")
    assert (concept.id, concept.title, concept.text, concept.score, concept.hop) == (B, "title of concept", "concept", 0.4, 1)
    assert (concept.matched_phrase, context.user_id, context.key_phrases) == (None, "ann", ("one",))
    assert set(context.timings_ms) == {"vector", "graph", "content"}
    assert graph.asked == [("ann", [A], 2)]


@pytest.mark.req("D-138")
async def test_without_the_graph_the_seeds_are_filled_in_alone() -> None:
    context = await _retrieve({"one": [_hit(A)]}, graph=_Graph(down=True))
    assert ([item.id for item in context.memory_units], context.degraded) == ([A], ("graph",))


@pytest.mark.req("D-139")
async def test_without_the_store_the_content_is_empty_and_the_seeds_are_named() -> None:
    context = await _retrieve({"one": [_hit(A)]}, knowledge=_Knowledge({}, down=True))
    assert (context.memory_units, context.concepts, context.degraded) == ((), (), ("content",))
    assert [seed.id for seed in context.seeds] == [A]


@pytest.mark.req("D-092", "D-093", "D-164", "D-T08")
async def test_fifty_ids_of_two_types_are_read_by_two_statements() -> None:
    ids = [str(uuid4()) for _ in range(50)]
    types = list(EntityType)
    graph = _Graph([Neighbour(id=id, type=types[n % 2], hop=1) for n, id in enumerate(ids)] * 2)
    knowledge = _Knowledge({})
    context = await _retrieve({"one": [_hit(A)]}, graph=graph, knowledge=knowledge)
    asked = [id for _, some in knowledge.asked for id in some]
    assert (len(knowledge.asked), len(asked), set(asked)) == (2, 51, {A, *ids})
    assert set(context.missing_ids) == {A, *ids}


@pytest.mark.req("D-096", "D-097")
async def test_a_foreign_id_and_one_without_a_row_are_missing_alike() -> None:
    knowledge = _Knowledge({"ann": [_item(A)], "bob": [_item(B)]})
    graph = _Graph([Neighbour(id=B, type="MemoryUnit", hop=1), Neighbour(id=C, type="MemoryUnit", hop=1)])
    context = await _retrieve({"one": [_hit(A)]}, graph=graph, knowledge=knowledge)
    assert ([item.id for item in context.memory_units], set(context.missing_ids)) == ([A], {B, C})
    assert {audience.owners for audience, _ in knowledge.asked} == {("ann", "*", "facts:ann")}


@pytest.mark.req("D-150", "D-C12")
async def test_what_is_no_id_and_what_is_of_no_known_type_is_listed_and_read_by_nobody() -> None:
    strange = "x' OR 1=1 //"
    around = [Neighbour(id=strange, type="Concept", hop=1), Neighbour(id=B, type="Secret", hop=1)]
    knowledge = _Knowledge({"ann": [_item(A), _item(B)]})
    context = await _retrieve({"one": [_hit(A)]}, graph=_Graph(around), knowledge=knowledge)
    assert ([ids for _, ids in knowledge.asked], context.missing_ids) == ([[A]], (strange, B))


@pytest.mark.req("D-098", "D-099")
async def test_lower_ranks_are_dropped_where_the_budget_ends() -> None:
    knowledge = _Knowledge({"ann": [_item(id, text=" one" * 20) for id in (A, B, C)]})
    hits = [_hit(A, 0.2), _hit(B, 0.9), _hit(C, 0.5)]
    context = await _retrieve({"one": hits}, knowledge=knowledge, budget_tokens=50)
    assert ([item.id for item in context.memory_units], context.dropped) == ([B, C], 1)


async def test_a_node_fills_no_more_than_four_of_the_places() -> None:
    hits = [_hit(str(uuid4()), 0.9, family="Project/P1") for _ in range(6)] + [_hit(A, 0.1)]
    context = await _retrieve({"one": hits, "two": hits})
    assert [seed.id for seed in context.seeds] == [*sorted(seed.id for seed in context.seeds[:4]), A]


@pytest.mark.req("D-103")
async def test_the_context_survives_json() -> None:
    context = await _retrieve({"one": [_hit(A)]})
    assert AugmentedMemoryContext.model_validate_json(context.model_dump_json()) == context
