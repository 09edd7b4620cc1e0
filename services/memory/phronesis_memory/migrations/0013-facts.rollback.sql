-- Loses what was learnt of users, and the list of what was forgotten. The items of held facts go with them.
DELETE FROM vectors WHERE starts_with(owner, 'facts:');
DELETE FROM items WHERE starts_with(owner, 'facts:');
DELETE FROM scopes WHERE starts_with(owner, 'facts:');
DROP TABLE fact_sources;
DROP TABLE facts;
DROP TABLE forgettings;
