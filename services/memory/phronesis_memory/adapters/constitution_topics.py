"""Topics in Postgres."""

from __future__ import annotations

from phronesis_contracts.constitution.kinds import Layer
from phronesis_postgres import Database

from ..constitution.topic_store import Listed, Run

_RUN = "SELECT computed_at, silhouette, unassigned FROM constitution_topic_runs WHERE tenant = $1"
_LISTED = """
    SELECT id, keywords, count(*) AS size, (array_agg(node_id ORDER BY closeness DESC, node_id))[1:$3] AS nearest
    FROM constitution_topics JOIN constitution_topic_nodes member ON member.tenant = $1 AND member.topic_id = id
    WHERE constitution_topics.tenant = $1 AND (cardinality($2::text[]) = 0 OR layer = ANY($2::text[]))
    GROUP BY id, keywords ORDER BY size DESC, id"""
_MEMBERS = """
    SELECT node_id, count(*) OVER () AS total FROM constitution_topic_nodes WHERE tenant = $1 AND topic_id = $2
    ORDER BY closeness DESC, node_id LIMIT $3"""
_ALL = "SELECT topic_id, array_agg(node_id) AS nodes FROM constitution_topic_nodes WHERE tenant = $1 GROUP BY topic_id"
_FORGET = "DELETE FROM constitution_topics WHERE tenant = $1"
_KEEP = "INSERT INTO constitution_topics (tenant, id, keywords) VALUES ($1, $2, $3)"
_KEEP_MEMBERS = """
    INSERT INTO constitution_topic_nodes (tenant, topic_id, node_id, layer, type, closeness)
    SELECT $1, $2, * FROM unnest($3::text[], $4::text[], $5::text[], $6::real[])"""
_KEEP_RUN = """
    INSERT INTO constitution_topic_runs (tenant, computed_at, silhouette, unassigned) VALUES ($1, $2, $3, $4)
    ON CONFLICT (tenant) DO UPDATE
    SET computed_at = excluded.computed_at, silhouette = excluded.silhouette, unassigned = excluded.unassigned"""
# Two that replace the topics of one tenant at once: the second waits for the first.
_ALONE = "SELECT pg_advisory_xact_lock(hashtextextended('constitution-topics ' || $1, 0))"


class PostgresTopics:
    """`TopicStore` on the tables of migration 0011."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def run(self, tenant: str) -> Run | None:
        """See `TopicStore`."""
        async with self._database.connection(tenant) as connection:
            row = await connection.fetchrow(_RUN, tenant)
        return Run(row["computed_at"], row["silhouette"], row["unassigned"]) if row else None

    async def listed(self, tenant: str, layers: frozenset[Layer], nearest: int) -> list[Listed]:
        """See `TopicStore`."""
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_LISTED, tenant, sorted(layers), nearest)
        return [Listed(row["id"], tuple(row["keywords"]), row["size"], tuple(row["nearest"])) for row in rows]

    async def members(self, tenant: str, topic_id: str, limit: int) -> tuple[list[str], int] | None:
        """See `TopicStore`."""
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_MEMBERS, tenant, topic_id, limit)
        return ([row["node_id"] for row in rows], rows[0]["total"]) if rows else None

    async def all(self, tenant: str) -> dict[str, frozenset[str]]:
        """See `TopicStore`."""
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_ALL, tenant)
        return {row["topic_id"]: frozenset(row["nodes"]) for row in rows}

    async def replace(self, tenant: str, run: Run) -> None:
        """See `TopicStore`."""
        async with self._database.transaction(tenant) as connection:
            await connection.execute(_ALONE, tenant)
            await connection.execute(_FORGET, tenant)
            for topic in run.topics:
                await connection.execute(_KEEP, tenant, topic.id, list(topic.keywords))
                columns = zip(*((one.id, one.layer, one.type, one.closeness) for one in topic.members), strict=True)
                await connection.execute(_KEEP_MEMBERS, tenant, topic.id, *(list(column) for column in columns))
            await connection.execute(_KEEP_RUN, tenant, run.computed_at, run.silhouette, run.unassigned)
