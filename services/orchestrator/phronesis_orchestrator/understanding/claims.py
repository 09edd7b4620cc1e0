"""What a plan says, and what words of a message may say, taken apart into the same small claims."""

from __future__ import annotations

from collections.abc import Iterable

from .plan import Aggregate, Change, Compare, Describe, EntityRef, Filter, Gaps, Plan, Rank, Relate, Select, Selection
from .reading import Item

Claim = tuple[str, str]
"""Its sort, and what it claims: (`value`, `Red`), (`op`, `sum`)."""
Gloss = tuple[str, Claim]
"""Words that no rule knows, and what they were taken for."""
SEARCHED: Claim = ("op", "contains")
"""That words are only looked for in texts."""
GLOSSED = (
    "sum",
    "mean",
    "median",
    "share",
    "ratio",
    "difference",
    "highest",
    "lowest",
    "group",
    "not",
    "unknown",
    "gaps",
    "changed",
    "rose",
    "fell",
    "joined",
    "left",
    "history",
    ">",
    "<",
)
"""Ways to answer that words which no rule knows may ask for."""


def claims_of_item(item: Item) -> set[Claim]:
    """What a run of words may stand for, its ways to answer aside."""
    found: set[Claim] = set()
    for type, _ in item.of("type"):
        found.add(("type", type))
    for _, name in item.of("property"):
        found.add(("property", name))
    for one in item.of("superlative"):
        found |= {("property", one[1]), ("op", "ranked"), ("op", "highest" if one[2] else "lowest")}
        found.add(("op", "max" if one[2] else "min"))
    for _, name, value in item.of("value"):
        found |= {("value", value), ("property", name)}
    for refs in item.of("entity"):
        found |= {("entity", ref.id) for ref in refs}
    for name, _ in item.of("relation"):
        found.add(("relation", name))
    for name in item.of("chain"):
        found.add(("chain", name))
    return found


def claims_of(plan: Plan) -> set[Claim]:
    """All that a plan of data says, its years aside."""
    found: set[Claim] = set()
    match plan:
        case Select():
            found = claims_of_set(plan.of) | _properties(plan.show)
        case Aggregate():
            found = _claims_of_figure(plan)
        case Compare():
            found = {claim for side in plan.sides for claim in _claims_of_figure(side)}
            found.add(("op", "step" if plan.how == "change" else plan.how))
        case Rank():
            found = claims_of_set(plan.of) | {("op", "ranked"), ("op", "highest" if plan.descending else "lowest")}
            found |= _properties((plan.by,) if plan.by else ()) | _link(plan.via, plan.to)
            found |= {("op", "place")} if plan.position > 1 else set()
            found |= {("number", str(plan.limit))} if plan.limit not in (1, 10, len(plan.of.among)) else set()
            found |= claims_of_things((plan.expect,) if plan.expect else ())
        case Change():
            found = claims_of_set(plan.of) | {("op", plan.what)} | _properties((plan.property,) if plan.property else ())
            found |= {("value", value) for value in (plan.before, plan.after) if value is not None}
            found |= {("op", "count")} if plan.count else set()
        case Relate():
            found = claims_of_things((plan.source, *((plan.target,) if plan.target else ())))
            found |= _link(plan.relationship, plan.to) | {("op", "link")}
            found |= {("op", "hops")} if plan.hops > 1 else set()
            found |= {("op", "count")} if plan.count else set()
        case Gaps():
            found = claims_of_things(plan.entities) | _properties(plan.properties) | _link(plan.relationship, plan.to)
            found |= (claims_of_set(plan.of) if plan.of is not None else set()) | {("op", "gaps")}
            found |= {("chain", plan.chain)} if plan.chain else set()
            found |= {("op", "count")} if plan.count else set()
        case Describe():
            found = claims_of_things(plan.entities) | _properties(plan.properties) | {("op", "number")}
            found |= {("op", "history")} if plan.history or len(plan.years) > 2 else set()
            found |= _claims_of_filter(plan.expect) if plan.expect is not None else set()
            found |= {("op", plan.direction)} if plan.direction else set()
            found |= {("op", "when")} if plan.when else set()
    return found


def _claims_of_figure(plan: Aggregate) -> set[Claim]:
    found = claims_of_set(plan.of) | {("op", plan.measure)} | _properties((plan.property,) if plan.property else ())
    for by in plan.group_by:
        found |= {("op", "group")} | _link(by.via, by.to)
        found |= _properties((by.property,)) if by.property not in ("id", "name", "year") else set()
    if plan.having is not None:
        found |= {("op", "having"), ("number", str(plan.having.value))}
    if plan.order != "group" and plan.limit is not None:
        found |= {("op", "ranked"), ("op", "highest" if plan.order == "-value" else "lowest")}
        found |= {("number", str(plan.limit))} if plan.limit not in (1, 10) else set()
    return found | ({("op", "count")} if plan.count_groups else set())


def claims_of_set(of: Selection) -> set[Claim]:
    """What a set says: its type and its conditions."""
    found: set[Claim] = {("type", of.type)} | claims_of_things(of.among)
    for one in of.filters:
        found |= _claims_of_filter(one)
    return found


def _claims_of_filter(one: Filter) -> set[Claim]:
    found = _link(one.via, one.to) | _properties((one.property,))
    values = one.value if isinstance(one.value, tuple) else (one.value,)
    for value in values:
        if one.property == "id" and one.value is not None:
            found.add(("entity", str(value)))
        elif one.op == "contains":
            found.add(("text", str(value)))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found.add(("number", str(float(value))))
        elif value is not None:
            text = str(value)
            found.add(("date" if text[:4].isdigit() and text[4:5] == "-" else "value", text))
    names = {"<>": "not", "unknown": "unknown", "known": "known", "unlinked": "unlinked", "contains": "contains"}
    if one.op in names or one.op in (">", ">=", "<", "<="):
        found.add(("op", names.get(one.op, one.op)))
    return found


def claims_of_things(things: Iterable[EntityRef]) -> set[Claim]:
    """That things are named."""
    return {("entity", ref.id) for ref in things}


def _properties(names: Iterable[str]) -> set[Claim]:
    return {("property", name) for name in names if name not in ("id", "name", "year", "level")}


def _link(via: str | None, to: str | None) -> set[Claim]:
    return ({("relation", via)} if via else set()) | ({("type", to)} if to else set())


def _sets_of(plan: Plan) -> tuple[Selection, ...]:
    match plan:
        case Compare():
            return tuple(side.of for side in plan.sides)
        case Select() | Aggregate() | Rank():
            return (plan.of,)
        case Gaps() | Change() if plan.of is not None:
            return (plan.of,)
    return ()


def type_of(plan: Plan) -> str:
    """The type that a plan is about; empty where it is about none."""
    return next((of.type for of in _sets_of(plan)), "") or next((ref.type for ref in things_in(plan)), "")


def things_in(plan: Plan) -> tuple[EntityRef, ...]:
    """The things that a plan is about."""
    among = [ref for of in _sets_of(plan) for ref in of.among]
    match plan:
        case Relate():
            among.append(plan.source)
        case Gaps() | Describe():
            among += plan.entities
    return tuple(among)


def years_of(plan: Plan) -> tuple[int, ...]:
    """The years that a plan looks at."""
    match plan:
        case Change():
            return (plan.since, plan.until)
        case Relate():
            return (plan.year,)
        case Gaps() | Describe():
            return plan.years
    return tuple(year for of in _sets_of(plan) for year in of.years)


def dates_of(plan: Plan) -> str:
    """The values of a plan's conditions as one text, in which a year that a date is in can be found."""
    filters = [one for of in _sets_of(plan) for one in of.filters]
    if isinstance(plan, Describe) and plan.expect is not None:
        filters.append(plan.expect)
    return " ".join(str(one.value) for one in filters)
