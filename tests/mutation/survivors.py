"""Mutants that no statement can tell from the guard, each with the reason."""

from __future__ import annotations

JUDGED: dict[tuple[str, str, str], str] = {
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
        "returning",
        "compares by GtE",
        "elif last and int(expression.text()) > self._limit:",
    ): "a LIMIT as high as the bound is the bound",
    (
        "parameters",
        "takes a condition as False",
        "if size > MAX_VALUES:",
    ): "what is counted afterwards refuses the same; this spares the counting",
    (
        "parameters",
        "compares by GtE",
        "if size > MAX_VALUES:",
    ): "what is counted afterwards refuses the same; this spares the counting",
    (
        "parameters",
        "leaves out _room(len(value))",
        "_room(len(value))",
    ): "what is counted afterwards refuses the same; this spares the counting",
    (
        "levels",
        "drops the entry -1",
        "self.namings.append(Naming(level.nodes or frozenset({-1}), other.levels, other.parameters))",
    ): "every node and relationship says where it came from; this holds should one not",
}
"""By module, change and the line's text."""
