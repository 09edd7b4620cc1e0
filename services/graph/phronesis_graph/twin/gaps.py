"""Gap questions held against the ontology: what each needs to know of the graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from phronesis_contracts import BadRequest
from phronesis_contracts.twin import GapQuestion, Level, NodeRef

from .chains import Walk, Walks, choose_walk
from .ontology import LevelRule, Ontology, suggest_nearest

NodeId = tuple[str, str]
"""Type and id: what nodes of several years stand for."""


class Direction(Enum):
    """Which way relationships lead, seen from the node asked about."""

    OUT = "->"
    IN = "<-"
    EITHER = "--"


@dataclass(frozen=True)
class Tie:
    """Relationships of given types between a node of one type and nodes of others."""

    source: str
    names: tuple[str, ...]
    targets: tuple[str, ...]
    direction: Direction
    free: bool = False
    """Whether they may join levels, so that the other node's level says nothing."""


@dataclass(frozen=True)
class TieQuestion:
    """Where a tie is looked for: from a node in any year, to any node or to one."""

    question: str
    id: str
    other: str | None = None


@dataclass(frozen=True)
class FoundTie:
    """A tie that the graph has, in one year."""

    question: str
    type: str
    id: str
    year: int
    level: Level
    other_level: Level


@dataclass(frozen=True)
class ChainReach:
    """How far a walk comes: hops taken, and the keys (`type/id/year`) of the nodes that it stops at."""

    hops: int
    last: tuple[str, ...]


@dataclass(frozen=True)
class GapCase:
    """A question that fits the ontology."""

    question: GapQuestion
    walk: Walk | None = None
    tie: Tie | None = None
    step: str = ""
    """For a tie: what is missing when there is none, as findings state it."""

    @property
    def id(self) -> str:
        return self.question.id

    @property
    def year(self) -> int:
        return self.question.node.year

    @property
    def level(self) -> Level:
        return self.question.level

    @property
    def things(self) -> tuple[NodeId, ...]:
        other = self.question.other
        return (_node_id(self.question.node),) if other is None else (_node_id(self.question.node), _node_id(other))


def check_questions(ontology: Ontology, walks: Walks, questions: Sequence[GapQuestion]) -> tuple[GapCase, ...]:
    """The questions, checked. Raises `BadRequest`: an unknown name, a pair that is not joined, or one id twice."""
    seen: set[str] = set()
    made = []
    for i, question in enumerate(questions):
        if question.id in seen:
            raise BadRequest("two questions have this id", field=f"questions.{i}.id")
        seen.add(question.id)
        made.append(_check_question(ontology, walks, question, f"questions.{i}"))
    return tuple(made)


def _check_question(ontology: Ontology, walks: Walks, question: GapQuestion, path: str) -> GapCase:
    _check_node(ontology, question.node, f"{path}.node")
    if question.chain is not None:
        if question.other is not None or question.relationship is not None:
            raise BadRequest("a question about a chain names no pair and no relationship", field=f"{path}.chain")
        walk = choose_walk(walks, question.chain, question.node.type, f"{path}.chain", f"{path}.node.type")
        return GapCase(question, walk=walk)
    if question.other is not None:
        return _check_pair(ontology, question, question.other, path)
    if question.relationship is not None:
        return _check_relationship(ontology, question, question.relationship, path)
    return GapCase(question)


def _check_pair(ontology: Ontology, question: GapQuestion, other: NodeRef, path: str) -> GapCase:
    _check_node(ontology, other, f"{path}.other")
    node = question.node
    if other.year != node.year:
        raise BadRequest("a pair is asked about in one year", field=f"{path}.other.year")
    names = tuple(_types_between(ontology, node.type, other.type))
    if not names:
        raise BadRequest(f"the ontology joins no {node.type} and {other.type} directly", field=f"{path}.other.type")
    if question.relationship is not None:
        if question.relationship not in names:
            raise BadRequest(
                f"no relationship between the two{suggest_nearest(question.relationship, names)}", field=f"{path}.relationship"
            )
        names = (question.relationship,)
    tie = Tie(node.type, names, (other.type,), Direction.EITHER, _is_level_free(ontology, names))
    return GapCase(question, tie=tie, step=f"{' | '.join(names)} -> {other.key}")


def _check_relationship(ontology: Ontology, question: GapQuestion, name: str, path: str) -> GapCase:
    kind = ontology.relationships.get(name)
    if kind is None:
        raise BadRequest(
            f"no such relationship type{suggest_nearest(name, ontology.relationships)}", field=f"{path}.relationship"
        )
    type, targets = question.node.type, kind.targets
    if kind.rule is LevelRule.DOWN:
        direction, targets = Direction.EITHER, tuple([type])
    elif type in kind.sources:
        direction = Direction.OUT
    elif type in kind.targets:
        direction, targets = Direction.IN, kind.sources
    else:
        theirs = [each.name for each in ontology.relationships.values() if type in (*each.sources, *each.targets)]
        raise BadRequest(f"{type} has no {name}{suggest_nearest(name, theirs)}", field=f"{path}.relationship")
    tie = Tie(type, (name,), targets, direction, _is_level_free(ontology, (name,)))
    return GapCase(question, tie=tie, step=f"{name} {direction.value} {' | '.join(targets)}")


def _types_between(ontology: Ontology, one: str, other: str) -> Iterator[str]:
    for name in sorted(ontology.relationships):
        kind = ontology.relationships[name]
        if kind.joins(one, other) or kind.joins(other, one):
            yield name


def _is_level_free(ontology: Ontology, names: Sequence[str]) -> bool:
    return any(ontology.relationships[name].rule is not LevelRule.SAME for name in names)


def _check_node(ontology: Ontology, node: NodeRef, path: str) -> None:
    if node.type not in ontology.nodes:
        raise BadRequest(f"no such node type{suggest_nearest(node.type, ontology.nodes)}", field=f"{path}.type")


def _node_id(node: NodeRef) -> NodeId:
    return node.type, node.id
