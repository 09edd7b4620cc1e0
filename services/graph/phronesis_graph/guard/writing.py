"""The curator's changes: whose nodes they touch, what they may not touch, and which of them want a second look."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .allowed import Rules
from .notes import Notes
from .refusals import Rule, refused
from .tree import Tree, name
from .values import Shape, Value
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from .expressions import Expressions, Scope
    from .patterns import Patterns

KEPT = frozenset({"tenant", "key", "owner", "hash"})
"""Properties that the platform keeps its nodes by."""
_TWIN = "the twin's nodes are written by graph.upsert, and only read here; use a label of your own"


class Writing:
    """Reads the clauses that change the graph."""

    CLAUSES = frozenset({"createClause", "mergeClause", "setClause", "removeClause", "deleteClause"})

    def __init__(self, notes: Notes, vocabulary: Vocabulary, patterns: Patterns, expressions: Expressions) -> None:
        self._notes = notes
        self._vocabulary = vocabulary
        self._patterns = patterns
        self._expressions = expressions

    def read(self, clause: Tree, scope: Scope) -> Scope:
        """Read one clause.

        Raises:
            QueryRefused: it breaks a rule.
        """
        match clause.rule:
            case "createClause":
                return self._create(clause.need("patternList").children("pattern"), scope)
            case "mergeClause":
                bound = self._create(clause.children("pattern"), scope)
                for action in clause.children("mergeAction"):
                    self._set(action.need("setClause"), bound, picked=True)
                return bound
            case "setClause":
                self._set(clause, scope)
            case "removeClause":
                for item in clause.children("removeItem"):
                    self._change(item, scope)
            case "deleteClause":
                self._delete(clause, scope)
            case _:
                raise refused(Rule.CLAUSE, "write MATCH, CREATE, MERGE, SET, REMOVE, DELETE and RETURN")
        return scope

    def pick(self, condition: Tree, scope: Scope) -> None:
        """Note of which nodes a condition wants one property to have a value, whatever else it wants."""
        if self._notes.rules is not Rules.KNOWLEDGE_WRITING:
            return
        for one, other in _wanted(condition):
            values = self._expressions.of(one, scope), self._expressions.of(other, scope)
            for owner, given in (values, values[::-1]):
                if owner.nodes and not owner.given:
                    self._notes.pick(owner, given)

    def _create(self, patterns: list[Tree], scope: Scope) -> Scope:
        bound = self._patterns.written(patterns, scope)
        for node in (node for pattern in patterns for node in pattern.find("nodePattern")):
            variable = node.child("variable")
            if variable is not None and name(variable) not in scope:
                self._notes.picked.update(bound[name(variable)].nodes)
            elif variable is not None:
                self._broad(bound[name(variable)], variable, "joins")
        for node in (node for pattern in patterns for node in pattern.find("nodePattern")):
            if self._vocabulary.twin(self._patterns.labels.names(node.child("labelExpression"), node=True)):
                raise refused(Rule.LABEL, _TWIN)
            for key in node.find("propertyKeyName"):
                self._hold(name(key))
        return bound

    def _set(self, clause: Tree, scope: Scope, picked: bool = False) -> None:
        for item in clause.children("setItem"):
            self._change(item, scope, picked)

    def _change(self, item: Tree, scope: Scope, picked: bool = False) -> None:
        """One change of a property or a label."""
        target, labels = item.child("expression2"), item.child("nodeLabels")
        if item.child("variable") is None and target is None:
            raise refused(Rule.WRITING, "set one property at a time: SET n.name = $name")
        variable = item.child("variable") or next(target.find("variable"))  # type: ignore[union-attr]
        value = self._expressions.of(variable, scope)
        self._touch(value, variable, picked)
        if labels is not None:
            for label in labels.find("symbolicNameString"):
                if self._vocabulary.twin([self._vocabulary.label(name(label))]):
                    raise refused(Rule.LABEL, _TWIN)
        elif target is not None:
            self._key(target)
            for given in item.children("expression"):
                self._given(self._expressions.of(given, scope))
        else:
            self._add(item, scope)

    def _key(self, target: Tree) -> None:
        keys = [name(part) for part in target.find("propertyKeyName")]
        if len(keys) != 1 or len(target.parts) != 2 or target.parts[0].parts[0].rule != "variable":
            raise refused(Rule.WRITING, "set one property of one node: SET n.name = $name")
        self._hold(keys[0])

    def _hold(self, key: str) -> None:
        if key.lower() in KEPT:
            raise refused(Rule.TENANT, f"the property {key!r} is the platform's; choose another name")
        self._vocabulary.key(key)

    def _add(self, item: Tree, scope: Scope) -> None:
        """`SET n += {...}`; `SET n = {...}` would take the tenant away."""
        if not item.has("PLUSEQUAL"):
            raise refused(Rule.TENANT, "SET n = ... takes the tenant away; write SET n += {name: $name}")
        value = self._expressions.of(item.need("expression"), scope)
        if value.shape is not Shape.MAP or value.fields is None:
            raise refused(Rule.TENANT, "write the map out: SET n += {name: $name}")
        for key, given in value.fields.items():
            self._hold(key)
            self._given(given)

    def _given(self, value: Value) -> None:
        if value.holds:
            raise refused(Rule.WRITING, "a property holds a value, not a node")

    def _touch(self, value: Value, variable: Tree, picked: bool = False) -> None:
        """Hold what is changed: no node of the twin, and a danger where no value picks it."""
        if value.shape not in (Shape.NODE, Shape.RELATIONSHIP):
            raise refused(Rule.WRITING, f"{name(variable)[:60]!r} is not a node or a relationship")
        labels = [self._notes.labels[number] for number in value.nodes]
        if value.shape is Shape.NODE and any(not each or self._vocabulary.twin(each) for each in labels):
            raise refused(Rule.LABEL, f"give the node that you change its label; {_TWIN}")
        if not picked:
            self._broad(value, variable, "changes")

    def _broad(self, value: Value, variable: Tree, does: str) -> None:
        if not value.nodes & self._notes.picked:
            self._notes.dangers.append(f"it {does} every {name(variable)!r} that the pattern finds")

    def _delete(self, clause: Tree, scope: Scope) -> None:
        for expression in clause.children("expression"):
            inner = expression
            while len(inner.parts) == 1 and inner.parts[0].rule and inner.rule != "variable":
                inner = inner.parts[0]
            if inner.rule != "variable":
                raise refused(Rule.WRITING, "delete by name: MATCH (n:Product {name: $name}) DETACH DELETE n")
            self._touch(self._expressions.of(inner, scope), inner)


def _wanted(condition: Tree) -> list[tuple[Tree, Tree]]:
    """The two sides of the comparisons by = and IN that must hold for the condition to hold."""
    tree = condition.inner()
    if tree.rule == "expression10":
        return [found for part in tree.parts if part.rule for found in _wanted(part)]
    if tree.rule == "parenthesizedExpression":
        return _wanted(tree.need("expression"))
    if tree.rule == "expression8" and tree.kinds() == ["EQ"]:
        return [(tree.parts[0], tree.parts[2])]
    if tree.rule == "expression7" and (test := tree.child("comparisonExpression6")) and test.kinds() == ["IN"]:
        return [(tree.parts[0], test.parts[1])]
    return []
