"""Stage gaps: what is missing around the nodes that were read, found by the graph service and never by a model (N-043)."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from phronesis_contracts import ServiceError
from phronesis_contracts.analysis import GAPS_TITLE, Visualization, VisualizationType
from phronesis_contracts.graph import Level, NodeRef
from phronesis_contracts.twin import DIAGNOSE_GAPS, DiagnoseGaps, Gap, GapQuestion

from ..analyst.ontology import CHAINS
from ..findings import Findings
from ..running import Running

log = logging.getLogger(__name__)

MAX_QUESTIONS = 60
"""Questions of one turn: a walk of each takes some milliseconds."""
_MISSING = re.compile(
    r"\b(?:missing|gaps?|lacks?|lacking|absent|not linked|unlinked|no link|broken|incomplete|without)\b", re.I
)
_COLUMNS = ("Gap", "Item", "Year", "Missing step", "Reason")


@dataclass(frozen=True)
class Diagnosis:
    """The gaps that were found, and how many questions were asked."""

    gaps: tuple[Gap, ...] = ()
    asked: int = 0
    names: tuple[tuple[str, str], ...] = ()
    """Names of the nodes asked about, by question."""

    def insight(self) -> str | None:
        """One sentence for the insights; `None` where no gap was found."""
        if not self.gaps:
            return None
        kinds = dict.fromkeys(gap.type.value for gap in self.gaps)
        return f"{len(self.gaps)} of {self.asked} links looked at have a gap: {', '.join(kinds)}."

    def table(self) -> Visualization | None:
        """The gaps as a table, which is how gaps are always shown."""
        if not self.gaps:
            return None
        names = dict(self.names)
        rows = [
            dict(zip(_COLUMNS, (gap.type.value, names[gap.question], gap.year, gap.missing_step, gap.because), strict=True))
            for gap in self.gaps
            if gap.question in names
        ]
        config = {"columns": list(_COLUMNS)}
        return Visualization(type=VisualizationType.TABLE, title=GAPS_TITLE, config=config, data=rows)


async def diagnosed(running: Running, question: str, mode: str, findings: Findings) -> Diagnosis:
    """Ask what is missing, where the message is about it or its mode follows chains; fails open.

    Only rows that state type, id, year and level name a node: what a row does not say is not guessed.

    Args:
        running: the turn.
        question: the user's message.
        mode: of the turn.
        findings: what was read, and which chains were loaded.
    """
    if mode not in "BD" and not _MISSING.search(question):
        return Diagnosis()
    questions = _questions(findings)
    if not questions:
        return Diagnosis()
    try:
        answer = await running.neighbours.ask(running.claim.who, DIAGNOSE_GAPS, DiagnoseGaps(questions=questions))
    except ServiceError as error:
        log.warning("gaps could not be diagnosed: %s", error.code)
        running.degrade("gaps")
        return Diagnosis()
    names = _names(findings)
    return Diagnosis(answer.gaps, len(questions), tuple((asked.id, names[asked.node.key]) for asked in questions))


def _questions(findings: Findings) -> tuple[GapQuestion, ...]:
    """One question for each node, or for each loaded chain that begins with its type."""
    wanted = dict.fromkeys(
        (node, level, chain) for row in findings.rows for node, level in _nodes(row) for chain in _chains(findings, node)
    )
    return tuple(
        GapQuestion(id=f"q{number}", node=node, level=level, chain=chain)
        for number, (node, level, chain) in enumerate(list(wanted)[:MAX_QUESTIONS], 1)
    )


def _chains(findings: Findings, node: NodeRef) -> tuple[str | None, ...]:
    """The loaded chains that begin with the node's type: each is asked about there alone."""
    return tuple(chain for chain in findings.chains if chain in CHAINS and CHAINS[chain][0][0] == node.type) or (None,)


def _nodes(row: dict[str, Any]) -> Iterator[tuple[NodeRef, Level]]:
    """The node that a row names, where it states all of type, id, year and level."""
    told = {field: row.get(field) for field in ("type", "id", "year", "level")}
    if any(value is None for value in told.values()):
        return
    try:
        yield NodeRef.model_validate(told), Level(str(told["level"]))
    except ValueError:
        log.info("a row that names no node was passed over")


def _names(findings: Findings) -> dict[str, str]:
    return {node.key: str(row.get("name") or node.id) for row in findings.rows for node, _ in _nodes(row)}
