"""What is written of a task: lines of data for a model, and the report, by a model or by rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from phronesis_contracts import untrusted
from phronesis_contracts.answers import Visualization, VisualizationType
from phronesis_contracts.memory import REMEMBER_TOOL, ItemKind
from phronesis_contracts.tasks import TaskReport

from ..agents.presentation import MAX_ROWS
from ..models.reasoner import Answer, TurnContext
from ..models.templates import Line, fit_lines
from ..turns.execution import Steps
from ..turns.turn import Claim
from .decisions import decide
from .ports import Caller, Contracts, GoalKnowledge, Planner, Step, StepResult, Strategy, WrittenReport, outline

_TEMPLATE = "a plan that worked for a goal like this"
_REFUSED = "a plan that is refused"


def plan_lines(known: GoalKnowledge) -> list[Line]:
    """What a plan is made with: what was done of an older one, what worked for goals like it, and the tools."""
    ahead = [Line.json(what="a look ahead", said=known.ahead)] if known.ahead else []
    template = [Line.json(what=_TEMPLATE, steps=[_step(step) for step in known.template.steps])] if known.template else []
    refused = [Line.json(what=_REFUSED, why=known.refused.wrong, plan=known.refused.said)] if known.refused else []
    return [
        *refused,
        *state_lines(known),
        *ahead,
        *known_strategy_lines(known.strategies),
        *template,
        *(_tool(one, known.contracts) for one in known.offered),
    ]


def known_strategy_lines(strategies: Iterable[Strategy]) -> list[Line]:
    """What worked for goals like this one."""
    return [
        Line.json(
            what="an approach that worked",
            goal=strategy.goal,
            approach=strategy.approach,
            tools=strategy.tools_used,
            avoid=strategy.avoid,
            **_origin(strategy),
        )
        for strategy in strategies
    ]


def _origin(strategy: Strategy) -> dict[str, object]:
    """Where an approach comes from, if not from the person's own words: it was then formed with what others wrote."""
    kinds = sorted({label.kind.value for label in untrusted(strategy.labels)})
    return {"from": kinds} if kinds else {}


def state_lines(known: GoalKnowledge) -> list[Line]:
    """How far a task is: what is left, what failed, and what worked."""
    left = [Line.json(what="left to do", **_step(step)) for step in known.remaining]
    return [*left, *result_lines(known)]


def result_lines(known: GoalKnowledge) -> list[Line]:
    """What the steps of a task gave; the failures first, since there are few."""
    failed = (Line.json(what="failed", **_result(one), why=one.outcome.code, said=one.outcome.text) for one in known.failed)
    worked = (Line.json(what="worked", **_result(one), gave=one.outcome.text) for one in known.worked)
    return [*failed, *worked]


def describe_tools(names: Iterable[str], offered: Iterable[dict[str, Any]]) -> tuple[tuple[str, str, dict[str, Any]], ...]:
    """Tools by the names that plans know them by."""
    functions = (one["function"] for one in offered)
    return tuple((name, one["description"], one["parameters"]) for name, one in zip(names, functions, strict=True))


def block_text(lines: Iterable[Line], tokens: int) -> str:
    """Lines as the text of one block, in at most so many tokens: the first ones stay."""
    return "\n".join(fit_lines(list(lines), tokens))


def _step(step: Step) -> dict[str, object]:
    return {"id": step.id, "wave": step.wave, "description": step.description, "tool": step.tool, "depends": step.depends}


def _result(result: StepResult) -> dict[str, object]:
    return {"step": result.step.id, "description": result.step.description, "tool": result.step.tool}


def _tool(offered: tuple[str, str, dict[str, Any]], contracts: Contracts) -> Line:
    name, description, arguments = offered
    gives = {"gives": outline(contracts[name])} if name in contracts else {}
    return Line.json(what="tool", name=name, description=description, arguments=arguments, **gives)


def needed_lines(results: Iterable[StepResult]) -> list[Line]:
    """What earlier steps gave, for who works on one that needs them."""
    return [Line.json(what="found by an earlier step", **_result(one), gave=one.outcome.text) for one in results]


DOCUMENT = "task.document"
"""Name of the journalled step that saves the report."""
_DOCUMENT = 19_000
"""Characters of a report that are saved; an item of the memory has room for 20,000."""
_CUT = "\n\n(The document is cut here; the task holds the whole report.)"
_ROWS = 40
"""Rows of a table that the document shows."""


async def write_report(
    steps: Steps,
    context: TurnContext,
    planner: Planner | None,
    rules: Callable[[GoalKnowledge], WrittenReport | None],
    known: GoalKnowledge,
) -> WrittenReport:
    """The report. Where a model fails to write one, it lists what the steps gave (what there is, is reported)."""

    async def make() -> Answer[WrittenReport]:
        return await planner.write(context, known) if planner is not None else Answer(rules(known))

    made = await decide(steps, "task.report", WrittenReport, make)
    return made.value or list_results(known)


def list_results(known: GoalKnowledge) -> WrittenReport:
    """What the steps gave, one after the other."""
    parts = [f"## {result.step.description}\n\n{result.outcome.text[:2_000]}" for result in known.worked]
    failed = [f"- {result.step.description}: {result.outcome.code}" for result in known.failed]
    if failed:
        parts.append("## What could not be found out\n\n" + "\n".join(failed))
    text = "\n\n".join(parts) or "Nothing was found out."
    return WrittenReport(title=known.goal[:300], text=text, used=tuple(result.step.id for result in known.worked))


async def save_report(caller: Caller, claim: Claim, report: WrittenReport, reasoner: str) -> TaskReport:
    """The report with the id of its document; without one where it could not be saved."""
    item = {
        "text": render_document(report, reasoner),
        "title": report.title,
        "kind": ItemKind.NOTE.value,
        "external_id": f"task/{claim.turn_id}",
        "metadata": {"task": claim.turn_id, "reasoner": reasoner},
        "sources": [claim.conversation_id],
    }
    outcome = await caller.call(DOCUMENT, REMEMBER_TOOL.name, {"items": [item]}, ours=True)
    found = (outcome.answer or {}).get("items") or [{}]
    return TaskReport(
        title=report.title, text=report.text, charts=report.charts, document_id=found[0].get("id"), reasoner=reasoner
    )


def render_document(report: WrittenReport, reasoner: str) -> str:
    """The report as one Markdown text: what it says, the rows of its charts, and who wrote it."""
    foot = f"\n\n---\n\nreasoner: {reasoner}"
    parts = [f"# {report.title}", report.text, *(_table(chart) for chart in report.charts)]
    text = "\n\n".join(part for part in parts if part)
    room = _DOCUMENT - len(foot)
    return (text if len(text) <= room else text[: room - len(_CUT)] + _CUT) + foot


def _table(chart: Visualization) -> str:
    if chart.type is VisualizationType.HTML or not isinstance(chart.data, list) or not chart.data:
        return ""
    named = chart.config.get("columns") or list(chart.data[0])
    lines = [f"### {chart.title}", "", _line(named), _line(["---"] * len(named))]
    lines += [_line([row.get(name, "") for name in named]) for row in chart.data[:_ROWS]]
    return "\n".join(lines)


def _line(cells: list[Any]) -> str:
    return f"| {' | '.join(str(cell).replace('|', '/') for cell in cells)} |"


COLOURS = ("Red", "Amber/Red", "Amber", "Amber/Green", "Green")
"""The ratings, the worst first."""
SCALES = (
    "The scale of ratings changed in 2022 from five colours to three: Amber/Red and Amber/Green are used no more, so a project"
    " may bear another colour without having changed."
)
NOT_PUBLISHED = "not published"
MAX_LISTED = 60
"""Lines of a list that the answer itself shows; the table holds them all."""


def amount(value: float | None, unit: str = "") -> str:
    """A figure with its unit: £ million to the million from ten on, else to the penny's tenth of a million."""
    if value is None:
        return NOT_PUBLISHED
    if unit == "£m":
        sign = "-" if value < 0 else ""
        size = abs(value)
        return f"{sign}£{size:,.0f} million" if size >= 10 or size == int(size) else f"{sign}£{size:,.2f} million"
    text = f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
    return f"{text} %" if unit == "%" else text


def counted(n: int, one: str, many: str) -> str:
    """`1 project`, `7 projects`."""
    return f"{n:,} {one if n == 1 else many}"


def percent(part: float, whole: float) -> str:
    """A share, to a tenth."""
    return f"{100 * part / whole:.1f} %" if whole else "0 %"


def lines(items: Iterable[str]) -> str:
    """A Markdown list, cut where it gets too long for reading."""
    every = list(items)
    shown = [f"- {item}" for item in every[:MAX_LISTED]]
    rest = len(every) - len(shown)
    return "\n".join([*shown, f"- and {rest} more, all of them in the table"] if rest else shown)


def table(title: str, rows: Sequence[dict[str, Any]]) -> Visualization:
    """Rows as a table with the columns of the first."""
    columns = list(rows[0]) if rows else []
    return Visualization(
        type=VisualizationType.TABLE, title=title[:200], config={"columns": columns}, data=list(rows)[:MAX_ROWS]
    )


def column(title: str, x: str, y: str, rows: Sequence[dict[str, Any]]) -> Visualization:
    """Discrete things side by side."""
    data = [row for row in rows if isinstance(row[y], int | float)]
    return Visualization(type=VisualizationType.COLUMN, title=title[:200], config={"xAxis": x, "yAxis": y}, data=data)


def line(title: str, x: str, y: str, rows: Sequence[dict[str, Any]]) -> Visualization:
    """A change over time."""
    data = [row for row in rows if isinstance(row[y], int | float)]
    return Visualization(type=VisualizationType.LINE, title=title[:200], config={"xAxis": x, "yAxis": y}, data=data)


def crosses_scales(years: Sequence[int]) -> bool:
    """Whether a comparison of ratings over these years meets both scales."""
    return bool(years) and min(years) < 2022 <= max(years)
