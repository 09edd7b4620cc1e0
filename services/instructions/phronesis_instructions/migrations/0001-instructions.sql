CREATE TABLE instruction_bundles (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tag text NOT NULL UNIQUE,
    content text NOT NULL,
    version text NOT NULL DEFAULT '1.0.0' CHECK (version ~ '^\d{1,9}\.\d{1,9}\.\d{1,9}$'),
    status text NOT NULL DEFAULT 'draft' CHECK (status IN ('active', 'deprecated', 'draft')),
    avg_tokens integer,
    category text,
    experiment_group text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE instruction_elements (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tag text NOT NULL UNIQUE,
    content text NOT NULL,
    tier integer NOT NULL DEFAULT 3 CHECK (tier IN (1, 2, 3)),
    version text NOT NULL DEFAULT '1.0.0' CHECK (version ~ '^\d{1,9}\.\d{1,9}\.\d{1,9}$'),
    status text NOT NULL DEFAULT 'draft' CHECK (status IN ('active', 'deprecated', 'draft')),
    avg_tokens integer,
    dependencies text[],
    use_cases text[],
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- A tag names the live text alone; what it replaced is kept here.
CREATE TABLE instruction_history (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tag text NOT NULL,
    content text NOT NULL,
    version text NOT NULL,
    status text NOT NULL,
    replaced_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX instruction_history_tag ON instruction_history (tag, id);

CREATE FUNCTION keep_history() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.updated_at := clock_timestamp();
    IF (NEW.content, NEW.version) IS DISTINCT FROM (OLD.content, OLD.version) THEN
        EXECUTE format('INSERT INTO %I.instruction_history (tag, content, version, status) VALUES ($1, $2, $3, $4)', TG_TABLE_SCHEMA)
            USING OLD.tag, OLD.content, OLD.version, OLD.status;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER instruction_bundles_history BEFORE UPDATE ON instruction_bundles FOR EACH ROW EXECUTE FUNCTION keep_history();
CREATE TRIGGER instruction_elements_history BEFORE UPDATE ON instruction_elements FOR EACH ROW EXECUTE FUNCTION keep_history();

-- How an agent runs. Prompts are tags of bundles, directives tags of elements.
CREATE TABLE agent_profiles (
    agent text PRIMARY KEY,
    version text NOT NULL CHECK (version ~ '^\d{1,9}\.\d{1,9}\.\d{1,9}$'),
    digest text NOT NULL,
    loop text NOT NULL CHECK (loop IN ('quick', 'router', 'tools', 'task')),
    stages text[] NOT NULL,
    prompts jsonb NOT NULL,
    directives jsonb NOT NULL,
    phrases jsonb NOT NULL,
    released_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL,
    subject text NOT NULL,
    body bytea NOT NULL,
    headers jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE writes (
    tenant text,
    service text,
    key text,
    arguments text NOT NULL,
    result jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, service, key)
);
