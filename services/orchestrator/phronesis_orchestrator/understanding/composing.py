"""From a reading to a plan over the twin: which set is meant, on what conditions, and what is wanted of it.

Every word has to be explained by what became of it; a word that is left over makes the plan `Unknown`, not a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Literal

from rapidfuzz.distance import Prefix

from phronesis_contracts.twin import GroupBy, Level

from .language import Sense, Token, fold
from .lexicon import Lexicon, VocabularyView
from .plan import (
    MAX_ENTITIES,
    Describe,
    EntityRef,
    Filter,
    Focus,
    Rank,
    Relate,
    Select,
    Selection,
    Unknown,
)
from .reading import Item, Reading, folded_words

COMPARISONS: dict[str, Literal["<", "<=", ">", ">=", "="]] = {
    "compare_greater": ">",
    "compare_at_least": ">=",
    "compare_less": "<",
    "compare_at_most": "<=",
    "compare_equal": "=",
}
MEASURES: dict[str, Literal["sum", "mean", "median", "min", "max"]] = {
    "median": "median",
    "mean": "mean",
    "sum": "sum",
    "min": "min",
    "max": "max",
}
_FREE = frozenset(
    """small question_words list also follow_up scope pronoun_one pronoun_many year_word existence detail number place
    polite group or each relative_years only breakdown history about with numbers ordinals coverage concept
    money yes_or_no best worst between compare_at_least by_date purpose with_each""".split()
)
"""Kinds that may be left over: they were used where they mattered."""
_JUDGED = frozenset({"best", "worst"})
_JUDGED_BY = "value property superlative improved worsened changed compare difference entity rank most least largest".split()
"""What says by which measure something is the best or the worst; without it nobody knows."""
GUESSED = 0.8
"""Certainty of a plan that had to choose between readings."""
_TIMES = ("before", "after", "since", "until", "by_date", "between", "compare_at_most", "compare_at_least")
_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»]{2,60})[\"”“»]")
TOP = 10
"""Members of a ranking whose length was not stated."""


class NotUnderstood(Exception):
    """No plan can be made; carries the `Unknown` that says why."""

    def __init__(self, plan: Unknown) -> None:
        super().__init__(plan.reason)
        self.plan = plan


@dataclass
class Composition:
    """One reading on its way to a plan."""

    reading: Reading
    lexicon: Lexicon
    focus: Focus
    base: Selection | None = None
    """The set that a plural pronoun refers to."""
    named: tuple[EntityRef, ...] = ()
    """The things that a singular pronoun or an ordinal refers to."""
    certainty: float = 1.0
    notes: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    """Words beside a name that nothing explains, and that were passed over."""
    linked: list[EntityRef] = field(default_factory=list)
    """Things that members of the set are linked to, as a condition."""
    used: set[int] = field(default_factory=set)
    """Places of the words that were taken up."""

    @property
    def view(self) -> VocabularyView:
        return self.lexicon.view

    # -- items ------------------------------------------------------------------------------------------------

    def open(self, *kinds: str) -> list[Item]:
        """Items of one of the kinds that were not taken up."""
        return [item for item in self.reading.of(*kinds) if item.at not in self.used]

    def take(self, *items: Item | None) -> None:
        """Note that items were taken up."""
        for item in items:
            if item is not None:
                self.used.update(range(item.at, item.end))

    def has(self, *kinds: str) -> bool:
        return bool(self.open(*kinds))

    def before(
        self, item: Item, kinds: Iterable[str], across: Iterable[str] = ("small", "question_words", "also")
    ) -> Item | None:
        """The item of one of the kinds right before `item`, other kinds in `across` between them."""
        kinds, across = frozenset(kinds), frozenset(across)
        for one in reversed([each for each in self.reading.items if each.end <= item.at]):
            if one.has(*kinds) and one.at not in self.used:
                return one
            if one.senses and not one.has(*across):
                return None
            if not one.senses:
                return None
        return None

    def after(
        self, item: Item, kinds: Iterable[str], across: Iterable[str] = ("small", "question_words", "also")
    ) -> Item | None:
        """The item of one of the kinds right after `item`, other kinds in `across` between them."""
        kinds, across = frozenset(kinds), frozenset(across)
        for one in [each for each in self.reading.items if each.at >= item.end]:
            if one.has(*kinds) and one.at not in self.used:
                return one
            if not one.senses or not one.has(*across):
                return None
        return None

    def asks(self, word: str) -> bool:
        """Whether a question word stands in the message: `who`, `when` …"""
        return any(word in item.of("question_words") for item in self.reading.items)

    def says(self, cue: str, within: Sequence[Token] | None = None) -> bool:
        """Whether a word of a cue stands in the message, or in a part of it."""
        cues = self.reading.language.cues(cue)
        return any(token.folded in cues for token in (self.reading.tokens if within is None else within))

    # -- types ------------------------------------------------------------------------------------------------

    def subject(self) -> tuple[str, Level | None, Item | None]:
        """The type that is asked about, its level, and the item that names it; it is taken up."""
        heads = [item for item in self.open("type") if self._is_head(item) and not self._is_scope(item)]
        if heads:
            head = heads[0]
            type, level = self.type_of(head)
            self.take(head)
            for other in heads[1:]:
                if all(type == one for one, _ in other.of("type")):
                    self.take(other)
            whole = head.text.casefold() in self.reading.language.words.get("scope", ())
            return type, level if level and not whole else self.view.usual_level(type), head
        if self.base is not None:
            return self.base.type, self.base.level, None
        supposed = self.supposed()
        if supposed is None:
            words = self.left_over()
            raise NotUnderstood(Unknown(reason="words" if words else "reference", words=words or self.reading.text[:200]))
        return supposed, self.view.usual_level(supposed), None

    def _is_scope(self, item: Item) -> bool:
        """Whether a type's noun means all that there is: how many are there in the portfolio?"""
        whole = item.has("scope") and item.text.casefold() in self.reading.language.words.get("scope", ())
        owned = self.before(item, ("entity",), ("small",)) or self.after(item, ("entity",), ("small",))
        if owned is not None and all(one.type not in {t for t, _ in item.of("type")} for one in owned.of("entity")[0][:1]):
            return False  # the portfolio of one ministry
        if whole and self.before(item, ("count", "question_words"), ()) is None:
            self.take(item)
            return True
        return False

    def _is_head(self, item: Item) -> bool:
        if self.before(item, ("group", "each")) is not None and not self._leads(item):
            return False
        return (
            self.before(item, ("with", "without")) is None
            and self.before(item, tuple(COMPARISONS), ("number", "small", "numbers")) is None
        )

    def _leads(self, item: Item) -> bool:
        """Whether nothing but small words stands before an item."""
        first = next((one for one in self.reading.items if one.has("type")), None)
        return first is item and not self.before(item, ("group",))

    def type_of(self, item: Item) -> tuple[str, Level | None]:
        """The best of the types that a word may name: what the rest of the message fits, then what has things."""
        options = list(dict.fromkeys(item.of("type")))
        if len(options) == 1:
            return options[0]  # type: ignore[no-any-return]
        scored = sorted(options, key=lambda one: (-self.support(one[0], item), -len(self._at_level(*one)), options.index(one)))
        return scored[0]  # type: ignore[no-any-return]

    def _at_level(self, type: str, level: Level | None) -> list[object]:
        return [one for one in self.view.things(type) if level is None or one.level == level]

    def support(self, type: str, besides: Item | None = None) -> float:
        """How well a message fits a type."""
        score = 0.0
        for item in self.reading.items:
            if item is besides:
                continue
            own = [*item.of("property"), *item.of("superlative"), *item.of("value")]
            score += 1.0 if any(one[0] == type for one in own) else 0.0
            score += 0.5 if any(self.joins(name, type) for name, _ in item.of("relation")) else 0.0
            score += 0.7 if any(self.view.between(type, ref.type) for refs in item.of("entity") for ref in refs[:1]) else 0.0
            others = {one for one, _ in item.of("type")} - {type}
            score += 0.4 if any(self.view.between(type, other) for other in others) else 0.0
        return score + (0.3 if self.view.things(type) else 0.0)

    def joins(self, relationship: str, type: str) -> bool:
        found = self.view.relationships.get(relationship)
        return found is not None and (type in found.sources or type in found.targets)

    def supposed(self) -> str | None:
        """The type that a message without one is about: what its properties and values belong to."""
        types = [one.name for one in self.view.ontology.types if self.view.things(one.name)]
        owned = [
            type
            for item in self.reading.items
            if item.at not in self.used
            for type in {one[0] for kind in ("property", "superlative", "value") for one in item.of(kind)}
        ]
        linked = {refs[0].type for item in self.open("entity") for refs in item.of("entity") if refs}
        moved = self.has("joined", "left")
        asked = moved or self.has(
            "count", "list", "share", "more", "less", "rank", "largest", "smallest", "most", "least", *MEASURES
        )
        if not owned and (self.has("money") or asked):
            near = [one for one in types for other in linked if self.view.between(one, other)]
            owned = [one for one in near if moved or self.main_money(one)]
        if not owned and not linked and (self._states_money() or (moved and self.has("year", "relative_years"))):
            owned = [one for one in types if self.main_money(one)]
        if not owned:
            return None
        return max(types, key=lambda type: (owned.count(type), self.support(type), len(self.view.things(type))), default=None)

    def states_figure(self) -> bool:
        """Whether a figure stands in the message that is no year."""
        return any(item.has("amount") or (item.has("number") and not item.has("year")) for item in self.reading.items)

    def _states_money(self) -> bool:
        """Whether a sum of money stands in the message: anything above 15 billion."""
        amounts = [one for item in self.open("amount") for one in item.of("amount")]
        return any(currency or (scale > 1 and not unit) for _, scale, unit, currency in amounts)

    # -- time -------------------------------------------------------------------------------------------------

    def years(self, type: str, *, apart: bool = False) -> tuple[int, ...]:
        """The years that a message states, in their order; empty where it states none. `apart`: two are two, and no range."""
        known = self.view.years_of(type)
        stated: list[int] = []
        if (every := self._all_years(known)) is not None:
            self.take(*every)
            return known
        items = self.open("year", "relative_years")
        said = any(item.has("year") for item in items)
        for item in items:
            if said and not item.has("year") and "same" in item.of("relative_years"):
                self.take(item)  # 2022 then
                continue
            year = self.year(item, known)
            if year is None:
                continue
            lead = self.before(
                item,
                ("since", "until", "before", "after", "between", "compare_at_most", "compare_at_least"),
                ("small", "year_word"),
            )
            tail = self.after(item, ("since",), ())
            self.take(item)
            if (lead is not None and lead.has("since", "compare_at_least") and not lead.has("small")) or tail is not None:
                stated += [one for one in known if one >= year]
            elif lead is not None and lead.has("until", "compare_at_most"):
                stated += [one for one in known if one <= year]
            elif lead is not None and lead.has("before"):
                stated += [one for one in known if one < year]
            elif lead is not None and lead.has("after"):
                stated += [one for one in known if one > year]
                if not stated:  # run past 2040: no year of the data
                    raise NotUnderstood(Unknown(reason="words", words=f"{lead.text} {item.text}"))
            else:
                stated.append(year)
            self.take(lead if lead is not None and not lead.has("small") else None, tail)
        if len(stated) == 2 and not apart and self._is_range(items):
            low, high = sorted(stated)
            stated = [one for one in known if low <= one <= high] or stated
        return tuple(dict.fromkeys(stated))

    def _all_years(self, known: Sequence[int]) -> tuple[Item, ...] | None:
        """The words for all years of the data, as in “over all four years”; of different things where no year is stated."""
        language = self.reading.language
        for item in self.open("number", "numbers"):
            word = self.after(item, ("year_word",), ())
            if self.reading.tokens[max(0, item.at - 1)].folded not in language.cues("every") | language.cues("called"):
                continue  # in the next four years
            if word is not None and word.at == item.end and len(known) in (*item.of("number"), *item.of("numbers")):
                return (item, word)
        words = tuple(self.open("distinct"))
        return words if words and not self.has("year", "relative_years") else None

    def year(self, item: Item, known: Sequence[int]) -> int | None:
        if item.has("year"):
            return int(item.of("year")[0])
        if not known:
            return None
        step = item.of("relative_years")[0]
        if step == "first":
            return known[0]
        if step == "same":
            return self.focus.years[-1] if self.focus.years else None
        stated = [int(one.of("year")[0]) for one in self.reading.of("year")]
        spoken = (*self.focus.years[-1:], *stated) if step in (-1, 1, 2) else ()
        anchor = spoken[-1] if spoken else known[-1]
        return int(anchor) + int(step)

    def _is_range(self, items: Sequence[Item]) -> bool:
        if len(items) != 2:
            return False
        return self.says("range", self.reading.tokens[items[0].end : items[1].at]) or self.reading.has("between")

    def default_years(self, type: str, linked: Iterable[EntityRef] = ()) -> tuple[int, ...]:
        """The year of a message that states none: that of the set spoken of, else the newest in which the named things are."""
        if self.base is not None and self.base.type == type:
            return self.base.years
        known = self.view.years_of(type)
        if not known:
            raise NotUnderstood(Unknown(reason="empty", detail={"type": type}))
        goes_on = self.focus.plan is not None and self.focus.selection is not None and self.focus.selection.type == type
        leans = bool(self.named) or goes_on or (bool(self.reading.items) and self.reading.items[0].has("follow_up"))
        if leans and set(self.focus.years) & set(known):
            return (max(set(self.focus.years) & set(known)),)  # and how many are there in all: of the year spoken of
        there = [year for year in known if all(year in ref.years for ref in linked)]
        return (there[-1] if there else known[-1],)

    # -- conditions -------------------------------------------------------------------------------------------

    def filters(self, type: str) -> tuple[Filter, ...]:
        """The conditions of a set, in the order of the message."""
        found: list[Filter] = []
        found += self._dates(type)
        found += self.sizes(type)
        found += self._absences(type)
        found += self.values(type)
        found += self._linked_entities(type)
        return tuple(found)

    def _negation(self, item: Item) -> Item | None:
        return self.before(item, ("not",), ("small", "property", "question_words"))

    def values(self, type: str) -> list[Filter]:
        grouped: dict[tuple[str, str | None, str | None, bool], list[tuple[str, str]]] = {}
        for item in self.open("value"):
            if item.has("type") and item.at in self.used:
                continue
            if any(t == type for t, _ in item.of("property")) and not any(one[0] == type for one in item.of("value")):
                continue  # a property of the thing itself goes before a value of something that it is linked to
            if self.asks("when") and any(t == type and self.kind(t, p) == "date" for t, p in item.of("property")):
                continue  # when do they finish: a date, though what has ended may have a value of that name
            chosen = self._value_of(item, type)
            if chosen is None:
                continue
            owner, property, value = chosen
            no = self._negation(item)
            via, to = (None, None) if owner == type else self.link(type, owner, item)
            grouped.setdefault((property, via, to, no is not None), []).append((value, item.text))
            self.take(item, no)
            near = self.before(item, ("property",), ("small", "compare_equal")) or self.after(item, ("property",), ())
            if near is not None and any(one == (owner, property) for one in near.of("property")):
                self.take(near)
        found = []
        for (property, via, to, negated), values in grouped.items():
            distinct = tuple(dict.fromkeys(value for value, _ in values))
            words = ", ".join(dict.fromkeys(distinct))
            if negated:
                found += [Filter(property=property, op="<>", value=one, via=via, to=to, words=one) for one in distinct]
            elif len(distinct) == 1 or (via is not None and self.says("both_of")):
                found += [Filter(property=property, op="=", value=one, via=via, to=to, words=one) for one in distinct]
            else:
                found.append(Filter(property=property, op="in", value=distinct, via=via, to=to, words=words))
        return found

    def _value_of(self, item: Item, type: str) -> tuple[str, str, str] | None:
        options = list(dict.fromkeys(item.of("value")))
        own = [one for one in options if one[0] == type]
        near = [prop for one in self.reading.of("property") for prop in one.of("property")]
        if own:
            return max(own, key=lambda one: ((one[0], one[1]) in near, self._known_count(one), -own.index(one)))  # type: ignore[no-any-return]
        linked = [one for one in options if self.view.between(type, one[0])]
        return linked[0] if linked else None

    def _known_count(self, one: tuple[str, str, str]) -> int:
        stored = self.view.known.get((one[0], one[1]))
        return next((value.nodes for value in stored.values if value.value == one[2]), 0) if stored else 0

    def link(self, type: str, other: str, item: Item | None) -> tuple[str, str]:
        """The relationship that joins two types: the one that the message names, or the only one. Raises `NotUnderstood`."""
        ways = [relationship.name for relationship, _ in self.view.between(type, other)]
        said = [name for one in self.reading.of("relation") for name, _ in one.of("relation") if name in ways]
        if said:
            for one in self.open("relation"):
                if any(name == said[0] for name, _ in one.of("relation")):
                    self.take(one)
            return said[0], other
        if len(ways) == 1:
            return ways[0], other
        detail = {"type": type, "other": other}
        words = item.text if item is not None else ""
        if not ways:
            raise NotUnderstood(Unknown(reason="relationship", words=words, detail=detail))
        raise NotUnderstood(Unknown(reason="relationship", words=words, detail={**detail, "ways": ", ".join(ways)}))

    def _linked_entities(self, type: str) -> list[Filter]:
        grouped: dict[tuple[str, str, bool], list[EntityRef]] = {}
        found: list[Filter] = []
        for item in self.open("entity"):
            refs = self.refs(item, type)
            if not refs or refs[0].type == type:
                continue
            no = self._negation(item)
            if self._is_further(type, refs[0].type) and (filter := self._two_hops(type, refs, item, no)) is not None:
                found.append(filter)
                self.take(item, no, *self.appositions(item, refs[0].type))
                continue
            via, to = self.link(type, refs[0].type, item)
            grouped.setdefault((via, to, no is not None), []).extend(refs)
            self.linked += refs if no is None else ()
            self.take(item, no, *self.appositions(item, refs[0].type))
        for ref in self.named:
            if ref.type != type:
                via, to = self.link(type, ref.type, None)
                grouped.setdefault((via, to, False), []).append(ref)
        for (via, to, negated), refs_of in grouped.items():
            ids = tuple(dict.fromkeys(ref.id for ref in refs_of))
            words = ", ".join(dict.fromkeys(ref.name for ref in refs_of))
            if negated:
                found += [Filter(property="id", op="<>", value=one, via=via, to=to, words=words) for one in ids]
            elif len(ids) == 1:
                found.append(Filter(property="id", op="=", value=ids[0], via=via, to=to, words=words))
            else:
                found.append(Filter(property="id", op="in", value=ids, via=via, to=to, words=words))
        return found

    def _is_further(self, type: str, other: str) -> bool:
        """Whether another type stands between two: they are not joined, or what is said joins it to the further one."""
        direct = {one.name for one, _ in self.view.between(type, other)}
        if not direct:
            return True
        middles = {name for each in self.open("type") for name, _ in each.of("type") if self.view.between(type, name)}
        said = {name for each in self.open("relation") for name, _ in each.of("relation")}
        return not said & direct and any(said & {one.name for one, _ in self.view.between(middle, other)} for middle in middles)

    def _two_hops(self, type: str, refs: tuple[EntityRef, ...], item: Item, no: Item | None) -> Filter | None:
        """A condition by way of a third type: cameras lent to a film that was shot on that stage."""
        other = refs[0].type
        between = [
            one.name
            for one in self.view.ontology.types
            if self.view.between(type, one.name) and self.view.between(one.name, other)
        ]
        said = [(each, name) for each in self.open("type") for name, _ in each.of("type") if name in between]
        if said:
            self.take(said[0][0])
        elif len(between) != 1:
            return None
        else:
            self.certainty = min(self.certainty, GUESSED)
        middle = said[0][1] if said else between[0]
        via, to = self.link(type, middle, item)
        inner_via, inner_to = self.link(middle, other, item)
        words = ", ".join(dict.fromkeys(ref.name for ref in refs))
        ids = tuple(dict.fromkeys(ref.id for ref in refs))
        inner = Filter(property="id", op="in", value=ids, via=inner_via, to=inner_to, words=words)
        return Filter(property="id", op="linked" if no is None else "unlinked", via=via, to=to, where=(inner,))

    def appositions(self, item: Item, type: str) -> list[Item]:
        """The type's noun right before or after a name: the vendor Acme, Acme department."""
        near = [self.before(item, ("type",), ("small",)), self.after(item, ("type",), ())]
        return [one for one in near if one is not None and any(name == type for name, _ in one.of("type"))]

    def refs(self, item: Item, type: str | None) -> tuple[EntityRef, ...]:
        """The things that a name stands for: of the type asked about, else of one joined to it. Raises `NotUnderstood`."""
        options = [refs for refs in item.of("entity") if refs]
        if not options:
            return ()
        near = [
            t
            for one in (self.before(item, ("type",), ("small",)), self.after(item, ("type",), ()))
            if one
            for t, _ in one.of("type")
        ]

        def fits(refs: tuple[EntityRef, ...]) -> tuple[bool, bool, bool, int]:
            own = refs[0].type
            return (own == type, own in near, type is not None and bool(self.view.between(type, own)), -len(refs))

        best: tuple[EntityRef, ...] = max(options, key=fits)
        names = dict.fromkeys(ref.name for ref in best)
        if len(names) > 1 and not item.whole:
            latest = self._present(best)
            if len(dict.fromkeys(ref.name for ref in latest)) == 1:
                return latest
            raise NotUnderstood(Unknown(reason="ambiguous", words=item.text, choices=best[:12]))
        if len(options) > 1 and type is None and not near:
            self.certainty = min(self.certainty, 0.9)
        return best

    def _present(self, refs: tuple[EntityRef, ...]) -> tuple[EntityRef, ...]:
        years = {year for item in self.reading.of("year") for year in item.of("year")}
        there = tuple(ref for ref in refs if years & set(ref.years)) if years else ()
        return there or refs

    def sizes(self, type: str) -> list[Filter]:
        """Conditions such as “more than £1 billion”, “score above 7” and “between 5 and 10 t”."""
        found: list[Filter] = []
        for cmp in self.open(*COMPARISONS, "between"):
            number = self.after(cmp, ("amount", "number", "numbers"), ("small", "also", "relation"))
            if number is None or (number.has("year") and not number.has("amount") and not self._is_size(cmp, number, type)):
                continue
            counted = self.after(number, ("type",), ("small",))
            if counted is not None and not number.has("amount"):
                continue  # how many of them: a condition on groups
            second = (
                self.after(number, ("amount", "number"), ("small", "also")) if cmp.has("between") else self._upper(cmp, number)
            )
            property = self._measured(type, cmp, second or number)
            if property is None or (cmp.has("between") and second is None):
                continue
            value = self._scaled(type, property, self._like(number, second) if second is not None else number)
            if second is not None:
                high = self._scaled(type, property, self._like(second, number))
                found += [Filter(property=property, op=">=", value=value), Filter(property=property, op="<=", value=high)]
                self.take(second)
            else:
                found.append(Filter(property=property, op=self._operator(cmp, number), value=value))
            self.take(cmp, number)
            across = ("small", "question_words", "also", "year", "relative_years")
            for near in (self.before(cmp, ("property",), across), self.after(number, ("property",))):
                if near is not None and (type, property) in near.of("property"):
                    self.take(near)
        for number in self.open("amount"):  # “or more” after the figure
            tail = self.after(number, ("compare_at_least", "compare_at_most"), ())
            property = self._measured(type, number, number) if tail is not None else None
            if tail is not None and property is not None:
                found.append(
                    Filter(property=property, op=self._operator(tail, number), value=self._scaled(type, property, number))
                )
                self.take(tail, number)
        return found

    def _upper(self, cmp: Item, number: Item) -> Item | None:
        """The upper end of a range without “between”: from 1,700 to 14,000."""
        words = [token.folded for token in self.reading.tokens[number.end :][:1]]
        joins = set(self.reading.language.words.get("range", ()))
        if not cmp.has("compare_at_least") or not set(words) & joins:
            return None
        return self.after(number, ("amount", "number"), ("small", "also", "until"))

    def _is_size(self, cmp: Item, number: Item, type: str) -> bool:
        if number.of("year")[0] in self.view.years:
            return False
        near = self.before(cmp, ("property",))
        kinds = [self.view.property(t, p) for t, p in near.of("property") if t == type] if near else []
        return any(one is not None and one.kind == "number" for one in kinds)

    def _operator(self, cmp: Item, number: Item) -> Literal["<", "<=", ">", ">=", "="]:
        tail = self.after(number, ("compare_at_least", "compare_at_most"), ())
        if tail is not None:
            self.take(tail)
            return ">=" if tail.has("compare_at_least") else "<="
        no = self.before(cmp, ("not",), ("small",))
        op = next(sign for kind, sign in COMPARISONS.items() if cmp.has(kind))
        if no is None:
            return op
        self.take(no)
        opposite: dict[str, Literal["<", "<=", ">", ">=", "="]] = {">": "<=", ">=": "<", "<": ">=", "<=": ">", "=": "="}
        return opposite[op]

    def _like(self, one: Item, other: Item) -> Item:
        """A figure in the scale of the other one, where it states none: between 1 and 2 million."""
        if one.has("amount") or not other.has("amount") or not one.has("number"):
            return one
        _, scale, unit, currency = other.of("amount")[0]
        return replace(one, senses=(Sense("amount", (one.of("number")[0], scale, unit, currency)),))

    def _measured(self, type: str, cmp: Item, number: Item) -> str | None:
        """The property that a figure belongs to: the nearest that is named, else the one that has its unit."""
        named = [
            (abs(item.at - cmp.at), property)
            for item in self.reading.of("property", "superlative")
            for owner, property in [*item.of("property"), *((one[0], one[1]) for one in item.of("superlative"))]
            if owner == type and self.kind(type, property) == "number"
        ]
        if named:
            nearest = min(distance for distance, _ in named)
            options: list[str] = list(dict.fromkeys(property for distance, property in named if distance == nearest))
            return max(options, key=lambda one: (self.count_known(type, one), -options.index(one)))
        if number.has("amount"):
            _, scale, unit, currency = number.of("amount")[0]
            fitting = [
                one.name
                for one in self.view.properties(type)
                if one.kind == "number"
                and ((unit and one.unit == unit) or (not unit and self.is_money(one.unit) and (currency or scale > 1)))
            ]
            if fitting:
                if len(fitting) > 1:
                    self.certainty = min(self.certainty, 0.9)
                return max(
                    fitting, key=lambda one: (self._is_ranked(type, one), self.count_known(type, one), -fitting.index(one))
                )
        numbers = [one.name for one in self.view.properties(type) if one.kind == "number" and self.count_known(type, one.name)]
        return numbers[0] if len(numbers) == 1 else None

    def _is_ranked(self, type: str, property: str) -> bool:
        """Whether people rank by a property: the ontology has superlatives for it."""
        found = self.view.property(type, property)
        return found is not None and bool(found.most or found.least)

    def main_money(self, type: str) -> str | None:
        """The property that “how much” asks for: of those in money the one that people rank by, else the best known."""
        money = [
            one.name
            for one in self.view.properties(type)
            if one.kind == "number" and self.is_money(one.unit) and self.count_known(type, one.name)
        ]
        return max(
            money, key=lambda one: (self._is_ranked(type, one), self.count_known(type, one), -money.index(one)), default=None
        )

    def spent(self, type: str) -> list[tuple[str, str]]:
        """What a thing without money of its own spends: the main figure in money of what it is linked to."""
        linked = [one.name for one in self.view.ontology.types if one.name != type and self.view.between(type, one.name)]
        return [(other, money) for other in linked if (money := self.main_money(other)) is not None]

    def is_money(self, unit: str | None) -> bool:
        return unit is not None and any(
            sense.kind == "currencies"
            for token in self.reading.language.tokens(unit)
            for sense in self.reading.language.phrases.get((token.stem,), ())
        )

    def end_date(self, type: str) -> str | None:
        """The date by which things of a type are to be done, as its names say."""
        ends = {self.reading.language.stem(word) for word in self.reading.language.cues("ending")}
        for one in self.view.properties(type):
            names = " ".join(each for listed in one.words.values() for each in listed)
            said = {self.reading.language.stem(word) for word in names.split()}
            if one.kind == "date" and said & ends:
                return one.name
        return None

    def kind(self, type: str, property: str) -> str:
        found = self.view.property(type, property)
        return found.kind if found is not None else ""

    def count_known(self, type: str, property: str) -> int:
        stored = self.view.known.get((type, property))
        return stored.known if stored else 0

    def _scaled(self, type: str, property: str, number: Item) -> float:
        """A figure in the unit of its property: £2 bn of a property in £ million is 2000."""
        if number.has("amount"):
            value, scale, _, _ = number.of("amount")[0]
        elif number.has("number"):
            return float(number.of("number")[0])
        else:
            return float(number.of("numbers")[0])
        found = self.view.property(type, property)
        unit = found.unit if found is not None and found.unit else ""
        own = next(
            (
                float(sense.value)
                for token in self.reading.language.tokens(unit)
                for sense in self.reading.language.phrases.get((token.stem,), ())
                if sense.kind == "multipliers"
            ),
            1.0,
        )
        if scale == 1.0 and own > 1.0:
            return float(value) / own if value >= own else float(value)
        return float(value * scale / own)

    def _dates(self, type: str) -> list[Filter]:
        """Conditions such as “ending before 2025” and “launched between 2010 and 2015”."""
        found: list[Filter] = []
        known = set(self.view.years_of(type))
        named = {self.kind(t, p) for item in self.open("property") for t, p in item.of("property") if t == type}
        for when in self.open("year") if "date" not in named else ():  # that run past 2040
            till, last = self.before(when, (*_TIMES, "compare_greater"), ("small", "year_word")), int(when.of("year")[0])
            if till is not None and last not in known and (ends := self.end_date(type)) is not None:
                found += [Filter(property=ends, op=op, value=day) for op, day in self._edges(till, last, None)]
                self.take(when, till, *self.open("relation"))
        for item in self.open("property"):
            dates = [p for t, p in item.of("property") if t == type and self.kind(t, p) == "date"]
            if not dates or self.before(item, ("without",), ("small",)) is not None:
                continue
            lead = self.after(
                item,
                (*_TIMES, "compare_greater", "compare_less"),
                ("small", "year_word"),
            )
            if (day := self.after(lead or item, ("day",), ("small",))) is not None:
                no = self.before(lead or item, ("not",), ("small",)) or self.before(item, ("not",), ("small",))
                late = (
                    self.after(day, ("day",), ("small", "also", "until")) if lead is not None and lead.has("between") else None
                )
                edges = _day_edges(lead, day.of("day")[0], late.of("day")[0] if late is not None else None)
                if no is not None:
                    edges = [(_OPPOSITE[op], edge) for op, edge in edges] if len(edges) == 1 else []
                found += [Filter(property=dates[0], op=op, value=edge, words=day.text) for op, edge in edges]
                if edges:
                    self.take(item, day, late, lead, no)
                continue
            year = self.after(lead or item, ("year", "relative_years"), ("small", "year_word"))
            if lead is None and (earlier := self.before(item, ("year",), ("small", "year_word"))) is not None:
                lead = self.before(earlier, _TIMES, ("small", "year_word"))  # the ones that after 2035 end
                year = earlier if lead is not None else year
            of_report = year is not None and year.has("year") and int(year.of("year")[0]) in known
            ordered = self.says("by", self.reading.tokens[max(0, item.at - 1) : item.at])
            if lead is None and of_report and (item.has("value") or ordered):
                continue  # closed in 2022, the oldest by start date, 2023: the year of the report, and no date
            if year is None or (lead is None and not self._is_verb_of_time(type, item, year, known)):
                continue
            value = self.year(year, sorted(known))
            if value is None:
                continue
            second = (
                self.after(year, ("year",), ("small", "also", "until")) if lead is not None and lead.has("between") else None
            )
            for op, edge in self._edges(lead, value, self.year(second, ()) if second is not None else None):
                found.append(Filter(property=dates[0], op=op, value=edge, words=year.text))
            self.take(item, year, second, lead)
        return found

    def _is_verb_of_time(self, type: str, item: Item, year: Item, known: set[int]) -> bool:
        """Whether a year after a date belongs to it: always where the store has no such year, else after a verb alone."""
        ends = ("latest", "earliest", "most", "least", "largest", "smallest")
        if year.has("relative_years") or self.before(item, ends) is not None:
            return False  # the latest end date in 2023: of the report of that year
        between = self.reading.tokens[item.end : year.at]
        return int(year.of("year")[0]) not in known or (
            len(between) <= 1 and not self.asks("when") and not self.named and not self._named_of(type)
        )

    def _named_of(self, type: str) -> bool:
        return any(refs[0].type == type for item in self.open("entity") for refs in item.of("entity") if refs)

    def _edges(self, lead: Item | None, year: int, second: int | None) -> list[tuple[Literal["<", "<=", ">", ">="], str]]:
        first, last = f"{year}-01-01", f"{year}-12-31"
        if lead is None:
            return [(">=", first), ("<=", last)]
        if lead.has("between"):
            return [(">=", first), ("<=", f"{second or year}-12-31")]
        if lead.has("before", "compare_less"):
            return [("<", first)]
        if lead.has("after", "compare_greater"):
            return [(">", last)]
        if lead.has("since", "compare_at_least"):
            return [(">=", first)]
        return [("<=", last)]

    def _absences(self, type: str) -> list[Filter]:
        """Conditions such as “without an end date”, “not published” and “that have no vendor”."""
        found: list[Filter] = []
        for no in self.open("without", "unknown", "with", "missing"):
            if no.has("with") and not no.has("without") and self.after(no, ("missing", "unknown")) is not None:
                self.take(no)  # with a missing date: the next one says it
                continue
            what = self._absent(no, type)
            if what is None:
                continue
            item, filter = what
            found.append(filter)
            self.take(no, item)
        for no in self.open("not"):  # those that are not rated
            rated = self.after(no, ("property",), ("small",))
            own = [p for t, p in rated.of("property") if t == type] if rated is not None else []
            if rated is not None and own and self.after(rated, ("value", "amount", *COMPARISONS), ("small",)) is None:
                name = max(own, key=lambda one: self.count_known(type, one))
                if (denied := self._denied(type, name)) is not None:
                    found.append(Filter(property=name, value=denied, words=denied))
                else:
                    found.append(Filter(property=name, op="unknown"))
                self.take(no, rated)
        return found

    def _denied(self, type: str, name: str) -> str | None:
        """The value that says no, of a property that is answered by yes or no: not scanned."""
        one = self.view.property(type, name)
        yes, no = self.reading.language.cues("yes"), self.reading.language.cues("no")
        said = {fold(choice): choice for choice in one.choices} if one is not None else {}
        denied = [choice for word, choice in said.items() if word in no]
        return denied[0] if len(said) == 2 and len(denied) == 1 and any(word in yes for word in said) else None

    def _absent(self, no: Item, type: str) -> tuple[Item, Filter] | None:
        negative = not no.has("with") or no.has("without", "unknown")
        across = ("small", "unknown", "question_words", *(("value",) if negative else ()))
        near = [self.after(no, ("property", "type"), across)]
        if no.has("unknown", "missing"):
            near.append(self.before(no, ("property",), ("small", "type")) or self.before(no, ("type",), ("small",)))
            near.append(self.after(no, ("property",), ("small", "year", "relative_years")))
        for item in near:
            if item is None:
                continue
            own = [p for t, p in item.of("property") if t == type]
            if own and negative and no.at < item.at and any(no.end <= one.at < item.at for one in self.open("value")):
                return None  # without a red flag
            if own:
                best = max(own, key=lambda one: self.count_known(type, one))
                if not negative and self.after(item, tuple(COMPARISONS), ("small",)) is not None:
                    return None
                return item, Filter(property=best, op="unknown" if negative else "known")
            others = [t for t, _ in item.of("type") if t != type and self.view.between(type, t)]
            if others and negative and (valued := self._linked_value(no, item, others[0])) is not None:
                value, property = valued
                via, to = self.link(type, others[0], item)
                self.take(value)
                chosen = next(one[2] for one in value.of("value") if one[0] == others[0])
                where = (Filter(property=property, value=chosen, words=str(chosen)),)
                return item, Filter(property="id", op="unlinked", via=via, to=to, where=where)
            if others and (no.has("without", "with") or negative):
                via, to = self.link(type, others[0], item)
                unlinked: Literal["linked", "unlinked"] = "unlinked" if negative else "linked"
                return item, Filter(property="id", op=unlinked, via=via, to=to)
        return None

    def _linked_value(self, no: Item, item: Item, type: str) -> tuple[Item, str] | None:
        """A value between a negation and a type: no red projects."""
        for one in self.open("value"):
            own = [v for v in one.of("value") if v[0] == type]
            if no.end <= one.at < item.at and own:
                return one, own[0][1]
        return None

    # -- groups -----------------------------------------------------------------------------------------------

    def groups(self, type: str) -> tuple[GroupBy, ...]:
        """What a figure is broken down by."""
        found: list[GroupBy] = []
        for yearly in (one for one in self.open("each_year") if not (one.has("entity") and one.text[:1].isupper())):
            found.append(GroupBy(property="year"))
            self.take(yearly)
        for marker in self.open("group", "each", "breakdown"):
            if self._before_years(marker):  # in each of the four years
                found.append(GroupBy(property="year"))
                self.take(marker)
                continue
            item = self.after(marker, ("type", "property", "year_word"), ("small", "group", "each", "breakdown", "scope"))
            if item is None and self.has("count"):  # the categories with the number of projects in each
                item = next((one for one in self.open("property") if one.end <= marker.at), None)
            if item is None and marker.has("breakdown"):  # how are the ratings spread
                item = self.before(marker, ("property",), ("small",))
            if marker.has("breakdown") and (item is None or self._group(type, item) is None):
                item = self.after(marker, ("property", "year_word"), ("small", "group", "type", "scope"))
            if item is None or item.at in self.used:
                continue
            group = self._group(type, item)
            if group is None:
                if item.names_type(type):
                    self.take(marker, item)  # the average per project
                continue
            found.append(group)
            self.take(marker, item)
            whose = self.after(item, ("type",), ("small",))
            if whose is not None and whose.names_type(type):
                self.take(whose)  # by kind of supplier
            if (second := self.after(item, ("type", "property", "year_word"), ("also", "small"))) is not None:
                if (also := self._group(type, second)) is not None and also not in found:
                    found.append(also)
                    self.take(second)
        if not found and self.has("rank") and (ranked := self._ranked_group(type)) is not None:
            found.append(ranked)
        if not found and self.has("superlative") and self.has(*MEASURES):
            asked = [one for one in self.open("property") if self.before(one, ("question_words",), ("small",)) is not None]
            if asked and (group := self._group(type, asked[0])) is not None:
                found.append(group)  # which category is the dearest on average
                self.take(asked[0])
        if not found and not self.open("type"):
            sizes = [
                one for one in self.open("superlative") if any(self.kind(type, o[1]) == "number" for o in one.of("superlative"))
            ]
            headed = self.after(sizes[0], ("property",), ()) if sizes else None
            if headed is not None and (group := self._group(type, headed)) is not None:
                found.append(group)  # the dearest category
                self.take(headed)
        return tuple(dict.fromkeys(found))[:2]

    def _before_years(self, marker: Item) -> bool:
        """Whether a number of years stands right behind a word for each."""
        behind = [one for one in self.reading.items if one.at >= marker.end][:2]
        return len(behind) == 2 and behind[0].has("number", "numbers") and behind[1].has("year_word")

    def _ranked_group(self, type: str) -> GroupBy | None:
        """Rank the categories by their total cost: a property that is no figure, before the figure that it is ranked by."""
        items = self.open("property")
        if len(items) != 2 or not self.has(*MEASURES):
            return None
        group = self._group(type, items[0])
        if group is None or not any(t == type and self.kind(t, p) == "number" for t, p in items[1].of("property")):
            return None
        self.take(items[0])
        return group

    def _group(self, type: str, item: Item) -> GroupBy | None:
        if item.has("year_word"):
            return GroupBy(property="year")
        own = [p for t, p in item.of("property") if t == type and self.kind(t, p) == "string"]
        if own:
            return GroupBy(property=own[0])
        for other, _ in item.of("type"):
            if other != type and self.view.between(type, other):
                via, to = self.link(type, other, item)
                return GroupBy(property="name", via=via, to=to)
        return None

    # -- what is wanted ---------------------------------------------------------------------------------------

    def properties(self, type: str | None) -> tuple[str, ...]:
        """The properties of a type that a message names and that were not taken up."""
        found: list[str] = []
        for item in self.open("property", "superlative"):
            own = [p for t, p in item.of("property") if t == type] or [
                one[1] for one in item.of("superlative") if one[0] == type
            ]
            if own and type is not None:
                found.append(max(own, key=lambda one: (self.count_known(type, one), -own.index(one))))
                self.take(item)
        return tuple(dict.fromkeys(found))

    def number_of(self, measure: str, type: str) -> str | None:
        """The property that a measure takes: the named one, else the only one, else that of the unit asked for."""
        named = [p for p in self.properties(type) if self.kind(type, p) == "number" or measure in ("min", "max")]
        if named:
            return named[0]
        numbers = [one for one in self.view.properties(type) if one.kind == "number" and self.count_known(type, one.name)]
        if self.asks("how_much") or self.has("money"):
            if (money := self.main_money(type)) is not None:
                return money
        if self.base is not None:
            spoken = (one for one in self.focus.properties if self.kind(type, one) == "number")
            if (property := next(spoken, None)) is not None:
                return property
            if measure in ("sum", "mean", "median") and (money := self.main_money(type)) is not None:
                self.certainty = min(self.certainty, GUESSED)
                return money  # the sum of the five
        return numbers[0].name if len(numbers) == 1 else None

    def name_part(self, type: str, item: Item) -> str | None:
        """What names of a type have in common with a word: `embass` for embassies; `None` where no name has it."""
        stem = self.reading.tokens[item.at].stem
        names = {ref.name for ref in self.lexicon.holding(stem) if ref.type == type}
        said = [one.folded for name in names for one in self.reading.language.tokens(name) if one.stem == stem]
        shortest = min(said, key=len, default="")
        alike = min((Prefix.similarity(shortest, one) for one in said), default=0)
        return shortest[:alike] if alike > 2 else None

    def limit(self) -> int | None:
        """How many are wanted: the top 5, the three largest."""
        for item in self.open("number", "numbers"):
            if item.has("year"):
                continue
            value = (item.of("number") or item.of("numbers"))[0]
            if 1 <= value <= 100 and float(value).is_integer():
                self.take(item)
                return int(value)
        return None

    def place(self) -> int:
        """Which place of an order is asked for, from 1: the second most expensive."""
        items = [item for item in self.open("ordinals") if int(item.of("ordinals")[0]) > 1]
        self.take(*items[:1])
        return int(items[0].of("ordinals")[0]) if items else 1

    def left_over(self) -> str:
        """The words that nothing explains and nothing took up, as they were written."""
        free = _FREE if self.reading.has(*_JUDGED_BY) else _FREE - _JUDGED
        kept = [
            item.text for item in self.reading.items if item.at not in self.used and (not item.senses or not (item.has(*free)))
        ]
        return " ".join(kept)


_PASSED = 2
"""Words beside a name at most that are passed over."""
_MOST_OF_NAME = 0.6
"""The share of a name that has to be said beside such words."""
_PASSED_SURE = 0.7
"""Certainty that is left with each of them."""


def pass_over_appositions(made: Composition) -> None:
    """The Heron tugs: words right beside the one name of a message, which stand in no other name of its type."""
    names = made.reading.of("entity")
    strange = [one for one in made.reading.items if not one.senses and one.at not in made.used]
    refs = {(ref.type, ref.name) for item in names for refs in item.of("entity")[:1] for ref in refs}
    if len(names) != 1 or len(refs) != 1 or not 0 < len(strange) <= _PASSED:
        return
    (type, name), at, end = next(iter(refs)), names[0].at, names[0].end
    beside: list[Item] = []
    for one in strange:
        if one.end == at or one.at == end:
            at, end = min(at, one.at), max(end, one.end)
            beside.append(one)
    tokens = [made.reading.tokens[one.at] for one in beside]
    others = {ref.name for token in tokens for ref in made.lexicon.holding(token.stem) if ref.type == type} - {name}
    said = names[0].text
    a_name = names[0].whole and (" " in said or not made.reading.language.is_word(said))
    plain = all(token.folded.isalpha() and (a_name or token.text.islower()) for token in tokens)
    if len(beside) < len(strange) or others or not plain or names[0].share < _MOST_OF_NAME:
        return  # the Hull Space Elevator is no other thing with Space in its name
    made.take(*beside)
    made.passed += [one.text for one in beside]
    made.certainty *= _PASSED_SURE ** len(beside)


def refuse_leftovers(made: Composition) -> None:
    """Raise `NotUnderstood` where words are left that nothing took up."""
    words = made.left_over()
    if words:
        raise NotUnderstood(Unknown(reason="words", words=words[:300]))


def selection(made: Composition, type: str, level: Level | None, *, every_year: bool = False) -> Selection:
    """The set of a message: its type and level, the years it states, and its conditions."""
    alike = _named_alike(made, type)
    filters = (*made.filters(type), *_others(made, type), *_named_like(made, type), *_said_to_belong(made, type), *alike)
    apart = made.has("difference", "ratio", "compare") or comparing_word(made) is not None
    stated = made.years(type, apart=apart)
    base = made.base if made.base is not None and made.base.type == type else None
    years = stated or (made.view.years_of(type) if every_year else ()) or made.default_years(type, made.linked)
    among = distinct(ref for item in made.open("entity") for ref in _own(made, item, type))[:MAX_ENTITIES]
    again = base is not None and any(_same_subject(one, new) for one in base.filters if one.via is None for new in filters)
    language = made.reading.language
    # The red ones in 2023? But: which of them were red in 2023?
    again = again and not language.holds(made.reading.text, language.cues("of_them"))
    if base is not None and not again and stated and stated != base.years and (members := _members_of(made, base)):
        return Selection(type=type, years=years, filters=filters, among=members)
    if base is not None:
        kept = tuple(one for one in base.filters if not any(_same_subject(one, new) for new in filters))
        return Selection(type=type, level=base.level, years=years, filters=(*kept, *filters)[:8], among=among or base.among)
    return Selection(type=type, level=level if not among else None, years=years, filters=filters, among=among)


def _members_of(made: Composition, base: Selection) -> tuple[EntityRef, ...]:
    """Which of them were red the year before? The things that were listed, where what made them a set changes by the year."""
    own = any(one.via is None for one in base.filters)
    listed = tuple(one for one in made.focus.listed if one.type == base.type)
    if not own or made.focus.selection != base or not made.reading.has("pronoun_many", "pronoun_one"):
        return ()
    if not listed or len(listed) == MAX_ENTITIES or not isinstance(made.focus.plan, Select | Rank | Describe):
        raise NotUnderstood(Unknown(reason="unsupported", words=made.reading.text[:300]))
    return listed


def comparing_word(made: Composition) -> Item | None:
    """The word by which two things are held against each other, and not one of them against a figure: more … than."""
    if made.states_figure():
        return None
    return next(iter(made.open("more", "less", "compare_greater", "compare_less")), None)


def _same_subject(one: Filter, other: Filter) -> bool:
    return (one.property, one.via, one.to) == (other.property, other.via, other.to)


def _others(made: Composition, type: str) -> tuple[Filter, ...]:
    """Which other ones: without the things that were last spoken of."""
    item = next(iter(made.open("other")), None)
    before = (made.focus.plan.source,) if isinstance(made.focus.plan, Relate) else ()
    known = [(ref.id, ref.name) for ref in (*made.named, *made.focus.entities, *before) if ref.type == type][:3]
    if not known and made.focus.selection is not None:  # which department has X, which others has that department
        of_it = [one for one in made.focus.selection.filters if one.to == type and one.property == "id" and one.op == "="]
        known = [(str(one.value), one.words) for one in of_it]
    if item is None or not known:
        return ()
    if (
        isinstance(made.focus.plan, Select)
        and made.base is not None
        and made.base.type == type
        and made.base == made.focus.selection
        and len(made.focus.entities) == 1
    ):
        raise NotUnderstood(Unknown(reason="unsupported", words=made.reading.text[:300]))  # the one that was all of them
    made.take(item)
    return tuple(Filter(property="id", op="<>", value=id, words=name) for id, name in known)


def _named_after(made: Composition, type: str) -> tuple[Filter, ...]:
    """The prison projects, with the word prison: words that nothing explains, where they stand in names of the type."""
    head = next((item for item in made.reading.of("type") if item.names_type(type)), None)
    words: list[Item] = []
    for item in reversed([one for one in made.reading.items if head is not None and one.end <= head.at]):
        if item.senses:
            break
        words.insert(0, item)
    spelt = made.reading.language.cues("spelt")
    words = words or [
        item for item in made.reading.items if not item.senses and made.reading.tokens[max(0, item.at - 1)].folded in spelt
    ]
    if len(words) == 1 and (by := _of_known(made, type, words[0])) is not None:
        return (by,)
    parts = [made.name_part(type, item) or "" for item in words]
    if not parts or not all(parts) or any(_names_another(made, type, item) for item in words):
        return ()
    names = {fold(ref.name) for ref in made.lexicon.holding(made.reading.tokens[words[0].at].stem) if ref.type == type}
    if not any(all(part in name for part in parts) for name in names):
        return ()
    made.take(*words)
    made.certainty = min(made.certainty, GUESSED)
    return tuple(Filter(property="name", op="contains", value=part, words=part) for part in parts)


def family_of(made: Composition, type: str) -> Item | None:
    """All the canal projects, where one is called Canal and others have it in their names: the name before the noun."""
    plural = made.reading.language.words.get("plural_endings", ())
    for item in made.open("entity"):
        noun = next((one for one in made.reading.of("type") if one.at == item.end and one.names_type(type)), None)
        own = any(refs and refs[0].type == type for refs in item.of("entity"))
        if noun is None or not own or not plural or not noun.text.casefold().endswith(plural):
            continue
        said = fold(item.text)
        alike = {fold(ref.name) for ref in made.lexicon.holding(made.reading.tokens[item.at].stem) if ref.type == type}
        if sum(said in name for name in alike) > 1:
            return item
    return None


def _named_alike(made: Composition, type: str) -> tuple[Filter, ...]:
    """Those whose names have the words of a name before the noun."""
    item = family_of(made, type)
    made.take(item)
    return (Filter(property="name", op="contains", value=item.text, words=item.text),) if item is not None else ()


def _said_to_belong(made: Composition, type: str) -> tuple[Filter, ...]:
    """How many belong to transport, transport's red ones: the thing that a word tells apart, where it says whose they are."""
    tokens, cues = made.reading.tokens, made.reading.language
    for item in made.reading.items:
        if item.senses or item.at in made.used:
            continue
        lead = tokens[item.at - 1].folded if item.at else ""
        behind = tokens[item.end].folded if item.end < len(tokens) else ""
        owns = behind in cues.cues("possessive") | cues.cues("holds")
        if not owns and lead not in cues.cues("whose_it_is") | cues.cues("to"):
            continue
        if (by := _of_known(made, type, item, said=True)) is not None:
            return (by,)
    return ()


def by_a_word(made: Composition, type: str) -> tuple[Filter, ...]:
    """What about transport? The one thing that a word that nothing explains tells apart."""
    strange = [item for item in made.reading.items if not item.senses and item.at not in made.used]
    by = _of_known(made, type, strange[0], said=True) if len(strange) == 1 else None
    return (by,) if by is not None else ()


def drop_owner(made: Composition, type: str) -> None:
    """The labs at health: a word that only says whose a named thing is explains itself, unless that is asked."""
    if not made.says("exists", made.reading.tokens[:1]):
        _said_to_belong(made, type)


def _of_known(made: Composition, type: str, item: Item, *, said: bool = False) -> Filter | None:
    """Transport projects: those of the one thing that the word tells apart from others of its type.

    Args:
        said: whether the message says that they belong to it, so that the word by which its name begins will do.
    """
    stem = made.reading.tokens[item.at].stem
    known = made.lexicon.known_by(stem) or (made.lexicon.beginning(stem) if said else ())
    refs = [ref for ref in known if ref.type != type and made.view.between(type, ref.type)]
    refs = list({ref.id: ref for ref in refs}.values())
    if len(refs) != 1:
        return None
    via, to = made.link(type, refs[0].type, item)
    made.take(item)
    made.certainty = min(made.certainty, GUESSED)
    return Filter(property="id", value=refs[0].id, via=via, to=to, words=refs[0].name)


def _names_another(made: Composition, type: str, item: Item) -> bool:
    """Whether a word stands in more names of what things of a type are linked to than of theirs: department for education."""
    held = made.lexicon.holding(made.reading.tokens[item.at].stem)
    own = {fold(ref.name) for ref in held if ref.type == type}
    others = [fold(ref.name) for ref in held if ref.type != type and made.view.between(type, ref.type)]
    return sum(not any(name in other for name in own) for other in others) > len(own)


def _named_like(made: Composition, type: str) -> tuple[Filter, ...]:
    """With “prison” in their name: a word in quotation marks, or called, where a name is spoken of."""
    match = _QUOTED.search(made.reading.text)
    words = set(made.reading.language.words.get("named", ()))
    if match is None or not words & set(folded_words(made.reading)):
        return _named_after(made, type)
    at = [n for n, token in enumerate(made.reading.tokens) if match.start() <= token.start < match.end()]
    made.used.update(at)
    return (Filter(property="name", op="contains", value=match[1], words=match[1]),)


def distinct(refs: Iterable[EntityRef]) -> tuple[EntityRef, ...]:
    """Things without those of the same type and name: one that is filed under another id in another year."""
    found: dict[tuple[str, str], EntityRef] = {}
    for ref in refs:
        known = found.get((ref.type, ref.name.casefold()))
        if known is None:
            found[ref.type, ref.name.casefold()] = ref
        else:
            newer = ref if max(ref.years, default=0) > max(known.years, default=0) else known
            found[ref.type, ref.name.casefold()] = newer.model_copy(update={"years": tuple(sorted({*ref.years, *known.years}))})
    return tuple(found.values())


def _own(made: Composition, item: Item, type: str) -> tuple[EntityRef, ...]:
    refs = made.refs(item, type)
    if refs and refs[0].type == type:
        made.take(item)
        return refs
    return ()


_Edge = tuple[Literal["<", "<=", ">", ">="], str]
_OPPOSITE: Mapping[str, Literal["<", "<=", ">", ">="]] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def _day_edges(lead: Item | None, day: date, second: date | None) -> list[_Edge]:
    """What a date that is compared with a day has to meet: before 15 June 2026."""
    edge = day.isoformat()
    if lead is None or (lead.has("between") and second is None):
        return [(">=", edge), ("<=", edge)]
    if second is not None:
        return [(">=", edge), ("<=", second.isoformat())]
    if lead.has("before", "compare_less"):
        return [("<", edge)]
    if lead.has("after", "compare_greater"):
        return [(">", edge)]
    return [(">=" if lead.has("since", "compare_at_least") else "<=", edge)]
