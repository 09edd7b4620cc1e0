-- depends: 0015-memories

-- Memories that were added without vectors: found by their words at once, by their meaning once they are no longer listed here.
CREATE TABLE unembedded (
    item_id uuid PRIMARY KEY REFERENCES items ON DELETE CASCADE,
    tenant text NOT NULL,
    owner text NOT NULL,
    due timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX unembedded_of_owner ON unembedded (tenant, owner, due);

ALTER TABLE unembedded ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_the_tenant ON unembedded USING (
    tenant = (SELECT nullif(current_setting('phronesis.tenant', true), ''))
    OR (SELECT current_setting('phronesis.tenant', true)) = '*'
);
