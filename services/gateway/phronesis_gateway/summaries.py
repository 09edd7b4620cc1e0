"""What is shown of an analyst's reply: the whole answer with its turn, and an executive summary made of it (NC-099)."""

from __future__ import annotations

import re
from html import unescape

from pydantic import BaseModel, Field

from phronesis_contracts.analysis import GAPS_TITLE, Analysis
from phronesis_contracts.orchestrator import Reply

LONGEST = 400
"""Characters of the answer that a summary takes: whole sentences, as far as they fit."""
POINTS = 3
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_MARKUP = re.compile(r"<[^>]*>|[*_`#>|]+|\[([^\]]*)\]\([^)]*\)")


class Analysed(Analysis):
    """An analyst's answer, with the turn that it belongs to."""

    conversation_id: str = Field(serialization_alias="conversationId")
    turn_id: str = Field(serialization_alias="turnId")

    def sent(self) -> str:
        """The answer as it is sent: the text of a query stands there only where one was run (N-066)."""
        left_out = {"cypher_executed"} if self.cypher_executed is None else None
        return self.model_dump_json(by_alias=True, exclude=left_out)


class ExecutiveSummary(BaseModel):
    """An answer in short: its first sentences, its first insights, and how sure it is."""

    summary: str
    points: tuple[str, ...]
    gaps: int
    """Rows of the table of what is missing; 0 where nothing was found missing."""
    confidence: float


def analysed(reply: Reply, analysis: Analysis) -> Analysed:
    """The answer of a reply, with its turn."""
    return Analysed(**dict(analysis), conversation_id=reply.conversation_id, turn_id=reply.turn_id)


def executive_summary(analysis: Analysis) -> ExecutiveSummary:
    """An answer in short, made from answer and analysis by rule."""
    words = " ".join(unescape(_MARKUP.sub(lambda match: match[1] or " ", analysis.answer)).split())
    kept = ""
    for sentence in _SENTENCE.split(words):
        if kept and len(kept) + len(sentence) >= LONGEST:
            break
        kept = f"{kept} {sentence}".strip()
    missing = (chart.data for chart in analysis.visualizations if chart.title == GAPS_TITLE)
    gaps = sum(len(rows) for rows in missing if isinstance(rows, list))
    return ExecutiveSummary(
        summary=kept[:LONGEST], points=analysis.analysis[:POINTS], gaps=gaps, confidence=analysis.confidence
    )
