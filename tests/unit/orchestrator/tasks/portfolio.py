"""The sample portfolio as a twin that answers surveys, and the figures of a report computed from the published table alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from importlib.resources import files
from itertools import product
from typing import Any

from phronesis_contracts.ontology import EntityName, PropertyValues, ValueCount, Vocabulary
from phronesis_contracts.twin import Level, Survey, Surveyed, UpsertNode
from phronesis_graph.twin.ontology_file import parse as parse_ontology
from phronesis_graph.twin.vocabulary import to_view
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
    if request.type != "EntityProject":
        return Surveyed(rows=(), total=0, statement="MATCH")
    years = request.years or YEARS
    found = [node for node, names in _nodes() if node.year in years and _fits(request, node, names)]
    if request.measure == "list":
        shown = (*request.show, *([request.of] if request.of else []))
        rows = [{"id": n.id, "name": n.name, "year": n.year, **{one: n.properties.get(one) for one in shown}} for n in found]
        if request.of:
            rows = [row for row in rows if row[request.of] is not None]
            rows.sort(key=lambda row: row[request.of], reverse=request.order == "-value")
        return Surveyed(rows=tuple(rows), total=len(rows), statement="MATCH")
    groups = defaultdict[tuple[Any, ...], list[UpsertNode]](list)
    for node in found:
        own = [_joined(node) if one.via is not None else (_value(node, one.property),) for one in request.group_by]
        for key in product(*own):
            groups[key].append(node)
    return Surveyed(
        rows=tuple(_grouped(request, key, nodes) for key, nodes in groups.items()) or (_grouped(request, (), []),),
        total=len(found),
        statement="MATCH",
    )


def _grouped(request: Survey, key: tuple[Any, ...], nodes: list[UpsertNode]) -> dict[str, Any]:
    told = dict(zip(("group", "group2"), key, strict=False))
    if request.of is None:
        return told | {"value": len(nodes), "known": len(nodes), "unknown": 0}
    values = [value for node in nodes if (value := node.properties.get(request.of)) is not None]
    total = sum(values) / (len(values) or 1) if request.measure == "avg" else sum(values)
    return told | {"value": total if values else None, "known": len(values), "unknown": len(nodes) - len(values)}


def _value(node: UpsertNode, name: str) -> Any:
    return {"year": node.year, "id": node.id, "name": node.name}.get(name, node.properties.get(name))


def _joined(node: UpsertNode) -> tuple[str | None, ...]:
    """The departments that deliver a project."""
    return tuple(sorted(next(names for one, names in _nodes() if one is node))) or (None,)


def _fits(request: Survey, node: UpsertNode, names: frozenset[str]) -> bool:
    for where in request.where:
        wanted = set(where.value) if isinstance(where.value, tuple | list) else {where.value}
        if where.via == "DELIVERED_BY" and not wanted & names:
            return False
        if where.via is None and where.op == "unknown" and node.properties.get(where.property) is not None:
            return False
        if where.via is None and where.op in ("=", "in") and _value(node, where.property) not in wanted:
            return False
    return True


YEARS = (2020, 2021, 2022, 2023)


def vocabulary() -> Vocabulary:
    """The words of the portfolio: its ontology, the values of its projects, and the names of its projects and departments."""
    names: dict[tuple[str, str], EntityName] = {}
    nodes = [node for batch in batches() for node in batch.nodes if node.type in ("EntityProject", "SectorGovEntity")]
    for node in nodes:
        known = names.get((node.type, node.id))
        years = tuple(sorted({*(known.years if known else ()), node.year}))
        names[node.type, node.id] = EntityName(
            type=node.type, id=node.id, name=node.name, aliases=tuple(node.aliases), level=node.level, years=years
        )
    counted = defaultdict[str, Counter[str]](Counter)
    for node, _ in _nodes():
        for name, value in node.properties.items():
            counted[name][str(value)] += value is not None
    declared = {one.name: one for kind in _ONTOLOGY.types if kind.name == "EntityProject" for one in kind.properties}
    values = tuple(
        PropertyValues(
            type="EntityProject",
            property=name,
            known=sum(tally.values()),
            values=tuple(ValueCount(value=value, nodes=n) for value, n in tally.items())
            if declared[name].kind == "string"
            else (),
        )
        for name, tally in counted.items()
        if name in declared and sum(tally.values())
    )
    return Vocabulary(version="1", ontology=_ONTOLOGY, years=YEARS, values=values, names=tuple(names.values()))


_FILE = files("phronesis_graph").joinpath("content/transformation_twin.yaml")
_ONTOLOGY = to_view(parse_ontology(_FILE.read_text(encoding="utf-8")), "1")


def figures(department: str, years: tuple[int, ...]) -> dict[int, dict[str, Any]]:
    """The figures of a department, from the rows of the published table."""
    found = {}
    for year in years:
        rows = [
            row
            for row in read_rows()
            if row["year"] == str(year) and department in {part.strip().upper() for part in row["department"].split("&")}
        ]
        found[year] = {
            "projects": len(rows),
            "ratings": Counter(row["rating"] or "not published" for row in rows),
            "cost": round(sum(float(row["whole_life_cost_gbp_m"]) for row in rows if row["whole_life_cost_gbp_m"]), 2),
            "published": sum(1 for row in rows if row["whole_life_cost_gbp_m"]),
            "forecast": round(sum(float(row["year_forecast_gbp_m"]) for row in rows if row["year_forecast_gbp_m"]), 2),
            "without end": sum(1 for row in rows if not row["end_date"]),
        }
    return found
