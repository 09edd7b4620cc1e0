"""Why a question is not answered: each is said plainly, never papered over."""

from __future__ import annotations

from phronesis_contracts.analysis import Mode


class Declined(Exception):
    """The question is not answered.

    Args:
        said: what the user is told.
        mode: the mode of the answer: what is missing (E), no clear path (J), or a data mode that stays without an answer.
        rows: candidates to choose from.
    """

    def __init__(self, said: str, mode: Mode = "J", rows: tuple[dict[str, object], ...] = ()) -> None:
        super().__init__(said)
        self.said = said
        self.mode: Mode = mode
        self.rows = rows


def unfit(words: str) -> Declined:
    """A phrase is known, and has no place in this question."""
    return Declined(
        f"I do not see how “{words}” fits into this question, so I would rather not guess. Please put it differently."
    )


def unknown(words: str) -> Declined:
    """Words that nothing explains."""
    return Declined(f"I do not understand “{words}”, so I would rather not guess an answer. {HINT}")


HINT = (
    "I can count, list, group, rank and add up projects by year, department, category, rating and status, tell what became of a"
    " project, and say what is missing for it."
)
