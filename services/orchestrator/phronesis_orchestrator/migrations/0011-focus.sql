-- depends: 0010-tasks

-- What a conversation is about, as its last plan left it: the things, the set and the years that the next message may refer to.
-- It is content, and goes with the messages.
ALTER TABLE conversations ADD COLUMN focus jsonb;
