"""Sentences of answers about a small ontology that no sample has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from phronesis_contracts.answers import GAPS_TITLE
from phronesis_contracts.twin import GroupBy
from phronesis_graph.twin.ontology_file import load, parse
from phronesis_graph.twin.vocabulary import to_view
from phronesis_orchestrator.understanding import executor
from phronesis_orchestrator.understanding.finding import Figure, Finding, Note, calibrated, confidence
from phronesis_orchestrator.understanding.plan import (
    Aggregate,
    Change,
    Compare,
    Compose,
    Coverage,
    Describe,
    EntityRef,
    Filter,
    Gaps,
    Rank,
    Relate,
    Schema,
    Select,
    Selection,
    Talk,
    Understood,
    Unknown,
)
from phronesis_orchestrator.understanding.sets import things_of
from phronesis_orchestrator.understanding.wording import Wording, Written
from phronesis_orchestrator.understanding.writer import say_confidence, write

SHIPYARD = """
name: shipyard
nodes:
  Vessel:
    words: {en: [vessel, vessels], de: [Schiff, Schiffe]}
    properties:
      tonnage: {type: number, unit: t, words: {en: [tonnage], de: [Tonnage]}}
      price: {type: number, unit: €m, words: {en: [price], de: [Preis]}}
      launched: {type: date, words: {en: [launch date], de: [Stapellauf]}}
      state: {type: string, enum: [Sound, Worn, Wrecked], words: {en: [state], de: [Zustand]}}
      log: {type: text, words: {en: [log], de: [Logbuch]}}
  Yard:
    words: {en: [yard, yards], de: [Werft, Werften]}
relationships:
  BUILT_AT:
    from: [Vessel]
    to: [Yard]
    words: {en: {forward: [built at], backward: [builds]}, de: {forward: [gebaut bei], backward: [baut]}}
hierarchy: PARENT_OF
"""
SCHEMA = Schema(to_view(parse(SHIPYARD), "1"))
FLEET = Selection(type="Vessel", years=(2023,))
MARY = EntityRef(type="Vessel", id="v1", name="Mary Rose", years=(2021, 2023))
AT_LEITH = Filter(property="name", value="Leith", via="BUILT_AT", to="Yard")
HEAVY = Filter(property="tonnage", op=">", value=1500)
ENGLISH = Wording(SCHEMA, "en")


def member(id: str, name: str, year: int = 2023, **more: Any) -> dict[str, Any]:
    return {"id": id, "name": name, "year": year, **more}


def said(finding: Finding | None, plan: Any, language: str = "en") -> Written:
    return write(finding, plan, SCHEMA, language)


@pytest.mark.parametrize(
    ("name", "value", "english", "german"),
    [
        ("tonnage", 1234.5, "1,234.5 t", "1.234,5 t"),
        ("tonnage", 12.0, "12 t", "12 t"),
        ("price", 1250.25, "€1,250.25 million", "1.250,25 Mio. €"),
        ("price", -3.0, "-€3 million", "-3 Mio. €"),
        ("launched", "2021-03-09", "9 March 2021", "9. März 2021"),
        ("state", "Worn", "Worn", "Worn"),
        ("state", None, "not published", "nicht veröffentlicht"),
    ],
)
def test_a_value_has_the_unit_of_the_ontology_and_the_marks_of_the_language(
    name: str, value: object, english: str, german: str
) -> None:
    assert [Wording(SCHEMA, one).value("Vessel", name, value) for one in ("en", "de")] == [english, german]


def test_a_language_without_content_is_answered_in_english() -> None:
    assert (
        said(Finding(figures=(Figure(3, 3, 0, 3),), total=3), Aggregate(of=FLEET), "xx").text
        == "In 2023, there are **3** vessels."
    )


def test_one_is_said_as_one() -> None:
    plan = Aggregate(of=FLEET.model_copy(update={"filters": (HEAVY, AT_LEITH)}))
    found = Finding(figures=(Figure(1, 1, 0, 1),), total=1)
    assert said(found, plan).text == "In 2023, there is **1** vessel (tonnage above 1,500 t; built at Leith)."
    assert said(found, plan, "de").text == "2023 gibt es **1** Schiff (Tonnage über 1.500 t; gebaut bei Leith)."


def test_a_long_list_is_cut_and_its_table_is_whole() -> None:
    rows = tuple(member(f"v{n}", f"Vessel {n}", tonnage=float(n)) for n in range(70))
    found = Finding(rows=rows, show=("tonnage",), total=70, holds=True, entities=things_of("Vessel", rows))
    written = said(found, Select(of=FLEET, show=("tonnage",), exists=True))
    lines = written.text.splitlines()
    assert lines[0] == "Yes. In 2023, there are **70** vessels:"
    assert (len(lines), lines[-1]) == (2 + 61, "- and 10 more, all of them in the table")
    assert len(written.rows) == len(written.charts[0].data) == 70
    assert written.rows[3] == {"name": "Vessel 3", "tonnage (t)": 3.0}


def test_a_thing_of_two_years_is_one_thing() -> None:
    rows = (member("v1", "Mary Rose", 2022), member("V1", "Mary Rose"), member("v2", "Vasa"))
    found = Finding(rows=rows, total=3, holds=True, entities=things_of("Vessel", rows))
    both = Select(of=FLEET.model_copy(update={"years": (2022, 2023)}))
    assert said(found, both).text == (
        "In 2022 and 2023, there are **2** vessels:\n\n- Mary Rose (2022 and 2023)\n- Vasa (2023)"
    )


def test_two_nodes_of_one_year_are_two_things() -> None:
    rows = (member("v1", "Mary Rose"), member("v3", "Mary Rose"))
    assert [one.id for one in things_of("Vessel", rows)] == ["v1", "v3"]


def test_nothing_is_said_with_the_years_that_have_something() -> None:
    note = Note("no_data", {"years": (2019,), "covered": (2020, 2021, 2022, 2023), "type": "Vessel"})
    found = Finding(outcome="empty", holds=False, years=(2021, 2022, 2023), notes=(note,))
    written = said(found, Select(of=FLEET.model_copy(update={"years": (2019,)})))
    assert written.text == "In 2019, there are no vessels on record. There are some from 2021 to 2023."
    assert written.insights == ("There is no data for 2019; the data covers 2020 to 2023.",)


def test_what_is_not_published_is_said_apart_and_is_no_zero() -> None:
    plan = Aggregate(of=FLEET, measure="sum", property="price")
    known = said(Finding(figures=(Figure(40.0, 2, 1, 3),), total=3, known=2, unknown=1), plan)
    assert (
        known.text == "In 2023, the total price of vessels is **€40 million** (from 2 published figures; not published for 1)."
    )
    none = said(Finding(figures=(Figure(None, 0, 3, 3),), total=3, unknown=3), plan)
    assert none.text == "In 2023, no price is published for vessels."


def test_groups_are_a_column_and_a_pie_and_years_are_a_line() -> None:
    groups = tuple({"group": one, "value": n, "known": n, "unknown": 0} for one, n in (("Sound", 3), ("Wrecked", 1)))
    found = Finding(rows=groups, dimensions=(GroupBy(property="state"),), figures=(Figure(4, 4, 0, 4),), value=4, total=4)
    written = said(found, Aggregate(of=FLEET, group_by=found.dimensions))
    assert written.text == "In 2023, vessels by state:\n\n- Sound: **3**\n- Wrecked: **1**"
    assert [chart.type for chart in written.charts] == ["column", "pie", "table"]
    years = tuple({"group": year, "value": n, "known": n, "unknown": 0} for year, n in ((2022, 3), (2023, 5)))
    over = Aggregate(of=FLEET.model_copy(update={"years": (2022, 2023)}))
    found = Finding(rows=years, dimensions=(GroupBy(property="year"),), figures=(Figure(8, 8, 0, 8),), total=8)
    assert [chart.type for chart in said(found, over).charts] == ["line", "table"]
    assert said(found, over).insights == ("From 2022 to 2023 it changed by +2.",)


def test_groups_that_overlap_are_no_pie() -> None:
    groups = tuple({"group": one, "value": 2, "known": 2, "unknown": 0} for one in ("Leith", "Kiel"))
    by = (GroupBy(property="name", via="BUILT_AT", to="Yard"),)
    note = Note("in_two_groups", {"n": 1, "type": "Vessel", "level": None})
    found = Finding(rows=groups, dimensions=by, figures=(Figure(3, 3, 0, 3),), value=3, total=3, notes=(note,))
    written = said(found, Aggregate(of=FLEET, group_by=by))
    assert [chart.type for chart in written.charts] == ["column", "table"]
    assert written.insights[-1].startswith("1 entry is in two groups")
    assert written.rows[0] == {"yard": "Leith", "vessels": 2}


def test_the_first_is_named_and_ties_are_named_together() -> None:
    plan = Rank(of=FLEET, by="price")
    first = member("v1", "Mary Rose", value=9.0)
    one = said(Finding(rows=(first,), total=3, known=2, unknown=1), plan)
    assert one.text == "In 2023, of 2 vessels, **Mary Rose** has the highest price: **€9 million**."
    assert one.insights == ("1 of 3 is not ranked, because its value is not published.",)
    two = said(Finding(rows=(first, member("v2", "Vasa", value=9.0)), total=2, known=2), plan)
    assert two.text == "In 2023, of 2 vessels, **Mary Rose and Vasa** have the highest price: **€9 million** each."


def test_a_share_a_ratio_and_a_change_have_both_figures() -> None:
    heavy = Aggregate(of=FLEET.model_copy(update={"filters": (HEAVY,)}))
    share = Compare(sides=(heavy, Aggregate(of=FLEET)), how="share")
    figures = (Figure(1, 1, 0, 1), Figure(8, 8, 0, 8))
    assert said(Finding(figures=figures, value=12.5, known=9), share).text == (
        "In 2023, **12.5 %** of vessels: 1 of 8 (tonnage above 1,500 t)."
    )
    before = Aggregate(of=FLEET.model_copy(update={"years": (2022,)}))
    change = Compare(sides=(Aggregate(of=FLEET), before), how="change")
    figures = (Figure(6, 6, 0, 6), Figure(8, 8, 0, 8))
    assert said(Finding(figures=figures, value=-2, percent=-25.0, known=14), change).text == (
        "A change of **-2** (-25 %): vessels 6 in 2023, after 8 in 2022."
    )


def test_a_difference_names_the_year_once() -> None:
    worn = Filter(property="state", value="Worn")
    sides = tuple(Aggregate(of=FLEET.model_copy(update={"filters": (one,)})) for one in (HEAVY, worn))
    found = Finding(figures=(Figure(6, 6, 0, 6), Figure(8, 8, 0, 8)), value=-2, percent=-25.0, known=14)
    assert said(found, Compare(sides=sides, how="difference")).text == (
        "In 2023, the difference is **-2** (-25 %): vessels (tonnage above 1,500 t) 6, vessels (state Worn) 8."
    )


def test_a_fact_is_said_and_a_supposition_is_answered_first() -> None:
    row = {"thing": 0, "type": "Vessel", **member("v1", "Mary Rose", state="Worn", holds=False)}
    facts = Finding(rows=(row,), show=("state",), entities=(MARY,), total=1, known=1)
    plan = Describe(entities=(MARY,), properties=("state",), years=(2023,))
    assert said(facts, plan).text == "**Mary Rose**, 2023: state **Worn**."
    asked = Describe(entities=(MARY,), years=(2023,), expect=Filter(property="state", value="Sound"))
    assert said(Finding(rows=(row,), show=("state",), holds=False), asked).text == "No. **Mary Rose**, 2023: state **Worn**."
    assert said(Finding(rows=(row,), show=("state",), holds=None), asked, "de").text.startswith("Das ist nicht veröffentlicht.")


def test_a_thing_that_a_year_lacks_is_said_with_the_years_that_have_it() -> None:
    absent = ({"type": "Vessel", "id": "v1", "name": "Mary Rose", "year": 2022},)
    found = Finding(outcome="empty", absent=absent, entities=(MARY,), years=(2021, 2023))
    assert said(found, Describe(entities=(MARY,), properties=("state",), years=(2022,))).text == (
        "**Mary Rose** is not on record in 2022; it is in 2021 and 2023."
    )


def test_a_text_is_quoted_to_the_end_of_a_sentence() -> None:
    text = "She leaks. " * 80
    quoted = ENGLISH.value("Vessel", "log", text)
    assert quoted.startswith("“She leaks. She leaks.")
    assert quoted.endswith("She leaks. …”")
    assert len(quoted) < 620


def test_a_link_is_told_by_the_words_of_its_direction() -> None:
    link = {"relationship": "BUILT_AT", "forward": True, "from": "Mary Rose", "type": "Yard", "level": "L3", "hop": 1}
    found = Finding(rows=({**link, **member("y1", "Leith")},), total=1, value=1)
    assert (
        said(found, Relate(source=MARY, year=2023, relationship="BUILT_AT")).text == "**Mary Rose**, 2023: built at **Leith**."
    )
    back = Finding(rows=({**link, **member("v1", "Mary Rose"), "type": "Vessel", "forward": False},), total=1, value=1)
    yard = EntityRef(type="Yard", id="y1", name="Leith", years=(2023,))
    assert said(back, Relate(source=yard, year=2023), "de").text == "**Leith**, 2023: baut (Schiffe) **Mary Rose**."


def test_gaps_are_a_table_that_readers_know() -> None:
    rows = (
        {"type": "Vessel", **member("v1", "Mary Rose"), "kind": "unpublished", "property": "price"},
        {
            **{"type": "Vessel", **member("v1", "Mary Rose"), "kind": "DirectRelationshipMissing"},
            **{"relationship": "BUILT_AT", "relationships": ("BUILT_AT",), "to": ("Yard",)},
        },
    )
    found = Finding(rows=rows, value=1, total=1, gaps=2, years=(2023,))
    written = said(found, Gaps(entities=(MARY,), years=(2023,)))
    assert written.text == (
        "For **Mary Rose**, **2** things are missing:\n\n"
        "- 2023: price (not published)\n- 2023: no link “built at” to yard (link missing)"
    )
    assert written.charts[0].title == GAPS_TITLE


def test_a_change_has_what_was_and_what_is() -> None:
    row = {**member("v1", "Mary Rose"), "before": 10.0, "after": 12.5, "step": 2.5}
    plan = Change(of=FLEET, since=2022, until=2023, what="rose", property="price")
    assert said(Finding(rows=(row,), value=1, total=4), plan).text == (
        "From 2022 to 2023, price rose for **1** of 4 vessels on record in both years.\n\n"
        "- Mary Rose: €10 million to €12.5 million (+€2.5 million)"
    )


def test_a_concept_is_told_from_the_ontology() -> None:
    assert said(Finding(), Coverage(about="concept", type="Vessel", property="state")).text == (
        "“state” is a property of vessels. Its values, in order: Sound, Worn and Wrecked."
    )
    assert "- built at yards" in said(Finding(), Coverage(about="concept", type="Vessel")).text
    assert said(Finding(), Coverage(about="concept", term="BUILT_AT")).text == (
        "“built at” (BUILT_AT) links vessels (Vessel) to yards (Yard)."
    )
    assert said(Finding(), Coverage(about="concept", term="ChainBreak")).text.startswith("ChainBreak is a kind of gap")
    assert said(Finding(), Coverage(about="concept", term="types")).text.startswith("The ontology has **")
    assert "never zero" in said(Finding(), Coverage(about="concept", term="gap")).text


@pytest.mark.parametrize("language", ["en", "de"])
def test_every_reason_talk_and_task_has_a_sentence(language: str) -> None:
    reasons = Unknown.model_fields["reason"].annotation.__args__  # type: ignore[union-attr]
    for reason in reasons:
        plan = Unknown(reason=reason, words="keel", detail={"type": "Vessel", "years": "2019"}, choices=(MARY,))
        assert "- Mary Rose (" in said(None, plan, language).text
    for about in Talk.model_fields["about"].annotation.__args__:  # type: ignore[union-attr]
        assert said(None, Talk(about=about), language).text
    for task in Compose.model_fields["task"].annotation.__args__:  # type: ignore[union-attr]
        assert said(None, Compose(task=task, text="x"), language).text


@pytest.mark.parametrize(
    ("language", "said"), [("en", "There are no vessels on record yet."), ("de", "Es sind noch keine Schiffe verzeichnet.")]
)
def test_a_type_without_any_data_is_named(language: str, said: str) -> None:
    written = write(None, Unknown(reason="empty", detail={"type": "Vessel"}), SCHEMA, language)
    assert written.text == said


def test_too_much_asks_to_narrow_it_down() -> None:
    assert said(Finding(outcome="too_many", total=5000), Select(of=FLEET)).text.startswith("That would be 5,000 entries")


def keys(content: Mapping[str, Any], path: str = "") -> Iterator[str]:
    for key, value in content.items():
        if isinstance(value, Mapping) and path != "/scales":
            yield from keys(value, f"{path}/{key}")
        else:
            yield f"{path}/{key}"


def test_each_language_says_the_same_sentences_with_the_same_values() -> None:
    folder = files("phronesis_orchestrator.understanding").joinpath("content")
    languages = [yaml.safe_load(folder.joinpath(one, "answers.yaml").read_text("utf-8")) for one in ("en", "de")]
    assert sorted(keys(languages[0])) == sorted(keys(languages[1]))


def test_no_name_of_the_packaged_ontology_stands_in_the_code() -> None:
    ontology = load()
    names = {*ontology.nodes, *ontology.relationships, *ontology.chains}
    names |= {each.name for node in ontology.nodes.values() for each in node.properties.values() if "_" in each.name}
    for path in Path(executor.__file__).parent.glob("*.py"):
        text = path.read_text("utf-8")
        assert not [name for name in names if f'"{name}"' in text], path.name


def test_confidence_falls_with_what_is_not_known() -> None:
    plan = Select(of=FLEET)
    sure = Understood(plan=plan)
    whole = confidence(Finding(known=10), sure)
    assert whole == 1.0
    assert confidence(Finding(known=5, unknown=5), sure) < whole
    assert confidence(Finding(known=10, gaps=2), sure) < whole
    assert confidence(Finding(known=10), sure, degraded=1) < whole
    assert confidence(Finding(known=10), Understood(plan=plan, certainty=0.5)) == 0.5
    assert confidence(Finding(outcome="too_many"), sure) == 0.0
    assert confidence(Finding(unknown=10), sure) > 0.0


def test_calibration_lies_on_the_line_through_its_points() -> None:
    points = ((0.0, 0.0), (0.5, 0.2), (1.0, 0.9))
    assert [round(calibrated(raw, points), 3) for raw in (-1, 0.25, 0.5, 0.75, 1, 2)] == [0.0, 0.1, 0.2, 0.55, 0.9, 0.9]


@pytest.mark.parametrize("language", ["en", "de"])
def test_confidence_is_said_in_three_steps(language: str) -> None:
    assert len({say_confidence(value, SCHEMA, language) for value in (1.0, 0.8, 0.6, 0.5, 0.2, 0.0)}) == 3
