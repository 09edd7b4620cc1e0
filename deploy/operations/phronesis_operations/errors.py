"""What may go wrong with an operation, as the person at the terminal is told it."""

from __future__ import annotations


class Refused(Exception):
    """The operation was not begun, and nothing was changed; the text says why, and what to do."""


class Damaged(Refused):
    """The archive is not whole, or is none of ours."""


class Failed(Exception):
    """The operation was begun and did not come to its end; the text says what to do."""
