"""Topics in planted clusters: how pure they are, their words, and ids that last."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest

from phronesis_contracts import NotFound
from phronesis_contracts.constitution.registry import Layer
from phronesis_memory.constitution.clusters import (
    SMALLEST,
    UNASSIGNED,
    Matrix,
    cluster,
    find_keywords,
    group_alike,
    group_numbers,
    normalize_rows,
    silhouette,
)
from phronesis_memory.constitution.ports import TopicRun, TopicSummary
from phronesis_memory.constitution.topics import Topics
from tests.unit.memory.fakes_constitution import DIMENSION, Ground, at_cosine, calling

WHO = calling().who
WORDS = {
    "garden": "tomatoes compost seedlings watering beds harvest",
    "music": "rehearsal violin concert quartet score tempo",
    "money": "invoice budget ledger taxes payment reserve",
}


def planted(sizes: dict[str, int], noise: float = 0.25, dimension: int = 64) -> tuple[list[str], Matrix]:
    """Vectors around one direction for each topic."""
    random = np.random.default_rng(7)
    middles = normalize_rows(random.normal(size=(len(sizes), dimension)).astype(np.float32))
    names = [name for name, size in sizes.items() for _ in range(size)]
    places = [list(sizes).index(name) for name in names]
    scattered = middles[places] + random.normal(size=(len(names), dimension)) * noise / 2
    return names, normalize_rows(scattered.astype(np.float32))


def purity(names: list[str], labels: list[int]) -> float:
    """Share of those in a group that are of the group's most frequent topic."""
    groups = {label: Counter(name for name, one in zip(names, labels, strict=True) if one == label) for label in labels}
    inside = [group for label, group in groups.items() if label != UNASSIGNED]
    return sum(max(group.values()) for group in inside) / sum(group.total() for group in inside)


@dataclass
class KeptTopics:
    """Topics in memory."""

    kept: TopicRun | None = None
    written: list[TopicRun] = field(default_factory=list)

    async def run(self, tenant: str) -> TopicRun | None:
        """The last one."""
        return self.kept

    async def listed(self, tenant: str, layers: frozenset[Layer], nearest: int) -> list[TopicSummary]:
        """The largest first."""
        found = []
        for topic in self.kept.topics if self.kept else ():
            members = [member for member in topic.members if not layers or Layer(member.layer) in layers]
            if members:
                ids = tuple(member.id for member in members[:nearest])
                found.append(TopicSummary(topic.id, topic.keywords, len(members), ids))
        return sorted(found, key=lambda one: (-one.size, one.id))

    async def members(self, tenant: str, topic_id: str, limit: int) -> tuple[list[str], int] | None:
        """Those nearest to the middle."""
        for topic in self.kept.topics if self.kept else ():
            if topic.id == topic_id:
                return [member.id for member in topic.members[:limit]], len(topic.members)
        return None

    async def all(self, tenant: str) -> dict[str, frozenset[str]]:
        """The nodes of each."""
        return {one.id: frozenset(member.id for member in one.members) for one in (self.kept.topics if self.kept else ())}

    async def replace(self, tenant: str, run: TopicRun) -> None:
        """Keep another run."""
        self.kept = run
        self.written.append(run)


def garden(size: int = 8) -> tuple[Ground, Topics, KeptTopics]:
    """A graph with three topics."""
    ground, store = Ground(), KeptTopics()
    random = np.random.default_rng(3)
    for turn, (name, said) in enumerate(WORDS.items(), start=1):
        for place in range(size):
            vector = at_cosine(0.0, turn) + random.normal(size=DIMENSION).astype(np.float32) * 0.1
            words = said.split()
            title = f"The {words[place % 6]} and the {words[(place + 1) % 6]}"
            ground.add(f"{name}{place}", "note" if place % 2 else "task", vector, title=title, description=said)
    return ground, Topics(ground.vectors, ground.vectors, ground.graph, store), store


@pytest.mark.req("O-384", "O-399", "O-415", "C-97")
@pytest.mark.parametrize("sizes", [{"a": 30, "b": 30, "c": 30}, {"a": 60, "b": 20, "c": 8}, {"a": 5, "b": 5, "c": 5}])
def test_three_planted_topics_are_three_clusters(sizes: dict[str, int]) -> None:
    names, vectors = planted(sizes)
    found = cluster(vectors)
    assert len(set(found.labels.tolist()) - {UNASSIGNED}) == 3
    assert purity(names, found.labels.tolist()) >= 0.9
    assert np.count_nonzero(found.labels == UNASSIGNED) <= 0.1 * len(names)
    assert found.silhouette == pytest.approx(silhouette(vectors, found.labels), abs=1e-6)


@pytest.mark.req("O-384")
def test_many_planted_topics_are_found_too() -> None:
    names, vectors = planted({f"t{place}": 25 for place in range(12)})
    found = cluster(vectors)
    assert purity(names, found.labels.tolist()) >= 0.9


def test_the_same_vectors_are_grouped_the_same_way() -> None:
    _, vectors = planted({"a": 30, "b": 30, "c": 30})
    assert cluster(vectors).labels.tolist() == cluster(vectors).labels.tolist()


def test_a_few_vectors_are_no_topics() -> None:
    assert cluster(planted({"a": 2, "b": 3})[1]).labels.tolist() == [UNASSIGNED] * 5
    assert cluster(np.zeros((0, 4), np.float32)).labels.tolist() == []


def test_equal_vectors_are_no_error() -> None:
    found = cluster(np.tile(at_cosine(1.0), (20, 1)))
    assert (len(found.labels), found.silhouette) == (20, 0.0)


def test_the_numbers_that_are_tried_are_bounded() -> None:
    assert group_numbers(6) == [2]
    assert group_numbers(15) == [2, 3, 4, 5]
    assert (group_numbers(10_000)[-1] <= 60, len(group_numbers(10_000)) < 20) == (True, True)


def test_small_groups_are_those_that_are_alike_on_average() -> None:
    points = np.stack(
        [at_cosine(0.9), at_cosine(0.95), at_cosine(0.99), at_cosine(0.0, 5), at_cosine(0.1, 5), at_cosine(0.0, 9)]
    )
    labels = group_alike(points, 0.4).tolist()
    assert labels[3:] == [UNASSIGNED] * 3
    assert (len(set(labels[:3])), labels[0] != UNASSIGNED, SMALLEST) == (1, True, 3)


@pytest.mark.req("O-385")
def test_the_words_of_a_group_are_those_that_tell_it_apart() -> None:
    groups = {name: [f"We plan the {word} with {said}" for word in said.split()] for name, said in WORDS.items()}
    found = find_keywords(groups, 5)
    for name, said in WORDS.items():
        assert len(set(" ".join(found[name]).split()) & set(said.split())) >= 4


def test_a_word_of_one_text_alone_is_no_keyword() -> None:
    found = find_keywords({"a": ["tea zebra", "cup of tea", "tea in a cup"], "b": ["river", "river bank"]})
    assert found["a"] == ("tea", "cup")


@pytest.mark.req("O-386", "O-399")
async def test_topics_are_listed_with_their_nodes_and_words() -> None:
    ground, topics, _ = garden()
    listed = await topics.list(WHO, frozenset(), refresh=False)
    assert (sorted(one.size for one in listed.topics), listed.unassigned) == ([8, 8, 8], 0)
    assert listed.silhouette > 0.5
    for one in listed.topics:
        [name] = {mention.id.rstrip("0123456789") for mention in one.nodes}
        assert set(" ".join(one.keywords[:5]).split()) <= set(WORDS[name].split())
        nodes = await topics.nodes(WHO, one.id, 500)
        assert (nodes.total, {mention.id.rstrip("0123456789") for mention in nodes.nodes}) == (8, {name})
        assert {id for id, topic in ground.vectors.topics.items() if topic == one.id} == {mention.id for mention in nodes.nodes}


@pytest.mark.req("O-386")
async def test_a_topic_that_there_is_not_is_an_error() -> None:
    _, topics, _ = garden()
    with pytest.raises(NotFound):
        await topics.nodes(WHO, "topic-none", 5)


async def test_topics_of_one_layer_count_its_nodes() -> None:
    _, topics, _ = garden()
    listed = await topics.list(WHO, frozenset({Layer.MIND}), refresh=False)
    assert {one.size for one in listed.topics} == {4}
    assert {mention.type for one in listed.topics for mention in one.nodes} == {"note"}


async def test_topics_are_kept_until_they_are_to_be_found_anew() -> None:
    _, topics, store = garden()
    for refresh, runs in ((False, 1), (False, 1), (True, 2)):
        await topics.list(WHO, frozenset(), refresh=refresh)
        assert len(store.written) == runs


async def test_a_topic_keeps_its_id_over_small_changes() -> None:
    ground, topics, _ = garden()
    before = {one.id: {mention.id for mention in one.nodes} for one in (await topics.list(WHO, frozenset(), False)).topics}
    for gone in ("garden0", "music3"):
        ground.remove(gone)
        del ground.vectors.kept[gone]
    ground.add("garden99", "note", at_cosine(0.0, 1), title="A new compost")
    after = await topics.list(WHO, frozenset(), refresh=True)
    assert {one.id for one in after.topics} == set(before)
    assert ground.vectors.topics["garden99"] == ground.vectors.topics["garden1"]
    assert ground.vectors.topics["garden0"] is None


async def test_ids_are_the_same_for_the_same_graph() -> None:
    one, other = [{topic.id for topic in (await garden()[1].list(WHO, frozenset(), False)).topics} for _ in range(2)]
    assert one == other


async def test_an_empty_graph_has_no_topics() -> None:
    ground, store = Ground(), KeptTopics()
    listed = await Topics(ground.vectors, ground.vectors, ground.graph, store).list(WHO, frozenset(), refresh=False)
    assert (listed.topics, listed.silhouette, listed.unassigned) == ((), 0.0, 0)


_FIRST_GROUPS = """
import asyncio, sys
import numpy as np
from phronesis_memory.constitution.clusters import cluster, group_alike, load_libraries

asyncio.run(load_libraries())
before = set(sys.modules)
points = np.random.default_rng(7).normal(size=(40, 16)).astype(np.float32)
cluster(points), group_alike(points, 0.8)
print(sorted({name.split(".")[0] for name in set(sys.modules) - before} & {"sklearn", "scipy", "threadpoolctl"}))
"""


def test_the_first_groups_load_no_library_that_the_start_has_not_loaded() -> None:
    said = subprocess.run([sys.executable, "-c", _FIRST_GROUPS], capture_output=True, text=True, check=True, timeout=120)
    assert said.stdout == "[]\n"
