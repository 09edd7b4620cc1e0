"""The Cypher of walks.

It is made of the ontology's names alone; every value is a parameter, and every node is held to tenant, year and level.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..chains import Hop, Walk

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
        """All of them."""
        return self.whole, self.whole_from, self.part, self.part_from, self.reach


def statements(walk: Walk) -> ChainStatements:
    """All statements of a walk."""
    return ChainStatements(
        whole=_whole(walk, ""),
        whole_from=_whole(walk, "n0.key = $key AND "),
        part=_part(walk, ""),
        part_from=_part(walk, "n0.key = $key AND "),
        reach=_reach(walk),
    )


def _whole(walk: Walk, start: str) -> str:
    path = f"(n0:{walk.begin})" + "".join(f"{_along(hop, i)}{_node(hop, i + 1)}" for i, hop in enumerate(walk.hops))
    inside = " AND ".join(_inside(f"n{i}", "$year", "$level") for i in range(len(walk.hops) + 1))
    return f"MATCH {path} WHERE {start}{inside} {_returned(walk)} LIMIT $limit"


def _part(walk: Walk, start: str) -> str:
    lines = [f"MATCH (n0:{walk.begin}) WHERE {start}{_inside('n0', '$year', '$level')}"]
    for i, hop in enumerate(walk.hops):
        inside = _inside(f"n{i + 1}", "$year", "$level")
        lines.append(f"OPTIONAL MATCH (n{i}){_along(hop, i)}{_node(hop, i + 1)} WHERE {inside}")
    longest = ", ".join(f"n{i} IS NULL" for i in range(len(walk.hops), 0, -1))
    return "\n".join([*lines, f"{_returned(walk)} ORDER BY {longest}, n0.id LIMIT $limit"])


def _returned(walk: Walk) -> str:
    places = range(len(walk.hops) + 1)
    types = ", ".join(f"labels(n{i})[0]" for i in places)
    ids, names = (", ".join(f"n{i}.{name}" for i in places) for name in ("id", "name"))
    along = ", ".join(f"type(r{i})" for i in places[:-1])
    return f"RETURN [{types}] AS types, [{ids}] AS ids, [{names}] AS names, [{along}] AS relationships"


def _reach(walk: Walk) -> str:
    """Level by level: a row for each start, with the nodes that it has come to and how many steps it has taken."""
    lines = [
        f"UNWIND $rows AS row MATCH (n:{walk.begin} {{key: row.key}}) WHERE {_inside('n', 'row.year', 'row.level')}",
        "WITH row, 0 AS hops, [n] AS last",
    ]
    for i, hop in enumerate(walk.hops):
        next = _inside("next", "row.year", "row.level")
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


def _along(hop: Hop, number: int) -> str:
    return f"-[r{number}:{'|'.join(hop.names)}]->"


def _node(hop: Hop, number: int) -> str:
    return f"(n{number}:{'|'.join(hop.targets)})"


def _inside(node: str, year: str, level: str) -> str:
    return f"{node}.tenant = $tenant AND {node}.year = {year} AND {node}.level = {level}"
