"""Rows of tables in texts: spelled out, and computed on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_orchestrator.understanding.language import languages
from phronesis_orchestrator.understanding.search import telling
from phronesis_orchestrator.understanding.tables import compute, figures_of, is_row, spell_tables


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("id,km,driver\nTR 7,120,Ayo", "id: TR 7; km: 120; driver: Ayo."),
        ('id,place,km\nA,"Leeds, York",5', "id: A; place: Leeds, York; km: 5."),
        ("| id | km |\n| --- | --- |\n| TR 7 | 120 |", "id: TR 7; km: 120."),
        ("id\tkm\nTR 7\t120", "id: TR 7; km: 120."),
        ("id;km\nTR 7;", "id: TR 7."),
        ("It rained, so we stayed.\nThen it snowed, and we left.", "It rained, so we stayed.\nThen it snowed, and we left."),
        ("a,b,c", "a,b,c"),
        ("Net | £12.50\nTotal due | £15.00", "Net: £12.50.\nTotal due: £15.00."),
        ("Sie steigt von 29,80 auf 32,40 Cent.\nSie sinkt von 12,50 auf 11,90 Euro.",) * 2,
    ],
)
def test_each_row_says_which_column_a_value_stands_in(text: str, spelled: str) -> None:
    assert spell_tables(text) == spelled


def test_only_columns_with_a_figure_are_named() -> None:
    assert list(figures_of("id: TR 7; driver: Ayo; km: 120.")) == ["id", "km"]
    assert (is_row("id: TR 7; driver: Ayo."), is_row("Opening hours: ten to four.")) == (True, False)


@given(st.text())
def test_any_text_is_spelled(text: str) -> None:
    assert isinstance(spell_tables(text), str)


CLAIMS = """Date,Employee,Category,Amount GBP
2025-03-03,Ada Finch,Travel,84.20
2025-03-05,Owen Pryde,Hotel,246.00
2025-03-12,Ada Finch,Hotel,212.00
2025-03-14,Sue Low,Travel,38.50
"""
STOCK = """Item,Quantity,Supplier
Bubble wrap roll,24,Packwell
Label roll,140,Stickfast
Hand truck,5,Ironbridge
"""
FERRIES = """Ferry,Departs,Days
F1,07:10,Mon-Sat
F2,09:40,daily
F3,15:10,Sat-Sun
"""
SALES = """region,quarter,units,revenue_eur
North,Q1,120,18000
North,Q2,95,14250
South,Q1,210,31500
West,Q1,75,11250
"""
TREES = """id,species,height_m,planted
T1,oak,14.5,1968
T2,lime,9.2,1991
T3,maple,11.0,1984
T4,oak,17.3,1955
"""
ROTA = """Name,Mon,Tue,Keys
Ada,Off,Early,yes
Bo,Early,Off,no
Cy,Off,Late,no
"""
PARTS = """Article,Supplier,Shelf
Door handles,Gatelux,B1
Padlocks,Gatelux,B2
Hinges,Morven,B1
"""


LEDGER = """Date,Category,Amount (£)
2026-02-03,Repairs,200.00
2026-03-05,Fuel,64.75
2026-03-19,Repairs,100.50
"""
PLANS = """Line,Planned,Spent
Travel,2300,1740
Cameras,4600,5150
"""
BOATS = """Days,Departs,Arrives
Monday to Friday,06:45,07:35
Monday to Friday,17:20,18:10
Sunday,10:15,11:05
Sunday,18:05,18:55
"""
WARDS = """Date,Ward,Late,Night
2026-08-03,Maple,Bo,Ada
2026-08-04,Maple,Ada,Cy
2026-08-05,Cedar,Bo,Ada
"""
SOIL = """Plot,Row,Texture,Ph
North,2,loam,6.4
South,1,sandy loam,5.6
West,2,clay,7.1
"""
WASHES = """Programme,Duration,Load
Cotton,1 h 50 min,7 kg
Wool,50 min,2 kg
Quick,28 min,3 kg
"""


def computed(question: str, table: str, title: str, fresh: int = 0) -> tuple[str, str, float, int] | None:
    """What a table gives for a question: measure, column, value, and how many rows it is made of."""
    english = languages()["en"]
    rows = [line for line in spell_tables(table).splitlines() if is_row(line)]
    found = compute(question, telling(english.tokens(question), english), rows, title, english, fresh=fresh)
    return None if found is None else (found.measure, found.column, found.value, len(found.rows))


@pytest.mark.parametrize(
    ("before", "follow_up", "found"),
    [
        ("total units in Q1?", "and Q2?", ("sum", "units", 95.0, 1)),
        ("How many units did South sell?", "just North?", ("sum", "units", 215.0, 2)),
        ("total units of North and South", "in Q1", ("sum", "units", 330.0, 2)),
        ("total units in Q1?", "and the phone number?", None),
    ],
)
def test_a_value_of_a_follow_up_stands_for_one_of_its_column(
    before: str, follow_up: str, found: tuple[str, str, float, int] | None
) -> None:
    assert computed(f"{before} {follow_up}", SALES, "sales.csv", len(before) + 1) == found


@pytest.mark.parametrize(
    ("question", "table", "title", "found"),
    [
        ("total units in Q1?", SALES, "sales.csv", ("sum", "units", 405.0, 3)),
        ("How many units did South sell?", SALES, "sales.csv", ("sum", "units", 210.0, 1)),
        ("how much revenue came from North?", SALES, "sales.csv", ("sum", "revenue_eur", 32_250.0, 2)),
        ("which region had the lowest revenue in Q1?", SALES, "sales.csv", ("least", "revenue_eur", 11_250.0, 1)),
        ("which tree is the tallest?", TREES, "trees.csv", ("most", "height_m", 17.3, 1)),
        ("when was the tallest planted?", TREES, "trees.csv", ("most", "height_m", 17.3, 1)),
        ("how many oaks are there?", TREES, "trees.csv", ("count", "", 2, 2)),
        ("how many ids are in the list?", TREES, "trees.csv", ("count", "", 4, 4)),
        ("how many trees are there?", TREES, "trees.csv", ("count", "", 4, 4)),
        ("How many articles come from Gatelux?", PARTS, "parts.csv", ("count", "", 2, 2)),
        ("And on shelf B1, how many?", PARTS, "parts.csv", ("count", "", 2, 2)),
        ("Who is off on Monday?", ROTA, "rota.csv", ("rows", "", 2, 2)),
        ("which species is T3?", TREES, "trees.csv", ("rows", "", 1, 1)),
        ("total units over the whole list", SALES, "sales.csv", ("sum", "units", 500.0, 4)),
        ("How much of it went on repairs?", LEDGER, "ledger.csv", ("sum", "Amount (£)", 300.5, 2)),
        ("Count the March payments for me", LEDGER, "ledger.csv", ("count", "", 2, 2)),
        ("Which one cost more than planned?", PLANS, "plans.csv", ("rows", "", 1, 1)),
        ("what does E1 mean?", PLANS, "plans.csv", None),
        ("When is the last that departs on a weekday?", BOATS, "boats.csv", ("most", "Departs", 1_040.0, 1)),
        ("the first that departs on Sunday", BOATS, "boats.csv", ("least", "Departs", 615.0, 1)),
        ("How many nights does Ada do altogether?", WARDS, "wards.csv", ("count", "", 2, 2)),
        ("How many plots are loam?", SOIL, "soil.csv", ("count", "", 1, 1)),
        ("how many plots are in row 2?", SOIL, "soil.csv", ("count", "", 2, 2)),
        ("which plot is the most acidic?", SOIL, "soil.csv", None),
        ("What's the shortest programme?", WASHES, "washes.csv", ("least", "Duration", 28.0, 1)),
        ("how many have no keys?", ROTA, "rota.csv", ("count", "", 2, 2)),
        ("who claimed the most?", CLAIMS, "claims.csv", ("most_of", "Amount GBP", 296.2, 2)),
        ("which category cost the least?", CLAIMS, "claims.csv", ("least_of", "Amount GBP", 122.7, 2)),
        ("who has the highest claim?", CLAIMS, "claims.csv", ("most", "Amount GBP", 246.0, 1)),
        ("what did hotels come to?", CLAIMS, "claims.csv", ("sum", "Amount GBP", 458.0, 2)),
        ("how many label rolls do we have?", STOCK, "stock.csv", ("sum", "Quantity", 140.0, 1)),
        ("which ones go on a Sunday?", FERRIES, "ferries.csv", ("rows", "", 2, 2)),
        ("which ones go on a Wednesday?", FERRIES, "ferries.csv", ("rows", "", 2, 2)),
    ],
)
def test_a_total_a_count_and_the_most_are_computed_from_all_rows(
    question: str, table: str, title: str, found: tuple[str, str, float, int] | None
) -> None:
    assert computed(question, table, title) == found


@pytest.mark.parametrize(
    ("question", "table", "title"),
    [
        ("how many looms are there?", TREES, "trees.csv"),  # nothing of the table is called so
        ("who sold the most?", SALES, "sales.csv"),  # of units, or of revenue?
        ("what is the phone number of T1?", TREES, "trees.csv"),
        ("how many species are there?", TREES, "trees.csv"),
        ("how many oaks of a height are there in the wood?", TREES, "trees.csv"),  # a height is no number of oaks
        ("which region has more than its units?", SALES, "sales.csv"),
        ("how much more revenue is that?", SALES, "sales.csv"),
        ("how much revenue did West bring?", SALES, "sales.csv"),  # one row, which is quoted
    ],
)
def test_what_a_table_does_not_say_for_sure_is_not_computed(question: str, table: str, title: str) -> None:
    assert computed(question, table, title) is None


PHONES = """Model,Price EUR,Battery hours,Weight g
Orbit 5,549,31,189
Plume,299,21,168
Nadir X,432,24,177
Vanta Pro,889,29,203
"""


@pytest.mark.parametrize(
    ("question", "measure", "value", "models"),
    [
        ("Which ones cost less than 500?", "rows", 2, ["Plume", "Nadir X"]),
        ("which weigh at least 189 g", "rows", 2, ["Orbit 5", "Vanta Pro"]),
        ("how many cost more than 400", "rows", 3, ["Orbit 5", "Nadir X", "Vanta Pro"]),
        ("average price of phones under 500", "mean", 365.5, ["Plume", "Nadir X"]),
        ("What's the average price?", "mean", 542.25, ["Orbit 5", "Plume", "Nadir X", "Vanta Pro"]),
    ],
)
def test_a_limit_chooses_the_rows_whose_figure_meets_it(question: str, measure: str, value: float, models: list[str]) -> None:
    english, near = languages()["en"], {"Price EUR": 0.3, "Battery hours": 0.1, "Weight g": 0.25}
    rows = spell_tables(PHONES).splitlines()
    found = compute(question, telling(english.tokens(question), english), rows, "phones.csv", english, near)
    assert found is not None
    names = [row.removeprefix("Model: ").partition(";")[0] for row in found.rows]
    assert (found.measure, found.value, names) == (measure, value, models)


@pytest.mark.parametrize("question", ["average price of phones under 100", "total price under 100", "which cost less than 100"])
def test_nothing_below_a_limit_is_no_figure(question: str) -> None:
    english = languages()["en"]
    rows = spell_tables(PHONES).splitlines()
    assert (
        compute(question, telling(english.tokens(question), english), rows, "phones.csv", english, {"Price EUR": 0.3}) is None
    )
