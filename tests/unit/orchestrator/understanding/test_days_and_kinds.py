"""Days that dates are compared with, properties called kind, answers of yes or no, plurals to spell, and names side by side."""

from __future__ import annotations

import pytest

from phronesis_contracts.ontology import EntityName
from phronesis_contracts.twin import GroupBy, Level
from phronesis_graph.twin.ontology_file import parse as parse_ontology
from phronesis_graph.twin.vocabulary import to_view
from phronesis_orchestrator.tasks.runner import is_set_by_words
from phronesis_orchestrator.understanding.language import languages
from phronesis_orchestrator.understanding.lexicon import Lexicon, VocabularyView
from phronesis_orchestrator.understanding.plan import NO_FOCUS, Aggregate, Filter, Plan, Select, Unknown
from phronesis_orchestrator.understanding.planner import understand
from phronesis_orchestrator.understanding.reading import read

ONTOLOGY = to_view(
    parse_ontology("""
name: mooring
nodes:
  Buoy:
    words: {en: [buoy, buoys]}
    properties:
      depth: {type: number, unit: m, words: {en: [depth]}}
      make: {type: string, enum: [steel, foam], words: {en: [kind, make]}}
      lit: {type: string, enum: ["yes", "no"], words: {en: [lit]}}
      serviced: {type: date, words: {en: [serviced, last service]}}
  Reach:
    words: {en: [reach, reaches]}
    properties:
      note: {type: string, words: {en: [note]}}
relationships:
  FLOATS_IN:
    from: [Buoy]
    to: [Reach]
    words: {en: {forward: [floats in], backward: [holds]}}
hierarchy: PARENT_OF
"""),
    "1",
)


def name(type: str, id: str, said: str) -> EntityName:
    return EntityName(type=type, id=id, name=said, level=Level.L3, years=(2025,))


NAMES = (name("Buoy", "b1", "Gannet Buoy"), name("Buoy", "b2", "Skua Buoy"), name("Reach", "r1", "Long Reach"))
LEXICON = Lexicon.build(VocabularyView(ONTOLOGY, (2025,), (), NAMES), languages()["en"])


def plan(text: str) -> Plan:
    return understand(text, LEXICON, NO_FOCUS, languages()["en"]).plan


def conditions(text: str) -> list[tuple[str, str, object]]:
    found = plan(text)
    assert isinstance(found, Select | Aggregate), found
    return [(one.property, one.op, one.value) for one in found.of.filters]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("list buoys serviced before 15 June 2025", [("serviced", "<", "2025-06-15")]),
        ("list buoys serviced after June 15th, 2025", [("serviced", ">", "2025-06-15")]),
        ("list buoys serviced since 2025-06-15", [("serviced", ">=", "2025-06-15")]),
        ("list buoys serviced until 15.06.2025", [("serviced", "<=", "2025-06-15")]),
        ("list buoys serviced on 15/06/2025", [("serviced", ">=", "2025-06-15"), ("serviced", "<=", "2025-06-15")]),
        (
            "list buoys serviced between 1 May 2025 and 9 May 2025",
            [("serviced", ">=", "2025-05-01"), ("serviced", "<=", "2025-05-09")],
        ),
        ("list buoys not serviced since 1 January 2024", [("serviced", "<", "2024-01-01")]),
    ],
)
def test_a_date_is_compared_with_the_whole_day_that_is_said(text: str, expected: list[tuple[str, str, object]]) -> None:
    assert conditions(text) == expected


def test_a_month_is_not_taken_for_its_year() -> None:
    assert isinstance(plan("list buoys serviced in June 2024"), Unknown)


def test_no_day_is_read_that_is_in_no_calendar() -> None:
    assert not read("serviced before 31 June 2025", LEXICON).of("day")


def test_a_property_called_kind_is_grouped_by_though_kind_of_says_nothing_elsewhere() -> None:
    found = plan("total depth by kind of buoy")
    assert isinstance(found, Aggregate)
    assert (found.measure, found.property, found.group_by) == ("sum", "depth", (GroupBy(property="make"),))


@pytest.mark.parametrize("text", ["list the buoys that are not lit", "how many buoys have not been lit?"])
def test_not_said_of_a_property_of_yes_or_no_is_its_no(text: str) -> None:
    assert conditions(text) == [("lit", "=", "no")]


def test_not_said_of_any_other_property_is_that_it_is_not_known() -> None:
    assert conditions("list the buoys that are not serviced") == [("serviced", "unknown", None)]


@pytest.mark.parametrize("written", ["bouys", "buosy"])
def test_a_plural_that_is_the_name_of_a_type_is_mended_like_any_word(written: str) -> None:
    assert read(f"list all {written}", LEXICON).mended == ((written, "buoys"),)


def test_names_that_end_alike_are_told_apart_where_one_follows_the_other() -> None:
    found = read("Gannet Buoy with Skua Buoy", LEXICON).of("entity")
    assert [item.text for item in found] == ["Gannet Buoy", "Skua Buoy"]


@pytest.mark.parametrize(
    ("text", "by_words"),
    [
        ("list the steel buoys", True),
        ("list buoys serviced before 15 June 2025", True),
        ("list buoys with a depth above 20", True),
        ("list the buoys in Long Reach", False),
    ],
)
def test_a_set_is_chosen_by_words_where_no_name_or_undeclared_value_chooses_it(text: str, by_words: bool) -> None:
    assert is_set_by_words(plan(text), LEXICON.view) is by_words


def test_a_value_that_the_ontology_does_not_declare_chooses_no_set_by_words() -> None:
    found = plan("list the reaches")
    assert isinstance(found, Select)
    of = found.of.model_copy(update={"filters": (Filter(property="note", value="urgent", words="urgent"),)})
    assert not is_set_by_words(found.model_copy(update={"of": of}), LEXICON.view)
