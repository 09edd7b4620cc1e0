"""The answer of an analyst: one object with what was said, what it rests on, and how sure it is (N-059)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from .messages import Message

Mode = Literal["A", "B", "C", "D", "E", "F", "G", "H", "I", "J"]
"""What a message asks for. A to D read data, E to J are answered at once (N-025, N-026)."""
DATA_MODES: frozenset[str] = frozenset("ABCD")
GAPS_TITLE = "What is missing"
"""Title of every table of gaps, by which a reader of an answer knows it."""


class VisualizationType(StrEnum):
    """The closed set of what can be drawn (N-071)."""

    COLUMN = "column"
    LINE = "line"
    PIE = "pie"
    RADAR = "radar"
    SCATTER = "scatter"
    BUBBLE = "bubble"
    COMBO = "combo"
    TABLE = "table"
    HTML = "html"


class Visualization(Message):
    """One chart, table or report. `config` names the fields of `data` as its type asks for them."""

    type: VisualizationType
    title: str = Field(min_length=1, max_length=200)
    config: dict[str, Any] = Field(default_factory=dict)
    data: list[dict[str, Any]] | str
    """Rows; for `html` one sanitised fragment."""


class MemoryProcess(Message):
    """What was understood, and how the answer came about."""

    intent: str = Field(min_length=1)
    thought_trace: str = Field(min_length=1)


class AnswerData(Message):
    """The rows that the answer rests on, and figures over them."""

    query_results: tuple[dict[str, Any], ...] = ()
    summary_stats: dict[str, Any] = Field(default_factory=dict)


class Analysis(Message):
    """A whole answer, in every mode (N-059 to N-067)."""

    mode: Mode
    memory_process: MemoryProcess
    answer: str = Field(min_length=1)
    """Markdown, or HTML that was sanitised."""
    analysis: tuple[str, ...] = ()
    data: AnswerData = AnswerData()
    visualizations: tuple[Visualization, ...] = ()
    cypher_executed: str | None = None
    """What was read from the graph, joined with `;`; absent where nothing was."""
    confidence: float = Field(ge=0.0, le=1.0)
