"""Tasks without a model: reports whose every figure is the published table's, whoever is killed on the way."""

from __future__ import annotations

from typing import Any

import pytest

from phronesis_contracts.constitution.insight import Contradiction, ContradictionsFound
from phronesis_contracts.constitution.paths import DecisionsFound, DueFound
from phronesis_contracts.memory import Recalled
from phronesis_contracts.tasks import NoPlan, TaskReport
from phronesis_contracts.twin import Entities, Entity
from phronesis_orchestrator.tasks.ports import Strategy
from phronesis_orchestrator.tasks.rules.portfolio import Asked, understood
from phronesis_orchestrator.turns.turn import LostClaim

from .portfolio import figures, surveyed
from .stage import MemoryStrategies, TaskStage

GOAL = "Portfolio risk report for the Ministry of Defence, 2021 to 2023"
OTHERWISE = "How much of what the MOD builds is rated as being in doubt? Write up its projects between 2021 and 2023."
YEARS = (2021, 2022, 2023)


def portfolio(goal: str = GOAL, **more: Any) -> TaskStage:
    stage = TaskStage(None, goal, **more)
    stage.neighbours.surveyed = surveyed
    mod = Entity(type="SectorGovEntity", id="MOD", name="MOD", level="L1", years=YEARS, score=1.0)
    stage.neighbours.owners["graph.v1.entities.find"] = Entities(entities=(mod,))
    stage.neighbours.owners["memory.v1.recall"] = Recalled(items=())
    return stage


async def report_of(stage: TaskStage) -> TaskReport:
    await stage.run()
    assert stage.state.report is not None
    return stage.state.report


def rows(report: TaskReport, title: str) -> dict[int, dict[str, Any]]:
    data = next(chart.data for chart in report.charts if chart.title == title)
    return {row["year"]: row for row in data if isinstance(row, dict)}


async def test_the_figures_of_the_risk_report_are_those_of_the_published_table() -> None:
    report = await report_of(portfolio())
    published = figures("MOD", YEARS)
    ratings, money = rows(report, "Projects by rating"), rows(report, "Money by year")
    for year, known in published.items():
        there = {name: n for name, n in ratings[year].items() if name not in ("year", "projects") and n}
        assert (ratings[year]["projects"], there) == (known["projects"], dict(known["ratings"]))
        assert money[year]["whole-life cost (£ million)"] == known["cost"]
        assert money[year]["forecast less baseline (£ million)"] == known["variance"]
        assert f"{known['without end']:,} without an end date" in report.text
    assert (report.reasoner, report.document_id) == ("extractive", "doc-1")


async def test_the_report_has_charts_and_says_that_rules_wrote_it() -> None:
    report = await report_of(portfolio())
    assert {chart.type.value for chart in report.charts} == {"table", "column", "line"}
    assert "no language model was used" in report.text
    assert report.title == "Portfolio risk report: Ministry of Defence, 2021 to 2023"


async def test_the_report_is_worked_off_in_three_waves() -> None:
    stage = portfolio()
    await stage.run()
    assert (stage.state.waves, stage.state.score) == (3, 1.0)


@pytest.mark.parametrize("at", range(1, 26))
async def test_wherever_it_is_killed_the_report_is_the_same(at: int) -> None:
    whole = await report_of(portfolio())
    stage = portfolio()
    kept, writes = stage.journal.result, 0

    async def dying(*given: Any, **more: Any) -> None:
        nonlocal writes
        writes += 1
        if writes == at:
            raise LostClaim("killed")
        await kept(*given, **more)

    stage.journal.result = dying  # type: ignore[method-assign]
    try:
        report = await report_of(stage)
    except LostClaim:
        report = await report_of(stage)
    assert report == whole


@pytest.mark.req("V-126")
async def test_a_second_task_of_the_kind_makes_fewer_steps_with_the_first_ones_strategy_and_not_without() -> None:
    first = portfolio()
    await first.run()
    await first.judged(accepted=True)
    told = first.strategies.log[-1][1]
    known = MemoryStrategies((Strategy("s1", GOAL, told.approach, told.tools_used),))
    second, without = portfolio(OTHERWISE, strategies=known), portfolio(OTHERWISE)
    reports = [await report_of(second), await report_of(without)]
    assert (told.score, told.tools_used) == (1.0, ("survey_twin",))
    assert [len(stage.state.steps) for stage in (first, second, without)] == [9, 7, 9]
    assert reports[0] == reports[1]
    await second.judged(accepted=True)
    assert second.strategies.log[0] == ("outcome", (("s1",), True))


@pytest.mark.parametrize(
    ("goal", "asked"),
    [
        (GOAL, Asked("MOD", YEARS)),
        (OTHERWISE, Asked("MOD", YEARS)),
        ("risk report on all projects in 2022", Asked(None, (2022,))),
        ("ratings of the Home Office's projects", Asked("HO", (2020, 2021, 2022, 2023))),
        ("Write a poem about the sea", None),
        ("ho ho, what a risk", None),
    ],
)
def test_a_goal_is_understood_by_department_and_years(goal: str, asked: Asked | None) -> None:
    assert understood(goal) == asked


async def test_a_goal_that_no_rule_understands_ends_typed_before_anything_is_done() -> None:
    stage = TaskStage(None, "Write a poem about the sea")
    with pytest.raises(NoPlan):
        await stage.run()
    assert stage.made == []


async def test_the_constitution_report_lists_open_decisions_overdue_tasks_and_contradictions() -> None:
    stage = TaskStage(None, "Report on the constitution: open decisions, overdue tasks, rules broken")
    mention = {"type": "principle", "layer": "foundation"}
    node = {"layer": "tactics", "createdAt": "2026-01-01T00:00:00Z"}
    owners = stage.neighbours.owners
    owners["graph.v1.constitution.decisions"] = DecisionsFound.model_validate(
        {
            "decisions": [
                {"id": "d1", "type": "decision", "title": "Move the archive", "status": "proposed", **node},
                {"id": "d2", "type": "decision", "title": "Buy a boat", "status": "done", **node},
            ],
            "stats": {"totalNodes": 2},
        }
    )
    owners["graph.v1.constitution.due"] = DueFound.model_validate(
        {"items": [{"id": "t1", "type": "task", "title": "Call Ann", "dueDate": "2026-01-01", **node}], "total": 1}
    )
    pair = Contradiction.model_validate(
        {
            "one": {"id": "p1", "title": "Be quick", **mention},
            "other": {"id": "p2", "title": "Be slow", **mention},
            "score": 0.9,
            "because": "speed",
        }
    )
    owners["memory.v1.constitution.contradictions"] = ContradictionsFound(pairs=(pair,))
    report = await report_of(stage)
    assert "## Open decisions (1)\n\n- Move the archive [d1]" in report.text
    assert "## Overdue tasks (1)\n\n- Call Ann [t1], due 2026-01-01" in report.text
    assert "- Be quick [p1] and Be slow [p2]: speed" in report.text
