"""The ontology in plain English: what people call its things and properties, and how they hang together."""

from __future__ import annotations

import re
from dataclasses import dataclass

from phronesis_contracts.twin import Level


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


@dataclass(frozen=True)
class Thing:
    """A node type in words: its plural and singular, other names, and its three levels from the top."""

    plural: str
    singular: str
    levels: tuple[str, str, str]
    also: tuple[str, ...] = ()
    """Other words for it, singular and plural."""


THINGS: dict[str, Thing] = {
    "SectorObjective": Thing(
        "objectives", "objective", ("strategic goal", "cascaded goal", "KPI parameter"), ("goal", "goals", "sector objectives")
    ),
    "SectorPolicyTool": Thing(
        "policy tools", "policy tool", ("tool type", "tool", "impact target"), ("policies", "policy", "policy instruments")
    ),
    "SectorPerformance": Thing(
        "performance measures",
        "performance measure",
        ("strategic KPI", "operational KPI", "tactical metric"),
        ("KPIs", "KPI", "performance indicators", "performance indicator", "key performance indicators"),
    ),
    "SectorAdminRecord": Thing(
        "administrative records",
        "administrative record",
        ("record category", "record type", "record"),
        ("admin records", "admin record"),
    ),
    "SectorBusiness": Thing("businesses", "business", ("business sector", "business category", "business"), ()),
    "SectorGovEntity": Thing(
        "government entities",
        "government entity",
        ("ministry", "agency", "office"),
        ("government bodies", "government body", "public bodies", "public body"),
    ),
    "SectorCitizen": Thing(
        "citizen groups",
        "citizen group",
        ("population segment", "demographic group", "cohort"),
        ("citizens", "citizen", "population groups"),
    ),
    "SectorDataTransaction": Thing(
        "data transactions",
        "data transaction",
        ("transaction category", "transaction type", "transaction"),
        (),
    ),
    "EntityCapability": Thing("capabilities", "capability", ("business domain", "function", "competency"), ()),
    "EntityRisk": Thing("risks", "risk", ("risk domain", "functional risk group", "specific risk"), ()),
    "EntityProject": Thing("projects", "project", ("portfolio", "program", "project"), ()),
    "EntityOrgUnit": Thing(
        "organisation units",
        "organisation unit",
        ("department of the organisation", "sub-department", "team"),
        ("org units", "org unit", "organizational units", "organisational units", "organizational unit", "organization units"),
    ),
    "EntityProcess": Thing("processes", "process", ("process domain", "process group", "process"), ()),
    "EntityITSystem": Thing(
        "IT systems", "IT system", ("platform", "module", "feature"), ("systems", "system", "information systems")
    ),
    "EntityVendor": Thing(
        "vendors", "vendor", ("partner", "service domain", "service"), ("suppliers", "supplier", "contractors", "contractor")
    ),
    "EntityCultureHealth": Thing(
        "culture health indicators",
        "culture health indicator",
        ("culture domain", "culture area", "health indicator"),
        ("culture indicators", "culture health", "cultural health indicators"),
    ),
    "EntityChangeAdoption": Thing(
        "change adoptions",
        "change adoption",
        ("domain of change", "area of change", "behaviour"),
        ("changes to adopt", "change adoption areas", "adoption of change"),
    ),
}

LEVELS = (Level.L1, Level.L2, Level.L3)

JOINS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "REALIZED_VIA": (("SectorObjective",), ("SectorPolicyTool",), "is realised by"),
    "GOVERNED_BY": (("SectorPolicyTool",), ("SectorObjective",), "is governed by"),
    "CASCADED_VIA": (("SectorObjective",), ("SectorPerformance",), "is cascaded by"),
    "REFERS_TO": (("SectorPolicyTool",), ("SectorAdminRecord",), "refers to"),
    "APPLIED_ON": (("SectorAdminRecord",), ("SectorBusiness", "SectorGovEntity", "SectorCitizen"), "is applied to"),
    "TRIGGERS_EVENT": (("SectorBusiness", "SectorGovEntity", "SectorCitizen"), ("SectorDataTransaction",), "triggers"),
    "MEASURED_BY": (("SectorDataTransaction",), ("SectorPerformance",), "is measured by"),
    "AGGREGATES_TO": (("SectorPerformance",), ("SectorObjective",), "adds up to"),
    "INFORMS": (("EntityRisk",), ("SectorPerformance", "SectorPolicyTool"), "informs"),
    "MONITORED_BY": (("EntityCapability",), ("EntityRisk",), "is watched by"),
    "SETS_PRIORITIES": (("SectorPolicyTool",), ("EntityCapability",), "sets the priorities of"),
    "SETS_TARGETS": (("SectorPerformance",), ("EntityCapability",), "sets the targets of"),
    "EXECUTES": (("EntityCapability",), ("SectorPolicyTool",), "carries out"),
    "REPORTS": (("EntityCapability",), ("SectorPerformance",), "reports to"),
    "ROLE_GAPS": (("EntityCapability",), ("EntityOrgUnit",), "lacks roles in"),
    "KNOWLEDGE_GAPS": (("EntityCapability",), ("EntityProcess",), "lacks knowledge in"),
    "AUTOMATION_GAPS": (("EntityCapability",), ("EntityITSystem",), "lacks automation in"),
    "OPERATES": (("EntityOrgUnit", "EntityProcess", "EntityITSystem"), ("EntityCapability",), "operates"),
    "MONITORS_FOR": (("EntityCultureHealth",), ("EntityOrgUnit",), "watches over"),
    "APPLY": (("EntityOrgUnit",), ("EntityProcess",), "applies"),
    "AUTOMATION": (("EntityProcess",), ("EntityITSystem",), "is automated by"),
    "DEPENDS_ON": (("EntityITSystem",), ("EntityVendor",), "depends on"),
    "GAPS_SCOPE": (("EntityOrgUnit", "EntityProcess", "EntityITSystem"), ("EntityProject",), "gives its gaps to"),
    "CLOSE_GAPS": (("EntityProject",), ("EntityOrgUnit", "EntityProcess", "EntityITSystem"), "closes gaps in"),
    "CONTRIBUTES_TO": (("EntityProject",), ("SectorObjective",), "contributes to"),
    "ADOPTION_RISKS": (("EntityProject",), ("EntityChangeAdoption",), "meets adoption risks in"),
    "INCREASE_ADOPTION": (("EntityChangeAdoption",), ("EntityProject",), "raises the adoption of"),
    "DELIVERED_BY": (("EntityProject",), ("SectorGovEntity",), "is delivered by"),
    "RATED": (("EntityProject",), ("EntityRisk",), "is rated by"),
}
"""Each relationship: its sources, its targets, and how one says it."""

_PARTS = ("EntityOrgUnit", "EntityProcess", "EntityITSystem")
CHAINS: dict[str, tuple[tuple[str, ...], str]] = {
    "SectorOps": (
        (
            *("SectorObjective", "SectorPolicyTool", "SectorAdminRecord", "SectorBusiness", "SectorGovEntity"),
            *("SectorCitizen", "SectorDataTransaction", "SectorPerformance"),
        ),
        "from an objective by policy tools and what they touch back to performance and the objective",
    ),
    "Strategy_to_Tactics_Priority": (
        ("SectorObjective", "SectorPolicyTool", "EntityCapability", *_PARTS, "EntityProject"),
        "from an objective by priorities to the projects and the change they need",
    ),
    "Strategy_to_Tactics_Targets": (
        ("SectorObjective", "SectorPerformance", "EntityCapability", *_PARTS, "EntityProject"),
        "from an objective by targets to the projects and the change they need",
    ),
    "Tactical_to_Strategy": (
        ("EntityChangeAdoption", "EntityProject", *_PARTS, "EntityCapability", "SectorPerformance", "SectorPolicyTool"),
        "from the adoption of change back to the objectives",
    ),
    "Risk_Build_Mode": (("EntityCapability", "EntityRisk"), "from a capability by its risks to policy tools"),
    "Risk_Operate_Mode": (("EntityCapability", "EntityRisk"), "from a capability by its risks to performance"),
    "Internal_Efficiency": (("EntityCultureHealth", *_PARTS), "from culture by units, processes and systems to vendors"),
}
"""Each chain: the types that it goes on from, and what it follows."""


def between(one: str, other: str) -> tuple[str, ...]:
    """The relationships that may join the two types, in either direction."""
    found = (name for name, (a, b, _) in JOINS.items() if (one in a and other in b) or (other in a and one in b))
    return tuple(found)


def called(type: str, level: Level | None = None, many: bool = True) -> str:
    """What to call things of a type, at one level or at all."""
    thing = THINGS[type]
    if level is None:
        return thing.plural if many else thing.singular
    name = thing.levels[LEVELS.index(level)]
    return plural(name) if many else name


def plural(noun: str) -> str:
    """The plural of an English noun, well enough for the ontology's."""
    if " of " in noun:
        head, _, rest = noun.partition(" of ")
        return f"{plural(head)} of {rest}"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch")) else "s")


_LEVEL_WORDS = {"L1": "the top level", "L2": "the middle level", "L3": "the lowest level"}
_TECHNICAL = {"node": "entry", "nodes": "entries", "query": "question", "id": "name", "cypher": "question"}


def in_plain_words(text: str) -> str:
    """A text of the graph's with its technical names put into words (N-055)."""

    def plain(match: re.Match[str]) -> str:
        word = match.group()
        if word in THINGS:
            return called(word, many=False)
        if word in JOINS:
            return f"“{JOINS[word][2]}”"
        return _LEVEL_WORDS.get(word) or _TECHNICAL.get(word.casefold()) or word

    return re.sub(r"\w+", plain, text)
