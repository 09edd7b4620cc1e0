-- depends: 0001-items

-- Conversations that an item was learnt from. An item without any was stored for its own sake.
CREATE TABLE sources (
    item_id uuid NOT NULL REFERENCES items ON DELETE CASCADE,
    conversation_id text NOT NULL,
    PRIMARY KEY (item_id, conversation_id)
);
CREATE INDEX sources_of_conversation ON sources (conversation_id);
INSERT INTO sources (item_id, conversation_id)
SELECT id, metadata ->> 'conversation_id' FROM items WHERE kind = 'episode' AND metadata ? 'conversation_id';

-- What was deleted and may not come back with late news: a conversation, or one episode.
CREATE TABLE tombstones (
    tenant text NOT NULL,
    owner text NOT NULL,
    name text NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, owner, name)
);

ALTER TABLE profiles ADD COLUMN version bigint NOT NULL DEFAULT nextval('versions');

-- The kept result of a write holds no content, which would outlive the thing itself.
UPDATE writes SET result = result - 'profile' WHERE result ? 'profile';
UPDATE writes SET result = jsonb_build_object(
    'items', (SELECT jsonb_agg(item - 'external_id') FROM jsonb_array_elements(result -> 'items') AS item)
) WHERE jsonb_typeof(result -> 'items') = 'array';
