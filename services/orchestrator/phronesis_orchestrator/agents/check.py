"""From a draft to the answer, each part held against what was read: evidence, gaps and confidence."""

from __future__ import annotations

import json
import logging
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phronesis_contracts import ServiceError
from phronesis_contracts.answers import GAPS_TITLE, Analysis, AnswerData, MemoryProcess, Visualization, VisualizationType
from phronesis_contracts.twin import DIAGNOSE_GAPS, DiagnoseGaps, Gap, GapQuestion, Level, NodeRef

from ..models.reasoner import Classification, Draft
from ..turns.execution import TurnRun
from ..understanding.language import detect
from .findings import Findings
from .presentation import (
    BadChart,
    BannedWords,
    build_chart,
    is_number,
    replace_words,
    sanitize_answer,
    sanitize_text,
    visible_words,
)

EMPTY = 0.5
"""What a question that was answered with no rows counts: that nothing is there is known, why it is not there is not."""
FLOOR = 0.2
"""What is left where nothing could be read at all: the answer can still say so."""
GAP = 0.5
"""The share that goes where every question about what is linked found a gap."""
FIGURES = 0.5
"""The share that goes where no figure of the answer is in the evidence."""
DEGRADED = 0.9
"""The factor for each part that did not answer."""
AT_ONCE = 0.9
"""The most that an answer without data may claim."""
UNSTATED = 0.5
"""For an answer without data whose model gave no number."""


def coverage(findings: Findings) -> float:
    """The share of the questions to the twin that were answered, from `FLOOR` to 1."""
    asked = len(findings.reads) + (1 if findings.unanswered else 0)
    if not asked:
        return FLOOR
    answered = sum(1.0 if read.rows else EMPTY for read in findings.reads)
    return round(FLOOR + (1 - FLOOR) * answered / asked, 6)


def confidence(findings: Findings, gaps: int, asked: int, agreement: float, degraded: int, stated: float | None) -> float:
    """The confidence of an answer that rests on data, rounded to two places.

    Args:
        asked: questions about gaps that were asked; 0 where none was.
        degraded: parts that did not answer.
    """
    missing = min(1.0, gaps / asked) if asked else 0.0
    found = coverage(findings) * (1 - GAP * missing) * (1 - FIGURES * (1 - agreement)) * DEGRADED**degraded
    return round(found if stated is None else min(found, (found + stated) / 2), 2)


def confidence_without_data(stated: float | None) -> float:
    """The confidence of an answer that needed no data."""
    return round(min(AT_ONCE, UNSTATED if stated is None else stated), 2)


_MOST_COLUMNS = 12
"""Columns whose groups are looked at."""
_GROUPS = 200
"""Groups of one column."""
_ROWS = 2_000
_NUMBER = re.compile(r"(?<![\w.,-])-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|(?<![\w.])-?\d+(?:\.\d+)?")
_SAME = 1e-9
"""How far a figure may be from one of them, as a share of it: sums of fractions end in noise."""
_SMALL = 10
"""Whole numbers up to it are words of a sentence as often as figures, and are not held against the rows."""


class Evidence:
    """The figures of an inquiry."""

    def __init__(self, findings: Findings) -> None:
        self._values: set[float] = set()
        for read in findings.reads:
            self._add(_numbers(read.parameters))
            self._rows(read.rows[:_ROWS])
        if len(findings.reads) > 1:
            self._rows(findings.rows[:_ROWS])
        self._sorted = sorted(self._values)
        self._rounded = {digits: {round(value, digits) for value in self._values} for digits in (0, 1, 2)}

    def holds(self, value: float) -> bool:
        """Whether a figure is one of them, as it is or rounded to at most two places."""
        at = bisect_left(self._sorted, value)
        near = self._sorted[max(0, at - 1) : at + 1]
        if any(abs(value - known) <= _SAME * max(abs(known), 1.0) for known in near):
            return True
        return any(round(value, digits) == value and value in self._rounded[digits] for digits in self._rounded)

    def unfounded(self, chart: Visualization) -> float | None:
        """A figure of a chart that was not read and does not follow from what was; `None` where there is none."""
        figures = _figures(visible_words(chart.data)) if isinstance(chart.data, str) else _numbers(chart.data)
        return next((figure for figure in figures if not self.holds(figure)), None)

    def agreement(self, text: str) -> float:
        """The share of the figures in a text that are in the evidence; 1 where it states none."""
        figures = list(_figures(visible_words(text)))
        return sum(map(self.holds, figures)) / len(figures) if figures else 1.0

    def _add(self, values: Iterable[float]) -> None:
        self._values.update(float(value) for value in values)

    def _rows(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._add([len(rows), *_numbers(rows)])
        columns = list(dict.fromkeys(key for row in rows for key in row))[:_MOST_COLUMNS]
        for column in columns:
            self._column([row[column] for row in rows if is_number(row.get(column))])
            groups = defaultdict(list)
            for row in rows:
                if isinstance(value := row.get(column), str | int | bool):
                    groups[value].append(row)
            if len(groups) <= _GROUPS:
                self._grouped(list(groups.values()), columns, len(rows))

    def _grouped(self, groups: list[list[Mapping[str, Any]]], columns: list[str], total: int) -> None:
        self._add([len(groups), *(len(group) for group in groups), *(100 * len(group) / total for group in groups)])
        for column in columns:
            sums = []
            for group in groups:
                values = [row[column] for row in group if is_number(row.get(column))]
                self._column(values)
                sums.append(sum(values))
            if whole := sum(sums):
                self._add(100 * each / whole for each in sums)

    def _column(self, values: list[float]) -> None:
        if values:
            self._add([len(values), len(set(values)), sum(values), sum(values) / len(values), min(values), max(values)])


def column_figures(findings: Findings) -> dict[str, Any]:
    """Figures over the rows, by code: how many there are, and for each column of numbers its count, extremes, sum and mean.

    A year is no quantity: it has extremes alone.
    """
    if not findings.reads:
        return {}
    rows = findings.rows
    found: dict[str, Any] = {"rows": len(rows), "reads": len(findings.reads)}
    if any(read.truncated for read in findings.reads):
        found["truncated"] = True
    columns: dict[str, Any] = {}
    for column in dict.fromkeys(key for row in rows for key in row):
        values = [row[column] for row in rows if is_number(row.get(column))]
        if values:
            columns[column] = {"count": len(values), "min": min(values), "max": max(values)}
            if not column.lower().endswith("year"):
                columns[column] |= {"sum": round(sum(values), 6), "mean": round(sum(values) / len(values), 6)}
    return found | ({"columns": columns} if columns else {})


def _numbers(value: object) -> Iterator[float]:
    if is_number(value):
        yield float(value)  # type: ignore[arg-type]  # is_number has looked
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _numbers(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _numbers(one)


def _figures(text: str) -> Iterator[float]:
    for match in _NUMBER.finditer(text):
        value = float(match[0].replace(",", ""))
        whole = value.is_integer() and "." not in match[0]
        if not (whole and (abs(value) <= _SMALL or 1900 <= value <= 2200)):
            yield value


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


async def diagnose(running: TurnRun, question: str, mode: str, findings: Findings) -> Diagnosis:
    """Ask what is missing, where the message is about it or its mode follows chains; fails open.

    Only rows that state type, id, year and level name a node: what a row does not say is not guessed.
    """
    if mode not in "BD" and not _MISSING.search(question):
        return Diagnosis()
    questions = _questions(findings, await _chain_starts(running, question, findings))
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


async def _chain_starts(running: TurnRun, question: str, findings: Findings) -> dict[str, frozenset[str]]:
    """For each chain that was loaded, the node types that it begins with; none where the ontology cannot be asked."""
    if running.vocabularies is None or not findings.chains:
        return {}
    try:
        lexicon = await running.vocabularies.lexicon(running.claim.who, detect(question))
    except ServiceError as error:
        log.warning("the chains cannot be read: %s", error.code)
        return {}
    chains = lexicon.view.ontology.chains if lexicon is not None else ()
    return {chain.name: frozenset(chain.steps[0]) for chain in chains if chain.name in findings.chains}


def _questions(findings: Findings, starts: Mapping[str, frozenset[str]]) -> tuple[GapQuestion, ...]:
    """One question for each node, or for each loaded chain that begins with its type: a chain is asked about there alone."""
    wanted: dict[tuple[NodeRef, Level, str | None], None] = {}
    for node, level in (one for row in findings.rows for one in _nodes(row)):
        chains: tuple[str | None, ...] = tuple(name for name, types in starts.items() if node.type in types) or (None,)
        wanted |= dict.fromkeys((node, level, chain) for chain in chains)
    return tuple(
        GapQuestion(id=f"q{number}", node=node, level=level, chain=chain)
        for number, (node, level, chain) in enumerate(list(wanted)[:MAX_QUESTIONS], 1)
    )


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


MAX_RESULTS = 200_000
"""Bytes of rows that an answer carries."""
_EMPTY = "There is nothing that can be shown."


def answer_at_once(classified: Classification) -> Analysis:
    """The answer of a mode that reads no data: its words checked, no data, no charts, no text of a query."""
    wording = BannedWords(())
    return Analysis(
        mode=classified.mode,
        memory_process=MemoryProcess(
            intent=classified.intent, thought_trace=classified.thought_trace or "Answered at once: no data was needed."
        ),
        answer=sanitize_answer(wording.mended(classified.answer)) or _EMPTY,
        analysis=tuple(sanitize_text(wording.mended(text)) for text in classified.analysis),
        confidence=confidence_without_data(classified.confidence),
    )


def check_draft(classified: Classification, draft: Draft, findings: Findings, diagnosis: Diagnosis, degraded: int) -> Analysis:
    """The answer of a mode that reads data.

    Args:
        draft: what the model wrote, repaired already where that was tried.
        degraded: parts that did not answer.
    """
    evidence, wording = Evidence(findings), BannedWords(findings.rows)
    agreement = evidence.agreement(draft.answer)
    draft = replace_words(draft, wording)
    charts = tuple(_charts(draft.visualizations, evidence))
    table, insight = diagnosis.table(), diagnosis.insight()
    return Analysis(
        mode=classified.mode,
        memory_process=_process(classified, draft, findings),
        answer=sanitize_answer(draft.answer) or _EMPTY,
        analysis=(*((insight,) if insight else ()), *(sanitize_text(text) for text in draft.analysis)),
        data=_data(findings),
        visualizations=(*((table,) if table else ()), *charts),
        cypher_executed=findings.executed,
        confidence=confidence(findings, len(diagnosis.gaps), diagnosis.asked, agreement, degraded, draft.confidence),
    )


def apology(classified: Classification, findings: Findings, diagnosis: Diagnosis, text: str) -> Analysis:
    """The answer where none could be had of the model: what was read stands, and the confidence is 0."""
    table = diagnosis.table()
    return Analysis(
        mode=classified.mode,
        memory_process=_process(classified, Draft(answer=text), findings),
        answer=text,
        data=_data(findings),
        visualizations=(table,) if table else (),
        cypher_executed=findings.executed,
        confidence=0.0,
    )


def _process(classified: Classification, draft: Draft, findings: Findings) -> MemoryProcess:
    trace = " ".join(part for part in (classified.thought_trace, draft.thought_trace, findings.account()) if part)
    return MemoryProcess(intent=draft.intent or classified.intent, thought_trace=trace)


def _charts(given: Iterable[dict[str, Any]], evidence: Evidence) -> Iterable[Visualization]:
    for one in given:
        try:
            made = build_chart(one)
        except BadChart as error:
            log.warning("a chart was dropped: %s", error)
            continue
        if (figure := evidence.unfounded(made)) is not None:
            log.warning("a chart was dropped: %g was not read, and does not follow from what was", figure)
            continue
        yield made


def _data(findings: Findings) -> AnswerData:
    kept: list[dict[str, Any]] = []
    room = MAX_RESULTS
    for row in findings.rows:
        room -= len(json.dumps(row, ensure_ascii=False, default=str).encode())
        if room < 0:
            break
        kept.append(row)
    told = column_figures(findings)
    if len(kept) < len(findings.rows):
        told["shown"] = len(kept)
    return AnswerData(query_results=tuple(kept), summary_stats=told)
