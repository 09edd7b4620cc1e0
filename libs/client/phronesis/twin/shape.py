"""What a whole strand of the twin holds: one node of each type, all that joins them, and the chains that run through them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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
