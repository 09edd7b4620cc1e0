"""The end of a task's work: its report, written by a model or by rules, and saved as a document of the caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phronesis_contracts.analysis import Visualization, VisualizationType
from phronesis_contracts.memory import REMEMBER_TOOL, ItemKind
from phronesis_contracts.tasks import TaskReport

from ..domain import Claim
from ..reasoner import Answer, TurnContext
from ..steps import Steps
from .deciding import decided
from .ports import Caller, Known, Planner, Written

WRITING = 30.0
"""Seconds that a model may take to write the report."""
_DOCUMENT = 19_000
"""Characters of a report that are saved; an item of the memory has room for 20,000."""
_CUT = "\n\n(The document is cut here; the task holds the whole report.)"
_ROWS = 40
"""Rows of a table that the document shows."""


async def written(
    steps: Steps,
    context: TurnContext,
    planner: Planner | None,
    rules: Callable[[Known], Written | None],
    known: Known,
) -> Written:
    """The report. Where a model fails to write one, it lists what the steps gave (V-032: what there is, is told)."""

    async def make() -> Answer[Written]:
        return await planner.write(context, known) if planner is not None else Answer(rules(known))

    made = await decided(steps, "task.report", Written, make, WRITING)
    return made.value or listed(known)


def listed(known: Known) -> Written:
    """What the steps gave, one after the other."""
    parts = [f"## {result.step.description}\n\n{result.outcome.text[:2_000]}" for result in known.worked]
    failed = [f"- {result.step.description}: {result.outcome.code}" for result in known.failed]
    if failed:
        parts.append("## What could not be found out\n\n" + "\n".join(failed))
    text = "\n\n".join(parts) or "Nothing was found out."
    return Written(title=known.goal[:300], text=text, used=tuple(result.step.id for result in known.worked))


async def saved(caller: Caller, claim: Claim, report: Written, reasoner: str) -> TaskReport:
    """The report with the id of its document; without one where it could not be saved.

    Args:
        caller: makes the call, once, however often the task is taken over.
        claim: the task's turn.
        report: as it was written.
        reasoner: who wrote it.
    """
    item = {
        "text": document(report, reasoner),
        "title": report.title,
        "kind": ItemKind.NOTE.value,
        "external_id": f"task/{claim.turn_id}",
        "metadata": {"task": claim.turn_id, "reasoner": reasoner},
        "sources": [claim.conversation_id],
    }
    outcome = await caller.call("task.document", REMEMBER_TOOL.name, {"items": [item]})
    found = (outcome.answer or {}).get("items") or [{}]
    return TaskReport(
        title=report.title, text=report.text, charts=report.charts, document_id=found[0].get("id"), reasoner=reasoner
    )


def document(report: Written, reasoner: str) -> str:
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
