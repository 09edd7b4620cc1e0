"""The reasoning context: signals that code knows, put as a few lines for the model (V-078). It reads nothing and asks nobody.

The signals inform. What is allowed is decided where calls are made, whatever the model makes of them (V-089).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any

from phronesis_contracts.tools import Risk, Tool

from .remembered import ToolRecord
from .thought import Tone

HEADER = "REASONING CONTEXT"
MOST = 5
"""Tools that a signal names at most (V-091)."""
CALIBRATIONS = 5
"""Calibrations that are told at most."""
STRONG = 500
"""Characters of recalled text from which on the context is strong (V-C12)."""
_VERSION = re.compile(r"\.v\d+$")
_PARTS = re.compile(r"[._\s-]+")
_WORD = re.compile(r"[^\W_]+")
_EFFECTS = {Risk.HIGH: "has effects that reach far", Risk.MEDIUM: "changes what is stored"}


class Signal(IntEnum):
    """The kinds of signal, in the order in which they give way where there is no room: the risk goes last (V-112)."""

    CONFIDENCE = 0
    CONSTRAINT = 1
    RELIABILITY = 2
    TONE = 3
    RISK = 4


@dataclass(frozen=True)
class ReasoningContext:
    """The signals of one turn, as they are told. One that is missing has no line (V-088)."""

    tone: str | None = None
    risks: tuple[str, ...] = ()
    reliability: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    confidence: str | None = None

    @classmethod
    def build(
        cls,
        tone: Tone | None = None,
        tools: Iterable[Tool[Any, Any]] = (),
        records: Iterable[ToolRecord] = (),
        calibrations: Iterable[str] = (),
        recalled: int | None = None,
        said: str = "",
        strong: int = STRONG,
    ) -> ReasoningContext:
        """The signals of these values.

        Args:
            tone: of the message.
            tools: those at hand for the task.
            records: how often tools worked.
            calibrations: how the person wants to be answered, each in a few words.
            recalled: characters of text that memory gave; `None` where it was not asked.
            said: the message; the tools that it names come first.
            strong: characters from which on the context is strong.
        """
        words = frozenset(_WORD.findall(said.casefold()))
        scope = sorted(tools, key=lambda tool: (not _named(tool.name, words), -tool.risk, not tool.irreversible, tool.name))
        return cls(
            tone=None if tone is None else str(tone),
            risks=tuple(_risk(tool) for tool in scope if tool.risk >= Risk.MEDIUM or tool.irreversible)[:MOST],
            reliability=_reliability(scope, records, words),
            constraints=tuple(f"Calibration: {one}" for one in calibrations)[:CALIBRATIONS],
            confidence=None if recalled is None else _confidence(recalled, strong),
        )

    def lines(self) -> tuple[tuple[Signal, str], ...]:
        """Each signal with its line, in the order of the block."""
        told = [(Signal.TONE, f"- Tone: {self.tone}")] if self.tone else []
        told += [(Signal.RISK, f"- Risk: {risk}") for risk in self.risks]
        told += [(Signal.RELIABILITY, f"- Reliability: {record}") for record in self.reliability]
        told += [(Signal.CONSTRAINT, f"- {constraint}") for constraint in self.constraints]
        return (*told, *([(Signal.CONFIDENCE, f"- Memory: {self.confidence}")] if self.confidence else ()))

    def to_prompt(self) -> str:
        """The block with its header; empty where there is no signal."""
        lines = [line for _, line in self.lines()]
        return "\n".join([HEADER, *lines]) if lines else ""


def shown(name: str) -> str:
    """A tool's name as a signal says it: without its version, and with the tool apart from the action."""
    return _VERSION.sub("", name).replace(".", " ")


def _named(name: str, words: frozenset[str]) -> bool:
    return not words.isdisjoint(_parts(name))


@lru_cache(maxsize=4_096)
def _parts(name: str) -> frozenset[str]:
    """The words of a tool's name: each turn looks at all names, and they stay the same."""
    return frozenset(_PARTS.split(_VERSION.sub("", name).casefold()))


def _risk(tool: Tool[Any, Any]) -> str:
    effect = "is irreversible" if tool.irreversible else _EFFECTS[tool.risk]
    return f"{tool.risk.name} — {shown(tool.name)} {effect}"


def _reliability(scope: Sequence[Tool[Any, Any]], records: Iterable[ToolRecord], words: frozenset[str]) -> tuple[str, ...]:
    """Of the tools in scope, or of the service that they belong to; one that was never used says nothing (V-090)."""
    names = {name for tool in scope for name in (tool.name, tool.name.partition(".")[0])}
    used = [record for record in records if record.name in names and record.uses > 0]
    used.sort(key=lambda record: (not _named(record.name, words), -record.uses, record.name))
    return tuple(f"{shown(one.name)}: {_percent(one)}% success ({one.uses} uses)" for one in used[:MOST])


def _percent(record: ToolRecord) -> int:
    return int(100 * record.successes / record.uses + 0.5)


def _confidence(recalled: int, strong: int) -> str:
    if recalled <= 0:
        return "no stored context"
    return "strong context available" if recalled >= strong else "limited context available"
