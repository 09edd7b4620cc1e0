-- depends: 0005-calendars

-- Calls that an agent wants to make and that a person has to allow first. What is shown of the arguments has its secrets
-- masked; the hash is that of the exact call.
CREATE TABLE approvals (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    user_id text NOT NULL,
    turn_id uuid NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    conversation_id uuid NOT NULL,
    agent text NOT NULL,
    step text NOT NULL,
    tool text NOT NULL,
    action text NOT NULL,
    arguments jsonb NOT NULL,
    digest text NOT NULL,
    risk text NOT NULL,
    irreversible boolean NOT NULL,
    reason text NOT NULL,
    status text NOT NULL DEFAULT 'pending',
    note text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    answered_at timestamptz,
    answered_by text,
    UNIQUE (turn_id, step)
);
-- A turn waits for one person's answer at a time.
CREATE UNIQUE INDEX approvals_pending ON approvals (turn_id) WHERE status = 'pending';
CREATE INDEX approvals_due ON approvals (expires_at) WHERE status = 'pending';
CREATE INDEX approvals_of_tenant ON approvals (tenant, created_at DESC);
ALTER TABLE approvals ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_the_tenant ON approvals USING (
    tenant = (SELECT nullif(current_setting('phronesis.tenant', true), ''))
    OR (SELECT current_setting('phronesis.tenant', true)) = '*'
);
CREATE POLICY on_own_parent ON approvals AS RESTRICTIVE USING (true)
    WITH CHECK ((SELECT true FROM turns WHERE turns.id = approvals.turn_id));

ALTER TABLE turns ADD COLUMN approval_id uuid;
-- Places that were given twice: to a turn that waited, and again when it went on.
ALTER TABLE conversations ADD COLUMN moved bigint NOT NULL DEFAULT 0;
