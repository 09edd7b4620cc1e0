"""Concepts of the twin explained in plain words (mode H), from the ontology alone."""

from __future__ import annotations

from .measures import COLOURS
from .ontology import CHAINS, JOINS, THINGS, called
from .saying import SCALES, joined
from .tokens import folded

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
