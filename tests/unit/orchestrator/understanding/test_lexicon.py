"""Words of a small ontology that no sample has: values, names, misspellings, compounds, another language, any text at all."""

from __future__ import annotations

import asyncio

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from phronesis_contracts import Principal
from phronesis_contracts.ontology import VOCABULARY, EntityName, PropertyValues, ValueCount, Vocabulary
from phronesis_contracts.twin import Level
from phronesis_graph.twin.ontology_file import parse as parse_ontology
from phronesis_graph.twin.vocabulary import to_view
from phronesis_orchestrator.understanding.language import Language, languages, parse
from phronesis_orchestrator.understanding.lexicon import Lexicon, VocabularyView
from phronesis_orchestrator.understanding.plan import NO_FOCUS, AboutUser, Aggregate, Describe, Plan, Select, Unknown
from phronesis_orchestrator.understanding.planner import understand
from phronesis_orchestrator.understanding.reader import Vocabularies
from tests.support.personas import Persona
from tests.unit.orchestrator.fakes import FakeNeighbours

ONTOLOGY = to_view(
    parse_ontology("""
name: shipyard
nodes:
  Vessel:
    words: {en: [vessel, vessels], de: [Schiff, Schiffe], fr: [navire, navires]}
    properties:
      tonnage: {type: number, unit: t, words: {en: [tonnage], de: [Tonnage], fr: [tonnage]}}
      state: {type: string, enum: [Sound, Worn, Wrecked], words: {en: [state], de: [Zustand], fr: [état]}}
  Yard:
    words: {en: [yard, yards], de: [Werft, Werften], fr: [chantier, chantiers]}
    properties:
      district: {type: string, words: {en: [district], de: [Bezirk]}}
relationships:
  BUILT_AT:
    from: [Vessel]
    to: [Yard]
    words: {en: {forward: [built at], backward: [builds]}, de: {forward: [gebaut bei], backward: [baut]}}
hierarchy: PARENT_OF
"""),
    "1",
)


def name(type: str, id: str, said: str) -> EntityName:
    return EntityName(type=type, id=id, name=said, level=Level.L3, years=(2022, 2023))


NAMES = (
    name("Vessel", "v1", "Grey Heron"),
    name("Vessel", "v2", "Grey Petrel"),
    name("Vessel", "v3", "Merganser (MGS)"),
    name("Yard", "y1", "Inverdon Slipway"),
)
VALUES = (
    PropertyValues(
        type="Vessel", property="state", known=3, values=(ValueCount(value="Sound", nodes=2), ValueCount(value="Worn", nodes=1))
    ),
    PropertyValues(type="Yard", property="district", known=1, values=(ValueCount(value="Northwharf", nodes=1),)),
)
PAGE = Vocabulary(version="1", ontology=ONTOLOGY, years=(2022, 2023), values=VALUES, names=NAMES)
VIEW = VocabularyView.of([PAGE])
LEXICONS = {code: Lexicon.build(VIEW, language) for code, language in languages().items()}


def plan(text: str, code: str = "en", lexicon: Lexicon | None = None) -> Plan:
    known = lexicon or LEXICONS[code]
    return understand(text, known, NO_FOCUS, known.language).plan


def state_of(of: Select | Aggregate) -> list[object]:
    return [one.value for one in of.of.filters if one.property == "state"]


@pytest.mark.parametrize("text", ["Which vessels are worn?", "list the worn vessels", "vessels with state Worn"])
def test_a_value_of_the_ontology_or_of_the_store_is_a_condition_on_its_property(text: str) -> None:
    found = plan(text)
    assert isinstance(found, Select)
    assert (found.of.type, state_of(found)) == ("Vessel", ["Worn"])


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("What is the tonnage of Grey Heron?", "v1"),
        ("what is the tonnage of the grey heron?", "v1"),
        ("tonnage of MGS", "v3"),
        ("tonnage of merganser", "v3"),
        ("tonnage of v2", "v2"),
    ],
)
def test_a_thing_is_known_by_its_name_a_telling_part_of_it_its_abbreviation_or_its_id(text: str, id: str) -> None:
    found = plan(text)
    assert isinstance(found, Describe)
    assert [one.id for one in found.entities] == [id]


def test_a_part_that_two_names_share_is_asked_back_or_means_both() -> None:
    found = plan("What is the tonnage of Grey?")
    if isinstance(found, Describe):
        assert {one.id for one in found.entities} == {"v1", "v2"}
    else:
        assert isinstance(found, Unknown)
        assert {one.id for one in found.choices} <= {"v1", "v2"}


@pytest.mark.parametrize(
    ("text", "wrong", "right"),
    [
        ("how many vesels are there?", "vesels", "vessels"),
        ("What is the tonnage of Mergansar?", "Mergansar", "merganser"),
        ("hwo many vessels are there?", "hwo", "how"),
    ],
)
def test_a_misspelling_is_mended_said_and_costs_certainty(text: str, wrong: str, right: str) -> None:
    found = understand(text, LEXICONS["en"], NO_FOCUS, languages()["en"])
    assert not isinstance(found.plan, Unknown)
    assert found.certainty < 1.0
    assert f"{wrong} → {right}" in found.notes


@pytest.mark.parametrize(
    ("text", "code", "what"),
    [
        ("please delete the locker number from your memory, I've handed it back", "en", "the locker number from your"),
        ("could you erase the thing about my knee?", "en", "the thing about my knee?"),
        ("Vergiss den Code bitte wieder, der wird geändert", "de", "Vergiss den Code bitte wieder, der wird geändert"),
        ("That was all. Forget my gate code.", "en", "Forget my gate code."),
    ],
)
def test_an_order_to_forget_something_of_the_speaker_is_known_by_its_verb(text: str, code: str, what: str) -> None:
    assert plan(text, code) == AboutUser(action="forget", text=what, explicit=True)


@pytest.mark.parametrize("text", ["delete the merganser", "remove all worn vessels"])
def test_an_order_to_delete_data_forgets_nothing_of_the_speaker(text: str) -> None:
    assert isinstance(plan(text), Unknown)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("topic of my dissertation", "recall"),
        ("any medicine that I react to", "recall"),
        ("my dissertation is about seagrass", "remember"),
        ("colour of my car: green", "remember"),
        ("plate of my car KV19", "remember"),
    ],
)
def test_a_thing_of_the_speaker_that_is_only_named_is_asked_for(text: str, action: str) -> None:
    found = plan(text)
    assert isinstance(found, AboutUser)
    assert found.action == action


def test_a_word_that_nothing_explains_is_named_and_nothing_is_answered() -> None:
    found = plan("How many blorptang vessels are there?")
    assert isinstance(found, Unknown)
    assert (found.reason, "blorptang" in found.words) == ("words", True)


@pytest.mark.parametrize("text", ["What's its tonnage?", "what's her tonnage?", "and his state?", "which state is she in"])
def test_a_pronoun_that_nothing_resolves_is_asked_back(text: str) -> None:
    found = plan(text)
    assert isinstance(found, Unknown), found
    assert found.reason == "reference"


def test_a_compound_of_two_known_words_is_split() -> None:
    assert LEXICONS["de"].split("schiffstonnage") == ("schiffs", "tonnage")
    assert LEXICONS["de"].split("blorptonnage") is None


def test_a_comparison_builds_no_compound() -> None:
    assert (LEXICONS["en"].split("undervessels"), LEXICONS["en"].split("stateyards")) == (None, ("state", "yards"))


def test_german_questions_are_understood_by_german_words_and_stored_names() -> None:
    found = plan("Wie viele Schiffe gibt es?", "de")
    assert isinstance(found, Aggregate)
    assert (found.of.type, found.measure) == ("Vessel", "count")
    described = plan("Welche Tonnage hat Grey Heron?", "de")
    assert isinstance(described, Describe)
    assert [one.id for one in described.entities] == ["v1"]


def french() -> Language:
    """A language that is nothing but a content file."""
    told = yaml.safe_load("""
language: fr
stemmer: french
small: le | la | les | de | des | d | l | il | y | a | en | sont | est | est-ce que
question_words: {which: quels | quelles | quel, what: quoi}
count: combien | combien de | nombre de
list: liste | montre
talk: {greeting: bonjour | salut, thanks: merci}
user: {question: mon | ma | je, statement: je suis}
yes_or_no: est
""")
    return parse(told)


def test_a_third_language_is_a_content_file_and_no_code() -> None:
    lexicon = Lexicon.build(VIEW, french())
    found = plan("Combien de navires ?", lexicon=lexicon)
    assert isinstance(found, Aggregate)
    assert (found.of.type, found.measure) == ("Vessel", "count")
    assert plan("Bonjour", lexicon=lexicon).kind == "talk"


KNOWN = sorted(
    {" ".join(key) for key in LEXICONS["en"].language.phrases} | {"vessel", "grey heron", "worn", "built at", "yard"}
)


@settings(deadline=None)
@given(st.text(max_size=300), st.sampled_from(sorted(LEXICONS)))
def test_any_text_is_understood_or_not_and_never_an_error(text: str, code: str) -> None:
    found = understand(text, LEXICONS[code], NO_FOCUS, languages()[code])
    assert 0.0 <= found.certainty <= 1.0


@settings(deadline=None)
@given(st.lists(st.sampled_from(KNOWN), min_size=1, max_size=12), st.sampled_from(sorted(LEXICONS)))
def test_no_salad_of_known_words_is_an_error_and_its_names_are_those_of_the_store(words: list[str], code: str) -> None:
    found = understand(" ".join(words), LEXICONS[code], NO_FOCUS, languages()[code])
    named = getattr(found.plan, "entities", ())
    assert {one.id for one in named} <= {one.id for one in NAMES}


def test_a_correction_never_names_what_the_caller_may_not_read() -> None:
    """The lexicon is the caller's: a role outside the readers gets none, and without one no word of the twin is known."""
    neighbours = FakeNeighbours(owners={VOCABULARY.subject: PAGE})
    of = Vocabularies(neighbours)
    readers = Principal(tenant="acme", user="ann", **Persona.NOOR.rights)
    assert asyncio.run(of.lexicon(readers, languages()["en"])) is not None
    outsider = readers.model_copy(update=Persona.EDITOR.rights)
    lexicon = asyncio.run(of.lexicon(outsider, languages()["en"]))
    assert lexicon is None
    found = understand("What is the tonnage of Mergansar?", lexicon, NO_FOCUS, languages()["en"])
    assert found.notes == ()
    assert "merganser" not in found.model_dump_json().casefold()
