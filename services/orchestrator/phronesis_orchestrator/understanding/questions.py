"""Which plan a question about the twin is: what there is at all, what a term means, named things, or a set."""

from __future__ import annotations

from .composing import Composition, NotUnderstood, refuse_leftovers
from .plan import (
    Aggregate,
    Change,
    Compare,
    Coverage,
    Plan,
    Rank,
    Select,
    Unknown,
)
from .questions_of_sets import of_a_set
from .questions_of_things import of_things
from .reading import Item


def compose(made: Composition) -> Plan:
    """The plan of a question about the twin. Raises `NotUnderstood`: with the `Unknown` that says why."""
    plan = _concept(made) or _coverage(made) or of_things(made) or of_a_set(made)
    refuse_leftovers(made)
    if _leaves_out_named(made, plan):
        raise NotUnderstood(Unknown(reason="unsupported", words=made.reading.text[:300]))
    if isinstance(plan, Select | Aggregate) and _asks_for_more(made, plan):
        raise NotUnderstood(Unknown(reason="unsupported", words=made.reading.text[:300]))
    return plan


def _leaves_out_named(made: Composition, plan: Plan) -> bool:
    """Whether a pronoun stands for things of which a plan over a set says nothing."""
    if not made.named or made.base is not None or not isinstance(plan, Select | Aggregate | Rank | Change | Compare):
        return False
    sets = [side.of for side in plan.sides] if isinstance(plan, Compare) else [plan.of]
    told: set[object] = {ref.id for of in sets for ref in of.among}
    for one in (one for of in sets for one in of.filters):
        told |= set(one.value) if isinstance(one.value, tuple) else {one.value}
    return not told & {ref.id for ref in made.named}


def _asks_for_more(made: Composition, plan: Select | Aggregate) -> bool:
    """Whether a message relates years or properties of the same thing to each other, which one set cannot say."""
    if made.asks("why"):
        return True  # the reasons of a set stand in no one text
    if made.says("never") and not made.reading.has("unknown", "without"):
        return True  # of all years together
    if made.says("both") and len(plan.of.years) > 1 and not made.reading.has("each_year", "year_word"):
        return True  # in the one and in the other
    if made.says("advice") and any(one.op in ("=", "in") for one in plan.of.filters):
        return True  # what ought to be, not what is
    turns = "".join("y" if item.has("year") else "v" for item in made.reading.items if item.has("year", "value"))
    if "vyvy" in turns or "yvyv" in turns:
        return True  # one value in one year, another in the next
    compared = any(item.has("compare_greater", "compare_less") for item in made.reading.items)
    return (
        compared
        and not made.states_figure()
        and made.reading.has("property", "money")
        and not made.reading.has("year_word", "entity")
    )


def _coverage(made: Composition) -> Plan | None:
    found = made.open("coverage")
    if not found or made.named or (made.has("entity", "count", "value") and "years" not in found[0].of("coverage")):
        return None
    about = found[0].of("coverage")[0]
    types = made.open("type")
    if about == "years" and not made.has("entity", "value", "property", "count", "most", "least", "largest", "smallest"):
        made.take(*found, *made.open("year_word", "count"))
        type = made.type_of(types[0])[0] if types else None
        made.take(*types[:1])
        return Coverage(about="years", type=type)
    if about == "types" and not types and not made.has("property"):
        made.take(*found)
        return Coverage(about="types")
    item = next(iter(made.open("property")), None)
    if (
        item is not None
        and about != "years"
        and len(made.open("property")) == 1
        and not made.has("superlative", "most", "least")
    ):
        type = made.type_of(types[0])[0] if types else made.supposed()
        own = [p for t, p in item.of("property") if t == type]
        if type is not None and own and made.kind(type, own[0]) == "string":
            made.take(*found, item, *types[:1])
            return Coverage(about="values", type=type, property=own[0])
    return None


def _concept(made: Composition) -> Plan | None:
    """What is a policy tool? What does delivery confidence mean? The whole message has to be that."""
    asked = made.open("concept")
    terms = [
        item for item in made.reading.items if item.senses and item.has("type", "property", "chain", "relation", "missing")
    ]
    rest = [
        item
        for item in made.reading.items
        if item not in terms and not item.has("concept", "small", "question_words", "detail")
    ]
    if not asked or len(terms) != 1 or rest or not _is_definition(made, terms[0]):
        return None
    term = terms[0]
    made.take(*made.reading.items)
    if term.has("type"):
        return Coverage(about="concept", type=made.type_of(term)[0])
    if term.has("property"):
        type, property = term.of("property")[0]
        return Coverage(about="concept", type=type, property=property)
    return Coverage(
        about="concept",
        term=(term.of("chain") or term.of("relation") or ("gap",))[0]
        if not term.has("relation")
        else term.of("relation")[0][0],
    )


def _is_definition(made: Composition, term: Item) -> bool:
    """Whether a term is asked about, and not the things of that name."""
    lead = made.reading.tokens[: term.at]
    return made.says("definition") or made.says("article", lead[-1:])
