"""How a message was understood, said beside an answer whose plan a model made, so that a wrong reading is seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .plan import Aggregate, Change, Compare, Describe, Gaps, Plan, Rank, Relate, Select, Understood
from .wording import Wording


@dataclass(frozen=True)
class Taken:
    """What is said of how a message was understood."""

    glosses: str
    """What unknown words were taken for, which an answer begins with; empty where there were none."""
    plan: str
    """The whole of the plan, at its end."""

    def around(self, text: str) -> str:
        """An answer with both, each once."""
        before = f"{self.glosses}\n\n" if self.glosses and self.glosses not in text else ""
        after = f"\n\n{self.plan}" if self.plan not in text else ""
        return f"{before}{text}{after}"


_NAMES = 3
"""Things that are named."""


def say_taken(understood: Understood, words: Wording) -> Taken:
    """What has to be said of a plan that a model made."""
    each = words.listed(
        words.phrase("taken/gloss", said=said, meaning=_meaning(sort, name, words)) for said, sort, name in understood.glosses
    )
    return Taken(
        words.phrase("taken/glosses", glosses=each) if each else "",
        words.phrase("taken/said", what=_what(understood.plan, words)),
    )


def _meaning(sort: str, name: str, words: Wording) -> str:
    match sort:
        case "op":
            return str(words.raw("taken/ops")[name])
        case "type":
            return words.type(name)
        case "relation":
            return words.verb(name, True)
    owner = next((one.name for one in words.schema.view.types if any(each.name == name for each in one.properties)), None)
    return words.property(owner, name)


def _what(plan: Plan, words: Wording) -> str:
    match plan:
        case Select():
            return words.phrase("taken/select", set=words.set(plan.of), years=words.years(plan.of.years))
        case Aggregate():
            return _figure(plan, words)
        case Compare():
            how = words.raw("taken/hows")[plan.how]
            return words.phrase("taken/compare", how=how, sides=words.listed(_figure(one, words) for one in plan.sides))
        case Rank():
            end = words.raw("taken/ends")["most" if plan.descending else "least"]
            by = words.property(plan.of.type, plan.by) if plan.by else words.phrase("taken/links")
            return words.phrase("taken/rank", set=words.set(plan.of), property=by, end=end, years=words.years(plan.of.years))
        case Change():
            property = words.property(plan.of.type, plan.property) if plan.property else ""
            return words.phrase(
                "taken/change",
                set=words.set(plan.of),
                what=words.raw("taken/whats")[plan.what],
                since=plan.since,
                until=plan.until,
                property=words.phrase("taken/of_property", property=property) if property else "",
            )
        case Relate():
            return words.phrase("taken/relate", name=plan.source.name, years=words.years((plan.year,)))
        case Gaps():
            of = words.set(plan.of) if plan.of is not None else _names([one.name for one in plan.entities], words)
            return words.phrase("taken/gaps", set=of, years=words.years(plan.years))
        case Describe():
            type = plan.entities[0].type
            asked = list(plan.properties) or ([plan.expect.property] if plan.expect is not None else [])
            properties = words.listed(words.property(type, one) for one in asked) or words.phrase("taken/everything")
            names = _names([one.name for one in plan.entities], words)
            return words.phrase("taken/describe", properties=properties, names=names, years=words.years(plan.years))
    raise TypeError(f"a plan of kind {plan.kind} is not about data")


def _figure(plan: Aggregate, words: Wording) -> str:
    by = words.listed(words.group(one, plan.of.type) for one in plan.group_by)
    groups = words.phrase("taken/groups", groups=by) if by else ""
    set, years = words.set(plan.of), words.years(plan.of.years)
    if plan.measure == "count" or plan.property is None:
        return words.phrase("taken/count", set=set, groups=groups, years=years)
    property = words.property(plan.of.type, plan.property)
    return words.phrase("taken/measured", measure=words.measure(plan), property=property, set=set, groups=groups, years=years)


def _names(names: Sequence[str], words: Wording) -> str:
    return words.some(names, _NAMES)
