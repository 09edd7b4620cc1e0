"""The sample portfolio as batches for the graph: 788 project reports of 2020 to 2023 as the ontology's portfolio has them.

What the published table leaves open is decided here, and nowhere else:

- An empty field is not published: the property is absent, never zero. A project without a rating gets no risk.
- Departments that differ in case alone are one, in capitals (MOJ and MoJ). A report of two departments ("DEFRA & DFT")
  is delivered by both and stands in the share of the first. Departments that were renamed or merged stay what they were
  called in the year. Their names in full are aliases.
- A project is `Closed` where its published end lies before the day that the report was drawn up, else `Active`: what is
  reported on is running until its published end says otherwise.
- The risk of a rating stands on the ontology's scale of 1 to 10, where more than 7 is high: Green 1, Amber/Green 3,
  Amber 5, Amber/Red 8, Red 10. Red and Amber/Red are the ratings that say that delivery is in doubt.
- Typographic quotes and dashes that the published tables hold as control characters are put right.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files

import yaml

from phronesis_contracts.twin import Level, NodeRef, Upsert, UpsertNode, UpsertRelationship

LICENCE = "Contains public sector information licensed under the Open Government Licence v3.0."
"""To be shown wherever the data is."""

NODES_OF_A_BATCH = 500
BYTES_OF_A_BATCH = 400_000
"""As JSON; a batch may have 1 MB, and smaller ones show progress."""

RISK = {"Green": 1.0, "Amber/Green": 3.0, "Amber": 5.0, "Amber/Red": 8.0, "Red": 10.0}
_TEXTS = ("aims", "rating_comment", "schedule_comment", "budget_comment")
_AMOUNTS = {
    "whole_life_cost_gbp_m": "whole_life_cost",
    "year_baseline_gbp_m": "year_baseline",
    "year_forecast_gbp_m": "year_forecast",
}
_PUNCTUATION = {code: bytes([code]).decode("cp1252", "ignore") for code in range(0x80, 0xA0)}


@dataclass(frozen=True)
class _Part:
    """Nodes with the relationships that need them; a batch takes a part whole."""

    nodes: tuple[UpsertNode, ...]
    relationships: tuple[UpsertRelationship, ...]

    @property
    def size(self) -> int:
        return sum(len(item.model_dump_json().encode()) + 1 for item in (*self.nodes, *self.relationships))


def batches() -> list[Upsert]:
    """The portfolio, in the order in which it has to be written: a year's hierarchy before its projects, the newest year first.

    Each batch has at most 500 nodes and 400 kB. Writing one twice changes nothing.
    """
    return list(_pack(part for year in _years() for part in _parts(year)))


def count_nodes() -> int:
    """How many nodes all batches hold together."""
    return sum(len(batch.nodes) for batch in batches())


def _years() -> Iterator[list[dict[str, str]]]:
    rows = read_rows()
    for year in sorted({row["year"] for row in rows}, reverse=True):
        yield [row for row in rows if row["year"] == year]


def read_rows() -> list[dict[str, str]]:
    """The rows as published, with their punctuation put right."""
    file = files(__package__).joinpath("portfolio_2020_2023.csv")
    text = io.StringIO(file.read_bytes().decode("utf-8"), newline="")
    return [{name: value.translate(_PUNCTUATION).strip() for name, value in row.items()} for row in csv.DictReader(text)]


def split_departments(published: str) -> tuple[str, ...]:
    """The departments that `published` names, spelt alike."""
    return tuple(part.strip().upper() for part in published.split("&"))


@cache
def read_aliases(what: str) -> dict[str, tuple[str, ...]]:
    """What `departments` or `categories` are called beside the names that the rows have."""
    listed = yaml.safe_load(files(__package__).joinpath("aliases.yaml").read_text(encoding="utf-8"))[what]
    return {name: tuple(names) for name, names in listed.items()}


def status_at(year: int, end: str) -> str:
    """`Closed` or `Active`, by the rule above; `end` is an ISO date, or empty where it is not published."""
    # The report of 2020 was drawn up half a year early.
    drawn_up = date(2019, 9, 30) if year == 2020 else date(year, 3, 31)
    return "Closed" if end and date.fromisoformat(end) < drawn_up else "Active"


def _parts(rows: list[dict[str, str]]) -> Iterator[_Part]:
    yield _hierarchy(rows)
    for row in rows:
        yield _project(row)


def _hierarchy(rows: list[dict[str, str]]) -> _Part:
    """The year's departments, categories and departments' shares of categories."""
    year, full = int(rows[0]["year"]), read_aliases("departments")
    nodes = [
        UpsertNode(type="SectorGovEntity", id=name, year=year, name=name, aliases=full.get(name, ()), level=Level.L1)
        for name in sorted({name for row in rows for name in split_departments(row["department"])})
    ]
    for category in sorted({row["category"] for row in rows}):
        also = read_aliases("categories").get(category, ())
        nodes.append(_group(_slug(category), year, category, Level.L1, category).model_copy(update={"aliases": also}))
    relationships = []
    for category, lead in sorted({(row["category"], split_departments(row["department"])[0]) for row in rows}):
        share = _group(f"{_slug(category)}.{lead}", year, f"{lead}: {category}", Level.L2, category)
        nodes.append(share)
        parent = NodeRef(type="EntityProject", id=_slug(category), year=year)
        relationships.append(_relationship("PARENT_OF", parent, share))
        relationships.append(_relationship("DELIVERED_BY", share, _department(lead, year)))
    return _Part(tuple(nodes), tuple(relationships))


def _project(row: dict[str, str]) -> _Part:
    year, names = int(row["year"]), split_departments(row["department"])
    project = UpsertNode(
        type="EntityProject",
        id=row["project_number"],
        year=year,
        name=row["project_name"],
        level=Level.L3,
        properties=dict(_properties(row)),
    )
    share = NodeRef(type="EntityProject", id=f"{_slug(row['category'])}.{names[0]}", year=year)
    relationships = [_relationship("PARENT_OF", share, project)]
    relationships += [_relationship("DELIVERED_BY", project, _department(name, year)) for name in names]
    if not row["rating"]:
        return _Part((project,), tuple(relationships))
    risk = UpsertNode(
        type="EntityRisk",
        id=row["project_number"],
        year=year,
        name=f"Delivery confidence of {row['project_name']}",
        level=Level.L3,
        properties={"risk_score": RISK[row["rating"]], "risk_category": "delivery confidence"},
    )
    return _Part((project, risk), (*relationships, _relationship("RATED", project, risk)))


def _properties(row: dict[str, str]) -> Iterator[tuple[str, str | float]]:
    yield "category", row["category"]
    yield "status", status_at(int(row["year"]), row["end_date"])
    yield "facts", _facts(row)
    for name in ("rating", "start_date", "end_date", *_TEXTS):
        if row[name]:
            yield name, row[name]
    for published, name in _AMOUNTS.items():
        if row[published]:
            yield name, float(row[published])


def _facts(row: dict[str, str]) -> str:
    """What the columns state, as sentences, so that it is found by meaning like the departments' own text.

    The project is not named: its name goes before every text that is embedded, and a text that repeats it would be
    found before those that say more.
    """
    year = row["year"]
    rating = row["rating"] or "not published"
    said = [f"Delivered by the department {' and '.join(split_departments(row['department']))}; category {row['category']}."]
    said.append(f"Delivery confidence rating in {year}: {rating}.")
    if row["start_date"] and row["end_date"]:
        said.append(f"Start {row['start_date']}, end {row['end_date']}, as reported in {year}.")
    if row["whole_life_cost_gbp_m"]:
        said.append(f"Whole-life cost as reported in {year}: £{float(row['whole_life_cost_gbp_m']):,.0f} million.")
    return " ".join(said)


def _group(id: str, year: int, name: str, level: Level, category: str) -> UpsertNode:
    return UpsertNode(type="EntityProject", id=id, year=year, name=name, level=level, properties={"category": category})


def _department(name: str, year: int) -> NodeRef:
    return NodeRef(type="SectorGovEntity", id=name, year=year)


def _relationship(type: str, source: NodeRef, target: NodeRef) -> UpsertRelationship:
    ends = (NodeRef(type=ref.type, id=ref.id, year=ref.year) for ref in (source, target))
    return UpsertRelationship(type=type, source=next(ends), target=next(ends))


def _slug(text: str) -> str:
    return "-".join(text.lower().split())


def _pack(parts: Iterable[_Part]) -> Iterator[Upsert]:
    nodes: list[UpsertNode] = []
    relationships: list[UpsertRelationship] = []
    size = 0
    for part in parts:
        if nodes and (len(nodes) + len(part.nodes) > NODES_OF_A_BATCH or size + part.size > BYTES_OF_A_BATCH):
            yield Upsert(nodes=tuple(nodes), relationships=tuple(relationships))
            nodes, relationships, size = [], [], 0
        nodes += part.nodes
        relationships += part.relationships
        size += part.size
    if nodes:
        yield Upsert(nodes=tuple(nodes), relationships=tuple(relationships))
