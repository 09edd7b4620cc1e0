-- depends: 0013-facts

-- What was attached to a conversation. Its passages are items whose owner is `documents:<user>:<conversation>`, which is nobody's
-- name; they are found by their words at once, and by their meaning once `embedded` has come that far.
CREATE TABLE documents (
    tenant text NOT NULL,
    owner text NOT NULL,
    conversation_id text NOT NULL,
    media_id text NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    passages integer NOT NULL,
    characters integer NOT NULL,
    length integer NOT NULL,
    pages integer,
    limits text[] NOT NULL DEFAULT '{}',
    embedded integer NOT NULL DEFAULT 0,
    due timestamptz NOT NULL DEFAULT now(),
    kept_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, owner, conversation_id, media_id)
);
CREATE INDEX documents_waiting ON documents (due) WHERE embedded < passages;

ALTER TABLE documents ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_the_tenant ON documents USING (
    tenant = (SELECT nullif(current_setting('phronesis.tenant', true), ''))
    OR (SELECT current_setting('phronesis.tenant', true)) = '*'
);
