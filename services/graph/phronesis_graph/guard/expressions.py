"""What an expression gives, and the patterns in it: every node has a label or is known, and gets the tenant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from . import refusals
from .calls import call, check_pattern, check_truth, compare
from .grammar import Rules
from .notes import MAX_UNITS, OWN, TENANT, Notes
from .refusals import Rule, refusal
from .tree import Tree, name
from .values import EMPTY, ENTITIES, LITERAL, Level, Shape, Value, levels_in, list_of, merged, one_of
from .vocabulary import Step, Vocabulary, read_step

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
        self._notes, self._vocabulary = notes, vocabulary

    def names(self, labels: Tree | None, node: bool) -> tuple[str, ...]:
        """The labels or relationship types of a label expression. Raises `QueryRefused`: one of them is not known."""
        if labels is None:
            return ()
        if not labels.has("COLON") or any(part.has("PERCENT") for part in labels.walk()):
            raise refusal(Rule.LABEL, "name the labels that you want, behind a colon: (n:EntityProject)")
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
                raise refusal(Rule.LABEL, "give each node a label: (n:Product)")

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
            raise refusal(Rule.LABEL, _NO_LABEL)
        return labels


MAX_PATTERNS = 5
"""Patterns of one MATCH: each that is not joined to the others multiplies the rows."""


class Patterns:
    expressions: Expressions

    def __init__(self, notes: Notes, vocabulary: Vocabulary) -> None:
        self._notes, self._vocabulary = notes, vocabulary
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
            raise refusal(Rule.SIZE, f"one MATCH has at most {MAX_PATTERNS} patterns; join them, or write another MATCH")
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
        """Read a pattern that stands in an expression. Raises `QueryRefused`: it breaks a rule, or has a variable length."""
        element = self._element(tree)
        if any(each.variable_length for each in element.steps):
            raise refusal(Rule.PATTERN, "write a variable length in a MATCH of its own, or in EXISTS { MATCH ... }")
        bound = self._bind([element], scope)
        if variable is not None:
            self._new(variable, bound, _path(element))
        self._finish([element], scope, bound)
        return bound

    def written(self, patterns: Iterable[Tree], scope: Scope) -> dict[str, Value]:
        """Read CREATE or MERGE: new nodes get the tenant, known ones stay as they are. Raises `QueryRefused`."""
        elements = [self._element(next(pattern.find("patternElement"))) for pattern in patterns]
        bound = self._bind(elements, scope)
        self._finish(elements, scope, bound, writing=True)
        return bound

    def _element(self, tree: Tree) -> Element:
        rules = [part.rule for part in tree.parts]
        if any(one == other for one, other in pairwise(rules)):
            raise refusal(Rule.PATTERN, "join two nodes by a relationship: (a)-[:TYPE]->(b)")
        steps = [
            read_step(part, self.labels.names(part.child("labelExpression"), node=False), self._notes)
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
                    raise refusal(Rule.VARIABLE, f"{name(variable)[:60]!r} is not a node; choose another name")
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
            raise refusal(Rule.VARIABLE, f"names that begin with {OWN} are the service's own; choose another")
        return name(variable)

    def _new(self, variable: Tree, bound: dict[str, Value], value: Value) -> None:
        known = bound.get(self._own(variable))
        if known is not None and (known.shape is not value.shape or value.shape is not Shape.RELATIONSHIP):
            raise refusal(Rule.VARIABLE, f"the name {name(variable)[:60]!r} is taken; choose another")
        bound[name(variable)] = value

    def _finish(self, elements: Sequence[Element], scope: Scope, bound: dict[str, Value], writing: bool = False) -> None:
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
            raise refusal(Rule.RELATIONSHIP, "a new relationship has one type and no length: -[:TYPE]->")
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
        condition = part.child("expression")
        if condition is not None and writing:
            raise refusal(Rule.PATTERN, "what is written has no WHERE")
        if condition is not None:
            self.expressions.truth(condition, bound)

    def _map(self, properties: Tree, bound: dict[str, Value], owner: Value) -> None:
        written = properties.child("map")
        if written is None:
            raise refusal(Rule.PARAMETER, "write the properties out: (n:EntityProject {id: $id})")
        value = self.expressions.map(written, bound)
        if value.holds:
            raise refusal(Rule.PATTERN, "a property is compared with a value, not with a node")
        for key, given in (value.fields or {}).items():
            self._vocabulary.property(key)
            compare(self._notes.levels, "EQ", Value(level=self._vocabulary.level(key), nodes=owner.nodes), given)
            self._notes.pick(owner, given)

    def _everywhere(self, pattern: Tree, variable: Tree | None) -> str:
        path = variable.text() if variable else self._notes.own_name()
        if variable is None:
            self._notes.changes.before(pattern.first, f"{path} =")
        each = self._notes.own_name()
        return f"all({each} IN nodes({path}) WHERE {each}.tenant = ${TENANT})"


def _path(element: Element) -> Value:
    return Value(Shape.PATH, True, nodes=frozenset[int]().union(*(value.nodes for value in element.values)))


class ValueAccess:
    def __init__(self, expressions: Expressions, vocabulary: Vocabulary) -> None:
        self._expressions, self._vocabulary = expressions, vocabulary

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
            raise refusal(Rule.EMBEDDING, f"{refusals.EMBEDDINGS}; take the property of one node, as in head(nodes).name")
        return replace(value, shape=Shape.PLAIN, item=None)

    def _index(self, value: Value, part: Tree, scope: Scope) -> Value:
        bounds = part.children("expression")
        if value.holds and value.shape is not Shape.LIST:
            raise refusal(Rule.EMBEDDING, refusals.EMBEDDINGS)
        for bound in bounds:
            at = self._expressions.of(bound, scope)
            if at.level is not Level.NO:
                raise refusal(Rule.LEVEL, refusals.LEVEL_FORM)
            if at.holds:
                raise refusal(Rule.EMBEDDING, refusals.EMBEDDINGS)
        if part.has("DOTDOT"):
            if value.collected and bounds and _skips_beginning(part):
                raise refusal(Rule.PAGING, refusals.SLICES)
            return value
        if value.collected and not bounds[0].text().removeprefix("-").isdigit():
            raise refusal(Rule.PAGING, refusals.SLICES)
        return value.items()

    def projection(self, tree: Tree, scope: Scope) -> Value:
        """`node {.key, name: ...}`."""
        source = self._expressions.variable(tree.need("variable"), scope)
        fields: dict[str, Value] = {}
        for element in tree.children("mapProjectionElement"):
            if element.has("TIMES"):
                raise refusal(Rule.EMBEDDING, refusals.EMBEDDINGS)
            key, value = element.child("property"), element.child("expression")
            if key is not None:
                shown = name(key.need("propertyKeyName"))
                fields[shown] = self.property(source, shown)
            elif value is not None:
                fields[self._vocabulary.key(name(element.need("propertyKeyName")))] = self._expressions.of(value, scope)
            else:
                fields[name(element.need("variable"))] = self._expressions.variable(element.need("variable"), scope)
        return replace(merged([LITERAL, *fields.values()], Shape.MAP), fields=fields, given=False)


def _skips_beginning(part: Tree) -> bool:
    first = next(i for i, each in enumerate(part.parts) if each.rule or (each.token and each.token.kind == "DOTDOT"))
    return bool(part.parts[first].rule) and part.parts[first].text() != "0"


class NestedExpressions:
    def __init__(self, expressions: Expressions, patterns: Patterns, match: MatchReader, query: QueryReader) -> None:
        self._expressions, self._patterns = expressions, patterns
        self._match, self._query = match, query

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
        self._patterns.predicate(tree.need("pathPatternNonEmpty"), scope)
        return Value()

    def pattern_comprehension(self, tree: Tree, scope: Scope) -> Value:
        """`[(a)-[:TYPE]->(b) | ...]`."""
        inner = self._patterns.predicate(tree.need("pathPatternNonEmpty"), scope, tree.child("variable"))
        *conditions, shown = tree.children("expression")
        for condition in conditions:
            self._expressions.truth(condition, inner)
        return list_of(self._expressions.of(shown, inner), collected=True)

    def subquery(self, tree: Tree, scope: Scope) -> Value:
        """`EXISTS { ... }`, `COUNT { ... }` and `COLLECT { ... }`."""
        query = tree.child("queryWithLocalDefinitions")
        if query is None:
            self._match(tree, scope)
            return Value(brief=True)
        columns = self._query(query, scope, tree.rule == "collectExpression")
        if tree.rule != "collectExpression":
            return Value(brief=True)
        if len(columns) != 1:
            raise refusal(Rule.CLAUSE, "COLLECT { ... } returns one column")
        return list_of(next(iter(columns.values())), collected=True)


Scope = Mapping[str, Value]
MatchReader = Callable[[Tree, Scope], Scope]
QueryReader = Callable[[Tree, Scope, bool], Mapping[str, Value]]

_CHAIN = frozenset({"expression", "expression1", "literal", "functionArgument", "extendedWhen"}) | {
    f"expression{number}" for number in range(2, 12)
}


class Expressions:
    """Reads expressions of one statement.

    Args:
        match: reads the patterns and the WHERE of a subquery that has no clauses.
        query: reads a subquery, which has to end with RETURN where told so, and gives its columns.
    """

    def __init__(
        self, notes: Notes, vocabulary: Vocabulary, patterns: Patterns, match: MatchReader, query: QueryReader
    ) -> None:
        self._notes, self._vocabulary, self._patterns = notes, vocabulary, patterns
        nested, access = NestedExpressions(self, patterns, match, query), ValueAccess(self, vocabulary)
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
        """The value of an expression. Raises `QueryRefused`: it breaks a rule."""
        while tree.rule in _CHAIN and len(tree.parts) == 1 and tree.parts[0].rule:
            tree = tree.parts[0]
        reader = self._readers.get(tree.rule)
        if reader is None:
            raise refusal(Rule.CLAUSE, f"{tree.text()[:40]!r} is not taken here")
        value = reader(tree, scope)
        if value.units > MAX_UNITS:
            raise refusal(Rule.GROWTH, "a value grows too large by joining values with themselves; return the parts")
        return value

    def truth(self, tree: Tree, scope: Scope) -> None:
        """Read an expression in the place of a truth value."""
        check_truth(self.of(tree, scope))

    def map(self, tree: Tree, scope: Scope) -> Value:
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
                raise refusal(Rule.VARIABLE, "a label is asked of a node: n:EntityProject")
            self._patterns.labels.names(test, left.shape is Shape.NODE)
            return Value()
        other = next((part for part in test.parts if part.rule), None)
        if other is None:
            return Value()
        right = self.of(other, scope)
        if test.has("REGEQ"):
            check_pattern(left, other.text())
        else:
            compare(self._notes.levels, test.kinds()[0], left, right)
        return Value()

    def _arithmetic(self, tree: Tree, scope: Scope) -> Value:
        values = [self.of(part, scope) for part in tree.parts if part.rule]
        shape = Shape.LIST if any(value.shape is Shape.LIST for value in values) else Shape.PLAIN
        result = merged(values, shape)
        if result.holds and not (shape is Shape.LIST and tree.rule == "expression6"):
            raise refusal(Rule.EMBEDDING, refusals.EMBEDDINGS)
        if shape is Shape.LIST:
            item = one_of(value.items() if value.shape is Shape.LIST else value for value in values if value is not EMPTY)
            return replace(result, item=item)
        made_of = Level.NO if result.level is Level.NO else Level.MADE_OF
        return replace(result, level=made_of, given=len(values) == 1 and result.given)

    def variable(self, tree: Tree, scope: Scope) -> Value:
        """The value of a name. Raises `QueryRefused`: nothing has it."""
        known = scope.get(name(tree))
        if known is None:
            raise refusal(Rule.VARIABLE, f"{name(tree)[:60]!r} is not defined; bind it in MATCH, WITH or UNWIND before")
        return known

    def _parameter(self, tree: Tree, scope: Scope) -> Value:
        parameter = name(tree.need("parameterName"))
        if parameter.lower().startswith(OWN):
            raise refusal(Rule.PARAMETER, f"names that begin with {OWN} are the service's own; choose another")
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
                    raise refusal(Rule.CLAUSE, "write CASE WHEN n.name = ... THEN, or CASE n.name WHEN 'value' THEN")
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
