-- depends: 0006-approvals

-- What each call to a model used. It outlives the turn: money that was spent stays spent, and no text stands here.
CREATE TABLE ledger (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL,
    user_id text NOT NULL,
    agent text NOT NULL,
    turn_id uuid NOT NULL,
    step text NOT NULL,
    purpose text NOT NULL,
    model text NOT NULL,
    outcome text NOT NULL,
    attempts int NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    cost_usd double precision,
    ms bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ledger_of_tenant ON ledger (tenant, at);
CREATE INDEX ledger_of_turn ON ledger (turn_id);

-- What may be used; an empty agent or user stands for all of them together.
CREATE TABLE limits (
    tenant text NOT NULL,
    agent text NOT NULL,
    user_id text NOT NULL,
    period text NOT NULL,
    tokens bigint,
    usd double precision,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, agent, user_id, period)
);

-- How an answer came about, and the answers of the tools that it came from; of memories the ids alone. The record is text,
-- since jsonb puts the members of an object in another order, and a model that is shown rows sees that.
CREATE TABLE traces (
    turn_id uuid PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
    tenant text NOT NULL,
    user_id text NOT NULL,
    record text NOT NULL,
    memories text[] NOT NULL,
    forgotten text[] NOT NULL DEFAULT '{}',
    at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX traces_of_memories ON traces USING gin (memories);

-- The profiles that agents ran with, each once for a tenant, however many turns ran with it.
CREATE TABLE ran_with (
    tenant text NOT NULL,
    digest text NOT NULL,
    profile text NOT NULL,
    PRIMARY KEY (tenant, digest)
);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['ledger', 'limits', 'traces', 'ran_with'] LOOP
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
CREATE POLICY on_own_parent ON traces AS RESTRICTIVE USING (true)
    WITH CHECK ((SELECT true FROM turns WHERE turns.id = traces.turn_id));
