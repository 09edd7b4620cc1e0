"""Which parts of the language and which functions are taken, by the grammar's own names. What is not listed here is refused."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from . import refusals
from .refusals import Rule
from .tree import Tree

VECTORS = ("vector", "embed", "similarity", "genai")
"""Parts of the names of properties, functions and procedures that lead to embeddings."""


class Rules(Enum):
    READING = "reading"
    """Analysts: the ontology's nodes, one level, no whole entities, keyset paging."""
    KNOWLEDGE = "knowledge"
    """Reading for the curator: any label but the platform's own, whole entities, SKIP."""
    KNOWLEDGE_WRITING = "knowledge_writing"
    """The curator's changes."""


_NAMES = frozenset(
    "symbolicNameString unescapedSymbolicNameString unescapedSymbolicNameString_ escapedSymbolicNameString"
    " symbolicVariableNameString unescapedSymbolicVariableNameString escapedSymbolicVariableNameString"
    " variable propertyKeyName parameterName namespace functionName".split()
)
_QUERY = frozenset(
    "statements statement queryWithLocalDefinitions nextStatement regularQuery union singleQuery clause"
    " matchClause whereClause withClause unwindClause returnClause returnBody returnItems returnItem"
    " orderBy orderItem ascToken descToken limit subqueryClause subqueryScope".split()
)
_PATTERNS = frozenset(
    "patternList pattern anonymousPattern patternElement pathPatternNonEmpty nodePattern relationshipPattern"
    " leftArrow arrowLine rightArrow pathLength properties map"
    " labelExpression labelExpression4 labelExpression3 labelExpression2 labelExpression1".split()
)
_EXPRESSIONS = frozenset(
    "expression expression11 expression10 expression9 expression8 expression7 comparisonExpression6 expression6"
    " expression5 expression4 expression3 expression2 expression1 postFix property literal numberLiteral"
    " stringLiteral listLiteral parameter parenthesizedExpression caseExpression caseAlternative"
    " extendedCaseExpression extendedCaseAlternative extendedWhen listComprehension patternComprehension"
    " listItemsPredicate trimFunction patternExpression mapProjection mapProjectionElement countStar"
    " existsExpression countExpression collectExpression functionInvocation functionArgument".split()
)
_READING = _NAMES | _QUERY | _PATTERNS | _EXPRESSIONS
_KNOWLEDGE = _READING | {"skip"}
_WRITING = _KNOWLEDGE | frozenset(
    "createClause mergeClause mergeAction setClause setItem removeClause removeItem deleteClause nodeLabels labelType".split()
)
GRAMMAR = {Rules.READING: _READING, Rules.KNOWLEDGE: _KNOWLEDGE, Rules.KNOWLEDGE_WRITING: _WRITING}

_SIGNS = frozenset(
    "LPAREN RPAREN LBRACKET RBRACKET LCURLY RCURLY COMMA DOT DOTDOT COLON BAR AMPERSAND DOLLAR SEMICOLON EOF"
    " EQ NEQ LT LE GT GE PLUS MINUS TIMES DIVIDE PERCENT POW REGEQ"
    " ARROW_LINE ARROW_LEFT_HEAD ARROW_RIGHT_HEAD"
    " DECIMAL_DOUBLE UNSIGNED_DECIMAL_INTEGER STRING_LITERAL1 STRING_LITERAL2".split()
)
_WORDS = frozenset(
    "MATCH OPTIONAL WHERE WITH UNWIND RETURN DISTINCT AS ORDER BY ASC ASCENDING DESC DESCENDING LIMITROWS UNION ALL CALL"
    " AND OR XOR NOT IN IS NULL STARTS ENDS CONTAINS CASE WHEN THEN ELSE END TRUE FALSE"
    " ANY NONE SINGLE EXISTS COUNT COLLECT TRIM FROM BOTH LEADING TRAILING".split()
)
_WRITING_WORDS = frozenset("CREATE MERGE SET REMOVE DELETE DETACH ON PLUSEQUAL".split())
WORDS = {
    Rules.READING: _SIGNS | _WORDS,
    Rules.KNOWLEDGE: _SIGNS | _WORDS | {"SKIPROWS", "OFFSET"},
    Rules.KNOWLEDGE_WRITING: _SIGNS | _WORDS | _WRITING_WORDS | {"SKIPROWS", "OFFSET"},
}

_NAMED = frozenset(
    "unescapedSymbolicNameString escapedSymbolicNameString unescapedSymbolicVariableNameString"
    " escapedSymbolicVariableNameString".split()
)

_WRITES = frozenset(
    "createClause insertClause setClause removeClause deleteClause mergeClause foreachClause mergeAction setItem"
    " subqueryInTransactionsParameters createCommand alterCommand dropCommand".split()
)
_REPORTED_FIRST = _WRITES | {"skip"}
# Not every store holds the tenant while it looks for the shortest path: a shorter one of another tenant hides it.
_SHORTEST = "write MATCH p = (a)-[:TYPE*1..3]->(b) RETURN ... ORDER BY length(p) LIMIT 1"
_ADVICE = {
    "callClause": (Rule.PROCEDURE, "procedures are not called; MATCH the nodes, or use recall_memory to find by meaning"),
    "procedureName": (Rule.PROCEDURE, "procedures are not called; MATCH the nodes, or use recall_memory to find by meaning"),
    "reduceExpression": (Rule.GROWTH, "reduce() is not taken; use sum(), count() or collect()"),
    "allReduceExpression": (Rule.GROWTH, "allReduce() is not taken; use all(x IN list WHERE ...)"),
    "quantifier": (Rule.DEPTH, "quantified paths are not taken; write -[:TYPE*1..3]->"),
    "parenthesizedPath": (Rule.PATTERN, "a path is not put into brackets; write (a)-[:TYPE*1..3]->(b)"),
    "pathPatternPrefix": (Rule.PATTERN, _SHORTEST),
    "shortestPathExpression": (Rule.PATTERN, _SHORTEST),
    "shortestPathPattern": (Rule.PATTERN, _SHORTEST),
    "dynamicLabelType": (Rule.LABEL, "labels and types are written out, not computed"),
    "dynamicExpression": (Rule.LABEL, "labels and types are written out, not computed"),
    "dynamicAnyAllExpression": (Rule.LABEL, "labels and types are written out, not computed"),
    "dynamicProperty": (Rule.EMBEDDING, refusals.EMBEDDINGS),
    "loadCSVClause": (Rule.CLAUSE, "nothing is loaded from files or addresses; MATCH what the graph holds"),
    "useClause": (Rule.CLAUSE, "there is one graph; leave USE out"),
    "hint": (Rule.CLAUSE, "leave the hints of the planner out"),
    "limit": (Rule.LIMIT, "LIMIT takes a whole number or a parameter"),
}
_WORD_ADVICE = {
    "EXCLAMATION_MARK": (Rule.LABEL, "name the labels that you want, not the ones that you do not want"),
    "UNSIGNED_HEX_INTEGER": (Rule.CLAUSE, "write numbers in the plain way"),
    "UNSIGNED_OCTAL_INTEGER": (Rule.CLAUSE, "write numbers in the plain way"),
}


def objections(tree: Tree, rules: Rules) -> Iterator[tuple[Rule, str]]:
    """Everything in the tree that its rule set does not list, each with what to write instead."""
    grammar, words = GRAMMAR[rules], WORDS[rules]
    waiting = [(tree, False)]
    while waiting:
        part, inside = waiting.pop()
        if part.rule in _NAMED:
            continue  # a word in the place of a name is a name
        if part.token is not None:
            if not inside and part.token.kind not in words:
                yield _WORD_ADVICE.get(part.token.kind) or (Rule.CLAUSE, _unknown(part.token.text))
        elif part.rule not in grammar and (not inside or part.rule in _REPORTED_FIRST):
            yield _objection(part, rules)
        # What stands in a refused part may break a rule that is told before it.
        inside = inside or (not part.token and part.rule not in grammar)
        waiting.extend((child, inside) for child in reversed(part.parts))


def _objection(tree: Tree, rules: Rules) -> tuple[Rule, str]:
    if tree.rule in ("callClause", "procedureName") and any(part in tree.text().lower() for part in VECTORS):
        return Rule.EMBEDDING, refusals.EMBEDDINGS
    if tree.rule == "skip":
        return Rule.PAGING, refusals.PAGING
    if tree.rule in _WRITES:
        if rules is Rules.KNOWLEDGE_WRITING:
            return Rule.WRITING, "change the graph by CREATE, MERGE, SET, REMOVE and DELETE at the top of the statement alone"
        return Rule.WRITING, refusals.READ_ONLY
    return _ADVICE.get(tree.rule) or (Rule.CLAUSE, _unknown(tree.text()))


def _unknown(text: str) -> str:
    return (
        f"{text[:40]!r} is not taken here; write MATCH, OPTIONAL MATCH, WHERE, WITH, UNWIND, UNION, RETURN, ORDER BY and LIMIT"
    )


AGGREGATES = frozenset("count sum avg min max collect stdev stdevp percentilecont percentiledisc".split())
_VALUES = frozenset(
    "coalesce head last tail reverse size length isempty nullif range"
    " tointeger tofloat toboolean tostring tointegerornull tofloatornull tobooleanornull tostringornull"
    " abs ceil floor round sign sqrt exp log log10"
    " tolower toupper lower upper ltrim rtrim btrim substring left right split"
    " labels type startnode endnode nodes relationships exists timestamp".split()
)
_TIMES = frozenset(
    "date datetime localdatetime time localtime duration"
    " date.truncate datetime.truncate localdatetime.truncate time.truncate localtime.truncate"
    " duration.between duration.inmonths duration.indays duration.inseconds".split()
)
_STORE_FUNCTIONS = frozenset({"elementid", "id", "keys"})

_READING_FUNCTIONS = AGGREGATES | _VALUES | _TIMES
FUNCTIONS = {
    Rules.READING: _READING_FUNCTIONS,
    Rules.KNOWLEDGE: _READING_FUNCTIONS | _STORE_FUNCTIONS,
    Rules.KNOWLEDGE_WRITING: _READING_FUNCTIONS | _STORE_FUNCTIONS,
}

OF_ENTITIES = frozenset(
    "count collect coalesce head last tail reverse size length isempty"
    " labels type startnode endnode nodes relationships exists".split()
)
"""What may be done with a node, a relationship or a path, or a list of them."""
LEVEL_KEEPING = frozenset("coalesce head last collect min max tolower toupper lower upper ltrim rtrim btrim tostring".split())
"""A level that goes through these is still a level; what comes out of others is compared with nothing."""
COUNTING = frozenset({"count", "exists"})
