"""The clauses of a statement, one by one, with what each of them knows of the names before it."""

from __future__ import annotations

from collections.abc import Mapping

from . import refusals
from .allowed import Rules
from .expressions import Expressions, Scope
from .notes import Notes
from .patterns import Patterns
from .refusals import Rule, refused
from .returning import Returning, alias, seen
from .tree import Tree, name
from .values import Value, one_of
from .vocabulary import Vocabulary
from .writing import Writing

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
        self.expressions = Expressions(notes, vocabulary, self)
        self.patterns.expressions = self.expressions
        self._returning = Returning(notes, self.expressions, limit)
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
                for column, value in inner.items():
                    columns[column] = one_of((columns[column], value)) if column in columns else value
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
                return {**scope, alias(clause.need("variable")): item}
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
            self.expressions.truth(where.need("expression"), seen(where, scope, columns))
        self._returning.cut(body, None)
        return columns

    def _return(self, clause: Tree, scope: Scope, top: bool) -> Scope:
        body = clause.need("returnBody")
        columns = self._returning.columns(body, scope)
        if top:
            if self._notes.rules is Rules.READING and any(column.holds for column in columns.values()):
                raise refused(Rule.EMBEDDING, refusals.EMBEDDINGS)
            if self._notes.rules is Rules.READING and not all(column.brief for column in columns.values()):
                self._notes.warnings.append(_DETAILS)
            self._returning.cut(body, clause)
        else:
            self._returning.cut(body, None)
        return columns

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
