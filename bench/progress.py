"""Says where a run stands, on the error stream: the report alone goes to the other."""

from __future__ import annotations

import sys
from time import monotonic

_BEGAN = monotonic()


def say(text: str) -> None:
    """One line, with the seconds since the run began."""
    print(f"[{monotonic() - _BEGAN:5.0f} s] {text}", file=sys.stderr, flush=True)
