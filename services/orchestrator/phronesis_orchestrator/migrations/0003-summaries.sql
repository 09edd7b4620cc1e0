-- depends: 0002-deletions

-- What is left of the turns before the newest ones. It is content, and goes with the messages.
ALTER TABLE conversations ADD COLUMN summary jsonb;
ALTER TABLE conversations ADD COLUMN summary_through bigint NOT NULL DEFAULT 0;
