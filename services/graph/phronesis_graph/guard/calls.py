"""What a function gives, and what may be compared with what."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from . import refusals
from .grammar import AGGREGATES, COUNTING, FUNCTIONS, LEVEL_KEEPING, OF_ENTITIES, VECTORS, Rules
from .notes import LevelConstraints, Notes
from .refusals import Rule, refusal
from .tree import Tree
from .values import Level, Shape, Value, list_of, merged, one_of

_EQUAL = frozenset({"EQ", "NEQ", "IN"})
_SAFE = re.compile(r"""(['"])(\(\?i\))?(\.\*)?[\w \-',:&/]*(\.\*)?\1""")
"""Patterns that every engine tries in one go: some text, or `.*` before and behind it."""


def compare(levels: LevelConstraints, sign: str, left: Value, right: Value) -> None:
    """Hold a comparison against the rules, and note what it says of levels.

    Raises `QueryRefused`: a level is compared with anything but names of levels, or a whole node is ordered.
    """
    if sign not in _EQUAL:
        if left.level is not Level.NO or right.level is not Level.NO:
            raise refusal(Rule.LEVEL, refusals.LEVEL_FORM)
        if left.holds or right.holds:
            raise refusal(Rule.EMBEDDING, refusals.EMBEDDINGS)
        return
    for one, other in ((left, right), (right, left)):
        if one.level is Level.NO:
            continue
        if one.level is Level.MADE_OF or (other.level is Level.NO and not other.given):
            raise refusal(Rule.LEVEL, refusals.LEVEL_FORM)
        levels.name(one, other)


def check_pattern(left: Value, pattern: str) -> None:
    """Hold `=~` against the rules: `pattern` is its right side as it is written.

    Raises `QueryRefused`: a level or a whole node is matched, or the pattern is not a plain one.
    """
    if left.level is not Level.NO:
        raise refusal(Rule.LEVEL, refusals.LEVEL_FORM)
    if left.holds:
        raise refusal(Rule.EMBEDDING, refusals.EMBEDDINGS)
    if not _SAFE.fullmatch(pattern):
        raise refusal(Rule.REGEX, "write toLower(n.name) CONTAINS toLower($text), STARTS WITH or ENDS WITH")


def check_truth(value: Value) -> None:
    """Hold a value in the place of a truth value. Raises `QueryRefused`: it is a level, or was made of one."""
    if value.level is not Level.NO:
        raise refusal(Rule.LEVEL, refusals.LEVEL_FORM)
    if value.holds:
        raise refusal(Rule.EMBEDDING, refusals.EMBEDDINGS)


MAX_RANGE = 200
"""Numbers in one range."""
_ITEMS = {"nodes": Shape.NODE, "relationships": Shape.RELATIONSHIP}
_SAME = frozenset({"tail", "reverse"})


def call(notes: Notes, function: str, arguments: Sequence[Tree], values: Sequence[Value]) -> Value:
    """The value of a call; `function` is in small letters. Raises `QueryRefused`: not on the list, or not with these."""
    if function not in FUNCTIONS[notes.rules]:
        _refuse(function)
    if function == "range":
        return _range(arguments)
    if not values:
        return Value(given=False)
    if any(value.holds for value in values):
        return _of_entities(notes, function, values)
    if function == "nullif":
        compare(notes.levels, "EQ", values[0], values[-1])
    if function in COUNTING:
        return Value(brief=True)
    result = _of_values(function, values)
    return replace(result, brief=result.brief or function in AGGREGATES)


def _refuse(function: str) -> None:
    if any(part in function for part in VECTORS) or function in ("properties", "keys"):
        raise refusal(Rule.EMBEDDING, refusals.EMBEDDINGS)
    if function in ("id", "elementid"):
        raise refusal(Rule.FUNCTION, f"{function}() is the store's own number; use the property n.id")
    if function == "replace":
        raise refusal(Rule.GROWTH, "replace() is not taken; return the value as it is")
    raise refusal(
        Rule.FUNCTION, f"the function {function[:60]}() is not taken; use the plain ones, such as count, toLower, date"
    )


def _of_values(function: str, values: Sequence[Value]) -> Value:
    first = values[0]
    if function == "collect":
        return replace(list_of(first), collected=True, given=False)
    if function in ("head", "last"):
        return first.items()
    if function in _SAME and first.shape is Shape.LIST:
        return replace(first, given=False)
    if function == "coalesce":
        return one_of(values)
    kept = function in LEVEL_KEEPING
    shape = Shape.LIST if function == "split" else Shape.PLAIN
    result = merged(values, shape)
    level = result.level if kept or result.level is Level.NO else Level.MADE_OF
    return replace(result, level=level, given=result.given and kept, collected=result.collected and kept)


def _of_entities(notes: Notes, function: str, values: Sequence[Value]) -> Value:
    first = values[0]
    if function in FUNCTIONS[Rules.KNOWLEDGE] - FUNCTIONS[Rules.READING]:
        return Value(nodes=first.nodes)  # the store's own number, or the names of properties
    if function not in OF_ENTITIES:
        raise refusal(Rule.EMBEDDING, refusals.EMBEDDINGS)
    match function:
        case "collect":
            return replace(list_of(first), collected=True)
        case "head" | "last":
            if first.shape is not Shape.LIST:
                raise refusal(Rule.EMBEDDING, refusals.EMBEDDINGS)
            return first.items()
        case "tail" | "reverse":
            return first
        case "coalesce":
            return one_of(values)
        case "startnode" | "endnode":
            return Value(Shape.NODE, holds=True, nodes=first.nodes)
        case "nodes" | "relationships":
            return list_of(Value(_ITEMS[function], holds=True, nodes=first.nodes))
    return Value(brief=function in COUNTING)


def _range(arguments: Sequence[Tree]) -> Value:
    try:
        start, end, *step = (int(argument.text()) for argument in arguments)
        backwards = bool(step) and step[0] < 0
        numbers = len(range(start, end - 1 if backwards else end + 1, *step))
    except ValueError:
        numbers = MAX_RANGE + 1
    if numbers > MAX_RANGE:
        raise refusal(Rule.GROWTH, f"range() takes whole numbers that are written out, at most {MAX_RANGE} of them")
    return replace(list_of(Value(given=True, brief=True)), units=max(1, numbers))
