"""What a deliverable is held against: the figures of a model's report, and what an answer says when it is asked for again."""

from __future__ import annotations

from typing import Any

import pytest

from phronesis_orchestrator.tasks.deliver import unsupported_figures
from phronesis_orchestrator.tasks.ports import GoalKnowledge, StepResult, ToolResult, WrittenReport

from .stage import step


def given(answer: dict[str, Any]) -> GoalKnowledge:
    """A goal of which one step gave something."""
    return GoalKnowledge("Look at it", (), worked=(StepResult(step("a", 1), ToolResult(True, "", answer)),))


@pytest.mark.parametrize(
    ("text", "strays"),
    [
        ("1. Oil\n2. Salt\n3. Rope", set()),
        ("It is due on 4 December 2023.", set()),
        ("It is due on 5 December 2023.", {"5"}),
        ("It costs 77 pounds.", {"77"}),
    ],
)
def test_a_figure_that_no_step_gave_is_told_from_the_numbers_of_a_list_and_from_dates(text: str, strays: set[str]) -> None:
    found = unsupported_figures(WrittenReport(title="T", text=text), given({"due": "2023-12-04T00:00:00Z"}))
    assert found == strays
