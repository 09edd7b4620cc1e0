-- depends: 0009-learning

-- A background task: it is claimed from a share of the slots of its own.
ALTER TABLE turns ADD COLUMN background boolean NOT NULL DEFAULT false;
CREATE INDEX turns_of_user_tasks ON turns (tenant, user_id, created_at DESC) WHERE background;

-- What is seen of a task; made from its journal, and made again by whoever takes it over.
CREATE TABLE task_states (
    turn_id uuid PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
    tenant text NOT NULL,
    state jsonb NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE task_states ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_the_tenant ON task_states USING (
    tenant = (SELECT nullif(current_setting('phronesis.tenant', true), ''))
    OR (SELECT current_setting('phronesis.tenant', true)) = '*'
);

-- Decompositions that worked, by what goals have in common; strategies are elsewhere.
CREATE TABLE task_templates (
    tenant text NOT NULL,
    user_id text NOT NULL,
    signature text NOT NULL,
    turn_id uuid NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    plan jsonb NOT NULL,
    version int NOT NULL DEFAULT 1,
    hits int NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, user_id, signature)
);
CREATE INDEX task_templates_of_turn ON task_templates (turn_id);
ALTER TABLE task_templates ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_the_tenant ON task_templates USING (
    tenant = (SELECT nullif(current_setting('phronesis.tenant', true), ''))
    OR (SELECT current_setting('phronesis.tenant', true)) = '*'
);
