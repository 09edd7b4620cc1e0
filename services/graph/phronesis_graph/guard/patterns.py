"""Patterns: every node has a label or is known, and gets the tenant; every path of variable length gets it on all its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from .comparing import compare
from .labelling import Element, Labels
from .notes import OWN, TENANT, Notes
from .paths import Step, step
from .refusals import Rule, refused
from .tree import Tree, name
from .values import Shape, Value, list_of
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from .expressions import Expressions, Scope


MAX_PATTERNS = 5
"""Patterns of one MATCH: each that is not joined to the others multiplies the rows."""


class Patterns:
    """Reads patterns of one statement."""

    expressions: Expressions

    def __init__(self, notes: Notes, vocabulary: Vocabulary) -> None:
        self._notes = notes
        self._vocabulary = vocabulary
        self.labels = Labels(notes, vocabulary)

    def match(self, patterns: Tree, scope: Scope) -> tuple[dict[str, Value], list[str]]:
        """Read the patterns of a MATCH; what they bind is put to `scope`.

        Returns:
            The new scope, and the conditions that its WHERE has to hold beside its own.

        Raises:
            QueryRefused: a pattern breaks a rule.
        """
        found = patterns.children("pattern")
        if len(found) > MAX_PATTERNS:
            raise refused(Rule.SIZE, f"one MATCH has at most {MAX_PATTERNS} patterns; join them, or write another MATCH")
        elements = [self._element(next(pattern.find("patternElement"))) for pattern in found]
        bound = self._bind(elements, scope)
        conditions = []
        for pattern, element in zip(found, elements, strict=True):
            variable = pattern.child("variable")
            if variable is not None:
                self._new(variable, bound, _path(element))
            if any(each.variable_length for each in element.steps):
                conditions.append(self._everywhere(pattern, variable))
        self._finish(elements, scope, bound)
        return bound, conditions

    def predicate(self, tree: Tree, scope: Scope, variable: Tree | None = None) -> dict[str, Value]:
        """Read a pattern that stands in an expression.

        Raises:
            QueryRefused: it breaks a rule, or has a variable length.
        """
        element = self._element(tree)
        if any(each.variable_length for each in element.steps):
            raise refused(Rule.PATTERN, "write a variable length in a MATCH of its own, or in EXISTS { MATCH ... }")
        bound = self._bind([element], scope)
        if variable is not None:
            self._new(variable, bound, _path(element))
        self._finish([element], scope, bound)
        return bound

    def written(self, patterns: Iterable[Tree], scope: Scope) -> dict[str, Value]:
        """Read patterns of CREATE or MERGE: new nodes get the tenant, known ones stay as they are.

        Raises:
            QueryRefused: a pattern breaks a rule.
        """
        elements = [self._element(next(pattern.find("patternElement"))) for pattern in patterns]
        bound = self._bind(elements, scope)
        self._finish(elements, scope, bound, writing=True)
        return bound

    def _element(self, tree: Tree) -> Element:
        rules = [part.rule for part in tree.parts]
        if any(one == other for one, other in pairwise(rules)):
            raise refused(Rule.PATTERN, "join two nodes by a relationship: (a)-[:TYPE]->(b)")
        steps = [
            step(part, self.labels.names(part.child("labelExpression"), node=False), self._notes)
            for part in tree.children("relationshipPattern")
        ]
        return Element(tree, tree.children("nodePattern"), steps)

    def _bind(self, elements: Sequence[Element], scope: Scope) -> dict[str, Value]:
        """Give each node of the patterns a value; nodes of one name are one node."""
        bound = dict(scope)
        for element in elements:
            for node in element.nodes:
                variable, labels = node.child("variable"), self.labels.names(node.child("labelExpression"), node=True)
                if variable is None:
                    element.values.append(self._node(labels))
                    continue
                value = bound.get(name(variable)) or self._node(())
                if value.shape is not Shape.NODE:
                    raise refused(Rule.VARIABLE, f"{name(variable)[:60]!r} is not a node; choose another name")
                # What a known node's pattern asks need not be so outside of it: OPTIONAL MATCH, NOT EXISTS.
                for number in value.nodes if name(variable) not in scope else ():
                    self._notes.labels[number] |= frozenset(labels)
                bound[self._own(variable)] = value
                element.values.append(value)
        return bound

    def _node(self, labels: Iterable[str]) -> Value:
        return Value(Shape.NODE, True, nodes=frozenset({self._notes.node(frozenset(labels))}))

    def _own(self, variable: Tree) -> str:
        if name(variable).lower().startswith(OWN):
            raise refused(Rule.VARIABLE, f"names that begin with {OWN} are the service's own; choose another")
        return name(variable)

    def _new(self, variable: Tree, bound: dict[str, Value], value: Value) -> None:
        """Bind a name that nothing has, or that the same kind of thing has."""
        known = bound.get(self._own(variable))
        if known is not None and (known.shape is not value.shape or value.shape is not Shape.RELATIONSHIP):
            raise refused(Rule.VARIABLE, f"the name {name(variable)[:60]!r} is taken; choose another")
        bound[name(variable)] = value

    def _finish(self, elements: Sequence[Element], scope: Scope, bound: dict[str, Value], writing: bool = False) -> None:
        """Hold the patterns against the rules, now that all their names are known, and put the tenant in."""
        told = set(scope) if writing else set()
        for element in elements:
            for place in range(len(element.nodes)):
                self.labels.labelled(element, place, scope, writing)
            for each, left, right in zip(element.steps, element.values, element.values[1:], strict=False):
                self._join(each, left.nodes | right.nodes, bound, writing)
        for each in (each for element in elements for each in element.steps):
            self._inside(each.tree, bound, writing)
        for element in elements:
            for node, value in zip(element.nodes, element.values, strict=True):
                variable = node.child("variable")
                self._properties(node, value, bound, variable is None or name(variable) not in told)
                self._inside(node, bound, writing)
                if variable is not None and writing:
                    told.add(name(variable))

    def _join(self, each: Step, nodes: frozenset[int], bound: dict[str, Value], writing: bool) -> None:
        across = self._vocabulary.across_levels(each.types)
        pairs = self._notes.levels.across if across else self._notes.levels.same
        joined = sorted(nodes)
        pairs.extend(pairwise(joined))
        if writing and (len(each.types) != 1 or each.variable_length):
            raise refused(Rule.RELATIONSHIP, "a new relationship has one type and no length: -[:TYPE]->")
        value = Value(Shape.RELATIONSHIP, True, nodes=nodes)
        variable, properties = each.tree.child("variable"), each.tree.child("properties")
        if variable is not None:
            self._new(variable, bound, list_of(value) if each.variable_length else value)
        if properties is not None:
            self._map(properties, bound, value)

    def _properties(self, node: Tree, value: Value, bound: dict[str, Value], tenant: bool) -> None:
        variable, properties = node.child("variable"), node.child("properties")
        keys = any(properties.find("propertyKeyName")) if properties else False
        if properties is not None:
            self._map(properties, bound, value)
        if tenant and properties is not None:
            self._notes.changes.before(properties.last, (", " if keys else "") + f"tenant: ${TENANT}")
        elif tenant:
            behind = node.child("labelExpression") or variable or node.parts[0]
            self._notes.changes.behind(behind.last, f"{{tenant: ${TENANT}}}")

    def _inside(self, part: Tree, bound: dict[str, Value], writing: bool) -> None:
        """Read the WHERE that stands inside a node or a relationship."""
        condition = part.child("expression")
        if condition is not None and writing:
            raise refused(Rule.PATTERN, "what is written has no WHERE")
        if condition is not None:
            self.expressions.truth(condition, bound)

    def _map(self, properties: Tree, bound: dict[str, Value], owner: Value) -> None:
        written = properties.child("map")
        if written is None:
            raise refused(Rule.PARAMETER, "write the properties out: (n:EntityProject {id: $id})")
        value = self.expressions.map(written, bound)
        if value.holds:
            raise refused(Rule.PATTERN, "a property is compared with a value, not with a node")
        for key, given in (value.fields or {}).items():
            self._vocabulary.property(key)
            compare(self._notes.levels, "EQ", Value(level=self._vocabulary.level(key), nodes=owner.nodes), given)
            self._notes.pick(owner, given)

    def _everywhere(self, pattern: Tree, variable: Tree | None) -> str:
        """A condition that all nodes of a path of variable length are the tenant's."""
        path = variable.text() if variable else self._notes.own_name()
        if variable is None:
            self._notes.changes.before(pattern.first, f"{path} =")
        each = self._notes.own_name()
        return f"all({each} IN nodes({path}) WHERE {each}.tenant = ${TENANT})"


def _path(element: Element) -> Value:
    return Value(Shape.PATH, True, nodes=frozenset[int]().union(*(value.nodes for value in element.values)))
