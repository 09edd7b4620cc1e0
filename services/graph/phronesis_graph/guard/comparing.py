"""What may be compared with what."""

from __future__ import annotations

import re

from . import refusals
from .levels import LevelsNamed
from .refusals import Rule, refused
from .values import Level, Value

_EQUAL = frozenset({"EQ", "NEQ", "IN"})
_SAFE = re.compile(r"""(['"])(\(\?i\))?(\.\*)?[\w \-',:&/]*(\.\*)?\1""")
"""Patterns that every engine tries in one go: some text, or `.*` before and behind it."""


def compare(levels: LevelsNamed, sign: str, left: Value, right: Value) -> None:
    """Hold a comparison against the rules, and note what it says of levels.

    Raises:
        QueryRefused: a level is compared with anything but names of levels, or a whole node is ordered.
    """
    if sign not in _EQUAL:
        if left.level is not Level.NO or right.level is not Level.NO:
            raise refused(Rule.LEVEL, refusals.LEVEL_FORM)
        if left.holds or right.holds:
            raise refused(Rule.EMBEDDING, refusals.EMBEDDINGS)
        return
    for one, other in ((left, right), (right, left)):
        if one.level is Level.NO:
            continue
        if one.level is Level.MADE_OF or (other.level is Level.NO and not other.given):
            raise refused(Rule.LEVEL, refusals.LEVEL_FORM)
        levels.name(one, other)


def matches(left: Value, pattern: str) -> None:
    """Hold `=~` against the rules: `pattern` is its right side as it is written.

    Raises:
        QueryRefused: a level or a whole node is matched, or the pattern is not a plain one.
    """
    if left.level is not Level.NO:
        raise refused(Rule.LEVEL, refusals.LEVEL_FORM)
    if left.holds:
        raise refused(Rule.EMBEDDING, refusals.EMBEDDINGS)
    if not _SAFE.fullmatch(pattern):
        raise refused(Rule.REGEX, "write toLower(n.name) CONTAINS toLower($text), STARTS WITH or ENDS WITH")


def tested(value: Value) -> None:
    """Hold a value in the place of a truth value.

    Raises:
        QueryRefused: it is a level, or was made of one.
    """
    if value.level is not Level.NO:
        raise refused(Rule.LEVEL, refusals.LEVEL_FORM)
    if value.holds:
        raise refused(Rule.EMBEDDING, refusals.EMBEDDINGS)
