"""What a twin is told with: its ontology in words, and its nodes as named things."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from phronesis_contracts.ontology import (
    ChainView,
    EntityName,
    OntologyView,
    PropertyValues,
    PropertyView,
    RelationshipView,
    TypeView,
)
from phronesis_contracts.ontology import Words as WordsView
from phronesis_contracts.twin import Level

from .ontology import NodeType, Ontology, Property, RelationshipType, Words

ENGLISH = "en"
_HUMPS = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+|[0-9]+")


def to_view(ontology: Ontology, version: str) -> OntologyView:
    """The ontology as messages have it; what it gives no English word for is called by its name."""
    return OntologyView(
        name=ontology.name,
        version=version,
        types=tuple(_type_view(node) for node in ontology.nodes.values()),
        relationships=tuple(_relationship_view(each) for each in ontology.relationships.values()),
        chains=tuple(
            ChainView(name=chain.name, steps=chain.steps, words=_named(chain.words, chain.name))
            for chain in ontology.chains.values()
        ),
        hierarchy=ontology.hierarchy,
    )


def split_name(name: str) -> str:
    """A name in words: `EntityITSystem` is `entity IT system`, `risk_score` is `risk score`, `BUILT_AT` is `built at`."""
    if "_" in name or name.isupper():
        return name.replace("_", " ").lower().strip()
    return " ".join(part if len(part) > 1 and part.isupper() else part.lower() for part in _HUMPS.findall(name))


def _named(words: Words, name: str) -> WordsView:
    return dict(words) if ENGLISH in words else {**words, ENGLISH: (split_name(name),)}


def _type_view(node: NodeType) -> TypeView:
    return TypeView(
        name=node.name,
        words=_named(node.words, node.name),
        levels={level: dict(words) for level, words in node.levels.items()},
        properties=tuple(_property_view(each) for each in node.properties.values()),
    )


def _property_view(each: Property) -> PropertyView:
    return PropertyView(
        name=each.name,
        kind=each.kind.value,
        unit=each.unit,
        choices=each.choices,
        lowest=each.lowest,
        highest=each.highest,
        high_above=each.high_above,
        words=_named(each.words, each.name),
        most=dict(each.most),
        least=dict(each.least),
        value_words={value: dict(words) for value, words in each.value_words.items()},
    )


def _relationship_view(each: RelationshipType) -> RelationshipView:
    return RelationshipView(
        name=each.name,
        sources=each.sources,
        targets=each.targets,
        forward=_named(each.forward, each.name),
        backward=dict(each.backward),
        rule=each.rule.value,
    )


@dataclass(frozen=True)
class NamedRow:
    """A node with its names."""

    type: str
    id: str
    name: str
    aliases: tuple[str, ...]
    year: int
    level: Level


@dataclass(frozen=True)
class NodeSummary:
    """Years and values of a twin."""

    years: tuple[int, ...]
    values: tuple[PropertyValues, ...]


@dataclass(frozen=True)
class NamePage:
    """Nodes in the order of their keys, and where to go on after."""

    rows: tuple[NamedRow, ...]
    next: str | None


def to_names(rows: Iterable[NamedRow]) -> tuple[EntityName, ...]:
    """The things that the nodes stand for, in the order of their first nodes."""
    things: dict[tuple[str, str], list[NamedRow]] = {}
    for row in rows:
        things.setdefault((row.type, row.id), []).append(row)
    return tuple(_to_name(of_one) for of_one in things.values())


def _to_name(of_one: list[NamedRow]) -> EntityName:
    latest = max(of_one, key=lambda row: row.year)
    others: Mapping[str, None] = dict.fromkeys(name for row in of_one for name in (row.name, *row.aliases))
    return EntityName(
        type=latest.type,
        id=latest.id,
        name=latest.name,
        aliases=tuple(name for name in others if name != latest.name),
        level=latest.level,
        years=tuple(sorted({row.year for row in of_one})),
    )


ALIAS_SEPARATOR = ";"
"""Between the aliases of a node in the store; no alias holds it."""


def join_aliases(aliases: Iterable[str]) -> str:
    """Aliases as the store has them."""
    return ALIAS_SEPARATOR.join(dict.fromkeys(alias.strip() for alias in aliases if alias.strip()))


def split_aliases(stored: str | None) -> tuple[str, ...]:
    """Aliases as messages have them."""
    return tuple(stored.split(ALIAS_SEPARATOR)) if stored else ()
