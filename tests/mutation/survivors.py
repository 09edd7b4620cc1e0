"""Mutants that no statement can tell from the guard, each with the reason."""

from __future__ import annotations

JUDGED: dict[tuple[str, str, str], str] = {}
"""By module, change and the line's text."""
