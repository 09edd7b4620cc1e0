"""Parameters that the guard is tried with."""

from __future__ import annotations

from typing import Any


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


TAKEN: list[Any] = [
    "x' OR 1=1",
    "'}) DETACH DELETE n //",
    "L1 L2 L3",
    "",
    "ünïcode",
    0,
    -(2**63),
    1.5,
    None,
    True,
    ["a"],
    {"a": [1]},
]
"""Values that go through as they are."""
REFUSED: list[Any] = [
    float("nan"),
    float("inf"),
    -float("inf"),
    2**63,
    -(2**63) - 1,
    "\ud800",
    "a\0b",
    "x" * 100_001,
    ["x" * 60_000, "y" * 60_000],
    list(range(2_001)),
    {str(i): i for i in range(2_001)},
    {str(i): [i] * 20 for i in range(101)},
    nested(6),
    {1: 2},
    {"a": {"b": float("nan")}},
    object(),
    b"bytes",
    {1, 2},
]
"""Values that no store takes, or that are too large."""
NAMES_REFUSED: list[str] = ["phronesis_tenant", "PHRONESIS_TENANT", "phronesis_1", "a b", "", "ünï", "a-b", "`a`"]
"""Names of the guard's own, and odd ones."""
LIMITS: list[tuple[Any, bool]] = [
    (0, True),
    (500, True),
    (501, False),
    (-1, False),
    (True, False),
    ("5", False),
    (5.0, False),
    (None, False),
]
"""Values behind LIMIT, and whether they are taken."""
