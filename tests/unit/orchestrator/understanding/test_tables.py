"""Rows of tables in texts, spelled out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_orchestrator.understanding.tables import figures_of, is_row, spell_tables


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
