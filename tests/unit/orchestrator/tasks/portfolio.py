"""The sample portfolio as a twin that answers surveys, and the figures of a report computed from the published table alone."""

from __future__ import annotations

from collections import Counter
from typing import Any

from phronesis_contracts.twin import Level, Survey, Surveyed, UpsertNode
from phronesis_samples.portfolio.reports import batches, read_rows

_NODES: list[tuple[UpsertNode, frozenset[str]]] = []


def _nodes() -> list[tuple[UpsertNode, frozenset[str]]]:
    if not _NODES:
        nodes, delivered = dict[tuple[str, int], UpsertNode](), dict[tuple[str, int], set[str]]()
        for batch in batches():
            nodes |= {(n.id, n.year): n for n in batch.nodes if n.type == "EntityProject" and n.level is Level.L3}
            for one in batch.relationships:
                if one.type == "DELIVERED_BY":
                    delivered.setdefault((one.source.id, one.source.year), set()).add(one.target.id)
        _NODES.extend((node, frozenset(delivered.get(key, ()))) for key, node in nodes.items())
    return _NODES


async def surveyed(request: Survey) -> Surveyed:
    """What the graph would answer, of the kinds of survey that reports make."""
    found = [node for node, names in _nodes() if node.year in request.years and _fits(request, node, names)]
    if request.measure == "list":
        rows = [
            {"id": n.id, "name": n.name, "year": n.year, **{one: n.properties.get(one) for one in request.show}} for n in found
        ]
        return Surveyed(rows=tuple(rows), total=len(rows), statement="MATCH")
    groups = Counter(tuple(_value(node, one.property) for one in request.group_by) for node in found)
    named = ("group", "group2")
    rows = [dict(zip(named, key, strict=False)) | {"value": n, "known": n, "unknown": 0} for key, n in groups.items()]
    return Surveyed(rows=tuple(rows), total=len(found), statement="MATCH")


def _value(node: UpsertNode, name: str) -> Any:
    return node.year if name == "year" else node.properties.get(name)


def _fits(request: Survey, node: UpsertNode, names: frozenset[str]) -> bool:
    for where in request.where:
        if where.via == "DELIVERED_BY" and where.value not in names:
            return False
        if where.op == "unknown" and node.properties.get(where.property) is not None:
            return False
    return True


def figures(department: str, years: tuple[int, ...]) -> dict[int, dict[str, Any]]:
    """The figures of a department, from the rows of the published table."""
    found = {}
    for year in years:
        rows = [
            row
            for row in read_rows()
            if row["year"] == str(year) and department in {part.strip().upper() for part in row["department"].split("&")}
        ]
        both = [row for row in rows if row["year_baseline_gbp_m"] and row["year_forecast_gbp_m"]]
        found[year] = {
            "projects": len(rows),
            "ratings": Counter(row["rating"] or "not published" for row in rows),
            "cost": round(sum(float(row["whole_life_cost_gbp_m"]) for row in rows if row["whole_life_cost_gbp_m"]), 2),
            "variance": round(sum(float(row["year_forecast_gbp_m"]) - float(row["year_baseline_gbp_m"]) for row in both), 2),
            "without end": sum(1 for row in rows if not row["end_date"]),
        }
    return found
