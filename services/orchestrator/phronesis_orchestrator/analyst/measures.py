"""The properties that people ask about: what they call them, and what they are."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """A property in words."""

    name: str
    """As it is said in an answer."""
    unit: str = ""
    """`£m`, `%`, or nothing."""
    types: tuple[str, ...] = ("EntityProject",)


MEASURES: dict[str, Measure] = {
    "whole_life_cost": Measure("whole-life cost", "£m"),
    "year_baseline": Measure("baseline of the financial year", "£m"),
    "year_forecast": Measure("forecast of the financial year", "£m"),
    "variance": Measure("variance of forecast against baseline", "£m"),
    "budget": Measure("budget", types=("EntityProject",)),
    "progress_percentage": Measure("progress", "%"),
    "risk_score": Measure("risk score", types=("EntityRisk",)),
    "target": Measure("target", types=("SectorPerformance",)),
    "actual": Measure("actual value", types=("SectorPerformance",)),
    "efficiency_score": Measure("efficiency score", types=("EntityProcess",)),
    "budget_allocated": Measure("allocated budget", types=("SectorObjective",)),
}
"""Figures that can be added up, averaged and ranked. The variance is worked out: forecast less baseline."""

TEXTS: dict[str, str] = {
    "aims": "aims",
    "rating_comment": "comment on the rating",
    "schedule_comment": "comment on the schedule",
    "budget_comment": "comment on the budget",
}
"""What the departments wrote themselves."""

DATES: dict[str, str] = {"start_date": "start date", "end_date": "end date"}

DIMENSIONS: dict[str, str] = {
    "department": "department",
    "category": "category",
    "rating": "rating",
    "status": "status",
    "level": "level",
    "risk_category": "risk category",
    "risk_status": "risk status",
    "priority_level": "priority",
    "maturity_level": "maturity",
    "unit": "unit",
    "year": "year",
}
"""What things are grouped by."""

_OF_TYPES: dict[str, tuple[str, ...]] = {
    "status": ("EntityProject", "SectorObjective"),
    "risk_category": ("EntityRisk",),
    "risk_status": ("EntityRisk",),
    "priority_level": ("SectorObjective",),
    "maturity_level": ("EntityCapability",),
    "unit": ("SectorPerformance",),
}


def has(type: str, name: str) -> bool:
    """Whether things of a type have such a property, or can be grouped so."""
    if name in MEASURES:
        return type in MEASURES[name].types
    return name in ("level", "year") or type in _OF_TYPES.get(name, ("EntityProject",))


PUBLISHED: dict[str, str] = {
    "rating": "rating",
    **DATES,
    "year_baseline": "baseline of the financial year",
    "year_forecast": "forecast of the financial year",
    "whole_life_cost": "whole-life cost",
    **TEXTS,
}
"""What the portfolio publishes of a project, each of which may be missing."""

COLOURS = ("Red", "Amber/Red", "Amber", "Amber/Green", "Green")
"""The ratings, the worst first."""
CATEGORIES = (
    "Government Transformation and Service Delivery",
    "ICT",
    "Infrastructure and Construction",
    "Military Capability",
)
