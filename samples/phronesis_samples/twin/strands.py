"""Strands of the made-up twin: one node of each type on one level over the years, what joins them, and their names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from phronesis_contracts.twin import Level

CODES = {
    "SectorObjective": "OBJ",
    "SectorPolicyTool": "TOOL",
    "SectorPerformance": "KPI",
    "SectorAdminRecord": "REC",
    "SectorBusiness": "BUS",
    "SectorGovEntity": "GOV",
    "SectorCitizen": "CIT",
    "SectorDataTransaction": "TXN",
    "EntityCapability": "CAP",
    "EntityRisk": "RISK",
    "EntityProject": "PRJ",
    "EntityOrgUnit": "ORG",
    "EntityProcess": "PROC",
    "EntityITSystem": "SYS",
    "EntityVendor": "VEN",
    "EntityCultureHealth": "CULT",
    "EntityChangeAdoption": "ADOPT",
}
"""The node types, and what the ids of their nodes begin with."""


@dataclass(frozen=True, order=True)
class Link:
    """A relationship between the nodes of two types."""

    source: str
    name: str
    target: str


_AUDIENCE = ("SectorBusiness", "SectorGovEntity", "SectorCitizen")
_WORKS = ("EntityOrgUnit", "EntityProcess", "EntityITSystem")

LINKS: tuple[Link, ...] = (
    Link("SectorObjective", "REALIZED_VIA", "SectorPolicyTool"),
    Link("SectorPolicyTool", "GOVERNED_BY", "SectorObjective"),
    Link("SectorObjective", "CASCADED_VIA", "SectorPerformance"),
    Link("SectorPolicyTool", "REFERS_TO", "SectorAdminRecord"),
    *(Link("SectorAdminRecord", "APPLIED_ON", each) for each in _AUDIENCE),
    *(Link(each, "TRIGGERS_EVENT", "SectorDataTransaction") for each in _AUDIENCE),
    Link("SectorDataTransaction", "MEASURED_BY", "SectorPerformance"),
    Link("SectorPerformance", "AGGREGATES_TO", "SectorObjective"),
    Link("EntityRisk", "INFORMS", "SectorPerformance"),
    Link("EntityRisk", "INFORMS", "SectorPolicyTool"),
    Link("EntityCapability", "MONITORED_BY", "EntityRisk"),
    Link("SectorPolicyTool", "SETS_PRIORITIES", "EntityCapability"),
    Link("SectorPerformance", "SETS_TARGETS", "EntityCapability"),
    Link("EntityCapability", "EXECUTES", "SectorPolicyTool"),
    Link("EntityCapability", "REPORTS", "SectorPerformance"),
    Link("EntityCapability", "ROLE_GAPS", "EntityOrgUnit"),
    Link("EntityCapability", "KNOWLEDGE_GAPS", "EntityProcess"),
    Link("EntityCapability", "AUTOMATION_GAPS", "EntityITSystem"),
    *(Link(each, "OPERATES", "EntityCapability") for each in _WORKS),
    Link("EntityCultureHealth", "MONITORS_FOR", "EntityOrgUnit"),
    Link("EntityOrgUnit", "APPLY", "EntityProcess"),
    Link("EntityProcess", "AUTOMATION", "EntityITSystem"),
    Link("EntityITSystem", "DEPENDS_ON", "EntityVendor"),
    *(Link(each, "GAPS_SCOPE", "EntityProject") for each in _WORKS),
    *(Link("EntityProject", "CLOSE_GAPS", each) for each in _WORKS),
    Link("EntityProject", "CONTRIBUTES_TO", "SectorObjective"),
    Link("EntityProject", "ADOPTION_RISKS", "EntityChangeAdoption"),
    Link("EntityChangeAdoption", "INCREASE_ADOPTION", "EntityProject"),
)


@dataclass(frozen=True)
class Hop:
    """One step of a chain: from any of the sources by any of the names to any of the targets."""

    sources: tuple[str, ...]
    names: tuple[str, ...]
    targets: tuple[str, ...]

    @property
    def links(self) -> tuple[Link, ...]:
        """The relationships of a whole strand that this step goes along."""
        return tuple(x for x in LINKS if x.source in self.sources and x.name in self.names and x.target in self.targets)

    @property
    def text(self) -> str:
        """The step as a finding states it."""
        return f"{' | '.join(self.names)} -> {' | '.join(self.targets)}"


_PRIORITIES = "SectorObjective REALIZED_VIA SectorPolicyTool SETS_PRIORITIES EntityCapability"
_TARGETS = "SectorObjective CASCADED_VIA SectorPerformance SETS_TARGETS EntityCapability"
_TO_PROJECTS = (
    " ROLE_GAPS/KNOWLEDGE_GAPS/AUTOMATION_GAPS EntityOrgUnit/EntityProcess/EntityITSystem GAPS_SCOPE EntityProject"
    " ADOPTION_RISKS EntityChangeAdoption"
)
_WRITTEN = {
    "SectorOps": "SectorObjective REALIZED_VIA SectorPolicyTool REFERS_TO SectorAdminRecord APPLIED_ON"
    " SectorBusiness/SectorGovEntity/SectorCitizen TRIGGERS_EVENT SectorDataTransaction MEASURED_BY SectorPerformance"
    " AGGREGATES_TO SectorObjective",
    "Strategy_to_Tactics_Priority": _PRIORITIES + _TO_PROJECTS,
    "Strategy_to_Tactics_Targets": _TARGETS + _TO_PROJECTS,
    "Tactical_to_Strategy": "EntityChangeAdoption INCREASE_ADOPTION EntityProject CLOSE_GAPS"
    " EntityOrgUnit/EntityProcess/EntityITSystem OPERATES EntityCapability REPORTS/EXECUTES"
    " SectorPerformance/SectorPolicyTool AGGREGATES_TO/GOVERNED_BY SectorObjective",
    "Risk_Build_Mode": "EntityCapability MONITORED_BY EntityRisk INFORMS SectorPolicyTool",
    "Risk_Operate_Mode": "EntityCapability MONITORED_BY EntityRisk INFORMS SectorPerformance",
    "Internal_Efficiency": "EntityCultureHealth MONITORS_FOR EntityOrgUnit APPLY EntityProcess AUTOMATION EntityITSystem"
    " DEPENDS_ON EntityVendor",
}


def _hops(written: str) -> Iterator[Hop]:
    parts = [tuple(part.split("/")) for part in written.split()]
    for at in range(0, len(parts) - 2, 2):
        yield Hop(*parts[at : at + 3])


CHAINS: dict[str, tuple[Hop, ...]] = {name: tuple(_hops(written)) for name, written in _WRITTEN.items()}

_THEMES = (
    "water quality", "public transport", "primary care", "digital identity", "school attendance", "road safety",
    "waste collection", "housing repairs", "tax filing", "business licensing", "energy efficiency", "food inspection",
    "port logistics", "rail maintenance", "flood protection", "social care", "youth employment", "air monitoring",
    "land registration", "customs clearance", "court scheduling", "fire prevention", "tourism services", "library access",
    "broadband coverage", "vaccination", "teacher training", "export support", "pension payments", "civil records",
    "building permits", "emergency response", "cyber defence", "forest care", "fisheries control", "research grants",
    "adult learning", "mental health", "street lighting", "benefit payments",
)  # fmt: skip
_PLACES = (
    "North Coast", "South Coast", "Upper Valley", "Lower Valley", "Lake District", "Harbour Region", "Eastern Plain",
    "Western Plain", "Central Region", "Capital Area", "Northern Hills", "Southern Hills", "River Delta", "Border Region",
    "Island Region", "High Moors", "Green Belt", "Old Town", "New Town", "Mill Quarter", "Bay Area", "Stone Ridge",
    "Salt Marsh", "Long Meadow", "Pine Forest", "Chalk Downs", "Iron Bridge", "East Gate", "West Gate", "Market Square",
)  # fmt: skip
_NOUNS: dict[str, tuple[str, str, str]] = {
    "SectorObjective": ("strategic goal", "cascaded goal", "target parameter"),
    "SectorPolicyTool": ("policy framework", "policy programme", "impact target"),
    "SectorPerformance": ("strategic indicator", "service indicator", "tactical metric"),
    "SectorAdminRecord": ("records", "register", "case file"),
    "SectorBusiness": ("businesses", "trade group", "enterprise"),
    "SectorGovEntity": ("ministry", "agency", "office"),
    "SectorCitizen": ("population", "user group", "cohort"),
    "SectorDataTransaction": ("transactions", "requests", "request event"),
    "EntityCapability": ("capability domain", "function", "competency"),
    "EntityRisk": ("risk domain", "risk group", "delivery risk"),
    "EntityProject": ("portfolio", "programme", "project"),
    "EntityOrgUnit": ("department", "division", "team"),
    "EntityProcess": ("process domain", "process group", "process"),
    "EntityITSystem": ("platform", "module", "service feature"),
    "EntityVendor": ("partner", "contract area", "supplied service"),
    "EntityCultureHealth": ("culture domain", "culture area", "health indicator"),
    "EntityChangeAdoption": ("change domain", "change area", "adopted behaviour"),
}
_LEVELS = tuple(Level)


class Subjects:
    """Theme and place for each strand, none twice: when all pairs are used up, they go on with a number."""

    def __init__(self, random: Random) -> None:
        self._pairs = [(theme, place) for theme in _THEMES for place in _PLACES]
        random.shuffle(self._pairs)

    def of(self, strand: int) -> str:
        """What the strand of this number is about."""
        round, at = divmod(strand, len(self._pairs))
        theme, place = self._pairs[at]
        return f"{place} {theme}" + (f" {round + 1}" if round else "")


def make_name(type: str, level: Level, subject: str) -> str:
    """The name of a node, such as "River Delta road safety programme"."""
    return f"{subject} {_NOUNS[type][_LEVELS.index(level)]}"


def make_properties(type: str, random: Random) -> dict[str, str | float]:
    """What a node states of itself; about one value in eight is left out, as it happens in real reports."""
    made: dict[str, str | float] = {}
    match type:
        case "SectorObjective":
            made["budget_allocated"] = float(random.randrange(5, 900))
            made["priority_level"] = random.choice(("High", "Medium", "Low"))
            made["status"] = random.choice(("On track", "At risk", "Achieved"))
        case "SectorPerformance":
            made["target"] = float(random.randrange(50, 100))
            made["actual"] = float(random.randrange(20, 100))
            made["unit"] = random.choice(("%", "days", "cases"))
        case "EntityCapability":
            made["maturity_level"] = random.choice(("Initial", "Developing", "Defined", "Managed", "Optimised"))
        case "EntityRisk":
            made["risk_score"] = float(random.randrange(1, 11))
            made["risk_category"] = random.choice(("delivery", "financial", "people", "technology"))
            made["risk_status"] = random.choice(("Open", "Mitigated", "Closed"))
        case "EntityProject":
            start = random.randrange(2018, 2024)
            made["budget"] = float(random.randrange(1, 400))
            made["progress_percentage"] = float(random.randrange(0, 101))
            made["status"] = random.choice(("Active", "Planned", "Closed"))
            made["start_date"] = f"{start}-{random.randrange(1, 13):02d}-01"
            made["end_date"] = f"{start + random.randrange(2, 9)}-06-30"
        case "EntityProcess":
            made["efficiency_score"] = float(random.randrange(30, 100))
    return {key: value for key, value in made.items() if random.random() > 0.125}


@dataclass(eq=False)
class Strand:
    """Whole when it is made; planting a gap takes something out."""

    number: int
    level: Level
    parent: Strand | None
    absent: set[tuple[str, int]] = field(default_factory=set)
    """Types that have no node in a year."""
    moved: dict[str, Level] = field(default_factory=dict)
    """Types whose node stands at another level, in all years; nothing of this level joins it."""
    cut: set[tuple[Link, int]] = field(default_factory=set)
    """Relationships that are not there in a year."""

    @property
    def whole(self) -> bool:
        """Whether nothing was taken out."""
        return not (self.absent or self.moved or self.cut)

    def id(self, type: str) -> str:
        """The id of the strand's node of a type, the same in all years."""
        return f"{CODES[type]}-{self.number:05d}"

    def key(self, type: str, year: int) -> str:
        """`type/id/year`."""
        return f"{type}/{self.id(type)}/{year}"

    def standing(self, type: str) -> Level:
        """The level on which the node of a type is written."""
        return self.moved.get(type, self.level)

    def has(self, type: str, year: int) -> bool:
        """Whether there is a node of the type in the year."""
        return (type, year) not in self.absent

    def joinable(self, type: str, year: int) -> bool:
        """Whether the node is there, and on the strand's level."""
        return self.has(type, year) and type not in self.moved

    def links(self, year: int) -> Iterator[Link]:
        """The relationships inside the strand in a year."""
        for link in LINKS:
            ends = self.joinable(link.source, year) and self.joinable(link.target, year)
            if ends and (link, year) not in self.cut:
                yield link


_TREE = ((Level.L1, None), (Level.L2, 0), (Level.L3, 1), (Level.L3, 1), (Level.L2, 0), (Level.L3, 4), (Level.L3, 4))
"""One area: a strand of L1 over two of L2, each over two of L3; any beginning of it hangs together too."""


def whole_strands(count: int) -> list[Strand]:
    """Strands in areas, the last of which may be cut short."""
    made: list[Strand] = []
    for number in range(count):
        area, at = divmod(number, len(_TREE))
        level, parent = _TREE[at]
        made.append(Strand(number, level, None if parent is None else made[area * len(_TREE) + parent]))
    return made
