-- depends: 0013-labels 0014-policies

-- Forgettings of sources, as jobs and, once they are complete, as proofs: ids, counts and times, and no content. A restored
-- backup is made to forget them again.
CREATE TABLE source_forgettings (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    user_id text NOT NULL,
    principal jsonb NOT NULL,
    media text[] NOT NULL DEFAULT '{}',
    conversation_id uuid,
    origin jsonb,
    asked_in uuid,
    turns uuid[] NOT NULL DEFAULT '{}',
    linked text[] NOT NULL DEFAULT '{}',
    requested_at timestamptz NOT NULL DEFAULT now(),
    due timestamptz NOT NULL DEFAULT now(),
    before jsonb NOT NULL DEFAULT '{}',
    after jsonb NOT NULL DEFAULT '{}',
    clean_at timestamptz,
    completed_at timestamptz,
    digest text
);
CREATE INDEX source_forgettings_due ON source_forgettings (due) WHERE completed_at IS NULL;
CREATE INDEX source_forgettings_of_user ON source_forgettings (tenant, user_id, requested_at DESC);
ALTER TABLE source_forgettings ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_the_tenant ON source_forgettings USING (
    tenant = (SELECT nullif(current_setting('phronesis.tenant', true), ''))
    OR (SELECT current_setting('phronesis.tenant', true)) = '*'
);
