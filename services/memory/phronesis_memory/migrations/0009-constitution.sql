-- depends: 0008-rooms

-- What is known of the vector of each node of the constitutional graph, and the text that it is made from. Types that are never
-- embedded have no row. The queue of what is to be embedded is the column due: without a time there is nothing to do.
CREATE TABLE constitution_nodes (
    tenant text NOT NULL,
    node_id text NOT NULL,
    type text NOT NULL,
    layer text NOT NULL,
    tier smallint NOT NULL,
    lifecycle text NOT NULL,
    title text NOT NULL,
    version bigint NOT NULL,
    born timestamptz NOT NULL,
    changed_at timestamptz NOT NULL,
    body text NOT NULL,
    text_hash text NOT NULL,
    tokens integer NOT NULL,
    state text NOT NULL,
    due timestamptz,
    attempts smallint NOT NULL DEFAULT 0,
    problem text,
    model text,
    dimension integer,
    embedded_hash text,
    embedded_at timestamptz,
    topic text,
    PRIMARY KEY (tenant, node_id)
);
CREATE INDEX constitution_nodes_due ON constitution_nodes (tier, due) WHERE due IS NOT NULL;
CREATE INDEX constitution_nodes_waiting ON constitution_nodes (tenant, layer) WHERE state IN ('pending', 'failed');

-- The vectors, apart: a row of an index on them is written anew only when a vector or a filter changes. An index outside this
-- database is made anew from here.
CREATE TABLE constitution_vectors (
    tenant text NOT NULL,
    node_id text NOT NULL,
    type text NOT NULL,
    layer text NOT NULL,
    lifecycle text NOT NULL,
    topic text,
    model text NOT NULL,
    dimension integer NOT NULL,
    embedding halfvec NOT NULL,
    PRIMARY KEY (tenant, node_id),
    FOREIGN KEY (tenant, node_id) REFERENCES constitution_nodes ON DELETE CASCADE,
    CHECK (vector_dims(embedding) = dimension)
);
CREATE INDEX constitution_vectors_scope ON constitution_vectors (tenant, lifecycle, layer, type);
CREATE INDEX constitution_vectors_384 ON constitution_vectors
    USING hnsw ((embedding::halfvec(384)) halfvec_cosine_ops) WHERE dimension = 384;
CREATE INDEX constitution_vectors_768 ON constitution_vectors
    USING hnsw ((embedding::halfvec(768)) halfvec_cosine_ops) WHERE dimension = 768;
CREATE INDEX constitution_vectors_1024 ON constitution_vectors
    USING hnsw ((embedding::halfvec(1024)) halfvec_cosine_ops) WHERE dimension = 1024;
CREATE INDEX constitution_vectors_1536 ON constitution_vectors
    USING hnsw ((embedding::halfvec(1536)) halfvec_cosine_ops) WHERE dimension = 1536;
CREATE INDEX constitution_vectors_3072 ON constitution_vectors
    USING hnsw ((embedding::halfvec(3072)) halfvec_cosine_ops) WHERE dimension = 3072;

-- Two nodes of one type that say nearly the same, as it was when the later one of them was embedded.
CREATE TABLE constitution_pairs (
    tenant text NOT NULL,
    one_id text NOT NULL,
    other_id text NOT NULL,
    cosine real NOT NULL,
    PRIMARY KEY (tenant, one_id, other_id),
    FOREIGN KEY (tenant, one_id) REFERENCES constitution_nodes ON DELETE CASCADE,
    FOREIGN KEY (tenant, other_id) REFERENCES constitution_nodes ON DELETE CASCADE,
    CHECK (one_id < other_id)
);
CREATE INDEX constitution_pairs_other ON constitution_pairs (tenant, other_id);

-- How a node changed. It stays when the node goes, without the values: those go with it. An id that is given again begins anew,
-- which its time of birth tells apart.
CREATE TABLE constitution_versions (
    tenant text NOT NULL,
    node_id text NOT NULL,
    born timestamptz NOT NULL,
    version bigint NOT NULL,
    type text NOT NULL,
    layer text NOT NULL,
    operation text NOT NULL,
    at timestamptz NOT NULL,
    actor text NOT NULL,
    changed text[] NOT NULL,
    fields jsonb NOT NULL DEFAULT '{}',
    drift real,
    PRIMARY KEY (tenant, node_id, born, version)
);
CREATE INDEX constitution_versions_drift ON constitution_versions (tenant, at) WHERE drift IS NOT NULL;

-- What an index outside this database has still to be told; empty where the vectors are searched in the table above.
CREATE TABLE constitution_untold (
    tenant text NOT NULL,
    node_id text NOT NULL,
    due timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, node_id)
);
CREATE INDEX constitution_untold_due ON constitution_untold (due);

-- When the batches are due. Whoever locks a row runs it, so that each runs once, whatever is killed.
CREATE TABLE constitution_schedule (
    name text PRIMARY KEY,
    next_at timestamptz NOT NULL,
    last_at timestamptz
);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['nodes', 'vectors', 'pairs', 'versions', 'untold'] LOOP
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
