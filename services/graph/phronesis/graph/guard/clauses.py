"""The clauses of a statement, one by one, with what each of them knows of the names before it."""

from __future__ import annotations

from collections.abc import Mapping

from . import refusals
from .allowed import Rules
from .expressions import Expressions, Scope
from .functions import AGGREGATES
from .notes import OWN, Notes
from .patterns import Patterns
from .refusals import Rule, refused
from .tree import Tree, name
from .values import Value
from .vocabulary import Vocabulary
from .writing import Writing

MAX_CLAUSES = 40
MAX_DEPTH = 4
"""Queries within queries."""
_DETAILS = "return only id and name of nodes, or count, sum and collect; other columns cost room in the answer"
_LISTED = "for a count use count() before you list; a list has a LIMIT and pages by key"


class Clauses:
    """Reads the queries of one statement."""

    def __init__(self, notes: Notes, vocabulary: Vocabulary, limit: int) -> None:
        self._notes = notes
        self._limit = limit
        self._depth = self._clauses = 0
        self.patterns = Patterns(notes, vocabulary)
        self.expressions = Expressions(notes, vocabulary, self)
        self.patterns.expressions = self.expressions
        self._writing = Writing(notes, vocabulary, self.patterns, self.expressions)

    def statement(self, tree: Tree) -> None:
        """Read the whole statement.

        Raises:
            QueryRefused: it breaks a rule.
        """
        statements = tree.children("statement")
        if len(statements) != 1:
            raise refused(Rule.CLAUSE, "send one statement at a time")
        for place, part in enumerate(tree.parts):
            if part.token and part.token.kind == "SEMICOLON" and place:
                self._notes.changes.instead(part.first, "")
        for single in self._singles(statements[0]):
            scope: Scope = {}
            clauses = self._parts(single)
            for clause in clauses:
                scope = self._read(clause, scope, top=True)
            if clauses[-1].rule != "returnClause" and clauses[-1].rule not in Writing.CLAUSES:
                raise refused(Rule.CLAUSE, "a statement ends with RETURN")

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
            raise refused(Rule.SIZE, "queries stand in each other too deeply; ask in several steps")
        columns: dict[str, Value] = {}
        for single in self._singles(tree):
            clauses = self._parts(single)
            inner = scope if not imported or clauses[0].rule == "withClause" else {}
            for clause in clauses:
                if clause.rule in Writing.CLAUSES:
                    raise refused(Rule.WRITING, "change the graph at the top of the statement, not in a subquery")
                inner = self._read(clause, inner, top=False)
            if clauses[-1].rule == "returnClause":
                columns.update(inner)
            elif returning:
                raise refused(Rule.CLAUSE, "a subquery ends with RETURN")
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
            raise refused(Rule.CLAUSE, "write MATCH ... RETURN; whole queries are not put into braces")
        return singles

    def _parts(self, single: Tree) -> list[Tree]:
        clauses = [part.parts[0] for part in single.parts]
        self._clauses += len(clauses)
        if self._clauses > MAX_CLAUSES:
            raise refused(Rule.SIZE, f"a statement has at most {MAX_CLAUSES} clauses; ask in several steps")
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
                return {**scope, self._alias(clause.need("variable")): item}
            case "subqueryClause":
                return self._subquery(clause, scope)
            case "returnClause":
                return self._return(clause, scope, top)
        return self._writing.read(clause, scope)

    def _with(self, clause: Tree, scope: Scope) -> Scope:
        body = clause.need("returnBody")
        columns = self._columns(body, scope)
        where = clause.child("whereClause")
        if where is not None:
            self.expressions.truth(where.need("expression"), {**scope, **columns})
        self._cut(body, None)
        return columns

    def _return(self, clause: Tree, scope: Scope, top: bool) -> Scope:
        body = clause.need("returnBody")
        columns = self._columns(body, scope)
        if top:
            if self._notes.rules is Rules.READING and any(column.holds for column in columns.values()):
                raise refused(Rule.EMBEDDING, refusals.EMBEDDINGS)
            if self._notes.rules is Rules.READING and not all(column.brief for column in columns.values()):
                self._notes.warnings.append(_DETAILS)
            self._cut(body, clause)
        else:
            self._cut(body, None)
        return columns

    def _columns(self, body: Tree, scope: Scope) -> dict[str, Value]:
        items = body.need("returnItems")
        columns = dict(scope) if items.has("TIMES") else {}
        for item in items.children("returnItem"):
            value, alias = self.expressions.of(item.need("expression"), scope), item.child("variable")
            columns[self._alias(alias) if alias else name(item.need("expression"))] = value
        order = body.child("orderBy")
        for each in order.children("orderItem") if order else ():
            value = self.expressions.of(each.need("expression"), {**scope, **columns})
            if value.holds:
                raise refused(Rule.EMBEDDING, "order by a property, not by a whole node")
        return columns

    def _alias(self, variable: Tree) -> str:
        if name(variable).lower().startswith(OWN):
            raise refused(Rule.VARIABLE, f"names that begin with {OWN} are the service's own; choose another")
        return name(variable)

    def _cut(self, body: Tree, returned: Tree | None) -> None:
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
        while inner.rule == "expression1" or (len(inner.parts) == 1 and inner.parts[0].rule):
            inner = inner.parts[0]
        if inner.rule == "parameter":
            self.expressions.of(expression, {})
            self._notes.limits.add(name(inner.need("parameterName")))
        elif not expression.text().isdigit() or len(expression.text()) > 9:
            raise refused(Rule.LIMIT, "LIMIT takes a whole number or a parameter")
        elif last and int(expression.text()) > self._limit:
            self._notes.changes.instead(expression.first, str(self._limit))

    def _subquery(self, clause: Tree, scope: Scope) -> Scope:
        if clause.has("OPTIONAL"):
            raise refused(Rule.CLAUSE, "write CALL { ... } or OPTIONAL MATCH")
        query, given = clause.need("queryWithLocalDefinitions"), clause.child("subqueryScope")
        if given is None:
            return {**scope, **self.query(query, scope, returning=True, imported=True)}
        seen = scope
        if not given.has("TIMES"):
            seen = {}
            for variable in given.children("variable"):
                seen = {**seen, name(variable): self.expressions.of(variable, scope)}
        return {**scope, **self.query(query, seen, returning=True)}


def _aggregate(tree: Tree) -> bool:
    return tree.text().lower() in AGGREGATES
