-- depends: 0005-tenants

-- What an index outside this database has still to be told of items' vectors, the latest of each item; empty where the
-- vectors stand in the table above. Without an embedding it is a deletion. Numbers are in half precision, as in halfvec.
CREATE TABLE vector_changes (
    tenant text NOT NULL,
    item_id uuid NOT NULL,
    owner text,
    kind text,
    family text,
    embedding bytea,
    passages bytea,
    due timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, item_id)
);
CREATE INDEX vector_changes_due ON vector_changes (due);

-- News that is true only when the vectors of these items are gone; it goes to the outbox with the last of their changes.
CREATE TABLE held_news (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL,
    subject text NOT NULL,
    body bytea NOT NULL,
    headers jsonb NOT NULL,
    items uuid[] NOT NULL
);

ALTER TABLE vector_changes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_the_tenant ON vector_changes USING (
    tenant = (SELECT nullif(current_setting('phronesis.tenant', true), ''))
    OR (SELECT current_setting('phronesis.tenant', true)) = '*'
);
ALTER TABLE held_news ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_the_tenant ON held_news USING (
    tenant = (SELECT nullif(current_setting('phronesis.tenant', true), ''))
    OR (SELECT current_setting('phronesis.tenant', true)) = '*'
);
