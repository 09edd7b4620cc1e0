"""Reports as files: whatever their texts and sizes, a harmless page, a PDF within its limits, and one answer for each form."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import pypdfium2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.responses import Response

from phronesis_contracts import Principal, TimedOut, Unavailable
from phronesis_contracts.answers import Visualization, VisualizationType
from phronesis_contracts.orchestrator import TaskBudget, TurnStatus
from phronesis_contracts.tasks import (
    Cell,
    ChartBlock,
    FigureRow,
    FiguresBlock,
    HeadingBlock,
    LimitsBlock,
    NoReport,
    ReportBlock,
    ReportTooLong,
    SourceRow,
    SourcesBlock,
    TableBlock,
    Task,
    TaskNotEnded,
    TaskReport,
    TaskState,
    TextBlock,
)
from phronesis_gateway.turns.reports import ReportFormat, chosen_format, report_response
from phronesis_gateway.turns.typesetting import Typesetter

pytestmark = pytest.mark.timeout(180)
"""Each PDF is set in a process of its own."""

ANN = Principal(tenant="acme", user="ann")
NOW = datetime(2026, 5, 4, 8, 2, tzinfo=UTC)
MARKDOWN, HTML, PDF = ReportFormat
HOSTILE = st.sampled_from(
    [
        "<script>alert(1)</script>",
        "</style><img src=x onerror=alert(1)>",
        '#panic("x") $ x^2 $ *b* _i_ @ref <label> #read("/etc/passwd") \\ [x] {y} // c',
        "W" * 3_000,
        "مرحبا \u202eevil\u202c بالعالم",
        "🚀👩‍👩‍👧 中文字符 \x00\x07\u2028\ufeff",
        "> " * 60 + "deep",
        "- a\n  - b\n    - c\n      - d\n        - e\n          - f\n            - g",
        "[link](javascript:alert(1)) ![image](https://example.org/x.png) <https://example.org>",
        "```\ncode\n```\n\n1. one\n2. two\n\n***\n\n| a | b |\n| --- | --- |\n| 1 | 2 |",
    ]
)
TEXTS = HOSTILE | st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=200)
SHORT = TEXTS.map(lambda text: text[:200])
CELLS: st.SearchStrategy[Cell] = st.none() | st.booleans() | st.integers() | st.floats() | SHORT
CHARTS = st.builds(
    Visualization,
    type=st.sampled_from(VisualizationType),
    title=SHORT,
    config=st.just({"xAxis": "a", "yAxis": "b", "labelField": "a", "valueField": "b", "barField": "b", "lineField": "b"}),
    data=st.lists(st.fixed_dictionaries({"a": SHORT, "b": CELLS}), max_size=4) | TEXTS,
)
TABLES = st.integers(1, 30).flatmap(
    lambda width: st.builds(
        TableBlock,
        title=SHORT,
        columns=st.tuples(*[SHORT] * width),
        rows=st.lists(st.tuples(*[CELLS] * width), max_size=3).map(tuple),
    )
)
FIGURES = st.builds(FigureRow, label=SHORT, value=CELLS, unit=st.text(max_size=10), note=SHORT)
BLOCKS: st.SearchStrategy[ReportBlock] = st.one_of(
    st.builds(HeadingBlock, text=SHORT, level=st.integers(1, 4)),
    st.builds(TextBlock, text=TEXTS),
    st.builds(FiguresBlock, rows=st.lists(FIGURES, min_size=1, max_size=14).map(tuple)),
    TABLES,
    st.builds(ChartBlock, chart=CHARTS),
    st.builds(
        SourcesBlock, rows=st.lists(st.builds(SourceRow, id=SHORT, title=SHORT, kind=st.just("note")), min_size=1).map(tuple)
    ),
    st.builds(LimitsBlock, items=st.lists(SHORT, min_size=1, max_size=3).map(tuple)),
)


def task(*blocks: ReportBlock, title: str = "Costs", status: TurnStatus = TurnStatus.COMPLETED, goal: str = "Find out") -> Task:
    report = TaskReport(title=title, text="As text.", blocks=blocks, reasoner="extractive")
    return Task(
        task_id="t-1",
        conversation_id="c-1",
        agent="nova",
        goal=goal,
        budget=TaskBudget(),
        status=status,
        created_at=NOW,
        ended_at=NOW,
        progress=TaskState(report=report),
    )


def export(made: Task, form: ReportFormat, seconds: float = 60.0) -> Response:
    return asyncio.run(report_response(ANN, made, form, Typesetter(seconds)))


def pages(pdf: bytes | memoryview) -> list[str]:
    """The text of each page."""
    document = pypdfium2.PdfDocument(bytes(pdf))
    try:
        return [page.get_textpage().get_text_range() for page in document]
    finally:
        document.close()


class Read(HTMLParser):
    """The tags, addresses and scripts of a page."""

    def __init__(self, page: bytes | memoryview) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.loads: list[str] = []
        self.runs: list[str] = []
        self.feed(bytes(page).decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name in ("src", "srcset", "data", "action", "formaction", "background", "xlink:href") or (
                name == "href" and not str(value).startswith(("http://", "https://", "mailto:"))
            ):
                self.loads.append(f"{tag} {name}={value}")
            if name.startswith("on") or name == "style":
                self.runs.append(f"{tag} {name}")


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(blocks=st.lists(BLOCKS, max_size=6), title=SHORT, goal=TEXTS)
def test_any_report_is_a_page_that_runs_and_loads_nothing(blocks: list[ReportBlock], title: str, goal: str) -> None:
    page = Read(export(task(*blocks, title=title, goal=goal), HTML).body)
    assert (page.loads, page.runs) == ([], [])
    assert page.tags.isdisjoint({"script", "img", "iframe", "object", "embed", "form", "base", "link"})


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(blocks=st.lists(BLOCKS, max_size=6), title=SHORT, goal=TEXTS)
def test_any_report_is_a_pdf_with_its_page_numbers(blocks: list[ReportBlock], title: str, goal: str) -> None:
    shown = pages(export(task(*blocks, title=title, goal=goal), PDF).body)
    assert f"1 / {len(shown)}" in shown[0]


def test_what_would_be_markup_on_paper_is_printed_as_it_is() -> None:
    said = '#panic("x") $x^2$ @ref #read("/etc/passwd") [y]'
    [shown] = pages(
        export(task(TableBlock(columns=(said,), rows=((said,),)), LimitsBlock(items=(said,)), title=said), PDF).body
    )
    assert shown.replace("\r\n", " ").replace("\u200b", "").count('#read("/etc/passwd")') == 4


def test_a_long_table_has_its_heads_on_every_page_and_says_where_it_is_cut() -> None:
    rows = tuple((f"Project {n}", n, n * 1.5) for n in range(10_000))
    shown = pages(export(task(TableBlock(title="All", columns=("Name", "Number", "Cost"), rows=rows)), PDF).body)
    assert len(shown) > 50
    assert all("Number" in page for page in shown if "Project" in page)
    assert "Project 2999" in "".join(shown)
    assert "These are the first 3,000 of 10,000 rows" in shown[-1]
    page = bytes(export(task(TableBlock(columns=("Name", "Number", "Cost"), rows=rows)), HTML).body).decode()
    assert "Project 9999" in page


def test_a_page_says_who_asked_when_what_was_found_and_what_was_not() -> None:
    chart = Visualization(
        type=VisualizationType.LINE, title="By year", config={"xAxis": "y", "yAxis": "n"}, data=[{"y": 1, "n": 2}]
    )
    made = task(
        HeadingBlock(text="Figures"),
        FiguresBlock(rows=(FigureRow(label="Cost", value=1_234_567, unit="£ million", note="of 3"),)),
        ChartBlock(chart=chart),
        SourcesBlock(rows=(SourceRow(id="P1", title="The plan", kind="document"),)),
        LimitsBlock(items=("One is missing.",)),
    )
    page = bytes(export(made, HTML).body).decode()
    [shown] = pages(export(made, PDF).body)
    for said in (
        "Costs",
        "Find out",
        "4 May 2026 · asked by ann · written by rules",
        "Cost",
        "£1,234,567 million",
        "One is missing.",
    ):
        assert said in page
        assert said in shown
    assert '<svg xmlns="http://www.w3.org/2000/svg"' in page
    assert "The plan" in shown
    assert bytes(export(made, MARKDOWN).body).decode() == (
        "# Costs\n\n4 May 2026 · asked by ann · written by rules, without a language model\n\n> Find out\n\nAs text.\n"
    )


def test_the_policy_of_a_page_allows_its_own_style_alone() -> None:
    answer = export(task(TextBlock(text="Fine.")), HTML)
    [style] = re.findall(r"<style>(.*?)</style>", bytes(answer.body).decode(), re.S)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert answer.headers["Content-Security-Policy"] == policy
    assert answer.headers["Content-Disposition"] == 'attachment; filename="report-t-1.html"'


def test_a_report_of_a_release_without_blocks_is_a_file_too() -> None:
    table = Visualization(type=VisualizationType.TABLE, title="Rows", config={"columns": ["n"]}, data=[{"n": 7}])
    old = task()
    report = old.progress.report
    assert report is not None
    report = report.model_copy(update={"text": "## Part\n\nIt **rose**.", "charts": (table,)})
    old = old.model_copy(update={"progress": TaskState(report=report)})
    assert "<h2>Part</h2>" in bytes(export(old, HTML).body).decode()
    [shown] = pages(export(old, PDF).body)
    assert "It rose." in shown
    assert "Rows" in shown


def test_a_task_that_goes_on_or_ended_without_a_report_has_no_file() -> None:
    with pytest.raises(TaskNotEnded):
        export(task(status=TurnStatus.RUNNING), MARKDOWN)
    with pytest.raises(NoReport):
        export(task(status=TurnStatus.CANCELLED).model_copy(update={"progress": TaskState()}), PDF)


@pytest.mark.verify
def test_a_pdf_of_too_many_pages_is_refused() -> None:
    with pytest.raises(ReportTooLong):
        export(task(*(TextBlock(text="a\n\n" * 6_000) for _ in range(8))), PDF)


def test_a_pdf_that_takes_too_long_is_given_up() -> None:
    with pytest.raises(TimedOut):
        export(task(TextBlock(text="Fine.")), PDF, seconds=0.001)


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", MARKDOWN),
        ("*/*", MARKDOWN),
        ("application/json", MARKDOWN),
        ("application/pdf", PDF),
        ("text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", HTML),
        ("text/markdown;q=0.5, application/pdf ; q=0.9", PDF),
        ("application/pdf;q=0", MARKDOWN),
        ("text/html;q=nonsense", HTML),
    ],
)
def test_the_form_is_the_one_that_the_caller_prefers(accept: str, form: ReportFormat) -> None:
    assert chosen_format(accept) is form


def test_one_tenant_takes_no_more_than_its_share_of_the_places_where_reports_are_set_in_type() -> None:
    async def crowd() -> tuple[list[int], bytes]:
        typesetter = Typesetter()
        made = task(TextBlock(text="Fine."))
        other = ANN.model_copy(update={"tenant": "other"})
        many = (report_response(ANN, made, ReportFormat.PDF, typesetter) for _ in range(6))
        *told, one = await asyncio.gather(
            *many, report_response(other, made, ReportFormat.PDF, typesetter), return_exceptions=True
        )
        assert isinstance(one, Response)
        return [503 if isinstance(each, Unavailable) else 200 for each in told], bytes(one.body)

    told, pdf = asyncio.run(crowd())
    assert (sorted(told), pdf[:4]) == ([200] * 4 + [503] * 2, b"%PDF")
