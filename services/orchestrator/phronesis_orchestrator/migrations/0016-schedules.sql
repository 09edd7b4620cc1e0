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

-- What background tasks wait for without a slot: a date, or their owner's answer.
CREATE TABLE task_waits (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    user_id text NOT NULL,
    turn_id uuid NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    step text NOT NULL,
    kind text NOT NULL,
    question text NOT NULL DEFAULT '',
    choices text[] NOT NULL DEFAULT '{}',
    due_at timestamptz NOT NULL,
    status text NOT NULL DEFAULT 'pending',
    answer text,
    created_at timestamptz NOT NULL DEFAULT now(),
    ended_at timestamptz,
    UNIQUE (turn_id, step)
);
-- A task waits for one thing at a time.
CREATE UNIQUE INDEX task_waits_pending ON task_waits (turn_id) WHERE status = 'pending';
CREATE INDEX task_waits_due ON task_waits (due_at) WHERE status = 'pending';
CREATE INDEX task_waits_of_user ON task_waits (tenant, user_id);
ALTER TABLE task_waits ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_the_tenant ON task_waits USING (
    tenant = (SELECT nullif(current_setting('phronesis.tenant', true), ''))
    OR (SELECT current_setting('phronesis.tenant', true)) = '*'
);
CREATE POLICY on_own_parent ON task_waits AS RESTRICTIVE USING (true)
    WITH CHECK ((SELECT true FROM turns WHERE turns.id = task_waits.turn_id));
