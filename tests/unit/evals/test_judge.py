"""The judge of answers on replies as agents write them."""

from __future__ import annotations

from typing import Any

import pytest

from evals.client import Reply
from evals.judge import verdict

DECLINE = "I do not understand “zorb”, so I would rather not guess an answer. I can count, list and group."
ASK = "Several things are called “HS2”. Which one do you mean?\n\n- HS2 Phase 1\n- HS2 Phase 2a"
LIST = "In 2022, there are **2** projects rated Red:\n\n- Sea Venom\n- Planning Reform"
TABLE = ({"rating": "Red", "projects": 27}, {"rating": "Amber/Red", "projects": 44})
OTHERS = ["Meteor", "Martlet"]


def judged(expect: dict[str, Any], text: str, *rows: dict[str, Any], question: str = "", reasoner: str = "extractive") -> str:
    return verdict(expect, Reply(text, rows=rows, reasoner=reasoner), question, ("HS2 Phase 1", "Type 26"))


@pytest.mark.parametrize(
    ("expect", "text", "outcome"),
    [
        ({"number": 27}, "In 2022, there are **27** projects rated Red.", "right"),
        ({"number": 27}, "In 2022, there are **28** projects rated Red.", "wrong"),
        ({"number": 27}, DECLINE, "declined"),
        ({"number": 27}, ASK, "declined"),
        ({"number": 2}, "There are two of them.", "right"),
        ({"number": 0}, "In 2021, there are no such projects.", "right"),
        ({"number": 0}, "There are 3.", "wrong"),
        ({"number": 1}, "HS2 Phase 1 cost £40,295 million.", "wrong"),
        ({"number": 2022}, "In 2022, there are 5.", "wrong"),
        ({"number": 1234.5, "unit": "£m"}, "The total is £1,234.5 million.", "right"),
        ({"number": 1234.5, "unit": "£m"}, "The total is £1.23 billion.", "right"),
        ({"number": 1200, "unit": "£m"}, "The total is £1.2bn.", "right"),
        ({"number": 1403, "unit": "£m"}, "The total is £1 billion.", "wrong"),
        ({"number": 1234.5, "unit": "£m"}, "Zusammen sind es 1.234,5 Mio. £.", "right"),
        ({"number": 1234.5, "unit": "£m"}, "Es sind 1,23 Milliarden Pfund.", "right"),
        ({"number": 1234.5, "unit": "£m"}, "It is £1,234,500,000.", "right"),
        ({"number": 1234.5, "unit": "£m"}, "It is £1,300 million.", "wrong"),
        ({"number": 2.4, "unit": "€ million"}, "The budget is 2.4 million euros.", "right"),
        ({"number": 12, "unit": "m"}, "It is 12 m long.", "right"),
        ({"number": 9.4262, "unit": "%"}, "In 2023, **9.4 %** of projects are rated Red: 23 of 244.", "right"),
        ({"number": 9.4262, "unit": "%"}, "9 percent", "right"),
        ({"number": 9.4262, "unit": "%"}, "12 percent", "wrong"),
        ({"number": -20}, "20 fewer than in 2021", "right"),
        ({"date": "2032-03-10"}, "It ends on 10 March 2032.", "right"),
        ({"date": "2032-03-10"}, "Its end date was **2032-03-10**.", "right"),
        ({"date": "2026-03-14"}, "Zahlbar bis 14. März 2026.", "right"),
        ({"date": "2032-03-10"}, "It ends on 11 March 2032.", "wrong"),
        ({"yes": True}, "Yes. Its rating was Green.", "right"),
        ({"yes": False}, "Nein, es war Amber.", "right"),
        ({"yes": True}, "No, it was Amber.", "wrong"),
        ({"yes": True, "facts": [["Green"]]}, "Its rating was Green.", "right"),
        ({"unpublished": True}, "In 2023, its rating was **not published**.", "right"),
        ({"unpublished": True}, "Its rating was Amber.", "wrong"),
        ({"unpublished": True}, DECLINE, "declined"),
        ({"text": [["DFT", "Transport"]]}, "It was delivered by **DFT**.", "right"),
        ({"text": [["Amber"]], "not": ["Amber/Red"]}, "It was rated Amber/Red.", "wrong"),
        ({"text": [["Cardiff"]], "unlike": ["Bristol"]}, "You live in Cardiff, no longer in Bristol.", "right"),
        ({"text": [["Cardiff"]], "unlike": ["Bristol"]}, "You live in Bristol and Cardiff.", "wrong"),
        ({"declined": True}, "I know nothing about that.", "right"),
        ({"declined": True}, "There are no reports of 2031.", "right"),
        ({"declined": True}, "**Crossrail Programme** is not on record in 1999.", "right"),
        ({"declined": True}, "I keep to my instructions.", "right"),
        ({"declined": True}, "Das haben Sie mir, soweit ich mich erinnere, nicht gesagt.", "right"),
        ({"declined": True}, "**New Embassy**: The project is not in a position to provide this.", "wrong"),
        ({"declined": True, "not": ["Lima"]}, "I do not know; perhaps Lima.", "wrong"),
        ({"declined": True, "model": True}, "For that a language model is needed, and none is set up.", "right"),
        ({"declined": True, "model": True}, DECLINE, "wrong"),
        ({"ask": True}, ASK, "right"),
        ({"ask": True}, "It costs £5 million.", "wrong"),
        ({"talk": True}, "You are welcome.", "right"),
        ({"talk": True}, "**Crossrail**: The programme delivers a railway.", "wrong"),
        ({"ack": True}, "Noted: you live in Leeds.", "right"),
        ({"ack": True}, "**Leeds Flood Scheme**: It reduces the risk of flood.", "wrong"),
        ({"any": [{"number": 9.4, "unit": "%"}, {"number": 9.9, "unit": "%"}]}, "9.9 %", "right"),
    ],
)
def test_a_reply_is_judged_by_what_it_says(expect: dict[str, Any], text: str, outcome: str) -> None:
    assert judged(expect, text) == outcome


def test_a_list_is_right_with_all_names_and_no_other() -> None:
    expect = {"names": ["Sea Venom", "Planning Reform"], "not": OTHERS}
    assert judged(expect, LIST) == "right"
    assert judged(expect, LIST + "\n- Meteor") == "wrong"
    assert judged(expect, LIST.replace("\n- Planning Reform", "")) == "wrong"


def test_a_list_that_is_cut_short_is_right_with_a_table_that_has_it_all() -> None:
    names = ({"name": "Sea Venom"}, {"name": "Planning Reform"})
    text = "There are 2:\n\n- Sea Venom\n- and 1 more"
    assert judged({"names": ["Sea Venom", "Planning Reform"], "not": OTHERS}, text, *names) == "right"
    assert judged({"names": ["Sea Venom", "Planning Reform"], "not": OTHERS}, text) == "wrong"


def test_a_name_of_another_year_or_without_its_parentheses_is_the_same_name() -> None:
    expect = {"names": [["Type 31e", "Type 31"], "Lifetime Skills Programme (LSP)"]}
    assert judged(expect, "Type 31 and the Lifetime Skills Programme.") == "right"


def test_a_ranking_has_to_be_in_order() -> None:
    expect = {"names": ["Sea Venom", "Planning Reform"], "ordered": True}
    assert judged(expect, LIST) == "right"
    assert judged({**expect, "names": expect["names"][::-1]}, LIST) == "wrong"


def test_the_thing_asked_for_stands_before_any_other() -> None:
    expect = {"names": ["Sea Venom"], "lead": OTHERS}
    assert judged(expect, "Sea Venom (£5 million), then Meteor.") == "right"
    assert judged(expect, "Meteor and Sea Venom.") == "wrong"
    assert judged(expect, "Of Meteor and Sea Venom, Sea Venom costs more.") == "right"


def test_every_group_has_its_value_in_a_row_or_in_the_text() -> None:
    expect = {"groups": {"Red": 27, "Amber/Red": 44}}
    assert judged(expect, "- Red: 27\n- Amber/Red: 44") == "right"
    assert judged(expect, "See the table.", *TABLE) == "right"
    assert judged(expect, "- Red: 44\n- Amber/Red: 27") == "wrong"
    assert judged(expect, "- Red: 27") == "wrong"


def test_with_a_model_general_knowledge_and_texts_are_no_faults() -> None:
    assert (
        judged({"declined": True, "not": ["Lima"], "general": True}, "Lima; from general knowledge.", reasoner="groq")
        == "right"
    )
    assert judged({"declined": True, "model": True}, "Roses are red.", reasoner="groq") == "right"


def test_an_expectation_has_one_kind() -> None:
    with pytest.raises(ValueError, match="one kind"):
        judged({"number": 1, "date": "2020-01-01"}, "1")
