"""How figures, lists and charts are put for people (N-055), and messages that are answered at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from phronesis_contracts.answers import Analysis, MemoryProcess, Mode, Visualization, VisualizationType

from ...models.reasoner import TurnContext
from ..extractive import courtesy, say
from ..presentation import MAX_ROWS, sanitize_answer
from .ontology import CHAINS, COLOURS, JOINS, THINGS, called
from .reading import HINT
from .vocabulary import folded


@dataclass(frozen=True)
class Findings:
    """Sentences, insights, rows, and what the confidence rests on."""

    answer: str
    insights: tuple[str, ...] = ()
    rows: tuple[dict[str, Any], ...] = ()
    stats: dict[str, Any] = field(default_factory=dict)
    charts: tuple[Visualization, ...] = ()
    known: int = 1
    unknown: int = 0
    gaps: int = 0
    several_steps: bool = False
    """Whether it took more than one hop, or looked for gaps: mode B in place of A."""


SCALES = (
    "The scale of ratings changed in 2022 from five colours to three: Amber/Red and Amber/Green are used no more, so a project"
    " may bear another colour without having changed."
)
NOT_PUBLISHED = "not published"
MAX_LISTED = 60
"""Lines of a list that the answer itself shows; the table holds them all."""


def amount(value: float | None, unit: str = "") -> str:
    """A figure with its unit: £ million to the million from ten on, else to the penny's tenth of a million."""
    if value is None:
        return NOT_PUBLISHED
    if unit == "£m":
        sign = "-" if value < 0 else ""
        size = abs(value)
        return f"{sign}£{size:,.0f} million" if size >= 10 or size == int(size) else f"{sign}£{size:,.2f} million"
    text = f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
    return f"{text} %" if unit == "%" else text


def counted(n: int, one: str, many: str) -> str:
    """`1 project`, `7 projects`."""
    return f"{n:,} {one if n == 1 else many}"


def percent(part: float, whole: float) -> str:
    """A share, to a tenth."""
    return f"{100 * part / whole:.1f} %" if whole else "0 %"


def joined(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else " and ".join((", ".join(words[:-1]), words[-1])) if words else ""


def in_years(years: Sequence[int]) -> str:
    """`In 2022`, `From 2020 to 2023`, `In 2020 and 2022`."""
    if len(years) > 2 and years[-1] - years[0] == len(years) - 1:
        return f"From {years[0]} to {years[-1]}"
    return f"In {joined([str(year) for year in years])}"


def reports_of(years: Sequence[int]) -> str:
    """`the report of 2021`, `the reports of 2020 to 2023`."""
    said = in_years(years).partition(" ")[2]
    return f"the report{'s' if len(years) > 1 else ''} of {said}"


def lines(items: Iterable[str]) -> str:
    """A Markdown list, cut where it gets too long for reading."""
    every = list(items)
    shown = [f"- {item}" for item in every[:MAX_LISTED]]
    rest = len(every) - len(shown)
    return "\n".join([*shown, f"- and {rest} more, all of them in the table"] if rest else shown)


def table(title: str, rows: Sequence[dict[str, Any]]) -> Visualization:
    """Rows as a table with the columns of the first."""
    columns = list(rows[0]) if rows else []
    return Visualization(
        type=VisualizationType.TABLE, title=title[:200], config={"columns": columns}, data=list(rows)[:MAX_ROWS]
    )


def column(title: str, x: str, y: str, rows: Sequence[dict[str, Any]]) -> Visualization:
    """Discrete things side by side (N-076)."""
    data = [row for row in rows if isinstance(row[y], int | float)]
    return Visualization(type=VisualizationType.COLUMN, title=title[:200], config={"xAxis": x, "yAxis": y}, data=data)


def line(title: str, x: str, y: str, rows: Sequence[dict[str, Any]]) -> Visualization:
    """A change over time."""
    data = [row for row in rows if isinstance(row[y], int | float)]
    return Visualization(type=VisualizationType.LINE, title=title[:200], config={"xAxis": x, "yAxis": y}, data=data)


def pie(title: str, label: str, value: str, rows: Sequence[dict[str, Any]]) -> Visualization:
    """Shares of a whole."""
    config = {"labelField": label, "valueField": value}
    return Visualization(type=VisualizationType.PIE, title=title[:200], config=config, data=list(rows))


def in_order(groups: Iterable[Any]) -> list[Any]:
    """Groups as people expect them: ratings from the worst, years and names upwards, what is not published last."""
    order = {colour: n for n, colour in enumerate(COLOURS)}
    return sorted(groups, key=lambda group: (group is None, order.get(group, 99), str(group)))


def crosses_scales(years: Sequence[int]) -> bool:
    """Whether a comparison of ratings over these years meets both scales."""
    return bool(years) and min(years) < 2022 <= max(years)


def confidence(coverage: float = 1.0, known: int = 1, unknown: int = 0, gaps: int = 0) -> float:
    """How far an answer is to be trusted.

    `coverage × known / (known + unknown) × 0.9` for each kind of gap met, at most three: the share of the question's words that
    were understood, the share of the things asked about whose figure is published, and what was found missing.

    Args:
        coverage: 0 to 1; answers are given from 1 on alone.
        known: things with the figure.
        unknown: things without.
        gaps: kinds of gaps.
    """
    share = known / (known + unknown) if known + unknown else 0.0
    return round(coverage * share * 0.9 ** min(gaps, 3), 3)


_OWN: dict[str, tuple[str, ...]] = {
    "A gap is something that should be on record and is not. There are four kinds: it exists in another year and not in the one"
    " asked about; it exists at another level; a chain starts and stops before its end; or two things that belong together are"
    " both there and not linked. A project closes a gap when it gives a unit, a process or a system what it lacks.": (
        *("gap", "gaps", "closing a gap", "closing gaps", "close gaps", "gap types", "gap analysis", "missing link"),
    ),
    "A chain is a fixed path from one thing to another by way of others: "
    + "; ".join(said for _, said in CHAINS.values())
    + ". A step that is missing on the way is a gap.": ("chain", "chains", "business chain", "business chains"),
    f"The delivery confidence rating says how likely a project is to reach its aims in time and on budget: {joined(COLOURS)},"
    f" from the worst to the best. {SCALES}": (
        *(
            "rating",
            "ratings",
            "delivery confidence",
            "delivery confidence rating",
            "delivery confidence assessment",
            "rag rating",
        ),
        *("red", "amber", "green", "amber/red", "amber/green", "rag", "dca"),
    ),
    "The whole-life cost is what a project is expected to cost from its start to its end, in £ million.": (
        *("whole life cost", "whole-life cost", "whole life costs"),
    ),
    "The baseline is what was planned to be spent in the financial year, the forecast what is expected to be; the variance is"
    " the forecast less the baseline.": ("baseline", "forecast", "variance", "budget variance"),
    "There are three levels: a portfolio holds programs, a program holds projects; other things are layered in the same way."
    " Links join things of one level.": ("level", "levels"),
    "The transformation twin is a picture of an organisation and its sector: objectives, policy tools, performance,"
    " capabilities, risks, projects, units, processes, systems, vendors, culture and change, and how they hang together.": (
        *("twin", "digital twin", "transformation twin", "ontology", "transformation"),
    ),
}


def explained(words: tuple[str, ...]) -> str | None:
    """What a concept means.

    Args:
        words: its name, as folded words without articles.

    Returns:
        One paragraph; `None` where it is no concept of the twin.
    """
    for text, names in _OWN.items():
        if any(tuple(word for word in folded(name) if word != "a") == words for name in names):
            return text
    for type, thing in THINGS.items():
        names = (thing.plural, thing.singular, *thing.also, *thing.levels)
        if any(folded(name) == words for name in names):
            return _thing(type)
    return None


def _thing(type: str) -> str:
    thing = THINGS[type]
    said = [f"{thing.plural[:1].upper()}{thing.plural[1:]} stand at three levels: {joined(thing.levels)}."]
    gives = [f"{verb} {joined([called(to) for to in targets])}" for sources, targets, verb in JOINS.values() if type in sources]
    if gives:
        said.append(f"Such a thing {joined(gives)}.")
    takes = [
        f"{joined([called(one) for one in sources])} (each {verb} it)"
        for sources, targets, verb in JOINS.values()
        if type in targets
    ]
    if takes:
        said.append(f"To it lead {joined(takes)}.")
    return " ".join(said)


_FRUSTRATION = re.compile(
    r"\b(?:useless|annoying|frustrat\w*|this is (?:bad|terrible|awful)|not helpful|unhelpful|stupid|ridiculous|fed up)\b", re.I
)
_ABOUT = re.compile(
    r"\b(?:who|what) are you\b|\bwhat (?:can|do) you do\b|\bhow (?:do you work|can you help)\b|\bare you (?:a|an) \w+\b"
    r"|\byour (?:name|role|job|functions?|purpose|abilities|capabilities)\b|\byourself\b|\bcan you help me\W*$"
    r"|\bwhat (?:kind of )?questions can (?:i|you)\b|\bwhat can i ask\b",
    re.I,
)
_IDEAS = re.compile(
    r"\b(?:ideas?|brainstorm\w*|imagine a|invent|suggest\w*|creative\w*|draft|write (?:a|me|us)|come up with|recommend\w*"
    r"|advise|advice|how (?:should|could|might) (?:we|i)|what should (?:we|i)|best practices?|opinion|what do you think)\b",
    re.I,
)
_WHAT_IF = re.compile(
    r"\b(?:what if|suppose|supposing|hypothetical\w*|assum(?:e|ing)|what would (?:happen|be)|if we|if it were|simulate|were to"
    r"|scenario|would .* if)\b",
    re.I,
)
_CONCEPT = re.compile(
    r"^\W*(?:(?:please |can you |could you )*(?:explain|define|clarify)(?: (?:to me|me))?(?: what)?(?: is| are)?"
    r"|what (?:does|do|is meant by|is the meaning of|is the definition of)|what(?: is|'s|’s| are)"
    r"|meaning of|definition of|tell me what)\s+(?P<what>.+?)(?P<means>\s+(?:means?|is|are|stands? for))?\W*$",
    re.I,
)
_ARTICLES = frozenset(folded("a an the concept of term notion idea in this twin"))
_AT_ONCE = "Answered at once; no data was read."
_SENTENCES = {
    "sorry": "I am sorry that this was no help. Tell me what you are looking for, in other words, and I will try again.",
    "about": f"I answer questions about the transformation from its data, by rules and without a language model. {HINT}",
    "ideas": "For new ideas a language model is needed, and none is set up here. I answer from data. " + HINT,
    "what_if": "I cannot work out what would happen: without a language model I only report what is on record. " + HINT,
}
"""Said where the agent's profile has no phrase of that name."""


def at_once(turn: TurnContext, text: str) -> Analysis | None:
    """The answer to a message that asks for no data; `None` where it may."""
    kind = courtesy(text)
    if kind is not None:
        return answered("G" if kind == "about" else "I", kind, say(turn, kind), _AT_ONCE, 1.0)
    if _FRUSTRATION.search(text):
        return _said(turn, "I", "sorry", "frustration")
    if _ABOUT.search(text) and len(text) < 200:
        return _said(turn, "G", "about", "the agent itself")
    if _WHAT_IF.search(text):
        return _said(turn, "D", "what_if", "a what-if", sure=0.0)
    if _IDEAS.search(text):
        return _said(turn, "F", "ideas", "ideas", sure=0.0)
    return _concept(turn, text)


def _concept(turn: TurnContext, text: str) -> Analysis | None:
    match = _CONCEPT.match(text)
    if match is None:
        return None
    name = tuple(word for word in folded(match["what"]) if word not in _ARTICLES)
    own = turn.agent.phrases.get(f"concept_{'_'.join(name)}", "") if turn.agent else ""
    meaning = own or explained(name)
    if meaning is None:
        return None
    return answered("H", "an explanation", meaning, "The concept was named; its meaning is the ontology's.", 1.0)


def _said(turn: TurnContext, mode: Mode, phrase: str, intent: str, sure: float = 1.0) -> Analysis:
    own = turn.agent.phrases.get(phrase, "").strip() if turn.agent else ""
    return answered(mode, intent, own or _SENTENCES[phrase], _AT_ONCE, sure)


def answered(mode: Mode, intent: str, answer: str, trace: str, sure: float) -> Analysis:
    """An answer without data."""
    return Analysis(
        mode=mode,
        memory_process=MemoryProcess(intent=intent, thought_trace=trace),
        answer=sanitize_answer(answer),
        confidence=sure,
    )
