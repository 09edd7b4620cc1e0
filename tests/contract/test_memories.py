"""What the contracts of memory take for a moment, and for yes or no."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from phronesis_contracts.memories import AddMemories, SearchMemories

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


@pytest.mark.parametrize("value", ["2026-03-04T12:00:00Z", "2026-03-04 13:00+01:00", NOON])
def test_a_moment_is_written_with_its_time_zone(value: object) -> None:
    assert SearchMemories.model_validate({"query": "x", "as_of": value}).as_of == NOON


@pytest.mark.parametrize("value", [0, 1.5, True, "1772625600", "-1.5", "2026-03-04T12:00:00"])
def test_a_number_is_no_moment_and_neither_is_a_time_without_its_zone(value: object) -> None:
    with pytest.raises(ValidationError):
        SearchMemories.model_validate({"query": "x", "as_of": value})


@pytest.mark.parametrize("value", [0, 1, "true", "no"])
def test_whether_to_wait_is_said_by_true_or_false_alone(value: object) -> None:
    with pytest.raises(ValidationError):
        AddMemories.model_validate({"memories": [{"text": "x"}], "wait": value})
