"""Questions over the twin in the store, asked as the reading user within limits; and the Cypher of chains and gaps."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from phronesis_contracts import TooLarge
from phronesis_contracts.twin import ChainNode, ChainPath, ChainRun, Level, Link, Links, LinksOf, RunChain, Survey, Surveyed

from ..bolt.driver import Bolt, Row, Transaction
from .chains import Hop, Walk, Walks
from .entities import NamedNode, fold, split_words
from .gaps import ChainReach, Direction, FoundTie, GapCase, NodeId, Tie, TieQuestion
from .ontology import Ontology
from .surveys import SurveyStatement, survey_statement
from .vocabulary import ALIAS_SEPARATOR, split_aliases

LAST_NODES = 200
"""Nodes that a walk stops at which are looked at further; a chain with more of them is none that anybody reads."""


@dataclass(frozen=True)
class ChainStatements:
    """The statements of one walk."""

    whole: str
    """Walks to the end, from every node of the first type."""
    whole_from: str
    """The same from one node."""
    part: str
    """Walks as far as they come, the longest first."""
    part_from: str
    """The same from one node."""
    reach: str
    """How far each of many nodes comes, without the paths between."""

    @property
    def texts(self) -> tuple[str, ...]:
        return self.whole, self.whole_from, self.part, self.part_from, self.reach


def chain_statements(walk: Walk) -> ChainStatements:
    """All statements of a walk."""
    return ChainStatements(
        whole=_whole_walk(walk, ""),
        whole_from=_whole_walk(walk, "n0.key = $key AND "),
        part=_partial_walk(walk, ""),
        part_from=_partial_walk(walk, "n0.key = $key AND "),
        reach=_reach_statement(walk),
    )


def _whole_walk(walk: Walk, start: str) -> str:
    path = f"(n0:{walk.begin})" + "".join(
        f"{_relationship_pattern(hop, i)}{_node_pattern(hop, i + 1)}" for i, hop in enumerate(walk.hops)
    )
    inside = " AND ".join(_place_condition(f"n{i}", "$year", "$level") for i in range(len(walk.hops) + 1))
    return f"MATCH {path} WHERE {start}{inside} {_return_clause(walk)} LIMIT $limit"


def _partial_walk(walk: Walk, start: str) -> str:
    lines = [f"MATCH (n0:{walk.begin}) WHERE {start}{_place_condition('n0', '$year', '$level')}"]
    for i, hop in enumerate(walk.hops):
        inside = _place_condition(f"n{i + 1}", "$year", "$level")
        lines.append(f"OPTIONAL MATCH (n{i}){_relationship_pattern(hop, i)}{_node_pattern(hop, i + 1)} WHERE {inside}")
    longest = ", ".join(f"n{i} IS NULL" for i in range(len(walk.hops), 0, -1))
    return "\n".join([*lines, f"{_return_clause(walk)} ORDER BY {longest}, n0.id LIMIT $limit"])


def _return_clause(walk: Walk) -> str:
    places = range(len(walk.hops) + 1)
    types = ", ".join(f"labels(n{i})[0]" for i in places)
    ids, names = (", ".join(f"n{i}.{name}" for i in places) for name in ("id", "name"))
    along = ", ".join(f"type(r{i})" for i in places[:-1])
    return f"RETURN [{types}] AS types, [{ids}] AS ids, [{names}] AS names, [{along}] AS relationships"


def _reach_statement(walk: Walk) -> str:
    """Level by level: a row for each start, with the nodes that it has come to and how many steps it has taken."""
    lines = [
        f"UNWIND $rows AS row MATCH (n:{walk.begin} {{key: row.key}}) WHERE {_place_condition('n', 'row.year', 'row.level')}",
        "WITH row, 0 AS hops, [n] AS last",
    ]
    for i, hop in enumerate(walk.hops):
        next = _place_condition("next", "row.year", "row.level")
        lines += [
            f"UNWIND last AS n OPTIONAL MATCH (n)-[:{'|'.join(hop.names)}]->(next:{'|'.join(hop.targets)})",
            f"WHERE hops = {i} AND {next}",
            "WITH row, hops, collect(DISTINCT n) AS here, collect(DISTINCT next) AS there",
            "WITH row, CASE WHEN size(there) = 0 THEN hops ELSE hops + 1 END AS hops, "
            "CASE WHEN size(there) = 0 THEN here ELSE there END AS last",
        ]
    return "\n".join(
        [*lines, f"RETURN row.question AS question, hops, [n IN last | n.key][..{LAST_NODES}] AS last LIMIT $limit"]
    )


def _relationship_pattern(hop: Hop, number: int) -> str:
    return f"-[r{number}:{'|'.join(hop.names)}]->"


def _node_pattern(hop: Hop, number: int) -> str:
    return f"(n{number}:{'|'.join(hop.targets)})"


def _place_condition(node: str, year: str, level: str) -> str:
    return f"{node}.tenant = $tenant AND {node}.year = {year} AND {node}.level = {level}"


def standing_statement(type: str) -> str:
    """In which years nodes are there, and on which level."""
    return (
        f"UNWIND $ids AS id MATCH (n:{type} {{id: id}}) WHERE n.tenant = $tenant "
        "RETURN n.id AS id, n.year AS year, n.level AS level LIMIT $limit"
    )


def ties_statement(type: str) -> str:
    """Which relationships nodes have inside each year, and on which levels their two ends stand.

    The level of neither end is fixed, so that what is joined at another level is seen.
    """
    return (
        f"UNWIND $rows AS row MATCH (a:{type} {{id: row.id}})-[r]-(b) "
        "WHERE a.tenant = $tenant AND b.tenant = $tenant AND b.year = a.year AND type(r) IN row.names "
        "AND (row.other IS NULL OR b.id = row.other) AND (row.out AND startNode(r) = a OR row.back AND endNode(r) = a) "
        # ArcadeDB finds nothing by `labels(b)[0] IN ...` in the condition itself.
        "WITH row, a, b, labels(b)[0] AS type WHERE type IN row.targets "
        "RETURN DISTINCT row.question AS question, a.id AS id, a.year AS year, a.level AS level, b.level AS other_level "
        "LIMIT $limit"
    )


def links_statement(type: str) -> str:
    """What nodes are linked to inside their year. Names of relationship types and of node types are parameters."""
    return (
        f"UNWIND $keys AS key MATCH (a:{type} {{key: key}})-[r]-(b) "
        "WHERE a.tenant = $tenant AND b.tenant = $tenant AND b.year = a.year AND type(r) IN $names "
        "AND ($out AND startNode(r) = a OR $back AND endNode(r) = a) "
        # ArcadeDB finds nothing by `labels(b)[0] IN ...` in the condition itself.
        "WITH a, b, type(r) AS relationship, startNode(r) = a AS forward, labels(b)[0] AS type WHERE type IN $types "
        "RETURN DISTINCT a.id AS id, a.year AS year, relationship, forward, type, "
        "b.id AS other, b.name AS name, b.level AS level ORDER BY id, relationship, type, name, other LIMIT $limit"
    )


K = TypeVar("K")

MOST_ROWS = 20_000
"""Rows that one statement may give; a question that has more is refused, never cut."""
MOST_NAMES = 300
"""Nodes whose names are weighed against each other."""
LONGEST_ANSWER = 1_500_000
"""Bytes; the broker takes no message over 2 MiB."""


class BoltReasoning:
    """The `ReasoningStore` over Bolt. The statements of all walks are made when the service starts."""

    def __init__(self, bolt: Bolt, ontology: Ontology, walks: Walks) -> None:
        self._bolt, self._ontology = bolt, ontology
        self._statements = {walk: chain_statements(walk) for of_chain in walks.values() for walk in of_chain.values()}
        self._beginnings = [next(iter(of_chain.values())) for of_chain in walks.values()]
        self._standing = {type: standing_statement(type) for type in ontology.nodes}
        self._ties = {type: ties_statement(type) for type in ontology.nodes}

    async def warm(self) -> None:
        """Let the store plan gap questions and chains, and show what it does not take. Raises `Unavailable`, `TimedOut`."""
        nobody: Row = {"tenant": "-", "year": 0, "level": "-", "key": "-", "limit": 1, "rows": [], "ids": []}
        chains = [text for walk in self._beginnings for text in self._statements[walk].texts]
        for text in (*self._standing.values(), *self._ties.values(), *chains):
            await self._rows(text, **nobody)

    async def survey(self, tenant: str, question: Survey) -> Surveyed:
        made = survey_statement(self._ontology, question)

        async def work(transaction: Transaction) -> tuple[list[Row], int]:
            limit = question.limit + (question.measure == "list")
            rows = await transaction.rows(made.rows, tenant=tenant, limit=limit, **made.parameters)
            # The page's own bounds are among the parameters; a store takes more of them than a statement names.
            [total] = await transaction.rows(made.total, tenant=tenant, **made.parameters)
            return rows, int(total["total"])

        rows, total = await self._bolt.read(work)
        surveyed = _survey_result(question, made, rows, total)
        if len(json.dumps(surveyed.rows, ensure_ascii=False).encode()) > LONGEST_ANSWER:
            raise TooLarge("the rows do not fit into one answer; ask for fewer", field="limit")
        return surveyed

    async def paths(self, tenant: str, walk: Walk, question: RunChain) -> ChainRun:
        texts = self._statements[walk]
        whole, part, given = texts.whole, texts.part, {"tenant": tenant, "year": question.year, "level": question.level.value}
        if question.start is not None:
            whole, part = texts.whole_from, texts.part_from
            given["key"] = f"{tenant}/{walk.begin}/{question.start}/{question.year}"
        text, rows = whole, await self._rows(whole, limit=question.limit + 1, **given)
        if not rows:
            text, rows = part, await self._rows(part, limit=question.limit + 1, **given)
        paths = tuple(_path_from_row(walk, row) for row in rows[: question.limit])
        return ChainRun(paths=paths, truncated=len(rows) > question.limit, statement=text)

    async def links(self, tenant: str, question: LinksOf) -> Links:
        keys: dict[str, list[str]] = defaultdict(list)
        for key in dict.fromkeys(question.keys):
            keys[key.split("/", 1)[0]].append(f"{tenant}/{key}")
        given: Row = {
            "names": list(question.relationships or self._ontology.relationships),
            "types": list(question.types or self._ontology.nodes),
            "out": question.forward is not False,
            "back": question.forward is not True,
            "limit": question.limit + 1,
        }
        statements = {type: links_statement(type) for type in keys}

        async def work(transaction: Transaction) -> list[Link]:
            found: list[Link] = []
            for type, text in statements.items():
                rows = await transaction.rows(text, tenant=tenant, keys=keys[type], **given)
                found += [_link_from_row(type, row) for row in rows]
            return found

        found = await self._bolt.read(work)
        kept = tuple(found[: question.limit])
        return Links(links=kept, truncated=len(found) > len(kept), statement="; ".join(statements.values()))

    async def named(self, tenant: str, types: Sequence[str], text: str, year: int | None) -> list[NamedNode]:
        of_year = "" if year is None else " AND n.year = $year"
        rows = await self._rows(
            f"MATCH (n:{'|'.join(types or self._ontology.nodes)}) WHERE n.tenant = $tenant{of_year} "
            "WITH n, toLower(n.name) AS name, toLower(n.id) AS id, toLower(coalesce(n.aliases, '')) AS also "
            f"WITH n, name, id, also, '{ALIAS_SEPARATOR}' + also + '{ALIAS_SEPARATOR}' AS each "
            "WITH n, CASE WHEN name = $text OR id = $text OR each CONTAINS $whole THEN 0 "
            "WHEN name CONTAINS $text OR also CONTAINS $text THEN 1 "
            "WHEN size($words) > 0 AND all(word IN $words WHERE name CONTAINS word OR also CONTAINS word) THEN 2 "
            "WHEN $text CONTAINS name OR $text CONTAINS id "
            f"OR (also <> '' AND any(one IN split(also, '{ALIAS_SEPARATOR}') WHERE $text CONTAINS one)) "
            "THEN 3 ELSE 4 END AS rank WHERE rank < 4 "
            "RETURN labels(n)[0] AS type, n.id AS id, n.name AS name, n.aliases AS aliases, n.year AS year, n.level AS level "
            "ORDER BY rank, size(n.name), n.id, n.year LIMIT $limit",
            tenant=tenant,
            year=year,
            text=fold(text),
            whole=f"{ALIAS_SEPARATOR}{fold(text)}{ALIAS_SEPARATOR}",
            words=list(split_words(text)),
            limit=MOST_NAMES,
        )
        return [
            NamedNode(row["type"], row["id"], row["name"], row["year"], Level(row["level"]), split_aliases(row["aliases"]))
            for row in rows
        ]

    async def standing(self, tenant: str, things: Iterable[NodeId]) -> Mapping[NodeId, Mapping[int, Level]]:
        ids: dict[str, list[str]] = defaultdict(list)
        for type, id in sorted(things):
            ids[type].append(id)
        found: dict[NodeId, dict[int, Level]] = defaultdict(dict)
        for type, row in await self._all({type: (self._standing[type], {"ids": of}) for type, of in ids.items()}, tenant):
            found[type, row["id"]][row["year"]] = Level(row["level"])
        return found

    async def reached(self, tenant: str, cases: Mapping[Walk, Sequence[GapCase]]) -> Mapping[str, ChainReach]:
        asked = {
            walk: (self._statements[walk].reach, {"rows": [_start_row(tenant, c) for c in of]}) for walk, of in cases.items()
        }
        begin = len(tenant) + 1
        return {
            row["question"]: ChainReach(row["hops"], tuple(sorted(key[begin:] for key in row["last"])))
            for _, row in await self._all(asked, tenant)
        }

    async def ties(self, tenant: str, asked: Mapping[Tie, Sequence[TieQuestion]]) -> Sequence[FoundTie]:
        rows: dict[str, list[Row]] = defaultdict(list)
        for tie, of in asked.items():
            rows[tie.source] += [_tie_row(tie, one) for one in of]
        found = await self._all({type: (self._ties[type], {"rows": of}) for type, of in rows.items()}, tenant)
        return [
            FoundTie(row["question"], type, row["id"], row["year"], Level(row["level"]), Level(row["other_level"]))
            for type, row in found
        ]

    async def _all(self, asked: Mapping[K, tuple[str, Mapping[str, object]]], tenant: str) -> list[tuple[K, Row]]:
        """The rows of several statements, each with what it was asked for.

        Each has a transaction and a time limit of its own: a store that has just started takes long to plan its first ones.
        """
        found = []
        for what, (text, given) in asked.items():
            rows = await self._rows(text, tenant=tenant, limit=MOST_ROWS, **given)
            if len(rows) == MOST_ROWS:
                raise TooLarge("these questions have too many answers at once; ask fewer")
            found += [(what, row) for row in rows]
        return found

    async def _rows(self, statement: str, /, **parameters: object) -> list[Row]:
        return await self._bolt.read(lambda transaction: transaction.rows(statement, **parameters))


def _link_from_row(type: str, row: Row) -> Link:
    return Link(
        node=f"{type}/{row['id']}/{row['year']}",
        relationship=row["relationship"],
        forward=row["forward"],
        type=row["type"],
        id=row["other"],
        name=row["name"],
        level=Level(row["level"]),
    )


def _start_row(tenant: str, case: GapCase) -> Row:
    key = f"{tenant}/{case.question.node.key}"
    return {"question": case.id, "key": key, "year": case.year, "level": case.level.value}


def _tie_row(tie: Tie, asked: TieQuestion) -> Row:
    return {
        "question": asked.question,
        "id": asked.id,
        "other": asked.other,
        "names": list(tie.names),
        "targets": list(tie.targets),
        "out": tie.direction is not Direction.IN,
        "back": tie.direction is not Direction.OUT,
    }


def _path_from_row(walk: Walk, row: Row) -> ChainPath:
    places = zip(row["types"], row["ids"], row["names"], strict=True)
    nodes = tuple(ChainNode(type=type, id=id, name=name) for type, id, name in places if id is not None)
    return ChainPath(
        nodes=nodes, relationships=tuple(row["relationships"][: len(nodes) - 1]), whole=len(nodes) == len(walk.hops) + 1
    )


def _survey_result(question: Survey, made: SurveyStatement, rows: Sequence[Row], total: int) -> Surveyed:
    if question.measure != "list":
        return Surveyed(rows=tuple(_group_from_row(question, row) for row in rows), total=total, statement=made.rows)
    page = tuple(
        {
            **{"id": row["id"], "name": row["name"], "year": row["year"]},
            **{x: row[f"p{i}"] for i, x in enumerate(made.shown)},
            **({"linked": row["linked"]} if question.via else {}),
        }
        for row in rows[: question.limit]
    )
    more = len(rows) > question.limit and "value" not in question.order
    return Surveyed(rows=page, total=total, next=f"{page[-1]['id']}/{page[-1]['year']}" if more else None, statement=made.rows)


def _group_from_row(question: Survey, row: Row) -> Row:
    groups = {("group", "group2")[i]: row[f"g{i}"] for i in range(len(question.group_by))}
    return {**groups, "value": row["value"], "known": row["known"], "unknown": row["nodes"] - row["known"]}
