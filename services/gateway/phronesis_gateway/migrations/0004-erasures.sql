-- depends: 0003-tenants

-- Erasures of users, as jobs and, once they are complete, as proofs: counts and times, and no content.
CREATE TABLE erasures (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    user_id text NOT NULL,
    requested_by text NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT now(),
    before jsonb NOT NULL DEFAULT '{}',
    after jsonb NOT NULL DEFAULT '{}',
    kept jsonb NOT NULL DEFAULT '{}',
    clean_at timestamptz,
    completed_at timestamptz,
    digest text,
    due timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX erasures_open ON erasures (tenant, user_id) WHERE completed_at IS NULL;
CREATE INDEX erasures_due ON erasures (due) WHERE completed_at IS NULL;
CREATE INDEX erasures_of_tenant ON erasures (tenant, requested_at DESC);

-- For how many days a tenant keeps what; what is not named it keeps for ever.
CREATE TABLE retention (
    tenant text PRIMARY KEY,
    days jsonb NOT NULL,
    updated_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    next_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX retention_next ON retention (next_at);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['erasures', 'retention'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
        EXECUTE format($policy$
            CREATE POLICY of_the_tenant ON %I USING (
                tenant = (SELECT nullif(current_setting('phronesis.tenant', true), ''))
                OR (SELECT current_setting('phronesis.tenant', true)) = '*'
            )
        $policy$, name);
    END LOOP;
END
$$;
