"""The clauses of a statement: what they read, change and return, with what each knows of the names before it."""

from __future__ import annotations

from collections.abc import Mapping

from . import refusals
from .expressions import Expressions, Patterns, Scope
from .grammar import AGGREGATES, Rules
from .notes import OWN, Notes
from .refusals import Rule, refusal
from .tree import Tree, name
from .values import Shape, Value, one_of
from .vocabulary import Vocabulary

_LISTED = "for a count use count() before you list; a list has a LIMIT and pages by key"

_PATTERNS = ("patternExpression", "patternComprehension", "existsExpression", "countExpression", "collectExpression")


class ResultClauses:
    def __init__(self, notes: Notes, expressions: Expressions, limit: int) -> None:
        self._notes, self._expressions, self._limit = notes, expressions, limit

    def columns(self, body: Tree, scope: Scope) -> dict[str, Value]:
        """The columns that the body of a WITH or RETURN gives. Raises `QueryRefused`: one of them breaks a rule."""
        items = body.need("returnItems")
        columns = dict(scope) if items.has("TIMES") else {}
        for item in items.children("returnItem"):
            value, variable = self._expressions.of(item.need("expression"), scope), item.child("variable")
            columns[check_alias(variable) if variable else name(item.need("expression"))] = value
        order = body.child("orderBy")
        for each in order.children("orderItem") if order else ():
            value = self._expressions.of(each.need("expression"), visible_names(each, scope, columns))
            if value.holds:
                raise refusal(Rule.EMBEDDING, "order by a property, not by a whole node")
        return columns

    def cut(self, body: Tree, returned: Tree | None) -> None:
        """Hold LIMIT and SKIP; the rows that are `returned` get a LIMIT where they have none or a high one."""
        skip, limit = body.child("skip"), body.child("limit")
        for part in (skip, limit):
            if part is not None:
                self._number(part, returned is not None and part is limit)
        if returned is None or limit is not None:
            return
        self._notes.changes.behind(returned.last, f"LIMIT {self._limit}")
        if self._notes.rules is Rules.READING and not any(
            value.rule == "countStar" or _aggregate(value) for value in body.find("countStar", "functionName")
        ):
            self._notes.warnings.append(_LISTED)

    def _number(self, part: Tree, last: bool) -> None:
        expression = part.need("expression")
        inner = expression.inner()
        if inner.rule == "parameter":
            self._expressions.of(expression, {})
            self._notes.limits.add(name(inner.need("parameterName")))
        elif not expression.text().isdigit() or len(expression.text()) > 9:
            raise refusal(Rule.LIMIT, "LIMIT takes a whole number or a parameter")
        elif last and int(expression.text()) > self._limit:
            self._notes.changes.instead(expression.first, str(self._limit))


def visible_names(tree: Tree, scope: Scope, columns: Scope) -> Scope:
    """What is known behind the columns. A pattern there sees them alone: stores differ in whether it sees more."""
    return columns if any(tree.find(*_PATTERNS)) else {**scope, **columns}


def check_alias(variable: Tree) -> str:
    """A name that a statement gives. Raises `QueryRefused`: it is one of the guard's own."""
    if name(variable).lower().startswith(OWN):
        raise refusal(Rule.VARIABLE, f"names that begin with {OWN} are the service's own; choose another")
    return name(variable)


def _aggregate(tree: Tree) -> bool:
    return tree.text().lower() in AGGREGATES


KEPT = frozenset({"tenant", "key", "owner", "hash"})
"""Properties that the platform keeps its nodes by."""
_TWIN = "the twin's nodes are written by graph.upsert, and only read here; use a label of your own"


class WriteClauses:
    """Reads the clauses that change the graph."""

    CLAUSES = frozenset({"createClause", "mergeClause", "setClause", "removeClause", "deleteClause"})

    def __init__(self, notes: Notes, vocabulary: Vocabulary, patterns: Patterns, expressions: Expressions) -> None:
        self._notes, self._vocabulary = notes, vocabulary
        self._patterns, self._expressions = patterns, expressions

    def read(self, clause: Tree, scope: Scope) -> Scope:
        """Read one clause. Raises `QueryRefused`: it breaks a rule."""
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
                raise refusal(Rule.CLAUSE, "write MATCH, CREATE, MERGE, SET, REMOVE, DELETE and RETURN")
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
                raise refusal(Rule.LABEL, _TWIN)
            for key in node.find("propertyKeyName"):
                self._hold(name(key))
        return bound

    def _set(self, clause: Tree, scope: Scope, picked: bool = False) -> None:
        for item in clause.children("setItem"):
            self._change(item, scope, picked)

    def _change(self, item: Tree, scope: Scope, picked: bool = False) -> None:
        target, labels = item.child("expression2"), item.child("nodeLabels")
        if item.child("variable") is None and target is None:
            raise refusal(Rule.WRITING, "set one property at a time: SET n.name = $name")
        variable = item.child("variable") or next(target.find("variable"))  # type: ignore[union-attr]
        value = self._expressions.of(variable, scope)
        self._touch(value, variable, picked)
        if labels is not None:
            for label in labels.find("symbolicNameString"):
                if self._vocabulary.twin([self._vocabulary.label(name(label))]):
                    raise refusal(Rule.LABEL, _TWIN)
        elif target is not None:
            self._key(target)
            for given in item.children("expression"):
                self._given(self._expressions.of(given, scope))
        else:
            self._add(item, scope)

    def _key(self, target: Tree) -> None:
        keys = [name(part) for part in target.find("propertyKeyName")]
        if len(keys) != 1 or len(target.parts) != 2 or target.parts[0].parts[0].rule != "variable":
            raise refusal(Rule.WRITING, "set one property of one node: SET n.name = $name")
        self._hold(keys[0])

    def _hold(self, key: str) -> None:
        if key.lower() in KEPT:
            raise refusal(Rule.TENANT, f"the property {key!r} is the platform's; choose another name")
        self._vocabulary.key(key)

    def _add(self, item: Tree, scope: Scope) -> None:
        """`SET n += {...}`; `SET n = {...}` would take the tenant away."""
        if not item.has("PLUSEQUAL"):
            raise refusal(Rule.TENANT, "SET n = ... takes the tenant away; write SET n += {name: $name}")
        value = self._expressions.of(item.need("expression"), scope)
        if value.shape is not Shape.MAP or value.fields is None:
            raise refusal(Rule.TENANT, "write the map out: SET n += {name: $name}")
        for key, given in value.fields.items():
            self._hold(key)
            self._given(given)

    def _given(self, value: Value) -> None:
        if value.holds:
            raise refusal(Rule.WRITING, "a property holds a value, not a node")

    def _touch(self, value: Value, variable: Tree, picked: bool = False) -> None:
        """Hold what is changed: no node of the twin, and a danger where no value picks it."""
        if value.shape not in (Shape.NODE, Shape.RELATIONSHIP):
            raise refusal(Rule.WRITING, f"{name(variable)[:60]!r} is not a node or a relationship")
        labels = [self._notes.labels[number] for number in value.nodes]
        if value.shape is Shape.NODE and any(not each or self._vocabulary.twin(each) for each in labels):
            raise refusal(Rule.LABEL, f"give the node that you change its label; {_TWIN}")
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
                raise refusal(Rule.WRITING, "delete by name: MATCH (n:Product {name: $name}) DETACH DELETE n")
            self._touch(self._expressions.of(inner, scope), inner)


def _wanted(condition: Tree) -> list[tuple[Tree, Tree]]:
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


MAX_CLAUSES = 40
MAX_DEPTH = 4
"""Queries within queries."""
_DETAILS = "return only id and name of nodes, or count, sum and collect; other columns cost room in the answer"


class Clauses:
    """Reads the queries of one statement."""

    def __init__(self, notes: Notes, vocabulary: Vocabulary, limit: int) -> None:
        self._notes = notes
        self._depth = self._clauses = 0
        self.patterns = Patterns(notes, vocabulary)
        self.expressions = Expressions(notes, vocabulary, self.patterns, self.match, self.query)
        self.patterns.expressions = self.expressions
        self._returning = ResultClauses(notes, self.expressions, limit)
        self._writing = WriteClauses(notes, vocabulary, self.patterns, self.expressions)

    def statement(self, tree: Tree) -> None:
        """Read the whole statement. Raises `QueryRefused`: it breaks a rule."""
        statements = tree.children("statement")
        if len(statements) != 1:
            raise refusal(Rule.CLAUSE, "send one statement at a time")
        for place, part in enumerate(tree.parts):
            if part.token and part.token.kind == "SEMICOLON" and place:
                self._notes.changes.instead(part.first, "")
        for single in self._singles(statements[0]):
            scope: Scope = {}
            clauses = self._parts(single)
            for clause in clauses:
                scope = self._read(clause, scope, top=True)
            if clauses[-1].rule != "returnClause" and clauses[-1].rule not in WriteClauses.CLAUSES:
                raise refusal(Rule.CLAUSE, "a statement ends with RETURN")

    def query(self, tree: Tree, scope: Scope, returning: bool, imported: bool = False) -> Mapping[str, Value]:
        """Read a query within the statement.

        Args:
            scope: what it sees from outside; with `imported` only in a WITH at its beginning.
            returning: whether it has to end with RETURN.

        Returns:
            Its columns.

        Raises:
            QueryRefused: it breaks a rule.
        """
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise refusal(Rule.SIZE, "queries stand in each other too deeply; ask in several steps")
        columns: dict[str, Value] = {}
        for single in self._singles(tree):
            clauses = self._parts(single)
            inner = scope if not imported or clauses[0].rule == "withClause" else {}
            for clause in clauses:
                if clause.rule in WriteClauses.CLAUSES:
                    raise refusal(Rule.WRITING, "change the graph at the top of the statement, not in a subquery")
                inner = self._read(clause, inner, top=False)
            if clauses[-1].rule == "returnClause":
                for column, value in inner.items():
                    columns[column] = one_of((columns[column], value)) if column in columns else value
            elif returning:
                raise refusal(Rule.CLAUSE, "a subquery ends with RETURN")
        self._depth -= 1
        return columns

    def match(self, tree: Tree, scope: Scope) -> Scope:
        """Read the patterns and the WHERE of a MATCH, or of EXISTS and COUNT without one."""
        patterns, where = tree.need("patternList"), tree.child("whereClause")
        bound, conditions = self.patterns.match(patterns, scope)
        if where is not None:
            condition = where.need("expression")
            self.expressions.truth(condition, bound)
            self._writing.pick(condition, bound)
            if conditions:
                self._notes.changes.before(condition.first, "(")
                self._notes.changes.behind(condition.last, f") AND {' AND '.join(conditions)}")
        elif conditions:
            self._notes.changes.behind(patterns.last, f"WHERE {' AND '.join(conditions)}")
        return bound

    def _singles(self, tree: Tree) -> list[Tree]:
        union = next(tree.find("union"), None)
        singles = union.children("singleQuery") if union else []
        if not singles or any(single.parts[0].rule != "clause" for single in singles):
            raise refusal(Rule.CLAUSE, "write MATCH ... RETURN; whole queries are not put into braces")
        return singles

    def _parts(self, single: Tree) -> list[Tree]:
        clauses = [part.parts[0] for part in single.parts]
        self._clauses += len(clauses)
        if self._clauses > MAX_CLAUSES:
            raise refusal(Rule.SIZE, f"a statement has at most {MAX_CLAUSES} clauses; ask in several steps")
        return clauses

    def _read(self, clause: Tree, scope: Scope, top: bool) -> Scope:
        match clause.rule:
            case "matchClause":
                return self.match(clause, scope)
            case "withClause":
                return self._with(clause, scope)
            case "unwindClause":
                self._notes.unwind()
                item = self.expressions.of(clause.need("expression"), scope).items()
                return {**scope, check_alias(clause.need("variable")): item}
            case "subqueryClause":
                return self._subquery(clause, scope)
            case "returnClause":
                return self._return(clause, scope, top)
        return self._writing.read(clause, scope)

    def _with(self, clause: Tree, scope: Scope) -> Scope:
        body = clause.need("returnBody")
        columns = self._returning.columns(body, scope)
        where = clause.child("whereClause")
        if where is not None:
            self.expressions.truth(where.need("expression"), visible_names(where, scope, columns))
        self._returning.cut(body, None)
        return columns

    def _return(self, clause: Tree, scope: Scope, top: bool) -> Scope:
        body = clause.need("returnBody")
        columns = self._returning.columns(body, scope)
        if top:
            if self._notes.rules is Rules.READING and any(column.holds for column in columns.values()):
                raise refusal(Rule.EMBEDDING, refusals.EMBEDDINGS)
            if self._notes.rules is Rules.READING and not all(column.brief for column in columns.values()):
                self._notes.warnings.append(_DETAILS)
            self._returning.cut(body, clause)
        else:
            self._returning.cut(body, None)
        return columns

    def _subquery(self, clause: Tree, scope: Scope) -> Scope:
        if clause.has("OPTIONAL"):
            raise refusal(Rule.CLAUSE, "write CALL { ... } or OPTIONAL MATCH")
        query, given = clause.need("queryWithLocalDefinitions"), clause.child("subqueryScope")
        if given is None:
            return {**scope, **self.query(query, scope, returning=True, imported=True)}
        seen = scope
        if not given.has("TIMES"):
            seen = {}
            for variable in given.children("variable"):
                seen = {**seen, name(variable): self.expressions.of(variable, scope)}
        return {**scope, **self.query(query, seen, returning=True)}
