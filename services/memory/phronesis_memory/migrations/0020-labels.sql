-- depends: 0019-node-words

-- Where a text comes from, and what it was formed from; of what is from before this version nobody knows.
ALTER TABLE items ADD COLUMN labels jsonb NOT NULL DEFAULT '[{"kind": "unknown"}]';
ALTER TABLE item_versions ADD COLUMN labels jsonb NOT NULL DEFAULT '[{"kind": "unknown"}]';
ALTER TABLE profiles ADD COLUMN labels jsonb NOT NULL DEFAULT '[{"kind": "unknown"}]';
-- Of a fact the labels of its words; each time that it was said has labels of its own.
ALTER TABLE facts ADD COLUMN labels jsonb NOT NULL DEFAULT '[{"kind": "unknown"}]';
ALTER TABLE fact_sources ADD COLUMN labels jsonb NOT NULL DEFAULT '[{"kind": "unknown"}]';

-- What nobody but the user has said is the user's own word.
UPDATE fact_sources SET labels = '[{"kind": "memory"}]' WHERE origin = 'user';
UPDATE facts SET labels = '[{"kind": "memory"}]'
WHERE 'user' = ALL (SELECT origin FROM fact_sources WHERE fact_id = facts.id)
    AND EXISTS (SELECT FROM fact_sources WHERE fact_id = facts.id);
UPDATE items SET labels = facts.labels FROM facts WHERE facts.item_id = items.id AND facts.labels = '[{"kind": "memory"}]';
