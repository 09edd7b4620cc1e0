"""The figures of an evaluation, and that its held half stays unseen."""

from __future__ import annotations

import json

import pytest

from evals.client import Reply
from evals.items import Item, Turn
from evals.report import calibration_error, failures, markdown, summary, wilson
from evals.run import Record


def record(half: str, outcome: str, confidence: float | None = 0.9, place: int = 0) -> Record:
    turns = (Turn(f"a question of the {half} half", {"number": 1}), Turn("and then?", {"number": 2}))
    item = Item(f"{half}-1", "portfolio", half, "en", ("count",), ("noor",), turns)
    return Record(item, "noor", place, "number", outcome, Reply("an answer", confidence=confidence, seconds=0.5))


def test_calibration_compares_confidence_with_what_was_right_in_bins_of_equal_mass() -> None:
    assert calibration_error([]) is None
    assert calibration_error([(1.0, True)] * 20) == 0
    assert calibration_error([(1.0, False)] * 20) == pytest.approx(1)
    assert calibration_error([(0.5, n % 2 == 0) for n in range(20)]) == pytest.approx(0)
    assert calibration_error([(0.2, False)] * 10 + [(0.9, True)] * 10) == pytest.approx(0.15)


def test_the_interval_of_a_share_is_wilsons() -> None:
    assert wilson(0, 0) == (0, 1)
    assert wilson(85, 100) == (pytest.approx(0.767, abs=0.001), pytest.approx(0.907, abs=0.001))


def test_failures_are_shown_of_the_tuning_half_alone() -> None:
    told = [json.loads(line) for line in failures([record("tune", "wrong"), record("held", "wrong")]).splitlines()]
    assert [one["id"] for one in told] == ["tune-1"]
    records = [record("tune", "right"), record("held", "wrong"), record("held", "right", None, 1)]
    shown = markdown(records, ["head"]) + summary(records)
    assert "question of the" not in shown
    assert "| portfolio, held | 2 | 50.0 % |" in shown
    assert "follow-up" in shown
