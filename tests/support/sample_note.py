"""The sample document of the examples; `python -m tests.support.sample_note` writes it anew."""

from __future__ import annotations

from pathlib import Path

from .documents import pdf

PATH = Path(__file__).parents[2] / "examples" / "portfolio_note.pdf"
PAGES = [
    [
        "SAMPLE DOCUMENT - invented for the examples; no real meeting, person or decision.",
        "",
        "Portfolio note: delivery confidence reviews of major projects",
        "Spring round, page 1 of 2",
        "",
        "1. Why this note",
        "Each major project gets a delivery confidence review at least once a year. The review asks whether",
        "the project can reach its aims on time and within its budget. Its result is one of three ratings:",
        "green, amber or red. An amber rating means that success is feasible, but that significant issues",
        "need the attention of the senior responsible owner.",
        "",
        "2. What changed in this round",
        "Reviews now begin with the benefits case instead of the schedule. A project whose end date moved by",
        "more than twelve months brings a new baseline to the review. A rating may be withheld only with the",
        "written consent of the portfolio board.",
        "",
        "3. Projects that the board asked about",
        "The Geological Disposal Facility Programme stays at amber. Its budget review meeting is on",
        "14 May 2024 at 10:00 in room 3.12. The programme is asked to bring a cost range for each of the",
        "sites that are still considered, and a plan for the case that a community withdraws.",
    ],
    [
        "SAMPLE DOCUMENT - invented for the examples; no real meeting, person or decision.",
        "",
        "Portfolio note: delivery confidence reviews of major projects",
        "Spring round, page 2 of 2",
        "",
        "4. Actions",
        "The programme team sends its papers for the budget review by 30 April 2024.",
        "Priya Raman chairs the budget review. Tom Ellery takes the minutes.",
        "The finance lead checks the contingency, which stands at 18 percent of the remaining cost.",
        "",
        "5. Risks to watch",
        "Site surveys may start a season late if the drilling licences are not granted by August.",
        "Two further communities have asked for information; answering them needs three more staff.",
        "",
        "6. Next round",
        "The next delivery confidence reviews are planned for November 2024. Projects that are rated red",
        "are reviewed again after six months.",
    ],
]


def content() -> bytes:
    """The file."""
    return pdf(PAGES)


if __name__ == "__main__":
    PATH.write_bytes(content())
