"""Whether a plan says what a message says: nothing of the message is left out, and nothing stands in the plan unasked.

A plan that somebody else made may fit the ontology and still answer another question. So plan and message are both taken
apart into the same small claims (this thing, that value, a sum, a negation …), and each side has to account for the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isclose

from .composing import COMPARISONS, Composition
from .lexicon import Lexicon
from .plan import Aggregate, Change, Compare, Describe, EntityRef, Filter, Focus, Gaps, Plan, Rank, Relate, Select, Selection
from .reading import Item, Reading
from .references import refer

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


_SAID_BY: Mapping[str, frozenset[str]] = {
    name: frozenset(kinds.split())
    for name, kinds in {
        "mean": "mean",
        "median": "median",
        "min": "min least smallest earliest",
        "max": "max most largest latest",
        "share": "share",
        "ratio": "ratio",
        "difference": "difference compare compare_greater compare_less more less missing",
        "step": "difference changed rose fell improved worsened missing",
        "side_by_side": "compare also or range difference",
        "group": "group each breakdown each_year history rose fell changed most least largest smallest",
        "having": " ".join(COMPARISONS),
        "highest": "most largest latest max best more rank compare_greater after",
        "lowest": "least smallest earliest min worst less compare_less before best",
        "ranked": "most least largest smallest earliest latest rank best worst superlative ordinals min max more less"
        " compare_greater compare_less before after",
        "place": "ordinals",
        "not": "not other without",
        "unknown": "unknown without missing not",
        "known": "with unknown",
        ">": "compare_greater after more",
        ">=": "compare_at_least since between compare_greater",
        "<": "compare_less before less",
        "<=": "compare_at_most until between by_date compare_less",
        "contains": "about named detail purpose",
        "unlinked": "without not missing",
        "gaps": "missing unknown without",
        "joined": "joined",
        "left": "left",
        "changed": "changed turned difference",
        "rose": "rose improved worsened",
        "fell": "fell improved worsened",
        "history": "history each_year changed rose fell improved worsened turned when coverage",
        "hops": "connect impact",
        "when": "when ordinals since",
    }.items()
}
"""The kinds of words by which each claim about a way to answer is said. Counts, lists and sums need none: they are what a set
or a property is asked for as such."""
_ASKS: Mapping[str, frozenset[str]] = {
    kind: frozenset(names.split())
    for kind, names in {
        "count": "count number",
        "sum": "sum share step difference",
        "mean": "mean",
        "median": "median",
        "min": "min lowest",
        "max": "max highest",
        "share": "share",
        "ratio": "ratio share",
        "difference": "difference step",
        "compare": "side_by_side difference ratio ranked",
        "group": "group",
        "each": "group",
        "breakdown": "group",
        "each_year": "group history",
        "most": "highest max",
        "least": "lowest min",
        "largest": "highest max",
        "smallest": "lowest min",
        "earliest": "lowest min",
        "latest": "highest max",
        "rank": "ranked",
        "best": "ranked rose",
        "worst": "ranked fell",
        "more": "difference ranked > having",
        "less": "difference ranked < having",
        "compare_greater": "> >= having difference ranked",
        "compare_at_least": ">= having",
        "compare_less": "< <= having difference ranked",
        "compare_at_most": "<= having",
        "not": "not unknown unlinked < <= > >=",
        "without": "unknown unlinked gaps not",
        "unknown": "unknown gaps",
        "missing": "gaps unknown unlinked difference step",
        "joined": "joined",
        "left": "left",
        "changed": "changed step history group",
        "turned": "changed step history",
        "rose": "rose step history group",
        "fell": "fell step history group",
        "improved": "rose fell step history",
        "worsened": "rose fell step history",
        "history": "history",
        "other": "not",
        "impact": "hops link",
        "connect": "hops link",
        "about": "contains",
        "coverage": "history",
        "ordinals": "place ranked when",
    }.items()
}
"""What words of a kind ask of a plan: one of these claims."""
_WITH: Mapping[str, tuple[str, ...]] = {
    "highest": ("ranked", "max"),
    "lowest": ("ranked", "min"),
    "gaps": ("unknown", "unlinked"),
    "rose": ("step",),
    "fell": ("step",),
    ">": ("having", ">="),
    "<": ("having", "<="),
}
"""What else words say that were taken for one of these."""
_THINGS = frozenset({"entity", "value", "property", "superlative", "relation", "type", "chain", "year", "number", "amount"})
_ENDS = frozenset({"highest", "lowest", "min", "max"})
_FIRM = _THINGS | frozenset(
    "not without unknown missing other count sum mean median share ratio difference most least compare each_year".split()
)
"""Kinds of words that keep their meaning beside words that no rule knows; others (“wind down”) may be part of a phrase."""
_UNPLANNED = ("never", "both", "advice")
"""Cues of what no plan of one set says: all years together, one and the other, what ought to be."""


@dataclass(frozen=True)
class Account:
    """What a message says, as far as its words are known, for holding plans against it."""

    reading: Reading
    lexicon: Lexicon
    focus: Focus
    glosses: tuple[Gloss, ...] = ()
    """What words that nothing explains were taken for."""

    @property
    def unexplained(self) -> tuple[Item, ...]:
        """The words that nothing explains."""
        return tuple(item for item in self.reading.items if not item.senses)

    @property
    def about_data(self) -> bool:
        """Whether the message speaks of anything that is on record, or leans on what was."""
        return self.reading.has("type", "entity", "value", "property", "superlative", "relation", "chain") or self.leans

    @property
    def leans(self) -> bool:
        """Whether the message goes on from what was said before."""
        if self.focus.plan is None:
            return False
        named = self.reading.has("type", "entity")
        return self.reading.has("pronoun_one", "pronoun_many") or not named or self.reading.items[0].has("follow_up")

    @property
    def _searches(self) -> bool:
        return any(meaning == SEARCHED for _, meaning in self.glosses)

    @property
    def beyond_plans(self) -> bool:
        """Whether it asks what no plan says, however it is put."""
        cues = self.reading.language
        said = {token.folded for token in self.reading.tokens}
        return any(said & cues.cues(cue) for cue in _UNPLANNED)

    def objection(self, plan: Plan) -> str:
        """What is wrong with a plan for this message; empty where it says the same."""
        claims = claims_of(plan)
        if isinstance(plan, Rank) and plan.of.among and plan.expect is None and self.reading.items[0].has("yes_or_no"):
            return "it is asked whether one of them comes first: `expect` says which"
        known = self._said()
        for word, meaning in self.glosses:
            if meaning not in claims:
                return f"“{word}” was taken for {meaning[1]}, of which the plan says nothing"
            if meaning != SEARCHED and self._names(meaning, known):
                return f"“{word}” is left out of the plan: {meaning[1]} is said by other words already"
        for _, meaning in self.glosses:
            known |= {meaning, *(("op", name) for name in _WITH.get(meaning[1], ()))}
        if self.leans and self.focus.plan is not None:
            known |= claims_of(self.focus.plan) | claims_of_things(self.focus.entities)
            if self.focus.selection is not None:
                known |= claims_of_set(self.focus.selection)
        if (wrong := self._years(plan)) or (wrong := self._left_out(plan, claims)):
            return wrong
        if {("op", ">="), ("op", "<=")} <= claims and self.reading.has("year"):
            known |= {("op", ">="), ("op", "<=")}  # the whole of a year that is stated
        for claim in sorted(claims):
            if not self._is_said(claim, known, claims):
                return f"{claim[1]} ({claim[0]}) stands in the plan, and the message says nothing of it"
        return self._forgotten(claims)

    # -- what the message says ------------------------------------------------------------------------------------

    def _said(self) -> set[Claim]:
        """The things, values, properties, types and links that the words of the message may stand for."""
        found: set[Claim] = set()
        for item in self.reading.items:
            found |= claims_of_item(item)
        found |= {("property", name) for name in self._implied()}
        base, named, _ = refer(self.reading, self.focus)
        if isinstance(base, Selection):
            found |= claims_of_set(base)
        return found | claims_of_things(named)

    def _implied(self) -> set[str]:
        """Properties that a question word, an amount or a change asks for without naming them."""
        made = Composition(self.reading, self.lexicon, self.focus)
        found: set[str] = set()
        for kind in self.lexicon.view.ontology.types:
            for one in kind.properties:
                money = one.kind == "number" and made.is_money(one.unit)
                dated = one.kind == "date" and made.asks("when")
                moved = bool(one.choices) and self.reading.has("improved", "worsened", "best", "worst")
                sized = one.kind == "number" and any(item.of("amount")[0][2] == one.unit for item in self.reading.of("amount"))
                asked = money and (made.asks("how_much") or self.reading.has("money", "amount"))
                text = one.kind == "text" and (self.reading.has("purpose", "about") or self._searches)
                if dated or moved or sized or asked or text:
                    found.add(one.name)
        return found

    def _is_said(self, claim: Claim, known: set[Claim], claims: set[Claim]) -> bool:
        sort, what = claim
        if claim in known or sort == "free":
            return True
        if sort == "op":
            kinds = _SAID_BY.get(what)
            if kinds is None:
                return True
            asked = {word for item in self.reading.items for word in item.of("question_words")}
            return self.reading.has(*kinds) or bool(kinds & asked)
        if sort == "number":
            said = {one for item in self.reading.items for one in self._figures_of(item, claims)}
            return any(isclose(float(what), one) for one in said)
        if sort == "date":
            return any(str(year) in what for item in self.reading.of("year") for year in item.of("year"))
        if sort == "text":
            words = {token.stem for token in self.lexicon.language.tokens(what)}
            return bool(words) and words <= {token.stem for token in self.reading.tokens}
        if sort == "type":
            return self._implies_type(what)
        return sort == "relation" and self._implies_link(what, known)

    def _names(self, claim: Claim, known: set[Claim]) -> bool:
        """Whether words that rules know say a claim as such, and not only by a value that belongs to it."""
        sort, what = claim
        if sort == "op":
            return self.reading.has(*_SAID_BY.get(what, {what}))
        if sort == "property":
            told = (*self.reading.of("property"), *self.reading.of("superlative"))
            return any(one[1] == what for item in told for one in (*item.of("property"), *item.of("superlative")))
        return claim in known

    def _implies_type(self, type: str) -> bool:
        """Whether something of the message can only be said of things of a type, or of what they are."""
        return any(one[0] == type for item in self.reading.items for one in (*item.of("value"), *item.of("property"))) or any(
            ref.type == type for item in self.reading.items for refs in item.of("entity") for ref in refs
        )

    def _implies_link(self, name: str, known: set[Claim]) -> bool:
        """Whether a link that nobody named is the only one between two types that are spoken of."""
        one = self.lexicon.view.relationships.get(name)
        types = {what for sort, what in known if sort == "type"}
        types |= {ref.type for item in self.reading.items for refs in item.of("entity") for ref in refs}
        types |= {value[0] for item in self.reading.items for value in item.of("value")}
        pairs = [(a, b) for a in types for b in types if a != b]
        return one is not None and any([way.name for way, _ in self.lexicon.view.between(a, b)] == [name] for a, b in pairs)

    def _figures_of(self, item: Item, claims: set[Claim]) -> set[float]:
        """The figures that words may stand for, in the units of what a plan speaks of."""
        found = {float(value) for value in (*item.of("number"), *item.of("numbers"))}
        for value, scale, _, _ in item.of("amount"):
            for own in self._scales(claims):
                found |= {float(value) * scale / own, *((float(value),) if scale == 1.0 else ())}
        return found

    def _scales(self, claims: set[Claim]) -> set[float]:
        """What the units of a plan's properties count in: a million, for one in £ million."""
        phrases, tokens = self.lexicon.language.phrases, self.lexicon.language.tokens
        every = (one for kind in self.lexicon.view.ontology.types for one in kind.properties)
        units = {one.unit for one in every if one.unit and ("property", one.name) in claims}
        senses = [sense for unit in units for token in tokens(unit) for sense in phrases.get((token.stem,), ())]
        return {float(sense.value) for sense in senses if sense.kind == "multipliers"} or {1.0}

    # -- what the plan leaves out ---------------------------------------------------------------------------------

    def _left_out(self, plan: Plan, claims: set[Claim]) -> str:
        texts = {what for sort, what in claims if sort == "text"}
        ops = {what for sort, what in claims if sort == "op"}
        stems = {token.stem for text in texts for token in self.lexicon.language.tokens(text)}
        taken = [words for words, meaning in self.glosses if meaning != SEARCHED]  # those stand in a text of the plan
        glossed = {token.stem for words in taken for token in self.lexicon.language.tokens(words)}
        for item in self.reading.items:
            tokens = self.reading.tokens[item.at : item.end]
            if all(token.stem in stems for token in tokens):
                continue
            if not item.senses:
                if not all(token.stem in glossed for token in tokens):
                    return f"“{item.text}” is left out of the plan"
                continue
            part = all(token.stem in glossed for token in tokens) and not item.has(*_FIRM)
            if not part and not self._is_taken_up(item, claims, ops):
                return f"“{item.text}” is left out of the plan"
        return ""

    def _is_taken_up(self, item: Item, claims: set[Claim], ops: set[str]) -> bool:
        kinds = {sense.kind for sense in item.senses}
        if item.has("superlative") and ops & _ENDS and not {("op", one) for one in ops & _ENDS} & claims_of_item(item):
            return bool(ops & _ENDS) and self.reading.has("least", "less", "most", "more")
        if claims_of_item(item) & claims:
            return True
        if item.has("year", "relative_years"):
            return True  # looked at by themselves
        if item.has("number", "amount") and not item.has("small"):
            figures = {float(what) for sort, what in claims if sort == "number"}
            return any(isclose(one, other) for one in figures for other in self._figures_of(item, claims))
        if item.has("unit") and any(sort == "property" for sort, _ in claims):
            return True
        asked = [_ASKS[kind] for kind in kinds if kind in _ASKS]
        if any(names & ops for names in asked):
            return True
        if kinds & {"small", "polite", "follow_up", "scope"}:
            return True
        return not asked and not kinds & _THINGS

    def _years(self, plan: Plan) -> str:
        """What is wrong with the years of a plan: those that the message states, else those that it is about by itself."""
        view, type = self.lexicon.view, type_of(plan)
        used, in_dates = set(years_of(plan)), dates_of(plan)
        known = view.years_of(type)
        stated: set[int] = {int(year) for item in self.reading.of("year") for year in item.of("year")}
        made = Composition(self.reading, self.lexicon, self.focus)
        relative = [made.year(item, known) for item in self.reading.of("relative_years") if not item.has("small")]
        stated |= {year for year in relative if year is not None}
        if lost := {year for year in stated if year not in used and str(year) not in in_dates}:
            permitted = set(made.years(type))
            if not permitted or used != permitted:
                return f"{min(lost)} is left out of the plan"
        free = stated - {year for year in stated if str(year) in in_dates}
        if free:
            span = {year for year in known if min(free) <= year <= max(free)}
            permitted = set(Composition(self.reading, self.lexicon, self.focus).years(type))
            if used not in (free, span, permitted) and not (self.leans and used == free | set(self.focus.years)):
                return f"the years of the plan are {sorted(used)}, and the message says {sorted(free)}"
            return ""
        every = self.reading.has(*_SAID_BY["history"], "joined", "left") or made.asks("when") or isinstance(plan, Gaps)
        things = [ref for ref in things_in(plan)]
        there = max((year for ref in things for year in ref.years), default=known[-1] if known else 0)
        allowed = [{known[-1]} if known else set(), {there}, set(self.focus.years[-1:]), set(self.focus.years)]
        if every:
            allowed += [set(known), {year for ref in things for year in ref.years}, set(known[-2:])]
        return (
            "" if used in allowed else f"the message states no year, so the newest is meant: {known[-1] if known else 'none'}"
        )

    def _forgotten(self, claims: set[Claim]) -> str:
        """What of the set or thing spoken of a follow-up dropped without naming another."""
        base, named, leans = refer(self.reading, self.focus)
        if not leans:
            return ""
        kept = claims_of_things(named)
        if isinstance(base, Selection):
            kept |= claims_of_set(base)
        lost = {claim for claim in kept - claims if claim[0] in ("entity", "value", "number", "text")}
        said = {sort for item in self.reading.items for sort, _ in claims_of_item(item) & claims}
        lost = {claim for claim in lost if claim[0] not in said}
        things = {claim for claim in kept if claim[0] == "entity"}
        if lost and things and things <= {claim for claim in claims if claim[0] == "entity"}:
            return ""  # the things themselves stand for the conditions by which they were found
        return f"{min(lost)[1]}, of which was spoken before, is left out of the plan" if lost else ""
