"""The plan that a message becomes: small, closed and typed. Whoever makes it, rules or a model, makes the same.

A plan is complete in itself: years are stated, references to earlier turns are resolved, names are those of the store. So it
can be stored as the state of a conversation, checked against the ontology, shown to a person, and run again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from phronesis_contracts import Message
from phronesis_contracts.deletions import ForgetSource
from phronesis_contracts.ontology import ChainView, OntologyView, PropertyView, RelationshipView, TypeView, Words
from phronesis_contracts.twin import GroupBy, Level

MAX_ENTITIES = 60
"""Things that one plan names, and that a conversation keeps in mind."""
MAX_FILTERS = 8
MAX_SIDES = 6
MAX_TO_FORGET = 20
"""Sets that are compared side by side."""

Operator = Literal["=", "<>", "<", "<=", ">", ">=", "in", "contains", "unknown", "known", "linked", "unlinked"]
"""`unknown`: the property is absent; `known`: it is not. `linked` and `unlinked`: there is, or is not, such a relationship."""
Value = str | int | float | bool | tuple[str | int | float, ...] | None


class Part(Message):
    """A part of a plan."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class EntityRef(Part):
    """One thing of the twin in all the years in which it stands there."""

    type: str
    id: str
    name: str
    level: Level | None = None
    years: tuple[int, ...] = ()


class Filter(Part):
    """A condition on the members of a set: on a property of theirs or, with `via`, on what they are linked to."""

    property: str
    """A declared property, or `id`, `name`, `level`. For `linked` and `unlinked` it is ignored: say `id`."""
    op: Operator = "="
    value: Value = None
    via: str | None = None
    """The relationship type that leads from a member to the node with the property, in either direction."""
    to: str | None = None
    """With `via`: the node type at its other end."""
    words: str = ""
    """The value as the reader knows it, for instance the name of the linked thing."""
    where: tuple[Filter, ...] = Field(default=(), max_length=4)
    """With `linked` or `unlinked`: conditions that one and the same linked node has to meet, themselves without any deeper."""


class Selection(Part):
    """A set of things of one type."""

    type: str
    years: tuple[int, ...] = Field(min_length=1, max_length=40)
    """The years that are looked at; each thing counts once for each year."""
    level: Level | None = None
    filters: tuple[Filter, ...] = Field(default=(), max_length=MAX_FILTERS)
    among: tuple[EntityRef, ...] = Field(default=(), max_length=MAX_ENTITIES)
    """Only these things: those that an earlier answer listed, or that the question names."""


class Having(Part):
    """A condition on the value of a group: departments with more than ten projects."""

    op: Literal["=", "<>", "<", "<=", ">", ">="]
    value: float


class Select(Part):
    """List the members of a set."""

    kind: Literal["select"] = "select"
    of: Selection
    show: tuple[str, ...] = Field(default=(), max_length=8)
    """Properties that were asked for; what a reader needs beside them is added by the executor."""
    exists: bool = False
    """Whether it is asked as a yes-or-no question: are there any?"""


class Aggregate(Part):
    """One figure over a set, or one for each group."""

    kind: Literal["aggregate"] = "aggregate"
    of: Selection
    measure: Literal["count", "sum", "mean", "median", "min", "max"] = "count"
    property: str | None = None
    """What is added up; `None` for a count alone."""
    group_by: tuple[GroupBy, ...] = Field(default=(), max_length=2)
    having: Having | None = None
    order: Literal["group", "value", "-value"] = "group"
    limit: int | None = Field(default=None, ge=1, le=100)
    """With an order by value: how many groups are wanted, for instance 1 for “which department has the most”."""
    count_groups: bool = False
    """Whether the number of groups is wanted, not the groups: how many departments have more than ten projects?"""


class Rank(Part):
    """The members of a set by a property of theirs, or by how much they are linked to."""

    kind: Literal["rank"] = "rank"
    of: Selection
    by: str | None = None
    """A property of numbers or dates; `None` where `via` is counted."""
    via: str | None = None
    to: str | None = None
    descending: bool = True
    limit: int = Field(default=1, ge=1, le=100)
    position: int = Field(default=1, ge=1, le=100)
    """Where the list begins: 2 with `limit` 1 is the second."""
    together: Literal["sum", "mean"] | None = None
    """The figure that is wanted of the values of those first ones."""
    expect: EntityRef | None = None
    """The thing that a yes-or-no question supposes to come first: does X cost more than Y?"""


class Compare(Part):
    """Figures side by side, or what they make together."""

    kind: Literal["compare"] = "compare"
    sides: tuple[Aggregate, ...] = Field(min_length=2, max_length=MAX_SIDES)
    """Each without groups. For `share` the first is the part, the second the whole; for `difference` and `ratio` the first is
    held against the second; a change over time has the earlier year second."""
    how: Literal["side_by_side", "share", "ratio", "difference", "change"] = "side_by_side"
    expect: Literal["more", "less", "all"] | None = None
    """What a yes-or-no question supposes of the first side: more or less than the second, or all of it."""
    first: Literal["most", "least"] | None = None
    """Which of the sides is asked for."""

    @property
    def years(self) -> tuple[int, ...]:
        """The years of all its sides."""
        return tuple(sorted({year for side in self.sides for year in side.of.years}))


class Change(Part):
    """How a set changed from one year to another: what came, what left, and whose property moved."""

    kind: Literal["change"] = "change"
    of: Selection
    """Its years are ignored."""
    since: int
    until: int
    what: Literal["joined", "left", "changed", "rose", "fell"]
    property: str | None = None
    """For `changed`, `rose` and `fell`. What has an order in the ontology (numbers, dates, closed sets) can rise."""
    before: str | None = None
    after: str | None = None
    """For `changed`: only those whose property had the first value and has the second."""
    count: bool = False
    """Whether only how many is wanted."""
    limit: int | None = Field(None, ge=1, le=100)
    """Of those whose property moved, how many are wanted, the ones that moved most first; `None` for all."""


class Relate(Part):
    """What a thing is linked to, or how two things hang together."""

    kind: Literal["relate"] = "relate"
    source: EntityRef
    year: int
    relationship: str | None = None
    """`None` for every relationship."""
    forward: bool | None = None
    """Whether the thing is the relationship's source (`True`) or target; `None` for either."""
    to: str | None = None
    """The node type at the other end; `None` for any."""
    target: EntityRef | None = None
    """With it: the way from `source` to it is wanted."""
    hops: int = Field(default=1, ge=1, le=4)
    count: bool = False


class Gaps(Part):
    """What should be on record and is not: for named things, or for a set."""

    kind: Literal["gaps"] = "gaps"
    entities: tuple[EntityRef, ...] = Field(default=(), max_length=MAX_ENTITIES)
    of: Selection | None = None
    """A set, where no thing is named."""
    years: tuple[int, ...] = Field(min_length=1, max_length=40)
    relationship: str | None = None
    """Only the links of this type."""
    to: str | None = None
    """Only the links to nodes of this type."""
    chain: str | None = None
    properties: tuple[str, ...] = ()
    """Only these properties: what is not published of them."""
    count: bool = False


class Describe(Part):
    """Properties of named things; all that is on record where none is asked for."""

    kind: Literal["describe"] = "describe"
    entities: tuple[EntityRef, ...] = Field(min_length=1, max_length=MAX_ENTITIES)
    properties: tuple[str, ...] = Field(default=(), max_length=12)
    years: tuple[int, ...] = Field(min_length=1, max_length=40)
    history: bool = False
    """Whether the course over the years is wanted."""
    expect: Filter | None = None
    """What the question supposes, for a yes or no: is it rated Red?"""
    direction: Literal["rose", "fell", "changed"] | None = None
    """With several years: whether the property went this way."""
    when: Literal["first", "last", "always"] | None = None
    """For `expect`: the first or the last year in which it is so is wanted, or whether it is so in all of them."""
    exists: bool = False
    """Whether it is asked as a yes-or-no question: is there such a thing?"""


class Coverage(Part):
    """What there is at all: types, years, the values that a property has, and what a term of the ontology means."""

    kind: Literal["coverage"] = "coverage"
    type: str | None = None
    property: str | None = None
    about: Literal["types", "years", "values", "concept"] = "types"
    term: str | None = None
    """For a concept that is neither: the name of a relationship or chain, or `gap`."""


class Search(Part):
    """Find passages by meaning and words, and quote them."""

    kind: Literal["search"] = "search"
    text: str = Field(min_length=1, max_length=4_000)
    sources: tuple[Literal["documents", "memory", "twin", "constitution"], ...] = (
        "documents",
        "memory",
        "twin",
        "constitution",
    )
    entities: tuple[EntityRef, ...] = Field(default=(), max_length=MAX_ENTITIES)
    """Things whose texts are wanted first."""
    property: str | None = None
    """A text property of those things that the question is about."""


class AboutUser(Part):
    """A question or an order about what is known of the person."""

    kind: Literal["user"] = "user"
    action: Literal["recall", "remember", "correct", "forget", "list"]
    text: str = Field(min_length=1, max_length=4_000)
    explicit: bool = False
    """Whether the message orders it in words, and does not merely tell something."""


class Compose(Part):
    """Write, translate, explain or calculate something that is in no store. Needs a language model."""

    kind: Literal["compose"] = "compose"
    task: Literal["draft", "rewrite", "translate", "summarise", "explain", "calculate", "suppose"]
    text: str = Field(min_length=1, max_length=4_000)


class Talk(Part):
    """What needs no data."""

    kind: Literal["talk"] = "talk"
    about: Literal[
        "greeting",
        "thanks",
        "farewell",
        "wellbeing",
        "feeling",
        "frustration",
        "self",
        "time",
        "help",
        "earlier",
        "override",
        "praise",
    ]
    text: str = ""


class Unknown(Part):
    """What was not understood, or cannot be answered; it is said so, never guessed."""

    kind: Literal["unknown"] = "unknown"
    reason: Literal["words", "reference", "ambiguous", "property", "years", "relationship", "scope", "empty", "unsupported"]
    words: str = ""
    """The words that nothing explains, or the name that fits several things."""
    detail: dict[str, str] = Field(default_factory=dict)
    """For the sentence that says so: `type`, `property`, `years` …"""
    choices: tuple[EntityRef, ...] = Field(default=(), max_length=12)
    """What may have been meant."""


Plan = Annotated[
    Select
    | Aggregate
    | Rank
    | Compare
    | Change
    | Relate
    | Gaps
    | Describe
    | Coverage
    | Search
    | AboutUser
    | Compose
    | Talk
    | Unknown,
    Field(discriminator="kind"),
]
DATA_PLANS = (Select, Aggregate, Rank, Compare, Change, Relate, Gaps, Describe, Coverage)
"""Plans that the twin answers."""


class Understood(Message):
    """A message as it was understood."""

    plan: Plan
    language: str = "en"
    leans: bool = False
    """Whether it was understood by what was said before."""
    certainty: float = Field(default=1.0, ge=0.0, le=1.0)
    """How sure the planner is, before anything was read: spelling that was mended and guesses between readings lower it."""
    notes: tuple[str, ...] = ()
    """What was assumed, for the trace: spelling that was mended, a year that was not stated."""
    by: Literal["rules", "model"] = "rules"
    """Who made the plan."""
    passed: tuple[str, ...] = ()
    """Words beside a name that nothing explains, and that were passed over."""
    named: tuple[EntityRef, ...] = ()
    """The things that a message names which was not understood: the next one may be about them."""
    strays: bool = False
    """Whether it was not understood, and has words of something else than what was spoken of."""
    glosses: tuple[tuple[str, str, str], ...] = ()
    """Words that no rule knows, with the sort and the name of what a model took them for."""


class QuotedSource(Message):
    """The text that the last answer was quoted from."""

    id: str
    title: str
    kind: str
    asked: str
    """The question that it answered, by which it is found again."""
    label: str = ""
    """As it was cited, with the page or sheet."""
    computed: str = ""
    """The question for which a table was computed on; empty where the text was quoted."""
    row: str = ""
    """The one row of a table that was told, spelled."""


class Clarification(Message):
    """A question that has a name of several things in it, and waits for which of them is meant."""

    question: str
    name: str
    """As it stands in the question."""
    options: tuple[EntityRef, ...]
    """In the order in which they were shown."""


class Focus(Message):
    """What a conversation is about: stored with it, and what “it”, “their” and “the year before” refer to."""

    plan: Plan | None = None
    """The last plan that was answered from data."""
    selection: Selection | None = None
    """The set that was last spoken of."""
    entities: tuple[EntityRef, ...] = Field(default=(), max_length=MAX_ENTITIES)
    """The things last named or listed, in the order in which they were shown."""
    listed: tuple[EntityRef, ...] = Field(default=(), max_length=MAX_ENTITIES)
    """What “the second one” and “the two” choose from: the last list, or the two things spoken of one after the other."""
    linked: tuple[EntityRef, ...] = Field(default=(), max_length=MAX_ENTITIES)
    """What the thing spoken of was last said to be linked with: that department."""
    properties: tuple[str, ...] = ()
    years: tuple[int, ...] = ()
    earlier: tuple[int, ...] = ()
    """The year of the question before, where the last one changed nothing but the year."""
    figure: Aggregate | None = None
    """The figure told before the last one, where both are of one kind: “and the difference?”"""
    language: str = "en"
    """The language that was last spoken."""
    quoted: QuotedSource | None = None
    """Where the last answer was quoted, and not read from the twin: a follow-up is looked for there first."""
    personal: bool = False
    """Whether the last answer was about the person: “and the colour?” is then first asked of what they said."""
    to_forget: tuple[str, ...] = Field(default=(), max_length=MAX_TO_FORGET)
    """Ids of the facts that the person asked to forget and has not confirmed yet: they are left out until then."""
    source_to_forget: ForgetSource | None = None
    """The document or conversation that the person asked to forget and has not confirmed yet."""
    clarification: Clarification | None = None
    """The last question, where it was answered by asking which of several things it means."""


NO_FOCUS = Focus()


COMMON = {name: PropertyView(name=name, kind="string") for name in ("id", "name", "level", "quarter", "year")}
"""What every node has beside what its type declares."""
FALLBACK = "en"
"""The language of words that the reader's own language lacks."""


class Schema:
    """One ontology, indexed."""

    def __init__(self, view: OntologyView) -> None:
        self.view = view
        self._types = {type.name: type for type in view.types}
        self._relationships = {one.name: one for one in view.relationships}
        self._properties = {type.name: {one.name: one for one in type.properties} for type in view.types}

    @staticmethod
    def empty() -> Schema:
        """An ontology without anything, for callers who may not read the twin."""
        return Schema(OntologyView(name="", version="", types=()))

    def type(self, name: str) -> TypeView:
        """A declared type. Raises `KeyError`: plans are checked against the ontology before they are run."""
        return self._types[name]

    def property(self, type: str, name: str) -> PropertyView:
        """A property that nodes of the type have. Raises `KeyError`."""
        return self._properties[type].get(name) or COMMON[name]

    def properties(self, type: str) -> tuple[PropertyView, ...]:
        """The declared properties of a type."""
        return self._types[type].properties

    def is_text(self, type: str, name: str) -> bool:
        """Whether a property is long text, which is quoted and makes no column of a list."""
        return self.property(type, name).kind == "text"

    def relationship(self, name: str) -> RelationshipView:
        """A declared relationship type. Raises `KeyError`."""
        return self._relationships[name]

    def relationships_of(self, type: str) -> tuple[str, ...]:
        """The relationship types that nodes of the type can have, in either direction."""
        return tuple(one.name for one in self._relationships.values() if type in (*one.sources, *one.targets))

    def leads_to(self, type: str, relationship: str) -> tuple[str, ...]:
        """The node types at the other end of a relationship, in either direction."""
        one = self._relationships[relationship]
        if one.rule == "down":
            return (type,) if type in one.sources else ()
        found = (*(one.targets if type in one.sources else ()), *(one.sources if type in one.targets else ()))
        return tuple(dict.fromkeys(found))

    def between(self, type: str, other: str) -> tuple[str, ...]:
        """The relationship types that can join nodes of two types."""
        return tuple(name for name in self._relationships if other in self.leads_to(type, name))

    def chains_of(self, type: str) -> tuple[ChainView, ...]:
        """The chains that lead on from nodes of a type."""
        return tuple(chain for chain in self.view.chains if any(type in step for step in chain.steps[:-1:2]))

    def chain(self, name: str) -> ChainView:
        """A declared chain. Raises `KeyError`."""
        return next(one for one in self.view.chains if one.name == name)

    def places(self, type: str, name: str) -> Mapping[str, int]:
        """The place of each value of a closed set in its declared order; empty for any other property."""
        return {choice: n for n, choice in enumerate(self.property(type, name).choices)}

    def in_order(self, type: str | None, name: str, values: Iterable[object]) -> list[object]:
        """Values as people expect them: a closed set as declared, numbers and text upwards, what is unknown last."""
        places = self.places(type, name) if type else {}

        def place(value: object) -> tuple[bool, int, float, str]:
            number = float(value) if isinstance(value, int | float) else 0.0
            return value is None, places.get(str(value), len(places)), number, str(value).casefold()

        return sorted(values, key=place)

    def type_name(self, type: str, language: str, level: Level | str | None = None, *, many: bool = True) -> str:
        """What nodes of a type, and of a level of it, are called."""
        one = self._types[type]
        words = said(one.levels.get(Level(level), {}), language) if level else ()
        words = words or said(one.words, language) or (type,)
        return words[1] if many and len(words) > 1 else words[0]

    def property_name(self, type: str | None, name: str, language: str) -> str:
        """What a property is called; its name with spaces where the ontology has no word for it."""
        found = self._properties.get(type or "", {}).get(name)
        words = said(found.words, language) if found else ()
        return words[0] if words else name.replace("_", " ")

    def verb(self, relationship: str, forward: bool, language: str) -> str:
        """How one says a relationship, from its source or from its target; empty where the ontology does not say."""
        one = self._relationships[relationship]
        words = said(one.forward if forward else one.backward, language)
        return words[0] if words else ""

    def chain_name(self, name: str, language: str) -> str:
        """What a chain is called."""
        words = said(self.chain(name).words, language)
        return words[0] if words else name.replace("_", " ")


def said(words: Words, language: str) -> Sequence[str]:
    """The words of a language, else those of the fallback; empty where there are none."""
    return words.get(language) or words.get(FALLBACK) or ()
