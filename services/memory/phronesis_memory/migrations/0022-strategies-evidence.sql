-- depends: 0021-derived

-- What a strategy is good for, and what its user did to it. Its counts before this version are of outcomes that nobody verified: they
-- stay for the version before, and count for nothing here.
ALTER TABLE strategies ADD COLUMN agent text NOT NULL DEFAULT '';
ALTER TABLE strategies ADD COLUMN kind text NOT NULL DEFAULT '';
ALTER TABLE strategies ADD COLUMN ontology text NOT NULL DEFAULT '';
ALTER TABLE strategies ADD COLUMN withdrawn boolean NOT NULL DEFAULT false;
ALTER TABLE strategies ADD COLUMN edited_at timestamptz;

-- Tasks whose outcome a checker or a person verified: its own, and those that used it. A strategy without an accepted one is not
-- recalled.
CREATE TABLE strategy_evidence (
    item_id uuid NOT NULL REFERENCES strategies ON DELETE CASCADE,
    task_id text NOT NULL,
    tenant text NOT NULL,
    owner text NOT NULL,
    accepted boolean NOT NULL,
    verified_by text NOT NULL CHECK (verified_by IN ('checker', 'person')),
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (item_id, task_id)
);
ALTER TABLE strategy_evidence ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_the_tenant ON strategy_evidence USING (
    tenant = (SELECT nullif(current_setting('phronesis.tenant', true), ''))
    OR (SELECT current_setting('phronesis.tenant', true)) = '*'
);
CREATE POLICY on_own_parent ON strategy_evidence AS RESTRICTIVE USING (true)
    WITH CHECK ((SELECT true FROM strategies WHERE strategies.item_id = strategy_evidence.item_id));
