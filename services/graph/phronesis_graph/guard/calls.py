"""What a function gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from . import refusals
from .allowed import VECTORS, Rules
from .comparing import compare
from .functions import AGGREGATES, COUNTING, FUNCTIONS, KEEPING_LEVELS, OF_ENTITIES
from .notes import Notes
from .refusals import Rule, refused
from .tree import Tree
from .values import Level, Shape, Value, list_of, merged, one_of

MAX_RANGE = 200
"""Numbers in one range."""
_ITEMS = {"nodes": Shape.NODE, "relationships": Shape.RELATIONSHIP}
_SAME = frozenset({"tail", "reverse"})


def call(notes: Notes, function: str, arguments: Sequence[Tree], values: Sequence[Value]) -> Value:
    """The value of a call; `function` is its full name in small letters.

    Raises:
        QueryRefused: it is not on the list, or may not have these arguments.
    """
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
        raise refused(Rule.EMBEDDING, refusals.EMBEDDINGS)
    if function in ("id", "elementid"):
        raise refused(Rule.FUNCTION, f"{function}() is the store's own number; use the property n.id")
    if function == "replace":
        raise refused(Rule.GROWTH, "replace() is not taken; return the value as it is")
    raise refused(
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
    kept = function in KEEPING_LEVELS
    shape = Shape.LIST if function == "split" else Shape.PLAIN
    result = merged(values, shape)
    level = result.level if kept or result.level is Level.NO else Level.MADE_OF
    return replace(result, level=level, given=result.given and kept, collected=result.collected and kept)


def _of_entities(notes: Notes, function: str, values: Sequence[Value]) -> Value:
    first = values[0]
    if function in FUNCTIONS[Rules.KNOWLEDGE] - FUNCTIONS[Rules.READING]:
        return Value(nodes=first.nodes)  # the store's own number, or the names of properties
    if function not in OF_ENTITIES:
        raise refused(Rule.EMBEDDING, refusals.EMBEDDINGS)
    match function:
        case "collect":
            return replace(list_of(first), collected=True)
        case "head" | "last":
            if first.shape is not Shape.LIST:
                raise refused(Rule.EMBEDDING, refusals.EMBEDDINGS)
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
        raise refused(Rule.GROWTH, f"range() takes whole numbers that are written out, at most {MAX_RANGE} of them")
    return replace(list_of(Value(given=True, brief=True)), units=max(1, numbers))
