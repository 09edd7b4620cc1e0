"""Reports as blocks: what steps gave is made readable, what is missing is said, and the text is the blocks' own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from phronesis_contracts.answers import Visualization, VisualizationType
from phronesis_contracts.tasks import (
    MAX_BLOCKS,
    MAX_FOUND,
    Cell,
    ChartBlock,
    FigureRow,
    FiguresBlock,
    HeadingBlock,
    LimitsBlock,
    ReportBlock,
    SourceRow,
    SourcesBlock,
    TableBlock,
    TextBlock,
)
from phronesis_orchestrator.models.parsing import parse_report
from phronesis_orchestrator.models.reasoner import Fault
from phronesis_orchestrator.tasks.ports import GoalKnowledge, StepResult, ToolResult, WrittenReport, holds_raw_data
from phronesis_orchestrator.tasks.report import (
    answer_blocks,
    describe_found,
    finish_report,
    format_cell,
    list_results,
    parse_blocks,
    render_blocks,
)

from .stage import step

MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
WORDS = st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=30)
CELLS: st.SearchStrategy[Cell] = st.one_of(st.none(), st.booleans(), st.integers(), WORDS)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=30,
)


def gave(answer: dict[str, Any], id: str = "a", text: str = "") -> StepResult:
    return StepResult(step(id, 1), ToolResult(True, text, answer, tools=("survey_twin",)))


def known(*worked: StepResult, failed: tuple[StepResult, ...] = ()) -> GoalKnowledge:
    return GoalKnowledge("What is there?", ("survey_twin",), worked=worked, failed=failed)


def shown_tables(text: str) -> list[list[list[str]]]:
    """The cells of the tables that a reader of Markdown sees."""
    tables: list[list[list[str]]] = []
    for token in MARKDOWN.parse(text):
        match token.type:
            case "table_open":
                tables.append([])
            case "tr_open":
                tables[-1].append([])
            case "th_open" | "td_open":
                tables[-1][-1].append("")
            case "inline" if tables and tables[-1] and token.level > 3:
                tables[-1][-1][-1] = "".join(child.content for child in token.children or ())
    return tables


def test_a_list_of_objects_becomes_a_table_with_readable_columns_and_its_figures() -> None:
    rows = [{"id": "P1", "name": "Bridge", "whole_life_cost": 12_500, "dueDate": None, "owner": {"name": "Ann"}}]
    assert answer_blocks(ToolResult(True, "", {"total": 41, "nextCursor": "", "rows": rows})) == [
        FiguresBlock(rows=(FigureRow(label="Total", value=41),)),
        TableBlock(title="Rows", columns=("Id", "Name", "Whole life cost", "Owner"), rows=(("P1", "Bridge", 12_500, "Ann"),)),
    ]


def test_an_answer_that_has_figures_tables_and_charts_keeps_them_and_its_sources() -> None:
    chart = Visualization(type=VisualizationType.LINE, title="L", config={"xAxis": "a", "yAxis": "b"}, data=[{"a": 1, "b": 2}])
    blocks = (
        TextBlock(text="There are **2**."),
        FiguresBlock(rows=(FigureRow(label="Projects", value=2),)),
        TableBlock(title="All", columns=("Name",), rows=(("Bridge",), ("Tunnel",))),
        ChartBlock(chart=chart),
    )
    answer = {
        "text": "There are **2**.",
        "read": "twin",
        "figures": [{"label": "Projects", "value": 2}],
        "tables": [blocks[2].model_dump(mode="json")],
        "charts": [chart.model_dump(mode="json")],
        "sources": [{"id": "P1", "title": "Bridge", "kind": "project"}],
        "items": [{"id": "P1"}, {"id": "P2"}],
        "confidence": 0.9,
    }
    made = finish_report(known(gave(answer)), list_results(known(gave(answer))))
    assert made.blocks == (
        HeadingBlock(text="Do a"),
        *blocks,
        SourcesBlock(rows=(SourceRow(id="P1", title="Bridge", kind="project"),)),
    )


def test_a_long_list_shows_its_first_forty_rows_and_how_many_there_are() -> None:
    [shown, said] = answer_blocks(ToolResult(True, "", {"rows": [{"n": n} for n in range(300)]}))
    assert isinstance(shown, TableBlock)
    assert (len(shown.rows), said) == (40, TextBlock(text="These are the first 40 of 300."))


@given(st.dictionaries(WORDS, JSON, max_size=6), st.text(max_size=50))
def test_whatever_tools_give_is_listed_without_a_line_of_json(answer: dict[str, Any], text: str) -> None:
    blocks = list_results(known(gave(answer, text=text))).blocks
    assert blocks
    assert not [one for one in blocks if isinstance(one, TextBlock) and one.text.lstrip().startswith(('{"', '[{"'))]


@pytest.mark.parametrize(
    "text",
    [
        'Found: {"id": "P1", "name": "Bridge"}',
        '```json\n[{"id": 1}]\n```',
        "[{'id': 'P1', 'na",
        'All good.\n\n- {"what": "worked", "gave": "x"}',
    ],
)
def test_a_report_that_shows_data_as_programs_write_it_is_a_fault(text: str) -> None:
    said = WrittenReport(title="T", text=text).model_dump_json()
    assert isinstance(parse_report(said), Fault)
    assert isinstance(parse_report(said, "Give me the settings as JSON"), WrittenReport)


@pytest.mark.parametrize(
    "text", ["Costs rose by 4 % [P1].", "| a | b |\n| --- | --- |\n| 1 | {x} |", "Use `f(x)` and [a link](x)."]
)
def test_sentences_tables_and_ids_in_brackets_are_no_raw_data(text: str) -> None:
    assert not holds_raw_data(text)


def test_the_markdown_of_a_model_becomes_headings_texts_and_tables_without_the_title_twice() -> None:
    rows = "| Year | Cost |\n| --- | --- |\n| 2022 | 5 \\| 6 |\n| 2023 |  |"
    text = f"# Costs\n\nThey **rose**.\n\n## By year\n\n{rows}\n\n- one\n- two\n"
    assert parse_blocks(text, "Costs") == [
        TextBlock(text="They **rose**."),
        HeadingBlock(text="By year", level=2),
        TableBlock(columns=("Year", "Cost"), rows=(("2022", "5 | 6"), ("2023", None))),
        TextBlock(text="- one\n- two"),
    ]


@example([(None, "__0__")])
@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5))
def test_a_reader_of_the_markdown_sees_the_cells_of_the_table_and_no_other(rows: list[tuple[Cell, Cell]]) -> None:
    [found] = shown_tables(render_blocks([TableBlock(columns=("One", "Other"), rows=tuple(rows))]))
    wanted = [[" ".join(format_cell(cell).split()) for cell in row] for row in rows]
    assert found == [["One", "Other"], *wanted]


def test_a_report_says_what_failed_was_left_out_and_read() -> None:
    broken = StepResult(step("b", 1), ToolResult(False, "away", code="timed_out"))
    unneeded = StepResult(step("c", 2), ToolResult(False, "", code="task.condition"))
    written = WrittenReport(title="T", text="Fine.", used=("a",))
    item = {"items": [{"id": "m1", "title": "A note", "kind": "note"}]}
    made = finish_report(known(gave(item), failed=(broken, unneeded)), written, ("The work ended early: time.",))
    assert made.blocks == (
        TextBlock(text="Fine."),
        LimitsBlock(items=("Do b: not found out (timed out).", "The work ended early: time.")),
        SourcesBlock(rows=(SourceRow(id="m1", title="A note", kind="note"),)),
    )
    assert made.text == render_blocks(made.blocks)


def test_a_report_with_limits_of_its_own_keeps_them_and_says_each_once() -> None:
    given_blocks: tuple[ReportBlock, ...] = (TextBlock(text="Fine."), LimitsBlock(items=("Old figures.",)))
    written = WrittenReport(title="T", blocks=given_blocks)
    made = finish_report(known(), written, ("Old figures.", "It was late."))
    assert made.blocks == (TextBlock(text="Fine."), LimitsBlock(items=("Old figures.", "It was late.")))


def test_a_table_beside_the_text_becomes_a_block_and_stays_a_chart() -> None:
    table = Visualization(
        type=VisualizationType.TABLE, title="Costs", config={"columns": ["year"]}, data=[{"year": 2023, "x": 1}]
    )
    line = Visualization(
        type=VisualizationType.LINE, title="L", config={"xAxis": "a", "yAxis": "b"}, data=[{"a": 1, "b": 2, "c": 3}]
    )
    made = finish_report(known(), WrittenReport(title="T", text="Fine.", charts=(table, line)))
    assert made.blocks[1:] == (TableBlock(title="Costs", columns=("year",), rows=((2023,),)), ChartBlock(chart=line))
    assert made.charts == (table, line)
    assert shown_tables(made.text) == [[["year"], ["2023"]], [["A", "B"], ["1", "2"]]]


def test_a_report_too_large_for_a_message_is_cut_and_says_so() -> None:
    rows = tuple((n, "x" * 100) for n in range(10_000))
    made = finish_report(known(), WrittenReport(title="T", blocks=(TableBlock(columns=("n", "x"), rows=rows),)))
    assert len(made.model_dump_json()) < 400_000
    [kept, limits] = made.blocks
    assert isinstance(kept, TableBlock)
    assert kept.rows == rows[: len(kept.rows)]
    assert limits == LimitsBlock(items=("The report was too large: its longest tables are cut.",))


@pytest.mark.parametrize(
    ("answer", "text", "found"),
    [
        ({"rows": [{"name": "Bridge"}, {"name": "Tunnel"}], "total": 2}, "", "2 rows: Bridge; Tunnel"),
        ({"rows": [{"id": n} for n in range(90)]}, "", "90 rows: 0; 1; 2…"),
        ({"rows": [{"group": 2022, "value": 7}, {"group": 2023, "value": 4}]}, "", "2 rows: 2022 7; 2023 4"),
        ({"entities": [{"name": "Rail"}]}, "", "1 entity: Rail"),
        ({"items": []}, "", "nothing"),
        ({"total": 12_345, "apiKey": "phr_secret"}, "", "total 12,345, api key ***"),
        ({"text": "**Two** things are late.\n\nBoth are red."}, "", "Two things are late. Both are red."),
        ({"items": [{"id": "m1", "text": "My PIN is 1234", "title": "PIN"}]}, "My PIN is 1234", "1 item"),
        (None, "A short word.", "A short word."),
        (None, '{"a": 1}', ""),
    ],
)
def test_a_step_says_in_one_line_what_it_found(answer: dict[str, Any] | None, text: str, found: str) -> None:
    assert describe_found(ToolResult(True, text, answer)) == found


@given(st.dictionaries(WORDS, JSON, max_size=6), st.text(max_size=1_000))
def test_what_a_step_found_is_one_short_line_whatever_it_is(answer: dict[str, Any], text: str) -> None:
    found = describe_found(ToolResult(True, text, answer))
    assert len(found) <= MAX_FOUND
    assert len(found.splitlines()) <= 1


def test_a_failed_step_found_nothing() -> None:
    assert describe_found(ToolResult(False, "it is away", code="unavailable")) == ""


@pytest.mark.parametrize("largest", [1, 9_000])
def test_a_report_of_too_many_blocks_still_says_what_it_lacks_and_what_it_rests_on(largest: int) -> None:
    table = TableBlock(columns=("One",), rows=(("x" * 1_000,),) * largest)
    blocks = (table, *(TextBlock(text=f"Part {n}.") for n in range(MAX_BLOCKS - 1)))
    item = {"items": [{"id": "m1", "title": "A note", "kind": "note"}]}
    made = finish_report(known(gave(item)), WrittenReport(title="T", blocks=blocks, used=("a",)), ("The work ended early.",))
    assert len(made.blocks) <= MAX_BLOCKS
    assert [type(block) for block in made.blocks[-2:]] == [LimitsBlock, SourcesBlock]


def test_a_label_that_begins_with_a_number_of_two_digits_begins_no_list_of_its_own() -> None:
    assert render_blocks([FiguresBlock(rows=(FigureRow(label="12. May", value=3),))]) == "- 12\\. May: **3**"
