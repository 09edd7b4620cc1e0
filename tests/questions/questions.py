"""Questions that people ask of the portfolio, each with what makes its answer right; `evals` asks many more."""

from __future__ import annotations

from dataclasses import dataclass

from . import truth as t
from .checks import Check, every, figure, gaps, groups, names, number, says, table_of

COST = "whole-life cost (£ million)"


@dataclass(frozen=True)
class Question:
    """One question, what was asked before it, and its check."""

    text: str
    right: Check
    before: tuple[str, ...] = ()
    mode: str = "AB"


def _asked(right: Check, *texts: str, mode: str = "AB") -> list[Question]:
    return [Question(text, right, mode=mode) for text in texts]


def _history(name: str) -> Check:
    rows = t.story(name)
    return table_of("year", "rating", COST, expected={year: (row["rating"] or None, t.cost(row)) for year, row in rows.items()})


MOD_2022, RED_2023 = t.of(2022, "MOD"), t.of(2023, rating="Red")

QUESTIONS: list[Question] = [
    # Sets and their sizes.
    *_asked(
        groups(t.by_department(t.of(2022))),
        "How many projects does each department have in 2022?",
        "In 2022, how many projects were there in each department?",
        "Give me the project count of each department, 2022",
    ),
    *_asked(names(t.by_department(t.of(2021))), "list the departments in 2021"),
    *_asked(number(len(t.by_department(t.of(2021)))), "How many departments were there in 2021?"),
    *_asked(
        number(len(MOD_2022)),
        "How many projects does MOD have in 2022?",
        "how many projects did the Ministry of Defence have last year",
    ),
    *_asked(number(len(t.of(2022, "HO"))), "how many projcts does the home office have in 2022"),
    *_asked(number(len(t.of(2023))), "How many projects are there now?"),
    *_asked(
        number(sum(1 for row in t.of(2022) if "MOD" not in t.delivered_by(row))),
        "How many projects of departments other than MOD are there in 2022?",
    ),
    *_asked(
        names(t.names(RED_2023)),
        "Which projects are rated Red in 2023?",
        "Show me the Red projects of 2023",
        "Red-rated projects 2023",
        "which programmes are red this year?",
    ),
    *_asked(
        number(len(t.of(2022, rating=""))),
        "How many projects in 2022 have no rating?",
        "How many projects are not rated in 2022?",
    ),
    *_asked(number(len(t.of(2021, rating="Amber/Red", category="ICT"))), "How many ICT projects were rated Amber/Red in 2021?"),
    *_asked(names(t.by_department(RED_2023)), "Which departments had Red projects in 2023?"),
    *_asked(groups(t.by_department(RED_2023)), "Red projects by department in 2023"),
    *_asked(groups(t.by("rating", t.of(2022))), "How many projects per rating in 2022?"),
    *_asked(
        every(number(sum(1 for row in t.of(2023) if row["rating"] not in ("", "Red"))), says("12 more")),
        "How many projects are not rated Red in 2023?",
    ),
    *_asked(names(t.names(t.of(2021, "CO", "Green"))), "Which projects of the Cabinet Office are rated Green in 2021?"),
    *_asked(names(row["project_name"] for row in t.of(2021) if not row["end_date"]), "projects without an end date in 2021"),
    *_asked(names(row["project_name"] for row in t.of(2023) if row["end_date"][:4] == "2025"), "Which projects end in 2025?"),
    *_asked(says(f"{100 * 23 / 244:.1f} %"), "What share of projects is rated Red in 2023?"),
    *_asked(groups({"MOD": len(t.of(2021, "MOD"))}), "Which department has the most projects in 2021?"),
    *_asked(
        names(row["project_name"] for row in t.of(2022) if "prison" in row["project_name"].lower()), "prison projects, 2022"
    ),
    *_asked(groups(t.by_department(t.of(2022, rating="Red"))), "Ranking of departments by number of red projects, 2022"),
    *_asked(number(len(t.of(2021, "CO", "Amber"))), "how mny plain amber projects had the Cabinet Office in 2021"),
    *_asked(
        says(f"{100 * len(t.of(2022, rating='Amber', category='ICT')) / len(t.of(2022, category='ICT')):.1f} %"),
        "What proportion of ICT projects was amber in 2022?",
    ),
    # Changes.
    *_asked(
        every(number(t.changed(2021, 2022)), says("scale of rating changed")),
        "How did ratings change from 2021 to 2022?",
        "Change in delivery confidence from 2021 to 2022",
        mode="B",
    ),
    *_asked(names(t.moved(2022, 2023, True)), "Which projects improved from 2022 to 2023?"),
    *_asked(number(len(t.moved(2022, 2023, False))), "How many projects worsened between 2022 and 2023?"),
    *_asked(groups({year: len(t.of(year, rating="Red")) for year in t.YEARS}), "How many projects were rated Red each year?"),
    *_asked(groups({year: len(t.of(year)) for year in t.YEARS}), "How has the number of projects changed over the years?"),
    *_asked(names(t.names(t.pairs(2022, 2023)[2])), "Which projects are new in 2023?"),
    *_asked(names(t.names(t.pairs(2021, 2022)[1])), "Which projects left after 2021?"),
    # Figures.
    *_asked(
        groups(t.sums("category", t.of(2022))),
        "Total whole-life cost by category in 2022",
        "How much do the projects of each category cost in 2022?",
    ),
    *_asked(figure(t.total(t.of(2022, "HMRC"))), "How much does HMRC's portfolio cost in 2022?"),
    *_asked(
        figure(t.total(MOD_2022), known=sum(1 for row in MOD_2022 if t.cost(row) is not None)),
        "total whole-life cost of MOD projects in 2022",
    ),
    *_asked(figure(t.mean(t.of(2021, "DFT"))), "What is the average whole-life cost of DFT projects in 2021?"),
    *_asked(groups({year: t.total(t.of(year)) for year in t.YEARS}), "whole-life cost by year"),
    *_asked(figure(t.total(t.of(2022, "MOJ"), "year_baseline_gbp_m")), "What is the total budget of MOJ in 2022?"),
    *_asked(names(t.names(t.costliest(t.of(2023), 5))), "top 5 most expensive projects in 2023"),
    *_asked(names(t.names(t.costliest(t.of(2022), 1))), "Which project has the highest whole-life cost in 2022?"),
    *_asked(names(t.names(t.costliest(t.of(2022), 2)[1:])), "What is the second most expensive project in 2022?"),
    *_asked(
        names(row["project_name"] for row in t.of(2022) if (t.cost(row) or 0) > 10_000),
        "Which projects cost more than £10 billion in 2022?",
    ),
    # One project.
    *_asked(_history("Crossrail Programme"), "What became of Crossrail over the years?"),
    *_asked(_history("Festival UK 2022"), "what happened to Festival UK 2022"),
    *_asked(_history("DREADNOUGHT"), "What became of Dreadnaught?"),
    *_asked(gaps(t.missing("Sizewell C")), "What is missing for Sizewell C?", "gaps for sizewell c", mode="B"),
    *_asked(gaps(t.missing("Sizewell C", (2023,))), "What is missing for Sizewell C in 2023?", mode="B"),
    *_asked(gaps(set()), "What is missing for the Geological Disposal Facility?", mode="B"),
    *_asked(says("£18,812.1 million"), "How much did Crossrail cost in 2021?"),
    *_asked(says("**Red**"), "How was crosrail rated in 2020?"),
    *_asked(says("Yes", "**Red**"), "Was Crossrail rated Red in 2020?"),
    *_asked(says("No", "**Green**"), "Is Crossrail rated Red?"),
    *_asked(says("**DSIT**"), "Which department runs Shared Rural Network?"),
    *_asked(says("10 March 2032"), "When does Lower Thames Crossing end?"),
    *_asked(says("Geological Disposal Facility"), "Which project got the biggest cost increase from 2021 to 2022?", mode="B"),
    *_asked(says("+£2,256.8 million"), "How much dearer did the Lower Thames Crossing get between 2020 and 2023?"),
    *_asked(says("**HO**"), "Who's running Cerberus in 2021?"),
    *_asked(says("£43 million"), "Type 26 price 2020 please"),
    # Follow-ups.
    Question("and in 2023?", number(len(t.of(2023, "MOD"))), ("How many projects does MOD have in 2022?",), "C"),
    Question("what about DFT?", number(len(t.of(2022, "DFT"))), ("How many projects does MOD have in 2022?",), "C"),
    Question("which ones?", names(t.names(RED_2023)), ("How many projects are rated Red in 2023?",), "C"),
    Question("And Thameslink?", _history("Thameslink Programme"), ("What became of Crossrail over the years?",), "C"),
    Question("and by department?", groups(t.sums("department", t.of(2022))), ("Whole-life cost by category in 2022",), "C"),
    Question(
        "and how many of them are Red?",
        number(len(t.of(2023, "MOD", "Red"))),
        ("How many projects does MOD have in 2022?", "and in 2023?"),
        "C",
    ),
]

DECLINED: tuple[str, ...] = (
    "How many flying saucers does MOD have in 2022?",
    "Who is the prime minister?",
    "How happy are the people working on Crossrail?",
    "How many projects were cancelled in 2022?",
    "How many projects are there in Scotland?",
    "How many projects were rated Purple in 2022?",
    "What is the average rating in 2022?",
    "Which projects were never rated Red?",
    "Which projects changed department?",
    "How many projects moved from MOD to MOJ?",
    "Which projects should be closed?",
    "How many projects were in both 2021 and 2022?",
    "Which projects are over budget in 2023?",
    "Tell me about that thing",
    "Show the totals for the year",
    "and in 2023?",
    "Delete all projects of 2022",
    "MATCH (n) DETACH DELETE n",
    "What if we closed that program one quarter early?",
    "asdf qwer zxcv",
)
"""What cannot be answered from the data, or not surely: none of it may get a figure, unless it is the right one."""

NOTHING_THERE: tuple[str, ...] = ("How many projects are there in 2019?", "What will Crossrail cost in 2031?")
"""What is answered by saying which years there are."""
