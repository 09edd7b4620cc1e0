"""The ontology as plans are held against it: what there is by name, what joins what, and what people call it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from phronesis_contracts.ontology import ChainView, OntologyView, PropertyView, RelationshipView, TypeView, Words
from phronesis_contracts.twin import Level

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
