"""What a new ontology changes against the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from phronesis_contracts import BadRequest
from phronesis_contracts.ontology import OntologyChanges

from .ontology import LEVEL_OF_ALL, Kind, NodeType, Ontology, Property, check_value

T = TypeVar("T")


@dataclass(frozen=True)
class Lost:
    """A relationship that nodes of a type may no longer have."""

    type: str
    relationship: str


@dataclass(frozen=True)
class Checks:
    """What stored nodes have to be looked at for."""

    gone: tuple[str, ...]
    """Types that are declared no longer."""
    types: tuple[NodeType, ...]
    """Types as they will be, with those properties alone that nodes may not fit."""
    lost: tuple[Lost, ...]


def compare(before: Ontology, after: Ontology) -> OntologyChanges:
    """Which names came, went, or mean something else."""
    names = [_compare(before.nodes, after.nodes, lambda name: name, _same_type)]
    for name in before.nodes.keys() & after.nodes.keys():
        old, new = before.nodes[name].properties, after.nodes[name].properties
        names.append(_compare(old, new, f"{name}.{{}}".format, _same_property))
    names.append(_compare(before.relationships, after.relationships, lambda name: name, _same_relationship))
    names.append(_compare(before.chains, after.chains, lambda name: name, lambda one, other: one.steps == other.steps))
    added, changed, removed = (tuple(sorted(name for part in names for name in part[i])) for i in range(3))
    return OntologyChanges(added=added, changed=changed, removed=removed)


def plan_checks(before: Ontology, after: Ontology) -> Checks:
    """Which stored nodes may not fit any longer: those of types that are as they were need no look."""
    return Checks(
        tuple(name for name in before.nodes if name not in after.nodes),
        tuple(_types_to_check(before, after)),
        tuple(_lost_relationships(before, after)),
    )


def misfit_of(declared: Property, value: object) -> str | None:
    """Why a stored value does not fit its declaration; `None` where it does."""
    try:
        check_value(declared, value, declared.name)
    except BadRequest as error:
        return error.detail
    return None


def is_blocking(declared: Property, value: object) -> bool:
    """Whether a value cannot stand under its declaration: a sum over texts would fail."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number is not (declared.kind is Kind.NUMBER)


def levels_of(kind: NodeType) -> tuple[str, ...]:
    """The levels at which nodes of the type may stand."""
    return tuple(level.value for level in (kind.levels or (LEVEL_OF_ALL,)))


def _compare(
    before: Mapping[str, T], after: Mapping[str, T], path: Callable[[str], str], same: Callable[[T, T], bool]
) -> tuple[list[str], list[str], list[str]]:
    added = [path(name) for name in after if name not in before]
    changed = [path(name) for name in after if name in before and not same(before[name], after[name])]
    return added, changed, [path(name) for name in before if name not in after]


def _same_type(one: NodeType, other: NodeType) -> bool:
    return tuple(one.levels) == tuple(other.levels)


def _same_property(one: Property, other: Property) -> bool:
    return _bare(one) == _bare(other)


def _bare(one: Property) -> Property:
    return replace(one, words={}, most={}, least={}, value_words={})


def _same_relationship(one: object, other: object) -> bool:
    parts = ("sources", "targets", "rule")
    return all(getattr(one, part) == getattr(other, part) for part in parts)


def _types_to_check(before: Ontology, after: Ontology) -> Iterator[NodeType]:
    for name, kind in after.nodes.items():
        old = before.nodes.get(name)
        if old is None:  # of an earlier version there may be nodes all the same
            yield kind
            continue
        differing = {
            key: declared
            for key, declared in kind.properties.items()
            if key not in old.properties or not _same_property(old.properties[key], declared)
        }
        if differing or not _same_type(old, kind):
            yield replace(kind, properties=differing)


def _lost_relationships(before: Ontology, after: Ontology) -> Iterator[Lost]:
    for name, old in before.relationships.items():
        new = after.relationships.get(name)
        for source in old.sources:
            if source in after.nodes and (new is None or source not in new.sources):
                yield Lost(source, name)
