"""The relationships of a pattern: their types, their direction and their length."""

from __future__ import annotations

from dataclasses import dataclass

from .allowed import Rules
from .notes import Notes
from .refusals import Rule, refused
from .tree import Tree
from .vocabulary import Vocabulary

MAX_STEPS_OF_ONE = 5
"""The upper bound of one variable length."""
_BOUNDS = frozenset(str(steps) for steps in range(1, MAX_STEPS_OF_ONE + 1))


@dataclass(frozen=True)
class Step:
    """A relationship pattern between its left and its right node."""

    tree: Tree
    types: tuple[str, ...]
    forwards: bool
    backwards: bool
    variable_length: bool

    def ends(self, vocabulary: Vocabulary, left: bool) -> frozenset[str]:
        """The labels that one end has by the ontology."""
        either = self.variable_length or self.forwards == self.backwards
        begins = self.forwards if left else self.backwards
        return vocabulary.ends(self.types, either or begins, either or not begins)


def step(tree: Tree, types: tuple[str, ...], notes: Notes) -> Step:
    """A relationship pattern, held against the rules.

    Raises:
        QueryRefused: its length has no bound or a high one, or it has a length and no type.
    """
    length = tree.child("pathLength")
    if length is not None and tree.child("expression") is not None:
        raise refused(Rule.PATTERN, "put the condition on a variable length into WHERE behind the pattern")
    if length is not None:
        notes.walk(_bound(length))
        if not types and notes.rules is Rules.READING:
            raise refused(Rule.RELATIONSHIP, "a variable length names its types: -[:CLOSE_GAPS|GAPS_SCOPE*1..3]->")
    return Step(tree, types, tree.child("rightArrow") is not None, tree.child("leftArrow") is not None, length is not None)


def _bound(length: Tree) -> int:
    last = length.parts[-1].text()
    if last not in _BOUNDS:
        raise refused(Rule.DEPTH, f"a variable length has an upper bound of at most {MAX_STEPS_OF_ONE}: -[:TYPE*1..3]->")
    return int(last)
