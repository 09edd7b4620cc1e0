"""The Cypher that gap questions need beside walks: one fixed statement for each node type, so that the store keeps its plan."""

from __future__ import annotations


def standing_statement(type: str) -> str:
    """In which years nodes are there, and on which level."""
    return (
        f"UNWIND $ids AS id MATCH (n:{type} {{id: id}}) WHERE n.tenant = $tenant "
        "RETURN n.id AS id, n.year AS year, n.level AS level LIMIT $limit"
    )


def ties_statement(type: str) -> str:
    """Which relationships nodes have inside each year, and on which levels their two ends stand.

    The level of neither end is fixed, so that what is joined at another level is seen (NC-069).
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
