"""Whether the phrases of a question make sense together: each is used, and none contradicts another."""

from __future__ import annotations

from typing import Literal

from .frame import Frame
from .measures import DIMENSIONS, MEASURES, has
from .problems import Declined, unfit
from .reading import Item, Reading

Kind = Literal["count", "list", "total", "share", "top", "changes", "joined", "left", "gaps"]
"""What is wanted of a set."""


_ANYWHERE = frozenset(
    """when future small followup list count howmuch rated scope by existence year_word year relative trend annual
    type since after before until between""".split()
)


_BESIDES: dict[str, frozenset[str]] = {
    "count": frozenset({"compare", "aggregate", "change"}),
    "list": frozenset(),
    "total": frozenset({"compare", "change", "aggregate"}),
    "share": frozenset({"compare", "aggregate"}),
    "top": frozenset({"number", "aggregate"}),
    "changes": frozenset({"change", "compare"}),
    "joined": frozenset({"joined", "compare"}),
    "left": frozenset({"left", "compare"}),
    "gaps": frozenset({"missing"}),
}


def free(reading: Reading, frame: Frame, *kinds: str) -> tuple[Item, ...]:
    """The items of these kinds that the set itself has not taken up."""
    return tuple(item for item in reading.of(*kinds) if item.at not in frame.used)


def check(reading: Reading, frame: Frame, kind: Kind) -> None:
    """Hold every phrase against the question that was made of them.

    Raises:
        Declined: one has no part in it, or two of them make no sense together.
    """
    allowed = _ANYWHERE | _BESIDES[kind]
    spoken = {"dimension", "measure", "over_budget", "under_budget"} | ({"date", "text"} if kind == "list" else set())
    if kind == "top":
        spoken |= {"top"}
    if kind == "share":
        spoken |= {"share"}
    for item in reading.items:
        if item.kind not in allowed | spoken and item.at not in frame.used:
            raise unfit(reading.words(item.at, item.end))
        if item.kind in ("since", "after", "before", "until") and not _beside_a_year(reading, item):
            raise unfit(reading.words(item.at, item.end))
    _no_nonsense(reading, frame, kind)
    if frame.beyond and (frame.groups or kind not in ("list", "count") or reading.has("howmuch")):
        raise Declined(
            "Over or under budget I can only list or count, not group or add up; ask for the variance instead.", mode="E"
        )
    measures = {item.value for item in free(reading, frame, "measure")}
    if len(measures) > 1 and kind != "list":
        raise Declined("Please ask for one figure at a time.", mode="E")
    if measures and kind in ("count", "share", "joined", "left", "gaps", "changes"):
        item = free(reading, frame, "measure")[0]
        raise unfit(reading.words(item.at, item.end))
    if frame.groups and kind in ("joined", "left", "gaps"):
        raise Declined("I can answer that for the whole set or for one department, not by groups.", mode="E")


def _no_nonsense(reading: Reading, frame: Frame, kind: Kind) -> None:
    """Phrases that are known, and that make no sense together."""
    for item in reading.of("aggregate", "change"):
        odd = item.value != "sum" if item.kind == "aggregate" else not reading.has("count")
        if (kind == "count" and odd) or (item.kind == "change" and kind == "total" and reading.has("list")):
            raise unfit(reading.words(item.at, item.end))
    for by in reading.of("by"):
        if kind != "top" and any(by.end == item.at for item in reading.of("measure")):
            raise unfit(reading.words(by.at, by.end + 1))
    for top in reading.of("top"):
        if any(one.dimension in frame.groups for one in frame.conditions):
            raise unfit(reading.words(top.at, top.end))
        if any(top.end == item.at for item in reading.of("dimension")) and not reading.has("measure"):
            raise unfit(reading.words(top.at, top.end + 1))
    _no_odd_neighbours(reading, frame)
    _every_property_there(reading, frame)
    _no_two_times(reading, kind)


def _no_odd_neighbours(reading: Reading, frame: Frame) -> None:
    """“No Red projects”, “red departments”, “have a rating”: what is meant is not what the words beside it mean elsewhere."""
    for no in reading.of("not"):
        absent = reading.words(no.at, no.end).casefold() == "no"
        if absent and any(no.end == item.at for item in reading.of("rating", "status", "category", "department", "type")):
            raise unfit(reading.words(no.at, no.end + 1))
    for item in reading.of("dimension"):
        before = reading.pieces[item.at - 1].folded if item.at else ""
        alone = before in ("a", "any", "published") and item.value == "rating" and item.at not in frame.used
        other = any(value.end == item.at and value.kind != item.value for value in reading.of("rating", "status", "category"))
        if alone or other:
            raise unfit(reading.words(item.at - 1, item.end))


def _every_property_there(reading: Reading, frame: Frame) -> None:
    """What is asked about has to be a property of the things asked about."""
    named = [one.dimension for one in frame.conditions if one.dimension not in ("entity", "value")]
    for name in (*named, *(one for one in frame.groups if one in DIMENSIONS)):
        if not has(frame.type, name):
            raise Declined(f"{frame.noun[:1].upper()}{frame.noun[1:]} have no such property on record.", mode="E")
    for item in free(reading, frame, "date", "text"):
        if not has(frame.type, item.value) or (item.kind == "date" and not _is_noun(reading, item)):
            raise unfit(reading.words(item.at, item.end))
    for item in reading.of("measure"):
        if not any(frame.type in MEASURES[name].types for name in item.value):
            raise Declined(f"There is no {MEASURES[item.value[0]].name} of {frame.noun} on record.", mode="E")


def _is_noun(reading: Reading, date: Item) -> bool:
    return "date" in reading.words(date.at, date.end).casefold()


def _no_two_times(reading: Reading, kind: Kind) -> None:
    """“Amber in 2021 and Red in 2022”, “Red since 2021”: what is meant is one project at two times."""
    for filters in ("rating", "status"):
        values, years = reading.of(filters), reading.of("year", "relative")
        if len({one.value for one in values}) > 1 and any(values[0].at < year.at < values[-1].at for year in years):
            raise unfit(reading.words(values[0].at, values[-1].end))
        if values and kind == "list" and reading.has("since"):
            raise Declined("Do you mean in each of the years, or in any of them? Please ask for one year.", mode="E")


def _beside_a_year(reading: Reading, item: Item) -> bool:
    return any(
        0 <= year.at - item.end <= 1 or (item.kind in ("since", "until") and 0 <= item.at - year.end <= 1)
        for year in reading.of("year", "relative")
    )
