-- Loses strategies, samples of style and what came of tools. Episodes stay; the version before knows neither of the two kinds.
DROP TABLE strategies;
DROP TABLE tool_outcomes;
DELETE FROM words WHERE term IN (SELECT unnest(terms) FROM texts WHERE kind IN ('style', 'strategy'));
DELETE FROM scopes WHERE kind IN ('style', 'strategy');
DELETE FROM vector_changes WHERE kind IN ('style', 'strategy');
DELETE FROM vectors WHERE kind IN ('style', 'strategy');
DELETE FROM items WHERE kind IN ('style', 'strategy');
