"""What the nodes of one tenant's twin are called, and which values they have, read from the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from phronesis_contracts import BadRequest
from phronesis_contracts.ontology import AskVocabulary, PropertyValues, ValueCount
from phronesis_contracts.twin import Level

from ..bolt.driver import Bolt, Row, Transaction
from .ontology import Kind, NodeType, Ontology
from .vocabulary import NamedRow, NamePage, NodeSummary, split_aliases

MOST_VALUES = 200
"""Values of one property that are told."""
LONGEST_VALUE = 200
"""Characters of a value that is told; a longer one is no name of anything."""
MOST_VALUE_BYTES = 400_000
"""Of all values of a page."""
MOST_NAME_BYTES = 700_000
"""Of all names of a page; with the ontology and the values they fit into one answer."""


class BoltVocabulary:
    """The `VocabularyStore` over Bolt: the keys of a tenant's nodes of a type lie side by side, in the order of an index."""

    def __init__(self, bolt: Bolt) -> None:
        self._bolt = bolt

    async def summary(self, tenant: str, ontology: Ontology) -> NodeSummary:
        async def work(transaction: Transaction) -> NodeSummary:
            years: set[int] = set()
            values: list[PropertyValues] = []
            room = MOST_VALUE_BYTES
            for node in [ontology.nodes[type] for type in await _present(transaction, tenant, ontology.nodes)]:
                [counts] = await transaction.rows(_count_statement(node), **_bounds(tenant, node.name))
                years.update(counts["years"])
                for i, name in enumerate(node.properties):
                    if not counts[f"p{i}"]:
                        continue
                    found = PropertyValues(type=node.name, property=name, known=counts[f"p{i}"])
                    if node.properties[name].kind is Kind.STRING:
                        rows = await transaction.rows(_values_statement(node, name), **_bounds(tenant, node.name))
                        found = _with_values(found, rows, room)
                        room -= sum(len(each.value.encode()) for each in found.values)
                    values.append(found)
            return NodeSummary(tuple(sorted(years)), tuple(values))

        return await self._bolt.read(work)

    async def names(self, tenant: str, ontology: Ontology, asked: AskVocabulary) -> NamePage:
        after = _check_position(ontology, asked.after)

        async def work(transaction: Transaction) -> list[NamedRow]:
            rows: list[NamedRow] = []
            left = [type for type in sorted(ontology.nodes) if after is None or type >= after.split("/", 1)[0]]
            for type in await _present(transaction, tenant, left):
                if len(rows) > asked.limit:
                    break
                bounds = _bounds(tenant, type)
                if after is not None and after.startswith(f"{type}/"):
                    bounds["after"] = f"{tenant}/{after}"
                limit = asked.limit + 1 - len(rows)
                [found] = await transaction.rows(_names_statement(type), **bounds, limit=limit)
                rows += _named_rows(type, found["nodes"])
            return rows

        rows = await self._bolt.read(work)
        page = tuple(_fitting(rows[: asked.limit]))
        if len(page) == len(rows):
            return NamePage(page, None)
        last = page[-1]
        return NamePage(page, f"{last.type}/{last.id}/{last.year}")


def _check_position(ontology: Ontology, after: str | None) -> str | None:
    if after is not None and after.split("/", 1)[0] not in ontology.nodes:
        raise BadRequest("this is the `next` of no page; begin again without it", field="after")
    return after


async def _present(transaction: Transaction, tenant: str, types: Iterable[str]) -> list[str]:
    """The types of which there are nodes: most twins have nodes of a few."""
    asked = list(types)
    bounds = {
        f"{end}{i}": value for i, type in enumerate(asked) for end, value in _bounds(tenant, type).items() if end != "tenant"
    }
    parts = (
        f"MATCH (n:{type}) WHERE n.key > $after{i} AND n.key < $before{i} AND n.tenant = $tenant WITH n LIMIT 1 RETURN {i} AS i"
        for i, type in enumerate(asked)
    )
    rows = await transaction.rows(" UNION ALL ".join(parts), tenant=tenant, **bounds) if asked else []
    found = {row["i"] for row in rows}
    return [type for i, type in enumerate(asked) if i in found]


def _bounds(tenant: str, type: str) -> Row:
    # `0` is the character after `/`: between these two are the keys of the tenant's nodes of the type.
    return {"tenant": tenant, "after": f"{tenant}/{type}/", "before": f"{tenant}/{type}0"}


def _inside(type: str) -> str:
    return f"MATCH (n:{type}) WHERE n.key > $after AND n.key < $before AND n.tenant = $tenant"


def _count_statement(node: NodeType) -> str:
    counts = "".join(f", count(n.{name}) AS p{i}" for i, name in enumerate(node.properties))
    return f"{_inside(node.name)} RETURN collect(DISTINCT n.year) AS years{counts}"


def _values_statement(node: NodeType, name: str) -> str:
    return (
        f"{_inside(node.name)} AND n.{name} IS NOT NULL "
        f"RETURN n.{name} AS value, count(n) AS nodes ORDER BY nodes DESC, value LIMIT {MOST_VALUES + 1}"
    )


def _names_statement(type: str) -> str:
    # One row of lists: a store takes longer to hand out a thousand rows than to read them.
    return (
        f"{_inside(type)} WITH n ORDER BY n.key LIMIT $limit "
        "RETURN collect([n.key, n.id, n.name, n.aliases, n.year, n.level]) AS nodes"
    )


def _named_rows(type: str, nodes: Iterable[list[Any]]) -> Iterator[NamedRow]:
    for _, id, name, aliases, year, level in sorted(nodes, key=lambda node: str(node[0])):
        yield NamedRow(type, id, name, split_aliases(aliases), year, Level(level))


def _with_values(found: PropertyValues, rows: Sequence[Row], room: int) -> PropertyValues:
    kept: list[ValueCount] = []
    for row in rows[:MOST_VALUES]:
        value = str(row["value"])
        room -= len(value.encode())
        if len(value) <= LONGEST_VALUE and room >= 0:
            kept.append(ValueCount(value=value, nodes=row["nodes"]))
    return found.model_copy(update={"values": tuple(kept), "cut": len(kept) < len(rows)})


def _fitting(rows: Sequence[NamedRow]) -> Iterator[NamedRow]:
    size = 0
    for i, row in enumerate(rows):
        size += sum(len(text.encode()) for text in (row.id, row.name, *row.aliases))
        if size > MOST_NAME_BYTES and i:
            return
        yield row
