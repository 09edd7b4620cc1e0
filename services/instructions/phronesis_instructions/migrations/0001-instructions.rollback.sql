-- Loses the released texts with their history, and news that was not sent. A start releases what the service has again.
DROP TABLE writes;
DROP TABLE outbox;
DROP TABLE agent_profiles;
DROP TABLE instruction_history;
DROP TABLE instruction_elements;
DROP TABLE instruction_bundles;
DROP FUNCTION keep_history();
