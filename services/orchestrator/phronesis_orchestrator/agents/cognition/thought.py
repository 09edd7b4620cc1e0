"""Values of what is thought about a message: intent, tone, memory, signals, and the plan block.

Recalled text stands on single short lines of JSON without the headers of the block, so that it can end no section and begin
none. The block as a whole stands between the boundaries of the prompt, as data.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import lru_cache
from typing import Any

from phronesis_contracts import UNKNOWN, Label
from phronesis_contracts.tools import Risk, Tool
from phronesis_tokens import clean, count


class Tier(StrEnum):
    """How hard a message is thought about. No tier follows from a model's name."""

    FLASH = "flash"
    HAIKU = "haiku"
    SONNET = "sonnet"
    QUALITY = "quality"


def parse_tier(value: object) -> Tier | None:
    """A tier as a model named it; `None` where that is none."""
    return Tier(value) if isinstance(value, str) and value in frozenset(Tier) else None


LIGHT = frozenset({Tier.FLASH, Tier.HAIKU})
"""Tiers that the light model answers, and that nothing is thought through for."""
DEEP = frozenset({Tier.SONNET, Tier.QUALITY})
"""Tiers that the large model answers, after a look ahead."""
CONTENT_WRITER = "content_writer"
"""The persona for texts that others will read: it is shown how the person writes, and looks back at its draft."""


class ToneLabel(StrEnum):
    """How a message sounds."""

    URGENT = "urgent"
    FRUSTRATED = "frustrated"
    POSITIVE = "positive"
    NEGATIVE = "negative"
    NEUTRAL = "neutral"


@dataclass(frozen=True)
class Tone:
    """The tone of a message."""

    label: ToneLabel = ToneLabel.NEUTRAL
    urgency: float = 0.0
    """From 0.0 to 1.0, in tenths."""

    def __str__(self) -> str:
        return f"{self.label.value} (urgency={self.urgency:.1f})"


@dataclass(frozen=True)
class Intent:
    """What a message is."""

    tier: Tier
    action: bool = True
    """Whether it needs tools or data; else it is conversation."""
    persona: str | None = None
    """`content_writer`, or none."""
    topic: bool = False
    """Whether a text on a topic is wanted, so that facts have to be looked up first."""


@dataclass(frozen=True)
class Thought:
    """All of it, as a turn carries it."""

    tone: Tone | None = None
    intent: Intent | None = None
    plan: str = ""
    """The plan block of the prompts; empty where nothing is to be said."""


NO_THOUGHT = Thought()


@dataclass(frozen=True)
class PastEpisode:
    """An earlier turn and what came of it."""

    text: str
    outcome: str
    when: str
    """The day, as it is shown."""
    labels: tuple[Label, ...] = UNKNOWN
    """Where it comes from."""


@dataclass(frozen=True)
class StyleExample:
    """A text that the person wrote."""

    text: str
    labels: tuple[Label, ...] = UNKNOWN
    """Where it comes from."""


@dataclass(frozen=True)
class ToolRecord:
    """How often a tool was used for this person, and how often that went well."""

    name: str
    uses: int
    successes: int


@dataclass(frozen=True)
class KnownStrategy:
    """A way of working that went well before."""

    goal: str
    approach: str
    tools: tuple[str, ...]
    score: float
    avoid: str = ""
    labels: tuple[Label, ...] = UNKNOWN
    """Where it comes from."""


@dataclass(frozen=True)
class RecalledMemory:
    """All that was recalled for one turn."""

    episodes: tuple[PastEpisode, ...] = ()
    style: tuple[StyleExample, ...] = ()
    strategies: tuple[KnownStrategy, ...] = ()
    records: tuple[ToolRecord, ...] = ()
    asked: bool = False
    """Whether memory was asked for texts at all."""

    @property
    def size(self) -> int:
        """Characters of recalled text; nothing of ours is counted."""
        told = [episode.text for episode in self.episodes] + [one.goal + one.approach for one in self.strategies]
        return sum(len(text) for text in (*told, *(one.text for one in self.style)))


NOTHING = RecalledMemory()

HEADER = "REASONING CONTEXT"
MOST = 5
"""Tools that a signal names at most."""
CALIBRATIONS = 5
"""Calibrations that are told at most."""
STRONG = 500
"""Characters of recalled text from which on the context is strong."""
_VERSION = re.compile(r"\.v\d+$")
_PARTS = re.compile(r"[._\s-]+")
_WORD = re.compile(r"[^\W_]+")
_EFFECTS = {Risk.HIGH: "has effects that reach far", Risk.MEDIUM: "changes what is stored"}


class Signal(IntEnum):
    """The kinds of signal, in the order in which they give way where there is no room: the risk goes last."""

    CONFIDENCE = 0
    CONSTRAINT = 1
    RELIABILITY = 2
    TONE = 3
    RISK = 4


@dataclass(frozen=True)
class ReasoningContext:
    """The signals of one turn, as they are told. One that is missing has no line."""

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
            recalled: characters of text that memory gave; `None` where it was not asked.
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


def tool_label(name: str) -> str:
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
    return f"{tool.risk.name} — {tool_label(tool.name)} {effect}"


def _reliability(scope: Sequence[Tool[Any, Any]], records: Iterable[ToolRecord], words: frozenset[str]) -> tuple[str, ...]:
    """Of the tools in scope, or of the service that they belong to; one that was never used says nothing."""
    names = {name for tool in scope for name in (tool.name, tool.name.partition(".")[0])}
    used = [record for record in records if record.name in names and record.uses > 0]
    used.sort(key=lambda record: (not _named(record.name, words), -record.uses, record.name))
    return tuple(f"{tool_label(one.name)}: {_percent(one)}% success ({one.uses} uses)" for one in used[:MOST])


def _percent(record: ToolRecord) -> int:
    return int(100 * record.successes / record.uses + 0.5)


def _confidence(recalled: int, strong: int) -> str:
    if recalled <= 0:
        return "no stored context"
    return "strong context available" if recalled >= strong else "limited context available"


TOKENS = 1_500
"""Tokens of the whole block."""
MAX_EPISODES, MAX_EXAMPLES = 3, 3
_LONGEST = 600
"""Characters of one recalled text."""


class Section(IntEnum):
    """The sections in their order."""

    EPISODES = 0
    STYLE = 1
    RESEARCH = 2
    STRATEGIES = 3
    REASONING = 4
    PREFLIGHT = 5


HEADERS = {
    Section.EPISODES: "EPISODIC RECALL",
    Section.STYLE: "STYLE EXAMPLES",
    Section.RESEARCH: "RESEARCH DIRECTIVE",
    Section.STRATEGIES: "PROVEN STRATEGIES",
    Section.REASONING: HEADER,
    Section.PREFLIGHT: "PRE-FLIGHT REASONING",
}
_GIVES_WAY = (Section.EPISODES, Section.STYLE, Section.RESEARCH, Section.STRATEGIES, Section.PREFLIGHT, Section.REASONING)
"""What is dropped first where there is no room; in a section the last line goes first, and the risk last of all."""
_FORGED = re.compile(
    "|".join(header.replace(" ", r"\s+").replace("-", r"[-\u2010-\u2015\s]?") for header in HEADERS.values()), re.I
)


@dataclass(frozen=True)
class PlanLine:
    """One line of a section."""

    section: Section
    text: str
    keeps: int = 0
    """The higher, the later it gives way inside its section."""


def sanitize_line(text: str, limit: int = _LONGEST) -> str:
    """A text of others as one short line that holds no header of the block. `limit`: characters at most."""
    plain = "".join(letter for letter in unicodedata.normalize("NFKC", text) if unicodedata.category(letter) != "Cf")
    plain = " ".join(clean(plain[: 4 * limit]).split())
    while (bare := " ".join(_FORGED.sub(" ", plain).split())) != plain:
        plain = bare
    return plain if len(plain) <= limit else f"{plain[: limit - 1].rstrip()}…"


def recalled_lines(found: RecalledMemory) -> list[PlanLine]:
    """The lines of what memory gave: episodes, examples of style, strategies."""
    episodes = (_json(outcome=one.outcome, when=one.when, text=one.text) for one in found.episodes[:MAX_EPISODES])
    style = (_json(text=one.text) for one in found.style[:MAX_EXAMPLES])
    return [
        *(PlanLine(Section.EPISODES, text) for text in episodes),
        *(PlanLine(Section.STYLE, text) for text in style),
        *strategy_lines(found),
    ]


def strategy_lines(found: RecalledMemory) -> list[PlanLine]:
    """The lines of the strategies alone."""
    told = (
        _json(goal=one.goal, approach=one.approach, tools=", ".join(one.tools), avoid=one.avoid, score=f"{one.score:.2f}")
        for one in found.strategies
    )
    return [PlanLine(Section.STRATEGIES, text) for text in told]


def signal_lines(context: ReasoningContext) -> list[PlanLine]:
    return [PlanLine(Section.REASONING, text, int(signal)) for signal, text in context.lines()]


def section_lines(section: Section, text: str) -> list[PlanLine]:
    """A text of ours, or one that was made harmless before: a line of it is a line of the section."""
    return [PlanLine(section, line) for line in clean(text).split("\n") if line.strip()]


def compose_plan(lines: Iterable[PlanLine], limit: int = TOKENS) -> str:
    """The block; empty where nothing is to be said. A section without lines has no header.

    Args:
        lines: of any section, in any order of sections.
        limit: tokens of the block.
    """
    kept = [(line, count(line.text, limit) + 1) for line in sorted(lines, key=lambda line: line.section)]
    heads = {section: count(header, limit) + 1 for section, header in HEADERS.items()}
    while kept and _size(kept, heads) > limit:
        kept.pop(_weakest([line for line, _ in kept]))
    said: list[str] = []
    for section, header in HEADERS.items():
        if texts := [line.text for line, _ in kept if line.section is section]:
            said += [header, *texts]
    return "\n".join(said)


def _size(kept: list[tuple[PlanLine, int]], heads: dict[Section, int]) -> int:
    return sum(size for _, size in kept) + sum(heads[section] for section in {line.section for line, _ in kept})


def _weakest(lines: list[PlanLine]) -> int:
    return min(range(len(lines)), key=lambda at: (_GIVES_WAY.index(lines[at].section), lines[at].keeps, -at))


def _json(**fields: str) -> str:
    return json.dumps({name: told for name, value in fields.items() if (told := sanitize_line(value))}, ensure_ascii=False)
