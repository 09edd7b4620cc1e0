"""Goals without a model: reports whose every figure is the published table's, whoever is killed on the way."""

from __future__ import annotations

from typing import Any

import pytest

from phronesis_contracts.constitution.search import SEMANTIC_SEARCH, SearchStats, SemanticFound
from phronesis_contracts.memory import Recalled
from phronesis_contracts.ontology import VOCABULARY
from phronesis_contracts.tasks import ChartBlock, NoPlan, TableBlock, TaskReport
from phronesis_contracts.twin import Level, Survey
from phronesis_orchestrator.tasks.ports import Strategy
from phronesis_orchestrator.turns.turn import LostClaim

from .portfolio import figures, surveyed, vocabulary
from .stage import BROKEN, MemoryStrategies, ScriptedPlanner, TaskStage, plan

GOAL = "Portfolio risk report for the Ministry of Defence, 2021 to 2023"
OTHERWISE = "Write a report on the risks of the MOD's projects, 2021 to 2023"
YEARS = (2021, 2022, 2023)
WORDS = vocabulary()


def portfolio(goal: str = GOAL, planner: Any = None, **more: Any) -> TaskStage:
    """A task over the portfolio."""
    nothing = SemanticFound(results=(), stats=SearchStats(total_candidates=0, returned=0, cutoff_score=0.0))
    owners = {VOCABULARY.subject: WORDS, "memory.v1.recall": Recalled(items=()), SEMANTIC_SEARCH.subject: nothing}
    stage = TaskStage(planner, goal, owners=owners, **more)
    stage.neighbours.surveyed = surveyed
    return stage


async def report_of(stage: TaskStage) -> TaskReport:
    await stage.run()
    assert stage.state.report is not None
    return stage.state.report


def table(report: TaskReport, title: str) -> dict[Any, dict[str, Any]]:
    """The rows of a table by what stands in their first column."""
    found = next(block for block in report.blocks if isinstance(block, TableBlock) and block.title == title)
    return {row[0]: dict(zip(found.columns, row, strict=True)) for row in found.rows}


@pytest.mark.parametrize(
    "goal",
    [
        GOAL,
        "Write a risk report on the projects of the Ministry of Defence, 2021 to 2023",
        "I need a short status report about the MOD projects of 2021, 2022 and 2023, please",
    ],
)
async def test_the_figures_of_a_report_are_those_of_the_published_table(goal: str) -> None:
    report = await report_of(portfolio(goal))
    ratings = table(report, "Projects by rating")
    for year, known in figures("MOD", YEARS).items():
        there = {name: n for name, n in ratings[year].items() if name != "Year" and n}
        assert there == dict(known["ratings"])
        assert sum(there.values()) == known["projects"]
        assert f"projects in {year}: **{known['projects']}**" in report.text
    assert (report.reasoner, report.document_id) == ("extractive", "doc-1")


async def test_totals_and_what_is_missing_are_those_of_the_published_table() -> None:
    report = await report_of(portfolio())
    money, missing = table(report, "Totals by year"), table(report, "What is not published")
    for year, known in figures("MOD", YEARS).items():
        assert money[year]["whole-life cost, together (£ million)"] == known["cost"]
        assert money[year]["whole-life cost known of"] == known["published"]
        assert money[year]["forecast, together (£ million)"] == known["forecast"]
        assert missing[year]["end date"] == known["without end"]


async def test_a_report_has_charts_and_says_that_rules_wrote_it_and_that_the_scale_changed() -> None:
    report = await report_of(portfolio())
    kinds = {block.chart.type.value for block in report.blocks if isinstance(block, ChartBlock)}
    assert kinds == {"column", "line"}
    assert "no language model was used" in report.text
    assert "Amber/Green, Amber/Red was last used in 2021" in report.text
    assert report.title == GOAL


async def test_a_report_over_years_alone_is_over_all_that_is_judged() -> None:
    report = await report_of(portfolio("Risk report on all projects, 2022"))
    assert list(table(report, "Projects by rating")) == [2022]
    everyone = await surveyed_in(2022)
    assert f"projects in 2022: **{everyone}**" in report.text


async def surveyed_in(year: int) -> int:
    """How many projects there are in a year."""
    return (await surveyed(Survey(type="EntityProject", years=(year,), level=Level.L3))).total


async def test_a_report_that_is_counted_again_scores_full_and_is_verified_by_the_checker() -> None:
    stage = portfolio()
    await stage.run()
    assert stage.state.score == 1.0
    assert stage.state.verified is not None
    assert (stage.state.verified.by, stage.state.verified.accepted) == ("checker", True)


@pytest.mark.parametrize("at", range(1, 31, 2))
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
    told = next(one for name, one in first.strategies.log if name == "record")
    known = MemoryStrategies((Strategy("s1", GOAL, told.approach, ("survey_twin",)),))
    second, without = portfolio(OTHERWISE, strategies=known), portfolio(OTHERWISE)
    reports = [await report_of(second), await report_of(without)]
    assert (told.score, len(second.state.steps)) == (1.0, len(without.state.steps) - 1)
    assert table(reports[0], "Projects by rating") == table(reports[1], "Projects by rating")
    assert second.strategies.log[0] == ("outcome", (("s1",), True))


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        ("Delete all projects that are rated Red", "This can be done: “List projects that are rated Red”"),
        ("Draft an e-mail to my colleagues that I am quitting the project", "This can be done: “List projects”"),
        ("Translate the risk register of my programme into French", "nothing that this agent has a tool for"),
        ("Report on the projects of 2022 in French", "nothing is delivered “in French”"),
        (
            "List the projects rated Red in 2022 and email them to the board",
            "This can be done: “List the projects rated Red in 2022”",
        ),
        ("Write a poem about the sea", "“write a poem about the sea”"),
        ("List the unicorns of 2022", "unicorns"),
        ("Goodness, what a mess", "not known"),
    ],
)
async def test_a_goal_of_which_a_part_cannot_be_done_is_declined_whole_with_what_can(goal: str, said: str) -> None:
    stage = portfolio(goal)
    with pytest.raises(NoPlan) as declined:
        await stage.run()
    assert said in declined.value.detail
    assert stage.remembered == []


async def test_the_goal_that_is_named_in_place_of_one_can_be_reached() -> None:
    with pytest.raises(NoPlan) as declined:
        await portfolio("Delete all projects that are rated Red").run()
    near = declined.value.detail.partition("This can be done: “")[2].removesuffix("”")
    stage = portfolio(near)
    await stage.run()
    assert stage.state.score == 1.0


async def test_a_figure_that_could_not_be_read_is_left_out_and_the_score_says_so() -> None:
    stage = portfolio()

    async def without_ratings(request: Survey) -> Any:
        if any(one.property == "rating" for one in request.group_by):
            raise BROKEN
        return await surveyed(request)

    stage.neighbours.surveyed = without_ratings
    report = await report_of(stage)
    assert stage.state.score is not None
    assert stage.state.score <= 0.3
    assert stage.state.verified is None
    assert "of them with the rating" not in report.text
    assert "not found out" in report.text


async def test_a_goal_of_several_parts_is_answered_part_by_part() -> None:
    report = await report_of(portfolio("Count the projects of 2022; then list the projects rated Red in 2023 as a table"))
    counted = await surveyed_in(2022)
    assert "## Count the projects of 2022" in report.text
    assert f"{counted}" in report.text
    assert next(block for block in report.blocks if isinstance(block, TableBlock)).rows


async def test_a_failing_model_falls_back_to_the_rules_that_cover_the_goal() -> None:
    stage = portfolio(planner=ScriptedPlanner(plans=[BROKEN, BROKEN]))
    report = await report_of(stage)
    assert (report.reasoner, stage.state.score) == ("extractive", 1.0)
    assert "model" in stage.running.degraded


async def test_a_small_model_is_not_asked_for_what_the_rules_cover() -> None:
    planner = ScriptedPlanner()
    report = await report_of(portfolio(planner=planner, rules_alone=True))
    assert (report.reasoner, planner.asked) == ("extractive", [])


async def test_a_small_model_is_not_asked_for_what_the_rules_decline_either() -> None:
    planner = ScriptedPlanner(plans=[plan("a")])
    with pytest.raises(NoPlan):
        await portfolio("Write a poem about the sea", planner=planner, rules_alone=True).run()
    assert planner.asked == []
