"""A few projects of the sample portfolio, with what they hang on: enough for the main question."""

from __future__ import annotations

from phronesis_contracts.twin import Upsert, UpsertNode
from phronesis_samples.portfolio import reports

YEAR = 2023
PROGRAMME = "Geological Disposal Facility Programme (GDF)"
OTHERS = (
    "GOV.UK One Login",
    "Shared Rural Network",
    "Workplace and Facilities Management",
    "Homes Upgrade Grant (HUG) Phase 2",
)


def programme() -> UpsertNode:
    """The project that the main question asks for."""
    return next(node for node in _nodes() if node.name == PROGRAMME)


def few_projects() -> Upsert:
    """Five projects of one year with their risks, departments and categories, as one batch."""
    nodes = _nodes()
    joined = [relationship for batch in reports.batches() for relationship in batch.relationships]
    kept = {node.key for node in nodes if node.name in (PROGRAMME, *OTHERS)}
    for _ in range(3):  # a project hangs on a department's share, that on a category, and all on departments
        kept |= {one.source.key for one in joined if one.type == "PARENT_OF" and one.target.key in kept}
        kept |= {one.target.key for one in joined if one.type != "PARENT_OF" and one.source.key in kept}
    return Upsert(
        nodes=tuple(node for node in nodes if node.key in kept),
        relationships=tuple(one for one in joined if one.source.key in kept and one.target.key in kept),
    )


def _nodes() -> list[UpsertNode]:
    return [node for batch in reports.batches() for node in batch.nodes if node.year == YEAR]
