"""What is wanted of a set: a count, a list, a sum, a rank, a share, a change; and whether that makes sense."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from .frame import Condition, Frame, absences, conditions, dates, sizes, subject
from .ontology import DIMENSIONS, MEASURES, has
from .reading import Declined, Item, Reading, unfit

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


@dataclass(frozen=True)
class Wanted:
    """A question about a set."""

    kind: Kind
    frame: Frame
    reading: Reading
    """What is left of the question for its years: without those of dates."""
    measure: tuple[str, ...] = ()
    """Properties that the measure may stand for, the first that is there counts."""
    aggregate: str = "sum"
    first: int = 1
    """Of a rank: how many; below zero where the smallest are wanted."""
    show: tuple[str, ...] = ()
    better: str | None = None
    """Of changes: `better` or `worse` alone."""
    groups_counted: bool = False
    """Whether it is the groups that are to be counted: “how many departments”."""


def wanted(reading: Reading) -> Wanted:
    """What a question about a set wants. Raises `Declined`: a phrase has no place in it, or something has to be asked back."""
    frame, reading = _frame(reading)
    kind = _kind(reading, frame)
    check(reading, frame, kind)
    measure = next((item.value for item in free(reading, frame, "measure")), ())
    aggregate = next((item.value for item in reading.of("aggregate")), "sum")
    better = next((item.value for item in reading.of("change") if item.value), None)
    if kind == "changes" and better is None and reading.has("list", "count") and reading.has("type") and reading.has("change"):
        better = "changed"
    result = Wanted(kind, frame, reading, measure, aggregate, better=better, groups_counted=_counts_groups(reading))
    if kind == "top":
        return _ranked(result)
    if kind == "list":
        return _shown(result)
    return result


def _frame(reading: Reading) -> tuple[Frame, Reading]:
    type, level, used, grouped = subject(reading)
    missing, of_absences = absences(reading)
    dated, of_dates = dates(replace(reading, items=tuple(item for item in reading.items if item.at not in of_absences)))
    sized, having, of_sizes = sizes(reading)
    plain = replace(reading, items=tuple(item for item in reading.items if item.at not in of_dates | of_absences))
    filters, of_filters = conditions(plain, type)
    taken = used | of_filters | of_dates | of_sizes | of_absences
    everything: tuple[Condition, ...] = (*filters, *sized, *dated, *missing)
    frame = Frame(type, level, everything, more_than=having, beyond=_beyond(reading), used=frozenset(taken))
    groups, labels = _groups(plain, frame)
    frame = replace(frame, groups=(*groups, *(one for one in grouped if one not in groups)), used=frame.used | labels)
    years_gone = {item.at for item in reading.of("year", "before", "after", "since", "until") if item.at in of_dates}
    return frame, replace(reading, items=tuple(item for item in reading.items if item.at not in years_gone))


def _beyond(reading: Reading) -> str | None:
    if reading.has("over_budget", "under_budget"):
        return "over" if reading.has("over_budget") else "under"
    return None


def _groups(reading: Reading, frame: Frame) -> tuple[tuple[str, ...], frozenset[int]]:
    groups: list[str] = []
    labels: set[int] = set()
    for item in reading.of("dimension"):
        if item.at in frame.used:
            continue
        if any(_beside(reading, item, one) for one in reading.of("rating", "department", "category", "status")):
            labels.add(item.at)
        elif item.value not in groups:
            groups.append(item.value)
    return tuple(groups), frozenset(labels)


def _beside(reading: Reading, dimension: Item, value: Item) -> bool:
    if value.kind != dimension.value:
        return False
    gap = set(range(dimension.end, value.at))
    small = {n for one in reading.of("small") for n in range(one.at, one.end)}
    return value.end == dimension.at or (dimension.end <= value.at and len(gap) <= 1 and gap <= small)


def _counts_groups(reading: Reading) -> bool:
    return any(
        0 <= what.at - asked.end <= 1 and not reading.of("by")
        for asked in reading.of("count")
        for what in reading.of("dimension")
    )


def _kind(reading: Reading, frame: Frame) -> Kind:
    if reading.has("joined", "left"):
        return "joined" if reading.has("joined") else "left"
    if reading.has("share"):
        return "share"
    if reading.has("top") or (reading.has("aggregate") and _extreme(reading) and not frame.groups):
        return "top"
    if free(reading, frame, "missing"):
        return "gaps"
    if reading.has("change", "trend", "compare") and "rating" in frame.groups:
        return "changes"
    if any(item.value for item in reading.of("change")):
        return "changes"
    if _lists(reading, frame):
        return "list"
    return "total" if free(reading, frame, "measure") and not reading.has("count") else "count"


def _extreme(reading: Reading) -> bool:
    return any(item.value in ("min", "max") for item in reading.of("aggregate"))


def _lists(reading: Reading, frame: Frame) -> bool:
    if reading.has("count", "by", "annual", "trend", "change", "compare", "aggregate", "howmuch"):
        return False
    said = [item for item in reading.items if item.kind not in ("small", "followup", "scope")]
    if not reading.has("list", "existence") and not _asks_with_a_noun(said):
        return False
    things = reading.of("type")
    if things and any(reading.words(item.at, item.end).casefold() in ("list", "enumerate") for item in reading.of("list")):
        return True
    about = free(reading, frame, "dimension", "measure", "date", "text")
    return bool(things) and all(things[0].at < item.at for item in about)


def _asks_with_a_noun(said: list[Item]) -> bool:
    return bool(said) and all(
        item.kind
        in ("type", "rating", "department", "category", "status", "year", "relative", "value", "rated", "cmp", "amount")
        or item.kind
        in ("measure", "date", "not", "dimension", "over_budget", "under_budget", "entity", "before", "after", "by")
        for item in said
    )


def _ranked(question: Wanted) -> Wanted:
    reading = question.reading
    if not question.frame.groups and reading.has("year_word") and not reading.has("year", "relative"):
        question = replace(question, frame=replace(question.frame, groups=("year",)))
    tops = reading.of("top")
    top = next((item for item in tops if item.value[1]), next(iter(tops), None))
    direction, meant = top.value if top else (-1 if question.aggregate == "max" else 1, None)
    things = reading.of("dimension", "type")
    near = [
        n
        for n in reading.of("number")
        if any(0 <= n.at - one.end <= 1 or n.end == one.at for one in tops) or any(n.end == one.at for one in things)
    ]
    if len(reading.of("number")) > len(near):
        stray = next(n for n in reading.of("number") if n not in near)
        raise unfit(reading.words(stray.at, stray.end))
    first = int(near[0].value) if near else 1
    if not near and not question.frame.groups and top is not None and _plural(reading, top):
        first = 10
    measure = question.measure or ((meant if meant != "size" else "whole_life_cost",) if meant else ())
    if meant == "size" and question.frame.groups and not question.measure:
        measure = ()
    if not measure and not question.frame.groups:
        raise Declined("The largest by which figure? I can rank by whole-life cost, baseline, forecast and variance.", mode="E")
    return replace(question, measure=measure, first=max(1, min(first, 50)) * (1 if direction == -1 else -1))


def _plural(reading: Reading, top: Item) -> bool:
    things = [item for item in reading.of("type") if item.at >= top.end]
    if not things or any(top.end <= item.at < things[0].at for item in reading.of("measure")):
        return False
    return reading.words(things[0].at, things[0].end).casefold().endswith("s")


def _shown(question: Wanted) -> Wanted:
    about = free(question.reading, question.frame, "dimension", "measure", "date", "text")
    names = [item.value[-1] if item.kind == "measure" else item.value for item in about]
    if "department" in names and question.frame.type == "EntityProject":
        raise Declined(
            "I can count or add up by department; departments beside each project of a list I cannot show.", mode="E"
        )
    show = tuple(dict.fromkeys(name for name in names if name in MEASURES or isinstance(name, str)))
    return replace(question, show=show, frame=replace(question.frame, groups=()))
