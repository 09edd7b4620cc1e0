"""Answers of a scripted analyst: one of each visualization, with the portfolio's own kinds of words and gaps."""

from __future__ import annotations

from typing import Any

from phronesis_contracts.answers import Analysis, AnswerData, MemoryProcess, Visualization, VisualizationType
from phronesis_contracts.orchestrator import Reply, Source, SubmitTurn, Usage

V = VisualizationType
RATINGS: list[dict[str, Any]] = [
    {"department": "Defence", "projects": 52, "red": 7, "cost": 194.0, "share_red": 13.5},
    {"department": "Transport", "projects": 25, "red": 4, "cost": 145.2, "share_red": 16.0},
    {"department": "Health and Social Care", "projects": 36, "red": 3, "cost": 38.1, "share_red": 8.3},
    {"department": "Justice", "projects": 22, "red": 2, "cost": 11.7, "share_red": 9.1},
    {"department": "Home Office", "projects": 17, "red": None, "cost": 9.4, "share_red": None},
]
YEARS: list[dict[str, Any]] = [
    {"year": 2020, "projects": 125},
    {"year": 2021, "projects": 184},
    {"year": 2022, "projects": 235},
    {"year": 2023, "projects": 244},
]
GAPS: list[dict[str, Any]] = [
    {"gap": "Temporal", "project": "Rural Fibre", "last_seen": 2021, "missing": "no row for 2022", "owner": None},
    {"gap": "Missing link", "project": "Tidal Barrier", "last_seen": 2022, "missing": "no rating was published", "owner": None},
    {"gap": "Missing node", "project": "Coast Link", "last_seen": 2023, "missing": "no end date", "owner": "Transport"},
]
HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script><b>bold</b>"
CHARTS = (
    Visualization(
        type=V.COLUMN, title="Projects by department", config={"xAxis": "department", "yAxis": "projects"}, data=RATINGS
    ),
    Visualization(type=V.LINE, title="Projects by year", config={"xAxis": "year", "yAxis": "projects"}, data=YEARS),
    Visualization(type=V.PIE, title="Cost", config={"labelField": "department", "valueField": "cost"}, data=RATINGS),
    Visualization(type=V.RADAR, title="Measures", config={"dimensions": ["projects", "red", "cost"]}, data=RATINGS[:2]),
    Visualization(type=V.SCATTER, title="Size and cost", config={"xAxis": "projects", "yAxis": "cost"}, data=RATINGS),
    Visualization(type=V.BUBBLE, title="Red", config={"xAxis": "projects", "yAxis": "cost", "sizeMetric": "red"}, data=RATINGS),
    Visualization(
        type=V.COMBO,
        title="Projects and the share that is red",
        config={"xAxis": "department", "barField": "projects", "lineField": "share_red"},
        data=RATINGS,
    ),
)
GAP_TABLE = Visualization(
    type=V.TABLE,
    title="What is missing",
    config={"columns": ["gap", "project", "last_seen", "missing", "owner"]},
    data=GAPS,
)
REPORT = Visualization(type=V.HTML, title="Report", data="<p>In <b>one</b> line.</p>" + HOSTILE)
QUESTIONS = {
    "How many projects does each department have?": (
        "Defence has the most projects: **52** of the 152 that five departments hold.",
        CHARTS[:1],
    ),
    "What is missing?": ("Three things are **not known**, and none of them is zero.", (GAP_TABLE,)),
    "Show everything": ("Everything, " + HOSTILE, (*CHARTS, GAP_TABLE, REPORT)),
}


def finish(turn: SubmitTurn, reply: Reply) -> Reply:
    """The reply with what the analyst found, where it is asked one of its questions."""
    if turn.text not in QUESTIONS:
        return reply
    text, shown = QUESTIONS[turn.text]
    analysis = Analysis(
        mode="B",
        memory_process=MemoryProcess(
            intent="Compare departments", thought_trace="Counted the rows of 2022, then grouped them."
        ),
        answer=text,
        analysis=("A third of all projects is in one department.",),
        data=AnswerData(query_results=tuple(RATINGS), summary_stats={"departments": len(RATINGS), "projects": 152}),
        visualizations=shown,
        cypher_executed="MATCH (p:EntityProject {year: $year}) RETURN p.department, count(*) LIMIT 30",
        confidence=0.82,
    )
    source = Source(id="s-1", type="EntityProject", title="Rural Fibre", score=0.91, snippet="Last seen in 2021.")
    return reply.model_copy(
        update={
            "analysis": analysis,
            "sources": (source,),
            "reasoner": "extractive",
            "degraded": ("strategies",),
            "usage": Usage(ms=840),
        }
    )
