"""Reaching into values: properties, items, slices and projections."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from . import refusals
from .refusals import Rule, refused
from .tree import Tree, name
from .values import ENTITIES, LITERAL, Level, Shape, Value, merged
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from .expressions import Expressions, Scope


class Access:
    """Reads what reaches into a value."""

    def __init__(self, expressions: Expressions, vocabulary: Vocabulary) -> None:
        self._expressions = expressions
        self._vocabulary = vocabulary

    def postfix(self, tree: Tree, scope: Scope) -> Value:
        """`value.key`, `value[...]` and chains of them."""
        value = self._expressions.of(tree.parts[0], scope)
        for part in tree.parts[1:]:
            key = part.child("property")
            value = self.property(value, name(key.need("propertyKeyName"))) if key else self._index(value, part, scope)
        return value

    def property(self, value: Value, key: str) -> Value:
        """The property `key` of a value."""
        if value.shape in ENTITIES:
            self._vocabulary.property(key)
            return Value(level=self._vocabulary.level(key), nodes=value.nodes, brief=key in ("id", "name"))
        self._vocabulary.key(key)
        if value.fields is not None:
            return value.fields.get(key, LITERAL)
        if value.holds:
            raise refused(Rule.EMBEDDING, f"{refusals.EMBEDDINGS}; take the property of one node, as in head(nodes).name")
        return replace(value, shape=Shape.PLAIN, item=None)

    def _index(self, value: Value, part: Tree, scope: Scope) -> Value:
        bounds = part.children("expression")
        if value.holds and value.shape is not Shape.LIST:
            raise refused(Rule.EMBEDDING, refusals.EMBEDDINGS)
        for bound in bounds:
            at = self._expressions.of(bound, scope)
            if at.level is not Level.NO:
                raise refused(Rule.LEVEL, refusals.LEVEL_FORM)
            if at.holds:
                raise refused(Rule.EMBEDDING, refusals.EMBEDDINGS)
        if part.has("DOTDOT"):
            if value.collected and bounds and _begins_late(part):
                raise refused(Rule.PAGING, refusals.SLICES)
            return value
        if value.collected and not bounds[0].text().removeprefix("-").isdigit():
            raise refused(Rule.PAGING, refusals.SLICES)
        return value.items()

    def projection(self, tree: Tree, scope: Scope) -> Value:
        """`node {.key, name: ...}`."""
        source = self._expressions.variable(tree.need("variable"), scope)
        fields: dict[str, Value] = {}
        for element in tree.children("mapProjectionElement"):
            if element.has("TIMES"):
                raise refused(Rule.EMBEDDING, refusals.EMBEDDINGS)
            key, value = element.child("property"), element.child("expression")
            if key is not None:
                shown = name(key.need("propertyKeyName"))
                fields[shown] = self.property(source, shown)
            elif value is not None:
                fields[self._vocabulary.key(name(element.need("propertyKeyName")))] = self._expressions.of(value, scope)
            else:
                fields[name(element.need("variable"))] = self._expressions.variable(element.need("variable"), scope)
        return replace(merged([LITERAL, *fields.values()], Shape.MAP), fields=fields, given=False)


def _begins_late(part: Tree) -> bool:
    first = next(i for i, each in enumerate(part.parts) if each.rule or (each.token and each.token.kind == "DOTDOT"))
    return bool(part.parts[first].rule) and part.parts[first].text() != "0"
