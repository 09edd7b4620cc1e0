-- depends: 0005-roles

-- Sessions of the console: the cookie holds a random id, of which only the hash is here. They end when they are signed out,
-- unused for a while, or old.
CREATE TABLE sessions (
    hash bytea PRIMARY KEY CHECK (length(hash) = 32),
    tenant text NOT NULL,
    "user" text NOT NULL,
    key uuid NOT NULL,
    used_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);
CREATE INDEX sessions_of_user ON sessions (tenant, "user");

-- Tickets that opened their stream, until they would have expired: none opens two.
CREATE TABLE used_tickets (
    hash bytea PRIMARY KEY CHECK (length(hash) = 32),
    tenant text NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX used_tickets_expire ON used_tickets (tenant, expires_at);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['sessions', 'used_tickets'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
        EXECUTE format($policy$
            CREATE POLICY of_the_tenant ON %I USING (
                tenant = (SELECT nullif(current_setting('phronesis.tenant', true), ''))
                OR (SELECT current_setting('phronesis.tenant', true)) = '*'
            )
        $policy$, name);
    END LOOP;
END
$$;
