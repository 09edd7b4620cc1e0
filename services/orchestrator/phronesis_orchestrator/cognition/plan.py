"""The plan block of an action's prompt: up to six sections in one order, within a budget, with what gives way first fixed.

Recalled text stands on single lines of JSON, short, and without the headers of the block: it can end no section and begin none
(V-175, V-176). The block as a whole stands between the boundaries of the prompt, as data.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from phronesis_tokens import clean, count

from .reasoning import HEADER, ReasoningContext
from .remembered import Remembered

TOKENS = 1_500
"""Tokens of the whole block (V-112)."""
MAX_EPISODES, MAX_EXAMPLES = 3, 3
_LONGEST = 600
"""Characters of one recalled text (V-176)."""


class Section(IntEnum):
    """The sections in their order (V-105)."""

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
_GIVES_WAY = (
    Section.EPISODES,
    Section.STYLE,
    Section.RESEARCH,
    Section.STRATEGIES,
    Section.PREFLIGHT,
    Section.REASONING,
)
"""What is dropped first where there is no room; in a section the last line goes first, and the risk last of all (V-112)."""
_FORGED = re.compile(
    "|".join(header.replace(" ", r"\s+").replace("-", r"[-\u2010-\u2015\s]?") for header in HEADERS.values()), re.I
)


@dataclass(frozen=True)
class Line:
    """One line of a section."""

    section: Section
    text: str
    keeps: int = 0
    """The higher, the later it gives way inside its section."""


def harmless(text: str, limit: int = _LONGEST) -> str:
    """A text of others as one short line that holds no header of the block.

    Args:
        text: as memory or a model gave it.
        limit: characters at most.
    """
    plain = "".join(letter for letter in unicodedata.normalize("NFKC", text) if unicodedata.category(letter) != "Cf")
    plain = " ".join(clean(plain[: 4 * limit]).split())
    while (bare := " ".join(_FORGED.sub(" ", plain).split())) != plain:
        plain = bare
    return plain if len(plain) <= limit else f"{plain[: limit - 1].rstrip()}…"


def recalled(found: Remembered) -> list[Line]:
    """The lines of what memory gave: episodes, examples of style, strategies."""
    episodes = (_json(outcome=one.outcome, when=one.when, text=one.text) for one in found.episodes[:MAX_EPISODES])
    style = (_json(text=one) for one in found.style[:MAX_EXAMPLES])
    return [
        *(Line(Section.EPISODES, text) for text in episodes),
        *(Line(Section.STYLE, text) for text in style),
        *strategies(found),
    ]


def strategies(found: Remembered) -> list[Line]:
    """The lines of the strategies alone."""
    told = (
        _json(goal=one.goal, approach=one.approach, tools=", ".join(one.tools), avoid=one.avoid, score=f"{one.score:.2f}")
        for one in found.strategies
    )
    return [Line(Section.STRATEGIES, text) for text in told]


def signals(context: ReasoningContext) -> list[Line]:
    """The lines of the reasoning context."""
    return [Line(Section.REASONING, text, int(signal)) for signal, text in context.lines()]


def own(section: Section, text: str) -> list[Line]:
    """A text of ours, or one that was made harmless before: a line of it is a line of the section."""
    return [Line(section, line) for line in clean(text).split("\n") if line.strip()]


def composed(lines: Iterable[Line], limit: int = TOKENS) -> str:
    """The block; empty where nothing is to be said. A section without lines has no header (V-110).

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


def _size(kept: list[tuple[Line, int]], heads: dict[Section, int]) -> int:
    return sum(size for _, size in kept) + sum(heads[section] for section in {line.section for line, _ in kept})


def _weakest(lines: list[Line]) -> int:
    """The place of the line that gives way next."""
    return min(range(len(lines)), key=lambda at: (_GIVES_WAY.index(lines[at].section), lines[at].keeps, -at))


def _json(**fields: str) -> str:
    return json.dumps({name: told for name, value in fields.items() if (told := harmless(value))}, ensure_ascii=False)
