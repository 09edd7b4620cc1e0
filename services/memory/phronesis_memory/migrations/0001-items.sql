-- depends:

-- How many items of a kind an owner has, and their words: what BM25 needs to know of a collection.
-- An owner is a user's name, or '*' for what the whole tenant shares; no user can have that name.
CREATE TABLE scopes (
    tenant text NOT NULL,
    owner text NOT NULL,
    kind text NOT NULL,
    items bigint NOT NULL DEFAULT 0,
    words bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, owner, kind)
);

CREATE SEQUENCE versions;

CREATE TABLE items (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant text NOT NULL,
    owner text NOT NULL,
    kind text NOT NULL,
    external_id text,
    part text NOT NULL DEFAULT '',
    family text NOT NULL DEFAULT '',
    title text,
    body text NOT NULL,
    metadata jsonb NOT NULL DEFAULT '{}',
    content_hash bytea NOT NULL,
    version bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant, owner, external_id, part)
);
CREATE INDEX items_kind ON items (tenant, owner, kind);

-- The words of an item, as hashes that hold tenant, owner and kind: one index serves every scope and stays inside it.
CREATE TABLE texts (
    item_id uuid PRIMARY KEY REFERENCES items ON DELETE CASCADE,
    tenant text NOT NULL,
    owner text NOT NULL,
    kind text NOT NULL,
    family text NOT NULL,
    length integer NOT NULL,
    terms bigint[] NOT NULL,
    counts bytea NOT NULL
);
CREATE INDEX texts_terms ON texts USING gin (terms) WITH (fastupdate = off);

-- In how many items of its scope a word stands.
CREATE TABLE words (
    term bigint PRIMARY KEY,
    items integer NOT NULL
) WITH (fillfactor = 70);

CREATE TABLE embedding (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    model text NOT NULL,
    dimension integer NOT NULL
);

-- No reference to items: the table stands behind a port, and is a projection.
CREATE TABLE vectors (
    item_id uuid PRIMARY KEY,
    tenant text NOT NULL,
    owner text NOT NULL,
    kind text NOT NULL,
    family text NOT NULL,
    model text NOT NULL,
    dimension integer NOT NULL,
    embedding halfvec NOT NULL,
    CHECK (vector_dims(embedding) = dimension)
);
CREATE INDEX vectors_scope ON vectors (tenant, owner, kind);
CREATE INDEX vectors_384 ON vectors USING hnsw ((embedding::halfvec(384)) halfvec_cosine_ops) WHERE dimension = 384;
CREATE INDEX vectors_768 ON vectors USING hnsw ((embedding::halfvec(768)) halfvec_cosine_ops) WHERE dimension = 768;
CREATE INDEX vectors_1024 ON vectors USING hnsw ((embedding::halfvec(1024)) halfvec_cosine_ops) WHERE dimension = 1024;
CREATE INDEX vectors_1536 ON vectors USING hnsw ((embedding::halfvec(1536)) halfvec_cosine_ops) WHERE dimension = 1536;

-- Which version of a graph node the items of its texts were made from.
CREATE TABLE nodes (
    tenant text NOT NULL,
    key text NOT NULL,
    version bigint NOT NULL,
    gone boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant, key)
);

CREATE TABLE profiles (
    tenant text NOT NULL,
    user_id text NOT NULL,
    profile jsonb NOT NULL DEFAULT '{}',
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, user_id)
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
    tenant text NOT NULL,
    service text NOT NULL,
    key text NOT NULL,
    arguments text NOT NULL,
    result jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, service, key)
);
