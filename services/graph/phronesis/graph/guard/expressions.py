"""What an expression gives: its parts are read one by one, and a value is followed through them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from . import refusals
from .calls import call
from .comparing import compare, matches, tested
from .notes import MAX_UNITS, OWN, Notes
from .refusals import Rule, refused
from .tree import Tree, name
from .values import ENTITIES, Level, Shape, Value, levels_in, list_of, merged, one_of
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from .clauses import Clauses

Scope = Mapping[str, Value]

_CHAIN = frozenset({"expression", "expression1", "literal", "functionArgument", "extendedWhen"}) | {
    f"expression{number}" for number in range(2, 12)
}
_LITERAL = Value(given=True, brief=True)


class Expressions:
    """Reads expressions of one statement."""

    def __init__(self, notes: Notes, vocabulary: Vocabulary, clauses: Clauses) -> None:
        self._notes = notes
        self._vocabulary = vocabulary
        self._clauses = clauses
        self._readers: dict[str, Callable[[Tree, Scope], Value]] = {
            "expression": self._logic,
            "expression11": self._logic,
            "expression10": self._logic,
            "expression9": self._logic,
            "expression8": self._comparison,
            "expression7": self._test,
            "expression6": self._arithmetic,
            "expression5": self._arithmetic,
            "expression4": self._arithmetic,
            "expression3": self._arithmetic,
            "expression2": self._postfix,
            "variable": self._variable,
            "numberLiteral": lambda tree, scope: _LITERAL,
            "stringLiteral": lambda tree, scope: replace(_LITERAL, levels=levels_in(tree.text()[1:-1])),
            "literal": lambda tree, scope: _LITERAL,
            "parameter": self._parameter,
            "listLiteral": self._list,
            "map": self.map,
            "parenthesizedExpression": lambda tree, scope: self.of(tree.need("expression"), scope),
            "caseExpression": self._case,
            "extendedCaseExpression": self._simple_case,
            "listComprehension": self._list_comprehension,
            "listItemsPredicate": self._list_predicate,
            "mapProjection": self._projection,
            "countStar": lambda tree, scope: Value(brief=True),
            "functionInvocation": self._call,
            "trimFunction": self._trim,
            "patternExpression": self._pattern,
            "patternComprehension": self._pattern_comprehension,
            "existsExpression": self._subquery,
            "countExpression": self._subquery,
            "collectExpression": self._subquery,
        }

    def of(self, tree: Tree, scope: Scope) -> Value:
        """The value of an expression.

        Raises:
            QueryRefused: it breaks a rule.
        """
        while tree.rule in _CHAIN and len(tree.parts) == 1 and tree.parts[0].rule:
            tree = tree.parts[0]
        reader = self._readers.get(tree.rule)
        if reader is None:
            raise refused(Rule.CLAUSE, f"{tree.text()[:40]!r} is not taken here")
        value = reader(tree, scope)
        if value.units > MAX_UNITS:
            raise refused(Rule.GROWTH, "a value grows too large by joining values with themselves; return the parts")
        return value

    def truth(self, tree: Tree, scope: Scope) -> None:
        """Read an expression in the place of a truth value."""
        tested(self.of(tree, scope))

    def map(self, tree: Tree, scope: Scope) -> Value:
        """The value of a map that is written out."""
        keys = [self._vocabulary.key(name(key)) for key in tree.children("propertyKeyName")]
        values = [self.of(value, scope) for value in tree.children("expression")]
        return replace(merged([_LITERAL, *values], Shape.MAP), fields=dict(zip(keys, values, strict=True)))

    def _logic(self, tree: Tree, scope: Scope) -> Value:
        for part in tree.parts:
            if part.rule:
                self.truth(part, scope)
        return Value()

    def _comparison(self, tree: Tree, scope: Scope) -> Value:
        values = [self.of(part, scope) for part in tree.parts if part.rule]
        for sign, left, right in zip(tree.kinds(), values, values[1:], strict=False):
            compare(self._notes.levels, sign, left, right)
        return Value()

    def _test(self, tree: Tree, scope: Scope) -> Value:
        left, test = self.of(tree.parts[0], scope), tree.need("comparisonExpression6")
        if test.has("COLON"):
            if left.shape not in (Shape.NODE, Shape.RELATIONSHIP):
                raise refused(Rule.VARIABLE, "a label is asked of a node: n:EntityProject")
            self._clauses.patterns.names(test, left.shape is Shape.NODE)
            return Value()
        other = next((part for part in test.parts if part.rule), None)
        if other is None:
            return Value()
        right = self.of(other, scope)
        if test.has("REGEQ"):
            matches(left, other.text())
        else:
            compare(self._notes.levels, test.kinds()[0], left, right)
        return Value()

    def _arithmetic(self, tree: Tree, scope: Scope) -> Value:
        values = [self.of(part, scope) for part in tree.parts if part.rule]
        shape = Shape.LIST if any(value.shape is Shape.LIST for value in values) else Shape.PLAIN
        result = merged(values, shape)
        if result.holds and not (shape is Shape.LIST and tree.rule == "expression6"):
            raise refused(Rule.EMBEDDING, refusals.EMBEDDINGS)
        if shape is Shape.LIST:
            item = one_of(value.items() if value.shape is Shape.LIST else value for value in values)
            return replace(result, item=item)
        made_of = Level.NO if result.level is Level.NO else Level.MADE_OF
        return replace(result, level=made_of, given=len(values) == 1 and result.given)

    def _postfix(self, tree: Tree, scope: Scope) -> Value:
        value = self.of(tree.parts[0], scope)
        for part in tree.parts[1:]:
            key = part.child("property")
            value = self.property(value, name(key.need("propertyKeyName"))) if key else self._index(value, part, scope)
        return value

    def property(self, value: Value, key: str) -> Value:
        """The property `key` of a value."""
        if value.shape in ENTITIES:
            self._vocabulary.property(key)
            level = Level.YES if key.lower() == "level" else Level.NO
            return Value(level=level, nodes=value.nodes, brief=key in ("id", "name"))
        self._vocabulary.key(key)
        if value.fields is not None:
            return value.fields.get(key, _LITERAL)
        if value.holds:
            raise refused(Rule.EMBEDDING, f"{refusals.EMBEDDINGS}; take the property of one node, as in head(nodes).name")
        return replace(value, shape=Shape.PLAIN, item=None)

    def _index(self, value: Value, part: Tree, scope: Scope) -> Value:
        bounds = part.children("expression")
        if value.holds and value.shape is not Shape.LIST:
            raise refused(Rule.EMBEDDING, refusals.EMBEDDINGS)
        for bound in bounds:
            at = self.of(bound, scope)
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

    def _variable(self, tree: Tree, scope: Scope) -> Value:
        known = scope.get(name(tree))
        if known is None:
            raise refused(Rule.VARIABLE, f"{name(tree)[:60]!r} is not defined; bind it in MATCH, WITH or UNWIND before")
        return known

    def _parameter(self, tree: Tree, scope: Scope) -> Value:
        parameter = name(tree.need("parameterName"))
        if parameter.lower().startswith(OWN):
            raise refused(Rule.PARAMETER, f"names that begin with {OWN} are the service's own; choose another")
        self._notes.parameters.add(parameter)
        return Value(parameters=frozenset({parameter}), given=True)

    def _list(self, tree: Tree, scope: Scope) -> Value:
        values = [self.of(part, scope) for part in tree.children("expression")]
        whole = merged([_LITERAL, *values], Shape.LIST)
        return replace(whole, item=one_of(values) if values else _LITERAL)

    def _case(self, tree: Tree, scope: Scope) -> Value:
        results = [self.of(part, scope) for part in tree.children("expression")]
        for alternative in tree.children("caseAlternative"):
            condition, result = alternative.children("expression")
            self.truth(condition, scope)
            results.append(self.of(result, scope))
        return replace(one_of(results), given=False)

    def _simple_case(self, tree: Tree, scope: Scope) -> Value:
        asked, *rest = (self.of(part, scope) for part in tree.children("expression"))
        for alternative in tree.children("extendedCaseAlternative"):
            for when in alternative.children("extendedWhen"):
                if when.kinds():
                    raise refused(Rule.CLAUSE, "write CASE WHEN n.name = ... THEN, or CASE n.name WHEN 'value' THEN")
                compare(self._notes.levels, "EQ", asked, self.of(when, scope))
            rest.append(self.of(alternative.need("expression"), scope))
        return replace(one_of(rest), given=False)

    def _list_comprehension(self, tree: Tree, scope: Scope) -> Value:
        source, *rest = tree.children("expression")
        values = self.of(source, scope)
        inner = {**scope, name(tree.need("variable")): values.items()}
        if tree.has("WHERE"):
            self.truth(rest.pop(0), inner)
        item = self.of(rest[0], inner) if rest else values.items()
        return replace(list_of(item), collected=values.collected, units=item.units * values.units)

    def _list_predicate(self, tree: Tree, scope: Scope) -> Value:
        source, *rest = tree.children("expression")
        inner = {**scope, name(tree.need("variable")): self.of(source, scope).items()}
        for condition in rest:
            self.truth(condition, inner)
        return Value()

    def _projection(self, tree: Tree, scope: Scope) -> Value:
        source = self._variable(tree.need("variable"), scope)
        fields: dict[str, Value] = {}
        for element in tree.children("mapProjectionElement"):
            if element.has("TIMES"):
                raise refused(Rule.EMBEDDING, refusals.EMBEDDINGS)
            key, value = element.child("property"), element.child("expression")
            if key is not None:
                shown = name(key.need("propertyKeyName"))
                fields[shown] = self.property(source, shown)
            elif value is not None:
                fields[self._vocabulary.key(name(element.need("propertyKeyName")))] = self.of(value, scope)
            else:
                fields[name(element.need("variable"))] = self._variable(element.need("variable"), scope)
        return replace(merged([_LITERAL, *fields.values()], Shape.MAP), fields=fields, given=False)

    def _call(self, tree: Tree, scope: Scope) -> Value:
        called = tree.need("functionName")
        spaces = [name(part) for part in called.need("namespace").children("symbolicNameString")]
        full = ".".join([*spaces, name(called.need("symbolicNameString"))]).lower()
        arguments = tree.children("functionArgument")
        return call(self._notes, full, arguments, [self.of(argument, scope) for argument in arguments])

    def _trim(self, tree: Tree, scope: Scope) -> Value:
        arguments = tree.children("expression")
        return call(self._notes, "btrim", arguments, [self.of(argument, scope) for argument in arguments])

    def _pattern(self, tree: Tree, scope: Scope) -> Value:
        self._clauses.patterns.predicate(tree.need("pathPatternNonEmpty"), scope)
        return Value()

    def _pattern_comprehension(self, tree: Tree, scope: Scope) -> Value:
        inner = self._clauses.patterns.predicate(tree.need("pathPatternNonEmpty"), scope, tree.child("variable"))
        *conditions, shown = tree.children("expression")
        for condition in conditions:
            self.truth(condition, inner)
        return list_of(self.of(shown, inner), collected=True)

    def _subquery(self, tree: Tree, scope: Scope) -> Value:
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


def _begins_late(part: Tree) -> bool:
    first = next(i for i, each in enumerate(part.parts) if each.rule or (each.token and each.token.kind == "DOTDOT"))
    return bool(part.parts[first].rule) and part.parts[first].text() != "0"
