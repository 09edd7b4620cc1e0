-- depends: 0013-labels

-- What agents of a tenant may do because of untrusted texts: each version whole, the highest is in force.
CREATE TABLE action_policies (
    tenant text NOT NULL,
    version int NOT NULL CHECK (version > 0),
    rules jsonb NOT NULL,
    egress text[] NOT NULL,
    approval_seconds double precision NOT NULL,
    restores int,
    changed_at timestamptz NOT NULL DEFAULT now(),
    changed_by text NOT NULL,
    PRIMARY KEY (tenant, version)
);
ALTER TABLE action_policies ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_the_tenant ON action_policies USING (
    tenant = (SELECT nullif(current_setting('phronesis.tenant', true), ''))
    OR (SELECT current_setting('phronesis.tenant', true)) = '*'
);

-- Why a person is asked, and what the answer may be given for. Who waits from before is asked because of the risk alone.
ALTER TABLE approvals ADD COLUMN effect text NOT NULL DEFAULT 'write';
ALTER TABLE approvals ADD COLUMN because jsonb NOT NULL DEFAULT '[]';
ALTER TABLE approvals ADD COLUMN host text NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN grantable boolean NOT NULL DEFAULT false;
ALTER TABLE approvals ADD COLUMN scope text NOT NULL DEFAULT 'once';

-- Calls whose arguments stand in the audit trail, for as long as their turns do.
CREATE INDEX audit_of_turn ON audit ((arguments ->> 'turn_id')) WHERE arguments ? 'because';

-- Consents that cover later calls, in one conversation or, without one, in all of the user's.
CREATE TABLE approval_grants (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    user_id text NOT NULL,
    conversation_id uuid,
    approval_id uuid NOT NULL,
    tool text NOT NULL,
    effect text NOT NULL,
    kinds text[] NOT NULL,
    host text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    revoked_at timestamptz,
    revoked_by text
);
CREATE INDEX approval_grants_in_force ON approval_grants (tenant, user_id, tool) WHERE revoked_at IS NULL;
CREATE INDEX approval_grants_of_tenant ON approval_grants (tenant, created_at DESC);
CREATE INDEX approval_grants_of_conversation ON approval_grants (conversation_id) WHERE conversation_id IS NOT NULL;
ALTER TABLE approval_grants ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_the_tenant ON approval_grants USING (
    tenant = (SELECT nullif(current_setting('phronesis.tenant', true), ''))
    OR (SELECT current_setting('phronesis.tenant', true)) = '*'
);
