"""What an expression gives: its parts are read one by one, and a value is followed through them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from . import refusals
from .access import Access
from .calls import call
from .comparing import compare, matches, tested
from .nested import Nested
from .notes import MAX_UNITS, OWN, Notes
from .refusals import Rule, refused
from .tree import Tree, name
from .values import EMPTY, LITERAL, Level, Shape, Value, levels_in, merged, one_of
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from .clauses import Clauses

Scope = Mapping[str, Value]

_CHAIN = frozenset({"expression", "expression1", "literal", "functionArgument", "extendedWhen"}) | {
    f"expression{number}" for number in range(2, 12)
}


class Expressions:
    """Reads expressions of one statement."""

    def __init__(self, notes: Notes, vocabulary: Vocabulary, clauses: Clauses) -> None:
        self._notes = notes
        self._vocabulary = vocabulary
        self._clauses = clauses
        nested, access = Nested(self, clauses), Access(self, vocabulary)
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
            "expression2": access.postfix,
            "variable": self.variable,
            "numberLiteral": lambda tree, scope: LITERAL,
            "stringLiteral": lambda tree, scope: replace(LITERAL, levels=levels_in(tree.text()[1:-1])),
            "literal": lambda tree, scope: LITERAL,
            "parameter": self._parameter,
            "listLiteral": self._list,
            "map": self.map,
            "parenthesizedExpression": lambda tree, scope: self.of(tree.need("expression"), scope),
            "caseExpression": self._case,
            "extendedCaseExpression": self._simple_case,
            "listComprehension": nested.list_comprehension,
            "listItemsPredicate": nested.list_predicate,
            "mapProjection": access.projection,
            "countStar": lambda tree, scope: Value(brief=True),
            "functionInvocation": self._call,
            "trimFunction": self._trim,
            "patternExpression": nested.pattern,
            "patternComprehension": nested.pattern_comprehension,
            "existsExpression": nested.subquery,
            "countExpression": nested.subquery,
            "collectExpression": nested.subquery,
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
        return replace(merged([LITERAL, *values], Shape.MAP), fields=dict(zip(keys, values, strict=True)))

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
            self._clauses.patterns.labels.names(test, left.shape is Shape.NODE)
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
            item = one_of(value.items() if value.shape is Shape.LIST else value for value in values if value is not EMPTY)
            return replace(result, item=item)
        made_of = Level.NO if result.level is Level.NO else Level.MADE_OF
        return replace(result, level=made_of, given=len(values) == 1 and result.given)

    def variable(self, tree: Tree, scope: Scope) -> Value:
        """The value of a name.

        Raises:
            QueryRefused: nothing has it.
        """
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
        return replace(merged(values, Shape.LIST), item=one_of(values)) if values else EMPTY

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

    def _call(self, tree: Tree, scope: Scope) -> Value:
        called = tree.need("functionName")
        spaces = [name(part) for part in called.need("namespace").children("symbolicNameString")]
        full = ".".join([*spaces, name(called.need("symbolicNameString"))]).lower()
        arguments = tree.children("functionArgument")
        return call(self._notes, full, arguments, [self.of(argument, scope) for argument in arguments])

    def _trim(self, tree: Tree, scope: Scope) -> Value:
        arguments = tree.children("expression")
        return call(self._notes, "btrim", arguments, [self.of(argument, scope) for argument in arguments])
