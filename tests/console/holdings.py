"""What a tenant holds for the pages of graphs: a project with its chain up to an objective, and an institute's constitution."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from phronesis.constitution.files import parts
from phronesis_contracts.constitution.writes import LOAD_TOOL
from phronesis_samples.institute import sample
from tests.support.people import Person, Town

YEAR = 2024
"""The year of the chain."""
CHAIN = (
    ("EntityProject", "tunnel", "Harbour tunnel", None),
    ("EntityOrgUnit", "unit", "Tunnel office", "CLOSE_GAPS"),
    ("EntityCapability", "building", "Building under water", "OPERATES"),
    ("SectorPerformance", "minutes", "Minutes saved", "REPORTS"),
    ("SectorObjective", "nearer", "A nearer south bank", "AGGREGATES_TO"),
)
"""Each node with the relationship to the one before it."""


def node(type: str, id: str, name: str, year: int, **properties: Any) -> dict[str, Any]:
    """A node as it is upserted."""
    return {"type": type, "id": id, "name": name, "year": year, "level": "L3", "properties": properties}


def link(type: str, source: tuple[str, str], target: tuple[str, str], year: int) -> dict[str, Any]:
    """A relationship as it is upserted."""
    ends = {side: {"type": end[0], "id": end[1], "year": year} for side, end in (("source", source), ("target", target))}
    return {"type": type, **ends}


async def upsert(person: Person, nodes: list[dict[str, Any]], links: list[dict[str, Any]]) -> None:
    """Write a part of the twin."""
    answer = await person.tool("graph_upsert", {"nodes": nodes, "relationships": links})
    assert answer.status_code == 200, answer.text


async def chained(person: Person) -> None:
    """Write the chain."""
    nodes = [node(type, id, name, YEAR) for type, id, name, _ in CHAIN]
    await upsert(person, nodes, [link(str(after[3]), before[:2], after[:2], YEAR) for before, after in pairwise(CHAIN)])


async def founded(people: Town) -> Person:
    """Somebody who may write every layer, in a new tenant that holds the institute."""
    admin = await people.someone(role="admin")
    found = sample()
    for part in parts(found.nodes, found.relationships):
        answer = await admin.tool(LOAD_TOOL.name, part.model_dump(mode="json", by_alias=True, exclude_defaults=True))
        assert answer.status_code == 200, answer.text
    return await people.someone(tenant=admin.tenant, role="maestro")


LARGE = YEAR + 2
"""The year of 5,000 nodes."""


def large() -> Iterator[tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
    """5,000 nodes: departments, their projects, and a risk of each project."""
    departments = [node("SectorGovEntity", f"d-{at}", f"Department {at}", LARGE) for at in range(20)]
    yield departments, []
    for start in range(0, 2_490, 240):
        nodes, links = [], []
        for at in range(start, min(2_490, start + 240)):
            project, risk = ("EntityProject", f"l-{at}"), ("EntityRisk", f"l-{at}")
            nodes += [node(*project, f"Project {at}", LARGE), node(*risk, f"Risk of project {at}", LARGE)]
            links += [
                link("RATED", project, risk, LARGE),
                link("DELIVERED_BY", project, ("SectorGovEntity", f"d-{at % 20}"), LARGE),
            ]
        yield nodes, links
