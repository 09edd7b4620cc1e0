"""A made-up twin of any size with planted gaps, and the truth about them, for tests and for trying things out.

    made = generate(nodes=10_000, seed=1)
    made.batches()    what to load, in this order
    made.questions    gap questions with their right answers, most of them without a gap
    write(made, Path("made-up"))

Nothing here knows how gaps are found: what is missing is known because it was taken out.
"""

from __future__ import annotations

from .gaps import Question
from .generator import FEWEST, Twin, generate, write

__all__ = ["FEWEST", "Question", "Twin", "generate", "write"]
