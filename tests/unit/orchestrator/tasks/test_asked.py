"""What a goal asks for is all delivered, column by column and figure by figure; or the goal is declined."""

from __future__ import annotations

import pytest

from phronesis_contracts.tasks import ChartBlock, FigureRow, FiguresBlock, NoPlan, TableBlock
from phronesis_contracts.twin import Survey, Surveyed
from phronesis_orchestrator.tasks import goals, runner
from phronesis_orchestrator.tasks.deliver import PartPlan, find_lacking
from phronesis_orchestrator.tasks.goals import goal_words, read_goal
from phronesis_orchestrator.tasks.ports import AskedThing, FoundThing, QuestionAnswer

from .bakery import LATE, Bakery, refusal, report_on, rows
from .portfolio import surveyed
from .test_rules import portfolio, report_of

SAY = goal_words()["en"].sentence


async def test_a_list_has_a_column_for_each_property_and_linked_thing_that_is_asked() -> None:
    found = rows(await report_on("List the overdue tasks with their owner, due date and project"))
    assert set(found) == {"Order fire bricks", "Buy mailing crates"}
    bricks = found["Order fire bricks"]
    assert (bricks["Owner"], bricks["Due date"], bricks["Project"]) == ("Karl Brandt", LATE, "Second stone oven")


@pytest.mark.parametrize(
    "goal",
    [
        "Which tasks are overdue? I'd like to see the owner and the due date next to each one.",
        "List the overdue tasks. Give me owner and due date as well.",
        "Which tasks are past their due date? I need owner and due date for each.",
        "Dear colleagues, could you list the overdue tasks with owner and due date? A table would be lovely.",
        "I need two things for Friday's meeting. First the overdue tasks with owner and due date.",
        "I'm writing the minutes. List the overdue tasks with owner and due date.",
    ],
)
async def test_what_a_second_sentence_asks_of_each_thing_is_a_column_of_the_list(goal: str) -> None:
    found = rows(await report_on(goal))
    assert {name: (row["Owner"], row["Due date"]) for name, row in found.items()} == {
        "Order fire bricks": ("Karl Brandt", LATE),
        "Buy mailing crates": ("Ines Okafor", LATE),
    }


async def test_what_a_question_asks_at_its_end_of_each_thing_is_a_column() -> None:
    found = rows(await report_on("Tell me which tasks are overdue, and when each was due."))
    assert {name: row["Due date"] for name, row in found.items()} == {"Order fire bricks": LATE, "Buy mailing crates": LATE}
    found = rows(await report_on("How many tasks are overdue, and whose are they?"))
    assert {row["Owner"] for row in found.values()} == {"Karl Brandt", "Ines Okafor"}


@pytest.mark.parametrize(("end", "falls"), [("", False), (", earliest first", False), (", the latest first", True)])
async def test_tasks_by_their_due_date_are_a_list_in_that_order(end: str, falls: bool) -> None:
    days = [row["Due date"] for row in rows(await report_on(f"Open tasks by due date{end}")).values()]
    dated = [day for day in days if day != "—"]
    assert (len(dated) > 2, dated, days[len(dated) :]) == (True, sorted(dated, reverse=falls), ["—"] * (len(days) - len(dated)))


async def test_the_best_of_something_is_declined_where_nobody_says_by_which_measure() -> None:
    with pytest.raises(NoPlan, match="best"):
        await portfolio("Who is our best ministry?").run()


async def test_a_property_that_nothing_on_record_has_is_said_to_be_missing() -> None:
    report = await report_on("List the insights with their owner")
    assert "No owner is on record" in report.text


@pytest.mark.parametrize("goal", ["Budget of the projects by owner", "Show me each project's budget by owner"])
async def test_what_is_asked_by_something_is_told_by_it(goal: str) -> None:
    found = rows(await report_on(goal))
    assert {owner: row["Total budget"] for owner, row in found.items()} == {"Karl Brandt": 30_000, "Ines Okafor": 4_500}


@pytest.mark.parametrize(
    "goal",
    [
        "For every project the open tasks and the hours that they add up to",
        "For each project: how many open tasks and their total effort",
        "Number of open tasks and total effort per project",
    ],
)
async def test_for_each_thing_there_are_all_figures_that_are_asked(goal: str) -> None:
    found = rows(await report_on(goal))
    figures = {name: (row["Number of tasks"], row["Total effort (hours)"]) for name, row in found.items()}
    assert figures == {"Second stone oven": (2, 7), "Rye bread for hotels": (1, 1.5)}
    assert "Order fire bricks" in found["Second stone oven"]["Tasks"]


async def test_a_chart_draws_the_figure_that_was_asked() -> None:
    report = await report_on("Chart the total effort by owner")
    [chart] = [block.chart for block in report.blocks if isinstance(block, ChartBlock)]
    assert "effort" in str(chart.model_dump())
    assert {row["Owner"]: row["Total effort (hours)"] for row in chart.data}["Ines Alvarez"] == 5


async def test_what_a_report_is_to_tell_of_each_thing_is_told_of_all_that_it_is_about() -> None:
    report = await report_on("Report on the tasks, projects and insights with their owner")
    tables = [block for block in report.blocks if isinstance(block, TableBlock)]
    assert len(tables) > 2
    assert all("Owner" in table.columns for table in tables)


@pytest.mark.parametrize(
    ("goal", "said"),
    [("Which open task is due first?", "the earliest of"), ("Which project has the largest budget?", "budget 30,000")],
)
async def test_the_one_that_comes_first_is_told_with_what_it_comes_first_by(goal: str, said: str) -> None:
    assert said in (await report_on(goal)).text


async def test_a_later_part_may_speak_of_them() -> None:
    report = await report_on("List the overdue tasks with their owner, and count them")
    assert "2 tasks overdue." in report.text


async def test_things_that_are_compared_are_told_with_their_own_properties_too() -> None:
    goal = "Compare the projects Second stone oven and Rye bread for hotels: owner, budget, number of open tasks"
    found = rows(await report_on(goal))
    oven = found["Second stone oven"]
    assert (oven["Owner"], oven["Number of tasks"]) == ("Karl Brandt", 2)


async def test_things_are_counted_by_two_properties_at_once() -> None:
    report = await report_on("Number of tasks by owner and status")
    table = next(block for block in report.blocks if isinstance(block, TableBlock))
    assert table.columns[:3] == ("Owner", "Status", "Number of tasks")
    assert ("Ines Okafor", "done", 1) in {row[:3] for row in table.rows}


@pytest.mark.parametrize(
    ("goal", "names"),
    [
        ("Compare the tasks of Karl Brandt and Ines Okafor: number, total effort", ("Karl Brandt", "Ines Okafor")),
        (
            "Compare the tasks of Second stone oven and Rye bread for hotels: number and total effort",
            ("Second stone oven", "Rye bread for hotels"),
        ),
        ("Compare done tasks and open tasks: number, total effort", ("done tasks", "open tasks")),
    ],
)
async def test_sets_are_compared_by_every_figure_that_is_asked(goal: str, names: tuple[str, str]) -> None:
    found = rows(await report_on(goal))
    assert set(found) == set(names)
    assert all({"Number of tasks", "Total effort (hours)"} <= set(row) for row in found.values())


async def test_each_of_several_figures_says_what_it_is_and_of_what() -> None:
    report = await report_on("Average budget of the projects and total effort of the open tasks")
    figures = {row.label: row.value for block in report.blocks if isinstance(block, FiguresBlock) for row in block.rows}
    assert figures["Average budget of projects"] == 17_250
    assert figures["Total effort (hours) of tasks"] == 8.5


async def test_only_the_greatest_are_listed_where_they_are_asked_for() -> None:
    found = rows(await report_on("What are the two longest tasks?"))
    assert set(found) == {"Design the labels", "Measure the flue"}


async def test_figures_of_the_data_are_told_for_each_set_and_group() -> None:
    stage = portfolio("Compare the projects rated Red and Amber in 2022: number, average whole-life cost, total forecast")
    found = rows(await report_of(stage))
    assert {name: row["Number of projects"] for name, row in found.items()} == {"Red": 27, "Amber": 170}
    assert "Average whole-life cost (£ million)" in found["Red"]
    assert stage.state.score == 1.0
    assert stage.state.verified is not None
    found = rows(await report_of(portfolio("For each rating: how many projects and their total whole-life cost in 2022")))
    assert found["Red"]["Number of projects"] == 27


async def test_a_list_of_the_data_tells_what_each_thing_is_joined_to() -> None:
    stage = portfolio("List the projects rated Red in 2022 with their whole-life cost and department")
    found = rows(await report_of(stage))
    assert len(found) == 27
    clyde = found["Clyde Infrastructure"]
    assert (clyde["Whole-life cost (£ million)"], clyde["Government entity"]) == (1585, "MOD")
    assert (stage.state.score, stage.state.verified is not None) == (1.0, True)


async def test_a_list_stands_in_the_order_that_its_goal_says_at_its_end() -> None:
    goal = "List the projects rated Red in 2022 with their whole-life cost and category, the highest whole-life cost first"
    costs = [row["Whole-life cost (£ million)"] for row in rows(await report_of(portfolio(goal))).values()]
    known = [cost for cost in costs if isinstance(cost, int | float)]
    assert (len(costs), known) == (27, sorted(known, reverse=True))
    goal = goal.replace("highest", "lowest")
    costs = [row["Whole-life cost (£ million)"] for row in rows(await report_of(portfolio(goal))).values()]
    known = [cost for cost in costs if isinstance(cost, int | float)]
    assert (len(costs), known) == (27, sorted(known))


async def test_two_counts_of_one_question_are_told_apart() -> None:
    goal = "How many projects rated Red were there in 2022, and how many rated Green?"
    found = rows(await report_of(portfolio(goal)))
    assert {name: list(row.values())[1] for name, row in found.items()} == {"Red": 27, "Green": 24, "Red, Green": 51}


async def test_a_report_tells_the_figures_that_are_asked_of_each_group() -> None:
    goal = "Report on the projects of 2022 by rating with the number of projects and the average whole-life cost of each rating"
    found = rows(await report_of(portfolio(goal)))
    assert found["Red"]["Number of projects"] == 27
    assert "Average whole-life cost (£ million)" in found["Red"]


@pytest.mark.parametrize("tail", ["with the total", "and give the grand total as well"])
async def test_figures_by_group_have_a_last_row_for_all_where_it_is_asked(tail: str) -> None:
    report = await report_of(portfolio(f"Total whole-life cost of the projects of 2022 by rating, {tail}"))
    found = rows(report)
    *_, last = found
    costs = [row["Total whole-life cost (£ million)"] for name, row in found.items() if name != last]
    assert last == "In all"
    assert found[last]["Number of projects"] == sum(row["Number of projects"] for name, row in found.items() if name != last)
    assert found[last]["Total whole-life cost (£ million)"] == pytest.approx(sum(cost for cost in costs if cost), abs=0.1)


async def test_a_total_that_no_table_of_figures_tells_declines_the_goal() -> None:
    assert "In all" in await refusal("List the overdue tasks with their owner, and give the grand total as well")


async def test_a_ratio_of_two_figures_is_declined() -> None:
    with pytest.raises(NoPlan, match="forecast per baseline"):
        await portfolio("Forecast per baseline of Dreadnought in 2022").run()


async def test_a_ranking_whose_goal_says_which_end_comes_first_has_all_things() -> None:
    goal = "Rank the projects rated Red in 2022 by whole-life cost, lowest first"
    costs = [row["Whole-life cost (£ million)"] for row in rows(await report_of(portfolio(goal))).values()]
    known = [cost for cost in costs if isinstance(cost, int | float)]
    assert (len(costs), known) == (27, sorted(known))


async def test_the_greatest_are_listed_though_the_goal_says_again_that_the_greatest_come_first() -> None:
    goal = "The five projects with the highest whole-life cost in 2022, highest first"
    again, once = await report_of(portfolio(goal)), await report_of(portfolio(goal.partition(",")[0]))
    assert list(rows(again)) == list(rows(once))


async def test_two_things_of_the_data_are_compared_by_what_the_goal_names() -> None:
    found = rows(await report_of(portfolio("Compare Dreadnought with Crossrail Programme by whole-life cost and rating")))
    assert set(found) == {"DREADNOUGHT", "Crossrail Programme"}
    assert set(found["DREADNOUGHT"]) == {"Name", "Whole-life cost (£ million)", "Rating"}


async def test_things_of_the_data_that_are_listed_for_each_of_something_are_named() -> None:
    found = rows(await report_of(portfolio("For every department list the projects rated Red in 2022")))
    assert len(found) == 27
    assert found["Clyde Infrastructure"]["Government entity"] == "MOD"


async def test_a_name_in_the_data_that_several_have_is_declined_with_all_of_them() -> None:
    with pytest.raises(NoPlan, match="“10,000 Additional Prison Places”") as declined:
        await portfolio("Whole-life cost of Prison in 2022").run()
    assert "Say the whole name" in declined.value.detail


async def test_figures_of_the_data_of_two_sets_that_are_named_together_are_told_apart() -> None:
    found = rows(await report_of(portfolio("Number and total whole-life cost of the projects rated Red and Green in 2022")))
    assert {name: list(row.values())[1] for name, row in found.items()} == {"Red": 27, "Green": 24, "Red, Green": 51}


async def test_a_figure_that_counted_again_is_another_caps_the_score() -> None:
    stage = portfolio("Average whole-life cost and total forecast of the projects of 2022")
    asked = 0

    async def changing(request: Survey) -> Surveyed:
        nonlocal asked
        asked += request.of == "year_forecast"
        found = await surveyed(request)
        again = asked > 1 and request.of == "year_forecast"
        return found.model_copy(update={"rows": tuple({**row, "value": 1.0} for row in found.rows)}) if again else found

    stage.neighbours.surveyed = changing
    await stage.run()
    assert stage.state.score is not None
    assert stage.state.score <= 0.3


PART = PartPlan(said="List the loaves with their baker and weight", verb="list", steps=("1.ask",))


def answered(*asked: str, **of: str | None) -> QuestionAnswer:
    """An answer that lists two loaves, of each of which something is told."""
    items = tuple(FoundThing(id=id, type="loaf", title=id, asked=of) for id in ("a", "b"))
    things = tuple(AskedThing(words=one, labels=(one,)) for one in asked)
    return QuestionAnswer(text="2 loaves:\n- a\n- b", read="constitution", total=2, items=items, asked=things)


@pytest.mark.parametrize(
    ("answer", "lost"),
    [
        (answered("baker", "weight", baker="Jo", weight="2"), []),
        (answered("baker", "weight", weight="2"), ["baker"]),
        (answered("baker", "weight").model_copy(update={"lacking": ("baker", "weight")}), []),
        (answered("baker").model_copy(update={"left_out": ("flour",)}), ["flour", "baker"]),
        (answered("total weight").model_copy(update={"figures": (FigureRow(label="Total weight of loaves", value=2),)}), []),
        (answered("baker").model_copy(update={"empty": True, "items": (), "total": 0}), []),
    ],
)
def test_what_stands_in_no_column_and_no_label_is_found_lacking(answer: QuestionAnswer, lost: list[str]) -> None:
    assert find_lacking(PART, answer, SAY) == lost


async def test_a_deliverable_without_what_was_asked_scores_at_most_0_3_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(goals, "find_lacking", lambda *given: [])  # the plan overlooks it
    monkeypatch.setattr(runner, "ASKED", "elsewhere")  # and what was asked of each thing is lost on the way
    stage = Bakery().task("List the overdue tasks with their owner")
    await stage.run()
    assert stage.state.score is not None
    assert stage.state.score <= 0.3
    assert stage.state.verified is None
    assert stage.state.report is not None
    assert "Asked for, and not found out: owner" in stage.state.report.text


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        ("Count the tasks of 1987", "there is data for"),
        ("List the milestones", "no milestones on record at all"),
        ("List the open tasks of Ines", "“Ines Alvarez”, “Ines Okafor”"),
        ("List the loaves", "what “loaves” means here is not known"),
    ],
)
async def test_a_goal_is_declined_in_plain_words_with_a_goal_that_one_can_type(goal: str, said: str) -> None:
    told = await refusal(goal)
    assert said in told
    near = told.partition("This can be done: “")[2].partition("”")[0]
    assert (await report_on(near)).blocks


@pytest.mark.parametrize("goal", ["Where was the stone oven photographed?", "What is broken at the stone oven?"])
async def test_what_is_known_of_one_thing_is_no_answer_about_words_that_name_nothing(goal: str) -> None:
    assert "means here is not known" in await refusal(goal)


async def test_what_is_given_to_a_person_is_an_order_that_no_list_carries_out() -> None:
    assert "give all" in await refusal("Give all of Ines Okafor's open tasks to Karl Brandt")


async def test_a_full_name_is_not_ambiguous() -> None:
    assert set(rows(await report_on("List the tasks of Ines Okafor"))) == {"Buy mailing crates", "Design the labels"}


async def test_a_year_without_data_is_declined_with_the_nearest_that_has_some() -> None:
    with pytest.raises(NoPlan, match="there is data for 2020–2023") as declined:
        await portfolio("List the projects of 1995").run()
    assert "“List the projects of 2020”" in str(declined.value)


async def test_a_year_without_data_is_declined_where_a_name_alone_says_of_what() -> None:
    with pytest.raises(NoPlan, match="no data for 2009"):
        await portfolio("Whole-life cost of Dreadnought in 2009 compared with now").run()


@pytest.mark.parametrize("whose", ["team", "website", "director"])
def test_whose_things_are_asked_for_is_no_reader_of_the_answer(whose: str) -> None:
    (part,) = read_goal(f"List the tasks for the {whose}")
    assert part.object == f"the tasks for the {whose}"


@pytest.mark.parametrize(
    ("goal", "verbs"),
    [
        ("Compare ships and ferries: number, total cost, average age", ["compare"]),
        ("Average cost of ships and total cost of ferries", ["find"]),
        ("Good morning, could you list the ships?", ["list"]),
        ("Hello! Count the ships, thank you", ["count"]),
        ("Dear Ines, count the ships for the supervisory board", ["count"]),
        ("Log on as Ines and note the hours", ["log on", "remember"]),
        ("Rename the task “Brief the crew” to “Brief all crews”", ["change"]),
    ],
)
def test_figures_greetings_and_quotations_are_no_parts_of_their_own(goal: str, verbs: list[str]) -> None:
    assert [one.verb for one in read_goal(goal)] == verbs
