"""Expressions that have names, patterns or queries of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .refusals import Rule, refused
from .tree import Tree, name
from .values import Value, list_of

if TYPE_CHECKING:
    from .clauses import Clauses
    from .expressions import Expressions, Scope


class Nested:
    """Reads them."""

    def __init__(self, expressions: Expressions, clauses: Clauses) -> None:
        self._expressions = expressions
        self._clauses = clauses

    def list_comprehension(self, tree: Tree, scope: Scope) -> Value:
        """`[x IN list WHERE ... | ...]`."""
        source, *rest = tree.children("expression")
        values = self._expressions.of(source, scope)
        inner = {**scope, name(tree.need("variable")): values.items()}
        if tree.has("WHERE"):
            self._expressions.truth(rest.pop(0), inner)
        item = self._expressions.of(rest[0], inner) if rest else values.items()
        return replace(list_of(item), collected=values.collected, units=item.units * values.units)

    def list_predicate(self, tree: Tree, scope: Scope) -> Value:
        """`any(x IN list WHERE ...)` and its kin."""
        source, *rest = tree.children("expression")
        inner = {**scope, name(tree.need("variable")): self._expressions.of(source, scope).items()}
        for condition in rest:
            self._expressions.truth(condition, inner)
        return Value()

    def pattern(self, tree: Tree, scope: Scope) -> Value:
        """`(a)-[:TYPE]->(b)` as a truth value."""
        self._clauses.patterns.predicate(tree.need("pathPatternNonEmpty"), scope)
        return Value()

    def pattern_comprehension(self, tree: Tree, scope: Scope) -> Value:
        """`[(a)-[:TYPE]->(b) | ...]`."""
        inner = self._clauses.patterns.predicate(tree.need("pathPatternNonEmpty"), scope, tree.child("variable"))
        *conditions, shown = tree.children("expression")
        for condition in conditions:
            self._expressions.truth(condition, inner)
        return list_of(self._expressions.of(shown, inner), collected=True)

    def subquery(self, tree: Tree, scope: Scope) -> Value:
        """`EXISTS { ... }`, `COUNT { ... }` and `COLLECT { ... }`."""
        query = tree.child("queryWithLocalDefinitions")
        if query is None:
            self._clauses.match(tree, scope)
            return Value(brief=True)
        columns = self._clauses.query(query, scope, returning=tree.rule == "collectExpression")
        if tree.rule != "collectExpression":
            return Value(brief=True)
        if len(columns) != 1:
            raise refused(Rule.CLAUSE, "COLLECT { ... } returns one column")
        return list_of(next(iter(columns.values())), collected=True)
