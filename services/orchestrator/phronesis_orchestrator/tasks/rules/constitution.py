"""The report on the constitution: decisions that are open, tasks that are overdue, and what contradicts itself."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from phronesis_contracts.constitution.insight import CONTRADICTIONS_TOOL
from phronesis_contracts.constitution.paths import DECISIONS_SINCE_TOOL, DUE_WORK_TOOL

from ..ports import GoalKnowledge, Plan, Step, WrittenReport
from ..report import lines, table

KIND = "constitution report"
TITLE = "Report on the constitution"
_ABOUT = re.compile(
    r"\b(?:constitution\w*|open decisions?|overdue|guardrails?|(?:rules?|principles?) (?:that (?:are|were) )?broken)\b", re.I
)
_OPEN = frozenset({"open", "proposed", "draft", "pending", "active", "planned"})
_LONG_AGO = "1970-01-01"


def understood(goal: str) -> bool:
    """Whether a goal asks for a report on the constitution."""
    return bool(_ABOUT.search(goal))


def plan(tools: tuple[str, ...]) -> Plan | None:
    """The steps, as far as their tools are at hand; `None` where none is."""
    yesterday = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
    steps = (
        _step("decisions", "Decisions and what came of them", DECISIONS_SINCE_TOOL.name, {"limit": 50}, 1),
        _step("overdue", "Open tasks that were due", DUE_WORK_TOOL.name, {"startDate": _LONG_AGO, "endDate": yesterday}, 1),
        _step("contradictions", "Rules that cannot both be followed", CONTRADICTIONS_TOOL.name, {}, 2),
    )
    kept = tuple(step for step in steps if step.tool in tools)
    return Plan(title=TITLE, kind=KIND, steps=kept) if kept else None


def _step(id: str, description: str, tool: str, arguments: dict[str, Any], wave: int) -> Step:
    return Step(id=id, description=description, tool=tool, arguments=arguments, wave=wave)


def report(known: GoalKnowledge) -> WrittenReport:
    """The report, each node with its id."""
    given = {result.step.id: result.outcome.answer or {} for result in known.worked}
    parts = [_decisions(given["decisions"])] if "decisions" in given else []
    parts += [_overdue(given["overdue"])] if "overdue" in given else []
    parts += [_contradictions(given["contradictions"])] if "contradictions" in given else []
    parts += [f"## Could not be read\n\n{lines(one.step.description for one in known.failed)}"] if known.failed else []
    parts.append("Made by rules from the graph; no language model was used.")
    rows = [
        {"title": one["title"], "id": one["id"], "due": one.get("dueDate", "")}
        for one in given.get("overdue", {}).get("items", ())
    ]
    charts = (table("Overdue tasks", rows),) if rows else ()
    return WrittenReport(title=TITLE, text="\n\n".join(parts), charts=charts, used=tuple(given))


def _decisions(answer: dict[str, Any]) -> str:
    nodes = [one for one in answer.get("decisions", ()) if str(one.get("status", "open")).casefold() in _OPEN]
    return f"## Open decisions ({len(nodes)})\n\n{lines(_cited(one) for one in nodes) or 'None.'}"


def _overdue(answer: dict[str, Any]) -> str:
    told = (f"{_cited(one)}, due {one.get('dueDate', 'at no stated day')}" for one in answer.get("items", ()))
    return f"## Overdue tasks ({answer.get('total', 0)})\n\n{lines(told) or 'None.'}"


def _contradictions(answer: dict[str, Any]) -> str:
    pairs = answer.get("pairs", ())
    told = (f"{_cited(pair['one'])} and {_cited(pair['other'])}: {pair['because']}" for pair in pairs)
    return f"## Rules that contradict each other ({len(pairs)})\n\n{lines(told) or 'None.'}"


def _cited(node: dict[str, Any]) -> str:
    return f"{node.get('title') or node['id']} [{node['id']}]"
