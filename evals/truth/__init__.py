"""Truths, computed from the data files in plain Python and in no way that a service shares."""

from __future__ import annotations

from typing import Any

Expect = dict[str, Any]
"""What the judge looks for in an answer."""


def yes(answer: bool) -> Expect:
    """Yes or no."""
    return {"yes": answer}


def either(*some: Expect) -> Expect:
    """Any of several is right."""
    return {"any": list(some)}
