from __future__ import annotations

import pytest

from phronesis_graph.twin.ontology_file import load, packaged_version, parse
from phronesis_graph.twin.vocabulary import split_name, to_view

SMALL = """
name: shipyard
nodes:
  Vessel:
    properties:
      gross_tonnage: {type: number, unit: t}
  DryDock:
    words: {de: [Trockendock]}
relationships:
  BUILT_AT: {from: [Vessel], to: [DryDock]}
"""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("EntityITSystem", "entity IT system"),
        ("Vessel", "vessel"),
        ("KPI", "kpi"),
        ("gross_tonnage", "gross tonnage"),
        ("BUILT_AT", "built at"),
        ("Phase2Report", "phase 2 report"),
    ],
)
def test_a_name_is_told_in_words(name: str, words: str) -> None:
    assert split_name(name) == words


def test_what_has_no_english_word_is_called_by_its_name() -> None:
    view = to_view(parse(SMALL), "1")
    vessel, dock = view.types
    assert (vessel.words, vessel.levels) == ({"en": ("vessel",)}, {})
    assert dock.words == {"de": ("Trockendock",), "en": ("dry dock",)}
    assert vessel.properties[0].words == {"en": ("gross tonnage",)}
    [built] = view.relationships
    assert (built.forward, built.backward, built.rule) == ({"en": ("built at",)}, {}, "same")


def test_every_part_of_the_packaged_ontology_has_words_in_english_and_german() -> None:
    view = to_view(load(), packaged_version())
    groups = [words for each in view.types for words in (each.words, *each.levels.values())]
    groups += [one.words for each in view.types for one in each.properties]
    groups += [words for each in view.relationships if each.rule != "down" for words in (each.forward, each.backward)]
    groups += [chain.words for chain in view.chains]
    assert [words for words in groups if set(words) != {"en", "de"}] == []
