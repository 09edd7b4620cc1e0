"""Made-up constitutions: their sizes, that the registry takes them, how their texts vary, and what answers their questions."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import date

import pytest

from phronesis.constitution.files import parts
from phronesis_contracts.constitution.registry import TYPES, Layer
from phronesis_contracts.constitution.writes import LOAD, NODES, RELATIONSHIPS, LoadNode
from phronesis_graph.constitution.validation import check_ends, find_type, merge_content, node_fields
from phronesis_samples.institute.generator import generate
from phronesis_samples.institute.plan import count_layers
from phronesis_samples.institute.texts import read_themes
from phronesis_tokens import count

_BAGS = {"properties", "metadata", "provenance"}
_PROSE = ("summary", "description", "narrative", "statement", "rationale", "reasoning", "content", "pattern", "response")
_COMMON = set(
    "a about all and any are at be by can do does for from get go has have how i in into is it its keep make of on or our "
    "out so that the their them there they this to us we what when where which who why will with without would".split()
)


def shown(node: LoadNode) -> dict[str, object]:
    """A node as it is sent."""
    return node.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)


@pytest.mark.req("O-023", "C-05")
@pytest.mark.parametrize(
    ("nodes", "counts"),
    [
        (45, (45, 0, 0, 0, 0, 0, 0)),
        (1_055, (60, 15, 50, 80, 250, 500, 100)),
        (4_855, (80, 25, 100, 150, 2_000, 2_000, 500)),
    ],
)
def test_a_graph_of_a_size_of_the_growth_table_has_its_layers(nodes: int, counts: tuple[int, ...]) -> None:
    made = Counter(TYPES[node.type].layer for node in generate(nodes, 1).nodes())
    assert tuple(made[layer] for layer in Layer) == counts
    assert sum(counts) == nodes


@pytest.mark.parametrize("nodes", [45, 46, 500, 999, 1_000, 5_000, 50_000, 60_000])
def test_the_layers_of_any_size_add_up_to_it(nodes: int) -> None:
    assert sum(count_layers(nodes).values()) == nodes
    assert min(count_layers(nodes).values()) >= 0


def test_every_type_is_there_and_ids_are_unique() -> None:
    ids = [(node.id, node.type) for node in generate(1_055, 2).nodes()]
    assert {type for _, type in ids} == set(TYPES)
    assert len(dict(ids)) == 1_055


def test_the_registry_takes_every_node_and_every_relationship() -> None:
    made = generate(1_055, 3)
    types = {}
    for node in made.nodes():
        kind = types[node.id] = find_type(node.type)
        content = merge_content(kind, {}, node_fields(shown(node)))
        undeclared = set(content.get("properties", {})) - {"reviews", "hours", "answers", "language"}
        assert undeclared == set(), node.id
    links = list(made.relationships())
    for link in links:
        check_ends(link.type, types[link.from_id], types[link.to_id])
    assert len({(link.from_id, link.type, link.to_id) for link in links}) == len(links) > 800


def test_no_chain_of_relationships_comes_back() -> None:
    links = list(generate(5_000, 1).relationships())
    for name in {link.type for link in links}:
        up: dict[str, list[str]] = {}
        for link in links:
            if link.type == name:
                up.setdefault(link.from_id, []).append(link.to_id)
        done: set[str] = set()
        for start in up:
            trail, stack = [], [(start, iter(up[start]))]
            trail.append(start)
            while stack:
                at, rest = stack[-1]
                nxt = next(rest, None)
                if nxt is None:
                    stack.pop()
                    trail.pop()
                    done.add(at)
                elif nxt not in done:
                    assert nxt not in trail, (name, nxt)
                    trail.append(nxt)
                    stack.append((nxt, iter(up.get(nxt, ()))))


def test_the_same_seed_makes_the_same_graph_and_another_another() -> None:
    one, same, other = (generate(600, seed) for seed in (5, 5, 6))
    assert list(one.nodes()) == list(same.nodes())
    assert list(one.relationships()) == list(same.relationships())
    assert one.queries() == same.queries()
    assert list(one.nodes()) != list(other.nodes())


def test_a_node_is_the_same_whatever_was_read_before_it() -> None:
    made = generate(600, 5)
    assert made.node(made.spots[300]) == list(made.nodes())[300]


def test_fewer_nodes_than_a_foundation_are_refused() -> None:
    with pytest.raises(ValueError, match="45 nodes"):
        generate(44, 1)


def test_of_a_hundred_sentences_less_than_one_is_said_twice() -> None:
    sentences: Counter[str] = Counter()
    for node in generate(5_000, 1).nodes():
        content = shown(node)
        for name in _PROSE:
            sentences.update(re.split(r"(?<=[.?!])\s+", str(content.get(name) or ""))) if name in content else None
    twice = sentences.total() - len(sentences)
    assert sentences.total() > 5_000
    assert twice / sentences.total() < 0.01


@pytest.mark.req("O-134")
def test_the_foundation_of_45_costs_44_thousand_tokens_and_15_thousand_without_its_bags() -> None:
    made = generate(45, 1)
    heavy, light = 0, 0
    for node in made.nodes():
        content = shown(node)
        heavy += count(json.dumps(content))
        light += count(json.dumps({name: value for name, value in content.items() if name not in _BAGS}))
    assert 40_000 <= heavy <= 48_000
    assert light <= 15_000


def test_dates_lie_around_the_day_that_is_named() -> None:
    made = generate(1_055, 1, date(2030, 6, 1))
    due = [str((node.model_extra or {})["dueDate"]) for node in made.nodes() if node.type == "task"]
    assert min(due) >= "2030-02-01"
    assert max(due) <= "2030-09-29"
    assert sum("2030-06-01" <= day <= "2030-06-08" for day in due) > 0


@pytest.mark.req("O-410", "O-411")
@pytest.mark.parametrize("nodes", [5_000, 50_000])
def test_a_large_graph_has_100_questions_half_of_them_around_a_node(nodes: int) -> None:
    made = generate(nodes, 1)
    queries = made.queries()
    active = {spot.id for spot in made.spots if spot.active}
    assert len({query.text for query in queries}) == 100
    assert sum(query.anchor is not None for query in queries) == 50
    for query in queries:
        assert len(query.relevant) >= 50
        assert query.relevant <= active
        assert query.anchor is None or query.anchor in query.relevant


def test_what_is_relevant_stands_near_the_anchor_more_often_than_by_chance() -> None:
    made = generate(5_000, 1)
    near: dict[str, set[str]] = {}
    for link in made.relationships():
        near.setdefault(link.from_id, set()).add(link.to_id)
        near.setdefault(link.to_id, set()).add(link.from_id)
    shares = []
    for query in made.queries():
        if query.anchor is not None:
            around = {one for step in near[query.anchor] for one in {step} | near[step]} - {query.anchor}
            shares.append(len(around & query.relevant) / len(around))
    assert sum(shares) / len(shares) > 0.6


def test_questions_repeat_no_phrase_of_their_theme_and_mostly_use_other_words() -> None:
    shared, total = 0, 0
    for theme in read_themes():
        phrases = {phrase.lower() for words in theme.words.values() for phrase in words if " " in phrase}
        known = {word for phrase in phrases for word in re.findall(r"[a-z]+", phrase)}
        for question in theme.asked:
            words = set(re.findall(r"[a-z]+", question.lower())) - _COMMON
            shared, total = shared + len(words & known), total + len(words)
            assert {phrase for phrase in phrases if phrase in question.lower()} == set()
    assert shared / total < 0.5


@pytest.mark.req("O-413", "O-414")
def test_pairs_are_planted_that_say_the_same_and_pairs_that_do_not() -> None:
    made = generate(5_000, 1)
    spots = {spot.id: spot for spot in made.spots}
    same, apart = made.duplicates(), made.unrelated(200)
    assert len(same) >= 10
    assert {spots[one].theme == spots[other].theme and spots[one].type == spots[other].type for one, other in same} == {True}
    assert len(apart) == 200
    topics = {(made.themes[spots[one].theme].topic, made.themes[spots[other].theme].topic) for one, other in apart}
    assert all(one != other for one, other in topics)


def test_parts_hold_everything_and_each_fits_into_a_message() -> None:
    made = generate(1_055, 1)
    found = list(parts(made.nodes(), made.relationships()))
    assert [node.id for part in found for node in part.nodes] == [spot.id for spot in made.spots]
    assert [link for part in found for link in part.relationships] == list(made.relationships())
    for part in found:
        assert (len(part.nodes) <= NODES, len(part.relationships) <= RELATIONSHIPS) == (True, True)
        assert len(part.model_dump_json().encode()) < LOAD.max_bytes
