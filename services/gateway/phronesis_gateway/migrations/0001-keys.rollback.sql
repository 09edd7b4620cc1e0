-- Loses every key, and news that was not sent.
DROP TABLE outbox;
DROP TABLE keys;
