CREATE TABLE conversations (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    user_id text NOT NULL,
    agent text NOT NULL,
    directive text NOT NULL DEFAULT 'supportive_companion',
    next_turn bigint NOT NULL DEFAULT 1,
    next_message bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX conversations_of_user ON conversations (tenant, user_id, updated_at DESC);

-- The queue: a turn is claimed from here, and its row is the truth about it.
CREATE TABLE turns (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    user_id text NOT NULL,
    conversation_id uuid NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    sequence bigint NOT NULL,
    agent text NOT NULL,
    status text NOT NULL,
    request jsonb NOT NULL,
    fingerprint text NOT NULL,
    principal jsonb NOT NULL,
    key_id text,
    fence bigint NOT NULL DEFAULT 0,
    attempts int NOT NULL DEFAULT 0,
    idle_claims int NOT NULL DEFAULT 0,
    worker text,
    lease_until timestamptz,
    expires_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    ended_at timestamptz,
    traceparent text,
    correlation_id text,
    retry_of uuid,
    reply jsonb,
    problem jsonb,
    UNIQUE (conversation_id, sequence)
) WITH (fillfactor = 80);
CREATE INDEX turns_open ON turns (conversation_id, sequence) WHERE status IN ('queued', 'running');
CREATE INDEX turns_of_tenant_open ON turns (tenant) WHERE status IN ('queued', 'running', 'waiting');
CREATE INDEX turns_of_user ON turns (tenant, user_id, created_at DESC);

CREATE TABLE journal (
    turn_id uuid NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    step text NOT NULL,
    fence bigint NOT NULL,
    intent jsonb NOT NULL,
    intents int NOT NULL DEFAULT 1,
    result jsonb,
    intent_at timestamptz NOT NULL DEFAULT now(),
    result_at timestamptz,
    PRIMARY KEY (turn_id, step)
);

CREATE TABLE messages (
    conversation_id uuid NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    seq bigint NOT NULL,
    turn_id uuid NOT NULL,
    role text NOT NULL,
    text text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (conversation_id, seq)
);
CREATE UNIQUE INDEX messages_once ON messages (turn_id, role);

CREATE TABLE directives (
    turn_id uuid PRIMARY KEY,
    conversation_id uuid NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    directive text NOT NULL,
    reasoning text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE revoked_keys (
    key_id text PRIMARY KEY,
    revoked_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    news_id text NOT NULL UNIQUE,
    tenant text NOT NULL,
    service text NOT NULL,
    who text NOT NULL,
    role text NOT NULL,
    action text NOT NULL,
    outcome text NOT NULL,
    code text,
    arguments jsonb NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX audit_of_tenant ON audit (tenant, at DESC);

CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL,
    subject text NOT NULL,
    body bytea NOT NULL,
    headers jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
