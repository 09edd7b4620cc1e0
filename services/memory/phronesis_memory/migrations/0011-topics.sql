-- depends: 0010-retrievals

-- Topics of the constitutional graph as they were found last. Which topic a node is of stands with its vector; here is how close
-- it is to the middle of it.
CREATE TABLE constitution_topics (
    tenant text NOT NULL,
    id text NOT NULL,
    keywords text[] NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE TABLE constitution_topic_nodes (
    tenant text NOT NULL,
    topic_id text NOT NULL,
    node_id text NOT NULL,
    layer text NOT NULL,
    type text NOT NULL,
    closeness real NOT NULL,
    PRIMARY KEY (tenant, topic_id, node_id),
    FOREIGN KEY (tenant, topic_id) REFERENCES constitution_topics ON DELETE CASCADE
);
CREATE INDEX constitution_topic_nodes_closeness ON constitution_topic_nodes (tenant, topic_id, closeness DESC);

-- When they were found, and how well they stand apart.
CREATE TABLE constitution_topic_runs (
    tenant text PRIMARY KEY,
    computed_at timestamptz NOT NULL,
    silhouette double precision NOT NULL,
    unassigned integer NOT NULL
);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['topics', 'topic_nodes', 'topic_runs'] LOOP
        EXECUTE format('ALTER TABLE constitution_%s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
        EXECUTE format($policy$
            CREATE POLICY of_the_tenant ON constitution_%s USING (
                tenant = (SELECT nullif(current_setting('phronesis.tenant', true), ''))
                OR (SELECT current_setting('phronesis.tenant', true)) = '*'
            )
        $policy$, name);
    END LOOP;
END
$$;
