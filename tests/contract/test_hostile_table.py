"""The table of hostile inputs says what the tests use."""

from __future__ import annotations

from tests.hostile import PATH, table


def test_the_table_of_hostile_inputs_is_the_one_of_the_tests() -> None:
    assert PATH.read_text(encoding="utf-8") == table(), "run `python -m tests.hostile`"
