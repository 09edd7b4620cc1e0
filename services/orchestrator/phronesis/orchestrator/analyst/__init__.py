"""The analyst without a language model."""

from __future__ import annotations

from phronesis.contracts.analysis import Analysis, MemoryProcess

from ..extractive import courtesy, say
from ..reasoner import TurnContext
from ..running import Running

_DECLINED = "No language model is set up here, so I cannot work on this question."


async def analyse(running: Running, turn: TurnContext) -> Analysis:
    """Answer courtesies by rule, and decline the rest.

    Args:
        running: the turn.
        turn: the context package.
    """
    kind = courtesy(turn.user_text)
    if kind is None:
        process = MemoryProcess(intent="a question", thought_trace="No rule answers it.")
        return Analysis(mode="J", memory_process=process, answer=_DECLINED, confidence=0.0)
    process = MemoryProcess(intent=kind, thought_trace="Answered by rule.")
    return Analysis(mode="G" if kind == "about" else "I", memory_process=process, answer=say(turn, kind), confidence=0.9)
