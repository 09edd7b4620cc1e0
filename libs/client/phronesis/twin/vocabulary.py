"""Names of made-up things: what each type is called on each level, about which theme, and where."""

from __future__ import annotations

from random import Random

from phronesis_contracts.graph import Level

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


def name(type: str, level: Level, subject: str) -> str:
    """The name of a node, such as "River Delta road safety programme"."""
    return f"{subject} {_NOUNS[type][_LEVELS.index(level)]}"


def properties(type: str, random: Random) -> dict[str, str | float]:
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
