-- depends: 0015-source-forgettings

-- Goals that are worked on at the times of a cron expression, with the rights that their owner had when last seen.
CREATE TABLE schedules (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    user_id text NOT NULL,
    agent text NOT NULL,
    goal text NOT NULL,
    budget jsonb NOT NULL,
    cron text NOT NULL,
    time_zone text NOT NULL,
    principal jsonb NOT NULL,
    key_id text,
    rights_at timestamptz NOT NULL DEFAULT now(),
    enabled boolean NOT NULL,
    paused jsonb,
    next_at timestamptz,
    not_before timestamptz,
    runs int NOT NULL DEFAULT 0,
    skipped int NOT NULL DEFAULT 0,
    last_turn uuid,
    last_due timestamptz,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX schedules_due ON schedules (next_at) WHERE enabled;
CREATE INDEX schedules_of_user ON schedules (tenant, user_id, created_at);
CREATE INDEX schedules_of_key ON schedules (key_id) WHERE enabled;
ALTER TABLE schedules ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_the_tenant ON schedules USING (
    tenant = (SELECT nullif(current_setting('phronesis.tenant', true), ''))
    OR (SELECT current_setting('phronesis.tenant', true)) = '*'
);
