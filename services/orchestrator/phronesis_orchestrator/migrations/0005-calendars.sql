-- depends: 0004-tenants

-- Where a user's events are and when the user works. The password is encrypted by the service; the database never sees it.
CREATE TABLE calendars (
    tenant text NOT NULL,
    user_id text NOT NULL,
    source text NOT NULL,
    url text,
    ics text,
    username text,
    sealed bytea,
    hours double precision[] NOT NULL,
    time_zone text NOT NULL,
    version bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, user_id)
);
ALTER TABLE calendars ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_the_tenant ON calendars USING (
    tenant = (SELECT nullif(current_setting('phronesis.tenant', true), ''))
    OR (SELECT current_setting('phronesis.tenant', true)) = '*'
);
