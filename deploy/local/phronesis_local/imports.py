"""Late imports from threads, one at a time: two threads that import parts of one package at once can meet it half-made."""

from __future__ import annotations

from threading import Lock

one_at_a_time = Lock()
"""Held while a thread imports what the supervisor does not need at its start."""
