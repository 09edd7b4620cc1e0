"""What WITH and RETURN give on: their columns, their order, and how many rows."""

from __future__ import annotations

from .allowed import Rules
from .expressions import Expressions, Scope
from .functions import AGGREGATES
from .notes import OWN, Notes
from .refusals import Rule, refused
from .tree import Tree, name
from .values import Value

_LISTED = "for a count use count() before you list; a list has a LIMIT and pages by key"

_PATTERNS = ("patternExpression", "patternComprehension", "existsExpression", "countExpression", "collectExpression")


class Returning:
    """Reads the bodies of WITH and RETURN."""

    def __init__(self, notes: Notes, expressions: Expressions, limit: int) -> None:
        self._notes = notes
        self._expressions = expressions
        self._limit = limit

    def columns(self, body: Tree, scope: Scope) -> dict[str, Value]:
        """The columns that the body of a WITH or RETURN gives.

        Raises:
            QueryRefused: one of them breaks a rule.
        """
        items = body.need("returnItems")
        columns = dict(scope) if items.has("TIMES") else {}
        for item in items.children("returnItem"):
            value, variable = self._expressions.of(item.need("expression"), scope), item.child("variable")
            columns[alias(variable) if variable else name(item.need("expression"))] = value
        order = body.child("orderBy")
        for each in order.children("orderItem") if order else ():
            value = self._expressions.of(each.need("expression"), seen(each, scope, columns))
            if value.holds:
                raise refused(Rule.EMBEDDING, "order by a property, not by a whole node")
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
            raise refused(Rule.LIMIT, "LIMIT takes a whole number or a parameter")
        elif last and int(expression.text()) > self._limit:
            self._notes.changes.instead(expression.first, str(self._limit))


def seen(tree: Tree, scope: Scope, columns: Scope) -> Scope:
    """What is known behind the columns. A pattern there sees them alone: stores differ in whether it sees more."""
    return columns if any(tree.find(*_PATTERNS)) else {**scope, **columns}


def alias(variable: Tree) -> str:
    """A name that a statement gives.

    Raises:
        QueryRefused: it is one of the guard's own.
    """
    if name(variable).lower().startswith(OWN):
        raise refused(Rule.VARIABLE, f"names that begin with {OWN} are the service's own; choose another")
    return name(variable)


def _aggregate(tree: Tree) -> bool:
    return tree.text().lower() in AGGREGATES
