"""How well rules find what 157 utterances state, on the half that they were tuned on and on the half that they were not."""

from __future__ import annotations

import pytest

from tests.unit.memory.utterances import read_utterances, score


@pytest.mark.parametrize(("half", "precision", "recall"), [(0, 0.99, 0.98), (1, 0.97, 0.94)])
def test_rules_find_what_is_stated_and_little_else(half: int, precision: float, recall: float) -> None:
    found = score([one for one in read_utterances() if one.half == half])
    assert found >= (precision, recall)
    assert found[1] >= recall
