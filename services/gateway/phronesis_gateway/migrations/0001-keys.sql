CREATE TABLE keys (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    "user" text NOT NULL,
    role text NOT NULL,
    department text,
    ministry text,
    scopes text[] NOT NULL DEFAULT '{}',
    hash bytea NOT NULL UNIQUE CHECK (length(hash) = 32),
    prefix text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz
);

CREATE INDEX keys_by_tenant ON keys (tenant, created_at DESC);

CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL,
    subject text NOT NULL,
    body bytea NOT NULL,
    headers jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
