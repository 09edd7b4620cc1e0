"""Stage check: from a draft to the answer, with every part of it held against what was read; it fails closed."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from typing import Any

from phronesis_contracts.analysis import Analysis, AnswerData, MemoryProcess, Visualization

from ..charts import BadChart, chart
from ..confidence import at_once, confidence
from ..evidence import Evidence, stats
from ..findings import Findings
from ..inquiry import Classified, Draft
from ..markup import plain, shown
from ..wording import Wording, mended
from .gaps import Diagnosis

log = logging.getLogger(__name__)

MAX_RESULTS = 200_000
"""Bytes of rows that an answer carries."""
_EMPTY = "There is nothing that can be shown."


def answer_at_once(classified: Classified) -> Analysis:
    """The answer of a mode that reads no data: its words checked, no data, no charts, no text of a query (NC-029).

    Args:
        classified: the first call's value, with an answer.
    """
    wording = Wording(())
    return Analysis(
        mode=classified.mode,
        memory_process=MemoryProcess(
            intent=classified.intent, thought_trace=classified.thought_trace or "Answered at once: no data was needed."
        ),
        answer=shown(wording.mended(classified.answer)) or _EMPTY,
        analysis=tuple(plain(wording.mended(text)) for text in classified.analysis),
        confidence=at_once(classified.confidence),
    )


def checked(classified: Classified, draft: Draft, findings: Findings, diagnosis: Diagnosis, degraded: int) -> Analysis:
    """The answer of a mode that reads data.

    Args:
        classified: mode and intent.
        draft: what the model wrote, repaired already where that was tried.
        findings: what was read.
        diagnosis: what is missing.
        degraded: parts that did not answer.
    """
    evidence, wording = Evidence(findings), Wording(findings.rows)
    agreement = evidence.agreement(draft.answer)
    draft = mended(draft, wording)
    charts = tuple(_charts(draft.visualizations, evidence))
    table, insight = diagnosis.table(), diagnosis.insight()
    return Analysis(
        mode=classified.mode,
        memory_process=_process(classified, draft, findings),
        answer=shown(draft.answer) or _EMPTY,
        analysis=(*((insight,) if insight else ()), *(plain(text) for text in draft.analysis)),
        data=_data(findings),
        visualizations=(*((table,) if table else ()), *charts),
        cypher_executed=findings.executed,
        confidence=confidence(findings, len(diagnosis.gaps), diagnosis.asked, agreement, degraded, draft.confidence),
    )


def apology(classified: Classified, findings: Findings, diagnosis: Diagnosis, text: str) -> Analysis:
    """The answer where none could be had of the model: what was read stands, and the confidence is 0 (N-069)."""
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


def _process(classified: Classified, draft: Draft, findings: Findings) -> MemoryProcess:
    trace = " ".join(part for part in (classified.thought_trace, draft.thought_trace, findings.account()) if part)
    return MemoryProcess(intent=draft.intent or classified.intent, thought_trace=trace)


def _charts(given: Iterable[dict[str, Any]], evidence: Evidence) -> Iterable[Visualization]:
    for one in given:
        try:
            made = chart(one)
        except BadChart as error:
            log.warning("a chart was dropped: %s", error)
            continue
        if (figure := evidence.unfounded(made)) is not None:
            log.warning("a chart was dropped: %g was not read, and does not follow from what was", figure)
            continue
        yield made


def _data(findings: Findings) -> AnswerData:
    """The rows, as many as an answer carries, and figures over all of them."""
    kept: list[dict[str, Any]] = []
    room = MAX_RESULTS
    for row in findings.rows:
        room -= len(json.dumps(row, ensure_ascii=False, default=str).encode())
        if room < 0:
            break
        kept.append(row)
    told = stats(findings)
    if len(kept) < len(findings.rows):
        told["shown"] = len(kept)
    return AnswerData(query_results=tuple(kept), summary_stats=told)
