-- depends: 0012-acting

-- Where the texts come from that a turn's reply may rest on; of a turn from before this version nobody knows.
ALTER TABLE turns ADD COLUMN labels jsonb NOT NULL DEFAULT '[{"kind": "unknown"}]';

-- Names of what was attached to a message. Its text is what its user typed; older ones hold the text of attachments behind it.
ALTER TABLE messages ADD COLUMN attached text[] NOT NULL DEFAULT '{}';
