"""Labels and types in patterns: every node has a label, is known, or gets the labels that its relationships imply."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .allowed import Rules
from .notes import Notes
from .paths import Step
from .refusals import Rule, refused
from .tree import Tree, name
from .values import Value
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from .expressions import Scope

_NO_LABEL = "give each node a label of the ontology: (n:EntityProject)"


@dataclass
class Element:
    """One path of a pattern: nodes, and the steps between them."""

    tree: Tree
    nodes: list[Tree]
    steps: list[Step]
    values: list[Value] = field(default_factory=list)
    """One for each of the nodes."""


class Labels:
    """Holds the labels of one statement."""

    def __init__(self, notes: Notes, vocabulary: Vocabulary) -> None:
        self._notes = notes
        self._vocabulary = vocabulary

    def names(self, labels: Tree | None, node: bool) -> tuple[str, ...]:
        """The labels or relationship types of a label expression.

        Raises:
            QueryRefused: one of them is not known.
        """
        if labels is None:
            return ()
        if not labels.has("COLON") or any(part.has("PERCENT") for part in labels.walk()):
            raise refused(Rule.LABEL, "name the labels that you want, behind a colon: (n:EntityProject)")
        known = self._vocabulary.label if node else self._vocabulary.relationship
        return tuple(known(name(part)) for part in labels.find("symbolicNameString"))

    def labelled(self, element: Element, place: int, scope: Scope, writing: bool) -> None:
        """Hold one node pattern: it has a label, or is known, or gets the labels that its relationship's ends have."""
        node, value = element.nodes[place], element.values[place]
        if self._notes.rules is Rules.READING:
            if node.child("labelExpression") is None:
                self._write(element, place)
        elif not self._known(node, value, scope):
            # The platform's own nodes are joined to none that has a label which may be named.
            if writing or not any(self._known(*pair, scope) for pair in zip(element.nodes, element.values, strict=True)):
                raise refused(Rule.LABEL, "give each node a label: (n:Product)")

    def _write(self, element: Element, place: int) -> None:
        """Write a node's labels out. A known one gets them too: stores differ in how far a name reaches."""
        node, numbers = element.nodes[place], element.values[place].nodes
        labels = frozenset[str]().union(*(self._notes.labels[number] for number in numbers)) or self._implied(element, place)
        for number in numbers:
            self._notes.labels[number] |= labels
        behind = node.child("variable") or node.parts[0]
        self._notes.changes.behind(behind.last, ":" + "|".join(sorted(labels)))

    def _known(self, node: Tree, value: Value, scope: Scope) -> bool:
        variable = node.child("variable")
        bound = variable is not None and name(variable) in scope
        return bound or any(self._notes.labels[number] for number in value.nodes)

    def _implied(self, element: Element, place: int) -> frozenset[str]:
        found = []
        if place > 0 and element.steps[place - 1].types:
            found.append(element.steps[place - 1].ends(self._vocabulary, left=False))
        if place < len(element.steps) and element.steps[place].types:
            found.append(element.steps[place].ends(self._vocabulary, left=True))
        labels = frozenset.intersection(*found) if found else frozenset[str]()
        if not labels:
            raise refused(Rule.LABEL, _NO_LABEL)
        return labels
