-- depends: 0009-constitution

-- What was searched in the constitutional graph, and how that went. Rows go when their time is over; the words of a question are
-- kept only where the platform is set to keep them.
CREATE TABLE constitution_retrievals (
    tenant text NOT NULL,
    id uuid NOT NULL,
    at timestamptz NOT NULL,
    tool text NOT NULL,
    actor text NOT NULL,
    question text,
    question_hash text NOT NULL,
    arguments jsonb NOT NULL,
    milliseconds real NOT NULL,
    outcome text NOT NULL,
    tokens integer NOT NULL,
    nodes integer NOT NULL,
    layers jsonb NOT NULL,
    cached boolean NOT NULL,
    degraded text[] NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX constitution_retrievals_at ON constitution_retrievals (tenant, at);

-- What people said of the answers: of one node, or of all where the node is empty. Whoever says something else later, means that.
CREATE TABLE constitution_ratings (
    tenant text NOT NULL,
    retrieval_id uuid NOT NULL,
    node_id text NOT NULL,
    rater text NOT NULL,
    relevant boolean NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, retrieval_id, node_id, rater),
    FOREIGN KEY (tenant, retrieval_id) REFERENCES constitution_retrievals ON DELETE CASCADE
);

-- Defaults of the searches that a tenant has changed.
CREATE TABLE constitution_tuning (
    tenant text NOT NULL,
    name text NOT NULL,
    value double precision NOT NULL,
    PRIMARY KEY (tenant, name)
);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['retrievals', 'ratings', 'tuning'] LOOP
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
