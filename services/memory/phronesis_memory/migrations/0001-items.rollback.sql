-- Loses everything that the service remembers, and news that was not sent.
DROP TABLE writes;
DROP TABLE outbox;
DROP TABLE profiles;
DROP TABLE nodes;
DROP TABLE vectors;
DROP TABLE embedding;
DROP TABLE words;
DROP TABLE texts;
DROP TABLE items;
DROP SEQUENCE versions;
DROP TABLE scopes;
