"""The tables of thinking, experience, the journal and tasks: each figure beside its aim, and what equal shares come to."""

from __future__ import annotations

import pytest

from bench import cognition, experience, journal, tasks
from bench.__main__ import SECTIONS
from bench.planned import PLAN
from phronesis_orchestrator.tasks.ports import check_plan


@pytest.mark.req("V-005", "V-074")
async def test_thinking_is_measured_with_its_aims_also_in_a_quick_run() -> None:
    rows = [line.split(" | ") for line in await cognition.section(quick=True) if line.startswith("| ")]
    aims = {row[0].removeprefix("| ").split(",")[0]: row[-1].removesuffix(" |") for row in rows if "under" in row[-1]}
    assert aims == {"tone": "under 0.2", "reasoning context": "under 1", "history of 200 turns": "under 1"}


@pytest.mark.parametrize(
    ("asked", "aim"),
    [(experience.EPISODES, "under 25"), (experience.STRATEGIES, "under 25"), ("`memory_query` style", "under 30")],
)
@pytest.mark.req("V-007", "V-004")
def test_what_is_recalled_has_its_time_without_and_with_the_embedding_beside_its_aim(asked: str, aim: str) -> None:
    assert (
        experience.row(100_000, asked, [0.01] * 20, [0.02] * 20) == f"| 100,000 | {asked} | 10.0 | 10.0 | 20.0 | 20.0 | {aim} |"
    )


def test_what_has_no_vector_has_no_time_with_an_embedding() -> None:
    assert (
        experience.row(10, "figures of all tools", [0.01] * 20, []) == "| 10 | figures of all tools | 10.0 | 10.0 | — | — |  |"
    )


def test_the_overhead_of_a_step_is_what_it_takes_longer_than_its_call_at_the_median() -> None:
    taken = journal.Taken([3.0] * 19 + [90.0], [1.0] * 20)
    assert journal.row("a step", taken) == "| a step | 3.00 | 85.65 | 2.00 | under 5 |"


def test_the_measured_plan_has_twenty_steps_and_can_be_worked_off() -> None:
    assert len(check_plan(PLAN, ("survey_twin",)).steps) == 20


def test_with_equal_shares_a_small_tenant_ends_when_each_of_them_has_had_as_many_tasks() -> None:
    ran = tasks.Ran(10.0, {"loud": [1.0] * 70, "second": [1.0] * 10, "third": [1.0] * 10, "fourth": [1.0] * 10}, 1.0)
    assert tasks.with_equal_shares(ran) == {"loud": 10.0, "second": 4.0, "third": 4.0, "fourth": 4.0}


def test_a_tenant_that_is_starved_is_told() -> None:
    fair = {"loud": [9.0] * 70, "second": [4.0] * 10, "third": [4.0] * 10}
    starved = fair | {"fourth": [9.9] * 10}
    alone = tasks.Ran(1.0, {"alone": [1.0] * 10}, 1.0)
    rows = tasks.table(alone, tasks.Ran(10.0, starved, 200.0), 150.0)
    assert [row for row in rows if "**no**" in row] == ["| fourth | 10 | 9.9 | 9.9 | 4.0 | 2.48 | **no** |"]
    assert "| steps a second, all tenants at once | 200 |" in rows


def test_every_speed_that_is_promised_has_its_section() -> None:
    assert {"cognition", "experience", "journal", "tasks"} <= set(SECTIONS)
