"""Mutants that no statement can tell from the guard, each with the reason."""

from __future__ import annotations

from .mutants import Mutant

LISTS: dict[tuple[str, str], str] = {
    ("grammar", "drops the word"): "its lists say what is taken, or which words a refusal has: a shorter one refuses as much",
    ("grammar", "drops the key"): "words of a refusal alone",
    ("grammar", "drops the entry"): "its lists say what is taken: a shorter one refuses more",
}
"""By module and how a change begins: modules that are lists and nothing else."""
_CACHE = "what is kept of statements that were seen: the verdict is the same, sooner or later"
_TOLD = "which of several rules a refusal names; it is refused in any case"
JUDGED: dict[tuple[str, str, str], str] = {
    ("grammar", "takes a condition as False", "if rules is Rules.KNOWLEDGE_WRITING:"): "words of a refusal alone",
    ("grammar", "takes a condition as True", "if rules is Rules.KNOWLEDGE_WRITING:"): "words of a refusal alone",
    ("grammar", "compares by IsNot", "if rules is Rules.KNOWLEDGE_WRITING:"): "words of a refusal alone",
    ("guard", "takes 1000 for 1000001", "MAX_VERDICTS = 1_000"): _CACHE,
    ("guard", "takes a condition as True", "if known is None:"): _CACHE,
    ("guard", "takes a condition as False", "if known is not None:"): _CACHE,
    ("guard", "leaves out self._verdicts.move_to_end(key)", "self._verdicts.move_to_end(key)"): _CACHE,
    ("guard", "compares by GtE", "while len(self._verdicts) > MAX_VERDICTS:"): _CACHE,
    ("guard", "leaves out self._parser.load()", "self._parser.load()"): "the parser loads itself, or nothing is parsed",
    ("guard", "takes a condition as True", "if rules is Rules.READING:"): _TOLD,
    (
        "guard",
        "takes a condition as False",
        'if any(part in name(key).lower() for key in tree.find("propertyKeyName") for part in VECTORS):',
    ): _TOLD,
    (
        "guard",
        "leaves out found.append((Rule.EMBEDDING, refusals.EMBEDDINGS))",
        "found.append((Rule.EMBEDDING, refusals.EMBEDDINGS))",
    ): _TOLD,
    (
        "guard",
        "compares by GtE",
        'if len(frozenset[str]().union(*(levels_in(part.text()[1:-1]) for part in tree.find("stringLiteral")))) > 1:',
    ): _TOLD,
    (
        "vocabulary",
        "drops the entry 'tenant'",
        '_UNSHOWN = frozenset({"tenant", "key", "hash"})',
    ): "the tenant is refused before, as a key of any map",
    (
        "vocabulary",
        "takes a condition as False",
        'return f"did you mean {\', \'.join(close)}?" if close else "use the names that the instructions give"',
    ): "words of a refusal alone, held by test_guard_rules.py",
    (
        "vocabulary",
        "takes a condition as True",
        'return f"did you mean {\', \'.join(close)}?" if close else "use the names that the instructions give"',
    ): "words of a refusal alone, held by test_guard_rules.py",
    ("values", "takes 1 for 1001", "YES = 1"): "the order of the numbers alone counts",
    ("values", "takes 2 for 2001", "MADE_OF = 2"): "the order of the numbers alone counts",
    (
        "clauses",
        "compares by GtE",
        "elif last and int(expression.text()) > self._limit:",
    ): "a LIMIT as high as the bound is the bound",
    (
        "screen",
        "takes a condition as False",
        "if size > MAX_VALUES:",
    ): "what is counted afterwards refuses the same; this spares the counting",
    (
        "screen",
        "compares by GtE",
        "if size > MAX_VALUES:",
    ): "what is counted afterwards refuses the same; this spares the counting",
    (
        "screen",
        "leaves out _room(len(value))",
        "_room(len(value))",
    ): "what is counted afterwards refuses the same; this spares the counting",
    (
        "notes",
        "drops the entry -1",
        "self.namings.append(Naming(level.nodes or frozenset({-1}), other.levels, other.parameters))",
    ): "every node and relationship says where it came from; this holds should one not",
    ("expressions", "takes a condition as False", "if reader is None:"): "nothing can be called then, and nothing gets through",
    (
        "expressions",
        "takes a condition as True",
        "return replace(merged(values, Shape.LIST), item=one_of(values)) if values else EMPTY",
    ): "the item of a list of nothing says as little",
    (
        "expressions",
        "takes a condition as False",
        "if when.kinds():",
    ): "what it compares with has no reader, which refuses it in other words",
    ("calls", "takes a condition as True", 'if function == "nullif":'): "holds more against the rule of comparisons",
    ("calls", "takes a condition as False", 'if function in ("id", "elementid"):'): "words of a refusal alone",
    ("calls", "takes a condition as False", 'if function == "coalesce":'): "a plain value made of them all is held to more",
    (
        "calls",
        "takes a condition as False",
        'shape = Shape.LIST if function == "split" else Shape.PLAIN',
    ): "nothing is asked of a list of words that is not asked of a word",
    (
        "calls",
        "joins by Or",
        "return replace(result, level=level, given=result.given and kept, collected=result.collected and kept)",
    ): "more is taken for a collected list, which is held to more",
    ("calls", "compares by LtE", "backwards = bool(step) and step[0] < 0"): "a step of 0 is refused in any case",
    (
        "calls",
        "takes a condition as False",
        "numbers = len(range(start, end - 1 if backwards else end + 1, *step))",
    ): "two numbers more than the bound, backwards",
    ("clauses", "takes a condition as True", 'if not given.has("TIMES"):'): "fewer names are seen, and others refused",
    ("clauses", "leaves out a not", 'if not given.has("TIMES"):'): "CALL (*) sees less; for CALL () see the hostile statement",
    (
        "clauses",
        "takes a condition as True",
        'if clauses[-1].rule == "returnClause":',
    ): "the store refuses a subquery that returns nothing, and names that it did not return",
    ("clauses", "takes a condition as False", "elif returning:"): "the store refuses a subquery that returns nothing",
    (
        "clauses",
        "takes a condition as True",
        'singles = union.children("singleQuery") if union else []',
    ): "nothing can be read then, and nothing gets through",
    ("notes", "takes 0 for 1", "end = 0"): "a blank in front of the statement",
    ("clauses", "drops the entry 'tenant'", 'KEPT = frozenset({"tenant", "key", "owner", "hash"})'): (
        "the tenant is refused as the key of any map"
    ),
    (
        "clauses",
        "takes a condition as False",
        "if self._notes.rules is not Rules.KNOWLEDGE_WRITING:",
    ): "notes of what is picked are read by changes alone",
    (
        "clauses",
        "takes a condition as False",
        'if item.child("variable") is None and target is None:',
    ): "nothing can be read then, and nothing gets through",
    ("clauses", "takes a condition as True", "if not picked:"): "a confirmation is asked for more often",
    (
        "clauses",
        "joins by And",
        "if value.shape is not Shape.MAP or value.fields is None:",
    ): "nothing can be read then, and nothing gets through",
    ("clauses", "takes a condition as True", "if owner.nodes and not owner.given:"): "what has no node picks none",
    ("clauses", "joins by Or", "if owner.nodes and not owner.given:"): "what has no node picks none",
    (
        "clauses",
        "leaves out a filter",
        "return [found for part in tree.parts if part.rule for found in _wanted(part)]",
    ): "a sign is no comparison",
}
"""By module, change and the line's text."""


def judged(mutant: Mutant, line: str) -> str | None:
    """Why a mutant may survive, if somebody said so.

    Args:
        mutant: the mutant.
        line: the text of its line.
    """
    lists = (why for (module, begins), why in LISTS.items() if module == mutant.module and mutant.change.startswith(begins))
    return JUDGED.get((mutant.module, mutant.change, line)) or next(lists, None)
