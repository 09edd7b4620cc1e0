"""Topics of two small graphs, embedded by the local model: their groups are subjects, and their words the members' own."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from phronesis_contracts.constitution.registry import TYPES
from phronesis_embedding.local import MiniLm
from phronesis_memory.constitution.clusters import NodeMatrix, cluster, normalize_rows, without_types
from phronesis_memory.constitution.nodes import text_of_node
from phronesis_memory.constitution.ports import TopicRun
from phronesis_memory.constitution.topics import build_topics
from phronesis_memory.words.analysis import stems
from tests.unit.memory.fakes_nodes import node

KINDS = ("goal", "task", "value", "decision", "principle", "strategy")
ROWING = {
    "boats": [
        ("Repair the cracked hull of the old eight", "The hull of the wooden boat leaks since the winter."),
        ("Varnish the wooden boats every spring", "A boat without varnish rots."),
        ("Buy a second double scull", "The boat shed has room for one more hull."),
        ("Every boat is washed after use", "Salt eats riggers and hulls."),
        ("Replace the riggers of the coxed four", "The riggers of this boat are bent."),
        ("Keep a list of damage to boats", "Whoever damages a hull writes it down."),
        ("Lock the boat shed at night", "Oars and boats were stolen in May."),
        ("Sell the boats that nobody rows", "An unused boat takes up space in the shed."),
    ],
    "juniors": [
        ("Train the juniors three times a week", "Young rowers train on the ergometer in winter."),
        ("Teach school children to row", "A course for pupils in the summer holidays."),
        ("Find two coaches for the juniors", "Each coach trains eight young rowers."),
        ("Juniors swim before they row", "No child enters the water without a swimming badge."),
        ("Invite parents to junior training", "Parents of young rowers may watch."),
        ("A coach never trains juniors alone", "Two adults are with the children."),
        ("Send four juniors to the camp", "The training camp for young rowers is at Easter."),
        ("Praise effort of children over medals", "Juniors stay when training is fun."),
    ],
    "regatta": [
        ("Hold the autumn regatta in October", "Crews from ten towns race over 1,000 metres."),
        ("Hire a timekeeper for the regatta", "Race times have to be exact."),
        ("Find sponsors for the regatta", "Sponsors pay for the prizes of the races."),
        ("Publish the results of each race the same day", "Crews want to see regatta results."),
        ("Mark the race course with buoys", "The regatta needs six lanes."),
        ("A race is stopped in a storm", "Safety of the crews comes before the regatta programme."),
        ("Ask the town to close the river for the races", "No ferries during the regatta."),
        ("Print the regatta programme", "All races and crews on one page."),
    ],
    "kitchen": [
        ("Renovate the clubhouse kitchen", "The kitchen stove is from the seventies."),
        ("Cook a meal for members on Sundays", "The clubhouse kitchen serves soup and cake."),
        ("Rent the clubhouse for weddings", "Guests use the kitchen and the terrace of the clubhouse."),
        ("Buy a dishwasher for the kitchen", "Washing dishes takes too long."),
        ("Clean the clubhouse every Monday", "Kitchen and hall are cleaned in turns."),
        ("Coffee and cake are cheap for members", "The clubhouse lives from its guests."),
        ("Replace the kitchen windows", "The windows of the clubhouse let in rain."),
        ("Food in the kitchen is labelled with dates", "Old food spoils the fridge."),
    ],
}
THEATRE = {
    "costumes": [
        ("Sew new costumes for the winter play", "The costumes are made of wool."),
        ("Store costumes by size", "Every costume has a label in its collar."),
        ("Lend costumes to schools", "A school pays for the cleaning of costumes."),
        ("Repair torn costumes within a week", "The tailor mends seams and buttons."),
        ("Costumes are never thrown away", "Fabric of old costumes is used again."),
        ("Find a tailor for Thursdays", "Sewing costumes alone is too much for one person."),
        ("Buy fabric in bulk", "Cotton and wool for costumes cost less by the roll."),
        ("Wash costumes after each run", "The laundry takes costumes on Mondays."),
    ],
    "lighting": [
        ("Replace the stage lamps with LED", "LED lamps of the stage use less power."),
        ("Train two lighting technicians", "Each technician can run the lighting desk."),
        ("Check the lamps before each show", "A dark lamp spoils the lighting."),
        ("Rent spotlights for the musical", "Two spotlights follow the singers on stage."),
        ("Nobody climbs the lighting rig alone", "The rig with the lamps is eight metres up."),
        ("Keep the lighting plan of each play", "Lamp, colour and angle are in the lighting plan."),
        ("Buy a new lighting desk", "The desk forgets its lighting cues."),
        ("Switch off all stage lamps at night", "Lamps burn power."),
    ],
    "tickets": [
        ("Sell tickets online", "Half of the audience books tickets at home."),
        ("Tickets for students cost half", "Students fill empty seats."),
        ("Open the box office at six", "The box office sells the last tickets."),
        ("Raise the ticket price to 18 euros", "Ticket income pays the hall."),
        ("Number every seat", "The audience quarrels about seats without numbers on tickets."),
        ("Refund tickets of cancelled shows", "Everyone gets the ticket price back."),
        ("Fill four of five seats", "The audience shrank last year."),
        ("Give season tickets to sponsors", "Two seats for each sponsor."),
    ],
    "volunteers": [
        ("Find twenty new volunteers", "Volunteers build, sell and clean."),
        ("Thank volunteers with a dinner", "All volunteers eat together in June."),
        ("Volunteers choose their own hours", "A roster shows the shifts of volunteers."),
        ("Insure every volunteer", "Accidents of volunteers are covered."),
        ("A volunteer works at most two shifts a week", "Tired volunteers leave."),
        ("Write a handbook for volunteers", "New volunteers know what to do on the first shift."),
        ("Name a person who cares for volunteers", "Volunteers bring complaints to this person."),
        ("Ask volunteers each year why they left", "The roster has gaps."),
    ],
}


def build(graph: dict[str, list[tuple[str, str]]], model: MiniLm) -> tuple[TopicRun, dict[str, str]]:
    """The topics of a graph whose subjects are told by nodes of all types, and their texts by id."""
    texts, types, layers = {}, [], []
    for subject, told in graph.items():
        for place, (title, description) in enumerate(told):
            kind = TYPES[KINDS[place % len(KINDS)]]
            one = node(f"{subject}-{place}", kind.name, title=title, description=description, decided_at="2026-05-01", roi=2.5)
            texts[one.id] = text_of_node(one, kind)
            types.append(kind.name)
            layers.append(kind.layer.value)
    points = normalize_rows(np.stack([model.run([model.tokens(text)])[0] for text in texts.values()]))
    those = NodeMatrix(tuple(texts), tuple(types), tuple(layers), points, whole=True)
    return build_topics(those, cluster(without_types(those)), texts, {}), texts


@pytest.fixture(scope="module")
def model() -> MiniLm:
    return MiniLm(1)


@pytest.mark.req("O-384", "O-385", "C-97")
@pytest.mark.parametrize("graph", [ROWING, THEATRE], ids=["rowing", "theatre"])
def test_topics_of_a_graph_are_its_subjects_whatever_the_types(graph: dict[str, list[tuple[str, str]]], model: MiniLm) -> None:
    run, _ = build(graph, model)
    subjects = [Counter(member.id.split("-")[0] for member in topic.members) for topic in run.topics]
    assert {some.most_common(1)[0][0] for some in subjects} == set(graph)
    inside = sum(some.total() for some in subjects)
    assert sum(some.most_common(1)[0][1] for some in subjects) >= 0.9 * inside
    assert run.unassigned <= 0.2 * sum(map(len, graph.values()))
    assert all(len({member.type for member in topic.members}) > 1 for topic in run.topics)


@pytest.mark.req("O-385")
@pytest.mark.parametrize("graph", [ROWING, THEATRE], ids=["rowing", "theatre"])
def test_keywords_are_words_that_several_members_say(graph: dict[str, list[tuple[str, str]]], model: MiniLm) -> None:
    run, texts = build(graph, model)
    for topic in run.topics:
        said = [set(stems(texts[member.id].split("\n", 1)[1])) for member in topic.members]
        assert topic.keywords
        for word in topic.keywords:
            assert sum(set(stems(word)) <= some for some in said) >= 2, word
        subject = Counter(member.id.split("-")[0] for member in topic.members).most_common(1)[0][0]
        first = " ".join(topic.keywords[:3])
        assert set(stems(subject)) & set(stems(first)), (subject, topic.keywords)
        assert not {"roi", "decidedat", "goal", "task", "decision"} & set(" ".join(topic.keywords).split())
