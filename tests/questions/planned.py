"""Questions that the rules do not understand, each with the plan that says them and what makes its answer right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from phronesis_contracts.twin import Level, UpsertNode
from phronesis_samples.twin.generator import Twin
from tests.support.groq_plans import Scripted, Words

from . import truth as t
from .checks import Check, figure, groups, names, number, says

COST = "whole_life_cost"


@dataclass(frozen=True)
class Planned:
    """One question, what was asked before it, its plan, and its check."""

    text: str
    scripted: Scripted
    right: Check
    before: tuple[str, ...] = ()


def condition(property: str, value: Any = None, op: str = "=", **more: Any) -> dict[str, Any]:
    """A condition of a set."""
    return {"property": property, "op": op, "value": value, "via": None, "to": None, **more}


def of_department(name: str) -> dict[str, Any]:
    """The condition that a department delivers it."""
    return condition("name", name, via="DELIVERED_BY", to="SectorGovEntity")


def projects(*filters: dict[str, Any], years: tuple[int, ...] = (2023,), among: tuple[str, ...] = ()) -> dict[str, Any]:
    """A set of projects."""
    return {"type": "EntityProject", "years": list(years), "filters": list(filters), "among": list(among)}


def counted(*filters: dict[str, Any], **more: Any) -> dict[str, Any]:
    """How many projects there are."""
    return {"of": projects(*filters, **more), "measure": "count", "property": None, "group_by": [], "limit": None}


def figured(measure: str, property: str, *filters: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A figure over projects."""
    return {**counted(*filters, **more), "measure": measure, "property": property}


def listed(*filters: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The projects of a set."""
    return {"of": projects(*filters, **more), "show": [], "exists": False}


def told(name: str, *properties: str, years: tuple[int, ...] = (2023,), **more: Any) -> dict[str, Any]:
    """What is on record of a project."""
    return {"entities": [name], "properties": list(properties), "years": list(years), "history": False, **more}


def _q(text: str, kind: str, plan: dict[str, Any], words: Words, right: Check, *before: str) -> Planned:
    return Planned(text, Scripted(kind, plan, words), right, before)


_P = "EntityProject"
_RATING, _COST, _END, _START = f"{_P}.rating", f"{_P}.{COST}", f"{_P}.end_date", f"{_P}.start_date"
RED = condition("rating", "Red")
MOJ_2022, DFT_2021 = t.of(2022, "MOJ"), t.of(2021, "DFT")

PORTFOLIO: tuple[Planned, ...] = (
    _q(
        "How many initiatives does MOD have in 2022?",
        "aggregate",
        counted(of_department("MOD"), years=(2022,)),
        {"initiatives": _P},
        number(len(t.of(2022, "MOD"))),
    ),
    _q(
        "In which bucket is GOV.UK One Login filed in 2023?",
        "describe",
        told("GOV.UK One Login", "category"),
        {"bucket": f"{_P}.category", "filed": f"{_P}.category"},
        says("**ICT**"),
    ),
    _q(
        "Which initiatives carry a Red verdict in 2023?",
        "select",
        listed(RED),
        {"initiatives": _P, "verdict": _RATING},
        names(t.names(t.of(2023, rating="Red"))),
    ),
    _q(
        "What was the verdict on Crossrail in 2020?",
        "describe",
        told("Crossrail Programme", "rating", years=(2020,)),
        {"verdict": _RATING},
        says("**Red**"),
    ),
    _q(
        "Average pricetag of the DFT projects in 2021",
        "aggregate",
        figured("mean", COST, of_department("DFT"), years=(2021,)),
        {"pricetag": _COST},
        figure(t.mean(DFT_2021)),
    ),
    _q(
        "Total pricetag of all MOJ projects in 2022, please",
        "aggregate",
        figured("sum", COST, of_department("MOJ"), years=(2022,)),
        {"pricetag": _COST},
        figure(t.total(MOJ_2022)),
    ),
    _q(
        "Which projects wind down in 2025?",
        "select",
        listed(condition("end_date", "2025-01-01", ">="), condition("end_date", "2025-12-31", "<=")),
        {"wind down": _END},
        names(row["project_name"] for row in t.of(2023) if row["end_date"][:4] == "2025"),
    ),
    _q(
        "which projects get off the ground after 2022",
        "select",
        listed(condition("start_date", "2022-12-31", ">")),
        {"ground": _START},
        names(row["project_name"] for row in t.of(2023) if row["start_date"][:4] > "2022"),
    ),
    _q(
        "List the 5 dearest initiatives of 2023",
        "rank",
        {"of": projects(), "by": COST, "via": None, "to": None, "descending": True, "limit": 5, "position": 1, "expect": None},
        {"initiatives": _P, "dearest": (_COST, "highest")},
        names(t.names(t.costliest(t.of(2023), 5))),
    ),
    _q(
        "Number of projects for each verdict in 2022",
        "aggregate",
        {**counted(years=(2022,)), "group_by": [{"property": "rating", "via": None, "to": None}]},
        {"verdict": _RATING},
        groups(t.by("rating", t.of(2022))),
    ),
    _q(
        "How many Amber/Red verdicts did ICT projects get in 2021?",
        "aggregate",
        counted(condition("rating", "Amber/Red"), condition("category", "ICT"), years=(2021,)),
        {"verdicts": _RATING},
        number(len(t.of(2021, rating="Amber/Red", category="ICT"))),
    ),
    _q(
        "Which MOD initiatives vanished between 2021 and 2022?",
        "change",
        {"of": projects(of_department("MOD"), years=(2021, 2022)), "since": 2021, "until": 2022, "what": "left"},
        {"initiatives": _P},
        names(t.names(t.pairs(2021, 2022, department="MOD")[1])),
    ),
    _q(
        "Initiatives without a finishing date in 2021",
        "select",
        listed(condition("end_date", None, "unknown"), years=(2021,)),
        {"initiatives": _P, "finishing": _END},
        names(row["project_name"] for row in t.of(2021) if not row["end_date"]),
    ),
    _q(
        "What percentage of initiatives was Red in 2023?",
        "compare",
        {"sides": [counted(RED), counted()], "how": "share"},
        {"initiatives": _P},
        says(f"{100 * 23 / 244:.1f} %"),
    ),
    _q(
        "Did Crossrail get a Red verdict in 2020?",
        "describe",
        told("Crossrail Programme", years=(2020,), expect=RED),
        {"verdict": _RATING},
        says("Yes", "**Red**"),
    ),
    _q(
        "How many Red initiatives exceed £10 billion in pricetag in 2022?",
        "aggregate",
        counted(RED, condition(COST, 10_000, ">"), years=(2022,)),
        {"initiatives": _P, "pricetag": _COST},
        number(sum(1 for row in t.of(2022, rating="Red") if (t.cost(row) or 0) > 10_000)),
    ),
    _q(
        "how many Red initiatives were there each year",
        "aggregate",
        {**counted(RED, years=t.YEARS), "group_by": [{"property": "year", "via": None, "to": None}]},
        {"initiatives": _P},
        groups({year: len(t.of(year, rating="Red")) for year in t.YEARS}),
    ),
    _q(
        "Initiatives of each department in 2022, how many?",
        "aggregate",
        {**counted(years=(2022,)), "group_by": [{"property": "name", "via": "DELIVERED_BY", "to": "SectorGovEntity"}]},
        {"initiatives": _P},
        groups(t.by_department(t.of(2022))),
    ),
    _q(
        "whose initiatives are most in 2021, by department?",
        "aggregate",
        {
            **counted(years=(2021,)),
            "group_by": [{"property": "name", "via": "DELIVERED_BY", "to": "SectorGovEntity"}],
            "order": "-value",
            "limit": 1,
        },
        {"initiatives": _P},
        groups({"MOD": len(t.of(2021, "MOD"))}),
    ),
    _q(
        "and the verdict?",
        "describe",
        told("Crossrail Programme", "rating", years=(2021,)),
        {"verdict": _RATING},
        says("**"),
        "How much did Crossrail cost in 2021?",
    ),
    _q(
        "how many of them swallow more than £1 billion?",
        "aggregate",
        counted(RED, condition(COST, 1_000, ">")),
        {"swallow": _COST},
        number(sum(1 for row in t.of(2023, rating="Red") if (t.cost(row) or 0) > 1_000)),
        "Which projects are rated Red in 2023?",
    ),
    _q(
        "Which initiatives of the Cabinet Office got Green in 2021?",
        "select",
        listed(of_department("CO"), condition("rating", "Green"), years=(2021,)),
        {"initiatives": _P},
        names(t.names(t.of(2021, "CO", "Green"))),
    ),
    _q(
        "which projects are about radioactive waste?",
        "select",
        listed(condition("aims", "radioactive waste", "contains")),
        {"radioactive": "text", "waste": "text"},
        names(["Geological Disposal Facility Programme (GDF)"]),
    ),
    _q(
        "looking for the project on a memorial site in Westminster",
        "select",
        listed(condition("name", "holocaust memorial", "contains")),
        {"memorial": "text", "site": "text", "Westminster": "text"},
        names(["UK Holocaust Memorial and Learning Centre"]),
    ),
    _q(
        "Aggregate pricetag per category in 2022",
        "aggregate",
        {**figured("sum", COST, years=(2022,)), "group_by": [{"property": "category", "via": None, "to": None}]},
        {"pricetag": _COST},
        groups(t.sums("category", t.of(2022))),
    ),
)

TWIN_YEAR = 2025


def of_twin(made: Twin) -> tuple[Planned, ...]:
    """Questions about a made-up twin."""

    def nodes(type: str, **stated: Any) -> list[UpsertNode]:
        return [
            node
            for node in made.nodes
            if node.type == type
            and node.year == TWIN_YEAR
            and all(node.properties.get(name) == value for name, value in stated.items())
        ]

    def things(type: str, *filters: dict[str, Any]) -> dict[str, Any]:
        return {"type": type, "years": [TWIN_YEAR], "filters": list(filters), "among": []}

    scores = [float(node.properties["risk_score"]) for node in nodes("EntityRisk") if "risk_score" in node.properties]
    opened = condition("risk_status", "Open")
    score, efficiency = "EntityRisk.risk_score", "EntityProcess.efficiency_score"
    found = [
        float(node.properties["efficiency_score"])
        for node in nodes("EntityProcess")
        if "efficiency_score" in node.properties and node.level is Level.L3
    ]
    return (
        _q(
            "How many Open hazards were there in 2025?",
            "aggregate",
            {"of": things("EntityRisk", opened), "measure": "count"},
            {"hazards": "EntityRisk"},
            number(len(nodes("EntityRisk", risk_status="Open"))),
        ),
        _q(
            "List the hazards that are Open, for 2025",
            "select",
            {"of": things("EntityRisk", opened), "show": [], "exists": False},
            {"hazards": "EntityRisk"},
            names(node.name for node in nodes("EntityRisk", risk_status="Open")),
        ),
        _q(
            "average severity of the risks in 2025",
            "aggregate",
            {"of": things("EntityRisk"), "measure": "mean", "property": "risk_score"},
            {"severity": score},
            says(f"**{round(sum(scores) / len(scores), 2):,.2f}".rstrip("0").rstrip(".")),
        ),
        _q(
            "maximum severity of the risks in 2025",
            "aggregate",
            {"of": things("EntityRisk"), "measure": "max", "property": "risk_score"},
            {"severity": score},
            says(f"**{max(scores):,.2f}".rstrip("0").rstrip(".")),
        ),
        _q(
            "mean quickness of the processes in 2025",
            "aggregate",
            {"of": things("EntityProcess"), "measure": "mean", "property": "efficiency_score"},
            {"quickness": efficiency},
            says(f"**{round(sum(found) / len(found), 2):,.2f}".rstrip("0").rstrip(".")),
        ),
        _q(
            "What share of the hazards of 2025 is Closed?",
            "compare",
            {
                "sides": [
                    {"of": things("EntityRisk", condition("risk_status", "Closed")), "measure": "count"},
                    {"of": things("EntityRisk"), "measure": "count"},
                ],
                "how": "share",
            },
            {"hazards": "EntityRisk"},
            says(
                f"{100 * len(nodes('EntityRisk', risk_status='Closed')) / len(nodes('EntityRisk')):.1f} %".replace(".0 %", " %")
            ),
        ),
    )
